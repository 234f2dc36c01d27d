package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// failing is a lexical index whose searches fail as fail says; nil: they do not.
type failing struct {
	index.Lexical
	fail  atomic.Pointer[func(context.Context) error]
	calls atomic.Int64
}

func (l *failing) set(f func(context.Context) error) {
	if f == nil {
		l.fail.Store(nil)
		return
	}
	l.fail.Store(&f)
}

func (l *failing) Search(ctx context.Context, q string, f index.Filter, k int) ([]index.Hit, error) {
	l.calls.Add(1)
	if fail := l.fail.Load(); fail != nil {
		return nil, (*fail)(ctx)
	}
	return l.Lexical.Search(ctx, q, f, k)
}

const whole = "cap retries at 5 attempts, because the upstream bans" // words as the reference index has them

// TestDeadLegRests: a leg that is down or late costs its time once; then it is left alone,
// tried again by one question alone, and is back when it is well. What one caller is
// refused says nothing about the others.
func TestDeadLegRests(t *testing.T) {
	t.Parallel()
	down := func(context.Context) error { return fault.New(fault.Unavailable, "connection refused") }
	late := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tc := range map[string]struct {
		fail  func(context.Context) error
		rests bool
		why   string
	}{
		"down":     {down, true, "connection refused"},
		"late":     {late, true, "no answer within 2s"},
		"full":     {func(context.Context) error { return fault.New(fault.Exhausted, "queue full") }, true, "queue full"},
		"denied":   {func(context.Context) error { return fault.New(fault.Denied, "no such role") }, false, "no such role"},
		"gone":     {func(context.Context) error { return fault.At(fault.Corrupt, "x", "run `mem rebuild`", "no index") }, false, "mem rebuild"},
		"in error": {func(context.Context) error { return fault.New(fault.Internal, "a bug") }, false, "a bug"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &failing{Lexical: indextest.NewLexical()}
				w := filled(t, functest.Options{Graph: indextest.NewGraph(), Lexical: l})
				one := func() (query.Answer, time.Duration) {
					t.Helper()
					began := time.Now()
					a := ask(t, w, whole, query.Request{Projects: []string{"shop"}})
					if len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "cap retries at 5") {
						t.Errorf("%+v", a)
					}
					return a, time.Since(began)
				}
				l.set(tc.fail)
				a, _ := one()
				if len(a.Degraded) != 1 || a.Degraded[0].Leg != "lexical" || !strings.Contains(a.Degraded[0].Why, tc.why) {
					t.Errorf("degraded %+v, want %q", a.Degraded, tc.why)
				}
				for _, r := range a.Results { // the other leg decides alone, with weight 1
					if r.Components.SemanticWeight != 1 || r.Components.LexicalWeight != 0 || !strings.Contains(r.Reason, "the search by words failed") {
						t.Errorf("%+v %s", r.Components, r.Reason)
					}
				}
				calls := l.calls.Load()
				for range 3 {
					if a, took := one(); len(a.Degraded) != 1 || took > time.Millisecond && tc.rests {
						t.Errorf("took %v, degraded %+v", took, a.Degraded)
					}
				}
				if n := l.calls.Load() - calls; (n == 0) != tc.rests {
					t.Errorf("%d calls of a leg that failed a moment ago", n)
				}
				if tc.rests {
					// When its rest is over one question tries it, and the others do without.
					time.Sleep(6 * time.Second)
					calls = l.calls.Load()
					var all sync.WaitGroup
					for range 5 {
						all.Go(func() { one() })
					}
					all.Wait()
					if n := l.calls.Load() - calls; n != 1 && name == "late" {
						t.Errorf("%d of 5 questions waited for it", n)
					}
					time.Sleep(6 * time.Second)
				}
				l.set(nil)
				for range 2 {
					if a, _ := one(); len(a.Degraded) != 0 {
						t.Errorf("it is well again: %+v", a.Degraded)
					}
				}
			})
		})
	}
}

