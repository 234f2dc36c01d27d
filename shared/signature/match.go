package signature

// automaton finds all literals of a table in one pass over a line, letters of
// either case (Aho and Corasick, 1975). Expressions are tried on the few lines
// that hold a literal of theirs. States are kept for a literal's first bytes
// alone and the rest is compared: the table is built at every start of the
// program, and stays in the processor's cache.
type automaton struct {
	lits  []string
	class [256]uint8 // bytes that no literal holds share class 0
	width int
	next  []uint16 // state*width+class; the high bit: a literal ends here
	outs  [][]int32
}

const (
	ends     = 1 << 15
	headSize = 5 // bytes of a literal that have states
)

func newAutomaton(lits []string) *automaton {
	a := &automaton{lits: lits, width: 1}
	for _, l := range lits {
		for i := range min(len(l), headSize) {
			if a.class[l[i]] == 0 {
				a.class[l[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		a.class[c-'a'+'A'] = a.class[c]
	}
	a.next = make([]uint16, 0, 2048*a.width)
	a.grow()
	for id, l := range lits {
		s := 0
		for i := range min(len(l), headSize) {
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
				if l := a.lits[id]; len(l) <= headSize || foldPrefix(s[i+1:], l[headSize:]) {
					found(id)
				}
			}
		}
		state = int(t) * a.width
	}
}

// foldPrefix reports whether s begins with the lower-case p, in letters of
// either case.
func foldPrefix(s, p string) bool {
	if len(s) < len(p) {
		return false
	}
	for i := range len(p) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != p[i] {
			return false
		}
	}
	return true
}
