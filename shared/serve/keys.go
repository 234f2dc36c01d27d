package serve

import (
	"context"
	"log/slog"

	ce "github.com/cloudevents/sdk-go/v2/event"
)

// Keys of log attributes. Payloads, object keys and tokens are never logged.
const (
	KeyFunction   = "function"
	KeyEvent      = "event_id"
	KeyEventType  = "event_type"
	KeyTenant     = "tenant"
	KeyProject    = "project"
	KeySubscriber = "subscriber"
	KeyAttempt    = "attempt"
	KeyStatus     = "status"
	KeyError      = "error"
	KeyHint       = "hint"
	KeyKind       = "kind"
	KeyWait       = "wait"
	KeyTook       = "took"
	KeyCount      = "count"
	KeyStack      = "stack"
	KeyAddress    = "address"
)

type eventKey struct{}

// WithEvent makes e's id, type, tenant and project ride along in ctx, for
// every line that a logger over LogHandler writes with it.
func WithEvent(ctx context.Context, e ce.Event) context.Context {
	attrs := []slog.Attr{slog.String(KeyEvent, e.ID()), slog.String(KeyEventType, e.Type())}
	for _, x := range [...]struct{ ext, key string }{{extTenant, KeyTenant}, {extProject, KeyProject}} {
		if s := extension(e, x.ext); s != "" {
			attrs = append(attrs, slog.String(x.key, s))
		}
	}
	return context.WithValue(ctx, eventKey{}, attrs)
}

// LogHandler adds what WithEvent put into the context to every record of h.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

func (l logHandler) Handle(ctx context.Context, r slog.Record) error {
	if attrs, ok := ctx.Value(eventKey{}).([]slog.Attr); ok {
		r = r.Clone()
		r.AddAttrs(attrs...)
	}
	return l.Handler.Handle(ctx, r)
}

func (l logHandler) WithAttrs(a []slog.Attr) slog.Handler { return logHandler{l.Handler.WithAttrs(a)} }
func (l logHandler) WithGroup(n string) slog.Handler      { return logHandler{l.Handler.WithGroup(n)} }

func orDiscard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
