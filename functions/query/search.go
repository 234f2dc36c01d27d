package query

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

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
func (f *Function) search(ctx context.Context, a *Answer, text string, filter index.Filter, q *Request, serving map[string]bool, collapse bool) error {
	space := f.cfg.Embedder.Space()
	raw := slices.Equal(filter.Levels, []memory.Level{memory.LevelRaw})
	opt := rank.Options{
		DenseWeight: space.DenseWeight, LexicalWeight: 1 - space.DenseWeight,
		FloorCosine: space.Floor, FloorIDF: f.cfg.FloorIDF,
	}
	which := both
	if raw || lexicalOnly(text) {
		which = wordsAlone
	}
	if w := q.DenseWeight; w != nil {
		opt.DenseWeight, opt.LexicalWeight = *w, 1-*w
		switch {
		case *w == 0:
			which = wordsAlone
		case *w == 1 && !raw:
			which = meaningAlone
		}
	}
	dense, lexical, err := f.legs(ctx, a, text, filter, which, &opt)
	if err != nil {
		return err
	}
	ids := make([]memory.SHA, 0, len(dense)+len(lexical))
	for _, s := range dense {
		ids = append(ids, s.ID)
	}
	for _, s := range lexical {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil
	}
	nodes, err := f.succession(ctx, ids, filter, serving, &opt)
	if err != nil {
		return err
	}
	fused := rank.Fuse(dense, lexical, opt)
	return f.fill(ctx, a, text, fused, nodes, q.Limit, serving, collapse, !raw)
}

// maxSuccession is how many replacements of replacements are followed: each is a round
// trip, and a decision that was changed more often is shown with the eighth change.
const maxSuccession = 8

// succession reads what was found, and who replaces it over any number of steps, into
// opt.Superseded. A replacement that was not said in the time asked for is left out: an
// answer of then neither holds nor hints at what came later.
func (f *Function) succession(ctx context.Context, ids []memory.SHA, filter index.Filter, serving map[string]bool, opt *rank.Options) (map[memory.SHA]*index.Node, error) {
	opt.Superseded = map[memory.SHA][]memory.SHA{}
	nodes := map[memory.SHA]*index.Node{}
	for range maxSuccession {
		var next []memory.SHA
		more, err := f.cfg.Graph.Superseded(ctx, f.cfg.Tenant, ids)
		if err != nil {
			return nil, err
		}
		for id, by := range more {
			opt.Superseded[id] = by
			next = append(next, by...)
		}
		read, err := f.nodes(ctx, append(ids, next...))
		if err != nil {
			return nil, err
		}
		maps.Copy(nodes, read)
		slices.Sort(next)
		ids = slices.DeleteFunc(slices.Compact(next), func(id memory.SHA) bool { return opt.Superseded[id] != nil })
		if len(ids) == 0 {
			break
		}
	}
	if filter.Timed() {
		within(opt.Superseded, nodes, filter)
	}
	everywhere(opt.Superseded, nodes, serving)
	return nodes, nil
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
// deadline; one that fails is named in the answer and the other decides alone.
func (f *Function) legs(ctx context.Context, a *Answer, text string, filter index.Filter, which legs, opt *rank.Options) (dense, lexical []rank.Scored, err error) {
	var dhits, lhits []index.Hit
	var derr, lerr error
	var g errgroup.Group
	if which == wordsAlone {
		opt.LexicalOnly = true
	} else {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, f.cfg.LegTimeout)
			defer cancel()
			var v [][]float32
			if v, derr = f.cfg.Embedder.Embed(ctx, []string{text}); derr == nil {
				dhits, derr = f.cfg.Graph.SearchDense(ctx, f.cfg.Embedder.Space().ID, v[0], filter, candidates)
			}
			return nil
		})
	}
	if opt.DenseOnly = which == meaningAlone; !opt.DenseOnly {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, f.cfg.LegTimeout)
			defer cancel()
			lhits, lerr = f.cfg.Lexical.Search(ctx, text, filter, candidates)
			return nil
		})
	}
	_ = g.Wait() // both report through their own error
	if err := ctx.Err(); err != nil {
		return nil, nil, fault.As(fault.Unavailable, err)
	}
	if derr != nil && (lerr != nil || which == meaningAlone) {
		return nil, nil, fault.As(fault.Unavailable, derr)
	}
	if derr != nil {
		opt.DenseFailed = true
		a.Degraded = append(a.Degraded, "semantic")
		f.cfg.Logger.WarnContext(ctx, "semantic leg left out", slog.Any("err", derr))
	}
	if lerr != nil {
		opt.LexicalFailed = true
		a.Degraded = append(a.Degraded, "lexical")
		f.cfg.Logger.WarnContext(ctx, "lexical leg left out", slog.Any("err", lerr))
	}
	for _, h := range dhits {
		dense = append(dense, rank.Scored{ID: h.Node, Score: h.Score})
	}
	for _, h := range lhits {
		lexical = append(lexical, rank.Scored{ID: h.Node, Score: h.Score, Max: h.Max, IDFShare: h.IDFShare})
	}
	return dense, lexical, nil
}
