// Package sig keeps what failures taught: it signs failure logs, stores lessons and what
// came of using them, and answers what cured a failure.
//
// Invariant: a lesson is a write-once record of the log, redacted before it is signed; the
// same lesson again writes nothing. Nothing is answered across projects or tenants. The
// function writes no index row: project applies what `signature.extracted` names, and the
// sweep what no event named.
//
//	POST /memory/sig/lessons ──> log/local/shop/lessons/9c41….jsonl ──signature.extracted──> project
//	POST /memory/sig/explain ──> {found, sig_sha, count, solutions}
//
// The package calls no model.
package sig

import (
	"context"
	"log/slog"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// Config is what the function is given.
type Config struct {
	Tenant    string
	TenantKey []byte // HMAC key of redaction marks; at least 16 bytes
	Log       *eventlog.Log
	Catalog   *catalog.Catalog
	// Lessons is the index of lessons; nil: they are stored, and not looked up here.
	Lessons lookup.Index
	Logger  *slog.Logger
	// Publish sends events that a route causes. A handler's own events are returned.
	Publish func(ctx context.Context, es ...ce.Event) error
	// Wait is how long a route waits until what it stored is found; 2 s by default.
	Wait time.Duration
	Now  func() time.Time
}

// Function is the sig function.
type Function struct {
	cfg   Config
	cures *cures.Cures // nil: nothing is looked up
}

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	switch {
	case cfg.Log == nil || cfg.Catalog == nil:
		return nil, fault.New(fault.Internal, "sig: a dependency is missing")
	case len(cfg.TenantKey) < 16:
		return nil, fault.At(fault.Invalid, "tenant key", "set MNEME_TENANT_KEY to at least 16 random bytes", "too short")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Wait == 0 {
		cfg.Wait = 2 * time.Second
	}
	f := &Function{cfg: cfg}
	if cfg.Lessons != nil {
		f.cures = &cures.Cures{Tenant: cfg.Tenant, Log: cfg.Log, Index: cfg.Lessons}
	}
	return f, nil
}

// Name is the function's name in the event table.
func (f *Function) Name() string { return "sig" }

// redactor masks by the built-in rules and the user's patterns as they stand now. While a
// pattern file can not be read nothing is stored.
func (f *Function) redactor(ctx context.Context) (*redact.Redactor, error) {
	ps, err := f.cfg.Catalog.Patterns(ctx)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	return redact.NewWith(f.cfg.TenantKey, redact.Options{Patterns: ps}), nil
}

// Store writes a lesson into the log, unless what happened once stands there already:
// then key is that of the record that does, and stored is false.
func (f *Function) Store(ctx context.Context, project string, l *lesson.Lesson) (key memory.SHA, stored bool, err error) {
	defer fault.Wrap(&err, "store lesson")
	if f.cures != nil {
		same, err := f.cures.Same(ctx, project, l)
		if err != nil {
			return "", false, err
		}
		if same != nil {
			return same.Key, false, nil
		}
	}
	rec, err := eventlog.LessonRecord(f.cfg.Tenant, project, l)
	if err != nil {
		return "", false, err
	}
	key, err = f.cfg.Log.PutRecords(ctx, project, eventlog.Lessons, []eventlog.Record{rec})
	return key, err == nil, err
}

// announce tells project of records.
func (f *Function) announce(project string, keys []memory.SHA) (out []ce.Event) {
	for len(keys) > 0 {
		n := min(len(keys), event.MaxLessons)
		out = append(out, event.New(event.SignatureExtracted, f.Name(), event.Lessons{Tenant: f.cfg.Tenant, Project: project, Keys: keys[:n]}))
		keys = keys[n:]
	}
	return out
}

// publish announces what a route stored, and waits until it is found or the time is up:
// the sweep does what is left. visible says which.
func (f *Function) publish(ctx context.Context, project string, key memory.SHA) (visible bool, err error) {
	if f.cfg.Publish != nil {
		if err := f.cfg.Publish(ctx, f.announce(project, []memory.SHA{key})...); err != nil {
			f.cfg.Logger.WarnContext(ctx, "lesson not announced; the sweep finds it", slog.Any("err", err))
		}
	}
	if f.cures == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Wait)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		known, err := f.cfg.Lessons.Has(ctx, lookup.Scope{Tenant: f.cfg.Tenant, Project: project}, key)
		if err == nil && known {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(pause):
		}
	}
}
