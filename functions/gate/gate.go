// Package gate runs the gated loop: for each question stream it folds the
// admit stream strictly in order and appends what it decided, closed gates
// included.
//
// Invariant: a stream's records are a function of the admit stream, the
// question and the frozen policy; slices, repeats, crashes and the order of
// events change neither t nor any decision. The append is the fence: a writer
// that lost it reads on and starts again from the new state. The lease only
// saves double work.
//
// The package reads no uploaded object, embeds nothing and writes no index.
package gate

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/preflight"
	"github.com/mneme-ai/mneme/shared/replay"
)

// Config is what the function is given.
type Config struct {
	Tenant  string
	Log     *eventlog.Log
	Catalog *catalog.Catalog
	Policy  gru.Policy
	// Synthesis decides one level up where no model does; absent: the built-in one.
	Synthesis gru.Policy
	// Models says which models decide in a project; nil, or nil for the project:
	// Policy decides. A project whose models cannot be used is an error that says
	// why, and nothing of it is decided meanwhile.
	Models func(ctx context.Context, project string) (*Models, error)
	// Picked gives the models that one request picked in a project; nil: no
	// endpoint is configured.
	Picked func(ctx context.Context, project string, p *models.Pick) (*Models, error)
	// Pick resolves what a request says of models; nil: no endpoint is configured.
	Pick func(project string, r models.Request) (*models.Pick, error)
	// Reload reads the models' configuration anew; changed says that others decide now.
	// nil: it never changes. It is called on model.changed and at each sweep.
	Reload func(ctx context.Context) (changed bool, err error)
	// Doctor gives what the preflight found of each model, good or not; also of those
	// that embed and rerank.
	Doctor func(ctx context.Context) ([]preflight.Result, error)
	// Budget bounds what a project's model calls cost in a day; nil: nothing does.
	Budget func(project string) cost.Budget
	// Plan says what would decide in a project, or by a pick, without a look at any
	// server; nil, or nil for the project: Policy.
	Plan func(project string, p *models.Pick) *Plan
	// Sends is where texts go whatever decides: to be embedded and reranked.
	Sends   []Destination
	Count   func(string) int    // Qwen2.5 tokens
	Redact  func(string) string // the present rules; see gru.Config
	Logger  *slog.Logger
	Publish publisher // sends what an edit of the questions causes
	// Lease is how long a stream is held; a slice ends within half of it, so
	// that a slow slice never outlives its lease. 60 s by default.
	Lease time.Duration
	// Slice is the wall time after which a stream continues by event. 10 s by
	// default: other streams get their turn, and a kill loses little.
	Slice time.Duration
	Now   func() time.Time
}

// Function is the gate function.
type Function struct {
	cfg   Config
	calls atomic.Int64

	cursors *lru.Cache[heldKey, replay.Cursor]
	lines   *lru.Cache[lineKey, memory.Admit]
	parts   *lru.Cache[heldKey, part]
	blobs   *lru.Cache[heldKey, string]
	// answered are replies by step and call: a step whose later call fails, or
	// whose append is lost, is made again, and is not paid for again.
	answered *lru.Cache[heldKey, answer]
	flights  *flights
	purses   *cost.Purses
	running  sync.Map // project/stream -> struct{}: one slice a stream in this process
	scrubs   sync.Map // project -> the etag of its scrub state, as last seen
	pauses   *cost.Pauses
	stuck    sync.Map // project/stream -> error: what ended its last slice
	done     sync.Map // project/stream of ad-hoc streams that have folded their one part
}

// heldKey names what is cached of texts: under the scrub state that was read
// before it, so that what a slice brings home late is not used after a scrub.
type heldKey struct {
	scrub string // etag; see eventlog.Log.ScrubState
	name  string // project/stream, project/sha256, or project/stream/t/sha256
}

// part is a source record with its chunk records: immutable, so it is cached.
type part struct {
	source memory.Source
	chunks []memory.Chunk
}

