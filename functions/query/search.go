package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/rank"
	"golang.org/x/sync/errgroup"
)

// lexicalOnly is the routing of brief U2: fewer than three words name things
// rather than describe them.
func lexicalOnly(q string) bool { return len(strings.Fields(q)) < 3 }

// search runs both legs side by side, fuses, and fills results.
func (r *asking) search(ctx context.Context, filter index.Filter, collapse bool) error {
	space := r.face.space
	raw := slices.Equal(filter.Levels, []memory.Level{memory.LevelRaw})
	opt := rank.Options{
		DenseWeight: space.DenseWeight, LexicalWeight: 1 - space.DenseWeight,
		FloorCosine: space.Floor, FloorIDF: r.face.floorIDF, NoFloor: r.q.NoFloor,
	}
	which := both
	if raw || lexicalOnly(r.text) {
		which = wordsAlone
	}
	if w := r.q.DenseWeight; w != nil {
		opt.DenseWeight, opt.LexicalWeight = *w, 1-*w
		switch {
		case *w == 0:
			which = wordsAlone
		case *w == 1 && !raw:
			which = meaningAlone
		}
	}
	dense, lexical, err := r.legs(ctx, filter, which, raw || r.q.DenseWeight != nil, &opt)
	if err != nil {
		return err
	}
	if err := r.known(); err != nil {
		return err
	}
	found := rank.Find(scored(dense), scored(lexical), &opt)
	ids := found.IDs()
	if len(ids) == 0 {
		return nil
	}
	// Most answers come from the best of them; the rest is read where several questions
	// keep the same words, so that these were too few.
	before := len(r.a.Results)
	n := min(len(ids), max(readPerResult*r.q.Limit, candidates/2))
	if r.cfg.Reranker != nil {
		n = len(ids) // it looks at more than are shown
	}
	for ; ; n = len(ids) {
		nodes, err := r.rows(ctx, ids[:n], lexical, filter, &opt)
		if err != nil {
			return err
		}
		if found == nil || opt.DenseFailed { // a second time, or by words alone after all
			found = rank.Find(scored(dense), scored(lexical), &opt)
		}
		fused := found.Fuse(&opt)
		found = nil
		if err := r.fill(ctx, fused, &opt, nodes, filter, collapse, !raw, n == len(ids)); err != nil {
			return err
		}
		if n == len(ids) || len(r.a.Results)-before >= r.q.Limit {
			return nil
		}
	}
}

// readPerResult is how many rows are read for each result at first: a statement is kept
// by up to three questions as a rule.
const readPerResult = 3

func scored(hits []index.Hit) []rank.Scored {
	out := make([]rank.Scored, len(hits))
	for i, h := range hits {
		out[i] = rank.Scored{ID: h.Node, Score: h.Score, Max: h.Max, IDFShare: h.IDFShare}
	}
	return out
}

// maxSuccession is how many replacements of replacements are followed: a decision that was
// changed more often is shown with the eighth change.
const maxSuccession = 8

// rows reads what was found, and who replaces it, into opt. While the graph does not
// answer the lexical index says what it found itself; what was replaced is not known then.
func (r *asking) rows(ctx context.Context, ids []memory.SHA, lexical []index.Hit, filter index.Filter, opt *rank.Options) (map[memory.SHA]*index.Node, error) {
	var found []index.Node
	err := r.graph.do(ctx, func(ctx context.Context) (err error) {
		found, err = r.cfg.Graph.Succession(ctx, r.cfg.Tenant, ids, maxSuccession)
		return err
	})
	reader, reads := r.cfg.Lexical.(index.Reader)
	if err == nil || ctx.Err() != nil || !reads || len(lexical) == 0 {
		if err != nil {
			return nil, fault.As(kindOf(err), err)
		}
		nodes := byID(found)
		opt.Superseded = succession(found, nodes, filter, r.serving)
		opt.Amended = amendments(opt.Superseded, nodes)
		return nodes, nil
	}
	passages := make([]memory.SHA, len(lexical))
	for i, h := range lexical {
		passages[i] = h.Passage
	}
	e := r.lexical.do(ctx, func(ctx context.Context) (err error) {
		found, err = reader.Read(ctx, r.cfg.Tenant, passages)
		return err
	})
	if e != nil {
		return nil, neither(err, e)
	}
	opt.DenseFailed = true
	r.degrade(ctx, "graph", fault.As(fault.Unavailable, fmt.Errorf("what was replaced meanwhile is not known, and memories are without citations: %w", err)))
	return byID(found), nil
}

