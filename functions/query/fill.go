package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/rank"
)

// fill turns ranked ids into results: at most one round trip, whatever their number, and
// one to the reranker before it. Where they are fewer than the limit and not all rows
// were read, it gives none.
func (r *asking) fill(ctx context.Context, fused []*rank.Fused, opt *rank.Options, nodes map[memory.SHA]*index.Node, filter index.Filter, collapse, rerank, all bool) error {
	var err error
	type words struct {
		level memory.Level
		text  memory.SHA
	}
	rerank = rerank && r.cfg.Reranker != nil
	most := r.q.Limit
	if rerank { // it looks at more than are shown
		most = len(fused)
	}
	keep := make([]rank.Fused, 0, min(most, len(fused)))
	also := map[memory.SHA][]string{}
	first := make(map[words]memory.SHA, len(nodes))
	same := map[memory.SHA]memory.SHA{} // a repeat, and who stands for it
	for _, h := range fused {
		n := nodes[h.ID]
		if n == nil || !r.serving[n.Project+"/"+n.Stream] || collapse && restsOn(n, nodes) {
			continue
		}
		// What replaces a result is named there; where it was said elsewhere it is no
		// answer of these objects.
		if len(filter.Sources) > 0 && !filter.Seen(n.Occurrences) {
			continue
		}
		// The same words under several questions, or in several projects, are one answer.
		key := words{n.Level, n.TextSHA}
		if id, ok := first[key]; ok {
			name := n.QueryID
			if n.Project != nodes[id].Project {
				name = n.Project + "/" + name
			}
			also[id] = append(also[id], name)
			same[h.ID] = id
			continue
		}
		if len(keep) == most { // of those that are shown, more questions may keep the words
			continue
		}
		first[key] = h.ID
		keep = append(keep, *h)
	}
	if len(keep) < r.q.Limit && !all {
		return nil // with more rows
	}
	rank.Explain(keep, opt)
	if rerank {
		if keep, err = r.rerank(ctx, keep, nodes, same); err != nil {
			return err
		}
	}
	keep = keep[:min(len(keep), r.q.Limit)]
	walk, sources, err := r.below(ctx, keep, nodes)
	if err != nil {
		return err
	}
	question := wordSet(r.text)
	r.a.Results = slices.Grow(r.a.Results, len(keep))
	for _, h := range keep {
		n := nodes[h.ID]
		res := Result{
			SHA256: n.ID, Level: n.Level, Project: n.Project, QueryID: n.QueryID, Text: n.Text,
			Score: h.Score, Reason: h.Reason, T: n.T, Role: n.Role, Trust: n.Trust, Kept: n.Level != memory.LevelRaw,
			Time: n.SourceTime, SupersededBy: h.SupersededBy, AlsoIn: also[h.ID],
			Components: Components{
				Lexical: h.Lexical, Semantic: h.Dense, LexicalWeight: h.LexicalWeight, SemanticWeight: h.DenseWeight,
				Cosine: h.Cosine, BM25: h.BM25, IDFShare: h.IDFShare,
			},
		}
		if h.Reranked {
			res.Components.Rerank = &h.Rerank
		}
		if n.Level == memory.LevelRaw {
			res.QueryID = ""
			res.Reason = "seen, not kept: " + res.Reason
			res.Text = ""
		}
		var cs []cited
		for _, src := range citedBy(n, walk[h.ID], sources) {
			cs = append(cs, citations(src)...)
		}
		cs = nearest(cs, question)
		most := maxCitations
		if n.Level == memory.LevelRaw {
			most = 3 // the paragraphs that hold the words, not the whole chunk
		}
		res.Citations = make([]Citation, 0, min(len(cs), most))
		for i, c := range cs {
			if i == most {
				break
			}
			res.Citations = append(res.Citations, c.Citation)
		}
		if n.Level == memory.LevelRaw && len(cs) > 0 {
			res.Text = cs[0].Quote
		}
		r.a.Results = append(r.a.Results, res)
	}
	return nil
}

