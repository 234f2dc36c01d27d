package wire

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/space"
)

// spaces are the embedding spaces of the log and the models behind them, as the
// configuration has them now.
type spaces struct {
	store  *space.Store
	bucket *catalog.Catalog
	log    *eventlog.Log
	count  func(string) int
	logger *slog.Logger
	read   func() (models.Config, error)              // nil: the configuration never changes
	open   func(models.Config) (*modelServers, error) // clients of a changed one
	asks   bool                                       // this process calls models

	mu     sync.Mutex // guards what follows
	cfg    models.Config
	cur    *modelServers // nil: no server is configured
	own    *modelServers // cur, where this opened it
	old    []*modelServers
	opened map[string]*openedSpace // by id
}

// openedSpace is one space with its embedders.
type openedSpace struct {
	entry                space.Entry
	of                   *modelServers
	documents, questions llm.Embedder
}

// newSpaces are those of a process whose models are servers; asks says that it calls them.
func (p *parts) newSpaces(cfg models.Config, getenv func(string) string, asks bool, only func(models.Config) models.Config) *spaces {
	s := &spaces{bucket: p.catalog, log: p.log, count: p.count, logger: p.logger, cfg: cfg, cur: p.models, asks: asks, opened: map[string]*openedSpace{}}
	s.store = space.NewStore(p.log, s.first, nil)
	if getenv != nil && getenv("MNEME_MODELS") != "" {
		s.read = func() (models.Config, error) { return ModelsFromEnv(getenv) }
		s.open = func(c models.Config) (*modelServers, error) {
			return newModelServers(only(c), p.count, p.logger, getenv)
		}
	}
	return s
}

func (s *spaces) State(ctx context.Context) (space.State, error) { return s.store.State(ctx) }

func (s *spaces) Update(ctx context.Context, change func(space.State) (space.State, error)) (space.State, error) {
	return s.store.Update(ctx, change)
}

// first is what serves in a log without a pointer: what the configuration names, unless
// the log was filled by another model that can be named still. That one serves until the
// configured one has everything.
func (s *spaces) first(ctx context.Context) (space.Entry, error) {
	s.mu.Lock()
	cfg := s.cfg
	s.mu.Unlock()
	asked, err := s.bucket.SpaceWish(ctx)
	if err != nil {
		return space.Entry{}, err
	}
	names := append([]string{cmp.Or(asked.Embed, cfg.Wanted())}, cfg.Embeddings()...)
	entries := make([]space.Entry, 0, len(names))
	for _, n := range names {
		e, err := s.named(cfg, n)
		if err != nil {
			return e, err
		}
		entries = append(entries, e)
	}
	projects, err := s.log.Projects(ctx)
	if err != nil {
		return space.Entry{}, err
	}
	for _, p := range projects {
		have, err := s.log.VectorSpaces(ctx, p)
		if err != nil {
			return space.Entry{}, err
		}
		for _, e := range entries {
			if slices.Contains(have, e.ID) {
				return e, nil
			}
		}
	}
	return entries[0], nil
}

// named is the space that a name of cfg stands for.
func (s *spaces) named(cfg models.Config, name string) (space.Entry, error) {
	e, ok := cfg.Embedding(name)
	if !ok {
		return space.Entry{}, fault.At(fault.Invalid, "embedding model", "one of "+strings.Join(cfg.Embeddings(), ", "), "no embedding model %q is configured", name)
	}
	if e == nil {
		dims, _ := static.Dims(name)
		t, err := static.Cut(dims)
		if err != nil {
			return space.Entry{}, err
		}
		return space.Entry{Name: name, Space: t.Space()}, nil
	}
	t, err := textsOf(e, nowhere{}, s.count)
	if err != nil {
		return space.Entry{}, err
	}
	return space.Entry{Name: name, Space: t.Space(), Endpoint: e.Endpoint, Window: e.Window}, nil
}

// config is the configuration as it stands now, and its clients. A file that cannot be
// used changes nothing.
func (s *spaces) config(ctx context.Context) (models.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		return s.cfg, nil
	}
	next, err := s.read()
	if err != nil {
		return s.cfg, err
	}
	if reflect.DeepEqual(next, s.cfg) {
		return s.cfg, nil
	}
	if s.asks {
		cur, err := s.open(next)
		if err != nil {
			return s.cfg, err
		}
		if s.own != nil {
			s.old = append(s.old, s.own) // calls under way end with the process
		}
		s.cur, s.own = cur, cur
	}
	s.cfg = next
	return next, nil
}

// Find is the space that a name of the configuration stands for.
func (s *spaces) Find(ctx context.Context, name string) (space.Entry, error) {
	cfg, err := s.config(ctx)
	if err != nil {
		return space.Entry{}, err
	}
	return s.named(cfg, name)
}

// Wish is the space that is asked for: by the bucket, else by the configuration.
func (s *spaces) Wish(ctx context.Context) (space.Entry, error) {
	cfg, err := s.config(ctx)
	if err != nil {
		return space.Entry{}, err
	}
	asked, err := s.bucket.SpaceWish(ctx)
	if err != nil {
		return space.Entry{}, err
	}
	return s.named(cfg, cmp.Or(asked.Embed, cfg.Wanted()))
}

