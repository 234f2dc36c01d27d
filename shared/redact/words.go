package redact

import "sync"

// words finds every one of a fixed set of lower-case words in a short text by
// one pass: an automaton of Aho and Corasick (1975), with its failure links
// folded into the table.
type words struct {
	next [][wordLetters]uint16
	hits [][]uint16 // ids of the words that end in a state
}

// wordLetters are a-z, and one for each of the other bytes that the words hold.
const wordLetters = 40

func letter(c byte) int {
	switch {
	case isLow(c):
		return int(c - 'a')
	case isNum(c):
		return 26 + int(c-'0')
	case c == '_':
		return 36
	case c == '-':
		return 37
	case c == '.':
		return 38
	}
	return 39
}

func newWords(list [][]string) *words {
	w := &words{next: make([][wordLetters]uint16, 1), hits: make([][]uint16, 1)}
	for id, ws := range list {
		for _, s := range ws {
			at := uint16(0)
			for i := 0; i < len(s); i++ {
				to := &w.next[at][letter(s[i])]
				if *to == 0 {
					n := uint16(len(w.next))
					w.next = append(w.next, [wordLetters]uint16{})
					w.hits = append(w.hits, nil)
					w.next[at][letter(s[i])] = n
					at = n
					continue
				}
				at = *to
			}
			w.hits[at] = append(w.hits[at], uint16(id))
		}
	}
	// Breadth first: a state's failure state is complete before the state.
	fail := make([]uint16, len(w.next))
	var queue []uint16
	for _, n := range w.next[0] {
		if n != 0 {
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		w.hits[at] = append(w.hits[at], w.hits[fail[at]]...)
		for c, n := range w.next[at] {
			if n == 0 {
				w.next[at][c] = w.next[fail[at]][c]
				continue
			}
			fail[n] = w.next[fail[at]][c]
			queue = append(queue, n)
		}
	}
	return w
}

// each calls f with the id of every word in s, in any letter case, until f
// says that it is enough.
func (w *words) each(s string, f func(id int) (enough bool)) {
	at := uint16(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isUp(c) {
			c |= 0x20
		}
		at = w.next[at][letter(c)]
		for _, id := range w.hits[at] {
			if f(int(id)) {
				return
			}
		}
	}
}

// vendorWords is built when a value first wants it: 0.2 ms that a start need
// not pay.
var vendorWords = sync.OnceValue(func() *words {
	list := make([][]string, len(vendorNames))
	for i, n := range vendorNames {
		list[i] = n.keywords
	}
	return newWords(list)
})
