package query

import (
	"context"
	"log/slog"
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
func (f *Function) search(ctx context.Context, a *Answer, text string, filter index.Filter, limit int, serving map[string]bool, collapse bool) error {
	space := f.cfg.Embedder.Space()
	raw := slices.Equal(filter.Levels, []memory.Level{memory.LevelRaw})
	opt := rank.Options{
		DenseWeight: space.DenseWeight, LexicalWeight: 1 - space.DenseWeight,
		FloorCosine: space.Floor, FloorIDF: f.cfg.FloorIDF,
	}
	dense, lexical, err := f.legs(ctx, a, text, filter, raw || lexicalOnly(text), &opt)
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
	if opt.Superseded, err = f.cfg.Graph.Superseded(ctx, f.cfg.Tenant, ids); err != nil {
		return err
	}
	if err := f.within(ctx, opt.Superseded, filter); err != nil {
		return err
	}
	fused := rank.Fuse(dense, lexical, opt)
	return f.fill(ctx, a, text, fused, limit, serving, collapse, !raw)
}

// within takes out of superseded the replacements that were not said in the time
// asked for: an answer of then neither holds nor hints at what came later.
func (f *Function) within(ctx context.Context, superseded map[memory.SHA][]memory.SHA, filter index.Filter) error {
	if !filter.Timed() || len(superseded) == 0 {
		return nil
	}
	var ids []memory.SHA
	for _, by := range superseded {
		ids = append(ids, by...)
	}
	slices.Sort(ids)
	nodes, err := f.nodes(ctx, slices.Compact(ids))
	if err != nil {
		return err
	}
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
	return nil
}

// legs runs the dense and the lexical search side by side, each with its own
// deadline; one that fails is named in the answer and the other decides alone.
func (f *Function) legs(ctx context.Context, a *Answer, text string, filter index.Filter, lexOnly bool, opt *rank.Options) (dense, lexical []rank.Scored, err error) {
	var dhits, lhits []index.Hit
	var derr, lerr error
	var g errgroup.Group
	if lexOnly {
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
	g.Go(func() error {
		ctx, cancel := context.WithTimeout(ctx, f.cfg.LegTimeout)
		defer cancel()
		lhits, lerr = f.cfg.Lexical.Search(ctx, text, filter, candidates)
		return nil
	})
	_ = g.Wait() // both report through their own error
	if err := ctx.Err(); err != nil {
		return nil, nil, fault.As(fault.Unavailable, err)
	}
	if derr != nil && lerr != nil {
		return nil, nil, fault.As(fault.Unavailable, lerr)
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
