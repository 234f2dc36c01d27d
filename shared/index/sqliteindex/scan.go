package sqliteindex

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// The first pass looks at one bit a dimension, the sign of the vector's
// distance from the mean, against the whole query: the estimate of the dot
// product is q·mean + scale·Σ ±q[i]·spread[i], with spread the mean distance in
// a dimension and scale how far the vector is from the mean in such steps. The
// query is cut into bit planes, so that the sum is a count of common bits for
// each.
//
// Measured over 100,000 random texts of Zipf words embedded with the static
// table (queries of 8 words, recall@10 after exact rescoring of 4,000): bits
// against bits (Hamming) 0.852, centred 0.881; bits against the query 0.989,
// centred 0.993, centred and scaled 0.999. With topics in the texts the same
// five are 0.917, 0.952, 0.994, 1.000 and 1.000.

// planes is the precision of the query in bits: its error is then a 64th of
// its range, far below that of one bit for the vector.
const planes = 6

const (
	// minRescore candidates of the first pass are scored exactly: see above.
	minRescore = 4000
	// manyRows from which on more are scored exactly, as the root of their number: the share
	// that keeps the recall falls as a space grows. Of 1,000,000 texts like the above,
	// recall@10 is 0.998 with 1 in 25 and with 1 in 50, 0.994 with 1 in 100; the root gives
	// 1 in 79.
	manyRows = 100_000
	// exactShare times as many rows are all scored exactly, which costs about
	// what a first pass would save: 8,000 × 256 products take 3 ms.
	exactShare = 2
)

// dense holds one space in memory.
type dense struct {
	dims    int
	words   int // of one code
	rescore int // minRescore, less in tests

	mu       sync.RWMutex // guards what follows
	vecs     []float32    // rows × dims, length 1
	codes    []uint64     // rows × words
	ones     []float32    // by row: bits set in its code
	scale    []float32    // by row
	group    []uint32     // by row: index into groups
	nodeOf   []uint32     // by row: index into nodes
	passages [][32]byte   // by row
	nodes    [][32]byte
	nodeRows []int64 // by node: node.row in the file
	groups   []group
	inGroup  []int // rows by group
	mean     []float32
	spread   []float32 // mean of |v-mean| by dimension
	meanOf   int       // rows that mean and spread were taken over

	byGroup map[group]uint32
	byNode  map[int64]uint32
	stated  map[int64][]stated // by node.row; nil until asked for
}

// group is what a filter decides about without looking at the row.
type group struct {
	project string
	level   memory.Level
}

func newDense(dims int) *dense {
	return &dense{dims: dims, words: (dims + 63) / 64, rescore: minRescore, byGroup: map[group]uint32{}, byNode: map[int64]uint32{}}
}

func (d *dense) rows() int { return len(d.passages) }

// add appends a row; encode must follow before the next search.
func (d *dense) add(r *denseRow) {
	g := group{r.project, r.level}
	gi, ok := d.byGroup[g]
	if !ok {
		gi = uint32(len(d.groups))
		d.groups, d.inGroup = append(d.groups, g), append(d.inGroup, 0)
		d.byGroup[g] = gi
	}
	ni, ok := d.byNode[r.nodeRow]
	if !ok {
		ni = uint32(len(d.nodes))
		d.nodes = append(d.nodes, r.node)
		d.nodeRows = append(d.nodeRows, r.nodeRow)
		d.byNode[r.nodeRow] = ni
	}
	d.group = append(d.group, gi)
	d.inGroup[gi]++
	d.nodeOf = append(d.nodeOf, ni)
	d.passages = append(d.passages, r.passage)
	d.vecs = append(d.vecs, r.v...)
}

// retire hides a node's rows: no filter allows their group. They are gone when
// the space is read again.
func (d *dense) retire(nodeRow int64) {
	ni, ok := d.byNode[nodeRow]
	if !ok {
		return
	}
	hidden, ok := d.byGroup[group{}]
	if !ok {
		hidden = uint32(len(d.groups))
		d.groups, d.inGroup = append(d.groups, group{}), append(d.inGroup, 0)
		d.byGroup[group{}] = hidden
	}
	for i, n := range d.nodeOf {
		if n == ni && d.group[i] != hidden {
			d.inGroup[d.group[i]]--
			d.group[i] = hidden
			d.inGroup[hidden]++
		}
	}
}

