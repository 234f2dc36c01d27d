package extractive

import (
	"regexp"
	"strings"
)

// rules is one compiled variant of the method.
type rules struct {
	plain []plainCue // cues that are one pattern on the head of the sentence
	lets  letsRule
	numu  matcher
	spec  matcher

	accept, offer, goAhead, ack matcher

	abbr, logl, code1, code2 matcher
	bul, enum                *regexp.Regexp
}

type plainCue struct {
	c        cue
	userOnly bool
	m        matcher
}

// letsRule is "let's VERB" with a verb that is not about the work at hand.
type letsRule struct {
	re   *regexp.Regexp
	step map[string]bool // verbs of a step, a look or talk: no decision
}

func (l letsRule) match(h string) bool {
	for _, m := range l.re.FindAllStringSubmatch(h, -1) {
		if !l.step[strings.ToLower(m[1])] {
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

func writtenRules() *rules {
	r := &rules{
		plain: []plainCue{
			{cAbs, false, fold(wAbs)}, {cDecide, false, fold(wDecide)}, {cContrast, false, fold(wContrast)},
			{cReason, false, fold(wReason)}, {cRoot, false, fold(wRoot)}, {cPref, false, fold(wPref)},
			{cWho, false, fold(wWho)}, {cCorr, false, fold(wCorr)}, {cImp, true, fold(wImp)},
			{cRecap, false, fold(wRecap)}, {cShould, false, fold(wShould)}, {cFact, false, fold(wFact)},
			{cDefer, false, fold(wDefer)}, {cTask, true, fold(wTask)}, {cAskc, true, fold(wAskc)},
			{cHedge, false, fold(wHedge)}, {cPast, false, fold(wPast)}, {cMeta, false, fold(wMeta)},
			{cPlan, false, fold(wPlan)},
		},
		lets: letsRule{regexp.MustCompile("(?i)" + wLets), set(wLetsSteps)},
		numu: fold(wNumu), spec: exact(wSpec),
		accept: fold(wAccept), offer: fold(wOffer), goAhead: fold(wGo), ack: fold(wAck),
		abbr: fold(wAbbr), logl: exact(wLogl), code1: exact(wCode1), code2: exact(wCode2),
		bul: regexp.MustCompile(wBul), enum: regexp.MustCompile(wEnum),
	}
	return r
}
