package gru

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// RunID is sha256 over canonical JSON of {stream, cause, policy, model,
// prompt_version}, cause being "<kind>:<ref>": the same part decided by the
// same policy is the same run, whenever and wherever it happens.
func RunID(stream string, cause memory.Cause, policy, model, promptVersion string) memory.SHA {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]string{
		"stream": stream, "cause": cause.Kind + ":" + cause.Ref, "policy": policy,
		"model": model, "prompt_version": promptVersion,
	}); err != nil {
		panic("gru: run id: " + err.Error()) // a map of strings always encodes
	}
	return memory.Sum(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// Begin opens the run of a part: it freezes policy and budgets in a run record.
// A state whose run of this part is open already is returned as it is, so that
// a slice that continues writes no second run record. Where others decide now than
// those that the open run froze, it is closed and the next one goes on with the part.
func Begin(s State, cfg *Config, p *Part, started time.Time) (State, []Record) {
	cause := memory.Cause{Kind: memory.CausePart, Ref: string(p.Admit.Source)}
	if o := s.Open; o != nil && o.Source == p.Admit.Source {
		frozen := cause
		if frozen.Ref = o.Ref; o.Ref == "" {
			frozen.Ref = cause.Ref // of a fold that was cached by an older program
		}
		policy, model, _, _, prompt, _ := cfg.names()
		if o.Exited || RunID(cfg.Stream, frozen, policy, model, prompt) == o.Run {
			return s, nil
		}
		cause.Ref += "#" + strconv.Itoa(s.T)
		next, recs := End(s, cfg, p, started)
		recs[0].(*memory.RunEnd).Continued = true
		next.Admit = s.Admit
		run := newRun(next, cfg, cause, started)
		run.Admit, run.Source, run.Chunks = p.Admit.Seq, p.Admit.Source, p.Chunks
		run.From, run.Offset, run.Used = o.Next, o.From, o.Used
		return next.Apply(run), append(recs, run)
	}
	run := newRun(s, cfg, cause, started)
	run.Admit, run.Source, run.Chunks = p.Admit.Seq, p.Admit.Source, p.Chunks
	return s.Apply(run), []Record{run}
}

// newRun is the record that freezes what decides, without a part.
func newRun(s State, cfg *Config, cause memory.Cause, started time.Time) *memory.Run {
	policy, model, rewrite, adapter, prompt, sampling := cfg.names()
	return &memory.Run{
		V: memory.Version, Type: memory.TypeRun, Level: cfg.Level,
		Run:    RunID(cfg.Stream, cause, policy, model, prompt),
		Stream: cfg.Stream, Question: cfg.Question, Cause: cause, T: s.T,
		Policy: policy, Model: model, RewriteModel: rewrite, Adapter: adapter, PromptVersion: prompt, Sampling: sampling,
		MemoryBudget: cfg.BudgetTokens, ExitGate: cfg.ExitGate,
		MemoryBefore: s.MemorySHA, Started: started.UTC(),
	}
}

// StepChunk looks at one chunk with a policy that needs no model: one gate
// record, and where the update gate opens the evidence and memory records.
// Calling it for a chunk that the open run has passed is a bug and panics.
func StepChunk(s State, cfg *Config, p *Part, in ChunkInput) (State, []Record) {
	c := &in.Chunk
	mustBeNext(s, c)
	eff := newEffective(s.Newest, p.Admit.StoredAt, c.Turns)
	place := placer(&eff, p, c)
	d, ok := settled(c)
	if !ok {
		d = cfg.Policy.Decide(PolicyInput{Config: cfg, State: &s, Part: p, Chunk: c, Context: in.Context, Place: place})
	}
	g := newGate(s, cfg, p, c, &eff)
	g.Policy, g.PromptVersion = cfg.Policy.Name(), cfg.Policy.PromptVersion()
	g.PromptTokensOwn, g.End = c.Tokens, len(c.Text)
	return record(s, cfg, p, c, g, d, place)
}

func mustBeNext(s State, c *memory.Chunk) {
	if s.Open == nil || c.I != s.Open.Next {
		panic(fmt.Sprintf("gru: chunk %d out of order", c.I))
	}
}

func placer(eff *effective, p *Part, c *memory.Chunk) func(ti, start int) memory.Place {
	return func(ti, start int) memory.Place {
		return memory.Place{Time: eff.at[ti], Admit: p.Admit.Seq, I: c.I, Start: start}
	}
}

// newGate is the record of the next step, without a decision.
func newGate(s State, cfg *Config, p *Part, c *memory.Chunk, eff *effective) *memory.Gate {
	return &memory.Gate{
		V: memory.Version, Type: memory.TypeGate, Level: cfg.Level,
		T: s.T + 1, TotalT: p.Chunks, Run: s.Open.Run, QueryID: cfg.QueryID,
		Admit: p.Admit.Seq, I: c.I, Chunk: c.SHA256, Attempt: 1,
		MemoryBeforeSHA: s.MemorySHA, Newest: eff.newest,
	}
}

// settled decides where there is nothing to ask about.
func settled(c *memory.Chunk) (Decision, bool) {
	switch {
	case strings.TrimSpace(c.Text) == "":
		return Decision{FormatOK: true, Reason: "empty chunk", ReasonCode: "empty"}, true
	case c.Derived:
		return derived, true
	}
	return Decision{}, false
}

// derived is the decision about text that is no evidence, whatever it says.
var derived = Decision{FormatOK: true, Reason: "text that Mneme itself emitted is never evidence", ReasonCode: "derived"}

// record turns a decision into the step's records: g completed, then the
// evidence, then the memory, and the state after them.
func record(s State, cfg *Config, p *Part, c *memory.Chunk, g *memory.Gate, d Decision, place func(int, int) memory.Place) (State, []Record) {
	g.Exit, g.FormatOK, g.Pending = d.Exit, d.FormatOK, d.Pending
	g.Reason, g.ReasonCode, g.Think, g.Score = d.Reason, d.ReasonCode, d.Think, d.Score
	g.EvidenceDropped, g.Shingles, g.Ungrounded = d.Dropped, d.Shingles, d.Ungrounded
	g.ExitActed = cfg.ExitGate && d.Exit
	recs := []Record{g}
	newest := memory.Place{}
	if d.Update {
		for _, pick := range d.Picks {
			e, err := evidence(s, cfg, p, c, pick, place(pick.Turn, pick.Start))
			if err != nil {
				g.EvidenceDropped++
				continue
			}
			recs = append(recs, e)
			if e.Place.Compare(newest) > 0 {
				newest = e.Place
			}
		}
	}
	switch n := 0; {
	case !d.Update:
	case len(recs) == 1 && len(d.Picks) > 0:
		g.ReasonCode, g.Reason = "no_citation", "no pick could be cited; memory unchanged"
	default:
		if n = cfg.Count(d.Candidate); n > cfg.BudgetTokens {
			// Never a blind cut: the memory stays, the refusal is on record.
			g.CandidateSHA = memory.SumString(d.Candidate)
			g.ReasonCode = ReasonBudget
			g.Reason = fmt.Sprintf("candidate of %d tokens is over the budget of %d; memory unchanged", n, cfg.BudgetTokens)
			recs = recs[:1]
			break
		}
		g.Update = true
		g.CandidateSHA = memory.SumString(d.Candidate)
		if m := newMemory(s, cfg, g, d, recs, n, newest); m != nil {
			recs = append(recs, m)
		}
	}
	next := s.applyAll(recs)
	g.MemorySHA, g.MemoryTokens = next.MemorySHA, next.Tokens
	return next, recs
}

// newMemory is the memory record of an open gate; nil where the text is the
// one that stands.
func newMemory(s State, cfg *Config, g *memory.Gate, d Decision, recs []Record, tokens int, newest memory.Place) *memory.Memory {
	if d.Candidate == s.MemoryText {
		return nil
	}
	parents := d.Parents
	if cfg.Level == memory.L2 && len(cfg.Lower) > 0 {
		parents, newest = cfg.restsOnLower(d.Candidate, g.I)
	} else if parents == nil {
		parents = keptIn(s, recs, d.Candidate)
		if cfg.Model != nil {
			parents = restsOn(s, recs, d.Candidate)
		}
	}
	m := &memory.Memory{
		V: memory.Version, Type: memory.TypeMemory, Level: cfg.Level,
		T: g.T, Run: g.Run, QueryID: cfg.QueryID,
		Node:    memory.NodeID(cfg.Tenant, cfg.Project, cfg.Level, cfg.Stream, g.CandidateSHA),
		TextSHA: g.CandidateSHA, Text: d.Candidate, Tokens: tokens,
		Parents: parents, Place: newest,
	}
	if s.MemoryNode != "" && s.MemoryNode != m.Node {
		m.Supersedes = []memory.SHA{s.MemoryNode}
	}
	return m
}

func evidence(s State, cfg *Config, p *Part, c *memory.Chunk, pick Pick, place memory.Place) (*memory.Evidence, error) {
	t := &c.Turns[pick.Turn]
	span, err := cfg.Citable(c, p.Source.Object, p.Source.ETag, pick.Start, pick.End)
	if err != nil {
		return nil, err
	}
	text := c.Text[span.ChunkStart:span.ChunkEnd]
	sha := memory.SumString(text)
	return &memory.Evidence{
		V: memory.Version, Type: memory.TypeEvidence, Level: memory.L0,
		T: s.T + 1, Run: s.Open.Run,
		Node:    memory.NodeID(cfg.Tenant, cfg.Project, memory.L0, cfg.Stream, sha),
		TextSHA: sha, Text: text, Span: span, Trust: t.Trust, Role: t.Role,
		Rules: pick.Cues, Score: pick.Score, TurnID: t.ID, Place: place,
		SourceTime: t.Time, TimeRaw: t.TimeRaw, TimeQuality: t.TimeQuality,
		Supersedes: pick.Supersedes,
	}, nil
}

// maxParents bounds the parents of a memory that a model wrote without source
// ids, which rests on all that it ever kept: the newest of them.
const maxParents = 512

// restsOn lists the nodes that a memory in a model's words rests on: the step's own
// evidence, what the source ids in it name, and what stands in it word for word.
// Where a sentence of the old memory lives on without an id, nobody knows which of
// the old parents it came from: they all stay.
func restsOn(s State, recs []Record, text string) []memory.SHA {
	ids := map[string]bool{}
	for _, id := range memory.SourceIDs(text) {
		ids[id] = true
	}
	old := s.MemoryText != "" && keepsUnnamed(text, s.MemoryText)
	var out []memory.SHA
	for _, k := range s.Kept {
		if k.Text != "" && (ids[SourceID(k.Chunk)] || ids[k.Node.Short()] || old && k.In || strings.Contains(text, k.Text)) {
			out = append(out, k.Node)
		}
	}
	out = out[max(0, len(out)-maxParents):]
	seen := make(map[memory.SHA]bool, len(out))
	for _, n := range out {
		seen[n] = true
	}
	for _, r := range recs {
		if e, ok := r.(*memory.Evidence); ok && !seen[e.Node] {
			seen[e.Node] = true
			out = append(out, e.Node)
		}
	}
	return out
}

// keepsUnnamed reports whether a sentence of the old memory that lives on in text
// has no source id there.
func keepsUnnamed(text, old string) bool {
	before := lexiconOf(memory.WithoutSourceIDs(old))
	for _, f := range factsOf(text) {
		if len(memory.SourceIDs(f.text)) == 0 && mostly(f, &before) {
			return true
		}
	}
	return false
}

// keptIn lists the nodes of kept statements, old and new, whose text stands in
// the memory: its parents, in order of first statement. A model's memory is in
// its own words, so that the step's own evidence is always among them.
func keptIn(s State, recs []Record, text string) []memory.SHA {
	var out []memory.SHA
	seen := map[memory.SHA]bool{}
	add := func(node memory.SHA) {
		if !seen[node] {
			seen[node] = true
			out = append(out, node)
		}
	}
	for i := range s.Kept {
		if strings.Contains(text, s.Kept[i].Text) {
			add(s.Kept[i].Node)
		}
	}
	for _, r := range recs {
		if e, ok := r.(*memory.Evidence); ok {
			add(e.Node)
		}
	}
	return out
}

// End closes the run of a part, or, where p is nil, of re-gated steps.
func End(s State, cfg *Config, p *Part, ended time.Time) (State, []Record) {
	r := &memory.RunEnd{
		V: memory.Version, Type: memory.TypeRunEnd, Level: cfg.Level,
		Run: s.Open.Run, Admit: s.Open.Admit, T: s.T,
		ChunksSeen: s.Open.Next + b2i(s.Open.From > 0), ChunksUsed: s.Open.Used, Pending: s.Open.Pending,
		MemorySHA: s.MemorySHA, MemoryTokens: s.Tokens,
		Exited: s.Open.Exited, Ended: ended.UTC(),
	}
	if s.Open.Regate {
		r.ChunksSeen = s.T - s.Open.T0
	}
	return s.Apply(r), []Record{r}
}

// Done reports whether the open run has looked at every chunk, or left by an
// exit gate that is acted on.
func (s *State) Done(p *Part) bool {
	if s.Open != nil && s.Open.Regate {
		return s.regating() == nil
	}
	return s.Open != nil && (s.Open.Exited || s.Open.Next >= p.Chunks)
}

// effective holds the effective times of a chunk's turns (DESIGN section 3):
// the source time, unless it is absent or later than the store's time, then
// the greatest effective time admitted before it.
type effective struct {
	at     []time.Time
	newest time.Time
}

func newEffective(newest, stored time.Time, turns []memory.ChunkTurn) effective {
	e := effective{at: make([]time.Time, len(turns)), newest: newest}
	for i := range turns {
		t := turns[i].Time
		if t == nil || t.IsZero() || (!stored.IsZero() && t.After(stored)) {
			e.at[i] = e.newest
			continue
		}
		e.at[i] = t.UTC()
		if t.After(e.newest) {
			e.newest = t.UTC()
		}
	}
	return e
}
