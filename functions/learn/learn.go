// Package learn turns an uploaded object into an admitted part: it reads the
// transcript, redacts, cuts chunks, stores their blobs and the source record,
// and appends the one admit line that gives the part its place in THE order.
//
// Invariant: effects stand in the order blobs, source record, admit line,
// receipt; each is safe to repeat, so that a notification delivered twice, or
// a process killed between any two of them, admits a part exactly once. What
// was admitted is recognised by the raw sha of the whole object and by turn
// ids, never by redacted text.
//
// The package makes no gate decision, no model call and no index row.
package learn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/gitbundle"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/redact"
)

// Config is what the function is given.
type Config struct {
	Tenant    string
	TenantKey []byte // HMAC key of redaction marks and seals; at least 16 bytes
	Inbox     *objstore.Bucket
	Log       *eventlog.Log
	Catalog   *catalog.Catalog
	Count     func(string) int // Qwen2.5 tokens
	Models    models.Config    // what a request may pick from; no key of it is read
	Logger    *slog.Logger
	// Publish sends events that a route or a long sweep causes. A handler's
	// own events are returned.
	Publish func(ctx context.Context, es ...ce.Event) error
	// Wait is how long POST /memory/learn waits for its runs before it answers
	// 202: 20 s by default (brief D1).
	Wait time.Duration
	// SweepBudget bounds the wall time of one sweep; the next one goes on.
	// 60 s by default, well inside a handler's deadline.
	SweepBudget time.Duration
	// BundleBudget bounds the wall time of reading one git bundle; one that takes
	// longer is refused, as it would take as long the next time. 200 s by default,
	// inside a handler's deadline of 280 s with time left to admit.
	BundleBudget time.Duration
	// Bundle bounds what else a git bundle may cost; see gitbundle.Limits.
	Bundle gitbundle.Limits
	// PartBytes is about the size of one part's chunk records; 16 MiB by default,
	// see split.
	PartBytes int
	// ScrubPatience is how long a scrub waits for a stream that the gate holds:
	// 2 min by default.
	ScrubPatience time.Duration
	// Store is the log's bucket, which is looked through for what was forgotten.
	Store *objstore.Bucket
	// Projections are cleaned of what is forgotten before the receipt is written; nil:
	// another process has them, and is asked by event.
	Projections forget.Projections
	// Held says why a stream decides nothing at present, and what cures it; "" where it
	// does. nil: this process does not know, as on a cluster.
	Held func(project, stream string) (reason, hint string)
	Now  func() time.Time
}

// Function is the learn function.
type Function struct {
	cfg    Config
	keys   *redact.Redactor // of object keys in logs and errors
	admits *admitIndex
	// one admission at a time in this process: racing ones would only redo
	// each other's work (the append is the fence, not this lock).
	mu      sync.Mutex
	redact  *redact.Redactor // of the admission under way; guarded by mu
	schemas catalog.Schemas  // the same
	// unpacking has room for one bundle: each holds memory of its own. Taken
	// before mu.
	unpacking chan struct{}
}

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	switch {
	case cfg.Inbox == nil || cfg.Log == nil || cfg.Catalog == nil || cfg.Count == nil:
		return nil, fault.New(fault.Internal, "learn: a dependency is missing")
	case len(cfg.TenantKey) < 16:
		return nil, fault.At(fault.Invalid, "tenant key", "set MNEME_TENANT_KEY to at least 16 random bytes", "too short")
	}
	if cfg.Wait == 0 {
		cfg.Wait = 20 * time.Second
	}
	if cfg.SweepBudget == 0 {
		cfg.SweepBudget = 60 * time.Second
	}
	if cfg.BundleBudget == 0 {
		cfg.BundleBudget = 200 * time.Second
	}
	if cfg.PartBytes == 0 {
		cfg.PartBytes = partBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Function{cfg: cfg, keys: redact.New(cfg.TenantKey), admits: newAdmitIndex(cfg.Log), unpacking: make(chan struct{}, 1)}, nil
}

// shown is an object's key as logs and errors may hold it. Records keep the key
// itself: it is the way back to the bytes.
func (f *Function) shown(key string) string {
	out, _ := f.keys.Redact(key)
	return out
}

// redactor masks by the built-in rules and the user's patterns as they stand
// now. A pattern file that can not be read stops admission until it is mended:
// the event is retried, and nothing is stored that the file was to mask.
func (f *Function) redactor(ctx context.Context) (*redact.Redactor, error) {
	ps, err := f.cfg.Catalog.Patterns(ctx)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	return redact.NewWith(f.cfg.TenantKey, redact.Options{Patterns: ps}), nil
}

