package signature

import (
	"slices"
	"strings"
	"testing"
)

// FuzzScan: the automaton finds what a search for each literal finds.
func FuzzScan(f *testing.F) {
	lits := []string{"error: ", "err", "rror", "error: cannot", "aab", "ab", "●", "no such file", "such"}
	a := newAutomaton(lits)
	for _, s := range []string{"Error: cannot open: No Such FILE", "aaaab", "x ● y", "ERROR: CANNOT", "errerror: ", "such such"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := map[int32]bool{}
		a.scan(s, func(id int32) { got[id] = true })
		low := []byte(s)
		for i, c := range low {
			if c >= 'A' && c <= 'Z' {
				low[i] = c + 'a' - 'A'
			}
		}
		for id, l := range lits {
			if want := strings.Contains(string(low), l); got[int32(id)] != want {
				t.Errorf("%q in %q: %v, want %v", l, s, got[int32(id)], want)
			}
		}
	})
}

// TestTableFits: states and classes are within the automaton's numbers.
func TestTableFits(t *testing.T) {
	t.Parallel()
	tb := rules()
	if n := len(tb.auto.outs); n >= ends || tb.auto.width > 255 {
		t.Errorf("%d states of at most %d, %d classes of at most 255", n, ends-1, tb.auto.width)
	}
	for _, tl := range tools {
		for _, s := range tl.sets {
			if !slices.ContainsFunc(tools, func(o *tool) bool { return o.name == s && len(o.rules) > 0 }) {
				t.Errorf("%s: no set %s", tl.name, s)
			}
		}
	}
}
