// Package query answers a question with ranked nodes, each with the chain down
// to the exact source span.
//
// Invariant: scope comes from the credential; an empty scope sees nothing. A
// query reads index rows only, no object, except for questions about the log
// itself (why, log). Raw text that no gate kept is a last resort: it is flagged
// "seen, not kept" and never mixed with memory. A reranker changes the order of
// what passed the floor, never what passes it.
//
// The package writes two things: who promoted or withdrew a skill, when, and its text
// (skill.go), and the originals of texts that readers shortened (original.go). No
// memory follows from either.
package query

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/originals"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/skill"
)

// Config is what the function is given.
type Config struct {
	Tenant  string
	Log     *eventlog.Log
	Catalog *catalog.Catalog
	Graph   index.Graph
	Lexical index.Lexical
	// Serving gives what embeds questions now, with the space, the weights and the floor
	// that go with it; nil: Embedder for good. A request takes it once.
	Serving  func(ctx context.Context) (llm.Embedder, error)
	Embedder llm.Embedder
	FloorIDF float64 // share of the query's idf that must match where the cosine is under the space's floor
	Logger   *slog.Logger
	// LegTimeout bounds one leg; a leg that is late is left out and the answer
	// says so. 2 s by default, under the 5 s of brief P16.
	LegTimeout time.Duration
	// LegRest is how long a leg that did not answer is left alone; 5 s by default.
	LegRest time.Duration
	// Inbox is the bucket of uploads, so that a source may be named without it.
	Inbox string
	// Caller, where it is set, gives the caller's own token of a request to the query
	// routes, "" for none: the lexical index's cluster decides by it what is seen, and who
	// sends none sees nothing there. nil: the index's own credentials are used.
	Caller func(*http.Request) string
	// Reranker orders the first RerankTop of what was found and reached the floor
	// (50 by default) by a cross-encoder; nil: the fused order stands. One that takes
	// longer than RerankTimeout is left out and the answer says so; 2 s by default,
	// which with a leg's is under those 5 s.
	Reranker      llm.Reranker
	RerankModel   string
	RerankTop     int
	RerankTimeout time.Duration
	// Originals keeps what was left out of what readers were given; nil: nothing is kept.
	Originals *originals.Store
	// Optimizer says what may be shortened of an answer whose reader asks for less.
	Optimizer compress.Options
	// Lessons is the index of lessons; nil: GET /memory/context answers without them.
	Lessons lookup.Index
	// Redact gives the rules by which failures were masked before they were signed; nil:
	// the built-in ones.
	Redact func(ctx context.Context) (*redact.Redactor, error)
	Now    func() time.Time
}

// Function is the query function.
type Function struct {
	cfg    Config
	skills *skill.Reader
	cures  *cures.Cures // nil: no index of lessons

	faces faces

	dense, lexical, graph *leg // the two searches, and the rows of what they found
}

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	if cfg.Log == nil || cfg.Catalog == nil || cfg.Graph == nil || cfg.Lexical == nil || cfg.Embedder == nil && cfg.Serving == nil {
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
	if cfg.LegRest == 0 {
		cfg.LegRest = legRest
	}
	f := &Function{
		cfg: cfg, skills: skill.NewReader(cfg.Log, cfg.Catalog),
		dense:   &leg{limit: cfg.LegTimeout, rest: cfg.LegRest, now: cfg.Now},
		lexical: &leg{limit: cfg.LegTimeout, rest: cfg.LegRest, now: cfg.Now},
		graph:   &leg{limit: cfg.LegTimeout / 2, rest: cfg.LegRest, now: cfg.Now}, // after a leg's time, within askTimeout
	}
	if cfg.Lessons != nil {
		f.cures = &cures.Cures{Tenant: cfg.Tenant, Log: cfg.Log, Index: cfg.Lessons}
	}
	return f, nil
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

// askTimeout bounds a whole answer (brief P16).
const askTimeout = 5 * time.Second

// asking is one request on its way.
type asking struct {
	*Function
	face face
	q    *Request
	a    *Answer
	text string // the question, normalised

	known   func() error // waits for what follows
	serving map[string]bool
}

// Ask answers a request.
func (f *Function) Ask(ctx context.Context, q Request) (_ Answer, err error) {
	defer fault.Wrap(&err, "query")
	start := f.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	in, err := f.face(ctx)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Query: q.Query, Space: in.space.ID, Degraded: []Degraded{}, Results: []Result{}}
	if len(q.Projects) == 1 {
		a.Project = q.Projects[0]
	}
	r := &asking{Function: f, face: in, q: &q, a: &a, text: normalise(q.Query)}
	projects := q.Projects
	if len(projects) == 0 { // a project that is named needs no listing: an unknown one has no rows
		if projects, err = f.cfg.Log.Projects(ctx); err != nil {
			return a, err
		}
	}
	if len(projects) > 0 {
		// Which streams serve is read while the legs search.
		r.known = r.scope(ctx, projects)
		filter := index.Filter{
			Tenant: f.cfg.Tenant, Projects: projects, Since: q.Since, Until: q.Until, AsOf: q.AsOf, Sources: f.sources(&q, projects),
		}
		err = r.answer(ctx, filter)
		if e := r.known(); err == nil { // its goroutines end before the answer does
			err = e
		}
		if err != nil {
			return a, err
		}
	}
	if len(a.Results) == 0 {
		a.Notice = "nothing is known about this"
		if r.without("semantic") || r.without("lexical") {
			a.Notice = "nothing was found, but not everything was searched"
		}
	}
	if q.Optimize || q.BudgetTokens > 0 {
		if err := f.optimize(ctx, &q, &a); err != nil {
			return a, err
		}
	}
	a.TookMS = float64(f.cfg.Now().Sub(start).Microseconds()) / 1000
	return a, nil
}

