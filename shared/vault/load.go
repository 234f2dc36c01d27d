package vault

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/replay"
)

// Reader reads models of projects from the log. What it has folded of a stream it
// keeps in memory, so that a page costs the segments that came since; after a scrub
// it begins anew. It is safe for concurrent use.
type Reader struct {
	log     *eventlog.Log
	catalog *catalog.Catalog

	mu      sync.Mutex
	streams map[string]*folded // project/stream
	notes   map[string]*KeptNote
	scrubs  map[string]string // project -> state of its scrub, under which the above were read
	held    int               // statements and memories in streams
}

// maxHeld bounds the statements and memories that a Reader keeps, some 1 KiB each with
// their places: beyond it everything is read anew.
const maxHeld = 100_000

// NewReader makes a Reader.
func NewReader(log *eventlog.Log, c *catalog.Catalog) *Reader {
	return &Reader{log: log, catalog: c, streams: map[string]*folded{}, notes: map[string]*KeptNote{}, scrubs: map[string]string{}}
}

// Load reads the model of a project with a new Reader.
func Load(ctx context.Context, log *eventlog.Log, c *catalog.Catalog, project string) (*Model, error) {
	return NewReader(log, c).Load(ctx, project)
}

// State is what a project's pages depend on: where its streams end, what it asks,
// which notes there are. Equal states have equal pages.
type State struct {
	Version   int              `json:"version"` // RenderVersion
	Questions string           `json:"questions"`
	Streams   map[string]int64 `json:"streams"` // last segment by stream
	Notes     []memory.SHA     `json:"notes"`
	Scrub     string           `json:"scrub"`
}

// Key is the sha256 of the state.
func (s *State) Key() memory.SHA {
	b, err := json.Marshal(s)
	if err != nil {
		return "" // names and numbers always encode; equal to nothing that was stored
	}
	return memory.Sum(b)
}

// State reads it: two objects, a listing of the notes and the end of each stream.
func (r *Reader) State(ctx context.Context, project string) (s State, err error) {
	defer fault.Wrap(&err, "state of the vault of %s", project)
	s.Version, s.Streams = RenderVersion, map[string]int64{}
	streams, syn, err := r.asked(ctx, project)
	if err != nil {
		return s, err
	}
	var asked strings.Builder
	for _, st := range streams {
		asked.WriteString(st.QueryID + "\x00" + st.Name + "\x00" + st.Question + "\x00")
	}
	if syn != nil {
		asked.WriteString("synthesis\x00" + syn.Name + "\x00" + syn.Question)
		streams = append(streams, *syn)
	}
	s.Questions = string(memory.SumString(asked.String()))
	for _, st := range streams {
		head, err := r.log.Head(ctx, project, st.Name)
		if err != nil {
			return s, err
		}
		s.Streams[st.Name] = head.Seq
	}
	for key, err := range r.log.RecordKeys(ctx, project, eventlog.Notes) {
		if err != nil {
			return s, err
		}
		s.Notes = append(s.Notes, key)
	}
	scrub, _, err := r.log.LastScrub(ctx, project)
	if b, e := json.Marshal(scrub); e == nil {
		s.Scrub = string(memory.Sum(b))
	}
	return s, err
}

// asked lists the questions that answer, and the synthesis where one is asked for.
func (r *Reader) asked(ctx context.Context, project string) ([]catalog.Stream, *catalog.Stream, error) {
	streams, err := r.catalog.ServingStreams(ctx, project)
	if err != nil {
		return nil, nil, err
	}
	syn, ok, err := r.catalog.Synthesis(ctx, project)
	if err != nil || !ok {
		return streams, nil, err
	}
	return streams, &syn, nil
}

// Load reads the model of a project.
func (r *Reader) Load(ctx context.Context, project string) (_ *Model, err error) {
	defer fault.Wrap(&err, "read the vault of %s", project)
	r.mu.Lock()
	defer r.mu.Unlock()
	scrub, err := r.log.ScrubState(ctx, project)
	if err != nil {
		return nil, err
	}
	if old, ok := r.scrubs[project]; ok && old != scrub || r.held > maxHeld {
		clear(r.streams) // they hold words that were erased, or too many
		clear(r.notes)
		clear(r.scrubs)
		r.held = 0
	}
	r.scrubs[project] = scrub
	streams, syn, err := r.asked(ctx, project)
	if err != nil {
		return nil, err
	}
	m := &Model{Project: project}
	var all []*folded // by question
	for i, st := range streams {
		f, err := r.fold(ctx, project, st.Name)
		if err != nil {
			return nil, err
		}
		q := f.question()
		q.ID, q.N, q.Wording, q.Stream, q.Adhoc = st.QueryID, i, st.Question, st.Name, st.Only > 0
		if q.Asked = st.Name; !q.Adhoc {
			q.Asked = memory.StreamName(st.QueryID, st.Question)
			if base, _, _ := strings.Cut(strings.TrimPrefix(st.Name, st.QueryID+"@"), "."); st.QueryID+"@"+base == q.Asked {
				q.Asked = st.Name // another generation of the same wording
			}
		}
		m.Questions = append(m.Questions, q)
		all = append(all, f)
	}
	if syn != nil {
		if m.Synthesis, err = r.synthesis(ctx, project, syn); err != nil {
			return nil, err
		}
		for i := range m.Questions {
			q := &m.Questions[i]
			for _, node := range m.Synthesis.Memory.Parents {
				if was, ok := all[i].past[node]; ok && node != q.Memory.Node {
					q.Read = append(q.Read, was)
				}
			}
		}
	}
	m.Notes, err = r.keptNotes(ctx, project)
	return m, err
}