// sameRules gives fault.Conflict when the rules have changed since the admission
// under way began: another process may have scrubbed by the new ones meanwhile,
// and would not look at this part again.
func (f *Function) sameRules(ctx context.Context) error {
	now, err := f.redactor(ctx)
	if err == nil && now.Version() != f.redact.Version() {
		err = fault.New(fault.Conflict, "the redaction rules have changed")
	}
	return err
}

// Name is the function's name in the event table.
func (f *Function) Name() string { return "learn" }

// Handle serves object.created and sweep.requested.
func (f *Function) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	switch event.Type(e.Type()) {
	case event.ObjectCreated:
		o, err := event.DecodeFor[event.Object](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		if o.Bucket != f.cfg.Inbox.Name() {
			return nil, fault.At(fault.Invalid, "event data, field bucket", "", "%q is not the inbox", o.Bucket)
		}
		res, err := f.Object(ctx, o)
		if err != nil {
			return nil, err
		}
		return res.Events, nil
	case event.SweepRequested:
		if _, err := event.DecodeFor[event.Sweep](e, f.cfg.Tenant); err != nil {
			return nil, err
		}
		return f.sweep(ctx)
	}
	return nil, fault.New(fault.Invalid, "learn does not handle %s", e.Type())
}

// Result is what became of one object version.
type Result struct {
	Receipt eventlog.Receipt
	Repeat  bool // the receipt stood already: nothing was read
	Events  []ce.Event
	asked   bool // the ad-hoc question of this request was asked before
}

// Object admits one object version. A version that was admitted costs one GET; one
// that was not is read again when the schemas have changed since.
func (f *Function) Object(ctx context.Context, o event.Object) (Result, error) {
	return f.object(ctx, o, objectOptions{})
}

// objectOptions is what a request may choose about its own text.
type objectOptions struct {
	noteChars int  // characters of a note's chunk; 0 is the policy's 2,000
	again     bool // what a tombstone bars is read anew
}

func (f *Function) object(ctx context.Context, o event.Object, opt objectOptions) (_ Result, err error) {
	defer fault.Wrap(&err, "learn %s", f.shown(o.Key))
	if o.ETag != "" {
		r, ok, err := f.cfg.Log.Receipt(ctx, o.Bucket, o.Key, o.ETag)
		if err != nil {
			return Result{}, err
		}
		if ok && !r.Final() {
			s, err := f.cfg.Catalog.Schemas(ctx)
			if err != nil {
				return Result{}, err
			}
			ok = r.Schemas == s.Version
		}
		if ok {
			return Result{Receipt: r, Repeat: true}, nil
		}
	}
	res, err := f.one(ctx, o, opt)
	if errors.Is(err, errBundle) {
		return f.bundle(ctx, o, opt)
	}
	return res, err
}

// one admits an object that is read as it stands.
func (f *Function) one(ctx context.Context, o event.Object, opt objectOptions) (_ Result, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.schemas, err = f.cfg.Catalog.Schemas(ctx); err != nil {
		return Result{}, err
	}
	// Each loss means that another admission stands, or other rules; it is read
	// and counted before the next try.
	for range 8 {
		if f.redact, err = f.redactor(ctx); err != nil {
			return Result{}, err
		}
		r, err := f.admit(ctx, o, opt)
		if fault.Is(err, fault.Conflict) {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		if err := f.cfg.Log.PutReceipt(ctx, r); err != nil {
			return Result{}, err
		}
		f.cfg.Logger.InfoContext(ctx, "object read", slog.String("key", f.shown(o.Key)), slog.String("outcome", r.Outcome), slog.Int("parts", len(r.Parts)))
		return Result{Receipt: r, Events: f.ready(r)}, nil
	}
	return Result{}, fault.New(fault.Unavailable, "the admit stream keeps moving")
}

// ready announces the admitted parts of a receipt.
func (f *Function) ready(r eventlog.Receipt) []ce.Event {
	if r.Outcome != OutcomeAdmitted {
		return nil
	}
	out := make([]ce.Event, 0, len(r.Parts))
	for _, p := range r.Parts {
		out = append(out, event.New(event.ChunksReady, f.Name(), event.Part{
			Tenant: f.cfg.Tenant, Project: p.Project, Seq: p.Seq, Source: p.Source,
		}))
	}
	return out
}
