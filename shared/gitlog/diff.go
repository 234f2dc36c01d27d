package gitlog

import (
	"bytes"
	"slices"
	"sort"
)

// lines cuts a text at its line ends, which stay out.
func lines(b []byte) [][]byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

// hunk says that lines [a0,a1) gave way to lines [b0,b1); one of them may be
// empty, and between two hunks stands at least one line of both texts.
type hunk struct{ a0, a1, b0, b1 int }

// diff is a patience difference: lines that stand once in each text and in the
// same order are held fast, whatever is equal around them is taken in, and what
// is between them is looked at in the same way. A line that declares something
// mostly stands once, so one that did not change is not called changed. It takes
// n log n steps for each level of nesting, and maxNesting levels at most: a
// shortest difference would take n·d, which a made-up file turns into hours.
func diff(a, b [][]byte) []hunk {
	ids := map[string]int32{}
	d := differ{a: intern(ids, a), b: intern(ids, b)}
	d.once = make([][4]int32, len(ids))
	d.between(0, len(a), 0, len(b), 0)
	return d.hunks
}

// maxNesting bounds the levels; texts of people need two or three.
const maxNesting = 16

type differ struct {
	a, b  []int32    // the lines by number, equal lines equal numbers
	once  [][4]int32 // of a line: how often it stands in a and b, and where last; zero outside between
	hunks []hunk
}

// intern numbers lines.
func intern(ids map[string]int32, ls [][]byte) []int32 {
	out := make([]int32, len(ls))
	for i, l := range ls {
		id, ok := ids[string(l)]
		if !ok {
			id = int32(len(ids))
			ids[string(l)] = id
		}
		out[i] = id
	}
	return out
}

func (d *differ) between(a0, a1, b0, b1, level int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 && b0 == b1 {
		return
	}
	var anchors [][2]int
	if a0 < a1 && b0 < b1 && level < maxNesting {
		anchors = d.anchors(a0, a1, b0, b1)
	}
	if len(anchors) == 0 {
		d.add(hunk{a0, a1, b0, b1})
		return
	}
	for _, at := range anchors {
		if at[0] < a0 || at[1] < b0 {
			continue // taken in already
		}
		// Equal lines before an anchor are the end of what is between.
		d.between(a0, at[0], b0, at[1], level+1)
		a0, b0 = at[0]+1, at[1]+1
		for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
			a0, b0 = a0+1, b0+1
		}
	}
	d.between(a0, a1, b0, b1, level+1)
}

// add appends a hunk, or lengthens the last one where they touch.
func (d *differ) add(h hunk) {
	if n := len(d.hunks); n > 0 && d.hunks[n-1].a1 == h.a0 && d.hunks[n-1].b1 == h.b0 {
		d.hunks[n-1].a1, d.hunks[n-1].b1 = h.a1, h.b1
		return
	}
	d.hunks = append(d.hunks, h)
}

// anchors are the longest run of lines that stand once in each range and in the
// same order in both, as pairs of places.
func (d *differ) anchors(a0, a1, b0, b1 int) [][2]int {
	for i := a0; i < a1; i++ {
		c := &d.once[d.a[i]]
		c[0], c[2] = c[0]+1, int32(i)
	}
	for i := b0; i < b1; i++ {
		c := &d.once[d.b[i]]
		c[1], c[3] = c[1]+1, int32(i)
	}
	var all [][2]int // in the order of a
	for i := a0; i < a1; i++ {
		if c := d.once[d.a[i]]; c[0] == 1 && c[1] == 1 {
			all = append(all, [2]int{i, int(c[3])})
		}
	}
	for i := a0; i < a1; i++ {
		d.once[d.a[i]] = [4]int32{}
	}
	for i := b0; i < b1; i++ {
		d.once[d.b[i]] = [4]int32{}
	}
	// Longest increasing run of the places in b (Fredman 1975): ends[k] is the
	// pair that ends the best run of k+1 pairs, before[i] the one before pair i.
	var ends []int
	before := make([]int, len(all))
	for i, p := range all {
		k := sort.Search(len(ends), func(k int) bool { return all[ends[k]][1] >= p[1] })
		before[i] = -1
		if k > 0 {
			before[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	out := make([][2]int, 0, len(ends))
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		out = append(out, all[i])
	}
	slices.Reverse(out)
	return out
}
