package scrub

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/projection"
)

const (
	// reasonScrubbed is the reason code of a step that states anew.
	reasonScrubbed = "scrubbed"
	// policyScrub is the policy of such a step, before "/" and the rules version.
	policyScrub = "scrub"
	// maxStatements bounds one segment of new statements.
	maxStatements = 1000
)

// stream scrubs one stream.
type stream struct {
	*scrubber
	name      string
	tombstone memory.SHA
	values    *strings.Replacer    // of secrets known by the tombstone, to their marks
	sources   map[int64]memory.SHA // by admit seq

	partOf int64 // admit seq of chunks
	chunks []memory.Chunk
}

// occurrence is one statement of a node.
type occurrence struct {
	node memory.SHA
	t    int
}

// scan is what the log holds of a stream.
type scan struct {
	head     eventlog.Head
	t        int
	memory   memory.SHA // text sha after step t
	tokens   int
	run      *memory.Run    // the last one that is no tombstone's
	last     *memory.Memory // the memory that stands; nil where none does
	lastGate *memory.Gate   // of its step
	runs     int            // that this tombstone caused

	touched  []statement                     // evidence to be erased
	restated map[occurrence]*memory.Evidence // what stands for it already
	gone     map[memory.SHA]bool             // what nothing can stand for
	gates    []*memory.Gate                  // whose words are to be erased
	regated  map[int]bool                    // steps whose words stand anew
}

// statement is a touched evidence record with its step.
type statement struct {
	*memory.Evidence
	gate *memory.Gate
}

// scrub states anew, then erases. The lease keeps the gate away; what it may
// append all the same moves the head, and the stream is read again.
func (s *stream) scrub(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "stream %s", s.name)
	release, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	changed := false
	var sc *scan
	for tries := 0; ; {
		if sc, err = s.scan(ctx); err != nil {
			return err
		}
		recs, err := s.restate(ctx, sc)
		if err != nil {
			return err
		}
		if len(recs) == 0 {
			break
		}
		_, err = s.Log.Append(ctx, s.project, s.name, sc.head, recs)
		if fault.Is(err, fault.Conflict) && tries < 8 {
			tries++
			continue
		}
		if err != nil {
			return err
		}
		changed = true
	}
	erased, err := s.erase(ctx, sc)
	if changed || erased {
		s.report.Streams = append(s.report.Streams, s.name)
	}
	return err
}

// hold takes the stream's lease.
func (s *stream) hold(ctx context.Context) (release func() error, err error) {
	return Hold(ctx, s.Log, s.Tenant+"/"+s.project+"/"+s.name, s.Lease, s.Patience)
}