// encode codes the rows that add appended. Mean and spread are taken again when
// the rows have doubled: they only sharpen the first pass.
func (d *dense) encode() {
	n := d.rows()
	if n >= 2*d.meanOf {
		d.measure()
		d.codes, d.ones, d.scale = d.codes[:0], d.ones[:0], d.scale[:0]
	}
	var square float32
	for _, x := range d.spread {
		square += x * x
	}
	for i := len(d.scale); i < n; i++ {
		at := len(d.codes)
		d.codes = append(d.codes, make([]uint64, d.words)...)
		ones := 0
		var far float32
		for j, x := range d.row(i) {
			if x -= d.mean[j]; x > 0 {
				d.codes[at+j/64] |= 1 << (j % 64)
				ones++
				far += x * d.spread[j]
			} else {
				far -= x * d.spread[j]
			}
		}
		d.ones = append(d.ones, float32(ones))
		if square > 0 {
			far /= square
		}
		d.scale = append(d.scale, far)
	}
}

// measure takes mean and spread of all rows.
func (d *dense) measure() {
	d.meanOf = d.rows()
	sum := make([]float64, d.dims)
	average := func(f func(j int, x float32) float32) []float32 {
		clear(sum)
		for i := range d.meanOf {
			for j, x := range d.row(i) {
				sum[j] += float64(f(j, x))
			}
		}
		out := make([]float32, d.dims)
		for j := range sum {
			out[j] = float32(sum[j] / float64(max(d.meanOf, 1)))
		}
		return out
	}
	d.mean = average(func(_ int, x float32) float32 { return x })
	d.spread = average(func(j int, x float32) float32 { return max(x-d.mean[j], d.mean[j]-x) })
}

func (d *dense) row(i int) []float32 { return d.vecs[i*d.dims : (i+1)*d.dims] }

type candidate struct {
	row   uint32
	score float32
}

