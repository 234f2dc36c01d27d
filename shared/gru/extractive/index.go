package extractive

import "slices"

// Index finds, among many fingerprints, the few that Relate could relate to a
// given one, so that a statement is not compared with everything that was ever
// kept. It is not safe for concurrent use.
//
// It is exact, by what Relate asks for: two sentences of which one has under
// fewWords words must have equal words; any other Repeat shares at least
// repeatShare of the newer one's words with it, and a Supersedes at least
// subjectWords. A sentence that shares n of a's w words holds at least one of
// any w-n+1 of them, so that only the rarest of them are looked up.
type Index struct {
	prints   []Fingerprint
	byWord   map[uint64][]int32 // word -> places in prints, ascending
	wordless map[uint64][]int32 // hash of the text of a sentence without words
	marks    []uint32           // by place: the last search that found it
	search   uint32
	found    []int32 // what Related gave last
	lists    [][]int32
}

// NewIndex makes an empty index.
func NewIndex() *Index {
	return &Index{byWord: map[uint64][]int32{}, wordless: map[uint64][]int32{}}
}

// Add puts a fingerprint at the next place: Len before the call.
func (x *Index) Add(f Fingerprint) {
	at := int32(len(x.prints))
	x.prints = append(x.prints, f)
	x.marks = append(x.marks, 0)
	if len(f.words) == 0 {
		x.wordless[f.text] = append(x.wordless[f.text], at)
	}
	for _, w := range f.words {
		x.byWord[w] = append(x.byWord[w], at)
	}
}

// Len is how many fingerprints there are.
func (x *Index) Len() int { return len(x.prints) }

// At is the fingerprint at a place.
func (x *Index) At(i int) Fingerprint { return x.prints[i] }

// Related gives, ascending, a superset of the places whose fingerprint k has
// Relate(f, k, …) of Repeat or Supersedes, or Relate(k, f, …) of Supersedes.
// The slice is valid until the next call.
func (x *Index) Related(f Fingerprint) []int32 {
	if len(f.words) == 0 {
		return x.wordless[f.text]
	}
	if x.search++; x.search == 0 { // the counter ran over: old marks mean nothing
		clear(x.marks)
		x.search = 1
	}
	x.lists = x.lists[:0]
	for _, w := range f.words {
		x.lists = append(x.lists, x.byWord[w])
	}
	slices.SortFunc(x.lists, func(a, b []int32) int { return len(a) - len(b) })
	x.found = x.found[:0]
	for _, l := range x.lists[:len(x.lists)-leastShared(len(f.words))+1] {
		for _, at := range l {
			if x.marks[at] != x.search {
				x.marks[at] = x.search
				x.found = append(x.found, at)
			}
		}
	}
	slices.Sort(x.found)
	return x.found
}

// leastShared is how many of a sentence's w words, at least one, another that
// stands in either relation to it must have.
func leastShared(w int) int {
	if w < fewWords {
		return w
	}
	repeat := 1
	for float64(repeat) < repeatShare*float64(w) {
		repeat++
	}
	return min(repeat, subjectWords)
}
