// Package embed turns the new nodes of a log segment into packed vectors, one
// object for every (space, stream, seq), 0 rows included, before any index
// sees them.
//
// Invariant: vectors are written once and belong to the log bucket, so that a
// rebuild makes no model call. Segments are embedded strictly in order and the
// existence of an object is the only mark of "done". A text that the model has no
// vector for stops nothing: its passage is on record as one without.
//
// The package writes no index and knows no model beyond the Embedder port.
package embed

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/projection"
)

// Config is what the function is given.
type Config struct {
	Tenant   string
	Log      *eventlog.Log
	Embedder llm.Embedder
	Logger   *slog.Logger
	// Budget bounds what a project's calls cost in a day, those of its gate included;
	// nil: nothing does. Tokens counts a text as the server will at the most, and Price is
	// what so many cost, in US dollars.
	Budget func(project string) cost.Budget
	Tokens func(text string) int
	Price  func(tokens int) float64
	Now    func() time.Time
	// Batch is how many passages one Embed call gets; 64 by default, the
	// usual sweet spot of embedding servers.
	Batch int
}

// Function is the embed function.
type Function struct {
	cfg     Config
	pauses  *cost.Pauses
	purses  *cost.Purses
	calls   atomic.Int64
	without atomic.Int64

	mu   sync.Mutex
	done map[string]int64 // project/stream -> last seq with vectors, as far as known
}

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	if cfg.Log == nil || cfg.Embedder == nil {
		return nil, fault.New(fault.Internal, "embed: a dependency is missing")
	}
	if cfg.Batch == 0 {
		cfg.Batch = 64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Budget != nil && (cfg.Tokens == nil || cfg.Price == nil) {
		return nil, fault.New(fault.Internal, "embed: a budget needs a counter and a price")
	}
	f := &Function{cfg: cfg, done: map[string]int64{}, pauses: cost.NewPauses(cfg.Now)}
	f.purses = cost.NewPurses(func(project string) *cost.Ledger {
		var b cost.Budget
		if cfg.Budget != nil {
			b = cfg.Budget(project)
		}
		return cost.Open(cfg.Log, project, b, cfg.Now)
	})
	return f, nil
}

// Name is the function's name in the event table.
func (f *Function) Name() string { return "embed" }

// Calls is how many Embed calls were made since the process started.
func (f *Function) Calls() int64 { return f.calls.Load() }

// Without is how many passages the model had no vector for since the process
// started.
func (f *Function) Without() int64 { return f.without.Load() }

// Paused lists the projects whose budget of the day is spent, as this process knows.
// What waits for vectors meanwhile is found by its words.
func (f *Function) Paused() []cost.Paused { return f.pauses.All() }

// Handle serves run.ended and sweep.requested.
func (f *Function) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	switch event.Type(e.Type()) {
	case event.RunEnded:
		d, err := event.DecodeFor[event.Stream](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.stream(ctx, d.Project, d.Stream)
	case event.SweepRequested:
		if _, err := event.DecodeFor[event.Sweep](e, f.cfg.Tenant); err != nil {
			return nil, err
		}
		return f.sweep(ctx)
	}
	return nil, fault.New(fault.Invalid, "embed does not handle %s", e.Type())
}

