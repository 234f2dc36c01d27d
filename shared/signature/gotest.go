package signature

import "strings"

// passedTest reports whether line i was printed by a test of go test -v that
// passed: what it logs looks like what a failed one says.
//
//	=== RUN   TestA
//	    a_test.go:3: starting
//	--- PASS: TestA (0.00s)
func (t *text) passedTest(i int) bool {
	for j := i - 1; j >= 0 && j >= i-maxLook; j-- {
		s := strings.TrimLeft(t.lines[j].text, " ")
		switch {
		case strings.HasPrefix(s, "--- FAIL: "):
			return false
		case strings.HasPrefix(s, "--- PASS: "), strings.HasPrefix(s, "--- SKIP: "):
			return true
		case strings.HasPrefix(s, "=== "):
			f := strings.Fields(s)
			return len(f) > 2 && t.passed()[f[2]]
		}
	}
	return false
}

func (t *text) passed() map[string]bool {
	if t.tests == nil {
		t.tests = map[string]bool{}
		for i := range t.lines {
			for _, p := range [...]string{"--- PASS: ", "--- SKIP: "} {
				if _, rest, ok := strings.Cut(t.lines[i].text, p); ok {
					name, _, _ := strings.Cut(rest, " ")
					t.tests[name] = true
				}
			}
		}
	}
	return t.tests
}
