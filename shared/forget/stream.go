package forget

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/projection"
	"github.com/mneme-ai/mneme/shared/scrub"
)

// policyForget is the policy of a step that states a memory without what was forgotten.
const policyForget = "forget/1"

// lower is what is gone of the memories that a synthesis reads: nodes and text shas.
type lower struct{ nodes, texts map[memory.SHA]bool }

// stream is what forgetting has to do in one stream; it is the fold of its records.
type stream struct {
	*forgetter
	name      string
	synthesis bool
	below     lower

	head    eventlog.Head
	state   gru.State // of the stream without what is forgotten
	run     *memory.Run
	last    *memory.Gate   // the last step
	memory  *memory.Memory // the memory that stands now, forgotten or not
	of      *memory.Gate   // its step
	clean   *memory.Memory // the last one that has nothing to do with what is forgotten
	stated  bool           // this tombstone has its step already
	lost    map[memory.SHA]bool
	gone    map[record]bool // what is to be forgotten, by place
	replies []memory.SHA    // of steps that are to be forgotten
	others  []memory.SHA    // of the others
	fresh   int             // of gone, what is not forgotten yet
	new     [3]int          // of fresh: evidence, memories, gates
	// memories are those that are forgotten.
	memories map[named]bool
	dirty    bool
}

// named is a memory by its node and its text.
type named struct{ node, text memory.SHA }

func (s *stream) count() (evidence, memories, gates int) { return s.new[0], s.new[1], s.new[2] }

// record is the place of a record in its stream.
type record struct {
	seq int64
	i   int
}

// fold reads the stream and finds what is to be forgotten. tombstone is the one at work.
func (f *forgetter) fold(ctx context.Context, name string, tombstone memory.SHA, below lower) (*stream, error) {
	s := &stream{forgetter: f, name: name, synthesis: memory.QueryID(name) == memory.SynthesisID, below: below, lost: map[memory.SHA]bool{}, gone: map[record]bool{}, memories: map[named]bool{}}
	stands := map[memory.SHA]bool{}
	segments := func(each func(seq int64, i int, r eventlog.Record)) error {
		for seg, err := range f.Log.Segments(ctx, f.project, name, 0) {
			if err != nil {
				return err
			}
			s.head = eventlog.Head{Seq: seg.Header.Seq, Hash: seg.Hash}
			for i, r := range seg.Records {
				each(seg.Header.Seq, i, r)
			}
		}
		return nil
	}
	if err := segments(func(seq int64, i int, r eventlog.Record) {
		if e, ok := r.(*memory.Evidence); ok {
			if s.touched(e) {
				s.lost[e.Node] = true
			} else {
				stands[e.Node] = true
			}
		}
	}); err != nil {
		return nil, err
	}
	for n := range stands {
		delete(s.lost, n)
	}
	var left []any
	var gate *memory.Gate
	over := false // the step reads what is forgotten
	deep := false // the run of a synthesis did
	err := segments(func(seq int64, i int, r eventlog.Record) {
		gone := false
		switch r := r.(type) {
		case *memory.Run:
			if r.Cause.Kind == memory.CauseTombstone {
				ref, _, _ := strings.Cut(r.Cause.Ref, ".")
				s.stated = s.stated || ref == string(tombstone)
			} else {
				s.run = r
			}
			deep = false
		case *memory.Gate:
			gate, s.last = r, r
			over = s.overlaps(r)
			deep = deep || over
			switch {
			case r.ReasonCode == gru.ReasonForgotten || r.Policy == policyForget:
				over, s.dirty = false, false
			case over || r.Model != "" && s.dirty || r.Erased == "" && (f.words.in(r.Reason) || f.words.in(r.Think)):
				gone = true
				if r.Reply != "" {
					s.replies = append(s.replies, r.Reply)
				}
			case r.Reply != "":
				s.others = append(s.others, r.Reply)
			}
			s.note(seq, i, gone, r.Forgotten, 2)
		case *memory.Evidence:
			gone = s.touched(r)
			s.note(seq, i, gone, r.Forgotten, 0)
		case *memory.Memory:
			rests := slices.ContainsFunc(r.Parents, func(p memory.SHA) bool { return s.lost[p] || s.below.nodes[p] })
			switch {
			case s.synthesis:
				gone = rests || deep
			case gate != nil && gate.Model != "":
				s.dirty = s.dirty || over || rests
				gone = s.dirty
			default:
				s.dirty = false
				gone = rests
			}
			gone = gone || r.Erased == "" && f.words.in(r.Text)
			gone = gone || r.Forgotten
			s.note(seq, i, gone, r.Forgotten, 1)
			if gone {
				s.memories[named{r.Node, r.TextSHA}] = true
			}
			s.memory, s.of = r, gate
			if !gone {
				s.clean = r
			}
		}
		left = append(left, as(r, gone))
	})
	s.state = gru.Fold(each(left))
	return s, err
}

