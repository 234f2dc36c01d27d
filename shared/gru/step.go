package gru

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Reason codes of gate records that the loop itself gives; a policy has its
// own beside them.
const (
	ReasonKept      = "kept"
	ReasonClosed    = "closed"
	ReasonFormat    = "format"          // the reply could not be read, twice; pending
	ReasonBudget    = "budget_exceeded" // the candidate was over the memory budget
	ReasonTruncated = "truncated"       // the server cut the prompt; pending
	ReasonForgotten = "forgotten"       // the memory without what a tombstone took out of the log
	// Of Model.Checks; the first two after a retry, pending.
	ReasonForgets    = "forgets"     // the candidate lost a fact of the memory
	ReasonLeak       = "prompt_leak" // the candidate repeats the instructions
	ReasonUngrounded = "ungrounded"  // nothing new in the candidate stands in what was read
)

// Input is one thing that happens to a stream, in the part that is being
// folded. Event is Begin's, a chunk, a reply or the end.
type Input struct {
	Config *Config
	Part   *Part
	Event  Event
}

// Event is BeginPart, ReadChunk, ModelReply or EndPart.
type Event interface{ event() }

// BeginPart opens the run of the part.
type BeginPart struct{ At time.Time }

// ReadChunk shows the chunk State.Open.Next; it is shown again, as a later
// step, while State.Open.From says that pieces of it are left.
type ReadChunk struct {
	ChunkInput
	// Ahead is the gate's call that was made before the chunk's turn, and Reply what
	// it was answered; nil: the call is made now. See Ahead.
	Ahead *Call
	Reply Reply
}

// ModelReply answers the Call that the last step gave.
type ModelReply struct{ Reply }

// EndPart closes the run.
type EndPart struct{ At time.Time }

func (BeginPart) event()  {}
func (ReadChunk) event()  {}
func (ModelReply) event() {}
func (EndPart) event()    {}

// Effect is *Append or *Call, to be performed in the order given.
type Effect interface{ effect() }

// Append is records to append to the stream's log before anything else.
type Append struct{ Records []Record }

func (*Append) effect() {}
func (*Call) effect()   {}

// Step is the loop. It does not change the state it is given; the state it
// gives counts once its records are appended. With a Policy every chunk gives
// its records at once; with a Model it gives a Call, and the reply to that
// gives the records, or one more call: a second attempt, a rewrite, or a
// shorter memory. A reply that no call waits for is passed over.
func Step(s State, in Input) (State, []Effect) {
	var recs []Record
	switch e := in.Event.(type) {
	case BeginPart:
		s, recs = Begin(s, in.Config, in.Part, e.At)
	case EndPart:
		s, recs = End(s, in.Config, in.Part, e.At)
	case ReadChunk:
		if in.Config.Model != nil {
			return ask(s, in.Config, in.Part, e)
		}
		s, recs = StepChunk(s, in.Config, in.Part, e.ChunkInput)
	case ModelReply:
		if s.Call == nil {
			return s, nil
		}
		return answer(s, in.Config, in.Part, e.Reply)
	}
	if len(recs) == 0 {
		return s, nil
	}
	return s, []Effect{&Append{recs}}
}

// ask begins a step that a model decides.
func ask(s State, cfg *Config, part *Part, e ReadChunk) (State, []Effect) {
	in := e.ChunkInput
	c := &in.Chunk
	if p := s.regating(); p != nil {
		return askAgain(s, cfg, part, *p, in)
	}
	mustBeNext(s, c)
	if d, ok := settled(c); ok {
		return settle(s, cfg, part, c, d, 0, len(c.Text))
	}
	if a := e.Ahead; a != nil && a.in.Chunk.I == c.I && a.in.Chunk.SHA256 == c.SHA256 && s.Open.From == 0 {
		s.Call = a
		return answer(s, cfg, part, e.Reply)
	}
	call := &Call{Kind: CallDecide, Model: cfg.Model.Name, Attempt: 1, in: in, from: s.Open.From}
	if cfg.Model.Rewrite != "" {
		call.Kind = CallGate
	}
	call.to = pieceEnd(c, lead(c, call.from), cfg.sectionRoom(s.Tokens), cfg.Count)
	return askOf(s, cfg, part, call)
}

