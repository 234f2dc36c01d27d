package signature

import (
	"strings"
	"testing"
)

// TestRuleExamples runs every rule on its own examples and counter-examples.
func TestRuleExamples(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, tl := range tools {
		for i := range tl.rules {
			r := &tl.rules[i]
			if seen[r.name] {
				t.Errorf("%s: two rules of one name", r.name)
			}
			seen[r.name] = true
			if len(r.yes) == 0 || len(r.no) == 0 || r.conf <= 0 || r.conf > 1 || len(r.lits) == 0 {
				t.Errorf("%s: a rule has an example, a counter-example, a literal and a confidence in (0,1]", r.name)
			}
			for _, l := range r.lits {
				if l != strings.ToLower(l) || l == "" {
					t.Errorf("%s: literal %q is not lower case", r.name, l)
				}
			}
			c := &compiled{rule: r, re: lazy(r.re), not: lazy(r.not), kept: lazy(r.keep)}
			for _, s := range r.yes {
				l := stripLine(s, 1)
				if _, ok := c.match(l.text); !ok {
					t.Errorf("%s: example %q is no hit", r.name, l.text)
				}
				if !holds(l.text, r.lits) {
					t.Errorf("%s: example %q has none of the literals %q", r.name, l.text, r.lits)
				}
				if r.keep != "" && c.kept().FindStringSubmatch(l.text) == nil {
					t.Logf("%s: example %q keeps all of itself", r.name, l.text)
				}
			}
			for _, s := range r.no {
				l := stripLine(s, 1)
				if _, ok := c.match(l.text); ok && holds(l.text, r.lits) {
					t.Errorf("%s: counter-example %q is a hit", r.name, l.text)
				}
			}
			lazy(r.detail.re)()
			lazy(r.join.re)()
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d rules", len(seen))
	}
}

func holds(s string, lits []string) bool {
	s = strings.ToLower(s)
	for _, l := range lits {
		if strings.Contains(s, l) {
			return true
		}
	}
	return false
}
