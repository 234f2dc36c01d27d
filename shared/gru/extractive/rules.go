package extractive

import (
	"regexp"
	"strings"
	"sync"
)

// rules is one compiled variant of the method.
type rules struct {
	x1              bool
	user, assistant weights

	front bank // patterns at the front of a head; most die within a few bytes
	body  bank // patterns anywhere in a head
	value bank // patterns of values, on the whole sentence
	plain []plainCue

	lets     verbRule
	numu     mask // value
	goAhead  mask // value
	spec     mask
	specGaps []gap

	accept, offer, ack matcher

	abbr, logl, code1, code2 matcher
	bul, enum                *regexp.Regexp
	bulAt, enumAt            *dfa

	extra extraRules
}

// extraRules are those of x1 alone.
type extraRules struct {
	filler, agree      *regexp.Regexp
	fillerAt           *dfa
	absRest            matcher // abs behind an agreement
	agreed, ask        mask    // front
	polite, ifWe       mask    // front
	expect, behaves    mask    // body
	rule, every        mask    // body
	report             mask    // body
	want, habit, would verbRule
	fork               matcher
}

// plainCue is a cue that is one pattern on the head of the sentence.
type plainCue struct {
	c           cue
	userOnly    bool
	src         string // with all its alternatives
	front, body mask
	gaps        []gap
}

// cueSource is a pattern of a cue; those that stand at the front in all their
// alternatives go to the front bank.
type cueSource struct {
	c        cue
	userOnly bool
	src      string
}

func (r *rules) compile(sources []cueSource) {
	for _, s := range sources {
		x := plainCue{c: s.c, userOnly: s.userOnly, src: "(?i)" + s.src}
		if atFront(s.src) {
			x.front = r.front.add("(?i)" + s.src)
		} else {
			x.body, x.gaps = r.body.addWithGaps(s.src, "(?i)")
		}
		r.plain = append(r.plain, x)
	}
}

func atFront(src string) bool {
	for _, alt := range alternatives(src) {
		if !strings.HasPrefix(alt, "^") {
			return false
		}
	}
	return true
}

func (r *rules) seal() {
	r.front.seal()
	r.body.seal()
	r.value.seal()
}

// newRules sets what both variants share.
func newRules() *rules {
	r := &rules{
		user: userWeights, assistant: assistantWeights,
		accept: fold(wAccept), offer: fold(wOffer), ack: fold(wAck),
		abbr: fold(wAbbr), logl: exact(wLogl), code1: exact(wCode1), code2: exact(wCode2),
		bul: regexp.MustCompile(wBul), enum: regexp.MustCompile(wEnum),
		bulAt: newDFA([]string{wBul}, true), enumAt: newDFA([]string{wEnum}, true),
	}
	r.numu = r.value.add("(?i)" + wNumu)
	r.goAhead = r.value.add("(?i)" + wGo)
	r.spec, r.specGaps = r.value.addWithGaps(wSpec, "")
	return r
}

// writtenRules are the patterns and weights of x0.
var writtenRules = sync.OnceValue(func() *rules {
	r := newRules()
	r.compile([]cueSource{
		{cAbs, false, wAbs}, {cDecide, false, wDecide}, {cContrast, false, wContrast},
		{cReason, false, wReason}, {cRoot, false, wRoot}, {cPref, false, wPref}, {cWho, false, wWho},
		{cCorr, false, wCorr}, {cImp, true, wImp}, {cRecap, false, wRecap}, {cShould, false, wShould},
		{cFact, false, wFact}, {cDefer, false, wDefer}, {cTask, true, wTask}, {cAskc, true, wAskc},
		{cHedge, false, wHedge}, {cPast, false, wPast}, {cMeta, false, wMeta}, {cPlan, false, wPlan},
	})
	r.lets = r.body.addVerb(wLets, wLetsSteps)
	r.seal()
	return r
})

// improvedRules are those of x1: the patterns of x0 widened, with a few taken
// out, and cues of its own.
var improvedRules = sync.OnceValue(buildImproved)

func buildImproved() *rules {
	r := newRules()
	r.x1 = true
	r.user, r.assistant = x1Weights()
	abs := or(wAbs, xAbs)
	r.compile(loosened([]cueSource{
		{cAbs, false, abs}, {cAbs, true, xScope},
		{cDecide, false, or(wDecide, xDecide)},
		{cContrast, false, wContrast},
		{cReason, false, or(wReason, xReason)},
		{cRoot, false, wRoot}, {cRoot, true, xRoot},
		{cPref, false, or(replaced(wPref, prefVerbs, xPrefVerbs), xPref)},
		{cWho, false, or(wWho, xWho)},
		{cCorr, false, or(replaced(wCorr, `|not\b|`, `|`), xCorr, xNot)},
		{cImp, true, wImp},
		{cRecap, false, or(replaced(wRecap, `decision|agreed|resolved`, `decision|resolved`), xRecap)},
		{cShould, false, or(replaced(wShould, `|\bfor now\b`, ``), xShould)},
		{cFact, false, wFact},
		{cDefer, false, or(replaced(wDefer, `no idea|`, ``), xDefer)},
		{cTask, true, wTask}, {cAskc, true, wAskc}, {cStep, true, xStep},
		{cHedge, false, or(replaced(replaced(wHedge, `could|would|`, `could|`), `|can be|`, `|`), xHedge)},
		{cPast, false, wPast},
		{cMeta, false, or(wMeta, xLaugh, xLabel)},
		{cPlan, false, wPlan},
		{cOnce, true, xOnce},
	}))
	steps := wLetsSteps + " " + xSteps
	r.lets = r.body.addVerb(xLets, steps)
	front := func(p string) mask { return r.front.add("(?i)" + loose(p)) }
	body := func(p string) mask { return r.body.add("(?i)" + loose(p)) }
	r.extra = extraRules{
		filler: regexp.MustCompile("(?i)" + xFiller), fillerAt: newDFA([]string{"(?i)" + xFiller}, true),
		agree: regexp.MustCompile("(?i)" + loose(xAgree)), absRest: fold(loose(abs)),
		agreed: front(xAgree), ask: front(xAsk), polite: front(xPolite), ifWe: front(xIf),
		expect: body(xExpect), behaves: body(xBehaves), rule: body(xRule), every: body(xEvery), report: body(xReport),
		want: r.body.addVerb(xWant, steps+" to you"), habit: r.body.addVerb(loose(xHabit), xStates),
		would: r.body.addVerb(xWould, xWishes),
		fork:  fold(loose(xFork)),
	}
	r.offer = fold(loose(or(wOffer, xOffer)))
	r.seal()
	return r
}

func loosened(ss []cueSource) []cueSource {
	for i := range ss {
		ss[i].src = loose(ss[i].src)
	}
	return ss
}

// replaced is strings.Replace that insists on its part being there: the
// patterns of x1 are built from those of x0.
func replaced(p, old, with string) string {
	if !strings.Contains(p, old) {
		panic("extractive: a pattern lacks " + old)
	}
	return strings.Replace(p, old, with, 1)
}
