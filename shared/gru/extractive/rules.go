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

	x1              bool
	agree           *regexp.Regexp
	absOnly, expect matcher
	polite, fork    matcher
	filler          *regexp.Regexp
	ask, rule       matcher
	report          matcher
	ifWe, behaves   matcher
	letsAny, every  matcher
	would           letsRule
	want, habit     letsRule
	user, assistant weights

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
		user: userWeights, assistant: assistantWeights,
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

func improvedRules() *rules {
	f := func(ps ...string) matcher { return fold(loose(or(ps...))) }
	r := writtenRules()
	r.x1 = true
	r.user, r.assistant = x1Weights()
	pref := strings.ReplaceAll(wPref, `prefer|want|insist|require|like (?:it|that|option|the|how|having)`, `prefer|insist|require|like (?:it (?:when|if|better|more)|that (?:we|the|it|you|this)|option|the|how|having|to have)|want (?:it|the|them|this|that|these|a|an|no|all|every|only|max|dark)\b`)
	recap := strings.ReplaceAll(wRecap, `decision|agreed|resolved`, `decision|resolved`)
	hedge := strings.ReplaceAll(wHedge, `could|would|`, `could|`)
	hedge = strings.ReplaceAll(hedge, `|can be|`, `|`)
	should := strings.Replace(wShould, `|\bfor now\b`, ``, 1)
	deferred := strings.ReplaceAll(wDefer, `no idea|`, `i have no idea|`) + `|^no idea\b`
	corr := strings.Replace(wCorr, `|not\b|`, `|`, 1)
	abs := f(wAbs, xAbs)
	r.plain = []plainCue{
		{cAbs, false, abs}, {cAbs, true, f(xScope)}, {cDecide, false, f(wDecide, xDecide)}, {cContrast, false, f(wContrast)},
		{cReason, false, f(wReason, xReason)}, {cRoot, false, f(wRoot)}, {cRoot, true, f(xRoot)}, {cPref, false, f(pref, xPref)},
		{cWho, false, f(wWho, xWho)}, {cCorr, false, f(corr, xCorr, xNot)}, {cImp, true, f(wImp)},
		{cRecap, false, f(recap, `^agreed\b[^.?!:—–,]{0,70}:`)}, {cShould, false, f(should, xShould)}, {cFact, false, f(wFact)},
		{cDefer, false, f(deferred, xDefer)}, {cTask, true, f(wTask)}, {cAskc, true, f(wAskc)},
		{cHedge, false, f(hedge, xHedge)}, {cStep, true, f(xStep)}, {cPast, false, f(wPast)}, {cMeta, false, f(wMeta, xLaugh, xLabel)},
		{cPlan, false, f(wPlan)}, {cOnce, true, f(xOnce)},
	}
	r.absOnly = abs
	r.agree = regexp.MustCompile("(?i)" + loose(xAgree))
	r.expect, r.polite, r.fork = f(xExpect), f(xPolite), f(xFork)
	r.filler = regexp.MustCompile("(?i)" + xFiller)
	r.ask, r.rule, r.report = f(xAsk), f(xRule), f(xReport)
	r.ifWe, r.behaves, r.letsAny = f(xIf), f(xBehaves), matcher{regexp.MustCompile("(?i)" + xLets)}
	r.every = f(xEvery)
	r.would = letsRule{regexp.MustCompile("(?i)" + xWould), set("like need prefer rather want")}
	steps := wLetsSteps + " " + xSteps
	r.lets = letsRule{regexp.MustCompile("(?i)" + xLets), set(steps)}
	r.want = letsRule{regexp.MustCompile("(?i)" + xWant), set(steps + " to you")}
	r.habit = letsRule{regexp.MustCompile("(?i)" + loose(xHabit)), set(xStates)}
	r.offer = f(wOffer, xOffer)
	return r
}
