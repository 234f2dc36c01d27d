package eventlog

import (
	"context"
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/memory"
)

// streamCheck holds what Verify knows of the stream at hand.
type streamCheck struct {
	v         *verifier
	stream    string
	synthesis bool
	hasher    *streamHasher

	t      int          // last step
	gate   *memory.Gate // of step t
	memory memory.SHA   // after step t
	open   *memory.Run
	around []*memory.Run  // open runs that the open one, of a tombstone, came into
	runs   map[sha32]bool // begun; true when ended
	l0     map[sha32]bool // evidence nodes
	nodes  map[sha32]bool // memory nodes
	occ    map[occurrence]bool
	later  []superseding // not resolved when met
}

type occurrence struct {
	node sha32
	t    int
}

type superseding struct {
	key  string
	line int
	occ  occurrence
}

func (v *verifier) stream(ctx context.Context, stream string) error {
	c := &streamCheck{
		v: v, stream: stream, synthesis: isSynthesis(stream), hasher: newStreamHasher(stream),
		runs: map[sha32]bool{}, l0: map[sha32]bool{}, nodes: map[sha32]bool{}, occ: map[occurrence]bool{},
	}
	v.count("streams")
	err := v.walk(ctx, stream, func(key string, seg *Segment) error {
		for i, r := range seg.Records {
			c.hasher.add(r)
			if err := c.record(ctx, key, i+2, r, seg.Lines[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range c.later {
		if !c.occ[s.occ] {
			v.problem(s.key, s.line, "supersedes a statement of step %d that is not in the stream", s.occ.t)
		}
	}
	if c.open != nil {
		v.count("open_runs")
	}
	if !c.synthesis {
		v.l.addPresent(v.present, v.name, stream, c.hasher.last)
	}
	v.rep.Streams[v.name+"/"+stream] = c.hasher.sum(v.present)
	return nil
}

func (c *streamCheck) record(ctx context.Context, key string, line int, r Record, raw []byte) error {
	say := func(format string, args ...any) { c.v.problem(key, line, format, args...) }
	switch r := r.(type) {
	case *memory.Run:
		c.run(r, say)
	case *memory.Gate:
		return c.step(ctx, r, say)
	case *memory.Evidence:
		return c.evidence(ctx, key, line, r, raw, say)
	case *memory.Memory:
		c.memoryRecord(r, raw, say)
	case *memory.RunEnd:
		c.end(r, say)
	case *memory.Admit:
		say("an admit line outside the admit stream")
	case *Opaque:
		c.v.count("opaque")
	}
	return nil
}

func (c *streamCheck) run(r *memory.Run, say func(string, ...any)) {
	c.v.count("runs")
	if r.Erased != "" {
		c.v.count("erased")
	}
	if c.open != nil && !c.synthesis && r.Cause.Kind != memory.CauseTombstone {
		say("run %s begins while run %s is open", r.Run.Short(), c.open.Run.Short())
	}
	if _, again := c.runs[pack(r.Run)]; again || !r.Run.Valid() {
		say("run %s begins twice, or has no id", r.Run.Short())
	}
	if r.Stream != c.stream {
		say("the run is of stream %q", clip([]byte(r.Stream)))
	}
	if r.T != c.t {
		say("the run begins after step %d; the stream is at %d", r.T, c.t)
	}
	if r.Cause.Kind == memory.CausePart {
		switch p := c.v.partOf(r.Admit); {
		case p == nil:
			say("the run folds part %d, which is not admitted", r.Admit)
		case p.source != r.Source:
			say("the run's source is not that of part %d", r.Admit)
		}
		if r.MemoryBefore != c.memory {
			say("the run begins with another memory than the last step left")
		}
	}
	if c.synthesis {
		c.memory = ""
	}
	c.runs[pack(r.Run)] = false
	if c.open != nil && r.Cause.Kind == memory.CauseTombstone {
		c.around = append(c.around, c.open)
	}
	c.open = r
}

func (v *verifier) partOf(admit int64) *part {
	if admit < 1 || admit > int64(len(v.parts)) {
		return nil
	}
	return &v.parts[admit-1]
}

// within checks that a record belongs to the open run.
func (c *streamCheck) within(run memory.SHA, say func(string, ...any)) {
	if c.open == nil || c.open.Run != run {
		say("the record is of run %s, which is not open", run.Short())
	}
}

func (c *streamCheck) step(ctx context.Context, g *memory.Gate, say func(string, ...any)) error {
	c.v.count("gates")
	if g.Erased != "" {
		c.v.count("erased")
	}
	c.within(g.Run, say)
	if g.T != c.t+1 {
		say("step %d follows step %d", g.T, c.t)
	}
	if g.Start < 0 || g.End < g.Start {
		say("step %d read [%d,%d)", g.T, g.Start, g.End)
	}
	if c.open != nil && c.open.Cause.Kind == memory.CausePart {
		p := c.v.partOf(g.Admit)
		switch {
		case g.Admit != c.open.Admit:
			say("step %d reads part %d in the run of part %d", g.T, g.Admit, c.open.Admit)
		case p != nil && !c.v.holds(p, g.I, g.Chunk):
			say("step %d: chunk %d of part %d is another", g.T, g.I, g.Admit)
		}
	}
	if c.open != nil && (c.open.Cause.Kind == memory.CausePart || c.synthesis && c.open.Cause.Kind == memory.CauseSynthesis) && g.MemoryBeforeSHA != c.memory {
		say("step %d begins with another memory than step %d left", g.T, c.t)
	}
	if c.synthesis && !c.v.l1text[pack(g.Chunk)] {
		say("step %d reads a memory that is not in the log", g.T)
	}
	if !g.Update && g.MemorySHA != g.MemoryBeforeSHA {
		say("step %d changes the memory behind a closed gate", g.T)
	}
	c.t, c.gate, c.memory = g.T, g, g.MemorySHA
	if g.Reply != "" {
		_, _, err := c.v.quoted(ctx, g.Reply, 0, 0)
		return err
	}
	return nil
}

func (c *streamCheck) evidence(ctx context.Context, key string, line int, e *memory.Evidence, raw []byte, say func(string, ...any)) error {
	c.v.count("evidence")
	c.within(e.Run, say)
	if e.T != c.t && e.T != c.t+1 {
		say("evidence of step %d at step %d", e.T, c.t)
	}
	if want := memory.NodeID(c.v.l.tenant, c.v.name, memory.L0, c.stream, e.TextSHA); e.Node != want {
		say("the node id is not that of the text")
	}
	c.l0[pack(e.Node)] = true
	c.occ[occurrence{pack(e.Node), e.T}] = true
	for _, o := range e.Supersedes {
		if occ := (occurrence{pack(o.Node), o.T}); !c.occ[occ] {
			c.later = append(c.later, superseding{key, line, occ})
		}
	}
	if o := e.Restates; o != nil && !c.occ[occurrence{pack(o.Node), o.T}] {
		say("it restates a statement of step %d that is not in the stream", o.T)
	}
	s := e.Span
	if s.Object == "" || s.Start < 0 || s.End <= s.Start ||
		s.Redacted != (s.HMAC != "") || s.Redacted == s.SHA256.Valid() {
		say("the span names no bytes of an object, or not their hash")
	}
	if e.Erased != "" {
		c.v.count("erased")
		if !erasedTextIs(raw, e.TextSHA) {
			say("the erased text is not that of text_sha")
		}
		return nil
	}
	if memory.SumString(e.Text) != e.TextSHA {
		say("the text does not hash to text_sha")
	}
	if c.gate != nil && e.T == c.gate.T && s.Chunk != c.gate.Chunk {
		say("the span is in another chunk than the step read")
	}
	text, ok, err := c.v.quoted(ctx, s.Chunk, s.ChunkStart, s.ChunkEnd)
	if err != nil || !ok {
		return err
	}
	if text != e.Text {
		say("the text is not the chunk's [%d,%d)", s.ChunkStart, s.ChunkEnd)
	}
	return nil
}

func (c *streamCheck) memoryRecord(m *memory.Memory, raw []byte, say func(string, ...any)) {
	c.v.count("memories")
	c.within(m.Run, say)
	if m.T != c.t && m.T != c.t+1 {
		say("memory of step %d at step %d", m.T, c.t)
	}
	if want := memory.NodeID(c.v.l.tenant, c.v.name, m.Level, c.stream, m.TextSHA); m.Node != want {
		say("the node id is not that of the text")
	}
	if m.Erased != "" {
		c.v.count("erased")
		if !erasedTextIs(raw, m.TextSHA) {
			say("the erased text is not that of text_sha")
		}
	} else if memory.SumString(m.Text) != m.TextSHA {
		say("the text does not hash to text_sha")
	}
	below := c.l0
	if m.Level == memory.L2 {
		below = c.v.l1
	}
	if len(m.Parents) == 0 {
		say("the memory has no parent")
	}
	for _, p := range m.Parents {
		if !below[pack(p)] {
			say("parent %s is not in the log", p.Short())
		}
	}
	for _, p := range m.Supersedes {
		if !c.nodes[pack(p)] {
			say("it supersedes memory %s, which is not in the stream", p.Short())
		}
	}
	c.nodes[pack(m.Node)] = true
	if m.Level == memory.L1 {
		c.v.l1[pack(m.Node)], c.v.l1text[pack(m.TextSHA)] = true, true
	}
}

func (c *streamCheck) end(r *memory.RunEnd, say func(string, ...any)) {
	id := pack(r.Run)
	ended, begun := c.runs[id]
	switch {
	case !begun:
		say("run %s ends and never began", r.Run.Short())
	case ended:
		say("run %s ends twice", r.Run.Short())
	}
	c.runs[id] = true
	if c.open != nil && c.open.Run == r.Run {
		if r.Admit != c.open.Admit {
			say("the run of part %d ends as that of part %d", c.open.Admit, r.Admit)
		}
		c.open = nil
		if n := len(c.around); n > 0 {
			c.open, c.around = c.around[n-1], c.around[:n-1]
		}
	}
	if r.T != c.t {
		say("the run ends at step %d; the stream is at %d", r.T, c.t)
	}
	if r.MemorySHA != c.memory {
		say("the run ends with another memory than its last step left")
	}
}

// erasedTextIs reports whether an erased record's text is the hash it must be.
func erasedTextIs(raw []byte, sha memory.SHA) bool {
	var r struct {
		Text string `json:"text"`
	}
	return json.Unmarshal(raw, &r) == nil && r.Text == sealedPrefix+string(sha)
}