// askOf makes the first call about a piece, or settles the step where nothing of the
// piece can be evidence.
func askOf(s State, cfg *Config, p *Part, call *Call) (State, []Effect) {
	if strings.TrimSpace(call.section()) == "" {
		return settle(s, cfg, p, &call.in.Chunk, derived, call.from, call.to)
	}
	return issue(s, cfg, call, s.MemoryText, "")
}

// settle writes the records of a step about chunk text [from,to) that needs no call.
func settle(s State, cfg *Config, p *Part, c *memory.Chunk, d Decision, from, to int) (State, []Effect) {
	eff := newEffective(s.Newest, p.Admit.StoredAt, c.Turns)
	g := newModelGate(s, cfg, p, c, &eff, from, to)
	return emit(record(s, cfg, p, c, g, d, placer(&eff, p, c)))
}

// issue renders a call and hands it out.
func issue(s State, cfg *Config, c *Call, mem, complaint string) (State, []Effect) {
	c.Adapter, c.Sampling = cfg.Model.Adapter, cfg.Model.Sampling
	if c.Kind == CallRewrite || c.Kind == CallCompress && cfg.Model.Rewrite != "" {
		c.Adapter = cfg.Model.RewriteAdapter
	}
	c.Sampling.MaxTokens = cfg.Model.ReplyTokens
	c.Sampling.Seed += int64(c.Attempt - 1)
	c.Prompt = cfg.render(c.Kind, mem, c.section(), c.id(), complaint)
	c.PromptTokens = c.Prompt.tokens(cfg.Count)
	if cfg.Model.JSON {
		c.Schema = Schema(cfg.Model.shape(c.Kind))
	}
	s.Call = c
	return s, []Effect{c}
}

// Shrink makes the call that a step waits for anew over half of its section, where a
// server refused the whole as longer than its model's window: of what the own count
// says of a text the server's may be more. false where the section is too small
// to be halved, or the call shows none.
func Shrink(s State, cfg *Config) (State, []Effect, bool) {
	c := s.Call
	if c == nil || c.Kind == CallCompress {
		return s, nil, false
	}
	room := cfg.Count(Neutralise(c.section())) / 2
	if room < minSectionTokens/2 {
		return s, nil, false
	}
	kind := CallDecide
	if cfg.Model.Rewrite != "" {
		kind = CallGate // of a rewrite too: the gate was open to words that are not shown any more
	}
	again := &Call{Kind: kind, Model: cfg.Model.Name, Attempt: 1, in: c.in, from: c.from, sofar: c.sofar}
	again.to = pieceEnd(&c.in.Chunk, lead(&c.in.Chunk, c.from), room, cfg.Count)
	next, effects := issue(s, cfg, again, s.MemoryText, "")
	return next, effects, true
}

func emit(s State, recs []Record) (State, []Effect) {
	s.Call = nil
	return s, []Effect{&Append{recs}}
}

