package extractive

import (
	"fmt"
	"regexp"
	"sync"
)

// oracles are the patterns as package regexp runs them.
var oracles sync.Map

func oracle(src string) *regexp.Regexp {
	if re, ok := oracles.Load(src); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(src)
	oracles.Store(src, re)
	return re
}

// Disagreements names every pattern of both variants for which the automaton
// and package regexp differ on s.
func Disagreements(s string) []string {
	var out []string
	check := func(src string, got bool) {
		if want := oracle(src).MatchString(s); got != want {
			out = append(out, fmt.Sprintf("%.60s: automaton %v, regexp %v", src, got, want))
		}
	}
	for _, r := range []*rules{writtenRules(), improvedRules()} {
		for _, b := range []*bank{&r.front, &r.body, &r.value} {
			found := b.d.scan(s)
			for i, src := range b.srcs {
				check(src, found>>i&1 == 1)
			}
		}
		front, body, value := r.front.d.scan(s), r.body.d.scan(s), r.value.d.scan(s)
		for i := range r.plain {
			check(r.plain[i].src, r.plain[i].match(s, front, body))
		}
		check(wSpec, r.specific(s, value))
		for _, m := range []matcher{r.accept, r.offer, r.ack, r.abbr, r.logl, r.code1, r.code2, supersedePattern} {
			check(m.src, m.match(s))
		}
		verbs := []*verbRule{&r.lets}
		if r.x1 {
			verbs = append(verbs, &r.extra.want, &r.extra.habit, &r.extra.would)
		}
		for _, v := range verbs {
			if got, _ := v.match(s, body); got != v.unlisted(s) {
				out = append(out, fmt.Sprintf("verbs of %.60s: %v", v.re, got))
			}
		}
		check(wBul, r.bulAt.scan(s) != 0)
		check(wEnum, r.enumAt.scan(s) != 0)
		if r.x1 {
			check("(?i)"+xFiller, r.extra.fillerAt.scan(s) != 0)
			check(r.extra.absRest.src, r.extra.absRest.match(s))
			check(r.extra.fork.src, r.extra.fork.match(s))
		}
	}
	return out
}

// Reweighed is the default policy with other weights of a person's cues, for
// cross-validation.
func Reweighed(threshold float64, user map[string]float64) *Policy {
	r := *improvedRules()
	for c := range cues {
		if w, ok := user[cueNames[c]]; ok {
			r.user[c] = w
		}
	}
	return &Policy{threshold: threshold, rules: func() *rules { return &r }}
}

// NewCold is the default policy with no state built yet.
func NewCold() *Policy {
	return &Policy{threshold: DefaultThreshold, rules: sync.OnceValue(buildImproved)}
}

// SentencesOf cuts text as the score does.
func SentencesOf(text string) []string {
	var out []string
	for _, s := range improvedRules().sentences(nil, text) {
		out = append(out, text[s.start:s.end])
	}
	return out
}