func (r *asking) answer(ctx context.Context, filter index.Filter) error {
	filter.Levels = r.q.Levels
	if len(filter.Levels) == 0 {
		filter.Levels = []memory.Level{memory.L0, memory.L1, memory.L2}
	}
	if err := r.search(ctx, filter, len(r.q.Levels) == 0); err != nil {
		return err
	}
	if len(r.a.Results) > 0 || len(r.q.Levels) > 0 || r.without("lexical") {
		return nil
	}
	filter.Levels = []memory.Level{memory.LevelRaw}
	if err := r.search(ctx, filter, false); err != nil {
		return err
	}
	if len(r.a.Results) > 0 {
		r.a.Notice = "no memory answers this; these passages were seen and not kept"
	}
	return nil
}

// degrade says once what the answer has to do without.
func (r *asking) degrade(ctx context.Context, leg string, err error) {
	if r.without(leg) {
		return
	}
	r.a.Degraded = append(r.a.Degraded, degraded(leg, err))
	r.cfg.Logger.WarnContext(ctx, "leg left out", slog.String("leg", leg), slog.Any("err", err))
}

func (r *asking) without(leg string) bool {
	return slices.ContainsFunc(r.a.Degraded, func(d Degraded) bool { return d.Leg == leg })
}

// sources are the objects that a request names: by their full name bucket/key, by their
// key, or by what follows the project in it.
func (f *Function) sources(q *Request, projects []string) (out []string) {
	for _, s := range q.Sources {
		out = append(out, s)
		if f.cfg.Inbox == "" {
			continue
		}
		out = append(out, f.cfg.Inbox+"/"+s)
		for _, p := range projects {
			out = append(out, f.cfg.Inbox+"/"+p+"/"+s)
		}
	}
	return out
}

// normalise trims, folds white space and brings the text to NFC.
func normalise(q string) string { return norm.NFC.String(strings.Join(strings.Fields(q), " ")) }

// scope reads which streams serve in the projects, and gives what waits for it. A project
// whose question file cannot be read is searched in all its streams, and one whose streams
// cannot be read in time is left out of several; the answer says so: a bad file loses no
// good answer.
func (r *asking) scope(ctx context.Context, projects []string) (wait func() error) {
	sets := make([]servingSet, len(projects))
	errs := make([]error, len(projects))
	done := make(chan struct{})
	go func() {
		defer close(done)
		own, cancel := context.WithTimeout(ctx, r.cfg.LegTimeout)
		defer cancel()
		var g errgroup.Group
		g.SetLimit(8) // requests at a time
		for i, name := range projects {
			g.Go(func() error {
				sets[i], errs[i] = r.servingOf(own, name)
				return nil
			})
		}
		_ = g.Wait() // each reports its own error
	}()
	return sync.OnceValue(func() error {
		<-done
		r.serving = map[string]bool{}
		failed := 0
		for i, n := range projects {
			if errs[i] != nil {
				failed++
				r.a.Degraded = append(r.a.Degraded, degraded("project", fault.As(fault.Unavailable, fmt.Errorf("%s is left out: %w", n, errs[i]))))
				continue
			}
			if sets[i].bad != "" {
				r.a.Degraded = append(r.a.Degraded, Degraded{"questions", n + ": " + sets[i].bad})
			}
			for _, s := range sets[i].streams {
				r.serving[n+"/"+s] = true
			}
			r.serving[n+"/"+memory.AdmitStream] = true
		}
		if failed == len(projects) {
			return fault.As(kindOf(errs[0]), errs[0])
		}
		return nil
	})
}
