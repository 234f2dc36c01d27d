package extractive

import "strings"

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

// names lists the cues of m in the order of the table.
func (m mask) names() []string {
	var out []string
	for c := range cues {
		if m.has(c) {
			out = append(out, cueNames[c])
		}
	}
	return out
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

// x1Weights are the weights of x1, where they differ.
func x1Weights() (user, assistant weights) {
	user, assistant = userWeights, assistantWeights
	user[cChoice] = 0.5
	user[cOnce] = -0.5
	user[cTask] = 0
	user[cShould] = 1.25
	user[cShort] = -0.25
	user[cRule] = 0.5
	user[cStep] = -0.75
	return user, assistant
}

// pastBack is given back when the past tense tells of a decision or a cause.
const pastBack = 0.5

func (w *weights) score(m mask) float64 {
	var s float64
	for c := range cues {
		if m.has(c) {
			s += w[c]
		}
	}
	if m.has(cPast) && (m.has(cDecide) || m.has(cRoot)) {
		s += pastBack
	}
	return s
}

// head is the sentence as most patterns read it: without an enumerator and
// opening marks at its front.
func (r *rules) head(s string) string {
	if loc := r.enum.FindStringIndex(s); loc != nil {
		s = s[loc[1]:]
	}
	return strings.TrimLeft(s, "*_~\"'(.")
}

// own finds the cues that a sentence has by itself. user is true for people
// and notes, person for people.
func (r *rules) own(s string, user, person bool) mask {
	if r.x1 {
		s = plainApostrophes(s)
	}
	var m mask
	h := r.head(s)
	if r.x1 && user {
		if loc := r.filler.FindStringIndex(h); loc != nil {
			h = h[loc[1]:]
		}
	}
	for _, x := range r.plain {
		if (user || !x.userOnly) && x.m.match(h) {
			m.set(x.c, true)
		}
	}
	if user && r.lets.match(h) {
		m.set(cLets, true)
	}
	if r.x1 {
		r.improve(&m, h, user, person)
	}
	m.set(cNumu, r.numu.match(s))
	if m.has(cAbs) || m.has(cContrast) || m.has(cImp) {
		m.set(cNormspec, m.has(cNumu) || r.spec.match(s))
	}
	if m.has(cPref) || m.has(cShould) {
		m.set(cPlan, false)
	}
	m.set(cQ, question(s) || r.x1 && user && r.ask.match(h))
	m.set(cShort, len(strings.Fields(s)) < 4)
	m.set(cLead, !user && strings.HasSuffix(strings.TrimRight(s, "*_ "), ":"))
	if r.x1 && m.has(cRecap) && !user && (r.report.match(h) || !(m.has(cAbs) || m.has(cContrast) || m.has(cDecide) || m.has(cNumu))) {
		m.set(cRecap, false) // a report of work done
	}
	if r.x1 && user && m.has(cQ) && r.polite.match(h) && (m.has(cAbs) || m.has(cContrast) || m.has(cPref)) {
		m.set(cQ, false)
		m.set(cHedge, false)
		m.set(cImp, true)
	}
	return m
}

// improve applies the rules of x1 to the cues of a head.
func (r *rules) improve(m *mask, h string, user, person bool) {
	if m.has(cAbs) {
		if loc := r.agree.FindStringIndex(h); loc != nil && !r.absOnly.match(h[loc[1]:]) {
			m.set(cAbs, false)
		}
	}
	if m.has(cShould) && r.expect.match(h) {
		m.set(cShould, false)
	}
	if !user {
		return
	}
	if r.would.match(h) {
		m.set(cHedge, true)
	}
	if m.has(cImp) && r.every.match(h) {
		m.set(cAbs, true)
	}
	if m.has(cShould) || m.has(cPref) {
		m.set(cPast, false)
	}
	if m.has(cDecide) && r.ifWe.match(h) {
		m.set(cDecide, false)
	}
	if !m.has(cLets) && r.letsAny.match(h) {
		m.set(cStep, true)
	}
	m.set(cRule, m.has(cAbs) && !m.has(cHedge) && !m.has(cPast) && !m.has(cTask) && !m.has(cAskc) && !m.has(cMeta) && r.rule.match(h) && !r.behaves.match(h))
	if m.has(cRule) {
		m.set(cPlan, false)
	}
	if !person || m.has(cShould) || m.has(cRule) {
		m.set(cStep, false)
	}
	if r.want.match(h) {
		m.set(cPref, true)
	}
	if r.habit.match(h) {
		m.set(cAbs, true)
	}
}
