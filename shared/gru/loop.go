package gru

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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
// a slice that continues writes no second run record.
func Begin(s State, cfg *Config, p *Part, started time.Time) (State, []Record) {
	if s.Open != nil && s.Open.Source == p.Admit.Source {
		return s, nil
	}
	cause := memory.Cause{Kind: "part", Ref: string(p.Admit.Source)}
	run := &memory.Run{
		V: memory.Version, Type: memory.TypeRun, Level: cfg.Level,
		Run:    RunID(cfg.Stream, cause, cfg.Policy.Name(), "", cfg.Policy.PromptVersion()),
		Stream: cfg.Stream, Question: cfg.Question, Cause: cause,
		Admit: p.Admit.Seq, Source: p.Admit.Source, T: s.T, Chunks: p.Chunks,
		Policy: cfg.Policy.Name(), PromptVersion: cfg.Policy.PromptVersion(),
		MemoryBudget: cfg.BudgetTokens, ExitGate: cfg.ExitGate,
		MemoryBefore: s.MemorySHA, Started: started.UTC(),
	}
	return s.Apply(run), []Record{run}
}

// StepChunk looks at one chunk with a policy that needs no model: one gate
// record, and where the update gate opens the evidence and memory records.
// Calling it for a chunk that the open run has passed is a bug and panics.
func StepChunk(s State, cfg *Config, p *Part, in ChunkInput) (State, []Record) {
	if s.Open == nil || in.Chunk.I != s.Open.Next {
		panic(fmt.Sprintf("gru: chunk %d out of order", in.Chunk.I))
	}
	c := &in.Chunk
	eff := newEffective(s.Newest, p.Admit.StoredAt, c.Turns)
	place := func(ti, start int) memory.Place {
		return memory.Place{Time: eff.at[ti], Admit: p.Admit.Seq, I: c.I, Start: start}
	}
	d := decide(s, cfg, p, in, place)

	g := &memory.Gate{
		V: memory.Version, Type: memory.TypeGate, Level: cfg.Level,
		T: s.T + 1, TotalT: p.Chunks, Run: s.Open.Run, QueryID: cfg.QueryID,
		Admit: p.Admit.Seq, I: c.I, Chunk: c.SHA256, Start: 0, End: len(c.Text),
		Exit: d.Exit, FormatOK: d.FormatOK, Pending: d.Pending, Attempt: 1,
		Reason: d.Reason, ReasonCode: d.ReasonCode, Think: d.Think, Score: d.Score,
		Policy: cfg.Policy.Name(), PromptVersion: cfg.Policy.PromptVersion(),
		MemoryBeforeSHA: s.MemorySHA, PromptTokensOwn: c.Tokens, Newest: eff.newest,
	}
	recs := []Record{g}
	var parents []memory.SHA
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
	if d.Update && (len(recs) > 1 || len(d.Picks) == 0) {
		if n := cfg.Count(d.Candidate); n > cfg.BudgetTokens {
			// Never a blind cut: the memory stays, the refusal is on record.
			g.CandidateSHA = memory.SumString(d.Candidate)
			g.ReasonCode = "budget_exceeded"
			g.Reason = fmt.Sprintf("candidate of %d tokens is over the budget of %d; memory unchanged", n, cfg.BudgetTokens)
			recs = recs[:1]
		} else {
			g.Update = true
		}
	} else if d.Update {
		g.ReasonCode, g.Reason = "no_citation", "no pick could be cited; memory unchanged"
	}
	if g.Update {
		sha := memory.SumString(d.Candidate)
		g.CandidateSHA = sha
		if sha != s.MemorySHA {
			for _, k := range keptIn(s, recs, d.Candidate) {
				parents = append(parents, k)
			}
			m := &memory.Memory{
				V: memory.Version, Type: memory.TypeMemory, Level: cfg.Level,
				T: g.T, Run: g.Run, QueryID: cfg.QueryID,
				Node:    memory.NodeID(cfg.Tenant, cfg.Project, cfg.Level, cfg.Stream, sha),
				TextSHA: sha, Text: d.Candidate, Tokens: cfg.Count(d.Candidate),
				Parents: parents, Place: newest,
			}
			if s.MemoryNode != "" && s.MemoryNode != m.Node {
				m.Supersedes = []memory.SHA{s.MemoryNode}
			}
			recs = append(recs, m)
		}
	}
	if cfg.ExitGate && d.Exit {
		g.ExitActed = true
	}
	next := s
	for _, r := range recs {
		next = next.Apply(r)
	}
	g.MemorySHA, g.MemoryTokens = next.MemorySHA, next.Tokens
	return next, recs
}

