package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
)

// What a handler returns decides what the broker is told: STYLE section 5.
func TestErrorKindToStatus(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		err   error
		want  int
		after string
		code  string
	}{
		{"done", nil, 204, "", ""},
		{"invalid", fault.New(fault.Invalid, "x"), 400, "", "invalid"},
		{"malformed", fault.New(fault.Malformed, "x"), 400, "", "malformed"},
		{"corrupt", fault.New(fault.Corrupt, "x"), 422, "", "corrupt"},
		{"exhausted", &fault.Error{Kind: fault.Exhausted, RetryAfter: 1500 * time.Millisecond}, 429, "2", "exhausted"},
		{"exhausted, unsaid", fault.New(fault.Exhausted, "x"), 429, "1", "exhausted"},
		{"unavailable", fault.New(fault.Unavailable, "x"), 503, "1", "unavailable"},
		{"conflict never reaches a broker", fault.New(fault.Conflict, "x"), 503, "1", "conflict"},
		{"nor does not found", fault.New(fault.NotFound, "x"), 503, "1", "not_found"},
		{"wrapped keeps its kind", fmt.Errorf("append(a, 1): %w", fault.New(fault.Corrupt, "x")), 422, "", "corrupt"},
		{"plain error is a bug", errors.New("x"), 500, "", "internal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, &fn{handle: func(context.Context, ce.Event) ([]ce.Event, error) { return nil, tc.err }}, serve.Config{})
			for _, r := range []*http.Request{structured(t, part(1)), binary(part(1))} {
				w := do(s.Handler(), r)
				if w.Code != tc.want || w.Header().Get("Retry-After") != tc.after {
					t.Errorf("status %d, Retry-After %q, want %d, %q", w.Code, w.Header().Get("Retry-After"), tc.want, tc.after)
				}
				if tc.err == nil {
					if w.Body.Len() != 0 {
						t.Errorf("204 with body %q", w.Body)
					}
					continue
				}
				if got := problem(t, w).Code; got != tc.code {
					t.Errorf("code %q, want %q", got, tc.code)
				}
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	called := false
	s := open(t, &fn{handle: func(context.Context, ce.Event) ([]ce.Event, error) { called = true; return nil, nil }}, serve.Config{})
	post := func(contentType, body string, header ...string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	big := part(1)
	if err := big.SetData("application/json", map[string]string{"text": strings.Repeat("x", serve.MaxEventBytes)}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		r    *http.Request
		want int
	}{
		{"no event", post("application/json", `{"Records":[]}`), 400},
		{"empty", post(ce.ApplicationCloudEventsJSON, ``), 400},
		{"not JSON", post(ce.ApplicationCloudEventsJSON, `{`), 400},
		{"no id", post(ce.ApplicationCloudEventsJSON, `{"specversion":"1.0","type":"t","source":"/s"}`), 400},
		{"unknown version", post(ce.ApplicationCloudEventsJSON, `{"specversion":"9","type":"t","source":"/s","id":"1"}`), 400},
		{"a batch", post("application/cloudevents-batch+json", `[]`), 400},
		{"header that breaks the SDK", post("text/plain", "", "Ce-", "x", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "t"), 400},
		{"extension with a dash", post("text/plain", "", "Ce-A-B", "x", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "t"), 400},
		{"over 1 MiB, structured", structured(t, big), 413},
		{"over 1 MiB, binary", binary(big), 413},
		{"GET", httptest.NewRequest(http.MethodGet, "/", nil), 405},
		{"another path", httptest.NewRequest(http.MethodPost, "/elsewhere", nil), 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if w := do(s.Handler(), tc.r); w.Code != tc.want {
				t.Errorf("status %d, want %d: %s", w.Code, tc.want, w.Body)
			}
		})
	}
	if called {
		t.Error("the handler saw a bad event")
	}
}

// A panic is a 500, its stack is logged, and neither log nor answer holds what
// the panic carried or the event did.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := serve.Config{Logger: slog.New(serve.LogHandler(slog.NewJSONHandler(&log, nil)))}
	s := open(t, &fn{handle: func(_ context.Context, e ce.Event) ([]ce.Event, error) {
		if e.ID() == part(2).ID() {
			var none []int
			return nil, fmt.Errorf("%d", none[len(e.ID())])
		}
		panic("SECRET " + string(e.Data()))
	}}, cfg)
	w := do(s.Handler(), structured(t, part(1)))
	if w.Code != 500 || problem(t, w).Code != "internal" {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	for _, secret := range []string{"SECRET", `"seq"`, `\"seq\"`} {
		if strings.Contains(w.Body.String()+log.String(), secret) {
			t.Errorf("%s leaks: %s %s", secret, w.Body, log.String())
		}
	}
	for _, want := range []string{"service_test.go", part(1).ID(), `"project":"shop"`, `"tenant":"local"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %s: %s", want, log.String())
		}
	}
	if w := do(s.Handler(), structured(t, part(2))); w.Code != 500 || !strings.Contains(problem(t, w).Message, "index out of range") {
		t.Errorf("runtime error: %d %s", w.Code, w.Body)
	}
	if w := do(s.Handler(), binary(part(1))); w.Code != 500 {
		t.Errorf("the next event: %d", w.Code)
	}
}

// Every event returned is at the broker before 204 is said.
func TestSendsOn(t *testing.T) {
	t.Parallel()
	out := []ce.Event{part(7), part(8)}
	t.Cleanup(func() { // after the parallel subtests
		if out[0].Extensions()["traceparent"] != nil {
			t.Error("the handler's own event was changed")
		}
	})
	for _, tc := range []struct {
		name   string
		broker *inbox
		sink   bool
		want   int
		after  string
		ids    []string
	}{
		{"accepted", &inbox{}, true, 204, "", []string{out[0].ID(), out[1].ID()}},
		{"broker full", &inbox{status: 429, header: http.Header{"Retry-After": {"7"}}}, true, 429, "7", []string{out[0].ID()}},
		{"broker down", &inbox{status: 500}, true, 503, "1", []string{out[0].ID()}},
		{"broker refuses", &inbox{status: 400}, true, 503, "1", []string{out[0].ID()}},
		{"broker moved", &inbox{status: 302}, true, 503, "1", []string{out[0].ID()}},
		{"no broker configured", &inbox{}, false, 500, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := to(tc.broker)
			if !tc.sink {
				cfg.Sink = ""
			}
			cfg.Extensions = map[string]string{"cluster": "blue"}
			s := open(t, &fn{handle: func(context.Context, ce.Event) ([]ce.Event, error) { return out, nil }}, cfg)
			in := part(1)
			in.SetExtension("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			w := do(s.Handler(), structured(t, in))
			if w.Code != tc.want || w.Header().Get("Retry-After") != tc.after {
				t.Errorf("status %d after %q, want %d after %q: %s", w.Code, w.Header().Get("Retry-After"), tc.want, tc.after, w.Body)
			}
			if d := cmp.Diff(tc.ids, tc.broker.ids()); d != "" {
				t.Error(d)
			}
			for _, e := range tc.broker.events {
				if e.Extensions()["traceparent"] != in.Extensions()["traceparent"] || e.Extensions()["cluster"] != "blue" || e.Extensions()["mnemeproject"] != "shop" {
					t.Errorf("extensions %v", e.Extensions())
				}
			}
		})
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	tick := func(job, data string, at time.Time) ce.Event {
		e := ce.New()
		e.SetType(string(event.Ping))
		e.SetID("random")
		e.SetSource("/apis/v1/namespaces/mneme/pingsources/" + or(job, "none"))
		e.SetTime(at)
		if job != "" {
			e.SetExtension("mnemejob", job)
		}
		e.SetExtension("mnemetenant", "acme")
		if data != "" {
			if err := e.SetData("application/json", []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	at := time.Date(2026, 3, 1, 2, 0, 0, 5e8, time.FixedZone("", 3600))
	for _, tc := range []struct {
		name string
		in   ce.Event
		want ce.Event // zero: refused
	}{
		{"sweep of the extension's tenant", tick("sweep", "", at), event.New(event.SweepRequested, "ping", event.Sweep{Tenant: "acme", At: "2026-03-01T01:00:00.5Z"})},
		{"sweep of the data's tenant", tick("sweep", `{"tenant":"local"}`, at), event.New(event.SweepRequested, "ping", event.Sweep{Tenant: "local", At: "2026-03-01T01:00:00.5Z"})},
		{"rebuild", tick("rebuild", `{"tenant":"local","project":"shop"}`, at), event.New(event.RebuildRequested, "ping", event.Project{Tenant: "local", Project: "shop"})},
		{"unknown job", tick("dance", "", at), ce.Event{}},
		{"no job", tick("", "", at), ce.Event{}},
		{"data is no JSON", tick("sweep", `{`, at), ce.Event{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got ce.Event
			s := open(t, &fn{handle: func(_ context.Context, e ce.Event) ([]ce.Event, error) { got = e; return nil, nil }}, serve.Config{})
			w := do(s.Handler(), structured(t, tc.in))
			if tc.want.Context == nil {
				if w.Code != 400 || got.Context != nil {
					t.Errorf("status %d, event %v", w.Code, got)
				}
				return
			}
			if w.Code != 204 || got.ID() != tc.want.ID() || got.Type() != tc.want.Type() || string(got.Data()) != string(tc.want.Data()) {
				t.Errorf("status %d, got %v, want %v", w.Code, got, tc.want)
			}
		})
	}
}

type routed struct{ fn }

func (routed) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /memory/projects", func(w http.ResponseWriter, r *http.Request) {
		serve.WriteJSON(w, 200, []string{"shop"})
	})
}

// hooked has every hook; Start waits for its gate.
type hooked struct {
	routed
	gate    chan struct{}
	err     error
	env     map[string]string
	stopped chan struct{}
	sick    bool
}

func (h *hooked) Start(ctx context.Context, env map[string]string) error {
	h.env = env
	select {
	case <-h.gate:
		return h.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (h *hooked) Stop(context.Context) error { close(h.stopped); return nil }
func (h *hooked) Ready(context.Context) (bool, error) {
	return !h.sick, nil
}
func (h *hooked) Alive(context.Context) (bool, error) { return !h.sick, nil }

// Nothing but health is answered before Start has returned.
func TestReadinessGate(t *testing.T) {
	t.Parallel()
	f := &hooked{gate: make(chan struct{}), stopped: make(chan struct{})}
	s := serve.New(f, serve.Config{Env: map[string]string{"A": "b"}})
	opened := make(chan error)
	go func() { opened <- s.Open(t.Context()) }()
	get := func(path string) int {
		return do(s.Handler(), httptest.NewRequest(http.MethodGet, path, nil)).Code
	}
	status := func() map[string]int {
		return map[string]int{
			"ready": get("/health/readiness"), "alive": get("/health/liveness"),
			"event": do(s.Handler(), structured(t, part(1))).Code, "route": get("/memory/projects"),
		}
	}
	if d := cmp.Diff(map[string]int{"ready": 503, "alive": 200, "event": 503, "route": 503}, status()); d != "" {
		t.Error("starting:", d)
	}
	close(f.gate)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"ready": 200, "alive": 200, "event": 204, "route": 200}, status()); d != "" {
		t.Error("started:", d)
	}
	if f.env["A"] != "b" {
		t.Errorf("env %v", f.env)
	}
	f.sick = true
	if d := cmp.Diff(map[string]int{"ready": 503, "alive": 503, "event": 204, "route": 200}, status()); d != "" {
		t.Error("sick:", d)
	}
	f.sick = false
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-f.stopped
	if get("/health/readiness") != 503 {
		t.Error("ready after Close")
	}
}

func TestConfigFromEnv(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		env  map[string]string
		want serve.Config
		bad  []string
	}{
		{"nothing", nil, serve.Config{}, nil},
		{"all", map[string]string{"K_SINK": "http://broker/ns", "K_CE_OVERRIDES": `{"extensions":{"a":"b"}}`, "MNEME_HANDLER_TIMEOUT": "90s"},
			serve.Config{Sink: "http://broker/ns", Extensions: map[string]string{"a": "b"}, HandlerTimeout: 90 * time.Second}, nil},
		{"every fault at once", map[string]string{"K_SINK": "broker", "K_CE_OVERRIDES": `[`, "MNEME_HANDLER_TIMEOUT": "soon"}, serve.Config{}, []string{"K_SINK", "K_CE_OVERRIDES", "MNEME_HANDLER_TIMEOUT"}},
		{"other scheme", map[string]string{"K_SINK": "file:///x"}, serve.Config{}, []string{"K_SINK"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := serve.ConfigFromEnv(func(k string) string { return tc.env[k] })
			if tc.bad == nil {
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Error(d)
				}
				return
			}
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error %v", err)
			}
			for _, name := range tc.bad {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("error %q does not name %s", err, name)
				}
			}
		})
	}
}
