// Package embed turns the new nodes of a log segment into packed vectors, one
// object for every (space, stream, seq), 0 rows included, before any index
// sees them. Several spaces live side by side (shared/space): what serves and what
// served get new text as it comes; a space that is being filled is brought up to the log
// by slices of wall time, each an event that continues (fill.go).
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
	"github.com/mneme-ai/mneme/shared/space"
)

// Config is what the function is given.
type Config struct {
	Tenant string
	Log    *eventlog.Log
	Logger *slog.Logger
	// Spaces are the embedding spaces beside each other; nil: that of Embedder alone.
	Spaces   Spaces
	Embedder llm.Embedder
	// Publish sends what a route starts; nil: the next sweep finds it.
	Publish func(ctx context.Context, es ...ce.Event) error
	// Slice is how long one event fills a space before another continues; 2 s by default,
	// so that new text waits no longer.
	Slice time.Duration
	// Retention is how long a space that served is kept; space.Retention by default.
	Retention time.Duration
	// Budget bounds what a project's calls cost in a day, those of its gate included;
	// nil: nothing does. Tokens counts a text as the server will at the most, and Price is
	// what so many cost, in US dollars.
	Budget func(project string) cost.Budget
	Tokens func(text string) int
	Price  func(model string, tokens int) float64
	Free   func(s memory.Space) bool // spaces whose vectors cost nothing; nil: none
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
	done map[string]int64 // key of the space, project/stream -> last seq with vectors, as far as known
	said map[string]bool  // project/space that have their record

	filler filler
}

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	if cfg.Log == nil || cfg.Embedder == nil && cfg.Spaces == nil {
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
	if cfg.Slice == 0 {
		cfg.Slice = 2 * time.Second
	}
	if cfg.Retention == 0 {
		cfg.Retention = space.Retention
	}
	if cfg.Budget != nil && (cfg.Tokens == nil || cfg.Price == nil) {
		return nil, fault.New(fault.Internal, "embed: a budget needs a counter and a price")
	}
	f := &Function{cfg: cfg, done: map[string]int64{}, said: map[string]bool{}, pauses: cost.NewPauses(cfg.Now)}
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

// Handle serves run.ended, model.changed and sweep.requested.
func (f *Function) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	switch event.Type(e.Type()) {
	case event.RunEnded:
		d, err := event.DecodeFor[event.Stream](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.ended(ctx, d.Project, d.Stream)
	case event.ModelChanged:
		d, err := event.DecodeFor[event.Model](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.changed(ctx, d.Space)
	case event.SweepRequested:
		if _, err := event.DecodeFor[event.Sweep](e, f.cfg.Tenant); err != nil {
			return nil, err
		}
		return f.sweep(ctx)
	}
	return nil, fault.New(fault.Invalid, "embed does not handle %s", e.Type())
}

// ended embeds what a run wrote, in every live space. What serves comes first; of the
// others no error brings the event back, as the sweep asks again.
func (f *Function) ended(ctx context.Context, project, stream string) ([]ce.Event, error) {
	targets, err := f.targets(ctx)
	if err != nil {
		return nil, err
	}
	var out []ce.Event
	for i := range targets {
		t := &targets[i]
		until := time.Time{}
		switch {
		case t.role == space.Filling && f.filler.underWay():
			continue // the slices come to it
		case t.role != space.Serving:
			until = time.Now().Add(f.cfg.Slice)
		}
		es, err := f.stream(ctx, project, stream, t, until)
		out = append(out, es...)
		if err != nil && t.role == space.Serving {
			return out, err
		}
		if err != nil {
			f.later(ctx, project, stream, t, err)
		}
	}
	return out, nil
}

// later says that a stream is not embedded in a space that does not serve.
func (f *Function) later(ctx context.Context, project, stream string, t *target, err error) {
	f.filler.failed(t.key, err)
	f.cfg.Logger.WarnContext(ctx, "stream not embedded in a space that does not serve; the next sweep tries again",
		slog.String("project", project), slog.String("stream", stream), slog.String("space", t.id), slog.Any("err", err))
}

// stream embeds every segment of the stream that has no vectors in the space yet, until
// that time where it is not zero.
func (f *Function) stream(ctx context.Context, project, stream string, t *target, until time.Time) (_ []ce.Event, err error) {
	defer fault.Wrap(&err, "embed %s/%s", project, stream)
	if f.paused(project, t) {
		return nil, nil // the sweep after its end asks again
	}
	done, err := f.last(ctx, project, stream, t)
	if err != nil {
		return nil, err
	}
	scrub, err := f.cfg.Log.ScrubState(ctx, project)
	if err != nil {
		return nil, err
	}
	start, began := done, time.Now()
	var bad refused
	defer func() { bad.log(ctx, f.cfg.Logger, project, stream, t.id) }()
	for seg, err := range f.cfg.Log.Segments(ctx, project, stream, done) {
		if err != nil {
			return nil, err
		}
		if t.err != nil {
			return nil, &modelError{t.err}
		}
		v, why, err := f.vectors(ctx, project, &seg, t)
		if errors.Is(err, cost.ErrSpent) {
			p := f.pauses.Set(project, err, fault.RetryAfterOf(err))
			f.cfg.Logger.WarnContext(ctx, "the project pauses", slog.String("project", project), slog.Time("until", p.Until), slog.Any("err", err))
			break
		}
		if err != nil {
			return nil, err
		}
		if err := f.record(ctx, project, t); err != nil {
			return nil, err
		}
		if err := f.cfg.Log.PutVectors(ctx, project, t.id, stream, seg.Header.Seq, v); err != nil {
			return nil, err
		}
		done = seg.Header.Seq
		f.remember(project, stream, t, done)
		f.filler.wrote(t.key, 1, len(v.Passages)+len(v.Without))
		f.without.Add(int64(len(v.Without)))
		bad.add(len(v.Without), len(v.Passages), why)
		if until.IsZero() {
			continue
		}
		// A space that does not serve leaves the machine to those who ask.
		rest(ctx, min(2*time.Since(began), maxRest))
		if began = time.Now(); began.After(until) || ctx.Err() != nil {
			break
		}
	}
	if done == start {
		return nil, nil
	}
	if err := f.prune(ctx, project, stream, scrub, start, done, t); err != nil {
		return nil, err
	}
	return []ce.Event{event.New(event.VectorsReady, f.Name(), event.Segment{
		Tenant: f.cfg.Tenant, Project: project, Stream: stream, Seq: done, Space: t.id,
	})}, nil
}

// maxRest is how long embedding rests after a segment at the most: a server that took
// longer rested this machine meanwhile.
const maxRest = 100 * time.Millisecond

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// record notes once in each project what a space is that it has vectors of.
func (f *Function) record(ctx context.Context, project string, t *target) error {
	if f.cfg.Spaces == nil {
		return nil
	}
	f.mu.Lock()
	said := f.said[project+"/"+t.id]
	f.mu.Unlock()
	if said {
		return nil
	}
	if err := f.cfg.Log.PutSpace(ctx, project, t.Space()); err != nil {
		return err
	}
	f.mu.Lock()
	f.said[project+"/"+t.id] = true
	f.mu.Unlock()
	return nil
}

// paused reports whether the project's budget keeps it from asking the space's model.
func (f *Function) paused(project string, t *target) bool {
	_, paused := f.pauses.Of(project)
	return paused && !f.free(t)
}

func (f *Function) free(t *target) bool {
	return f.cfg.Free != nil && t.err == nil && f.cfg.Free(t.Space())
}

// prune takes back the vectors of what was erased while it was embedded: the
// scrub looked for them before they stood.
func (f *Function) prune(ctx context.Context, project, stream, scrub string, after, to int64, t *target) error {
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
		if _, err := f.cfg.Log.DropVectors(ctx, project, t.id, stream, seq, func(p memory.SHA) bool { return stated[p] }); err != nil {
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
func (f *Function) vectors(ctx context.Context, project string, seg *eventlog.Segment, t *target) (_ eventlog.Vectors, why, _ error) {
	space := t.Space()
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
		if err := f.reserve(ctx, project, texts[:n], t); err != nil {
			return v, nil, err
		}
		rows, err := t.Embed(ctx, texts[:n])
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
func (f *Function) reserve(ctx context.Context, project string, texts []string, t *target) error {
	if f.cfg.Budget == nil || f.free(t) || f.cfg.Budget(project).None() {
		return nil
	}
	n := 0
	for _, t := range texts {
		n += f.cfg.Tokens(t)
	}
	return f.purses.Of(project).Reserve(ctx, cost.Amount{USD: f.cfg.Price(t.Space().Model, n), Tokens: int64(n), Calls: 1})
}

// last is the stream's last segment with vectors in the space.
func (f *Function) last(ctx context.Context, project, stream string, t *target) (int64, error) {
	f.mu.Lock()
	seq, ok := f.done[t.key+" "+project+"/"+stream]
	f.mu.Unlock()
	if ok {
		return seq, nil
	}
	seq, err := f.cfg.Log.VectorsHead(ctx, project, t.id, stream)
	if err != nil {
		return 0, err
	}
	f.remember(project, stream, t, seq)
	return seq, nil
}

func (f *Function) remember(project, stream string, t *target, seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := t.key + " " + project + "/" + stream
	f.done[key] = max(f.done[key], seq)
}

// behind lists the streams with segments that have no vectors in the space. each is
// called for every stream with the segments that have some, and all; nil for none.
func (f *Function) behind(ctx context.Context, t *target, each func(done, of int64)) ([][2]string, error) {
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var out [][2]string
	for _, p := range projects {
		paused := f.paused(p, t)
		if paused && each == nil {
			continue
		}
		streams, err := f.cfg.Log.Streams(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			done, err := f.last(ctx, p, s, t)
			if err != nil {
				return nil, err
			}
			head, err := f.cfg.Log.Head(ctx, p, s)
			if err != nil {
				return nil, err
			}
			if each != nil {
				each(done, head.Seq)
			}
			if head.Seq > done && !paused {
				out = append(out, [2]string{p, s})
			}
		}
	}
	return out, nil
}

// Behind counts the streams that a sweep would embed, in what serves and in what is
// being filled. A space that is kept holds nobody up.
func (f *Function) Behind(ctx context.Context) (int, error) {
	targets, err := f.targets(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range targets {
		if targets[i].role == space.Kept {
			continue
		}
		b, err := f.behind(ctx, &targets[i], nil)
		if err != nil {
			return 0, err
		}
		n += len(b)
	}
	return n, nil
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
	f.follow(ctx)
	targets, err := f.targets(ctx)
	if err != nil {
		return nil, err
	}
	var out []ce.Event
	for i := range targets {
		t := &targets[i]
		if t.role == space.Filling {
			if f.filler.idle() {
				out = append(out, f.next(t.id))
			}
			continue
		}
		es, err := f.sweepSpace(ctx, t)
		out = append(out, es...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (f *Function) sweepSpace(ctx context.Context, t *target) ([]ce.Event, error) {
	behind, err := f.behind(ctx, t, nil)
	if err != nil {
		return nil, err
	}
	until := time.Time{}
	if t.role != space.Serving {
		until = time.Now().Add(f.cfg.Slice)
	}
	var mu sync.Mutex
	var out []ce.Event
	var g errgroup.Group
	g.SetLimit(sweepers)
	for _, b := range behind {
		g.Go(func() error {
			if !until.IsZero() && time.Now().After(until) {
				return nil
			}
			es, err := f.stream(ctx, b[0], b[1], t, until)
			if _, ok := errors.AsType[*modelError](err); ok && ctx.Err() == nil {
				f.cfg.Logger.WarnContext(ctx, "stream not embedded; the next sweep tries again", slog.String("project", b[0]), slog.String("stream", b[1]), slog.Any("err", err))
				f.filler.failed(t.key, err)
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
