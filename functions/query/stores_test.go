package query_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/osindex"
	"github.com/mneme-ai/mneme/shared/index/pgindex"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// wirebreak stands before a real server. It can refuse connections, and cut those that
// stand, or take what is sent and answer nothing, as a server does that was killed or
// stopped.
type wirebreak struct {
	addr string
	to   string

	mu    sync.Mutex
	mode  string // "", "down", "silent"
	conns []net.Conn
}

func before(t *testing.T, to string) *wirebreak {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wirebreak{addr: l.Addr().String(), to: to}
	t.Cleanup(func() {
		l.Close()
		w.set("down")
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	return w
}

func (w *wirebreak) set(mode string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode = mode
	if mode == "down" {
		for _, c := range w.conns {
			c.Close()
		}
		w.conns = nil
	}
}

func (w *wirebreak) silent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mode == "silent"
}

func (w *wirebreak) serve(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer s.Close()
	w.mu.Lock()
	if w.mode == "down" {
		w.mu.Unlock()
		return
	}
	w.conns = append(w.conns, c, s)
	w.mu.Unlock()
	go func() {
		defer s.Close()
		defer c.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := s.Read(buf)
			if err != nil {
				return
			}
			if w.silent() {
				continue // the server has answered, and nobody hears it
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	_, _ = io.Copy(s, c)
}

// TestRealStoresDegrade: with the real PostgreSQL and OpenSearch behind wires that break
// or fall silent, an answer is degraded and says so, with citations; soon it costs no more
// waiting; without both it is 503; afterwards all is well.
func TestRealStoresDegrade(t *testing.T) {
	t.Parallel()
	pg, cluster := os.Getenv("MNEME_TEST_PG"), os.Getenv("MNEME_TEST_OS")
	if pg == "" || cluster == "" {
		for _, name := range []string{"pg", "os"} {
			if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), name) {
				t.Fatal("MNEME_TEST_PG and MNEME_TEST_OS are required")
			}
		}
		t.Skip("MNEME_TEST_PG and MNEME_TEST_OS are not set: make services")
	}
	through := func(raw string) (string, *wirebreak) {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		w := before(t, u.Host)
		u.Host = w.addr
		return u.String(), w
	}
	pgURL, pgWire := through(pg)
	osURL, osWire := through(cluster)
	schema, prefix := ownNames(t, pg, cluster)
	g, err := pgindex.Open(t.Context(), pgindex.Config{URL: pgURL, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	l, err := osindex.Open(t.Context(), osindex.Config{URLs: []string{osURL}, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	const rest = 2 * time.Second
	w := filled(t, functest.Options{Graph: g, Lexical: l, LegTimeout: time.Second, LegRest: rest})
	const question = "at how many attempts did we cap retries, because the upstream bans us?"
	one := func() (query.Answer, time.Duration) {
		t.Helper()
		began := time.Now()
		var a query.Answer
		w.Get("/memory/query?project=shop&level=L0&query="+url.QueryEscape(question), &a)
		if len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "cap retries at 5") || len(a.Results[0].Citations) == 0 {
			t.Fatalf("%+v", a)
		}
		return a, time.Since(began)
	}
	well := func() query.Answer {
		t.Helper()
		for range 100 {
			rec := w.Call(http.MethodGet, "/memory/query?project=shop&level=L0&query="+url.QueryEscape(question), nil)
			var a query.Answer
			if err := json.Unmarshal(rec.Body.Bytes(), &a); err == nil && rec.Code == http.StatusOK && len(a.Degraded) == 0 && len(a.Results) > 0 {
				return a
			}
			time.Sleep(rest / 10)
		}
		t.Fatal("it does not come back")
		return query.Answer{}
	}
	want := well().Results[0]
	for _, tc := range []struct {
		wire *wirebreak
		mode string
		legs []string
	}{
		{pgWire, "down", []string{"graph", "semantic"}}, {osWire, "down", []string{"lexical"}},
		{pgWire, "silent", []string{"graph", "semantic"}}, {osWire, "silent", []string{"lexical"}},
	} {
		tc.wire.set(tc.mode)
		a, took := one()
		legs := without(a)
		slices.Sort(legs)
		if !slices.Equal(legs, tc.legs) {
			t.Errorf("%s %s: degraded %+v", tc.legs, tc.mode, a.Degraded)
		}
		for _, d := range a.Degraded {
			if d.Why == "" || strings.Contains(d.Why, "password") {
				t.Errorf("%s %s: %q", tc.legs, tc.mode, d.Why)
			}
		}
		if c := a.Results[0]; c.SHA256 != want.SHA256 || c.Citations[0].SHA256 != want.Citations[0].SHA256 || c.Citations[0].Quote != want.Citations[0].Quote {
			t.Errorf("%s %s: cites %+v, want %+v", tc.legs, tc.mode, c.Citations[0], want.Citations[0])
		}
		if took > 4*time.Second {
			t.Errorf("%s %s: %v", tc.legs, tc.mode, took)
		}
		if _, again := one(); tc.mode == "silent" && again > took/2 {
			t.Errorf("%s %s: the next question waits %v, the first %v", tc.legs, tc.mode, again, took)
		}
		tc.wire.set("down") // what hangs is cut
		tc.wire.set("")
		well()
	}
	pgWire.set("down")
	osWire.set("down")
	rec := w.Call(http.MethodGet, "/memory/query?project=shop&query="+url.QueryEscape(question), nil)
	var p serve.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || p.Hint == "" {
		t.Errorf("without both: %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
	pgWire.set("")
	osWire.set("")
	well()
}

// countingGraph counts the calls of a graph, each a round trip or, of a search, a few.
type countingGraph struct {
	index.Graph
	calls atomic.Int64
}

func (g *countingGraph) SearchDense(ctx context.Context, space string, v []float32, f index.Filter, k int) ([]index.Hit, error) {
	g.calls.Add(1)
	return g.Graph.SearchDense(ctx, space, v, f, k)
}

func (g *countingGraph) Nodes(ctx context.Context, tenant string, ids []memory.SHA) ([]index.Node, error) {
	g.calls.Add(1)
	return g.Graph.Nodes(ctx, tenant, ids)
}

func (g *countingGraph) Walk(ctx context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, error) {
	g.calls.Add(1)
	return g.Graph.Walk(ctx, tenant, ids)
}

func (g *countingGraph) Superseded(ctx context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, error) {
	g.calls.Add(1)
	return g.Graph.Superseded(ctx, tenant, ids)
}

func (g *countingGraph) Succession(ctx context.Context, tenant string, ids []memory.SHA, steps int) ([]index.Node, error) {
	g.calls.Add(1)
	return g.Graph.Succession(ctx, tenant, ids, steps)
}

func (g *countingGraph) Below(ctx context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, []index.Node, error) {
	g.calls.Add(1)
	return g.Graph.Below(ctx, tenant, ids)
}

// TestStatements: a hybrid query over PostgreSQL is a fixed number of statements, whatever
// it finds: no row costs one of its own.
func TestStatements(t *testing.T) {
	t.Parallel()
	g, l, ok := servers(t)
	if !ok {
		t.Skip("MNEME_TEST_PG and MNEME_TEST_OS are not set: make services")
	}
	counted := &countingGraph{Graph: g}
	w := filled(t, functest.Options{Graph: counted, Lexical: l})
	for _, tc := range []struct {
		levels []memory.Level
		limit  int
		most   int64
	}{
		{[]memory.Level{memory.L0}, 1, 2}, {[]memory.Level{memory.L0}, 50, 2}, // the search, the rows
		{[]memory.Level{memory.L1}, 1, 3}, {[]memory.Level{memory.L1}, 50, 3}, // and what memories rest on
	} {
		counted.calls.Store(0)
		a := ask(t, w, "what is the cache TTL in minutes, and do we cap retries?", query.Request{Projects: []string{"shop"}, Levels: tc.levels, Limit: tc.limit})
		if len(a.Results) == 0 {
			t.Fatalf("%v: nothing", tc.levels)
		}
		if n := counted.calls.Load(); n > tc.most {
			t.Errorf("%v, %d results: %d calls of the graph, at most %d", tc.levels, len(a.Results), n, tc.most)
		}
	}
}
