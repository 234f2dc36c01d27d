package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/serve"
)

// fn is a Function made of what a test needs of it.
type fn struct {
	name   string
	handle func(ctx context.Context, e ce.Event) ([]ce.Event, error)
}

func (f *fn) Name() string { return or(f.name, "gate") }
func (f *fn) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	if f.handle == nil {
		return nil, nil
	}
	return f.handle(ctx, e)
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// open makes a Service that accepts events.
func open(t testing.TB, f serve.Function, cfg serve.Config) *serve.Service {
	t.Helper()
	s := serve.New(f, cfg)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// inbox is a broker that keeps what it gets.
type inbox struct {
	status int // answered; 0 is 202
	header http.Header

	mu     sync.Mutex
	events []ce.Event
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	var e ce.Event
	if err := json.Unmarshal(body, &e); err != nil {
		panic(err)
	}
	b.mu.Lock()
	b.events = append(b.events, e)
	b.mu.Unlock()
	for k, v := range b.header {
		w.Header()[k] = v
	}
	if b.status == 0 {
		b.status = http.StatusAccepted
	}
	w.WriteHeader(b.status)
}

func (b *inbox) ids() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for _, e := range b.events {
		ids = append(ids, e.ID())
	}
	return ids
}

// to is a Config that sends to h without a socket.
func to(h http.Handler) serve.Config {
	return serve.Config{Sink: "http://broker.test/", Client: &http.Client{Transport: serve.Local(h)}}
}

// part is a chunks.ready event; equal seq, equal event.
func part(seq int64) ce.Event {
	return event.New(event.ChunksReady, "learn", event.Part{Tenant: "local", Project: "shop", Seq: seq, Source: "s"})
}

func structured(t testing.TB, e ce.Event) *http.Request {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(b))
	r.Header.Set("Content-Type", ce.ApplicationCloudEventsJSON)
	return r
}

func binary(e ce.Event) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(e.Data()))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Ce-Specversion", "1.0")
	r.Header.Set("Ce-Id", e.ID())
	r.Header.Set("Ce-Type", e.Type())
	r.Header.Set("Ce-Source", e.Source())
	r.Header.Set("Ce-Subject", e.Subject())
	for k, v := range e.Extensions() {
		r.Header.Set("Ce-"+k, v.(string))
	}
	return r
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func problem(t testing.TB, w *httptest.ResponseRecorder) serve.Problem {
	t.Helper()
	var p serve.Problem
	dec := json.NewDecoder(strings.NewReader(w.Body.String()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	return p
}