// TestCallerLeaves: a caller that goes away while a leg thinks does not make it rest.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &failing{Lexical: indextest.NewLexical()}
		w := filled(t, functest.Options{Graph: indextest.NewGraph(), Lexical: l})
		l.set(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Query.Ask(ctx, query.Request{Query: whole, Projects: []string{"shop"}}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v", err)
		}
		l.set(nil)
		if a := ask(t, w, whole, query.Request{Projects: []string{"shop"}}); len(a.Degraded) != 0 {
			t.Errorf("%+v", a.Degraded)
		}
	})
}

// TestNoLeg: without any leg the answer is 503 with Retry-After and both reasons; a short
// question, which words answer, is answered by meaning while they are away.
func TestNoLeg(t *testing.T) {
	t.Parallel()
	on, off := true, false
	mu := &sync.Mutex{}
	l := &failing{Lexical: indextest.NewLexical()}
	g := broken{indextest.NewGraph(), false, mu, &off}
	w := filled(t, functest.Options{Graph: g, Lexical: l})
	l.set(func(context.Context) error { return fault.New(fault.Unavailable, "connection refused") })
	var short query.Answer
	w.Get("/memory/query?project=shop&query=cap+retries", &short)
	if legs := without(short); !slices.Equal(legs, []string{"lexical"}) || strings.Contains(short.Notice, "nothing is known") {
		t.Errorf("%+v", short)
	}
	w.Get("/memory/query?project=shop&query=zorble+quux", &short)
	if len(short.Results) != 0 || !strings.Contains(short.Notice, "not everything was searched") {
		t.Errorf("nothing found by half of the search: %+v", short)
	}
	mu.Lock()
	off = on
	mu.Unlock()
	for _, target := range []string{"query=cap+retries", "query=at+how+many+attempts+do+retries+stop", "query=retries&level=raw", "query=cap+retries+now&dense_weight=0"} {
		rec := w.Call(http.MethodGet, "/memory/query?project=shop&"+target, nil)
		var p serve.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || !strings.Contains(p.Message, "connection refused") {
			t.Errorf("%s: %d %v %s", target, rec.Code, rec.Header(), rec.Body)
		}
	}
}

// reading is a lexical index that can say itself what it found.
type reading struct {
	index.Lexical
	graph *indextest.Graph
}

func (l reading) Read(ctx context.Context, tenant string, passages []memory.SHA) (out []index.Node, err error) {
	nodes, err := l.graph.All(tenant)
	for _, n := range nodes {
		for _, p := range n.Passages {
			if slices.Contains(passages, p.ID) {
				n.Parents, n.Supersedes = nil, nil
				out = append(out, n)
			}
		}
	}
	return out, err
}

// gone is a graph that answers nothing.
type gone struct {
	index.Graph
	away *atomic.Bool
}

func (g gone) err() error {
	if g.away.Load() {
		return fault.New(fault.Unavailable, "connection refused")
	}
	return nil
}

func (g gone) SearchDense(ctx context.Context, space string, v []float32, f index.Filter, k int) ([]index.Hit, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Graph.SearchDense(ctx, space, v, f, k)
}

func (g gone) Succession(ctx context.Context, tenant string, ids []memory.SHA, steps int) ([]index.Node, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Graph.Succession(ctx, tenant, ids, steps)
}

// TestGraphGone: while the graph's server is away the lexical index answers with what it
// holds, citations too, and the answer says what is missing.
func TestGraphGone(t *testing.T) {
	t.Parallel()
	away := &atomic.Bool{}
	g := indextest.NewGraph()
	w := filled(t, functest.Options{Graph: gone{g, away}, Lexical: reading{indextest.NewLexical(), g}})
	want := ask(t, w, whole, query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}})
	away.Store(true)
	got := ask(t, w, whole, query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}})
	if legs := without(got); !slices.Equal(legs, []string{"semantic", "graph"}) {
		t.Errorf("degraded %+v", got.Degraded)
	}
	if len(got.Results) == 0 || got.Results[0].Text != want.Results[0].Text || got.Results[0].Components.LexicalWeight != 1 {
		t.Fatalf("%+v", got)
	}
	if fmt.Sprint(got.Results[0].Citations) != fmt.Sprint(want.Results[0].Citations) {
		t.Errorf("citations %+v, want %+v", got.Results[0].Citations, want.Results[0].Citations)
	}
}