// stream embeds every segment of the stream that has no vectors yet.
func (f *Function) stream(ctx context.Context, project, stream string) (_ []ce.Event, err error) {
	defer fault.Wrap(&err, "embed %s/%s", project, stream)
	if _, paused := f.pauses.Of(project); paused {
		return nil, nil // the sweep after its end asks again
	}
	space := f.cfg.Embedder.Space().ID
	done, err := f.last(ctx, project, stream)
	if err != nil {
		return nil, err
	}
	scrub, err := f.cfg.Log.ScrubState(ctx, project)
	if err != nil {
		return nil, err
	}
	start := done
	var bad refused
	defer func() { bad.log(ctx, f.cfg.Logger, project, stream, space) }()
	for seg, err := range f.cfg.Log.Segments(ctx, project, stream, done) {
		if err != nil {
			return nil, err
		}
		v, why, err := f.vectors(ctx, project, &seg)
		if errors.Is(err, cost.ErrSpent) {
			p := f.pauses.Set(project, err, fault.RetryAfterOf(err))
			f.cfg.Logger.WarnContext(ctx, "the project pauses", slog.String("project", project), slog.Time("until", p.Until), slog.Any("err", err))
			break
		}
		if err != nil {
			return nil, err
		}
		if err := f.cfg.Log.PutVectors(ctx, project, space, stream, seg.Header.Seq, v); err != nil {
			return nil, err
		}
		done = seg.Header.Seq
		f.remember(project, stream, done)
		f.without.Add(int64(len(v.Without)))
		bad.add(len(v.Without), len(v.Passages), why)
	}
	if done == start {
		return nil, nil
	}
	if err := f.prune(ctx, project, stream, scrub, start, done); err != nil {
		return nil, err
	}
	return []ce.Event{event.New(event.VectorsReady, f.Name(), event.Segment{
		Tenant: f.cfg.Tenant, Project: project, Stream: stream, Seq: done, Space: space,
	})}, nil
}

// prune takes back the vectors of what was erased while it was embedded: the
// scrub looked for them before they stood.
func (f *Function) prune(ctx context.Context, project, stream, scrub string, after, to int64) error {
	now, err := f.cfg.Log.ScrubState(ctx, project)
	if err != nil || now == scrub {
		return err
	}
	for seq := after + 1; seq <= to; seq++ {
		seg, err := f.cfg.Log.Segment(ctx, project, stream, seq)
		if err != nil {
			return err
		}
		stated := projection.Stated(&seg)
		if _, err := f.cfg.Log.DropVectors(ctx, project, f.cfg.Embedder.Space().ID, stream, seq, func(p memory.SHA) bool { return stated[p] }); err != nil {
			return err
		}
	}
	return nil
}

// refused counts, over the segments of one delivery, the passages without a
// vector.
type refused struct {
	without, of int
	first       error
}

func (r *refused) add(without, with int, why error) {
	r.without, r.of = r.without+without, r.of+without+with
	if r.first == nil {
		r.first = why
	}
}

// log says it once a delivery; an error of the model names no text.
func (r *refused) log(ctx context.Context, l *slog.Logger, project, stream, space string) {
	if r.without > 0 {
		l.WarnContext(ctx, "passages without a vector", slog.String("project", project), slog.String("stream", stream), slog.String("space", space),
			slog.Int("without", r.without), slog.Int("of", r.of), slog.Any("err", r.first))
	}
}

// vectors embeds the passages that the segment states, each once, but for
// memories that it replaces again. why is the error of the first that has none.
func (f *Function) vectors(ctx context.Context, project string, seg *eventlog.Segment) (_ eventlog.Vectors, why, _ error) {
	space := f.cfg.Embedder.Space()
	v := eventlog.Vectors{Dims: space.Dims}
	var ids []memory.SHA
	var texts []string
	seen := map[memory.SHA]bool{}
	nodes := projection.Nodes(seg, nil)
	current := index.Succession(nodes)
	for i := range nodes {
		if now, isMemory := current[nodes[i].ID]; isMemory && !now {
			continue // stated and replaced within the segment: no search will see it
		}
		for _, p := range index.PassagesOf(&nodes[i]) {
			if !seen[p.ID] {
				seen[p.ID] = true
				ids = append(ids, p.ID)
				texts = append(texts, p.Embed)
			}
		}
	}
	v.Rows = make([]float32, 0, len(texts)*v.Dims)
	for len(texts) > 0 {
		n := min(len(texts), f.cfg.Batch)
		if err := f.reserve(ctx, project, texts[:n]); err != nil {
			return v, nil, err
		}
		rows, err := f.cfg.Embedder.Embed(ctx, texts[:n])
		bad, partly := errors.AsType[*embedding.BadTexts](err)
		if err != nil && !partly {
			return v, nil, &modelError{err}
		}
		f.calls.Add(1)
		if partly {
			rows = bad.Vectors
			if why == nil {
				why = bad.Err
			}
		}
		if len(rows) != n {
			return v, nil, &modelError{fault.New(fault.Unavailable, "the embedder gave %d vectors for %d texts", len(rows), n)}
		}
		for i, r := range rows {
			switch {
			case partly && slices.Contains(bad.Index, i):
				v.Without = append(v.Without, ids[i])
				continue
			case len(r) != v.Dims:
				return v, nil, &modelError{fault.At(fault.Corrupt, "model "+space.Model, "vectors of another size are another space: set the dimensions anew and let it be filled",
					"the embedder gave %d dimensions, its space has %d", len(r), v.Dims)}
			}
			v.Passages = append(v.Passages, ids[i])
			v.Rows = append(v.Rows, r...)
		}
		ids, texts = ids[n:], texts[n:]
	}
	return v, why, nil
}