// below is what the results cite. Evidence and raw text cite themselves, and are read
// already; while the graph is away a memory is shown without what it rests on.
func (r *asking) below(ctx context.Context, keep []rank.Fused, nodes map[memory.SHA]*index.Node) (walk map[memory.SHA][]memory.SHA, sources map[memory.SHA]*index.Node, err error) {
	var tops []memory.SHA
	for _, h := range keep {
		if l := nodes[h.ID].Level; l == memory.L1 || l == memory.L2 {
			tops = append(tops, h.ID)
		}
	}
	walk, sources = map[memory.SHA][]memory.SHA{}, map[memory.SHA]*index.Node{}
	if len(tops) > 0 && !r.without("graph") {
		var rows []index.Node
		err := r.graph.do(ctx, func(ctx context.Context) (err error) {
			walk, rows, err = r.cfg.Graph.Below(ctx, r.cfg.Tenant, tops)
			return err
		})
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil, fault.As(fault.Unavailable, err)
			}
			r.degrade(ctx, "graph", fault.As(fault.Unavailable, fmt.Errorf("memories are without citations: %w", err)))
			walk = map[memory.SHA][]memory.SHA{}
		}
		sources = byID(rows)
	}
	for _, h := range keep {
		if n := nodes[h.ID]; n.Level == memory.L0 || n.Level == memory.LevelRaw {
			walk[h.ID], sources[h.ID] = []memory.SHA{h.ID}, n
		}
	}
	return walk, sources, nil
}

// citedBy is the evidence that a result cites: of what a memory rests on, what its text
// names.
func citedBy(n *index.Node, walk []memory.SHA, sources map[memory.SHA]*index.Node) []*index.Node {
	var evidence, below []*index.Node
	for _, id := range walk {
		if src := sources[id]; src != nil {
			evidence = append(evidence, src)
		}
	}
	switch n.Level {
	case memory.L2:
		for _, p := range n.Parents {
			if src := sources[p]; src != nil {
				below = append(below, src)
			}
		}
	case memory.L1:
	default:
		return evidence
	}
	return restingOn(n.Text, below, evidence)
}

// restsOn reports whether a memory rests on evidence that was found too. Where
// no level is asked for, the evidence answers: it is the exact sentence with
// its own citation, and the memory that holds it would only say it again.
func restsOn(n *index.Node, found map[memory.SHA]*index.Node) bool {
	for _, p := range n.Parents {
		if found[p] != nil {
			return true
		}
	}
	return false
}

func (f *Function) nodes(ctx context.Context, ids []memory.SHA) (map[memory.SHA]*index.Node, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := f.cfg.Graph.Nodes(ctx, f.cfg.Tenant, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[memory.SHA]*index.Node, len(rows))
	for i := range rows {
		out[rows[i].ID] = &rows[i]
	}
	return out, nil
}

// cited is a citation and how many of the question's words its quote holds.
type cited struct {
	Citation
	match int
}

func citations(n *index.Node) []cited {
	out := make([]cited, 0, len(n.Occurrences))
	for _, o := range n.Occurrences {
		quote := o.Quote
		if quote == "" && o.Span.ChunkEnd <= len(n.Text) { // raw rows: the chunk's own text
			quote = n.Text[o.Span.ChunkStart:o.Span.ChunkEnd]
		}
		c := cited{Citation: Citation{
			Object: o.Span.Object, ETag: o.Span.ETag, Start: o.Span.Start, End: o.Span.End, Codec: o.Span.Codec,
			SHA256: o.Span.SHA256, HMAC: o.Span.HMAC, Redacted: o.Span.Redacted, Chunk: o.Span.Chunk,
			ChunkStart: o.Span.ChunkStart, ChunkEnd: o.Span.ChunkEnd, Quote: quote, Node: n.ID, Role: o.Role,
		}}
		if !o.Place.Time.IsZero() {
			t := o.Place.Time
			c.Time = &t
		}
		out = append(out, c)
	}
	return out
}

// matches counts the question's words that stand in a quote, in any of their
// forms: "caching" and "cache", "retry" and "retries".
func matches(question, quote map[string]bool) int {
	n := 0
	for q := range question {
		found := quote[q]
		for w := range quote {
			found = found || sameStem(q, w)
		}
		if found {
			n++
		}
	}
	return n
}

// sameStem compares what two words begin with: at least four letters, and three
// quarters of the shorter one. It orders citations and decides nothing else.
func sameStem(a, b string) bool {
	short := min(len(a), len(b))
	n := 0
	for n < short && a[n] == b[n] {
		n++
	}
	return n >= 4 && 4*n >= 3*short
}

// wordSet is the lower-case words of a text, for ordering citations only.
func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !(r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127)
	}) {
		if len(w) > 2 {
			out[w] = true
		}
	}
	return out
}
