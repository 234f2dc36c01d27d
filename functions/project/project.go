// Package project applies the log to every configured index, and renders the pages
// of each project (shared/vault).
//
// Invariant: each (stream, space) is applied strictly from applied_seq+1 while
// its vector object exists; the position moves in the same transaction as the
// rows. An index is a projection: wiped and filled again from the log it has
// the same hash, with no policy and no model call.
//
// The package decides nothing and embeds nothing.
package project

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/projection"
	"github.com/mneme-ai/mneme/shared/space"
	"github.com/mneme-ai/mneme/shared/vault"
)

// Config is what the function is given.
type Config struct {
	Tenant  string
	Log     *eventlog.Log
	Graph   index.Graph
	Lexical index.Lexical
	// Spaces are the embedding spaces that live; nil: Space alone.
	Spaces Spaces
	Space  string
	// Grace is how long a space stays after its last use before it is removed;
	// space.Grace by default.
	Grace time.Duration
	// Calls counts the policy and model calls of this process, so that a rebuild
	// can say that it made none. nil where no function of the process makes any.
	Calls  func() (policy, model int64)
	Logger *slog.Logger
	// Catalog and Bucket are what the vault and exports need: what is asked, and where
	// pages and files stand.
	Catalog *catalog.Catalog
	Bucket  *objstore.Bucket // the log bucket
	// TenantKey makes the marks of redaction in notes; without it none is taken in.
	TenantKey []byte
	Now       func() time.Time // of notes and exports; time.Now by default
	TempDir   string           // where exports grow before they are uploaded; "" is the system's
	// Redactor gives the newest redaction rules, the tenant's own among them.
	Redactor func(ctx context.Context) (redact func(string) string, rules string, err error)
	// Lessons is the index of lessons; nil: lessons are not looked up here.
	Lessons lookup.Index
}

// Function is the project function.
type Function struct {
	cfg Config
	mu  sync.Mutex // one writer: both embedded indexes have a single one

	vault    *vault.Reader // nil: no pages
	vaultMu  sync.Mutex    // one writer of pages
	rendered []*rendered   // the newest first; under vaultMu

	turning turning

	cures *cures.Cures // nil: no lessons

	exporter  *export.Exporter
	exporting chan struct{} // holds the export under way
	asked     struct {      // nightly exports
		sync.Mutex
		seen string // the day whose marker was seen
		day  string // the day asked for last, and when
		at   time.Time
	}
}