// Hold takes a lease, and waits for one that another holds.
func Hold(ctx context.Context, log *eventlog.Log, name string, ttl, patience time.Duration) (release func() error, err error) {
	deadline := time.Now().Add(patience)
	for {
		l, err := log.Acquire(ctx, name, ttl)
		if err == nil {
			return func() error { return l.Release(context.WithoutCancel(ctx)) }, nil
		}
		if !errors.Is(err, eventlog.ErrHeld) {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, fault.At(fault.Unavailable, "stream "+path.Base(name), "call it again when the gate is done: it goes on where it stopped", "at work for more than %v", patience)
		}
		select {
		case <-ctx.Done():
			return nil, fault.As(fault.Unavailable, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *stream) scan(ctx context.Context) (*scan, error) {
	sc := &scan{restated: map[occurrence]*memory.Evidence{}, gone: map[memory.SHA]bool{}, regated: map[int]bool{}}
	var gate *memory.Gate
	for seg, err := range s.Log.Segments(ctx, s.project, s.name, 0) {
		if err != nil {
			return nil, err
		}
		sc.head = eventlog.Head{Seq: seg.Header.Seq, Hash: seg.Hash}
		for _, r := range seg.Records {
			switch r := r.(type) {
			case *memory.Run:
				if r.Cause.Kind != memory.CauseTombstone {
					sc.run = r
				} else if ref, _, _ := strings.Cut(r.Cause.Ref, "."); ref == string(s.tombstone) {
					sc.runs++
				}
			case *memory.Gate:
				gate = r
				sc.t, sc.memory, sc.tokens = r.T, r.MemorySHA, r.MemoryTokens
				for _, n := range r.Gone {
					sc.gone[n] = true
				}
				if r.ReasonCode == reasonScrubbed {
					sc.regated[r.RegateOf] = true
				} else if r.Erased == "" && (s.hides(r.Reason) || s.hides(r.Think)) {
					sc.gates = append(sc.gates, r)
				}
			case *memory.Evidence:
				if o := r.Restates; o != nil {
					sc.restated[occurrence{o.Node, o.T}] = r
				}
				if gate != nil && s.stale(r) {
					sc.touched = append(sc.touched, statement{r, gate})
				}
			case *memory.Memory:
				sc.last, sc.lastGate = r, gate
			}
		}
	}
	return sc, nil
}

// mask takes the secrets out of words that no span cites.
func (s *stream) mask(text string) string {
	out, _ := s.Rules.Redact.Redact(s.values.Replace(text))
	return out
}

func (s *stream) hides(text string) bool { return text != "" && s.mask(text) != text }

// restate gives the records that state anew what the scan found and that stands
// nowhere yet: as many as go into one segment, as a run of their own. None: all
// is stated.
func (s *stream) restate(ctx context.Context, sc *scan) ([]eventlog.Record, error) {
	if sc.run == nil || memory.QueryID(s.name) == memory.SynthesisID {
		return nil, nil // nothing was ever decided, or its inputs are stated anew and read again
	}
	b := s.begin(sc)
	n := 0
	for i := 0; i < len(sc.touched) && n < maxStatements; {
		step := sc.touched[i].gate
		var open *memory.Gate
		for ; i < len(sc.touched) && sc.touched[i].gate == step; i++ {
			e := sc.touched[i].Evidence
			if sc.restated[occurrence{e.Node, e.T}] != nil || sc.gone[e.Node] {
				continue
			}
			c, err := s.chunk(ctx, e)
			if err != nil {
				return nil, err
			}
			if open == nil {
				open = b.step(step, c.SHA256)
				n++
			}
			if r := s.anew(e, c, b.t, open.Run); r != nil {
				b.recs = append(b.recs, r)
				sc.restated[occurrence{e.Node, e.T}] = r
				s.report.Evidence++
				continue
			}
			open.Gone = append(open.Gone, e.Node)
			open.EvidenceDropped++
			sc.gone[e.Node] = true
			s.report.Dropped++
		}
	}
	for _, g := range sc.gates {
		if n >= maxStatements {
			break
		}
		if !sc.regated[g.T] && !b.begun[g.T] {
			sha, _, _ := s.now(s.chunkOf(g.Admit, g.I), g.Chunk, 0, 0)
			b.step(g, sha)
			n++
		}
	}
	if n < maxStatements {
		s.memory(sc, b)
	}
	if len(b.steps) == 0 {
		return nil, nil
	}
	return b.end(), nil
}

// chunk is the chunk of a statement as it stands now, its text loaded.
func (s *stream) chunk(ctx context.Context, e *memory.Evidence) (*memory.Chunk, error) {
	if s.chunks == nil || s.partOf != e.Place.Admit {
		_, chunks, err := s.Log.Part(ctx, s.project, s.sources[e.Place.Admit])
		if err != nil {
			return nil, err
		}
		s.chunks, s.partOf = chunks, e.Place.Admit
	}
	if e.Place.I < 0 || e.Place.I >= len(s.chunks) {
		return nil, fault.New(fault.Corrupt, "evidence of step %d is of chunk %d; its part has %d", e.T, e.Place.I, len(s.chunks))
	}
	c := &s.chunks[e.Place.I]
	if c.Text == "" {
		b, err := s.Log.Blob(ctx, s.project, c.SHA256)
		if err != nil {
			return nil, err
		}
		c.Text = string(b)
	}
	return c, nil
}

// anew states e as its chunk has it now; nil where no bytes of the source prove
// it.
func (s *stream) anew(e *memory.Evidence, c *memory.Chunk, t int, run memory.SHA) *memory.Evidence {
	at, from, to := s.now(c.SHA256, e.Span.Chunk, e.Span.ChunkStart, e.Span.ChunkEnd)
	if at != c.SHA256 {
		return nil
	}
	span, err := c.SpanOf(e.Span.Object, e.Span.ETag, from, to)
	if err != nil {
		return nil
	}
	n := *e
	n.Run, n.T, n.Span, n.Text = run, t, span, c.Text[span.ChunkStart:span.ChunkEnd]
	n.TextSHA = memory.SumString(n.Text)
	n.Node = memory.NodeID(s.Tenant, s.project, memory.L0, s.name, n.TextSHA)
	n.Restates = &memory.Occurrence{Node: e.Node, T: e.T, Place: e.Place}
	return &n
}

// words masks memory texts: the statements in them that are stated anew, and
// what else the rules find.
func (s *stream) words(sc *scan) func(string) string {
	var pairs []string
	for _, st := range sc.touched {
		now := ""
		if r := sc.restated[occurrence{st.Node, st.T}]; r != nil {
			now = extractpolicy.Line(r.Text, r.Node)
		}
		// An earlier tombstone may have masked the words and not yet the statement.
		pairs = append(pairs, extractpolicy.Line(st.Text, st.Node), now, extractpolicy.Line(s.mask(st.Text), st.Node), now)
	}
	lines := strings.NewReplacer(pairs...)
	return func(text string) string { return s.mask(lines.Replace(text)) }
}

// memory states the memory that stands anew where its words hold a secret.
func (s *stream) memory(sc *scan, b *batch) {
	m := sc.last
	if m == nil || m.Erased != "" {
		return
	}
	text := s.words(sc)(m.Text)
	if text == m.Text {
		return
	}
	n := *m
	n.Text, n.TextSHA, n.Tokens = text, memory.SumString(text), s.Rules.Count(text)
	n.Node = memory.NodeID(s.Tenant, s.project, m.Level, s.name, n.TextSHA)
	n.Supersedes, n.Parents = []memory.SHA{m.Node}, nil
	anew := map[memory.SHA]memory.SHA{}
	for o, r := range sc.restated {
		anew[o.node] = r.Node
	}
	seen := map[memory.SHA]bool{}
	for _, p := range m.Parents {
		if now, ok := anew[p]; ok {
			p = now
		} else if sc.gone[p] {
			continue
		}
		if !seen[p] {
			seen[p] = true
			n.Parents = append(n.Parents, p)
		}
	}
	if len(n.Parents) == 0 || n.Node == m.Node {
		return // nothing is left that it could rest on: it is erased alone
	}
	if len(b.steps) == 0 {
		sha, _, _ := s.now(s.chunkOf(sc.lastGate.Admit, sc.lastGate.I), sc.lastGate.Chunk, 0, 0)
		b.step(sc.lastGate, sha)
	}
	g := b.steps[len(b.steps)-1]
	g.Update, g.CandidateSHA, g.MemorySHA, g.MemoryTokens = true, n.TextSHA, n.TextSHA, n.Tokens
	n.Run, n.T = g.Run, g.T
	b.recs = append(b.recs, &n)
}

// batch is the records of one run.
type batch struct {
	s     *stream
	sc    *scan
	t     int
	run   *memory.Run
	recs  []eventlog.Record
	steps []*memory.Gate
	begun map[int]bool // old steps
}

func (s *stream) begin(sc *scan) *batch {
	ref := string(s.tombstone)
	if sc.runs > 0 {
		ref += "." + strconv.Itoa(sc.runs+1)
	}
	cause := memory.Cause{Kind: memory.CauseTombstone, Ref: ref}
	policy := policyScrub + "/" + s.Rules.Redact.Version()
	run := &memory.Run{
		Level: sc.run.Level, Run: gru.RunID(s.name, cause, policy, "", "-"), Stream: s.name,
		Question: s.mask(sc.run.Question), Cause: cause, T: sc.t, Policy: policy, PromptVersion: "-",
		MemoryBudget: sc.run.MemoryBudget, ExitGate: sc.run.ExitGate, MemoryBefore: sc.memory, Started: s.Now().UTC(),
	}
	return &batch{s: s, sc: sc, t: sc.t, run: run, recs: []eventlog.Record{run}, begun: map[int]bool{}}
}

// step begins the step that stands for g, over a chunk as it stands now.
func (b *batch) step(g *memory.Gate, chunk memory.SHA) *memory.Gate {
	b.t++
	_, from, to := b.s.now(chunk, g.Chunk, g.Start, g.End)
	n := &memory.Gate{
		Level: g.Level, T: b.t, Run: b.run.Run, QueryID: g.QueryID, Admit: g.Admit, I: g.I,
		Chunk: chunk, Start: from, End: to, FormatOK: true, Attempt: 1,
		Reason: b.s.mask(g.Reason), Think: b.s.mask(g.Think), ReasonCode: reasonScrubbed,
		Policy: b.run.Policy, PromptVersion: "-", RegateOf: g.T,
		MemoryBeforeSHA: b.sc.memory, MemorySHA: b.sc.memory, MemoryTokens: b.sc.tokens,
	}
	b.begun[g.T] = true
	b.steps = append(b.steps, n)
	b.recs = append(b.recs, n)
	return n
}

// end closes the run.
func (b *batch) end() []eventlog.Record {
	last := b.steps[len(b.steps)-1]
	b.run.Chunks = len(b.steps)
	for _, g := range b.steps {
		g.TotalT = len(b.steps)
	}
	used := 0
	if last.Update {
		used = 1
	}
	return append(b.recs, &memory.RunEnd{
		Level: b.run.Level, Run: b.run.Run, T: last.T, ChunksSeen: len(b.steps), ChunksUsed: used,
		MemorySHA: last.MemorySHA, MemoryTokens: last.MemoryTokens, Ended: b.s.Now().UTC(),
	})
}

// erase takes out of the stream what the scan found, the vectors of its passages
// and the cached fold. It goes from the last segment to the first: a memory is
// known by the statements in it, which must not be erased before it.
func (s *stream) erase(ctx context.Context, sc *scan) (bool, error) {
	words := s.words(sc)
	gone := map[occurrence]bool{}
	for _, st := range sc.touched {
		gone[occurrence{st.Node, st.T}] = true
	}
	pick := func(r eventlog.Record) bool {
		switch r := r.(type) {
		case *memory.Evidence:
			return r.Erased == "" && gone[occurrence{r.Node, r.T}]
		case *memory.Memory:
			return r.Erased == "" && words(r.Text) != r.Text
		case *memory.Gate:
			return r.Erased == "" && (s.hides(r.Reason) || s.hides(r.Think))
		case *memory.Run:
			return r.Erased == "" && s.hides(r.Question)
		}
		return false
	}
	spaces, err := s.Log.VectorSpaces(ctx, s.project)
	if err != nil {
		return false, err
	}
	var hits []int64
	for seg, err := range s.Log.Segments(ctx, s.project, s.name, 0) {
		if err != nil {
			return false, err
		}
		hit := projection.Tombs(&seg) // an earlier try may have come as far as this
		for _, r := range seg.Records {
			if !pick(r) {
				continue
			}
			hit = true
			switch r.(type) {
			case *memory.Memory:
				s.report.Memories++
			case *memory.Gate:
				s.report.Reasons++
			}
		}
		if hit {
			hits = append(hits, seg.Header.Seq)
		}
	}
	changed := false
	for _, seq := range slices.Backward(hits) {
		n, err := s.Log.Erase(ctx, s.project, s.name, seq, s.tombstone, pick)
		if err != nil {
			return changed, err
		}
		changed = changed || n > 0
		if err := s.vectors(ctx, seq, spaces); err != nil {
			return changed, err
		}
	}
	return changed, s.Log.DropFold(ctx, s.project, s.name)
}

// vectors removes those of passages that the segment no longer states.
func (s *stream) vectors(ctx context.Context, seq int64, spaces []string) error {
	seg, err := s.Log.Segment(ctx, s.project, s.name, seq)
	if err != nil {
		return err
	}
	stated := projection.Stated(&seg)
	for _, space := range spaces {
		n, err := s.Log.DropVectors(ctx, s.project, space, s.name, seq, func(p memory.SHA) bool { return stated[p] })
		if err != nil {
			return err
		}
		s.report.Vectors += n
	}
	return nil
}
