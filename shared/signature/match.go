package signature

// automaton finds all literals of a table in one pass over a line, letters of
// either case (Aho and Corasick, 1975). Expressions are tried on the few lines
// that hold a literal of theirs.
type automaton struct {
	class [256]uint8 // bytes that no literal holds share class 0
	width int
	next  []uint16 // state*width+class; the high bit: a literal ends here
	outs  [][]int32
}

const ends = 1 << 15

func newAutomaton(lits []string) *automaton {
	a := &automaton{width: 1}
	for _, l := range lits {
		for i := range len(l) {
			if a.class[l[i]] == 0 {
				a.class[l[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		a.class[c-'a'+'A'] = a.class[c]
	}
	a.grow()
	for id, l := range lits {
		s := 0
		for i := range len(l) {
			at := s*a.width + int(a.class[l[i]])
			if a.next[at] == 0 {
				a.next[at] = uint16(a.grow())
			}
			s = int(a.next[at])
		}
		a.outs[s] = append(a.outs[s], int32(id))
	}
	a.link()
	return a
}

func (a *automaton) grow() int {
	a.next = append(a.next, make([]uint16, a.width)...)
	a.outs = append(a.outs, nil)
	return len(a.outs) - 1
}

// link fills every transition, breadth first.
func (a *automaton) link() {
	fail := make([]int, len(a.outs))
	queue := make([]int, 0, len(a.outs))
	for c := range a.width {
		if t := int(a.next[c]); t != 0 {
			queue = append(queue, t)
		}
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		a.outs[s] = append(a.outs[s], a.outs[fail[s]]...)
		for c := range a.width {
			t, f := int(a.next[s*a.width+c]), int(a.next[fail[s]*a.width+c])
			if t == 0 {
				a.next[s*a.width+c] = uint16(f)
				continue
			}
			fail[t] = f
			queue = append(queue, t)
		}
	}
	for i, t := range a.next {
		if len(a.outs[t]) > 0 {
			a.next[i] |= ends
		}
	}
}

// scan calls found for each literal that ends somewhere in s.
func (a *automaton) scan(s string, found func(lit int32)) {
	state := 0
	for i := range len(s) {
		t := a.next[state+int(a.class[s[i]])]
		if t&ends != 0 {
			t &^= ends
			for _, id := range a.outs[t] {
				found(id)
			}
		}
		state = int(t) * a.width
	}
}