// reserve takes what the vectors of texts may cost. It is not settled: the server says
// nothing of what it counted, and a text that is in the cache costs less.
func (f *Function) reserve(ctx context.Context, project string, texts []string) error {
	if f.cfg.Budget == nil {
		return nil
	}
	n := 0
	for _, t := range texts {
		n += f.cfg.Tokens(t)
	}
	return f.purses.Of(project).Reserve(ctx, cost.Amount{USD: f.cfg.Price(n), Tokens: int64(n), Calls: 1})
}

// last is the stream's last segment with vectors.
func (f *Function) last(ctx context.Context, project, stream string) (int64, error) {
	f.mu.Lock()
	seq, ok := f.done[project+"/"+stream]
	f.mu.Unlock()
	if ok {
		return seq, nil
	}
	seq, err := f.cfg.Log.VectorsHead(ctx, project, f.cfg.Embedder.Space().ID, stream)
	if err != nil {
		return 0, err
	}
	f.remember(project, stream, seq)
	return seq, nil
}

func (f *Function) remember(project, stream string, seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := project + "/" + stream
	f.done[key] = max(f.done[key], seq)
}

// behind lists the streams with segments that have no vectors.
func (f *Function) behind(ctx context.Context) ([][2]string, error) {
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var out [][2]string
	for _, p := range projects {
		if _, paused := f.pauses.Of(p); paused {
			continue
		}
		streams, err := f.cfg.Log.Streams(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			done, err := f.last(ctx, p, s)
			if err != nil {
				return nil, err
			}
			head, err := f.cfg.Log.Head(ctx, p, s)
			if err != nil {
				return nil, err
			}
			if head.Seq > done {
				out = append(out, [2]string{p, s})
			}
		}
	}
	return out, nil
}

// Behind counts the streams that a sweep would embed.
func (f *Function) Behind(ctx context.Context) (int, error) {
	b, err := f.behind(ctx)
	return len(b), err
}

// modelError is an error of the embedder: the log is well.
type modelError struct{ err error }

func (e *modelError) Error() string { return e.err.Error() }
func (e *modelError) Unwrap() error { return e.err }

// sweepers is how many streams a sweep embeds side by side.
const sweepers = 2

// sweep embeds what no event announced. One stream that cannot be embedded does
// not hold up the others; the first error brings the sweep back. A model that is
// down or wrong does not: the next sweep asks it again, the stream stays behind for
// all to see, and its own event is delivered again or is the dead letter, once,
// where each sweep of a long night would be another.
func (f *Function) sweep(ctx context.Context) ([]ce.Event, error) {
	behind, err := f.behind(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var out []ce.Event
	var g errgroup.Group
	g.SetLimit(sweepers)
	for _, b := range behind {
		g.Go(func() error {
			es, err := f.stream(ctx, b[0], b[1])
			if _, ok := errors.AsType[*modelError](err); ok && ctx.Err() == nil {
				f.cfg.Logger.WarnContext(ctx, "stream not embedded; the next sweep tries again", slog.String("project", b[0]), slog.String("stream", b[1]), slog.Any("err", err))
				err = nil
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, es...)
			return err
		})
	}
	return out, g.Wait()
}
