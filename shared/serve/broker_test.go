package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
)

// answers is a subscriber that gives one answer after the other, the last for
// ever, and keeps when and what it was asked.
type answers struct {
	seq   []http.HandlerFunc
	start time.Time

	mu  sync.Mutex
	at  []time.Duration
	ids []string
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e ce.Event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		panic(err)
	}
	a.mu.Lock()
	n := len(a.at)
	a.at = append(a.at, time.Since(a.start))
	a.ids = append(a.ids, e.ID())
	a.mu.Unlock()
	a.seq[min(n, len(a.seq)-1)](w, r)
}

func (a *answers) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.ids)
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// running starts b, and returns a function that ends it and waits.
func running(t *testing.T, b *serve.Broker) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What a broker does with each answer: eventing v0.50, kncloudevents.
func TestBrokerVerdicts(t *testing.T) {
	t.Parallel()
	body := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, text) }
	}
	for _, tc := range []struct {
		name     string
		answer   http.HandlerFunc
		attempts int // of at most 4
		code     int // of the dead letter; -1: none
		data     string
	}{
		{"200", status(200), 1, -1, ""},
		{"202", status(202), 1, -1, ""},
		{"204", status(204), 1, -1, ""},
		{"2xx with a body is 502", body(200, "thanks"), 4, 502, "thanks"},
		{"301", status(301), 1, 301, ""},
		{"400", body(400, `{"code":"invalid","message":"no seq"}`), 1, 400, `{"code":"invalid","message":"no seq"}`},
		{"401", status(401), 1, 401, ""},
		{"403", status(403), 1, 403, ""},
		{"404", status(404), 4, 404, ""},
		{"408", status(408), 4, 408, ""},
		{"409", status(409), 4, 409, ""},
		{"413", status(413), 1, 413, ""},
		{"422", status(422), 1, 422, ""},
		{"429", status(429), 4, 429, ""},
		{"500", body(500, strings.Repeat("x", 2000)), 4, 500, strings.Repeat("x", serve.MaxDeadData)},
		{"503", status(503), 4, 503, ""},
		{"599", status(599), 4, 599, ""},
		{"panic is no answer", func(http.ResponseWriter, *http.Request) { panic("x") }, 4, 0, "handler panicked (string)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var dead []serve.Dead
				b := serve.NewBroker(serve.BrokerConfig{Attempts: 4, DeadLetter: func(_ context.Context, d serve.Dead) error { dead = append(dead, d); return nil }})
				sub, other := &answers{seq: []http.HandlerFunc{tc.answer}, start: time.Now()}, &answers{seq: []http.HandlerFunc{status(204)}}
				b.Subscribe("gate", sub)
				b.Subscribe("project", other)
				running(t, b)
				if err := b.Publish(t.Context(), part(1)); err != nil {
					t.Fatal(err)
				}
				if err := b.WaitIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(sub.got()) != tc.attempts || len(other.got()) != 1 {
					t.Errorf("%d attempts, the other subscriber %d; want %d and 1", len(sub.got()), len(other.got()), tc.attempts)
				}
				var want []serve.Dead
				st := serve.Stats{Published: 1, Delivered: 2, Retried: int64(tc.attempts - 1)}
				if tc.code >= 0 {
					want = []serve.Dead{{Event: part(1), Subscriber: "gate", Attempts: tc.attempts, Code: tc.code, Data: []byte(tc.data), Time: time.Now().UTC()}}
					st.Delivered, st.Dead = 1, 1
				}
				if d := cmp.Diff(want, dead, cmp.Comparer(sameEvent), cmpopts.EquateEmpty()); d != "" {
					t.Error(d)
				}
				if d := cmp.Diff(st, b.Stats()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func sameEvent(a, b ce.Event) bool { return a.String() == b.String() }

// The waits double from the base to the cap, each varied by half of it, and
// Retry-After lengthens one, up to its own cap.
func TestBrokerWaits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		want   [][2]time.Duration // least and most of each wait
	}{
		{"backoff", status(503), [][2]time.Duration{{500, 1500}, {1000, 3000}, {2000, 6000}, {2500, 7500}, {2500, 7500}}},
		{"Retry-After in seconds", status(429, "Retry-After", "20"), [][2]time.Duration{{20000, 20000}, {20000, 20000}, {20000, 20000}, {20000, 20000}, {20000, 20000}}},
		{"Retry-After shorter than the wait", status(503, "Retry-After", "0"), [][2]time.Duration{{500, 1500}, {1000, 3000}, {2000, 6000}, {2500, 7500}, {2500, 7500}}},
		{"Retry-After past its cap", status(503, "Retry-After", "86400"), [][2]time.Duration{{60000, 60000}, {60000, 60000}, {60000, 60000}, {60000, 60000}, {60000, 60000}}},
		{"Retry-After as a date", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat))
			w.WriteHeader(503)
		}, [][2]time.Duration{{29000, 30000}, {29000, 30000}, {29000, 30000}, {29000, 30000}, {29000, 30000}}},
		{"nonsense", status(503, "Retry-After", "soon"), [][2]time.Duration{{500, 1500}, {1000, 3000}, {2000, 6000}, {2500, 7500}, {2500, 7500}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := serve.NewBroker(serve.BrokerConfig{Attempts: 6, BackoffBase: time.Second, BackoffMax: 5 * time.Second})
				sub := &answers{seq: []http.HandlerFunc{tc.answer}, start: time.Now()}
				b.Subscribe("gate", sub)
				running(t, b)
				if err := b.Publish(t.Context(), part(1)); err != nil {
					t.Fatal(err)
				}
				if err := b.WaitIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(sub.at) != 6 {
					t.Fatalf("%d attempts", len(sub.at))
				}
				for i, w := range tc.want {
					// 1 ms of slack: the library rounds up
					if got := sub.at[i+1] - sub.at[i]; got < w[0]*time.Millisecond || got > (w[1]+1)*time.Millisecond {
						t.Errorf("wait %d is %v, want %v ms", i, got, w)
					}
				}
			})
		})
	}
}

