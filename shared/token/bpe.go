package token

import (
	"encoding/binary"
	"slices"
)

const (
	// scanWord is the longest word, in bytes, whose pairs are scanned for the
	// lowest rank at each merge. That is quadratic and yet quicker than a heap
	// up to about this length; prose hardly has a longer word.
	scanWord = 48
	// maxKept bounds the scratch space that is kept for the next call, in
	// entries, so that one monster word does not hold its memory for ever.
	maxKept = 1 << 16
	// A word of at most cacheWord bytes with at most cacheIDs ids is
	// remembered; 4,096 places of 48 bytes hold the working vocabulary of a
	// transcript in the second-level cache of a core.
	cacheWord = 16
	cacheIDs  = 6
	cacheBits = 12
)

// scratch is the working space of one call.
type scratch struct {
	ids   []uint32 // symbols of the word, merged in place
	rank  []uint32 // rank[i] is the id that ids[i], ids[i+1] merge to
	sym   []symbol
	heap  []uint64
	cache [1 << cacheBits]cached
}

type cached struct {
	lo, hi uint64 // the word's bytes, zero-padded
	size   uint8  // bytes; 0 when free
	n      uint8  // ids
	ids    [cacheIDs]uint32
}

// symbol is a node of the linked list that a long word is merged in.
type symbol struct {
	id         uint32
	rank       uint32 // with the next one
	prev, next int32  // -1 at the ends
}

// ids is the merged ids of one word, valid until the next call.
func (t *table) ids(s *scratch, word string) []uint32 {
	if len(word) == 1 {
		s.ids = append(s.ids[:0], byteID[word[0]])
		return s.ids
	}
	if len(word) > cacheWord {
		return t.mergeWord(s, word)
	}
	lo, hi := wordKey(word)
	c := &s.cache[(lo*0x9E3779B97F4A7C15^hi*0xC2B2AE3D27D4EB4F)>>(64-cacheBits)]
	if int(c.size) == len(word) && c.lo == lo && c.hi == hi {
		return c.ids[:c.n]
	}
	ids := t.mergeWord(s, word)
	if len(ids) <= cacheIDs {
		c.lo, c.hi, c.size = lo, hi, uint8(len(word))
		c.n = uint8(copy(c.ids[:], ids))
	}
	return ids
}

// wordKey packs a word of 2 to 16 bytes.
func wordKey(w string) (lo, hi uint64) {
	var b [cacheWord]byte
	copy(b[:], w)
	return binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])
}

func (t *table) mergeWord(s *scratch, word string) []uint32 {
	if len(word) > scanWord {
		return t.mergeHeap(s, word)
	}
	ids, rank := s.ids[:0], s.rank[:0]
	for i := range len(word) {
		ids = append(ids, byteID[word[i]])
	}
	for i := 1; i < len(ids); i++ {
		rank = append(rank, t.merge(ids[i-1], ids[i]))
	}
	for {
		best, at := noMerge, 0
		for i, r := range rank {
			if r < best { // the leftmost of equals
				best, at = r, i
			}
		}
		if best == noMerge {
			break
		}
		ids[at] = best
		ids = append(ids[:at+1], ids[at+2:]...)
		rank = append(rank[:at], rank[at+1:]...)
		if at > 0 {
			rank[at-1] = t.merge(ids[at-1], best)
		}
		if at < len(rank) {
			rank[at] = t.merge(best, ids[at+1])
		}
	}
	s.ids, s.rank = ids, rank
	return ids
}

// mergeHeap is mergeWord for a long word: n log n by a heap of (rank,
// position), stale entries left in it and skipped.
func (t *table) mergeHeap(s *scratch, word string) []uint32 {
	sym, h := slices.Grow(s.sym[:0], len(word)), slices.Grow(s.heap[:0], len(word))
	for i := range len(word) {
		sym = append(sym, symbol{id: byteID[word[i]], rank: noMerge, prev: int32(i - 1), next: int32(i + 1)})
	}
	sym[len(sym)-1].next = -1
	for i := range len(sym) - 1 {
		if sym[i].rank = t.merge(sym[i].id, sym[i+1].id); sym[i].rank != noMerge {
			h = append(h, heapKey(sym[i].rank, i))
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
	for len(h) > 0 {
		top := h[0]
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
		siftDown(h, 0)
		rank, at := uint32(top>>32), int32(uint32(top))
		a := &sym[at]
		if a.rank != rank {
			continue
		}
		b := &sym[a.next]
		a.id, a.next, b.rank = rank, b.next, noMerge
		a.rank = noMerge
		if a.next >= 0 {
			sym[a.next].prev = at
			if a.rank = t.merge(a.id, sym[a.next].id); a.rank != noMerge {
				h = push(h, heapKey(a.rank, int(at)))
			}
		}
		if a.prev >= 0 {
			p := &sym[a.prev]
			if p.rank = t.merge(p.id, a.id); p.rank != noMerge {
				h = push(h, heapKey(p.rank, int(a.prev)))
			}
		}
	}
	ids := s.ids[:0]
	for i := int32(0); i >= 0; i = sym[i].next {
		ids = append(ids, sym[i].id)
	}
	s.sym, s.heap, s.ids = sym, h, ids
	return ids
}

func heapKey(rank uint32, at int) uint64 { return uint64(rank)<<32 | uint64(at) }

func siftDown(h []uint64, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

func push(h []uint64, v uint64) []uint64 {
	h = append(h, v)
	for i := len(h) - 1; i > 0; {
		p := (i - 1) / 2
		if h[p] <= h[i] {
			break
		}
		h[p], h[i] = h[i], h[p]
		i = p
	}
	return h
}
