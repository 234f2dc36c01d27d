package query

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// face is what a question is embedded and weighed by, taken once at the beginning of a
// request: no answer mixes two spaces.
type face struct {
	embedder llm.Embedder
	space    memory.Space
	floorIDF float64
}

// faces follows the space that serves. One that came to serve is searched once before a
// question is asked in it, as an index may read all of its vectors at the first search.
// Meanwhile the former space answers: its rows are kept up to date (shared/space).
type faces struct {
	mu      sync.Mutex
	now     face
	next    string // the space that is searched for the first time
	since   time.Time
	started bool
}

// warmWait is the longest that a space is waited for; one that is dropped is removed
// later than that (project.Config.Grace).
const warmWait = 10 * time.Second

// warmFirst is how long the question that finds the change waits: as a rule the vectors
// are in memory, and it is answered in the new space already.
const warmFirst = 250 * time.Millisecond

func (f *Function) face(ctx context.Context) (face, error) {
	e := f.cfg.Embedder
	if f.cfg.Serving != nil {
		var err error
		if e, err = f.cfg.Serving(ctx); err != nil {
			return face{}, err
		}
	}
	in := face{embedder: e, space: e.Space(), floorIDF: f.cfg.FloorIDF}
	s := &f.faces
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.started || s.now.space.ID == in.space.ID:
		s.now, s.started, s.next = in, true, ""
	case s.next != in.space.ID:
		s.next, s.since = in.space.ID, f.cfg.Now()
		warmed := make(chan struct{})
		go func() {
			defer close(warmed)
			f.warm(context.WithoutCancel(ctx), in)
		}()
		s.mu.Unlock() // others are answered by the former one
		select {
		case <-warmed:
		case <-ctx.Done():
		case <-time.After(warmFirst):
		}
		s.mu.Lock()
	case f.cfg.Now().Sub(s.since) > warmWait:
		s.now, s.next = in, ""
	}
	return s.now, nil
}

// warm searches in a space that came to serve, and lets questions be asked in it.
func (f *Function) warm(ctx context.Context, in face) {
	ctx, cancel := context.WithTimeout(ctx, warmWait)
	defer cancel()
	projects, err := f.cfg.Log.Projects(ctx)
	if err == nil && len(projects) > 0 && in.space.Dims > 0 {
		vec := make([]float32, in.space.Dims)
		vec[0] = 1
		_, err = f.cfg.Graph.SearchDense(ctx, in.space.ID, vec, index.Filter{Tenant: f.cfg.Tenant, Projects: projects}, 1)
	}
	if err != nil { // who asks is told what is wrong
		f.cfg.Logger.WarnContext(ctx, "a space that came to serve was not searched", slog.String("space", in.space.ID), slog.Any("err", err))
	}
	s := &f.faces
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == in.space.ID {
		s.now, s.next = in, ""
	}
}