// Trouble that passes costs nothing but time.
func TestBrokerRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := serve.NewBroker(serve.BrokerConfig{DeadLetter: func(context.Context, serve.Dead) error { t.Error("a dead letter"); return nil }})
		sub := &answers{seq: []http.HandlerFunc{status(503), status(429), status(500), status(204)}}
		b.Subscribe("gate", sub)
		running(t, b)
		for i := range 3 {
			if err := b.Publish(t.Context(), part(int64(i+1))); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := b.Stats(); st.Delivered != 3 || st.Retried != 3 {
			t.Errorf("%+v", st)
		}
	})
}

// The same table through a real Service: each error kind of a handler ends as
// the table of STYLE section 5 says.
func TestKindsThroughBroker(t *testing.T) {
	t.Parallel()
	for kind, want := range map[fault.Kind]struct{ attempts, code int }{
		fault.Invalid: {1, 400}, fault.Malformed: {1, 400}, fault.Corrupt: {1, 422}, fault.Denied: {1, 403},
		fault.Exhausted: {3, 429}, fault.Unavailable: {3, 503}, fault.Conflict: {3, 503}, fault.NotFound: {3, 503}, fault.Internal: {3, 500},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var dead []serve.Dead
				b := serve.NewBroker(serve.BrokerConfig{Attempts: 3, DeadLetter: func(_ context.Context, d serve.Dead) error { dead = append(dead, d); return nil }})
				s := open(t, &fn{handle: func(context.Context, ce.Event) ([]ce.Event, error) {
					return nil, fault.At(kind, "a:1", "do this", "that is wrong")
				}}, to(b))
				b.Subscribe(s.Name(), s.Handler())
				running(t, b)
				if err := b.Publish(t.Context(), part(1)); err != nil {
					t.Fatal(err)
				}
				if err := b.WaitIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(dead) != 1 || dead[0].Attempts != want.attempts || dead[0].Code != want.code {
					t.Fatalf("%+v, want %+v", dead, want)
				}
				if d := cmp.Diff(serve.Problem{Code: kind.String(), Message: "a:1: that is wrong", Hint: "do this", Where: "a:1"}, dead[0].Problem()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// Events that handlers return go on to the next function, all before idleness.
func TestBrokerChain(t *testing.T) {
	t.Parallel()
	b := serve.NewBroker(serve.BrokerConfig{})
	var mu sync.Mutex
	var seen []string
	step := func(name string, next func(seq int64) []ce.Event) *serve.Service {
		return open(t, &fn{name: name, handle: func(_ context.Context, e ce.Event) ([]ce.Event, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, name+" "+strings.TrimPrefix(e.Type(), "dev.mneme."))
			return next(int64(len(seen))), nil
		}}, to(b))
	}
	stream := event.Stream{Tenant: "local", Project: "shop", Stream: "why@1"}
	continued := false
	learn := step("learn", func(int64) []ce.Event { return []ce.Event{part(1)} })
	gate := step("gate", func(int64) []ce.Event {
		if continued {
			return nil
		}
		continued = true
		return []ce.Event{event.New(event.RunContinued, "gate", stream), event.New(event.RunEnded, "gate", stream)}
	})
	embed := step("embed", func(int64) []ce.Event {
		return []ce.Event{event.New(event.VectorsReady, "embed", event.Segment{Tenant: "local", Project: "shop", Stream: "why@1", Seq: 1})}
	})
	project := step("project", func(int64) []ce.Event {
		return []ce.Event{event.New(event.Projected, "project", event.Segment{Tenant: "local", Project: "shop", Stream: "why@1", Seq: 1})}
	})
	for _, s := range []*serve.Service{learn, gate, embed, project} {
		b.Subscribe(s.Name(), s.Handler())
	}
	running(t, b)
	if err := b.Publish(t.Context(), serve.ObjectEvent(event.Object{Bucket: "transcripts", Key: "shop/a.jsonl", ETag: "1"})); err != nil {
		t.Fatal(err)
	}
	if err := b.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	if d := cmp.Diff([]string{
		"embed run.ended.v1", "gate chunks.ready.v1", "gate run.continued.v1", "gate run.ended.v1",
		"learn object.created.v1", "project chunks.ready.v1", "project vectors.ready.v1",
	}, seen); d != "" {
		t.Error(d)
	}
	if st := b.Stats(); st.Dead != 0 || st.Coalesced != 0 || !b.Idle() {
		t.Errorf("%+v", st)
	}
}

// An identical event that waits takes a new one in; one that runs does not, as
// it may have read too early. Sweeps of a tenant are alike whatever their time.
func TestBrokerCoalesces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := serve.NewBroker(serve.BrokerConfig{Concurrency: map[string]int{"gate": 1}})
		release := make(chan struct{})
		sub := &answers{seq: []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { <-release; w.WriteHeader(204) }}}
		b.Subscribe("gate", sub)
		publish := func(e ce.Event) {
			t.Helper()
			if err := b.Publish(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		sweep := func(tenant, at string) ce.Event {
			return event.New(event.SweepRequested, "sweeper", event.Sweep{Tenant: tenant, At: at})
		}
		publish(part(1))
		publish(part(1)) // waits: one
		running(t, b)
		synctest.Wait() // now it runs
		publish(part(1))
		publish(part(2))
		publish(part(1))
		publish(part(2))
		publish(sweep("local", "1"))
		publish(sweep("local", "2"))
		publish(sweep("acme", "3"))
		if st := b.Stats(); st.Coalesced != 4 || st.Waiting != 4 || st.Running != 1 || st.Published != 9 {
			t.Errorf("%+v", st)
		}
		close(release)
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{part(1).ID(), part(1).ID(), part(2).ID(), sweep("local", "1").ID(), sweep("acme", "3").ID()}
		if d := cmp.Diff(want, sub.got()); d != "" {
			t.Error(d)
		}
	})
}

