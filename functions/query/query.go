// Package query answers a question with ranked nodes, each with the chain down
// to the exact source span.
//
// Invariant: scope comes from the credential; an empty scope sees nothing. A
// query reads index rows only, no object, except for questions about the log
// itself (why, log). Raw text that no gate kept is a last resort: it is flagged
// "seen, not kept" and never mixed with memory. A reranker changes the order of
// what passed the floor, never what passes it.
//
// The package writes one thing: who promoted or withdrew a skill, when, and its text
// (skill.go). No memory follows from it.
package query

import (
	"context"
	"log/slog"
	"strings"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/skill"
)

// Config is what the function is given.
type Config struct {
	Tenant   string
	Log      *eventlog.Log
	Catalog  *catalog.Catalog
	Graph    index.Graph
	Lexical  index.Lexical
	Embedder llm.Embedder
	FloorIDF float64 // share of the query's idf that must match where the cosine is under the space's floor
	Logger   *slog.Logger
	// LegTimeout bounds one leg; a leg that is late is left out and the answer
	// says so. 2 s by default, under the 5 s of brief P16.
	LegTimeout time.Duration
	// Reranker orders the first RerankTop of what was found and reached the floor
	// (50 by default) by a cross-encoder; nil: the fused order stands. One that takes
	// longer than RerankTimeout is left out and the answer says so; 2 s by default,
	// which with a leg's is under those 5 s.
	Reranker      llm.Reranker
	RerankModel   string
	RerankTop     int
	RerankTimeout time.Duration
	Now           func() time.Time
}

// Function is the query function.
type Function struct {
	cfg    Config
	skills *skill.Reader
}

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	if cfg.Log == nil || cfg.Catalog == nil || cfg.Graph == nil || cfg.Lexical == nil || cfg.Embedder == nil {
		return nil, fault.New(fault.Internal, "query: a dependency is missing")
	}
	if cfg.LegTimeout == 0 {
		cfg.LegTimeout = 2 * time.Second
	}
	if cfg.RerankTop == 0 {
		cfg.RerankTop = candidates
	}
	if cfg.RerankTimeout == 0 {
		cfg.RerankTimeout = 2 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Function{cfg: cfg, skills: skill.NewReader(cfg.Log, cfg.Catalog)}, nil
}

// Name is the function's name.
func (f *Function) Name() string { return "query" }

// Handle refuses every event: query is asked over HTTP.
func (f *Function) Handle(_ context.Context, e ce.Event) ([]ce.Event, error) {
	return nil, fault.New(fault.Invalid, "query does not handle %s", e.Type())
}

// Limits of one request.
const (
	maxQuery     = 4 << 10 // bytes; a question, not a document
	maxLimit     = 100
	defaultLimit = 10
	candidates   = 50 // from each leg (brief U1)
	// maxCitations bounds what one result carries: a memory of 1,024 tokens
	// rests on about 40 sentences.
	maxCitations = 50
)

// Ask answers a request.
func (f *Function) Ask(ctx context.Context, q Request) (_ Answer, err error) {
	defer fault.Wrap(&err, "query")
	start := f.cfg.Now()
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	text := normalise(q.Query)
	a := Answer{Query: q.Query, Degraded: []string{}, Results: []Result{}}
	if len(q.Projects) == 1 {
		a.Project = q.Projects[0]
	}
	projects, serving, err := f.scope(ctx, &a, q.Projects)
	if err != nil {
		return a, err
	}
	if len(projects) > 0 {
		levels := q.Levels
		if len(levels) == 0 {
			levels = []memory.Level{memory.L0, memory.L1, memory.L2}
		}
		filter := index.Filter{Tenant: f.cfg.Tenant, Projects: projects, Levels: levels, Since: q.Since, Until: q.Until}
		if err := f.search(ctx, &a, text, filter, &q, serving, len(q.Levels) == 0); err != nil {
			return a, err
		}
		if len(a.Results) == 0 && len(q.Levels) == 0 {
			filter.Levels = []memory.Level{memory.LevelRaw}
			if err := f.search(ctx, &a, text, filter, &q, serving, false); err != nil {
				return a, err
			}
			if len(a.Results) > 0 {
				a.Notice = "no memory answers this; these passages were seen and not kept"
			}
		}
	}
	if len(a.Results) == 0 {
		a.Notice = "nothing is known about this"
	}
	a.TookMS = float64(f.cfg.Now().Sub(start).Microseconds()) / 1000
	return a, nil
}

// normalise trims, folds white space and brings the text to NFC.
func normalise(q string) string { return norm.NFC.String(strings.Join(strings.Fields(q), " ")) }

// scope resolves the projects and which streams serve in them. A project whose
// question file cannot be read is searched in all its streams, and the answer
// says so: a bad file loses no good answer.
func (f *Function) scope(ctx context.Context, a *Answer, names []string) ([]string, map[string]bool, error) {
	out := names
	if len(out) == 0 { // a project that is named needs no listing: an unknown one has no rows
		var err error
		if out, err = f.cfg.Log.Projects(ctx); err != nil {
			return nil, nil, err
		}
	}
	sets := make([]servingSet, len(out))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8) // requests at a time
	for i, n := range out {
		g.Go(func() error {
			var err error
			sets[i], err = f.servingOf(ctx, n)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	serving := map[string]bool{}
	for i, n := range out {
		if sets[i].bad != "" {
			a.Degraded = append(a.Degraded, "questions of "+n+": "+sets[i].bad)
		}
		for _, s := range sets[i].streams {
			serving[n+"/"+s] = true
		}
		serving[n+"/"+memory.AdmitStream] = true
	}
	return out, serving, nil
}