func each(records []any) iter.Seq[any] { return slices.Values(records) }

// as is a record as it is once it is forgotten.
func as(r eventlog.Record, gone bool) any {
	if !gone {
		return r
	}
	switch r := r.(type) {
	case *memory.Evidence:
		c := *r
		c.Forgotten = true
		return &c
	case *memory.Memory:
		c := *r
		c.Forgotten = true
		return &c
	case *memory.Gate:
		c := *r
		c.Forgotten = true
		return &c
	}
	return r
}

func (s *stream) note(seq int64, i int, gone, already bool, kind int) {
	if gone {
		s.gone[record{seq, i}] = true
		if !already {
			s.fresh++
			s.new[kind]++
		}
	}
}

// touched reports whether a statement quotes what is taken out.
func (s *stream) touched(e *memory.Evidence) bool {
	if e.Forgotten {
		return true
	}
	return s.out(e.Place.Admit, e.Place.I, e.Span.Chunk, e.Span.ChunkStart, e.Span.ChunkEnd)
}

// overlaps reports whether a step read it.
func (s *stream) overlaps(g *memory.Gate) bool {
	if s.synthesis {
		return s.below.texts[g.Chunk]
	}
	return s.out(g.Admit, g.I, g.Chunk, g.Start, g.End)
}

// out follows text [from,to) of a chunk to what stands in its place now, and reports
// whether some of it was forgotten on the way. The same text may have been read again:
// the way ends at the chunk that the part has.
func (f *forgetter) out(admit int64, i int, chunk memory.SHA, from, to int) bool {
	now := f.chunkOf(admit, i)
	for range len(f.all) + 1 {
		if chunk == now {
			return false
		}
		b, ok := f.all[chunk]
		if !ok {
			return false
		}
		if takenOut(b.Edits, from, to) {
			return true
		}
		chunk = b.New
		from, to, _ = b.Moved(from, to)
	}
	return false
}

// restate gives the run that states the memory without what is forgotten; nil where it
// is stated, or the memory that stands has nothing to do with it.
func (s *stream) restate() []eventlog.Record {
	if s.stated || s.synthesis || s.run == nil || s.last == nil || s.memory == nil || s.clean == s.memory {
		return nil
	}
	text, parents := s.compose()
	cause := memory.Cause{Kind: memory.CauseTombstone, Ref: string(s.tombstone)}
	run := &memory.Run{
		Level: s.run.Level, Run: gru.RunID(s.name, cause, policyForget, "", "-"), Stream: s.name, Question: s.run.Question,
		Cause: cause, T: s.last.T, Chunks: 1, Policy: policyForget, PromptVersion: "-", MemoryBudget: s.run.MemoryBudget,
		ExitGate: s.run.ExitGate, MemoryBefore: s.last.MemorySHA, Started: s.Now().UTC(),
	}
	g := s.of
	step := &memory.Gate{
		Level: g.Level, T: s.last.T + 1, TotalT: 1, Run: run.Run, QueryID: g.QueryID, Admit: g.Admit, I: g.I,
		Chunk: s.chunkOf(g.Admit, g.I), FormatOK: true, Attempt: 1, Update: true,
		Reason: "the memory without what was forgotten", ReasonCode: gru.ReasonForgotten,
		Policy: policyForget, PromptVersion: "-", RegateOf: g.T, MemoryBeforeSHA: s.last.MemorySHA,
	}
	recs := []eventlog.Record{run, step}
	if text != "" && len(parents) > 0 {
		m := &memory.Memory{
			Level: s.memory.Level, T: step.T, Run: run.Run, QueryID: s.memory.QueryID, Text: text, TextSHA: memory.SumString(text),
			Tokens: s.Count(text), Parents: parents, Supersedes: []memory.SHA{s.memory.Node},
		}
		m.Node = memory.NodeID(s.Tenant, s.project, m.Level, s.name, m.TextSHA)
		for _, k := range s.state.Kept {
			if slices.Contains(parents, k.Node) && k.Place.Compare(m.Place) > 0 {
				m.Place = k.Place
			}
		}
		step.CandidateSHA, step.MemorySHA, step.MemoryTokens = m.TextSHA, m.TextSHA, m.Tokens
		recs = append(recs, m)
	}
	return append(recs, &memory.RunEnd{
		Level: run.Level, Run: run.Run, T: step.T, ChunksSeen: 1, ChunksUsed: 1,
		MemorySHA: step.MemorySHA, MemoryTokens: step.MemoryTokens, Ended: s.Now().UTC(),
	})
}

