package extractive

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/lazy"
)

// matcher is one pattern.
type matcher struct {
	src string
	d   *dfa
}

func (m matcher) match(s string) bool { return m.d.scan(s) != 0 }

func exact(p string) matcher { return matcher{p, newDFA([]string{p}, false)} }
func fold(p string) matcher  { return exact("(?i)" + p) }

// bank tests many patterns in one pass.
type bank struct {
	srcs []string
	d    *dfa
}

// add joins a pattern to the bank and returns its bit.
func (b *bank) add(src string) mask {
	b.srcs = append(b.srcs, src)
	return 1 << (len(b.srcs) - 1)
}

func (b *bank) seal() { b.d = newDFA(b.srcs, false) }

// gap is a pattern A[^X]{lo,hi}B. Such a counter would multiply the states of
// a dfa, so A and B are tested in the bank, and how they stand to each other
// only where both are found.
type gap struct {
	bitA, bitB mask
	a, b       *dfa // b anchored
	not        string
	lo, hi     int
}

var (
	gapPattern = lazy.MustCompile(`\[\^((?:[^\]\\]|\\.)+)\]\{(\d+),(\d+)\}`)
	unescape   = strings.NewReplacer(`\n`, "\n", `\"`, `"`)
)

// addWithGaps joins a pattern to the bank, its alternatives with gaps taken
// out.
func (b *bank) addWithGaps(src, flags string) (mask, []gap) {
	var plain []string
	var gaps []gap
	for _, alt := range alternatives(src) {
		m := gapPattern.FindStringSubmatchIndex(alt)
		if m == nil || strings.HasPrefix(alt, "^") {
			plain = append(plain, alt)
			continue
		}
		a, c := flags+alt[:m[0]], flags+"(?:"+alt[m[1]:]+")"
		lo, errLo := strconv.Atoi(alt[m[4]:m[5]])
		hi, errHi := strconv.Atoi(alt[m[6]:m[7]])
		if errLo != nil || errHi != nil {
			panic("extractive: bounds of " + alt) // patterns are constants
		}
		gaps = append(gaps, gap{
			bitA: b.add(a), bitB: b.add(c), a: newDFA([]string{a}, false), b: newDFA([]string{c}, true),
			not: unescape.Replace(alt[m[2]:m[3]]), lo: lo, hi: hi,
		})
	}
	if len(plain) == 0 {
		return 0, gaps
	}
	return b.add(flags + strings.Join(plain, "|")), gaps
}

// match reports whether the gap pattern matches s; found is what the bank
// found in it.
func (g *gap) match(s string, found mask) bool {
	if found&g.bitA == 0 || found&g.bitB == 0 {
		return false
	}
	return g.a.ends(s, func(at int) bool {
		for k := 0; ; k++ {
			if k >= g.lo && g.b.at(s, at) != 0 {
				return true
			}
			if k == g.hi || at == len(s) {
				return false
			}
			r, n := utf8.DecodeRuneInString(s[at:])
			if strings.ContainsRune(g.not, r) {
				return false
			}
			at += n
		}
	})
}

// alternatives splits a pattern at its outermost bars.
func alternatives(src string) []string {
	var out []string
	depth, from, class := 0, 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			out = append(out, src[from:i])
			from = i + 1
		}
	}
	return append(out, src[from:])
}

// verbRule is a phrase with a verb behind it, which holds unless the verb is
// one of a list.
type verbRule struct {
	any, listed mask // in the body bank: with whatever verb, with one of the list
	re          *regexp.Regexp
	none        map[string]bool
}

// addVerb joins a verb rule to the bank; src ends in the group of the verb.
func (b *bank) addVerb(src, none string) verbRule {
	i := strings.LastIndex(src, "(")
	behind := map[string]string{`(\w+)`: `(?:\W|$)`, `([a-z]+)`: `(?:[^a-z]|$)`}[src[i:]]
	if behind == "" {
		panic("extractive: no verb at the end of " + src) // patterns are constants
	}
	return verbRule{
		any:    b.add("(?i)" + src),
		listed: b.add("(?i)" + src[:i] + "(?:" + strings.Join(strings.Fields(none), "|") + ")" + behind),
		re:     regexp.MustCompile("(?i)" + src),
		none:   set(none),
	}
}

// match reports whether the rule holds in h; any is true where the phrase
// stands there with whatever verb.
func (v *verbRule) match(h string, found mask) (holds, any bool) {
	if found&v.any == 0 {
		return false, false
	}
	// Without a listed verb behind any phrase the rule holds; with one, which
	// verb belongs to which phrase is for the pattern to say.
	return found&v.listed == 0 || v.unlisted(h), true
}

// unlisted reports whether a phrase stands in h with a verb that is not in the
// list.
func (v *verbRule) unlisted(h string) bool {
	for _, m := range v.re.FindAllStringSubmatch(h, -1) {
		if !v.none[strings.ToLower(m[1])] {
			return true
		}
	}
	return false
}

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