func byID(rows []index.Node) map[memory.SHA]*index.Node {
	out := make(map[memory.SHA]*index.Node, len(rows))
	for i := range rows {
		out[rows[i].ID] = &rows[i]
	}
	return out
}

// succession is who replaces what was found. A replacement that was not said in the time
// asked for is left out: an answer of then neither holds nor hints at what came later.
func succession(found []index.Node, nodes map[memory.SHA]*index.Node, filter index.Filter, serving map[string]bool) map[memory.SHA][]memory.SHA {
	superseded := index.Superseders(found)
	if filter.Timed() {
		within(superseded, nodes, filter)
	}
	everywhere(superseded, nodes, serving)
	return superseded
}

// amendments are, for each statement that was found, the newer ones that replace something
// else of the same chunk, and for the chunk's text itself those that replace anything of
// it: what its conversation decided is no longer true. See rank.Amendment.
func amendments(superseded map[memory.SHA][]memory.SHA, nodes map[memory.SHA]*index.Node) (out []rank.Amendment) {
	replaced := map[memory.SHA][]memory.SHA{} // by chunk
	for id := range superseded {
		if n := nodes[id]; n != nil && n.Level == memory.L0 {
			for _, o := range n.Occurrences {
				replaced[o.Span.Chunk] = append(replaced[o.Span.Chunk], id)
			}
		}
	}
	stands := func(n *index.Node, chunk memory.SHA) bool {
		return slices.ContainsFunc(n.Occurrences, func(o index.Occurrence) bool { return o.Span.Chunk == chunk })
	}
	for id, n := range nodes {
		if n.Level != memory.L0 && n.Level != memory.LevelRaw || len(superseded[id]) > 0 {
			continue
		}
		for _, o := range n.Occurrences {
			for _, through := range replaced[o.Span.Chunk] {
				for _, by := range superseded[through] {
					if b := nodes[by]; b != nil && b != n && index.Newer(b, n) && !stands(b, o.Span.Chunk) {
						out = append(out, rank.Amendment{Of: id, Through: through, By: by, Whole: n.Level == memory.LevelRaw})
					}
				}
			}
		}
	}
	return out
}

// within takes out the replacements that were not said in the time asked for.
func within(superseded map[memory.SHA][]memory.SHA, nodes map[memory.SHA]*index.Node, filter index.Filter) {
	from, to := filter.Range()
	for id, by := range superseded {
		superseded[id] = slices.DeleteFunc(by, func(by memory.SHA) bool {
			n := nodes[by]
			return n == nil || !slices.ContainsFunc(n.Occurrences, func(o index.Occurrence) bool {
				at := index.Nano(o.Place.Time)
				return at >= from && at < to
			})
		})
		if len(superseded[id]) == 0 {
			delete(superseded, id)
		}
	}
}

// everywhere says of a sentence that several questions keep what one of them knows: it
// is replaced in all of them. A question whose topic the replacement is not would
// otherwise answer with the old one.
func everywhere(superseded map[memory.SHA][]memory.SHA, nodes map[memory.SHA]*index.Node, serving map[string]bool) {
	type sentence struct {
		project string
		text    memory.SHA
	}
	known := map[sentence][]memory.SHA{}
	evidence := func(n *index.Node) bool {
		return n != nil && n.Level == memory.L0 && serving[n.Project+"/"+n.Stream]
	}
	for id, by := range superseded {
		if n := nodes[id]; evidence(n) {
			s := sentence{n.Project, n.TextSHA}
			known[s] = append(known[s], by...)
		}
	}
	for id, n := range nodes {
		if !evidence(n) {
			continue
		}
		for _, by := range known[sentence{n.Project, n.TextSHA}] {
			said := func(other memory.SHA) bool { return nodes[other] != nil && nodes[other].TextSHA == nodes[by].TextSHA }
			if nodes[by] != nil && index.Newer(nodes[by], n) && !slices.ContainsFunc(superseded[id], said) {
				superseded[id] = append(superseded[id], by)
			}
		}
	}
}