// Kept is embed.Spaces.
func (s *spaces) Kept(ctx context.Context) (time.Duration, error) {
	asked, err := s.bucket.SpaceWish(ctx)
	return asked.Retention, err
}

// Names lists what Find knows.
func (s *spaces) Names(ctx context.Context) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Embeddings()
}

// Check asks the model of e for a vector: one of another length than is declared would
// fill no space.
func (s *spaces) Check(ctx context.Context, e space.Entry) error {
	if e.Endpoint == "" {
		return nil
	}
	src, err := s.source(e)
	if err != nil {
		return err
	}
	v, err := src.Vectors(ctx, e.Model, []string{"dimensions"}, 0)
	if err != nil {
		return fault.At(fault.KindOf(err), "model "+e.Model, fault.HintOf(err), "endpoint %s gives no vector, and nothing was changed: %v", e.Endpoint, err)
	}
	if len(v) != 1 || len(v[0]) != e.Dims {
		n := 0
		if len(v) == 1 {
			n = len(v[0])
		}
		return fault.At(fault.Invalid, "model "+e.Model, fmt.Sprintf("write dims: %d in the file of models", n), "its vectors have %d numbers, and %d are configured; nothing was changed", n, e.Dims)
	}
	return nil
}

// source is the server of e.
func (s *spaces) source(e space.Entry) (embedding.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sourceLocked(e)
}

func (s *spaces) sourceLocked(e space.Entry) (embedding.Source, error) {
	if !s.asks {
		return nowhere{}, nil
	}
	at, ok := s.cfg.Endpoint(e.Endpoint)
	if !ok || s.cur == nil {
		return nil, fault.At(fault.Unavailable, "model "+e.Model, "name the endpoint in the file of models (MNEME_MODELS), or let another model serve: mem model set embed NAME",
			"its endpoint %q is not configured any more", e.Endpoint)
	}
	return s.cur.client(at)
}

// Open gives the embedder of the documents of e.
func (s *spaces) Open(e space.Entry) (llm.Embedder, error) {
	o, err := s.embedders(e)
	if err != nil {
		return nil, err
	}
	return o.documents, nil
}

func (s *spaces) embedders(e space.Entry) (*openedSpace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Since, e.Recall, e.Served, e.Name = space.Entry{}.Since, nil, false, ""
	if o := s.opened[e.ID]; o != nil && o.of == s.cur && o.entry == e {
		return o, nil
	}
	o := &openedSpace{entry: e, of: s.cur}
	if e.Endpoint == "" {
		t, err := static.Cut(e.Dims)
		if err != nil {
			return nil, err
		}
		if t.Space().ID != e.ID {
			return nil, fault.At(fault.Corrupt, "space "+e.ID, "let another one serve: mem model set embed static", "the table that filled it is not that of this program")
		}
		o.documents, o.questions = t, t
	} else {
		src, err := s.sourceLocked(e)
		if err != nil {
			return nil, err
		}
		texts, err := textsOf(&models.Embed{
			Endpoint: e.Endpoint, Model: e.Model, Dims: e.Dims, Window: e.Window, Revision: e.Revision, Prefix: e.Prefix, DenseWeight: e.DenseWeight, Floor: e.Floor,
		}, src, s.count)
		if err != nil {
			return nil, err
		}
		if texts.Space().ID != e.ID {
			return nil, fault.At(fault.Corrupt, "space "+e.ID, "mem model set embed NAME", "the pointer's model is of space %s", texts.Space().ID)
		}
		if o.documents, err = embedding.Cached(texts, embedding.DocumentBytes); err != nil {
			return nil, err
		}
		if o.questions, err = embedding.Cached(llm.Resting(texts.Queries(), llm.DefaultRest), embedding.QueryBytes); err != nil {
			return nil, err
		}
	}
	s.opened[e.ID] = o
	return o, nil
}

// Serving is the embedder of questions in the space that serves, with that space's
// weights and floor. Where its model cannot be asked, it is one whose vectors fail:
// the answer says so and words decide alone.
func (s *spaces) Serving(ctx context.Context) (llm.Embedder, error) {
	st, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	o, err := s.embedders(st.Serving)
	if err != nil {
		if _, rerr := s.config(ctx); rerr == nil { // it may have come with a changed file
			if o, err = s.embedders(st.Serving); err == nil {
				return o.questions, nil
			}
		}
		return lost{st.Serving.Space, err}, nil
	}
	return o.questions, nil
}

// lost stands for a model that cannot be asked.
type lost struct {
	space memory.Space
	err   error
}

func (l lost) Space() memory.Space                                  { return l.space }
func (l lost) Embed(context.Context, []string) ([][]float32, error) { return nil, l.err }

// free reports whether a space's vectors cost nothing: the tables of the program do.
func (s *spaces) free(sp memory.Space) bool { return sp.Model == static.Model }

func (s *spaces) price(model string, tokens int) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Cost(model, tokens, 0)
}

// servers are the clients of the configuration; nil where it has none.
func (s *spaces) servers() *modelServers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur
}

func (s *spaces) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range append(s.old, s.own) {
		if m == nil {
			continue
		}
		if cerr := m.Close(); err == nil {
			err = cerr
		}
	}
	s.old, s.own = nil, nil
	return err
}
