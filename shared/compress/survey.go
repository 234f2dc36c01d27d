package compress

import (
	"strconv"
	"strings"
)

// field is what is known of one key path over all rows.
type field struct {
	rows     int            // that have it
	values   map[uint64]int // how often each value is there, up to maxDistinct
	many     bool           // more values than that
	n        int            // of numbers
	sum, sq  float64
	forms    map[uint64]bool // its strings, numbers and ids masked, up to maxDistinct
	strBytes int             // of its strings
	changes  []int32         // rows whose value is another than that of the row before
	last     uint64
	manyMove bool

	classes [classes]int // of its scalars
	lastRow int32        // that has it
	missing int          // rows before lastRow that have it not
	gaps    []int32      // the first of them
}

// class is what sort of value a scalar is: one of another sort than all others of
// its field is no number, or no name.
type class uint8

const (
	number class = iota
	named
	emptyText
	null
	truth
	classes
)

// gapsShown is how many rows without a field that nearly all have stay.
const gapsShown = 2

const maxDistinct = 256

// jvalue is a scalar of one row.
type jvalue struct {
	hash  uint64
	num   float64
	row   int32
	path  int16
	isNum bool
	class class
}

type survey struct {
	w      *jwriter
	fields []field
	values []jvalue
	paths  map[uint64]int32 // of any value, scalar or not; the index of its field, or -1
	fresh  []bool           // rows with a key path that no row before has
	errs   []bool
	roles  map[string]role // of the names met so far

	verdicts map[verdict]bool // failureValue of short strings

	small   bool // fewer than listRows
	leveled bool // a field says how grave a row is
}

// hashString is FNV-1a: the same in every run, as what collides must be too.
func hashString(h uint64, s string) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return h
}

const hashBasis = 14695981039346656037

// row reads a row's key paths and scalars.
func (s *survey) row(i, r int32) {
	if s.w.t.nodes[r].kind == 'x' {
		s.errs[i] = true // a line that is no value: it stays, unless others are like it
		return
	}
	s.walk(i, r, hashBasis, "")
}

func (s *survey) walk(row, i int32, path uint64, name string) {
	n := &s.w.t.nodes[i]
	at, known := s.paths[path]
	if !known {
		at = -1
		if len(s.fields) < maxFields {
			at = int32(len(s.fields))
			s.fields = append(s.fields, field{values: map[uint64]int{}, lastRow: -1})
		}
		s.paths[path] = at
		s.fresh[row] = true
	}
	if at >= 0 {
		s.fields[at].seen(row)
	}
	switch n.kind {
	case '{':
		if s.role(name)&failure != 0 && n.next > i+1 {
			s.errs[row] = true
		}
		for c := i + 1; c < n.next; c = s.w.t.nodes[c].next {
			key := s.w.t.name(c)
			s.walk(row, c, hashString(path^0x2e, key), key)
		}
	case '[':
		if s.role(name)&failure != 0 && n.next > i+1 {
			s.errs[row] = true
		}
		place := uint64(0)
		for c := i + 1; c < n.next; c = s.w.t.nodes[c].next {
			child := hashString(path, "[]")
			if path == hashBasis && place < maxColumns { // a row that is an array: each place is a column
				place++
				child ^= place << 32
			}
			s.walk(row, c, child, name)
		}
	default:
		s.scalar(row, i, at, name)
	}
}

// failed is failureValue, which is asked once of short strings such as levels.
func (s *survey) failed(is role, raw string, kind byte) bool {
	if is == 0 {
		return false
	}
	if kind != '"' || len(raw) > 24 {
		return failureValue(is, raw, kind)
	}
	key := verdict{is, raw}
	v, ok := s.verdicts[key]
	if !ok {
		v = failureValue(is, raw, kind)
		if len(s.verdicts) < maxDistinct {
			s.verdicts[key] = v
		}
	}
	return v
}

type verdict struct {
	is  role
	raw string
}

// seen counts the rows that have the field not.
func (f *field) seen(row int32) {
	for r := f.lastRow + 1; r < row && len(f.gaps) < gapsShown; r++ {
		f.gaps = append(f.gaps, r)
	}
	f.missing += int(max(row-f.lastRow-1, 0))
	f.lastRow = row
}

// classOf tells a scalar's class.
func classOf(raw string, kind byte, isNum bool) class {
	switch {
	case isNum:
		return number
	case kind == '"' && len(raw) <= 2:
		return emptyText
	case kind == '"':
		return named
	case raw == "null":
		return null
	}
	return truth
}