// Sizes of the caches. Nine standing questions read the same parts one after
// the other; a part of 5,000-token chunks has about 20 KB a chunk, an admit line
// about 600 bytes, a reply at most 8 KB, and a segment that may be lost holds
// fewer steps than replies are kept.
const (
	cursorCache = 1024
	lineCache   = 4096
	partCache   = 64
	blobCache   = 512
	replyCache  = 1024
)

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	if cfg.Log == nil || cfg.Catalog == nil || cfg.Policy == nil || cfg.Count == nil {
		return nil, fault.New(fault.Internal, "gate: a dependency is missing")
	}
	if cfg.Synthesis == nil {
		cfg.Synthesis = extractpolicy.Synthesis{}
	}
	if cfg.Lease == 0 {
		cfg.Lease = 60 * time.Second
	}
	if cfg.Slice == 0 {
		cfg.Slice = 10 * time.Second
	}
	cfg.Slice = min(cfg.Slice, cfg.Lease/2)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Function{cfg: cfg, flights: newFlights(), pauses: cost.NewPauses(cfg.Now)}
	f.purses = cost.NewPurses(func(project string) *cost.Ledger {
		var b cost.Budget
		if cfg.Budget != nil {
			b = cfg.Budget(project)
		}
		return cost.Open(cfg.Log, project, b, cfg.Now)
	})
	var err error
	if f.cursors, err = lru.New[heldKey, replay.Cursor](cursorCache); err != nil {
		return nil, err
	}
	if f.lines, err = lru.New[lineKey, memory.Admit](lineCache); err != nil {
		return nil, err
	}
	if f.parts, err = lru.New[heldKey, part](partCache); err != nil {
		return nil, err
	}
	if f.blobs, err = lru.New[heldKey, string](blobCache); err != nil {
		return nil, err
	}
	if f.answered, err = lru.New[heldKey, answer](replyCache); err != nil {
		return nil, err
	}
	return f, nil
}

// Name is the function's name in the event table.
func (f *Function) Name() string { return "gate" }

// PolicyCalls is how often the policy was asked since the process started.
func (f *Function) PolicyCalls() int64 { return f.calls.Load() }

