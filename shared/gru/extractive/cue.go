package extractive

import (
	"math/bits"
	"strings"
)

// cue names one observable trait of a sentence.
type cue uint8

const (
	cAbs cue = iota
	cDecide
	cContrast
	cReason
	cRoot
	cPref
	cWho
	cCorr
	cImp
	cRecap
	cNormspec
	cNumu
	cAns
	cOpp
	cAcc
	cEcho
	cShould
	cLets
	cFact
	cDefer
	cTask
	cAskc
	cLead
	cOpenreq
	cHedge
	cPast
	cQ
	cMeta
	cPlan
	cShort
	cChoice
	cOnce
	cRule
	cStep
	cues // their number
)

var cueNames = [cues]string{
	"abs", "decide", "contrast", "reason", "root", "pref", "who", "corr", "imp", "recap",
	"normspec", "numu", "ans", "opp", "acc", "echo", "should", "lets", "fact", "defer",
	"task", "askc", "lead", "openreq", "hedge", "past", "q", "meta", "plan", "short", "choice", "once", "rule", "step",
}

// mask is a set of cues.
type mask uint64

func (m mask) has(c cue) bool { return m>>c&1 == 1 }
func (m *mask) set(c cue, on bool) {
	if on {
		*m |= 1 << c
	} else {
		*m &^= 1 << c
	}
}

// appendNames appends the names of the cues of m in the order of the table.
func (m mask) appendNames(dst []string) []string {
	for ; m != 0; m &= m - 1 {
		dst = append(dst, cueNames[bits.TrailingZeros64(uint64(m))])
	}
	return dst
}

// weights of a cue, in points; hand-set on a 0.25 grid (extractive.md section
// 4), where one weight changed by 0.25 moves no set's AUC by more than 0.03.
type weights [cues]float64

var userWeights = weights{
	cAbs: 0.75, cDecide: 1.5, cContrast: 0.5, cReason: 0.5, cRoot: 1.25, cPref: 1.25, cWho: 0.75,
	cCorr: 0.75, cImp: 0.75, cRecap: 1.25, cNormspec: 0.5, cNumu: 0.5, cAns: 0.75, cOpp: 0.75,
	cShould: 1, cLets: 1, cFact: 1, cDefer: -2, cTask: 0.25, cAskc: -1, cLead: -0.75,
	cOpenreq: -0.5, cHedge: -1, cPast: -0.5, cQ: -2, cMeta: -1, cPlan: -0.5, cShort: -0.5,
}

var assistantWeights = weights{
	cAbs: 0.25, cDecide: 0.5, cRoot: 1.25, cRecap: 1.5, cNormspec: 0.25, cEcho: 0.75, cAcc: 0.75,
	cHedge: -1, cPast: -0.5, cQ: -2, cMeta: -1, cPlan: -1, cShort: -0.5, cDefer: -1, cLead: -0.75,
}

// x1Weights are the weights of x1, where they differ. What an assistant says in
// absolutes tells how something behaves; it decides nothing until a person
// takes it up, so abs and normspec weigh nothing there.
func x1Weights() (user, assistant weights) {
	user, assistant = userWeights, assistantWeights
	user[cTask] = 0
	user[cShould] = 1.25
	user[cShort] = -0.25
	user[cChoice] = 0.5
	user[cRule] = 0.5
	user[cOnce] = -0.5
	user[cStep] = -0.75
	assistant[cAbs] = 0
	assistant[cNormspec] = 0
	return user, assistant
}

// pastBack is given back when the past tense tells of a decision or a cause.
const pastBack = 0.5

func (w *weights) score(m mask) float64 {
	var s float64
	for rest := m; rest != 0; rest &= rest - 1 {
		s += w[bits.TrailingZeros64(uint64(rest))]
	}
	if m.has(cPast) && (m.has(cDecide) || m.has(cRoot)) {
		s += pastBack
	}
	return s
}

// head is the sentence as most patterns read it: without an enumerator and
// opening marks at its front.
func (r *rules) head(s string) string {
	if r.enumAt.scan(s) != 0 {
		s = s[r.enum.FindStringIndex(s)[1]:]
	}
	return strings.TrimLeft(s, "*_~\"'(.")
}

