package query

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/replay"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Synthesis is the answer of GET /memory/synthesis: what a project's memories come to,
// a line at a time down to the spans.
type Synthesis struct {
	Project  string          `json:"project"`
	Question string          `json:"question"`
	Stream   string          `json:"stream"`
	Run      memory.SHA      `json:"run,omitempty"` // the last completed run; "" where none is
	Policy   string          `json:"policy,omitempty"`
	Model    string          `json:"model,omitempty"`
	Ended    *time.Time      `json:"ended,omitempty"`
	Read     int             `json:"memories_read"`
	Used     int             `json:"memories_used"`
	Tokens   int             `json:"tokens"`
	SHA256   memory.SHA      `json:"sha256,omitempty"` // the L2 node
	Lines    []SynthesisLine `json:"lines"`
	Notice   string          `json:"notice,omitempty"`
}

// SynthesisLine is a sentence of it.
type SynthesisLine struct {
	Text      string     `json:"text"`
	Memories  []LowerRef `json:"memories"`  // L1
	Citations []Citation `json:"citations"` // L0 and the span of each
}

// LowerRef is a memory that a synthesis read.
type LowerRef struct {
	SHA256  memory.SHA `json:"sha256"`
	QueryID string     `json:"query_id"`
}

func (f *Function) synthesis(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Query().Get("project")
	if !memory.ValidName(p) {
		serve.WriteError(w, fault.At(fault.Invalid, "project", "name one project: ?project=shop", "%q is not a project name", p))
		return
	}
	if _, err := f.asked(r); err != nil {
		serve.WriteError(w, err)
		return
	}
	out, err := f.Synthesis(r.Context(), p)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

// Synthesis is the project's synthesis as its last completed run left it; NotFound
// where the project asks for none.
func (f *Function) Synthesis(ctx context.Context, project string) (_ Synthesis, err error) {
	defer fault.Wrap(&err, "synthesis of %s", project)
	st, ok, err := f.cfg.Catalog.Synthesis(ctx, project)
	if err != nil {
		return Synthesis{}, err
	}
	if !ok {
		return Synthesis{}, fault.At(fault.NotFound, "synthesis", "give the project's question file a synthesis (docs/FORMATS.md)", "project %s asks for none", project)
	}
	out := Synthesis{Project: project, Question: st.Question, Stream: st.Name, Lines: []SynthesisLine{}}
	last, ok, err := replay.Synthesis(ctx, f.cfg.Log, project, st.Name)
	switch {
	case err != nil:
		return out, err
	case !ok:
		out.Notice = "no synthesis is made yet: it follows when every standing question has read all that was admitted"
		return out, nil
	}
	out.Run, out.Policy, out.Model, out.Ended = last.Run.Run, last.Run.Policy, last.Run.Model, &last.End.Ended
	out.Read, out.Used = last.End.ChunksSeen, last.End.ChunksUsed
	m := last.Memory
	if m == nil {
		out.Notice = "nothing in the memories answers its question"
		return out, nil
	}
	out.SHA256, out.Tokens = m.Node, m.Tokens
	below, evidence, err := f.under(ctx, m.Parents)
	if err != nil {
		return out, err
	}
	if len(below) < len(m.Parents) {
		out.Notice = "the index is behind the log: some citations are missing"
	}
	for _, line := range memory.Lines(m.Text) {
		out.Lines = append(out.Lines, lineOf(line, below, evidence))
	}
	return out, nil
}

// under reads the memories and the evidence below them: two round trips.
func (f *Function) under(ctx context.Context, parents []memory.SHA) (below, evidence []*index.Node, err error) {
	nodes, err := f.nodes(ctx, parents)
	if err != nil {
		return nil, nil, err
	}
	var leaves []memory.SHA
	for _, p := range parents {
		if n := nodes[p]; n != nil {
			below = append(below, n)
			leaves = append(leaves, n.Parents...)
		}
	}
	slices.Sort(leaves)
	leaves = slices.Compact(leaves)
	if nodes, err = f.nodes(ctx, leaves); err != nil {
		return nil, nil, err
	}
	for _, l := range leaves {
		if n := nodes[l]; n != nil {
			evidence = append(evidence, n)
		}
	}
	return below, evidence, nil
}

func lineOf(line string, below, evidence []*index.Node) SynthesisLine {
	out := SynthesisLine{Text: memory.Fact(line), Memories: []LowerRef{}, Citations: []Citation{}}
	rests := restingOn(line, below, evidence)
	for _, b := range below {
		if slices.ContainsFunc(rests, func(n *index.Node) bool { return slices.Contains(b.Parents, n.ID) }) {
			out.Memories = append(out.Memories, LowerRef{b.ID, b.QueryID})
		}
	}
	var cs []cited
	words := wordSet(out.Text)
	for _, n := range rests {
		cs = append(cs, citations(n)...)
	}
	for _, c := range nearest(cs, words) {
		out.Citations = append(out.Citations, c.Citation)
	}
	return out
}

// restingOn is, of the evidence under a memory, what its text names by source ids: of
// the evidence, of the chunk it was read in, or of a memory below. A line that names
// nothing rests on all of it.
func restingOn(text string, below, evidence []*index.Node) []*index.Node {
	named := map[memory.SHA]bool{}
	for _, line := range memory.Lines(text) {
		ids, found := memory.SourceIDs(line), false
		for _, n := range evidence {
			if slices.ContainsFunc(ids, func(id string) bool { return names(id, n) }) {
				named[n.ID], found = true, true
			}
		}
		for _, b := range below {
			if slices.Contains(ids, b.TextSHA.Short()) {
				found = true
				for _, p := range b.Parents {
					named[p] = true
				}
			}
		}
		if !found {
			return evidence
		}
	}
	return slices.DeleteFunc(slices.Clone(evidence), func(n *index.Node) bool { return !named[n.ID] })
}

// names reports whether a source id is that of a statement, or of a chunk it was read in.
func names(id string, n *index.Node) bool {
	return n.ID.Short() == id || slices.ContainsFunc(n.Occurrences, func(o index.Occurrence) bool { return o.Span.Chunk.Short() == id })
}

// nearest orders citations by the words they share with the question, each span once.
func nearest(cs []cited, words map[string]bool) []cited {
	if len(cs) < 2 {
		return cs
	}
	for i := range cs {
		cs[i].match = matches(words, wordSet(cs[i].Quote))
	}
	slices.SortStableFunc(cs, func(x, y cited) int { return cmp.Compare(y.match, x.match) })
	type span struct {
		object, etag string
		start, end   int64
	}
	seen := map[span]bool{}
	return slices.DeleteFunc(cs, func(c cited) bool {
		k := span{c.Object, c.ETag, c.Start, c.End}
		again := seen[k]
		seen[k] = true
		return again
	})
}