// Handle serves the events of the table in DESIGN section 2.
func (f *Function) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	switch event.Type(e.Type()) {
	case event.ChunksReady:
		d, err := event.DecodeFor[event.Part](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.request(ctx, d.Project)
	case event.QuestionsChanged:
		d, err := event.DecodeFor[event.Project](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.request(ctx, d.Project)
	case event.RunRequested, event.RunContinued:
		d, err := event.DecodeFor[event.Stream](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.run(ctx, d.Project, d.Stream)
	case event.RunEnded:
		d, err := event.DecodeFor[event.Stream](e, f.cfg.Tenant)
		if err != nil || synthesizes(d.Stream) || strings.HasPrefix(d.Stream, "adhoc-") {
			return nil, err
		}
		return f.synthesisOf(ctx, d.Project)
	case event.SynthesisRequested:
		d, err := event.DecodeFor[event.Synthesis](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		again := never
		if d.Again {
			again = d.Seq
		}
		return f.synthesize(ctx, d.Project, again)
	case event.ModelChanged:
		d, err := event.DecodeFor[event.Model](e, f.cfg.Tenant)
		if err != nil || d.Space != "" { // what embeds decides nothing
			return nil, err
		}
		if _, err := f.reload(ctx); err != nil {
			return nil, err
		}
		return f.sweep(ctx) // what waited for a model that decides
	case event.SweepRequested:
		if _, err := event.DecodeFor[event.Sweep](e, f.cfg.Tenant); err != nil {
			return nil, err
		}
		_, _ = f.reload(ctx) // it says itself what is wrong; those who decide go on
		return f.sweep(ctx)
	}
	return nil, fault.New(fault.Invalid, "gate does not handle %s", e.Type())
}

// reload takes over what the models' configuration says now, and lets projects that
// waited for a model try again.
func (f *Function) reload(ctx context.Context) (changed bool, err error) {
	if f.cfg.Reload == nil {
		return false, nil
	}
	if changed, err = f.cfg.Reload(ctx); changed {
		for _, p := range f.pauses.All() {
			f.pauses.Resume(p.Project)
		}
	}
	return changed, err
}

// request asks for a run of each stream of the project that is behind.
func (f *Function) request(ctx context.Context, project string) ([]ce.Event, error) {
	behind, err := f.behind(ctx, project)
	if err != nil {
		return nil, err
	}
	out := make([]ce.Event, 0, len(behind))
	for _, b := range behind {
		out = append(out, f.wanted(project, &b))
	}
	return out, nil
}

type behindStream struct {
	stream catalog.Stream
	cursor replay.Cursor
}

// behind lists the streams whose cursor has not reached the admit stream, and
// moves the serving pointer of those that have. The synthesis is behind when it is due.
func (f *Function) behind(ctx context.Context, project string) ([]behindStream, error) {
	if _, ok := f.pauses.Of(project); ok {
		return nil, nil
	}
	head, err := f.cfg.Log.Head(ctx, project, memory.AdmitStream)
	if err != nil {
		return nil, err
	}
	streams, err := f.cfg.Catalog.Streams(ctx, project)
	if err != nil {
		return nil, err
	}
	serving, _, err := f.cfg.Catalog.Serving(ctx, project)
	if err != nil {
		return nil, err
	}
	scrub, err := f.scrubbed(ctx, project)
	if err != nil {
		return nil, err
	}
	var out []behindStream
	standing := false // one of them is behind: the synthesis waits for it
	for _, s := range streams {
		if _, ok := f.done.Load(project + "/" + s.Name); ok {
			continue
		}
		c, err := f.cursor(ctx, scrub, project, s.Name)
		if err != nil {
			return nil, err
		}
		if s.Only != 0 && c.State.Admit >= s.Only && len(c.State.Pending) == 0 {
			f.done.Store(project+"/"+s.Name, struct{}{})
			continue
		}
		if refused, err := f.refused(ctx, project, s); err != nil {
			return nil, err
		} else if refused {
			continue
		}
		again, err := f.regates(ctx, project, s, &c.State)
		if err != nil {
			return nil, err
		}
		if again || c.State.Admit < target(s, head.Seq) {
			out = append(out, behindStream{s, c})
			standing = standing || s.Only == 0
		} else if s.Only == 0 && head.Seq > 0 && serving.Serving[s.QueryID] != s.Name {
			if err := f.cfg.Catalog.CaughtUp(ctx, project, s.QueryID, s.Name); err != nil {
				return nil, err
			}
		}
	}
	if standing {
		return out, nil
	}
	if b, due, err := f.due(ctx, project); err != nil {
		return nil, err
	} else if due {
		out = append(out, b)
	}
	return out, nil
}

// target is the admit seq that a stream must reach.
func target(s catalog.Stream, head int64) int64 {
	if s.Only != 0 {
		return min(s.Only, head)
	}
	return head
}

// Behind counts the streams of the tenant that a sweep would request.
func (f *Function) Behind(ctx context.Context) (int, error) {
	projects, err := f.cfg.Catalog.Known(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range projects {
		b, err := f.behind(ctx, p)
		if err != nil {
			return 0, err
		}
		n += len(b)
	}
	return n, nil
}

// sweep asks for what is behind in every project. One project that cannot be
// read does not hold up the others. A question file that people broke is no
// reason to come again: whoever asks or waits is told its line.
func (f *Function) sweep(ctx context.Context) ([]ce.Event, error) {
	projects, err := f.cfg.Catalog.Known(ctx)
	if err != nil {
		return nil, err
	}
	var out []ce.Event
	var first error
	for _, p := range projects {
		es, err := f.request(ctx, p)
		if err != nil {
			f.cfg.Logger.WarnContext(ctx, "project not swept", slog.String("project", p), slog.Any("err", err))
			if first == nil && !fault.Is(err, fault.Invalid) {
				first = err
			}
		}
		out = append(out, es...)
	}
	if first != nil && f.cfg.Publish != nil && len(out) > 0 {
		// With an error the events returned are dropped: these go out now.
		if err := f.cfg.Publish(ctx, out...); err != nil {
			return nil, err
		}
		return nil, first
	}
	return out, first
}

// cursor is the stream's folded state, brought up to date from the log.
func (f *Function) cursor(ctx context.Context, scrub, project, stream string) (replay.Cursor, error) {
	key := heldKey{scrub, project + "/" + stream}
	c, ok := f.cursors.Get(key)
	var err error
	if ok {
		c, err = c.Advance(ctx, f.cfg.Log, project, stream)
	} else {
		c, err = replay.Load(ctx, f.cfg.Log, project, stream)
	}
	if err != nil {
		f.cursors.Remove(key)
		return replay.Cursor{}, err
	}
	f.cursors.Add(key, c)
	return c, nil
}

// errSlice ends a slice whose time is over; the stream continues by event.
var errSlice = errors.New("slice is over")

// run is one slice of one stream.
func (f *Function) run(ctx context.Context, project, name string) (_ []ce.Event, err error) {
	defer fault.Wrap(&err, "run %s/%s", project, name)
	stream, err := f.cfg.Catalog.Stream(ctx, project, name)
	if fault.Is(err, fault.NotFound) {
		return nil, nil // the question was removed or reworded meanwhile
	}
	if err != nil {
		return nil, err
	}
	if synthesizes(name) {
		return f.synthesize(ctx, project, never)
	}
	out, state, err := f.drive(ctx, project, stream, func(deadline time.Time) (eventlog.Head, error) {
		return f.slice(ctx, project, stream, deadline)
	})
	if err != nil || state == droveNothing {
		return out, err
	}
	// Read the admit stream once more: a part admitted while the stream was
	// taken found it so, and nobody else would ask.
	scrub, err := f.scrubbed(ctx, project)
	if err != nil {
		return nil, err
	}
	c, err := f.cursor(ctx, scrub, project, name)
	if err != nil {
		return nil, err
	}
	head, err := f.cfg.Log.Head(ctx, project, memory.AdmitStream)
	if err != nil {
		return nil, err
	}
	again, err := f.regates(ctx, project, stream, &c.State)
	if err != nil {
		return nil, err
	}
	if again || c.State.Admit < target(stream, head.Seq) {
		t := event.RunRequested
		if state == droveOn {
			t = event.RunContinued
		}
		out = append(out, event.New(t, f.Name(), event.Stream{Tenant: f.cfg.Tenant, Project: project, Stream: name, Seq: c.Head.Seq}))
	} else if stream.Only == 0 {
		if err := f.cfg.Catalog.CaughtUp(ctx, project, stream.QueryID, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// drove says how far drive came.
type drove int

const (
	droveNothing drove = iota // it is paused, refused, or another's: whoever ends that asks again
	droveOut                  // to the end of what there was
	droveOn                   // to the end of its time: there is more
)

// drive takes a stream's lease and makes one slice of it; a lost append makes it
// begin anew. It gives run.ended where records were appended.
func (f *Function) drive(ctx context.Context, project string, stream catalog.Stream, slice func(deadline time.Time) (eventlog.Head, error)) (out []ce.Event, state drove, err error) {
	if _, paused := f.pauses.Of(project); paused && stream.Only == 0 {
		return nil, droveNothing, nil // the sweep after its end asks again
	}
	key := project + "/" + stream.Name
	if _, busy := f.running.LoadOrStore(key, struct{}{}); busy {
		return nil, droveNothing, nil // the slice in progress looks once more at its end
	}
	defer f.running.Delete(key)
	if refused, err := f.refused(ctx, project, stream); err != nil || refused {
		return nil, droveNothing, err
	}
	lease, err := f.cfg.Log.Acquire(ctx, f.cfg.Tenant+"/"+key, f.cfg.Lease)
	if errors.Is(err, eventlog.ErrHeld) {
		return nil, droveNothing, nil // the holder asks again when it is done
	}
	if err != nil {
		return nil, droveNothing, err
	}
	defer func() {
		if e := lease.Release(context.WithoutCancel(ctx)); e != nil && err == nil {
			out, state, err = nil, droveNothing, e
		}
	}()
	defer f.keep(ctx, lease)()
	if last, _, err := f.cfg.Log.LastScrub(ctx, project); err != nil || last.Forgetting() {
		return nil, droveNothing, err // who finishes it asks again
	}

	deadline := f.cfg.Now().Add(f.cfg.Slice)
	for range 4 { // a lost append: another writer took the stream on
		var end eventlog.Head
		end, err = slice(deadline)
		if fault.Is(err, fault.Conflict) {
			f.drop(key)
			continue
		}
		if errors.Is(err, cost.ErrSpent) {
			f.pause(ctx, project, err, fault.RetryAfterOf(err))
			err = errPaused
		}
		if errors.Is(err, errCut) && stream.Models == nil {
			f.pause(ctx, project, err, cutPause)
		}
		if err != nil && !errors.Is(err, errSlice) && !errors.Is(err, errPaused) {
			f.stuck.Store(key, err)
			return nil, droveNothing, f.refuse(ctx, project, stream, err)
		}
		f.stuck.Delete(key)
		if end.Seq > 0 {
			out = append(out, event.New(event.RunEnded, f.Name(), event.Stream{Tenant: f.cfg.Tenant, Project: project, Stream: stream.Name, Seq: end.Seq}))
		}
		break
	}
	switch {
	case errors.Is(err, errSlice):
		return out, droveOn, nil
	case errors.Is(err, errPaused):
		return out, droveNothing, nil // the day's end or a larger budget brings it back
	case err != nil:
		return nil, droveNothing, fault.As(fault.Unavailable, err)
	}
	return out, droveOut, nil
}

// keep renews the lease of a slice until the function it gives is called: one
// call of a model on a small machine may take longer than a lease. A lease that
// is lost is no reason to stop: the append is the fence.
func (f *Function) keep(ctx context.Context, lease *eventlog.Lease) (stop func()) {
	if f.cfg.Models == nil && f.cfg.Picked == nil {
		return func() {} // a step takes a millisecond
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(f.cfg.Lease / 3)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := lease.Renew(ctx); err != nil && ctx.Err() == nil {
					f.cfg.Logger.WarnContext(ctx, "lease not renewed", slog.Any("err", err))
				}
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
