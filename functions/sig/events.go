package sig

import (
	"context"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
)

// Lessons of a session are on the shelf before its admit line is (functions/learn mines
// them, where a tool's result is whole). What is left to do is to say which of them no
// index has: so a repeat, a lost event and a death in between change nothing.

// Handle serves chunks.ready and sweep.requested.
func (f *Function) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	switch event.Type(e.Type()) {
	case event.ChunksReady:
		d, err := event.DecodeFor[event.Part](e, f.cfg.Tenant)
		if err != nil {
			return nil, err
		}
		return f.missing(ctx, d.Project)
	case event.SweepRequested:
		if _, err := event.DecodeFor[event.Sweep](e, f.cfg.Tenant); err != nil {
			return nil, err
		}
		return f.sweep(ctx)
	}
	return nil, fault.New(fault.Invalid, "sig does not handle %s", e.Type())
}

// missing announces the records that the index does not have. A function that has no index
// to ask leaves them to the sweep of project.
func (f *Function) missing(ctx context.Context, project string) ([]ce.Event, error) {
	if f.cures == nil {
		return nil, nil
	}
	keys, err := f.cures.Missing(ctx, project)
	if err != nil {
		return nil, err
	}
	return f.announce(project, keys), nil
}

// maxSwept bounds what one sweep announces; the next one goes on.
const maxSwept = 50 * event.MaxLessons

func (f *Function) sweep(ctx context.Context) (out []ce.Event, err error) {
	if f.cures == nil {
		return nil, nil
	}
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var n int
	for _, p := range projects {
		keys, err := f.cures.Missing(ctx, p)
		if err != nil {
			return out, err
		}
		keys = keys[:min(len(keys), maxSwept-n)]
		n += len(keys)
		out = append(out, f.announce(p, keys)...)
	}
	return out, nil
}
