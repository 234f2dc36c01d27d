package signature

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// table is all tools with their literals in one automaton, built at first use.
type table struct {
	tools  []*tool
	byName map[string]*tool
	sets   map[string][]*compiled
	auto   *automaton
	lits   int
	marks  [][]int32 // literals of each tool's marks
}

var rules = sync.OnceValue(func() *table { return buildTable(tools) })

func buildTable(ts []*tool) *table {
	t := &table{tools: ts, byName: map[string]*tool{}, sets: map[string][]*compiled{}}
	ids := map[string]int32{}
	var lits []string
	id := func(l string) int32 {
		n, ok := ids[l]
		if !ok {
			n = int32(len(lits))
			ids[l] = n
			lits = append(lits, l)
		}
		return n
	}
	for _, tl := range ts {
		t.byName[tl.name] = tl
		for _, a := range tl.alias {
			t.byName[a] = tl
		}
		for i := range tl.rules {
			r := &tl.rules[i]
			c := &compiled{rule: r, tool: tl.name, runner: tl.ci, re: lazy(r.re), not: lazy(r.not), kept: lazy(r.keep), detail: lazy(r.detail.re), joins: lazy(r.join.re)}
			for _, l := range r.lits {
				c.lits = append(c.lits, id(l))
			}
			if r.need != "" {
				for n := range strings.SplitSeq(r.need, "|") {
					c.needs = append(c.needs, id(n))
				}
			}
			t.sets[tl.name] = append(t.sets[tl.name], c)
		}
		var m []int32
		for _, l := range tl.marks {
			m = append(m, id(l))
		}
		t.marks = append(t.marks, m)
	}
	t.auto = newAutomaton(lits)
	t.lits = len(lits)
	return t
}

// own are the rule sets of a tool, in order.
func (t *table) own(tl *tool) []*compiled {
	if len(tl.sets) == 0 {
		return t.sets[tl.name]
	}
	var out []*compiled
	for _, s := range tl.sets {
		out = append(out, t.sets[s]...)
	}
	return out
}

// text is a log, ready for rules.
type text struct {
	lines  []line
	by     [][]int32 // lines of each literal, ascending
	from   int       // the failing section
	to     int
	cut    bool            // lines were left out
	repeat int             // where docker build begins to repeat what a step said
	tries  int             // expressions run so far
	green  map[string]bool // normal forms that a passing run has too
	tests  map[string]bool // go test: those that passed; nil until asked for
}

// index notes which literals stand in which lines.
func (t *text) index(tb *table) {
	t.by = make([][]int32, tb.lits)
	for i := range t.lines {
		if t.lines[i].mark == isNoise {
			continue
		}
		tb.auto.scan(t.lines[i].text, func(lit int32) {
			if l := t.by[lit]; len(l) == 0 || l[len(l)-1] != int32(i) {
				t.by[lit] = append(l, int32(i))
			}
		})
	}
}

// candidates are the lines that hold one of the rule's literals, within [from, to).
func (t *text) candidates(c *compiled, from, to int) []int32 {
	if len(c.needs) > 0 && !slices.ContainsFunc(c.needs, func(l int32) bool { return len(t.by[l]) > 0 }) {
		return nil
	}
	if len(c.lits) == 1 {
		return t.bothEnds(cut(t.by[c.lits[0]], from, to))
	}
	var out []int32
	for _, l := range c.lits {
		out = append(out, t.bothEnds(cut(t.by[l], from, to))...)
	}
	slices.Sort(out)
	return t.bothEnds(slices.Compact(out))
}

// Lines on which one rule's expression is tried: of more, the first and the
// last. A log in which half of all lines look like errors would take every
// rule to that bound; behind maxAll tries each has fewer.
const (
	maxTries = 6000
	fewTries = 400
	maxAll   = 30_000
)

func (t *text) bothEnds(l []int32) []int32 {
	n := maxTries
	if t.tries > maxAll {
		n = fewTries
	}
	if len(l) <= n {
		return l
	}
	return slices.Concat(l[:n/2], l[len(l)-n/2:])
}

func cut(l []int32, from, to int) []int32 {
	i, _ := slices.BinarySearch(l, int32(from))
	j, _ := slices.BinarySearch(l, int32(to))
	return l[i:j]
}

// maxHits bounds the hits of one rule; what several errors say together is a
// hash over that many.
const maxHits = 512

// hits are the lines that the rule matches and that are no cascade lines.
func (t *text) hits(c *compiled, from, to int, backwards bool) []hit {
	cand := t.candidates(c, from, to)
	if len(cand) == 0 {
		return nil
	}
	var out []hit
	t.tries += len(cand)
	for k := range cand {
		i := int(cand[k])
		if backwards {
			i = int(cand[len(cand)-1-k])
		}
		key, ok := c.match(t.lines[i].text)
		if !ok || !t.stands(c, i) || t.passing(i) || !c.runner && runnerLine().MatchString(t.lines[i].text) {
			continue
		}
		out = append(out, hit{i, key})
		if len(out) == maxHits {
			break
		}
	}
	if backwards {
		slices.Reverse(out)
	}
	return out
}

