package extractive

import (
	"fmt"
	"math"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// turn is a message as the score sees it.
type turn struct {
	at       int // index of the message
	user     bool
	person   bool // user, not note
	context  bool
	first    bool
	sents    []sent
	text     string
	question bool // any sentence is a question
	masks    []mask
}

func (r *rules) turns(msgs []Message) []turn {
	var out []turn
	var all []sent
	for i := range msgs {
		m := &msgs[i]
		t := turn{at: i, context: m.Context, first: m.First, text: m.Text}
		switch m.Role {
		case memory.RoleUser:
			t.user, t.person = true, true
		case memory.RoleNote:
			t.user = true
		case memory.RoleAssistant:
		default:
			continue // never evidence
		}
		n := len(all)
		all = r.sentences(all, m.Text)
		t.sents = all[n:len(all):len(all)]
		for _, s := range t.sents {
			t.question = t.question || s.question
		}
		out = append(out, t)
	}
	return out
}

// asked is asks, and whether the question settles something.
func (r *rules) asked(t *turn) (asks, fork bool) {
	for _, s := range t.sents[max(0, len(t.sents)-2):] {
		if q := t.text[s.start:s.end]; s.question && !r.offer.match(q) {
			asks = true
			fork = fork || r.x1 && r.extra.fork.match(q)
		}
	}
	return asks, fork
}

func (t *turn) sentence(i int) string { return t.text[t.sents[i].start:t.sents[i].end] }

// Limits of the cues that spread from one sentence to its message: how many
// sentences an answer, a correction and an echo cover.
const (
	ansSentences  = 3
	oppSentences  = 4
	echoSentences = 3
)

// relational sets the cues that depend on the messages around turn i.
func (r *rules) relational(ts []turn, i int) {
	t := &ts[i]
	m := t.masks
	if len(t.sents) == 0 {
		return
	}
	mark := func(c cue, n int) {
		for k := range min(n, len(m)) {
			m[k].set(c, true)
		}
	}
	if t.person {
		if i == 0 || ts[i-1].user {
			return
		}
		asks, fork := r.asked(&ts[i-1])
		if !t.question && asks {
			mark(cAns, ansSentences)
			for k := range len(m) {
				if k > 0 && (k > 1 || !m[0].has(cShort)) {
					break
				}
				if fork && !m[k].has(cTask) && !m[k].has(cStep) && !m[k].has(cAskc) && !m[k].has(cDefer) && !m[k].has(cMeta) && !m[k].has(cPlan) {
					m[k].set(cChoice, true)
				}
			}
		}
		if m[0].has(cCorr) && !t.sents[0].question && !(r.x1 && m[0].has(cPlan)) {
			mark(cOpp, oppSentences)
		}
		return
	}
	if t.user {
		return
	}
	if i+1 < len(ts) {
		n := &ts[i+1]
		if n.person && !n.question && len(n.sents) > 0 && r.accept.match(r.head(n.sentence(0))) {
			mark(cAcc, len(m))
		}
	}
	if i > 0 && ts[i-1].person && !ts[i-1].question && r.ack.match(r.head(t.sentence(0))) {
		mark(cEcho, echoSentences)
		if r.x1 && !r.terseAnswer(ts, i-1) { // both say that the two agree: one point is enough
			for k := range m {
				if m[k].has(cAcc) {
					m[k].set(cEcho, false)
				}
			}
		}
	}
}

// terseWords is the longest answer, in words, that the sentence repeating it
// must stand for.
const terseWords = 5

// terseAnswer reports whether turn i answers a question in a few words.
func (r *rules) terseAnswer(ts []turn, i int) bool {
	if i == 0 || ts[i-1].user || ts[i].question {
		return false
	}
	asks, _ := r.asked(&ts[i-1])
	return asks && fewerWords(ts[i].text, terseWords+1)
}

// Weights of the chunk score (extractive.md section 4).
const (
	askWeight   = 1.5 // for the share of user messages that ask
	askMessages = 4   // at least, in that share
	aheadBonus  = 0.5 // a person tells the assistant to go ahead
	sizeFree    = 8   // sentences before size counts: more have more chances
	sizeWeight  = 1.5 // a doubling
	sizeMost    = 1.5
	sizeOfOther = 0.1 // of an assistant's sentence, in sentences
)

// bestWeights are the weights of the three best sentences.
var bestWeights = [3]float64{1, 0.5, 0.25}

// Score decides on one chunk. It does not change msgs.
func (p *Policy) Score(msgs []Message) Result {
	r := p.rules()
	ts := r.turns(msgs)
	n := 0
	for i := range ts {
		if !ts[i].context {
			n += len(ts[i].sents)
		}
	}
	masks := make([]mask, 0, n)
	ahead := false
	for i := range ts {
		t := &ts[i]
		if t.context {
			continue
		}
		at := len(masks)
		// A go-ahead needs somebody to tell: x0 looks at any sentence of a person.
		heard := t.person && (!r.x1 || i > 0 && !ts[i-1].user)
		for k := range t.sents {
			m, goes := r.own(t.sentence(k), t.user, t.person)
			if r.x1 && t.user && m.has(cQ) && !t.sents[k].question {
				t.sents[k].question, t.question = true, true // asked without the mark
			}
			ahead = ahead || heard && goes && !t.sents[k].question
			if t.first && t.person && (m.has(cImp) || m.has(cTask)) && !m.has(cAbs) {
				m.set(cOpenreq, true)
			}
			masks = append(masks, m)
		}
		t.masks = masks[at:]
	}
	res := Result{Sentences: make([]Sentence, 0, n)}
	names := make([]string, 0, 4*n)
	size := 0.0
	users, asking := 0, 0
	for i := range ts {
		t := &ts[i]
		if t.context {
			continue
		}
		r.relational(ts, i)
		w, each := &r.assistant, sizeOfOther
		if t.user {
			w, each = &r.user, 1
		}
		size += each * float64(len(t.sents))
		for k, s := range t.sents {
			at := len(names)
			names = t.masks[k].appendNames(names)
			res.Sentences = append(res.Sentences, Sentence{
				Message: t.at, Start: s.start, End: s.end,
				Score: w.score(t.masks[k]), Cues: names[at:len(names):len(names)],
			})
		}
		if t.person {
			users++
			if t.question {
				asking++
			}
		}
	}
	best := top3(res.Sentences)
	for k, i := range best {
		res.Score += bestWeights[k] * max(0, res.Sentences[i].Score)
	}
	// A single question weighs nothing in a small chunk of x1: a wish and its
	// question often come together.
	if !r.x1 || size >= sizeFree {
		res.Score -= askWeight * float64(asking) / float64(max(askMessages, users))
	}
	if ahead {
		res.Score += aheadBonus
	}
	res.Score -= min(sizeMost, sizeWeight*math.Log2(max(1, size/sizeFree)))
	res.Open = res.Score >= p.threshold
	res.Reason = reason(res, p.threshold, best)
	if res.Open {
		res.Picks = pick(msgs, res.Sentences, masks, lastTwo(ts))
	}
	return res
}

// lastTwo is the index of the second-last message that is scored.
func lastTwo(ts []turn) int {
	n := 0
	for i := len(ts) - 1; i >= 0; i-- {
		if ts[i].context {
			continue
		}
		if n++; n == 2 {
			return ts[i].at
		}
	}
	return 0
}

// top3 are the indices of the three best sentences, the earlier first on a
// tie.
func top3(ss []Sentence) []int {
	var best []int
	for i := range ss {
		at := len(best)
		for at > 0 && ss[i].Score > ss[best[at-1]].Score {
			at--
		}
		if at < 3 {
			best = append(best[:at], append([]int{i}, best[at:]...)...)
			best = best[:min(3, len(best))]
		}
	}
	return best
}

func reason(res Result, threshold float64, best []int) string {
	var b strings.Builder
	op := "<"
	if res.Open {
		op = ">="
	}
	fmt.Fprintf(&b, "score %.2f %s %g", res.Score, op, threshold)
	for k, i := range best {
		sep := "; "
		if k == 0 {
			sep = ": "
		}
		b.WriteString(sep)
		cues := res.Sentences[i].Cues
		if len(cues) == 0 {
			b.WriteString("no cue")
			continue
		}
		b.WriteString(strings.Join(cues, ", "))
	}
	return b.String()
}