// own finds the cues that a sentence has by itself. user is true for people
// and notes, person for people. ahead tells that it says to go ahead.
func (r *rules) own(s string, user, person bool) (m mask, ahead bool) {
	if r.x1 {
		s = plainApostrophes(s)
	}
	h := r.head(s)
	if r.x1 && user && r.extra.fillerAt.scan(h) != 0 {
		h = h[r.extra.filler.FindStringIndex(h)[1]:]
	}
	front, body := r.front.d.scan(h), r.body.d.scan(h)
	for i := range r.plain {
		if x := &r.plain[i]; user || !x.userOnly {
			m.set(x.c, m.has(x.c) || x.match(h, front, body))
		}
	}
	letsGo, letsAny := false, false
	if user {
		letsGo, letsAny = r.lets.match(h, body)
		m.set(cLets, letsGo)
	}
	if r.x1 {
		r.improve(&m, h, front, body, user, person, letsAny && !letsGo)
	}
	var value mask
	if user || m.has(cAbs) || m.has(cContrast) || m.has(cRecap) { // else nothing of the assistant's rests on it
		value = r.value.d.scan(s)
	}
	ahead = value&r.goAhead != 0
	m.set(cNumu, value&r.numu != 0)
	if m.has(cAbs) || m.has(cContrast) || m.has(cImp) {
		m.set(cNormspec, m.has(cNumu) || r.specific(s, value))
	}
	if m.has(cPref) || m.has(cShould) {
		m.set(cPlan, false)
	}
	m.set(cQ, question(s) || r.x1 && user && front&r.extra.ask != 0)
	m.set(cShort, fewerWords(s, 4))
	m.set(cLead, !user && strings.HasSuffix(strings.TrimRight(s, "*_ "), ":"))
	if !r.x1 {
		return m, ahead
	}
	if !user && m.has(cRecap) && (body&r.extra.report != 0 || !(m.has(cAbs) || m.has(cContrast) || m.has(cDecide) || m.has(cNumu))) {
		m.set(cRecap, false) // a report of work done
	}
	if user && m.has(cQ) && front&r.extra.polite != 0 && (m.has(cAbs) || m.has(cContrast) || m.has(cPref)) {
		m.set(cQ, false) // an order in the form of a question
		m.set(cHedge, false)
		m.set(cImp, true)
	}
	return m, ahead
}

func (x *plainCue) match(h string, front, body mask) bool {
	if front&x.front != 0 || body&x.body != 0 {
		return true
	}
	for i := range x.gaps {
		if x.gaps[i].match(h, body) {
			return true
		}
	}
	return false
}

// specific reports whether the sentence names something: code, a number, a
// literal, a path.
func (r *rules) specific(s string, value mask) bool {
	if value&r.spec != 0 {
		return true
	}
	for i := range r.specGaps {
		if r.specGaps[i].match(s, value) {
			return true
		}
	}
	return false
}

// fewerWords reports whether s has fewer than n words.
func fewerWords(s string, n int) bool {
	for range strings.FieldsSeq(s) {
		if n--; n == 0 {
			return false
		}
	}
	return true
}

// improve applies the rules of x1 to the cues of a head.
func (r *rules) improve(m *mask, h string, front, body mask, user, person, letsStep bool) {
	x := &r.extra
	if m.has(cAbs) && front&x.agreed != 0 && !x.absRest.match(h[x.agree.FindStringIndex(h)[1]:]) {
		m.set(cAbs, false)
	}
	if body&x.expect != 0 {
		m.set(cShould, false)
	}
	if !user {
		return
	}
	if hedges, _ := x.would.match(h, body); hedges {
		m.set(cHedge, true)
	}
	if m.has(cImp) && body&x.every != 0 {
		m.set(cAbs, true)
	}
	if m.has(cShould) || m.has(cPref) {
		m.set(cPast, false)
	}
	if front&x.ifWe != 0 {
		m.set(cDecide, false)
	}
	if letsStep {
		m.set(cStep, true)
	}
	m.set(cRule, body&x.rule != 0 && body&x.behaves == 0 && m.has(cAbs) &&
		!m.has(cHedge) && !m.has(cPast) && !m.has(cTask) && !m.has(cAskc) && !m.has(cMeta))
	if m.has(cRule) {
		m.set(cPlan, false)
	}
	if !person || m.has(cShould) || m.has(cRule) {
		m.set(cStep, false)
	}
	if wants, _ := x.want.match(h, body); wants {
		m.set(cPref, true)
	}
	if does, _ := x.habit.match(h, body); does {
		m.set(cAbs, true)
	}
}