// scratch is a search's working memory, used again by the next.
type scratch struct {
	rows   []uint32
	scores []float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// search scores the rows that f allows. vec has length 1.
func (d *dense) search(ctx context.Context, vec []float32, f *index.Filter, k int) ([]index.Hit, error) {
	if len(vec) != d.dims {
		return nil, fault.New(fault.Invalid, "query vector has %d dimensions, its space has %d", len(vec), d.dims)
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.rows = d.seen(f, sc.rows[:0])
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(sc.rows) > exactShare*d.rescore {
		sc.scores = slices.Grow(sc.scores[:0], len(sc.rows))[:len(sc.rows)]
		d.estimate(sc.rows, vec, sc.scores)
		sc.rows = best(sc.rows, sc.scores, d.exactly(len(sc.rows)))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	cands := make([]candidate, len(sc.rows))
	inParts(len(sc.rows), exactPart, func(from, to int) {
		for i, row := range sc.rows[from:to] {
			cands[from+i] = candidate{row, dot(vec, d.row(int(row)))}
		}
	})
	return d.collapse(cands, k), nil
}

// exactly is how many of n rows are scored exactly after the first pass.
func (d *dense) exactly(n int) int {
	if n <= manyRows {
		return d.rescore
	}
	return int(float64(d.rescore) * math.Sqrt(float64(n)/manyRows))
}

const (
	// Rows that are worth a goroutine, in the first pass and in the exact one: about a
	// millisecond of either.
	estimatePart = 1 << 16
	exactPart    = 1 << 12
)

// inParts calls f for parts of [0, n), side by side where there are cores and a part has at
// least `least`.
func inParts(n, least int, f func(from, to int)) {
	parts := max(1, min(runtime.GOMAXPROCS(0), n/least))
	if parts == 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() { f(n*p/parts, n*(p+1)/parts) })
	}
	wg.Wait()
}

// seen appends the rows that f allows.
func (d *dense) seen(f *index.Filter, rows []uint32) []uint32 {
	allowed := d.allowed(f)
	said := f.Timed() || len(f.Sources) > 0
	from, to := f.Range()
	sources := map[string]bool{} // by object, as far as asked
	for i, g := range d.group {
		if allowed[g] && (!said || d.said(f, i, from, to, sources)) {
			rows = append(rows, uint32(i))
		}
	}
	return rows
}

func (d *dense) allowed(f *index.Filter) []bool {
	out := make([]bool, len(d.groups))
	for i, g := range d.groups {
		out[i] = slices.Contains(f.Projects, g.project) && slices.Contains(f.Scope(), g.level)
	}
	return out
}

// said reports whether f lets an occurrence of the row's node through.
func (d *dense) said(f *index.Filter, row int, from, to int64, sources map[string]bool) bool {
	for _, s := range d.stated[d.nodeRows[d.nodeOf[row]]] {
		if s.at < from || s.at >= to {
			continue
		}
		if len(f.Sources) == 0 {
			return true
		}
		ok, known := sources[s.object]
		if !known {
			ok = f.From(s.object)
			sources[s.object] = ok
		}
		if ok {
			return true
		}
	}
	return false
}

// estimate puts the first pass's score of each row into scores, less the part that
// is the same for all.
func (d *dense) estimate(rows []uint32, query []float32, scores []float32) {
	vec := make([]float32, d.dims)
	for j, x := range query {
		vec[j] = x * d.spread[j]
	}
	lo, hi := bounds(vec)
	step := (hi - lo) / (1<<planes - 1)
	if step <= 0 {
		step = 1
	}
	var total float32
	plane := make([]uint64, planes*d.words) // by plane, then word
	for j, x := range vec {
		total += x
		u := int((x-lo)/step + 0.5)
		for p := range planes {
			plane[p*d.words+j/64] |= uint64(u>>p&1) << (j % 64)
		}
	}
	// Σ over set bits of vec[i] is lo·ones + step·Σ 2^p·common(p).
	score := func(row uint32, common int) float32 {
		return d.scale[row] * (2*(lo*d.ones[row]+step*float32(common)) - total)
	}
	if d.words == 4 {
		planes4 := [planes][4]uint64{}
		for p := range planes {
			copy(planes4[p][:], plane[p*4:])
		}
		inParts(len(rows), estimatePart, func(from, to int) {
			for i, row := range rows[from:to] {
				code := (*[4]uint64)(d.codes[row*4:])
				common := 0
				for p := range planes4 {
					q := &planes4[p]
					common += (bits.OnesCount64(code[0]&q[0]) + bits.OnesCount64(code[1]&q[1]) +
						bits.OnesCount64(code[2]&q[2]) + bits.OnesCount64(code[3]&q[3])) << p
				}
				scores[from+i] = score(row, common)
			}
		})
		return
	}
	inParts(len(rows), estimatePart, func(from, to int) {
		for i, row := range rows[from:to] {
			code := d.codes[int(row)*d.words : (int(row)+1)*d.words]
			common := 0
			for p := range planes {
				n := 0
				for w, q := range plane[p*d.words : (p+1)*d.words] {
					n += bits.OnesCount64(code[w] & q)
				}
				common += n << p
			}
			scores[from+i] = score(row, common)
		}
	})
}

// bins of the histogram that best cuts by: fine enough that the last bin holds
// few rows more than asked for.
const bins = 4096

// best keeps, in place, at least the n rows of greatest score.
func best(rows []uint32, scores []float32, n int) []uint32 {
	if len(rows) <= n {
		return rows
	}
	lo, hi := bounds(scores)
	if hi <= lo {
		return rows
	}
	step := (bins - 1) / (hi - lo)
	var count [bins]int
	for _, s := range scores {
		count[int((s-lo)*step)]++
	}
	cut, have := bins-1, 0
	for ; cut > 0; cut-- {
		if have += count[cut]; have >= n {
			break
		}
	}
	out := rows[:0]
	for i, s := range scores {
		if int((s-lo)*step) >= cut {
			out = append(out, rows[i])
		}
	}
	return out
}

// bounds are the least and the greatest of at least one number.
func bounds(xs []float32) (lo, hi float32) {
	lo, hi = xs[0], xs[0]
	for _, x := range xs {
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
	}
	return lo, hi
}

func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// collapse keeps each node's best passage and gives the k best nodes.
func (d *dense) collapse(cands []candidate, k int) []index.Hit {
	// k nodes may take more than k passages; a node rarely has many among the
	// best, so sort a little and ask for more when it was not enough.
	for want := 4*k + 64; ; want *= 4 {
		top := cands
		if len(top) > want {
			top = greatest(cands, want)
		}
		all := len(top) == len(cands)
		slices.SortFunc(top, d.compare) // cands is the search's own
		hits := make([]index.Hit, 0, k)
		seen := make(map[uint32]bool, k)
		for _, c := range top {
			ni := d.nodeOf[c.row]
			if seen[ni] {
				continue
			}
			seen[ni] = true
			hits = append(hits, index.Hit{
				Passage: shaOf(&d.passages[c.row]), Node: shaOf(&d.nodes[ni]),
				Score: math.Max(-1, math.Min(1, float64(c.score))), // rounding
			})
			if len(hits) == k {
				return hits
			}
		}
		if all {
			return hits
		}
	}
}

// greatest gives at least the n candidates of greatest score.
func greatest(cands []candidate, n int) []candidate {
	at := make([]uint32, len(cands))
	scores := make([]float32, len(cands))
	for i := range cands {
		at[i], scores[i] = uint32(i), cands[i].score
	}
	out := make([]candidate, 0, n)
	for _, i := range best(at, scores, n) {
		out = append(out, cands[i])
	}
	return out
}

// compare orders by score, then node id, then passage id: the same answer
// whatever the order of loading.
func (d *dense) compare(a, b candidate) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	x, y := &d.nodes[d.nodeOf[a.row]], &d.nodes[d.nodeOf[b.row]]
	return cmp.Or(bytes.Compare(x[:], y[:]), bytes.Compare(d.passages[a.row][:], d.passages[b.row][:]))
}
