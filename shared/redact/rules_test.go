package redact_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/redact"
)

// A rule of the generated table, read from its source: the tests see what the
// package's own variables are made of.
type tableRule struct{ kind, prefix, expr string }

var tableLine = regexp.MustCompile(`^\t\{(?:prefix: ("[^"]*"), fold: \w+, min: \d+, )?kind: ("[^"]*"),.*expr: (".*"|` + "`.*`" + `)\},$`)

func table(t *testing.T) (out []tableRule) {
	t.Helper()
	src, err := os.ReadFile("rules_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	unquote := func(s string) string {
		if s == "" {
			return ""
		}
		v, err := strconv.Unquote(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return v
	}
	for line := range strings.Lines(string(src)) {
		if m := tableLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			out = append(out, tableRule{unquote(m[2]), unquote(m[1]), unquote(m[3])})
		}
	}
	return out
}

// Each generated rule masks a made-up match of its own expression, and keeps
// the same text where its one deciding part is another: a byte of the prefix, or
// the vendor's name and every word of secrecy.
func TestEveryGeneratedRule(t *testing.T) {
	t.Parallel()
	rules := table(t)
	if len(rules) < 200 {
		t.Fatalf("the table has %d rules", len(rules))
	}
	red := redact.New(key)
	for i, r := range rules {
		t.Run(r.kind+"/"+r.prefix, func(t *testing.T) {
			t.Parallel()
			re, err := syntax.Parse(r.expr, syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			rnd := seeded{rand.New(rand.NewPCG(uint64(i), 7))}
			if r.prefix == "" {
				named(t, red, rnd, r, re)
				return
			}
			hit, miss, tries := 0, 0, 40
			var last string
			for range tries {
				text := sample(rnd, re)
				if len(text) < len(r.prefix) || !strings.EqualFold(text[:len(r.prefix)], r.prefix) {
					continue
				}
				out, _ := red.Redact("see " + text + " there")
				if strings.Contains(out, text) {
					miss++
					last = text
				} else {
					hit++
				}
				other := "qz" + text[2:] // no vendor begins so
				if out, _ := red.Redact("see " + other + " there"); strings.HasPrefix(out, "see [") {
					t.Errorf("masks %q too: %q", other, out)
				}
			}
			// An entropy too low, or no digit, is refused on purpose: rare in
			// random text.
			if hit == 0 || miss > tries/5 {
				t.Errorf("%d of %d made-up matches of %s stay, such as %q", miss, hit+miss, r.expr, last)
			}
		})
	}
}

// named checks a rule that wants a vendor's name: gitleaks' odd separators (||,
// ?=, :::=, a bare comma) are left to names that tell a secret.
func named(t *testing.T, red *redact.Redactor, rnd seeded, r tableRule, re *syntax.Regexp) {
	t.Helper()
	value := group(re)
	_, ident, ok := strings.Cut(r.expr, `{0,50}?(?:`)
	ident, _, ok2 := strings.Cut(ident, `)(?:[ \t\w.-]{0,20})`)
	name, err := syntax.Parse(ident, syntax.Perl|syntax.FoldCase)
	if value == nil || !ok || !ok2 || err != nil {
		t.Fatalf("%s has no name and value: %v", r.expr, err)
	}
	miss, tries := 0, 0
	var last string
	for range 12 {
		for _, form := range []string{"%s_x=%s\n", "%s: %s\n", "\"%s\": \"%s\",", "%s := '%s'", "%s.x => \"%s\""} {
			v := sample(rnd, value)
			who := strings.TrimSuffix(sample(rnd, name), ",")
			tries++
			out, _ := red.Redact("see " + strings.Replace(strings.Replace(form, "%s", who, 1), "%s", v, 1) + " there")
			if strings.Contains(out, v) {
				miss++
				last = out
			}
			kept := "see " + strings.Replace(strings.Replace(form, "%s", "quiz", 1), "%s", v, 1) + " there"
			if out, _ := red.Redact(kept); strings.Contains(out, r.kind) {
				t.Errorf("masks %q too: %q", kept, out)
			}
		}
	}
	if miss > tries/3 {
		t.Errorf("%d of %d made-up values of %s stay, such as %q", miss, tries, r.expr, last)
	}
}

// group is the last group of re that is long enough for a secret.
func group(re *syntax.Regexp) (out *syntax.Regexp) {
	if re.Op == syntax.OpCapture && len(re.Sub[0].String()) > 4 && !strings.Contains("(?i:login|token)(?i:LOGIN|TOKEN)", re.Sub[0].String()) && !strings.HasPrefix(re.Sub[0].String(), "AAAA") && !strings.Contains("livetest", strings.Trim(re.Sub[0].String(), "()|?:i")) {
		return re.Sub[0]
	}
	for _, s := range re.Sub {
		if g := group(s); g != nil {
			return g
		}
	}
	return nil
}

// sample writes a text that re matches.
func sample(r seeded, re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		var set []rune
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for c := max(re.Rune[i], ' '); c <= min(re.Rune[i+1], '~'); c++ {
				if c != '\\' || len(re.Rune) <= 2 { // escapes are the text's, not the token's
					set = append(set, c)
				}
			}
		}
		if len(set) == 0 {
			return " "
		}
		return string(set[r.IntN(len(set))])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(rune(base62[r.IntN(len(base62))]))
	case syntax.OpCapture:
		return sample(r, re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		return ""
	case syntax.OpPlus:
		return many(r, re.Sub[0], 12)
	case syntax.OpRepeat:
		n := re.Min
		if re.Max > re.Min && re.Min > 0 {
			n += r.IntN(re.Max - re.Min + 1)
		}
		return many(r, re.Sub[0], n)
	case syntax.OpConcat:
		var b strings.Builder
		for _, s := range re.Sub {
			b.WriteString(sample(r, s))
		}
		return b.String()
	case syntax.OpAlternate:
		return sample(r, re.Sub[r.IntN(len(re.Sub))])
	}
	return ""
}

func many(r seeded, re *syntax.Regexp, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(sample(r, re))
	}
	return b.String()
}