func (s *survey) scalar(row, i, at int32, name string) {
	raw := s.w.t.raw(i)
	n := &s.w.t.nodes[i]
	if s.failed(s.role(name), raw, n.kind) {
		s.errs[row] = true
	}
	if at < 0 {
		return
	}
	f := &s.fields[at]
	f.rows++
	h := hashString(hashBasis, raw)
	if !f.many {
		f.values[h]++
		f.many = len(f.values) > maxDistinct
	}
	if f.rows > 1 && h != f.last && !f.manyMove {
		if len(f.changes) == changesShown {
			f.manyMove = true
		} else {
			f.changes = append(f.changes, row)
		}
	}
	f.last = h
	if n.kind == '"' && s.small {
		if s.role(name)&outcome != 0 && levelNames[strings.ToLower(name)] {
			s.leveled = true
		}
		if f.forms == nil {
			f.forms = map[uint64]bool{}
		}
		f.forms[maskedHash(raw)] = true
		f.strBytes += len(raw)
	}
	v := jvalue{row: row, path: int16(at), hash: h}
	if n.kind == '"' && numeric(raw[1:len(raw)-1]) { // as databases and Prometheus write them
		raw = raw[1 : len(raw)-1]
	}
	if n.kind == 'n' || len(raw) > 0 && raw[0] != '"' && n.kind == '"' {
		if x, err := strconv.ParseFloat(raw, 64); err == nil {
			v.num, v.isNum = x, true
			f.n++
			f.sum += x
			f.sq += x * x
		}
	}
	v.class = classOf(s.w.t.raw(i), n.kind, v.isNum)
	f.classes[v.class]++
	s.values = append(s.values, v)
}

// numeric reports a number in plain digits, as a string holds one.
func numeric(s string) bool {
	digits := 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case c == '.' || c == '-' && i == 0:
		default:
			return false
		}
	}
	return digits > 0 && len(s) <= 24
}

// repetitive reports that some field of most rows says the same again and again.
func (s *survey) repetitive(n int) bool {
	for i := range s.fields {
		f := &s.fields[i]
		if f.rows*2 >= n && !f.many && len(f.values)*2 <= f.rows {
			return true
		}
	}
	// Rows of empty objects and arrays have no scalar at all.
	return len(s.values) == 0
}

// measured reports rows of numbers alone: points of a line, samples of a measure.
func (s *survey) measured() bool {
	for _, v := range s.values {
		if !v.isNum {
			return false
		}
	}
	return true
}

// told reports rows that tell in one sentence and its like what happened, each time
// with other numbers and ids: lines of a log, though no value comes twice.
func (s *survey) told(rows []int32) bool {
	forms := map[string]map[uint64]bool{}
	count := map[string]int{}
	for _, r := range rows {
		s.w.t.children(r, func(c int32) {
			if raw := s.w.t.raw(c); s.w.t.nodes[c].kind == '"' && strings.Count(raw[:min(len(raw), 200)], " ") >= sentenceSpaces {
				name := s.w.t.name(c)
				if forms[name] == nil {
					if len(forms) > maxDistinct {
						return
					}
					forms[name] = map[uint64]bool{}
				}
				count[name]++
				forms[name][maskedHash(raw)] = true
			}
		})
	}
	for name, n := range count {
		if n*2 >= len(rows) && len(forms[name])*4 <= n {
			return true
		}
	}
	return false
}

// sentenceSpaces is the least number of spaces in a sentence.
const sentenceSpaces = 3

// levelNames are the fields of a log's rows that say how grave each is.
var levelNames = map[string]bool{"level": true, "lvl": true, "severity": true}

// worded reports a list of things, each in its own words: no row stands for
// another.
func (s *survey) worded(rows []int32) bool {
	if s.leveled {
		return false
	}
	total, own := 0, 0
	for _, r := range rows {
		total += len(s.w.t.raw(r))
	}
	for i := range s.fields {
		if f := &s.fields[i]; len(f.forms)*2 > f.rows {
			own += f.strBytes
		}
	}
	return float64(own) >= wordedShare*float64(total)
}

// maskedHash is a hash of a text without its numbers and ids.
func maskedHash(s string) uint64 {
	const prime = 1099511628211
	h := uint64(hashBasis)
	for i := 0; i < len(s); {
		if !alnum[s[i]] {
			h = (h ^ uint64(s[i])) * prime
			i++
			continue
		}
		j, digit := i, false
		for j < len(s) && alnum[s[j]] {
			digit = digit || s[j] <= '9'
			j++
		}
		if digit {
			h = (h ^ '#') * prime
		} else {
			h = hashString(h, s[i:j])
		}
		i = j
	}
	return h
}