// answer goes on with the step that waits for r.
func answer(s State, cfg *Config, p *Part, r Reply) (State, []Effect) {
	call := s.Call
	sofar := call.sofar.add(call, r)
	score := call.score
	if call.Kind == CallDecide || call.Kind == CallGate {
		score = r.Score
	}
	done := func(d Decision, candidate string) (State, []Effect) {
		if d.FormatOK {
			d.Score = score
		}
		return conclude(s, cfg, p, call, r, sofar, d, candidate)
	}
	follow := func(c Call, mem, complaint string) (State, []Effect) {
		c.in, c.from, c.to, c.sofar, c.score = call.in, call.from, call.to, sofar, score
		if c.Kind != CallGate { // a second question is asked with the present memory
			c.ahead, c.frozen = call.ahead, call.frozen
		}
		return issue(s, cfg, &c, mem, complaint)
	}
	m := cfg.Model
	if want := cfg.expected(call); float64(r.PromptTokens) < want*(1-truncationSlack) { // none at all says nothing of what was read
		reason := fmt.Sprintf("the server read %d tokens of a prompt of about %.0f; memory unchanged", r.PromptTokens, want)
		if r.PromptTokens <= 0 {
			reason = fmt.Sprintf("the server does not say how much it read of a prompt of about %.0f tokens; memory unchanged", want)
		}
		return done(Decision{ReasonCode: ReasonTruncated, Pending: true, Reason: reason}, "")
	}
	v, err := m.parse(m.shape(call.Kind), r)
	mem := s.MemoryText
	if err == nil && v.Edits != nil {
		if v.Memory, err = ApplyEdits(mem, v.Edits, call.id()); err == nil && strings.TrimSpace(v.Memory) == "" {
			err = fault.New(fault.Malformed, "nothing is left of the memory, and nothing is added")
		}
	}
	code, whole, dropped := ReasonFormat, v.Memory, 0
	if err == nil && v.Update && v.Memory != "" && m.Checks {
		// What would be stored is what is held against the old memory: grounded first.
		v.Memory, dropped = Ground(whole, call.section()+"\n"+call.id(), mem)
		edits := v.Edits
		if call.Kind == CallCompress {
			edits = call.gate.Edits // that made what is shortened
		}
		code, err = checked(call, whole, v.Memory, mem, edits)
	}
	if err != nil {
		if call.Kind == CallCompress { // its one attempt
			return done(overBudget(cfg, call.gate, call.tooLong), call.tooLong)
		}
		if call.Attempt == 1 {
			return follow(Call{Kind: call.Kind, Model: call.Model, Attempt: 2, gate: call.gate}, mem, err.Error())
		}
		reason := fmt.Sprintf("%s reply unreadable twice: %v; memory unchanged", call.Kind, err)
		if code != ReasonFormat {
			reason = fmt.Sprintf("%s reply refused twice: %s; memory unchanged", call.Kind, refusals[code])
		}
		return done(Decision{ReasonCode: code, Pending: true, Reason: reason}, whole)
	}
	if call.Kind == CallRewrite || call.Kind == CallCompress {
		v.Think, v.Exit = call.gate.Think, call.gate.Exit
	}
	if i := call.in.Chunk.I; v.Memory != "" && cfg.Level == memory.L2 && i < len(cfg.Lower) {
		v.Memory = cfg.Lower[i].sourced(v.Memory)
	}
	if !v.Update {
		return done(Decision{FormatOK: true, Exit: v.Exit, Think: v.Think, ReasonCode: ReasonClosed, Reason: "the model found nothing about the question"}, "")
	}
	if call.Kind == CallGate {
		return follow(Call{Kind: CallRewrite, Model: m.Rewrite, Attempt: 1, gate: v, asked: call}, mem, "")
	}
	if dropped > 0 && (v.Memory == "" || v.Memory == strings.TrimSpace(mem)) {
		return done(Decision{
			FormatOK: true, Exit: v.Exit, Think: v.Think, ReasonCode: ReasonUngrounded, Ungrounded: dropped,
			Reason: fmt.Sprintf("%d new sentences name what the section does not say, and nothing else is new; memory unchanged", dropped),
		}, whole)
	}
	if cfg.Count(v.Memory) > cfg.BudgetTokens {
		if call.Kind == CallCompress {
			return done(overBudget(cfg, v, v.Memory), v.Memory)
		}
		return follow(Call{Kind: CallCompress, Model: call.Model, Attempt: 1, gate: v, tooLong: v.Memory}, v.Memory, "")
	}
	reason := "the model found facts about the question"
	if dropped > 0 {
		reason += fmt.Sprintf("; %d sentences dropped that name what the section does not say", dropped)
	}
	return done(Decision{
		FormatOK: true, Update: true, Exit: v.Exit, Think: v.Think, ReasonCode: ReasonKept, Reason: reason, Ungrounded: dropped,
		Picks: passages(&call.in.Chunk, call.from, call.to), Candidate: v.Memory,
	}, v.Memory)
}

// id is the source id of the section that the call shows.
func (c *Call) id() string { return SourceID(c.in.Chunk.SHA256) }

// section is what the call shows of the piece that it is about.
func (c *Call) section() string { return shown(&c.in.Chunk, c.from, c.to) }

// clip keeps what a model is told within the room that frameTokens leaves.
func clip(s string) string {
	const most = 160
	if len(s) <= most {
		return s
	}
	for k := most; ; k-- {
		if utf8.RuneStart(s[k]) {
			return s[:k] + "…"
		}
	}
}