func (r *Reader) synthesis(ctx context.Context, project string, st *catalog.Stream) (*Synthesis, error) {
	s := &Synthesis{Question: st.Question, Stream: st.Name}
	last, ok, err := replay.Synthesis(ctx, r.log, project, st.Name)
	if err != nil || !ok {
		return s, err
	}
	s.Ran, s.Chunks, s.Used = true, last.End.ChunksSeen, last.End.ChunksUsed
	if mem := last.Memory; mem != nil {
		s.Memory = memoryOf(mem)
	}
	return s, nil
}

func memoryOf(m *memory.Memory) Memory {
	return Memory{Node: m.Node, TextSHA: m.TextSHA, Text: m.Text, Parents: m.Parents, Updated: m.Place.Time}
}

func (r *Reader) keptNotes(ctx context.Context, project string) ([]KeptNote, error) {
	var out []KeptNote
	for key, err := range r.log.RecordKeys(ctx, project, eventlog.Notes) {
		if err != nil {
			return nil, err
		}
		at := project + "/" + string(key)
		n := r.notes[at]
		if n == nil {
			k, err := r.log.Note(ctx, project, key)
			if err != nil {
				return nil, err
			}
			if k == nil {
				continue // of a newer program
			}
			n = &KeptNote{Key: k.Key, Note: *k.Note, TextSHA: k.TextSHA}
			r.notes[at] = n
		}
		out = append(out, *n)
	}
	return out, nil
}

// folded is a stream as the pages need it.
type folded struct {
	head   eventlog.Head
	state  gru.State
	spans  map[memory.SHA][]Cited
	trust  map[memory.SHA]memory.Trust
	at     map[placeKey]memory.SHA // which statement has a place
	memory *memory.Memory
	past   map[memory.SHA]Memory     // by node, without text: what a synthesis may have read
	nodes  map[memory.SHA]memory.SHA // each parent once, as each memory names most of those of the one before
	seen   map[[2]int64]bool         // chunks by admit seq and place, and whether they were kept from
}

// placeKey is a memory.Place that maps compare.
type placeKey struct {
	nanos, admit int64
	i, start     int
}

func keyOf(p memory.Place) placeKey {
	return placeKey{p.Time.UnixNano(), p.Admit, p.I, p.Start}
}

// fold brings a stream up to its end.
func (r *Reader) fold(ctx context.Context, project, stream string) (*folded, error) {
	at := project + "/" + stream
	f := r.streams[at]
	if f == nil {
		f = &folded{spans: map[memory.SHA][]Cited{}, trust: map[memory.SHA]memory.Trust{}, at: map[placeKey]memory.SHA{}, past: map[memory.SHA]Memory{}, nodes: map[memory.SHA]memory.SHA{}, seen: map[[2]int64]bool{}}
	}
	before := len(f.state.Kept) + len(f.past)
	for seg, err := range r.log.Segments(ctx, project, stream, f.head.Seq) {
		if err != nil {
			delete(r.streams, at) // it may hold a part of the segment
			return nil, err
		}
		f.take(seg.Records)
		f.head = eventlog.Head{Seq: seg.Header.Seq, Hash: seg.Hash}
	}
	r.streams[at] = f
	r.held += len(f.state.Kept) + len(f.past) - before
	return f, nil
}

func (f *folded) take(recs []eventlog.Record) {
	f.state = f.state.FoldOn(func(yield func(any) bool) {
		for _, rec := range recs {
			if !yield(rec) {
				return
			}
		}
	})
	for _, rec := range recs {
		switch rec := rec.(type) {
		case *memory.Gate:
			if rec.ReasonCode == "scrubbed" {
				continue // it states anew what was erased, and looked at nothing
			}
			k := [2]int64{rec.Admit, int64(rec.I)}
			f.seen[k] = f.seen[k] || rec.Update
		case *memory.Evidence:
			if rec.Erased != "" {
				continue
			}
			f.at[keyOf(rec.Place)] = rec.Node
			f.trust[rec.Node] = rec.Trust
			f.spans[rec.Node] = append(f.spans[rec.Node], Cited{Place: rec.Place, T: rec.T, Span: rec.Span})
		case *memory.Memory:
			f.memory = rec
			if rec.Erased != "" {
				f.memory = nil
				continue
			}
			was := Memory{Node: rec.Node, TextSHA: rec.TextSHA, Parents: make([]memory.SHA, len(rec.Parents)), Updated: rec.Place.Time}
			for i, n := range rec.Parents {
				if _, ok := f.nodes[n]; !ok {
					f.nodes[n] = n
				}
				was.Parents[i] = f.nodes[n]
			}
			f.past[rec.Node] = was
		}
	}
}

// question is what the stream says, without what its question says.
func (f *folded) question() Question {
	var q Question
	if f.memory != nil {
		q.Memory = memoryOf(f.memory)
	}
	q.ChunksSeen = len(f.seen)
	for _, used := range f.seen {
		if used {
			q.ChunksUsed++
		}
	}
	for _, k := range f.state.Kept {
		spans := f.spans[k.Node]
		if k.Text == "" || len(spans) == 0 {
			continue // erased
		}
		s := Statement{
			Node: k.Node, Text: k.Text, T: k.T, Place: k.Place, Role: k.Role, Trust: f.trust[k.Node], In: k.In,
			Superseded: k.Superseded, Until: k.Until, Spans: slices.Clone(spans),
		}
		if k.Superseded {
			s.By = f.at[keyOf(k.Until)]
		}
		slices.SortFunc(s.Spans, func(a, b Cited) int {
			return cmp.Or(b.Place.Compare(a.Place), cmp.Compare(a.T, b.T))
		})
		q.Statements = append(q.Statements, s)
	}
	return q
}