// compose is the memory of what remains. Where a model decided it is the last memory
// that had read nothing of what is forgotten, and the statements given since.
func (s *stream) compose() (string, []memory.SHA) {
	st := &s.state
	if s.of.Model == "" {
		return extractpolicy.Compose(st.Kept, s.Count, s.run.MemoryBudget)
	}
	text, parents, since := st.MemoryText, []memory.SHA(nil), 0
	if s.clean != nil {
		parents, since = slices.Clone(s.clean.Parents), s.clean.T
	} else {
		text = ""
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, k := range slices.Backward(st.Kept) { // the newest first, while there is room
		if k.T <= since || k.Superseded || k.Text == "" {
			continue
		}
		if more := text + "- " + k.Text + "\n"; s.Count(more) <= s.run.MemoryBudget {
			text = more
			if !slices.Contains(parents, k.Node) {
				parents = append(parents, k.Node)
			}
		}
	}
	return text, parents
}

// work states anew, then erases. The lease keeps the gate away; what it appended all the
// same moves the head, and the stream is read again.
func (f *forgetter) work(ctx context.Context, name string, below lower) (_ *stream, err error) {
	defer fault.Wrap(&err, "stream %s", name)
	release, err := scrub.Hold(ctx, f.Log, f.Tenant+"/"+f.project+"/"+name, f.Lease, f.Patience)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	for tries := 0; ; tries++ {
		s, err := f.fold(ctx, name, f.tombstone, below)
		if err != nil {
			return nil, err
		}
		if recs := s.restate(); recs != nil {
			_, err := f.Log.Append(ctx, f.project, name, s.head, recs)
			if fault.Is(err, fault.Conflict) && tries < 8 {
				continue
			}
			if err != nil {
				return nil, err
			}
			f.stream(name).Step = recs[1].(*memory.Gate).T
		}
		return s, s.erase(ctx)
	}
}

// erase takes out what was found, with the vectors of its passages and the cached fold,
// from the last segment to the first: a memory is known by the statements in it.
func (s *stream) erase(ctx context.Context) error {
	var hits []int64
	for at := range s.gone {
		hits = append(hits, at.seq)
	}
	slices.Sort(hits)
	hits = slices.Compact(hits)
	if len(hits) == 0 {
		return nil
	}
	spaces, err := s.Log.VectorSpaces(ctx, s.project)
	if err != nil {
		return err
	}
	out := s.forgetter.stream(s.name)
	for _, seq := range slices.Backward(hits) {
		seg, err := s.Log.Segment(ctx, s.project, s.name, seq)
		if err != nil {
			return err
		}
		var gates, evidence, memories int
		i := -1
		if _, err := s.Log.Forget(ctx, s.project, s.name, seq, s.tombstone, func(r eventlog.Record) bool {
			i++
			if !s.gone[record{seq, i}] {
				return false
			}
			switch r := r.(type) {
			case *memory.Gate:
				gates += b2i(!r.Forgotten)
			case *memory.Evidence:
				evidence += b2i(!r.Forgotten)
			case *memory.Memory:
				memories += b2i(!r.Forgotten)
			}
			return true
		}); err != nil {
			return err
		}
		out.Gates, out.Evidence, out.Memories = out.Gates+gates, out.Evidence+evidence, out.Memories+memories
		if seg, err = s.Log.Segment(ctx, s.project, s.name, seq); err != nil {
			return err
		}
		stated := projection.Stated(&seg)
		for _, space := range spaces {
			n, err := s.Log.DropVectors(ctx, s.project, space, s.name, seq, func(p memory.SHA) bool { return stated[p] })
			if err != nil {
				return err
			}
			out.Vectors += n
		}
		s.progress()
	}
	return s.Log.DropFold(ctx, s.project, s.name)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
