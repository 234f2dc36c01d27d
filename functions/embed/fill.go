package embed

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/space"
)

// Spaces are the embedding spaces of the log and the models behind them.
type Spaces interface {
	State(ctx context.Context) (space.State, error)
	Update(ctx context.Context, change func(space.State) (space.State, error)) (space.State, error)
	// Open gives the embedder of a space's documents; it asks the model for nothing.
	Open(e space.Entry) (llm.Embedder, error)
	// Find is the space of a configured model, and Wish of the one that the configuration
	// asks for; Names are those that Find knows.
	Find(ctx context.Context, name string) (space.Entry, error)
	Wish(ctx context.Context) (space.Entry, error)
	// Kept is how long a space that served is kept; 0: Config.Retention.
	Kept(ctx context.Context) (time.Duration, error)
	Names(ctx context.Context) []string
	// Check asks the model for a vector and refuses one of another length.
	Check(ctx context.Context, e space.Entry) error
}

// target is a live space with its embedder.
type target struct {
	llm.Embedder
	id   string
	key  string // of one filling: a space that is dropped and filled again has another
	role space.Role
	err  error // why there is no embedder
}

// targets are the live spaces, what serves first.
func (f *Function) targets(ctx context.Context) ([]target, error) {
	if f.cfg.Spaces == nil {
		id := f.cfg.Embedder.Space().ID
		return []target{{Embedder: f.cfg.Embedder, id: id, key: id, role: space.Serving}}, nil
	}
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return nil, err
	}
	var out []target
	for _, l := range st.Live() {
		t := target{id: l.ID, key: l.ID + "@" + l.Since.Format(time.RFC3339Nano), role: l.Role}
		if t.Embedder, t.err = f.cfg.Spaces.Open(l.Entry); t.err != nil {
			t.Embedder = nil
		}
		out = append(out, t)
	}
	return out, nil
}

// filler is what this process knows of the spaces that it fills.
type filler struct {
	mu   sync.Mutex
	busy bool
	last time.Time // the end of the last slice
	by   map[string]*Filled
	work map[string][][2]string // by key: the streams that were behind when it was last looked
}

// Filled is what this process put into a space.
type Filled struct {
	Segments int64
	Passages int64
	Began    time.Time
	Err      string // of the model, when it was last asked
}

// restart is how long a chain of slices may be silent before a sweep begins another.
const restart = 15 * time.Second

func (x *filler) idle() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.busy && time.Since(x.last) > restart
}

func (x *filler) underWay() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.busy
}

func (x *filler) of(key string) *Filled {
	if x.by == nil {
		x.by = map[string]*Filled{}
	}
	if x.by[key] == nil {
		x.by[key] = &Filled{Began: time.Now()}
	}
	return x.by[key]
}

func (x *filler) wrote(key string, segments, passages int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.of(key)
	p.Segments, p.Passages, p.Err = p.Segments+int64(segments), p.Passages+int64(passages), ""
}

func (x *filler) failed(key string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of(key).Err = err.Error()
}

// begin takes the turn to fill; false where another slice is under way.
func (x *filler) begin(key string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.busy {
		return false
	}
	x.busy = true
	x.of(key)
	return true
}

func (x *filler) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy, x.last = false, time.Now()
}

func (x *filler) filled(key string) Filled {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by[key] == nil {
		return Filled{}
	}
	return *x.by[key]
}

// next is the event that continues to fill a space.
func (f *Function) next(id string) ce.Event {
	return event.New(event.ModelChanged, f.Name(), event.Model{Tenant: f.cfg.Tenant, At: f.cfg.Now().UTC().Format(time.RFC3339Nano), Space: id})
}

// changed follows the configuration, or fills the space id for one slice.
func (f *Function) changed(ctx context.Context, id string) ([]ce.Event, error) {
	if f.cfg.Spaces == nil {
		return nil, nil
	}
	if id != "" {
		return f.fill(ctx, id)
	}
	f.follow(ctx)
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil || st.Filling == nil {
		return nil, err
	}
	return []ce.Event{f.next(st.Filling.ID)}, nil
}

// follow takes over what the configuration asks for, and ends what was kept long enough.
// What is wrong with it is said, and changes nothing: what serves goes on.
func (f *Function) follow(ctx context.Context) {
	if f.cfg.Spaces == nil {
		return
	}
	now := f.cfg.Now()
	wish, err := f.cfg.Spaces.Wish(ctx)
	if err == nil {
		err = f.wish(ctx, wish, now)
	}
	var kept time.Duration
	if err == nil {
		kept, err = f.cfg.Spaces.Kept(ctx)
	}
	if err == nil {
		_, err = f.cfg.Spaces.Update(ctx, func(s space.State) (space.State, error) { return s.Expire(now, cmp.Or(kept, f.cfg.Retention)), nil })
	}
	if err != nil && ctx.Err() == nil {
		f.cfg.Logger.WarnContext(ctx, "the configured embedding model is not taken over; the next sweep tries again", slog.Any("err", err))
	}
}

func (f *Function) wish(ctx context.Context, wish space.Entry, now time.Time) error {
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return err
	}
	if st.Wish != wish.ID && st.Serving.ID != wish.ID {
		if err := f.cfg.Spaces.Check(ctx, wish); err != nil {
			return err
		}
	}
	next, err := f.cfg.Spaces.Update(ctx, func(s space.State) (space.State, error) { return s.Follow(wish, now) })
	if err == nil && next.Filling != nil && (st.Filling == nil || st.Filling.ID != next.Filling.ID) {
		f.cfg.Logger.InfoContext(ctx, "another embedding model is configured; its space is filled while the present one serves",
			slog.String("model", next.Filling.Name), slog.String("space", next.Filling.ID))
	}
	return err
}

