package gru

import "github.com/mneme-ai/mneme/shared/memory"

// This file asks another model about a step that was decided: the same piece of the
// same chunk, the memory as it was before it, and the gate's question alone. Nothing
// is folded; the answer is a label.

// Judging is the gate's question about chunk text [from,to), with a memory, on its
// way: Next is the call to make, nil once there is an answer.
type Judging struct {
	cfg  *Config
	part *Part
	s    State
	Next *Call
	done *Judgement
}

// Judgement is the answer.
type Judgement struct {
	Evidence bool // the gate would open
	Exit     bool
	FormatOK bool // a reply could be read, and its prompt was not cut
	Cut      bool // the server cut the prompt
	Code     string
	Attempt  int
	Sampling memory.Sampling
	Score    *float64
	// What it took, all attempts together.
	PromptTokens, PromptTokensOwn, CompletionTokens int
	LatencyMS, CostUSD                              float64
}

// Judge begins. cfg must have a Model; where that has no rewrite model, the gate's
// question is asked alone all the same. A chunk that there is nothing to ask about
// is answered at once, as is a piece that does not fit into the model's window.
func Judge(cfg *Config, p *Part, before State, in ChunkInput, from, to int) *Judging {
	c := *cfg
	m := *cfg.Model
	m.Parallel = 0
	if m.Rewrite == "" {
		m.Rewrite = m.Name // only so that the gate is asked alone: it is never called
	}
	c.Model = &m
	in.Chunk.Text = in.Chunk.Text[:to]
	before.Open = &OpenRun{Run: "judged", Next: in.Chunk.I, From: from}
	before.Pending = nil
	j := &Judging{cfg: &c, part: p}
	var effects []Effect
	j.s, effects = Step(before, Input{Config: &c, Part: p, Event: ReadChunk{ChunkInput: in}})
	j.take(effects)
	if j.Next != nil && j.Next.to < to {
		j.Next, j.done = nil, &Judgement{Code: ReasonWindow}
	}
	return j
}

// ReasonWindow is the code of a judgement about a piece that is larger than the
// judging model's window.
const ReasonWindow = "window"

// Reply answers Next.
func (j *Judging) Reply(r Reply) {
	var effects []Effect
	j.s, effects = Step(j.s, Input{Config: j.cfg, Part: j.part, Event: ModelReply{r}})
	j.take(effects)
}

// TooLong ends it where the server refused Next as longer than the model's window.
func (j *Judging) TooLong() { j.Next, j.done = nil, &Judgement{Code: ReasonWindow} }

// Judgement is the answer once Next is nil.
func (j *Judging) Judgement() Judgement { return *j.done }

func (j *Judging) take(effects []Effect) {
	j.Next = nil
	for _, e := range effects {
		switch e := e.(type) {
		case *Call:
			if e.Kind != CallRewrite {
				j.Next = e
				return
			}
			// The gate is open: what would be written is not asked.
			j.done = &Judgement{
				Evidence: true, Exit: e.gate.Exit, FormatOK: true, Code: ReasonKept, Attempt: e.asked.Attempt, Score: e.score, Sampling: e.asked.Sampling,
				PromptTokens: e.sofar.prompt, PromptTokensOwn: e.sofar.own, CompletionTokens: e.sofar.completion, LatencyMS: e.sofar.latency, CostUSD: e.sofar.cost,
			}
		case *Append:
			for _, r := range e.Records {
				g, ok := r.(*memory.Gate)
				if !ok {
					continue
				}
				j.done = &Judgement{
					Exit: g.Exit, FormatOK: g.FormatOK, Cut: g.TruncatedByServer, Code: g.ReasonCode, Attempt: g.Attempt, Score: g.Score,
					PromptTokens: g.PromptTokens, PromptTokensOwn: g.PromptTokensOwn, CompletionTokens: g.CompletionTokens, LatencyMS: g.LatencyMS, CostUSD: g.CostUSD,
				}
				if g.More && g.ReasonCode == derived.ReasonCode {
					j.done = &Judgement{Code: ReasonWindow} // settled about a part of what was asked
				}
				if g.Sampling != nil {
					j.done.Sampling = *g.Sampling
				}
			}
		}
	}
}