// decide asks the policy, except where there is nothing to ask about.
func decide(s State, cfg *Config, p *Part, in ChunkInput, place func(int, int) memory.Place) Decision {
	switch c := &in.Chunk; {
	case strings.TrimSpace(c.Text) == "":
		return Decision{FormatOK: true, Reason: "empty chunk", ReasonCode: "empty"}
	case c.Derived:
		return Decision{FormatOK: true, Reason: "text that Mneme itself emitted is never evidence", ReasonCode: "derived"}
	default:
		return cfg.Policy.Decide(PolicyInput{Config: cfg, State: &s, Part: p, Chunk: c, Context: in.Context, Place: place})
	}
}

func evidence(s State, cfg *Config, p *Part, c *memory.Chunk, pick Pick, place memory.Place) (*memory.Evidence, error) {
	t := &c.Turns[pick.Turn]
	span, err := c.SpanOf(p.Source.Object, p.Source.ETag, pick.Start, pick.End)
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

// keptIn lists the nodes of kept statements, old and new, whose text stands in
// the memory: its parents, in order of first statement.
func keptIn(s State, recs []Record, text string) []memory.SHA {
	var out []memory.SHA
	seen := map[memory.SHA]bool{}
	add := func(node memory.SHA, quote string) {
		if !seen[node] && strings.Contains(text, quote) {
			seen[node] = true
			out = append(out, node)
		}
	}
	for i := range s.Kept {
		add(s.Kept[i].Node, s.Kept[i].Text)
	}
	for _, r := range recs {
		if e, ok := r.(*memory.Evidence); ok {
			add(e.Node, e.Text)
		}
	}
	return out
}

// End closes the run of a part.
func End(s State, cfg *Config, p *Part, ended time.Time) (State, []Record) {
	r := &memory.RunEnd{
		V: memory.Version, Type: memory.TypeRunEnd, Level: cfg.Level,
		Run: s.Open.Run, Admit: p.Admit.Seq, T: s.T,
		ChunksSeen: s.T - s.Open.T0, ChunksUsed: s.Open.Used,
		MemorySHA: s.MemorySHA, MemoryTokens: s.Tokens,
		Exited: s.Open.Exited, Ended: ended.UTC(),
	}
	return s.Apply(r), []Record{r}
}

// Done reports whether the open run has looked at every chunk, or left by an
// exit gate that is acted on.
func (s *State) Done(p *Part) bool {
	return s.Open != nil && (s.Open.Exited || s.Open.Next >= p.Chunks)
}

// Apply folds one record into the state. Folding the records of a stream in
// order gives the state that the loop had when it wrote them.
func (s State) Apply(r Record) State {
	switch r := r.(type) {
	case *memory.Run:
		s.Open = &OpenRun{Run: r.Run, Admit: r.Admit, Source: r.Source, T0: r.T}
	case *memory.Gate:
		s.T = r.T
		if r.Newest.After(s.Newest) {
			s.Newest = r.Newest
		}
		if s.Open != nil {
			o := *s.Open
			o.Next = r.I + 1
			if r.Update {
				o.Used++
			}
			o.Exited = o.Exited || r.ExitActed
			s.Open = &o
		}
	case *memory.Evidence:
		s.Kept = keep(s.Kept, r)
	case *memory.Memory:
		s.MemoryText, s.MemorySHA, s.MemoryNode, s.Tokens = r.Text, r.TextSHA, r.Node, r.Tokens
	case *memory.RunEnd:
		s.Admit, s.Open = max(s.Admit, r.Admit), nil
	}
	return s
}

// keep adds a statement; what it supersedes, or what supersedes it, is marked
// by the total order of DESIGN section 3.
func keep(old []Kept, e *memory.Evidence) []Kept {
	n := Kept{Node: e.Node, Text: e.Text, T: e.T, Place: e.Place, Score: e.Score}
	out := slices.Clone(old) // the state given stays as it was
	for _, o := range e.Supersedes {
		for i := range out {
			if out[i].Node != o.Node {
				continue
			}
			if e.Place.Compare(out[i].Place) > 0 {
				out[i].Superseded = true
			} else {
				n.Superseded = true
			}
		}
	}
	for i := range out {
		if out[i].Node == n.Node { // the same words again: the newer statement counts
			if n.Place.Compare(out[i].Place) > 0 {
				out[i].Place, out[i].T, out[i].Superseded = n.Place, n.T, n.Superseded
			}
			return out
		}
	}
	return append(out, n)
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