// leaseFor is how long a slice keeps other processes from filling the same space.
const leaseFor = time.Minute

// fill embeds for one slice of wall time what the space id lacks, and sends the event
// that goes on. A model that is down ends the chain; the sweep begins another.
func (f *Function) fill(ctx context.Context, id string) (_ []ce.Event, err error) {
	defer fault.Wrap(&err, "fill space %s", id)
	targets, err := f.targets(ctx)
	if err != nil {
		return nil, err
	}
	var t *target
	for i := range targets {
		if targets[i].id == id && targets[i].role == space.Filling {
			t = &targets[i]
		}
	}
	if t == nil || !f.filler.begin(t.key) {
		return nil, nil // it serves by now, or another was asked for, or another slice is under way
	}
	defer f.filler.end()
	lease, err := f.cfg.Log.Acquire(ctx, "embed/"+id, leaseFor)
	if errors.Is(err, eventlog.ErrHeld) {
		return nil, nil // another process fills it
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lease.Release(context.WithoutCancel(ctx))) }()
	work, err := f.left(ctx, t)
	if err != nil {
		return nil, err
	}
	var out []ce.Event
	for until := time.Now().Add(f.cfg.Slice); len(work) > 0; {
		es, err := f.stream(ctx, work[0][0], work[0][1], t, until)
		out = append(out, es...)
		if _, ok := errors.AsType[*modelError](err); ok && ctx.Err() == nil {
			f.later(ctx, work[0][0], work[0][1], t, err)
			return out, nil
		}
		if err != nil {
			return out, err
		}
		over := time.Now().After(until)
		if !over || len(es) == 0 { // else the stream may have more
			work = work[1:]
		}
		if over {
			break
		}
	}
	f.filler.leave(t.key, work)
	if len(out) > 0 || len(work) > 0 {
		out = append(out, f.next(id))
	}
	return out, nil
}

// left are the streams that lack vectors in the space: those of the slice before, or all
// that are looked for anew.
func (f *Function) left(ctx context.Context, t *target) ([][2]string, error) {
	f.filler.mu.Lock()
	work := f.filler.work[t.key]
	f.filler.mu.Unlock()
	if len(work) > 0 {
		return work, nil
	}
	return f.behind(ctx, t, nil)
}

func (x *filler) leave(key string, work [][2]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.work = map[string][][2]string{key: work}
}

// SpaceStatus is a space as people see it.
type SpaceStatus struct {
	space.Entry
	Role     string `json:"role"`     // serving, filling, kept, dropping
	Segments int64  `json:"segments"` // with vectors
	Of       int64  `json:"of"`       // segments of the log
	// Passages were embedded by this process since it began to fill the space, so many a
	// second; Left is how long the rest takes at that rate, in seconds, where it is known.
	Passages int64   `json:"passages,omitempty"`
	Rate     float64 `json:"passages_per_second,omitempty"`
	Left     float64 `json:"left_seconds,omitempty"`
	Error    string  `json:"error,omitempty"` // of its model
}

// Status is the answer of GET /memory/models/spaces.
type Status struct {
	Serving string        `json:"serving"` // id
	Hold    bool          `json:"hold,omitempty"`
	Spaces  []SpaceStatus `json:"spaces"`
	Names   []string      `json:"names"`            // that mem model set embed takes
	Others  []string      `json:"others,omitempty"` // ids of spaces that the log has vectors of and nothing uses
}

// Status looks at every space.
func (f *Function) Status(ctx context.Context) (Status, error) {
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return Status{}, err
	}
	targets, err := f.targets(ctx)
	if err != nil {
		return Status{}, err
	}
	out := Status{Serving: st.Serving.ID, Hold: st.Hold, Names: f.cfg.Spaces.Names(ctx), Spaces: []SpaceStatus{}}
	for i, l := range st.Live() {
		s := SpaceStatus{Entry: l.Entry, Role: string(l.Role)}
		if i < len(targets) && targets[i].id == l.ID {
			if s, err = f.status(ctx, s, &targets[i]); err != nil {
				return out, err
			}
		}
		out.Spaces = append(out.Spaces, s)
	}
	for _, e := range st.Dropping {
		out.Spaces = append(out.Spaces, SpaceStatus{Entry: e, Role: "dropping"})
	}
	out.Others, err = f.others(ctx, st)
	return out, err
}

func (f *Function) status(ctx context.Context, s SpaceStatus, t *target) (SpaceStatus, error) {
	_, err := f.behind(ctx, t, func(done, of int64) { s.Segments, s.Of = s.Segments+min(done, of), s.Of+of })
	if err != nil {
		return s, err
	}
	if t.err != nil {
		s.Error = t.err.Error()
		return s, nil
	}
	p := f.filler.filled(t.key)
	s.Passages, s.Error = p.Passages, p.Err
	if for_ := time.Since(p.Began).Seconds(); t.role == space.Filling && p.Segments > 0 && for_ > 0 {
		s.Rate = float64(p.Passages) / for_
		s.Left = float64(s.Of-s.Segments) * for_ / float64(p.Segments)
	}
	return s, nil
}

// others lists the spaces that projects have vectors of and the state does not name.
func (f *Function) others(ctx context.Context, st space.State) ([]string, error) {
	known := map[string]bool{}
	for _, l := range st.Live() {
		known[l.ID] = true
	}
	for _, e := range st.Dropping {
		known[e.ID] = true
	}
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range projects {
		ids, err := f.cfg.Log.VectorSpaces(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if !known[id] {
				known[id] = true
				out = append(out, id)
			}
		}
	}
	return out, nil
}