// A poison event that is announced again and again while it waits for its next
// try keeps its count.
func TestPoisonKeepsItsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := 0
		b := serve.NewBroker(serve.BrokerConfig{Attempts: 5, DeadLetter: func(context.Context, serve.Dead) error { dead++; return nil }})
		var sub *answers
		sub = &answers{seq: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			if len(sub.got()) < 5 { // announced anew while it runs
				if err := b.Publish(r.Context(), part(1)); err != nil {
					t.Error(err)
				}
			}
			w.WriteHeader(500)
		}}}
		b.Subscribe("gate", sub)
		running(t, b)
		if err := b.Publish(t.Context(), part(1)); err != nil {
			t.Fatal(err)
		}
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if dead != 1 || len(sub.got()) != 5 {
			t.Errorf("%d dead letters after %d attempts", dead, len(sub.got()))
		}
	})
}

// Of one key one delivery runs at a time, whatever else may run beside it.
func TestOneOfAKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most, all, ran := map[string]int{}, 0, 0, 0
		b := serve.NewBroker(serve.BrokerConfig{})
		b.Subscribe("gate", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var e ce.Event
			if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
				t.Error(err)
			}
			mu.Lock()
			now[e.ID()]++
			ran++
			most = max(most, now[e.ID()])
			together := 0
			for _, n := range now {
				together += n
			}
			all = max(all, together)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now[e.ID()]--
			mu.Unlock()
		}))
		running(t, b)
		for range 5 {
			for i := range 3 {
				if err := b.Publish(t.Context(), part(int64(i))); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(300 * time.Millisecond)
		}
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if most != 1 || all != 3 || ran != 9 { // begun at 0, 1 and 2 s, each
			t.Errorf("%d of a kind at a time, %d in all, %d deliveries", most, all, ran)
		}
	})
}

func TestBrokerLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		cfg  serve.BrokerConfig
		fit  int
	}{
		{"events", serve.BrokerConfig{QueueEvents: 3}, 3},
		{"bytes", serve.BrokerConfig{QueueBytes: 1000}, 2}, // an event of part is 400 to 500 bytes
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := serve.NewBroker(tc.cfg)
			b.Subscribe("gate", http.NotFoundHandler())
			b.Subscribe("project", http.NotFoundHandler(), event.VectorsReady)
			for i := range tc.fit {
				if w := do(b, structured(t, part(int64(i+1)))); w.Code != 202 || w.Body.Len() != 0 {
					t.Fatalf("event %d: %d %s", i, w.Code, w.Body)
				}
			}
			w := do(b, binary(part(99)))
			if w.Code != 429 || w.Header().Get("Retry-After") != "1" || problem(t, w).Code != "exhausted" {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			if w := do(b, structured(t, part(1))); w.Code != 202 {
				t.Errorf("one that waits already: %d", w.Code)
			}
			if w := do(b, structured(t, event.New(event.Projected, "project", event.Segment{Tenant: "a", Project: "b", Stream: "c", Seq: 1}))); w.Code != 202 {
				t.Errorf("one for nobody: %d", w.Code)
			}
			if d := cmp.Diff(serve.Stats{Published: int64(tc.fit) + 2, Unrouted: 1, Coalesced: 1, Refused: 1, Waiting: int64(tc.fit)}, b.Stats()); d != "" {
				t.Error(d)
			}
			if w := do(b, httptest.NewRequest("GET", "/", nil)); w.Code != 405 {
				t.Errorf("GET: %d", w.Code)
			}
			if w := do(b, httptest.NewRequest("POST", "/", strings.NewReader("{}"))); w.Code != 400 {
				t.Errorf("no event: %d", w.Code)
			}
		})
	}
}

// No more than Concurrency deliveries to one subscriber run at a time, and a
// slow subscriber does not hold up another.
func TestBrokerConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := serve.NewBroker(serve.BrokerConfig{Concurrency: map[string]int{"": 3, "project": 2}})
		slow := func(w http.ResponseWriter, _ *http.Request) { time.Sleep(time.Minute); w.WriteHeader(204) }
		gate, project := &answers{seq: []http.HandlerFunc{slow}, start: time.Now()}, &answers{seq: []http.HandlerFunc{slow}, start: time.Now()}
		b.Subscribe("gate", gate)
		b.Subscribe("project", project)
		running(t, b)
		for i := range 6 {
			if err := b.Publish(t.Context(), part(int64(i+1))); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := time.Minute
		if d := cmp.Diff([][]time.Duration{{0, 0, 0, m, m, m}, {0, 0, m, m, 2 * m, 2 * m}}, [][]time.Duration{gate.at, project.at}); d != "" {
			t.Error(d)
		}
	})
}

func TestBrokerEnds(t *testing.T) {
	t.Parallel()
	t.Run("Close drains what waits", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := serve.NewBroker(serve.BrokerConfig{Concurrency: map[string]int{"": 1}})
			sub := &answers{seq: []http.HandlerFunc{status(503), func(w http.ResponseWriter, _ *http.Request) { time.Sleep(time.Second); w.WriteHeader(204) }}}
			b.Subscribe("gate", sub)
			running(t, b)
			for i := range 5 {
				if err := b.Publish(t.Context(), part(int64(i+1))); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if st := b.Stats(); st.Delivered != 5 || st.Abandoned != 0 {
				t.Errorf("%+v", st)
			}
			if err := b.Publish(t.Context(), part(9)); !fault.Is(err, fault.Unavailable) {
				t.Errorf("Publish after Close: %v", err)
			}
		})
	})
	t.Run("the context ends: in flight ends, the rest is left", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := serve.NewBroker(serve.BrokerConfig{Concurrency: map[string]int{"": 1}, DrainTimeout: time.Minute})
			sub := &answers{seq: []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { time.Sleep(30 * time.Second); w.WriteHeader(204) }}}
			b.Subscribe("gate", sub)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- b.Run(ctx) }()
			for i := range 5 {
				if err := b.Publish(t.Context(), part(int64(i+1))); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(serve.Stats{Published: 5, Delivered: 1, Abandoned: 4}, b.Stats()); d != "" {
				t.Error(d)
			}
		})
	})
	t.Run("in flight is cut after the drain time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := serve.NewBroker(serve.BrokerConfig{DrainTimeout: 10 * time.Second})
			b.Subscribe("gate", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- b.Run(ctx) }()
			if err := b.Publish(t.Context(), part(1)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			began := time.Now()
			stop()
			if err := <-ended; err != nil || time.Since(began) != 10*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if st := b.Stats(); st.Abandoned != 1 {
				t.Errorf("%+v", st)
			}
		})
	})
	t.Run("Close gives up with its context", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := serve.NewBroker(serve.BrokerConfig{})
			b.Subscribe("gate", http.HandlerFunc(status(503)))
			running(t, b)
			if err := b.Publish(t.Context(), part(1)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.Close(ctx); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			if st := b.Stats(); st.Abandoned != 1 || st.Waiting != 0 {
				t.Errorf("%+v", st)
			}
		})
	})
}