// New checks cfg.
func New(cfg Config) (*Function, error) {
	if cfg.Log == nil || cfg.Graph == nil || cfg.Lexical == nil || cfg.Space == "" && cfg.Spaces == nil || cfg.Catalog == nil || cfg.Bucket == nil {
		return nil, fault.New(fault.Internal, "project: a dependency is missing")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Spaces == nil {
		cfg.Spaces = fixed(cfg.Space)
	}
	if cfg.Grace == 0 {
		cfg.Grace = space.Grace
	}
	ex, err := export.New(export.Config{Tenant: cfg.Tenant, Log: cfg.Log, Catalog: cfg.Catalog, Redactor: cfg.Redactor, Untrusted: export.Untrusted(cfg.Log, labels.DefaultBound)})
	if err != nil {
		return nil, err
	}
	f := &Function{cfg: cfg, vault: vault.NewReader(cfg.Log, cfg.Catalog), exporter: ex, exporting: make(chan struct{}, 1)}
	if cfg.Lessons != nil {
		f.cures = &cures.Cures{Tenant: cfg.Tenant, Log: cfg.Log, Index: cfg.Lessons, Damaged: func(project string, key memory.SHA, err error) {
			cfg.Logger.Warn("lesson not read", slog.String("project", project), slog.String("lesson", string(key)), slog.Any("err", err))
		}}
	}
	return f, nil
}

// Name is the function's name in the event table.
func (f *Function) Name() string { return "project" }

// Handle serves chunks.ready, vectors.ready, signature.extracted, model.changed,
// rebuild.requested, export.requested and sweep.requested.
func (f *Function) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	switch event.Type(e.Type()) {
	case event.ChunksReady:
		d, err := event.DecodeFor[event.Part](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.apply(ctx, d.Project, memory.AdmitStream, "")
	case event.VectorsReady:
		d, err := event.DecodeFor[event.Segment](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		st, err := f.cfg.Spaces.State(ctx)
		if err != nil {
			return nil, err
		}
		live := st.Live()
		i := slices.IndexFunc(live, func(l space.Live) bool { return l.ID == d.Space })
		if i < 0 {
			return nil, nil // vectors of a space that nothing uses
		}
		es, err := f.apply(ctx, d.Project, d.Stream, d.Space)
		if err == nil && live[i].Role == space.Filling {
			err = f.turn(ctx)
			es = append(es, f.goOn(d.Space, len(es) > 0)...)
		}
		return es, err
	case event.ModelChanged:
		d, err := event.DecodeFor[event.Model](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		if err := f.turn(ctx); err != nil || d.Space == "" {
			return nil, err
		}
		return f.lagging(ctx, d.Space)
	case event.RebuildRequested:
		d, err := event.DecodeFor[event.Project](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		es, err := f.withdraw(ctx, d.Project)
		if err != nil {
			return nil, err
		}
		if err := f.rebuildErased(ctx, []string{d.Project}); err != nil {
			return nil, err
		}
		return es, f.purge(ctx) // what asks for it has erased something
	case event.SignatureExtracted:
		d, err := event.DecodeFor[event.Lessons](e, f.cfg.Tenant)
		if err != nil || f.cures == nil {
			return nil, err
		}
		return nil, f.cures.Apply(ctx, d.Project, d.Keys)
	case event.ExportRequested:
		return f.exported(ctx, e)
	case event.SweepRequested:
		if _, err := event.DecodeFor[event.Sweep](e, f.cfg.Tenant); err != nil {
			return nil, err
		}
		return f.sweep(ctx)
	}
	return nil, fault.New(fault.Invalid, "project does not handle %s", e.Type())
}

// apply brings one stream of both indexes up to date in a space and announces it.
func (f *Function) apply(ctx context.Context, project, stream, in string) ([]ce.Event, error) {
	seq, serves, err := f.inTurns(ctx, project, stream, in)
	if err != nil || seq == 0 {
		return nil, err
	}
	if serves { // pages are of the log, whatever the space
		f.afterApply(ctx, project, stream)
	}
	return []ce.Event{event.New(event.Projected, f.Name(), event.Segment{
		Tenant: f.cfg.Tenant, Project: project, Stream: stream, Seq: seq, Space: in,
	})}, nil
}

// inTurns is catchUpIn. A space that does not serve yields: it works a little, lets
// others write, and leaves the machine to those who ask for twice as long; after turnSlice
// it leaves the rest to another event (goOn).
func (f *Function) inTurns(ctx context.Context, project, stream, in string) (last int64, serves bool, err error) {
	spaces, err := f.spacesOf(ctx, stream)
	if err != nil {
		return 0, false, err
	}
	serves = in == spaces[0]
	start := time.Now()
	for {
		most := turnTime
		if serves {
			most = 0
		}
		began := time.Now()
		f.mu.Lock()
		n, err := f.catchUpIn(ctx, project, stream, in, most)
		f.mu.Unlock()
		if last = max(last, n); err != nil || n == 0 || serves || time.Since(start) > turnSlice {
			return last, serves, err
		}
		select {
		case <-ctx.Done():
			return last, serves, nil
		case <-time.After(min(turnRest*time.Since(began), maxRest)):
		}
	}
}

const (
	// turnTime is how long a space that does not serve writes at a stretch: some segments,
	// and less than what a question takes.
	turnTime = 10 * time.Millisecond
	turnRest = 2 // times what it took
	maxRest  = 200 * time.Millisecond
	// turnSlice is as long as embed's slice: new text waits no longer for its rows.
	turnSlice = 2 * time.Second
)

// applied is how far the stream's rows are that answer now.
func (f *Function) applied(ctx context.Context, project, stream string) (int64, error) {
	spaces, err := f.spacesOf(ctx, stream)
	if err != nil {
		return 0, err
	}
	return f.appliedIn(ctx, project, stream, spaces[0])
}

// appliedIn is the lower of the two indexes' positions in a space.
func (f *Function) appliedIn(ctx context.Context, project, stream, in string) (int64, error) {
	g, err := f.cfg.Graph.Applied(ctx, f.cfg.Tenant, project, stream, in)
	if err != nil {
		return 0, err
	}
	l, err := f.cfg.Lexical.Applied(ctx, f.cfg.Tenant, project, stream, in)
	return min(g, l), err
}

// catchUpIn applies what stands in the log after the indexes' positions in one space, for
// about so long where most is not 0; it returns the last seq applied, 0 when there was
// nothing.
func (f *Function) catchUpIn(ctx context.Context, project, stream, in string, most time.Duration) (last int64, err error) {
	defer fault.Wrap(&err, "project %s/%s", project, stream)
	after, err := f.appliedIn(ctx, project, stream, in)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	var gone *projection.Gone // of a stream in which something was erased
	for seg, err := range f.cfg.Log.Segments(ctx, project, stream, after) {
		if err != nil {
			return last, err
		}
		if most > 0 && last > 0 && time.Since(began) > most {
			return last, nil
		}
		if gone == nil && projection.Tombs(&seg) {
			if gone, err = f.gone(ctx, project, stream); err != nil {
				return last, err
			}
		}
		b, ready, err := f.batch(ctx, &seg, gone, in)
		if err != nil {
			return last, err
		}
		if !ready {
			return last, nil // its vectors are not written yet: embed announces them
		}
		if err := f.cfg.Graph.Apply(ctx, b); err != nil {
			return last, err
		}
		if err := f.cfg.Lexical.Apply(ctx, b); err != nil {
			return last, err
		}
		last = b.Seq
	}
	return last, nil
}

// gone folds what was erased in the whole stream.
func (f *Function) gone(ctx context.Context, project, stream string) (*projection.Gone, error) {
	g := &projection.Gone{}
	for seg, err := range f.cfg.Log.Segments(ctx, project, stream, 0) {
		if err != nil {
			return nil, err
		}
		g.Add(&seg)
	}
	return g, nil
}

// batch builds the rows of one segment in a space, "" for raw rows; false when its vectors
// are missing.
func (f *Function) batch(ctx context.Context, seg *eventlog.Segment, gone *projection.Gone, in string) (index.Batch, bool, error) {
	h := &seg.Header
	b := index.Batch{Tenant: h.Tenant, Project: h.Project, Stream: h.Stream, Space: in, Seq: h.Seq}
	if h.Stream == memory.AdmitStream {
		for _, r := range seg.Records {
			line, ok := r.(*memory.Admit)
			if !ok {
				continue
			}
			src, chunks, err := f.cfg.Log.Part(ctx, h.Project, line.Source)
			if err != nil {
				return b, false, err
			}
			for i := range chunks {
				text, err := f.cfg.Log.Blob(ctx, h.Project, chunks[i].SHA256)
				if err != nil {
					return b, false, err
				}
				chunks[i].Text = string(text)
			}
			b.Nodes = append(b.Nodes, projection.Raw(line, &src, chunks)...)
		}
		return b, true, nil
	}
	v, ok, err := f.cfg.Log.Vectors(ctx, h.Project, in, h.Stream, h.Seq)
	if err != nil || !ok {
		return b, false, err
	}
	b.Nodes, b.Replace = projection.Nodes(seg, gone), projection.Replaces(seg)
	b.Vectors = make(map[memory.SHA][]float32, len(v.Passages)+len(v.Without))
	for i, id := range v.Passages {
		b.Vectors[id] = v.Row(i)
	}
	for _, id := range v.Without { // the zero vector is near nothing, and says that none was forgotten
		b.Vectors[id] = make([]float32, v.Dims)
	}
	return b, true, nil
}

// streams lists every stream of the project that is projected.
func (f *Function) streams(ctx context.Context, project string) ([]string, error) {
	s, err := f.cfg.Log.Streams(ctx, project)
	return append(s, memory.AdmitStream), err
}

// Behind counts the streams that a sweep would apply, those that wait for
// vectors included.
func (f *Function) Behind(ctx context.Context) (int, error) {
	stale, err := f.stale(ctx)
	if err != nil {
		return 0, err
	}
	n, err := f.turnsLeft(ctx)
	if err != nil {
		return 0, err
	}
	n += len(stale)
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return 0, err
	}
	lessons, err := f.lessonsBehind(ctx)
	if err != nil {
		return 0, err
	}
	n += lessons
	err = f.each(ctx, func(project, stream string) error {
		head, err := f.cfg.Log.Head(ctx, project, stream)
		if err != nil {
			return err
		}
		for _, l := range st.Live() {
			in := l.ID
			switch {
			case stream == memory.AdmitStream && l.Role == space.Serving:
				in = ""
			case stream == memory.AdmitStream || l.Role == space.Kept: // a kept one holds nobody up
				continue
			}
			after, err := f.appliedIn(ctx, project, stream, in)
			if err != nil {
				return err
			}
			if head.Seq > after {
				n++
			}
		}
		return nil
	})
	return n, err
}

func (f *Function) each(ctx context.Context, do func(project, stream string) error) error {
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return err
	}
	for _, p := range projects {
		streams, err := f.streams(ctx, p)
		if err != nil {
			return err
		}
		for _, s := range streams {
			if err := do(p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep applies what no event announced. One stream that cannot be read does
// not hold up the others; the first error brings the sweep back.
func (f *Function) sweep(ctx context.Context) ([]ce.Event, error) {
	var out []ce.Event
	var first error
	stale, err := f.stale(ctx)
	if err != nil {
		return nil, err
	}
	if len(stale) > 0 {
		if first = f.rebuildErased(ctx, stale); first == nil {
			first = f.purge(ctx)
		}
	}
	err = f.each(ctx, func(project, stream string) error {
		spaces, err := f.spacesOf(ctx, stream)
		for _, in := range spaces {
			var es []ce.Event
			if es, err = f.apply(ctx, project, stream, in); err != nil {
				break
			}
			out = append(out, es...)
		}
		if err != nil && first == nil {
			first = err
		}
		return ctx.Err()
	})
	if err == nil {
		if e := f.sweepLessons(ctx); e != nil && first == nil {
			first = e
		}
		err = f.turn(ctx)
	}
	if err == nil {
		err = f.sweepVaults(ctx)
	}
	if first != nil {
		err = first
	}
	if err == nil {
		err = f.maintain(ctx)
	}
	if err != nil {
		return out, err
	}
	es, err := f.nightly(ctx)
	return append(out, es...), err
}