// refusals say in a reason, which holds no transcript text, why a candidate was
// refused.
var refusals = map[string]string{
	ReasonForgets: "it loses a fact that the section neither changes nor takes back",
	ReasonLeak:    "it repeats the instructions",
}

// checked refuses a candidate that repeats the instructions, or whose grounded
// text loses a fact. The error is what the model is told.
func checked(call *Call, candidate, grounded, mem string, edits []Edit) (code string, err error) {
	if Leaked(candidate, call.Prompt.System) {
		return ReasonLeak, fault.New(fault.Malformed, "the memory must hold facts, and nothing of these instructions")
	}
	if lost := Forgotten(grounded, call.section(), mem, edits...); lost != "" {
		return ReasonForgets, fault.New(fault.Malformed, "the memory lost this fact, which still holds: %s", Neutralise(clip(lost)))
	}
	return ReasonFormat, nil
}

func overBudget(cfg *Config, v Verdict, candidate string) Decision {
	return Decision{
		FormatOK: true, Exit: v.Exit, Think: v.Think, ReasonCode: ReasonBudget,
		Reason: fmt.Sprintf("candidate of %d tokens is over the budget of %d, and one request to shorten it did not help; memory unchanged", cfg.Count(candidate), cfg.BudgetTokens),
	}
}

// conclude writes the records of a step that a model decided.
func conclude(s State, cfg *Config, p *Part, call *Call, r Reply, sofar tally, d Decision, candidate string) (State, []Effect) {
	c := &call.in.Chunk
	eff := newEffective(s.Newest, p.Admit.StoredAt, c.Turns)
	g := newModelGate(s, cfg, p, c, &eff, call.from, call.to)
	g.Attempt = call.Attempt
	sampling := call.Sampling // a retry has another seed
	g.Sampling = &sampling
	g.FinishReason, g.Reply = r.FinishReason, r.Blob
	g.PromptTokens, g.PromptTokensOwn, g.CompletionTokens = sofar.prompt, sofar.own, sofar.completion
	g.LatencyMS, g.CostUSD = sofar.latency, sofar.cost
	g.Neutralised = neutralised(call.section(), s.MemoryText)
	if call.ahead && call.frozen != s.MemorySHA {
		g.FrozenSHA = call.frozen
		if call.frozen == "" {
			g.FrozenSHA = memory.SumString("") // the memory was empty
		}
	}
	g.TruncatedByServer = d.ReasonCode == ReasonTruncated
	if candidate != "" && !d.Update {
		g.CandidateSHA = memory.SumString(candidate)
	}
	return emit(record(s, cfg, p, c, g, d, placer(&eff, p, c)))
}

func newModelGate(s State, cfg *Config, p *Part, c *memory.Chunk, eff *effective, from, to int) *memory.Gate {
	g := newGate(s, cfg, p, c, eff)
	m := cfg.Model
	sampling := m.Sampling
	g.Policy, g.Model, g.Adapter, g.PromptVersion, g.Sampling = m.Policy, m.Name, m.Adapter, m.Version(), &sampling
	g.Start, g.End, g.More = from, to, to < len(c.Text)
	if cfg.parallel() {
		g.Parallel = m.Parallel
	}
	if p := s.regating(); p != nil {
		g.RegateOf, g.TotalT, g.More = p.T, s.toRegate(), to < p.End
	}
	return g
}

// passages are the citable passages of chunk text [from,to): a model keeps a
// section in its own words and does not say which sentence it came from, so
// that everything it may have come from is its evidence.
func passages(c *memory.Chunk, from, to int) (picks []Pick) {
	for ti := range c.Turns {
		t := &c.Turns[ti]
		if !eligible(t) {
			continue
		}
		for _, pc := range t.Pieces {
			if a, b := max(pc.C0, from), min(pc.C1, to); a < b {
				picks = append(picks, Pick{Turn: ti, Start: a, End: b, Cues: []string{"model"}})
			}
		}
	}
	return picks
}

// names are what the run record freezes.
func (cfg *Config) names() (policy, model, rewrite, adapter, prompt string, sampling *memory.Sampling) {
	if m := cfg.Model; m != nil {
		sm := m.Sampling
		return m.Policy, m.Name, m.Rewrite, m.Adapter, m.Version(), &sm
	}
	return cfg.Policy.Name(), "", "", "", cfg.Policy.PromptVersion(), nil
}