// match reports whether a line is one of the rule's, and its key.
func (c *compiled) match(s string) (string, bool) {
	m := c.re().FindStringSubmatchIndex(s)
	if m == nil || c.rule.not != "" && c.not().MatchString(s) {
		return "", false
	}
	if len(m) > 3 && m[2] >= 0 {
		return s[m[2]:m[3]], true
	}
	return "", true
}

// maxLook bounds how far from a line its surroundings are looked at.
const maxLook = 400

// stands reports whether a line stands where the rule wants it.
func (t *text) stands(c *compiled, i int) bool {
	if c.trace {
		ok := false
		for j := i + 1; j < len(t.lines) && j <= i+3 && !ok; j++ {
			s := strings.TrimSpace(t.lines[j].text)
			ok = strings.HasPrefix(s, "at ") || strings.HasPrefix(s, "... ") || strings.HasPrefix(s, "[ERROR] at ") || strings.HasPrefix(s, "Caused by:")
		}
		if !ok {
			return false
		}
	}
	if c.failed && t.passedTest(i) {
		return false
	}
	if c.under == "" {
		return true
	}
	// Python: `  File` above, nothing but indented lines between. The bars of an
	// exception group are indentation.
	own := barred(t.lines[i].text)
	for j := i - 1; j >= 0 && j >= i-maxLook; j-- {
		s := t.lines[j].text
		in := barred(s)
		switch {
		case in == len(s): // blank
		case in <= own:
			return false
		case strings.HasPrefix(s[in:], c.under):
			return true
		}
	}
	return false
}

func barred(s string) int { return len(s) - len(strings.TrimLeft(s, " \t|+")) }

// passing reports whether the line stands in the passing run too.
func (t *text) passing(i int) bool {
	return t.green != nil && t.green[Normalise(t.lines[i].text)]
}

// hit is one line that a rule matched.
type hit struct {
	at  int
	key string
}

// found is what one rule set says of a log.
type found struct {
	c    *compiled
	at   int
	hits []hit
}

// run tries rules in order within [from, to).
func (t *text) run(rs []*compiled, from, to int, lastOne bool) (found, bool) {
	for _, c := range rs {
		p := c.rule.pick
		if lastOne && (p == first || p == least || p == chain) {
			p = last
		}
		hs := t.hits(c, from, to, p == last)
		if len(hs) == 0 {
			continue
		}
		at := t.choose(p, hs)
		if p == last && c.rule.pick == least || at > t.repeat && hs[0].at < t.repeat {
			at = t.earliest(at, hs) // what the end of a log repeats
		}
		if c.then {
			at = t.then(at)
		}
		if c.said {
			at = t.said(at)
		}
		return found{c, at, hs}, true
	}
	return found{}, false
}

// earliest is the first of the hits that say the same as the line at.
func (t *text) earliest(at int, hs []hit) int {
	for _, h := range hs {
		if s, end := strings.TrimPrefix(t.lines[h.at].text, "ERROR: "), t.lines[at].text; strings.Contains(end, s) {
			return h.at
		}
	}
	return at
}

// best tries every tool's rules and takes the surest, and of equals the one
// whose tool left more marks, then the earlier line (the later for CI).
func (t *text) best(tb *table, except *tool, from, to int, lastOne bool) (found, bool) {
	var out found
	ok := false
	score := t.scores(tb)
	bestScore := 0
	for k, tl := range tb.tools {
		if tl == except || tl.ci || tl.own {
			continue
		}
		f, hit := t.run(tb.sets[tl.name], from, to, lastOne)
		if !hit {
			continue
		}
		better := !ok
		if ok {
			switch {
			case f.c.conf != out.c.conf:
				better = f.c.conf > out.c.conf
			case score[k] != bestScore:
				better = score[k] > bestScore
			case lastOne:
				better = f.at > out.at
			default:
				better = f.at < out.at
			}
		}
		if better {
			out, ok, bestScore = f, true, score[k]
		}
	}
	return out, ok
}

// scores counts how many different marks of each tool the log holds.
func (t *text) scores(tb *table) []int {
	out := make([]int, len(tb.tools))
	for k := range tb.tools {
		for _, m := range tb.marks[k] {
			if len(t.by[m]) > 0 {
				out[k]++
			}
		}
	}
	return out
}

// group1 is a match's group 1, or all of it.
func group1(re *regexp.Regexp, s string) (string, bool) {
	m := re.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	for _, g := range m[1:] {
		if g != "" {
			return g, true
		}
	}
	return m[0], true
}
