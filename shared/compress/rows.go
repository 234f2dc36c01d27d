package compress

import (
	"cmp"
	"math"
	"slices"
)

// Which elements of an array stay: of rowsShown the first 30 %, the last 15 %
// and up to 55 % that say more than the others. Over that stay
//
//	rows that report a failure, by the VALUE of a field that tells it
//	the first two rows of a value that is rare in a field of few values
//	the first row of each key path, and two without one that nearly all have
//	two rows whose value is of another sort than the others of its field
//	rows with a number far from the others of its field
//	rows with the question's words
//
// Rows of which every field differs from row to row are things, not samples: all
// stay. So do those of a list that is read as one: fewer than listRows, without a
// level, and worded each in its own words.
const (
	minRows   = 20
	minScalar = 40  // numbers
	listRows  = 100 // rows, and strings: names and paths that somebody asked for
	rowsShown = 15

	wordedShare = 0.3 // of the rows' bytes: strings that differ by more than numbers and ids

	firstRows = 5 // 30 % of rowsShown
	lastRows  = 2 // 15 %

	fewValues    = 12   // a field of at most so many different values is a category
	rareShare    = 0.05 // of the rows: a value with less is rare
	commonShare  = 0.5  // of the rows: the most frequent value of a category
	farSigma     = 3.0  // stays over the budget
	outlierSigma = 2.0  // stays within it
	farRows      = 4    // of one field
	sameRows     = 3    // failures that differ in numbers alone: the first two and the last
	changesShown = 6    // of one field: where its value changes
	queryRows    = 10
	maxFields    = 256
	maxColumns   = 64 // of rows that are arrays
)

// choose tells which rows stay; nil when all do.
func (w *jwriter) choose(rows []int32) []bool {
	n := len(rows)
	scalars := 0
	for _, r := range rows {
		if k := w.t.nodes[r].kind; k != '{' && k != '[' && k != 'x' {
			scalars++
		}
	}
	if scalars*2 > n && (n < minScalar || n < listRows && w.t.nodes[rows[0]].kind == '"') {
		return nil
	}
	s := survey{w: w, paths: map[uint64]int32{}, roles: map[string]role{}, verdicts: map[verdict]bool{}, small: n < listRows, fresh: make([]bool, n), errs: make([]bool, n)}
	s.values = make([]jvalue, 0, (int(w.t.nodes[rows[n-1]].next)-int(rows[0]))*3/4)
	for i, r := range rows {
		s.row(int32(i), r)
	}
	if scalars == 0 && (!s.repetitive(n) && (n < listRows || !s.measured() && !s.told(rows)) || n < listRows && s.worded(rows)) {
		return nil
	}
	stays := make([]bool, n)
	for i := range n {
		if i < firstRows || i >= n-lastRows || s.fresh[i] {
			stays[i] = true
		}
	}
	s.failures(rows, stays)
	if scalars*2 <= n {
		s.rare(stays)
	}
	s.far(stays)
	w.named(rows, stays)
	left := rowsShown - firstRows - lastRows
	for _, i := range s.telling(n) {
		if left == 0 {
			break
		}
		if !stays[i] {
			stays[i] = true
			left--
		}
	}
	return stays
}

// failures keeps rows that report one. Of those that differ in numbers alone the
// first and the last stay.
func (s *survey) failures(rows []int32, stays []bool) {
	count := map[uint64]int{}
	var forms []uint64
	var at []int
	for i := range rows {
		if s.errs[i] {
			forms = append(forms, maskedHash(s.w.t.raw(rows[i])))
			at = append(at, i)
			count[forms[len(forms)-1]]++
		}
	}
	seen := map[uint64]int{}
	for k, i := range at {
		f := forms[k]
		seen[f]++
		if seen[f] < sameRows || seen[f] == count[f] {
			stays[i] = true
		}
	}
}

// rare keeps the first two rows of each value that is rare in a category.
func (s *survey) rare(stays []bool) {
	n := len(stays)
	few := max(1, int(rareShare*float64(n)))
	for i := range s.fields {
		f := &s.fields[i]
		f.seen(int32(n))
		if f.missing <= few {
			for _, r := range f.gaps {
				stays[r] = true
			}
		}
	}
	seen := map[[2]uint64]int{}
	for _, v := range s.values {
		f := &s.fields[v.path]
		if c := f.classes[v.class]; c <= few && c*10 < f.rows {
			key := [2]uint64{uint64(v.path), uint64(v.class)}
			if seen[key]++; seen[key] <= 2 {
				stays[v.row] = true
			}
		}
		if f.many || len(f.values) > fewValues || len(f.values) < 2 {
			continue
		}
		most := 0
		for _, c := range f.values {
			most = max(most, c)
		}
		if float64(most) < commonShare*float64(f.rows) {
			continue
		}
		if c := f.values[v.hash]; c > few {
			continue
		}
		key := [2]uint64{uint64(v.path), v.hash}
		if seen[key]++; seen[key] <= 2 {
			stays[v.row] = true
		}
	}
}

// sigma is how far a number is from the others of its field, in standard
// deviations.
func (f *field) sigma(x float64) float64 {
	if f.n < 8 {
		return 0
	}
	mean := f.sum / float64(f.n)
	v := f.sq/float64(f.n) - mean*mean
	if v <= 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Abs(x-mean) / math.Sqrt(v)
}

// far keeps the rows with the numbers furthest from the others.
func (s *survey) far(stays []bool) {
	byField := map[int16][]jvalue{}
	for _, v := range s.values {
		if v.isNum && s.fields[v.path].sigma(v.num) > farSigma {
			byField[v.path] = append(byField[v.path], v)
		}
	}
	for p, vs := range byField {
		f := &s.fields[p]
		slices.SortStableFunc(vs, func(a, b jvalue) int { return cmp.Compare(f.sigma(b.num), f.sigma(a.num)) })
		for _, v := range vs[:min(len(vs), farRows)] {
			stays[v.row] = true
		}
	}
}

// telling gives rows that say more than the others, in the order in which they
// fill what is left: the numbers away from the others, then changes of a category.
func (s *survey) telling(n int) []int {
	type scored struct {
		row   int
		score float64
	}
	var list []scored
	for _, v := range s.values {
		if !v.isNum {
			continue
		}
		if z := s.fields[v.path].sigma(v.num); z > outlierSigma {
			list = append(list, scored{int(v.row), z})
		}
	}
	for i := range s.fields {
		f := &s.fields[i]
		if f.manyMove || f.many || len(f.values) > fewValues {
			continue
		}
		for _, r := range f.changes {
			list = append(list, scored{int(r), 1})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row))
	})
	out := make([]int, 0, len(list))
	for _, x := range list {
		out = append(out, x.row)
	}
	return out
}

// named keeps rows that the question names.
func (w *jwriter) named(rows []int32, stays []bool) {
	if len(w.terms) == 0 {
		return
	}
	n := 0
	for i, r := range rows {
		if n == queryRows {
			return
		}
		if matches(w.t.raw(r), w.terms) {
			stays[i] = true
			n++
		}
	}
}