// A delivery that gets no answer in its time is tried again, its context gone.
func TestBrokerAttemptTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := serve.NewBroker(serve.BrokerConfig{AttemptTimeout: 3 * time.Second})
		sub := &answers{seq: []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, status(204)}}
		b.Subscribe("gate", sub)
		running(t, b)
		if err := b.Publish(t.Context(), part(1)); err != nil {
			t.Fatal(err)
		}
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := b.Stats(); st.Retried != 1 || st.Delivered != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// A dead letter is written before the broker is idle, again until it is kept,
// and goes back to the one subscriber that refused it.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dead []serve.Dead
		tries := 0
		var log bytes.Buffer
		b := serve.NewBroker(serve.BrokerConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)), DeadLetter: func(_ context.Context, d serve.Dead) error {
			if tries++; tries < 3 {
				return errors.New("store is down")
			}
			dead = append(dead, d)
			return nil
		}})
		gate, project := &answers{seq: []http.HandlerFunc{status(422), status(204)}}, &answers{seq: []http.HandlerFunc{status(204)}}
		b.Subscribe("gate", gate)
		b.Subscribe("project", project)
		running(t, b)
		if err := b.Publish(t.Context(), part(1)); err != nil {
			t.Fatal(err)
		}
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(dead) != 1 || tries != 3 {
			t.Fatalf("%d dead letters in %d tries", len(dead), tries)
		}
		stored, err := json.Marshal(dead[0])
		if err != nil {
			t.Fatal(err)
		}
		var back serve.Dead
		if err := json.Unmarshal(stored, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(dead[0], back, cmp.Comparer(sameEvent), cmpopts.EquateEmpty()); d != "" {
			t.Error("stored form:", d)
		}
		if err := b.Redeliver(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		if err := b.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(gate.got()) != 2 || len(project.got()) != 1 {
			t.Errorf("after redelivery: gate %d, project %d", len(gate.got()), len(project.got()))
		}
		if err := b.Redeliver(t.Context(), serve.Dead{Event: part(1), Subscriber: "nobody"}); !fault.Is(err, fault.Invalid) {
			t.Errorf("unknown subscriber: %v", err)
		}
		if !strings.Contains(log.String(), "dead letter") || strings.Contains(log.String(), "seq") {
			t.Errorf("log %q", log.String())
		}
	})
	t.Run("lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := serve.NewBroker(serve.BrokerConfig{Attempts: 3, DeadLetter: func(context.Context, serve.Dead) error { return errors.New("store is down") }})
			b.Subscribe("gate", http.HandlerFunc(status(400)))
			running(t, b)
			if err := b.Publish(t.Context(), part(1)); err != nil {
				t.Fatal(err)
			}
			if err := b.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := b.Stats(); st.Dead != 1 || st.DeadLost != 1 {
				t.Errorf("%+v", st)
			}
		})
	})
}

func TestDeadFrom(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := serve.Dead{Event: part(1), Subscriber: "gate", Code: 503, Data: []byte(`{"message":"x"}`), Time: at}
	knative := want.Mark()
	knative.SetExtension("knativeerrordest", "http://gate.mneme.svc.cluster.local/")
	plain := want.Mark()
	plain.SetExtension("knativeerrordata", `{"message":"x"}`)
	for name, e := range map[string]ce.Event{"own": want.Mark(), "Knative's": knative, "data not base64": plain} {
		got, err := serve.DeadFrom(e, at)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, got, cmp.Comparer(sameEvent)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	bad := want.Mark()
	bad.SetExtension("knativeerrorcode", "many")
	for name, e := range map[string]ce.Event{"no dead letter": part(1), "code is no number": bad} {
		if _, err := serve.DeadFrom(e, at); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p := (serve.Dead{Code: 502, Data: []byte("plain\n")}).Problem(); p.Message != "plain" || p.Code != "status 502" {
		t.Errorf("%+v", p)
	}
}