// Which legs a question asks.
type legs int

const (
	both legs = iota
	wordsAlone
	meaningAlone
)

// legs runs the dense and the lexical search side by side, each with its own
// deadline; one that fails is named in the answer and the other decides alone. Where
// only is false, a question of words alone may be answered by meaning.
func (r *asking) legs(ctx context.Context, filter index.Filter, which legs, only bool, opt *rank.Options) (dense, lexical []index.Hit, err error) {
	var derr, lerr error
	var near atomic.Bool // the dense search has ended
	meaning := func() error {
		defer near.Store(true)
		dense, derr = r.meaning(ctx, filter)
		return nil
	}
	words := func() error {
		if lerr = r.mayAsk(ctx); lerr != nil {
			return nil
		}
		lerr = r.lexical.do(ctx, func(ctx context.Context) (err error) {
			lexical, err = r.cfg.Lexical.Search(ctx, r.text, filter, candidates)
			return err
		})
		return nil
	}
	var g errgroup.Group
	if which != wordsAlone {
		g.Go(meaning)
	}
	if which != meaningAlone {
		_ = words()
		r.prepare(ctx, lexical, &near)
	}
	_ = g.Wait() // both report through their own error
	if which == wordsAlone && lerr != nil && !only {
		which = both
		_ = meaning()
	}
	opt.LexicalOnly, opt.DenseOnly = which == wordsAlone, which == meaningAlone
	if err := ctx.Err(); err != nil {
		return nil, nil, fault.As(fault.Unavailable, err)
	}
	if derr != nil && (lerr != nil || which == meaningAlone) || lerr != nil && which == wordsAlone {
		return nil, nil, neither(derr, lerr)
	}
	if derr != nil {
		opt.DenseFailed = true
		r.degrade(ctx, "semantic", derr)
	}
	if lerr != nil {
		opt.LexicalFailed = true
		r.degrade(ctx, "lexical", lerr)
	}
	return dense, lexical, nil
}

// prepare has the rows of what the words found read while the dense search goes on.
func (r *asking) prepare(ctx context.Context, lexical []index.Hit, near *atomic.Bool) {
	graph, ok := r.cfg.Graph.(index.Preparer)
	if !ok || near.Load() || len(lexical) == 0 {
		return
	}
	lexical = lexical[:min(len(lexical), readPerResult*r.q.Limit/2)]
	ids := make([]memory.SHA, len(lexical))
	for i, h := range lexical {
		ids[i] = h.Node
	}
	graph.Prepare(ctx, r.cfg.Tenant, ids)
}

// mayAsk refuses the lexical leg to who must have a token of its own and has none.
func (r *asking) mayAsk(ctx context.Context) error {
	if r.cfg.Caller != nil && index.Bearer(ctx) == "" {
		return fault.At(fault.Denied, "the lexical index", "send your own token for its cluster", "it decides by the caller's token, and there is none")
	}
	return nil
}

// meaning is the dense search: the question's vector, and what is near it.
func (r *asking) meaning(ctx context.Context, filter index.Filter) (hits []index.Hit, err error) {
	err = r.dense.do(ctx, func(ctx context.Context) error {
		v, err := r.face.embedder.Embed(ctx, []string{r.text})
		if err != nil {
			return err
		}
		if len(v) != 1 {
			return fault.New(fault.Internal, "%d vectors for a question", len(v))
		}
		hits, err = r.cfg.Graph.SearchDense(ctx, r.face.space.ID, v[0], filter, candidates)
		return err
	})
	return hits, err
}
