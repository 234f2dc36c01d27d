package functest

import (
	"context"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/space"
)

// Spaces are the embedding spaces of a World: the tables of the program, and models that
// a test adds.
type Spaces struct {
	*space.Store
	// Models are embedders by name; tables need not be named.
	Models map[string]llm.Embedder
	// Wanted is what the configuration asks for.
	Wanted string
	// Bad is what Check says of a model.
	Bad error
}

func newSpaces(log *eventlog.Log, e llm.Embedder) *Spaces {
	s := &Spaces{Models: map[string]llm.Embedder{}, Wanted: static.Name}
	if e.Space().Model != static.Model {
		s.Wanted = e.Space().Model
		s.Models[s.Wanted] = e
	}
	s.Store = space.NewStore(log, s.Wish, nil)
	return s
}

func entryOf(name string, s memory.Space) space.Entry { return space.Entry{Name: name, Space: s} }

// Find is embed.Spaces.
func (s *Spaces) Find(_ context.Context, name string) (space.Entry, error) {
	if e := s.Models[name]; e != nil {
		return entryOf(name, e.Space()), nil
	}
	dims, ok := static.Dims(name)
	if !ok {
		return space.Entry{}, fault.At(fault.Invalid, "embedding model", "one of "+strings.Join(static.Names(), ", "), "no model %q", name)
	}
	e, err := static.Cut(dims)
	if err != nil {
		return space.Entry{}, err
	}
	return entryOf(name, e.Space()), nil
}

// Wish is embed.Spaces.
func (s *Spaces) Wish(ctx context.Context) (space.Entry, error) { return s.Find(ctx, s.Wanted) }

// Kept is embed.Spaces.
func (s *Spaces) Kept(context.Context) (time.Duration, error) { return 0, nil }

// Names is embed.Spaces.
func (s *Spaces) Names(context.Context) []string { return static.Names() }

// Check is embed.Spaces.
func (s *Spaces) Check(context.Context, space.Entry) error { return s.Bad }

// Open is embed.Spaces.
func (s *Spaces) Open(e space.Entry) (llm.Embedder, error) {
	for _, m := range s.Models {
		if m.Space().ID == e.ID {
			return m, nil
		}
	}
	if e.Model != static.Model {
		return nil, fault.New(fault.Unavailable, "model %s is not configured", e.Model)
	}
	return static.Cut(e.Dims)
}

// Serving is query.Config.Serving.
func (s *Spaces) Serving(ctx context.Context) (llm.Embedder, error) {
	st, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	return s.Open(st.Serving)
}
