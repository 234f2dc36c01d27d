package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/serve"
)

// counted is a subscriber that counts deliveries by id and keeps their order;
// every third answer is a failure that passes.
type counted struct {
	mu    sync.Mutex
	n     map[string]int
	order []string
	fails bool
	calls int
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e ce.Event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.fails && c.calls%3 == 0 {
		w.WriteHeader(503)
		return
	}
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[e.ID()]++
	c.order = append(c.order, e.ID())
	w.WriteHeader(204)
}

// The law of Chaos: of each (event, subscriber), every copy is delivered or the
// event is named as dropped; no event is both, none is neither; object.created
// comes once and in order.
func TestChaosLaw(t *testing.T) {
	t.Parallel()
	for _, c := range []serve.Chaos{
		{},
		{Duplicate: 3},
		{Shuffle: time.Second},
		{Drop: 2},
		{Drop: 1},
		{Drop: 5, Duplicate: 2, Shuffle: time.Minute},
		{Drop: 2, Duplicate: 3, Shuffle: 50 * time.Millisecond},
	} {
		for seed := range uint64(3) {
			c.Seed = seed
			t.Run(fmt.Sprintf("dup=%d,shuffle=%v,drop=%d,seed=%d", c.Duplicate, c.Shuffle, c.Drop, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { chaosLaw(t, c) })
			})
		}
	}
}

func chaosLaw(t *testing.T, c serve.Chaos) {
	const events = 60
	dropped := map[string][]string{}
	c.Dropped = func(sub string, e ce.Event) { dropped[sub] = append(dropped[sub], e.ID()) }
	b := serve.NewBroker(serve.BrokerConfig{Chaos: &c, Concurrency: map[string]int{"": 1}})
	subs := map[string]*counted{"learn": {}, "gate": {fails: true}, "project": {fails: true}}
	for name, s := range subs {
		b.Subscribe(name, s)
	}
	running(t, b)
	var parts, objects []string
	for i := range events {
		o := serve.ObjectEvent(event.Object{Bucket: "transcripts", Key: fmt.Sprint("shop/", i), ETag: "e"})
		for _, e := range []ce.Event{part(int64(i + 1)), o} {
			if err := b.Publish(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		parts, objects = append(parts, part(int64(i+1)).ID()), append(objects, o.ID())
	}
	if err := b.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(objects, subs["learn"].order); d != "" {
		t.Error("object.created was touched:", d)
	}
	all := 0
	for _, name := range []string{"gate", "project"} {
		for _, id := range parts {
			n, lost := subs[name].n[id], slices.Contains(dropped[name], id)
			if want := max(1, c.Duplicate); (lost && n != 0) || (!lost && n != want) {
				t.Errorf("%s: %d deliveries, dropped %v, want %d", name, n, lost, want)
			}
		}
		want := 0
		if c.Drop > 0 {
			want = events / c.Drop
		}
		if got := len(dropped[name]); got != want {
			t.Errorf("%s: %d dropped, want %d", name, got, want)
		}
		all += want
		if c.Shuffle > 0 && slices.IsSortedFunc(subs[name].order, func(x, y string) int { return slices.Index(parts, x) - slices.Index(parts, y) }) {
			t.Errorf("%s: nothing is out of order", name)
		}
	}
	if st := b.Stats(); st.Dropped != int64(all) || st.Dead != 0 {
		t.Errorf("%+v", st)
	}
}

// Whatever the rhythm in which senders repeat themselves, no event is dropped
// for ever: a sweep gets everything through.
func TestDropLetsRepeatsThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := serve.NewBroker(serve.BrokerConfig{Chaos: &serve.Chaos{Drop: 2}})
		sub := &counted{}
		b.Subscribe("gate", sub)
		running(t, b)
		rounds := 0
		for ; len(sub.n) < 2; rounds++ {
			if rounds == 40 {
				t.Fatal("an event was dropped 40 times")
			}
			for i := range 2 { // two a round: a fixed "every second" would always lose the same one
				if err := b.Publish(t.Context(), part(int64(i+1))); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if rounds < 2 {
			t.Error("nothing was dropped at all")
		}
	})
}

func TestSweeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		ids := map[string]bool{}
		fail := false
		s := serve.NewSweeper(serve.SweeperConfig{Tenant: "local", Publish: func(_ context.Context, e ce.Event) error {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(start))
			ids[e.ID()] = true
			if d, err := event.Decode[event.Sweep](e); err != nil || d.Tenant != "local" {
				t.Errorf("%v, %v", d, err)
			}
			if fail {
				return context.DeadlineExceeded
			}
			return nil
		}})
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		go func() {
			time.Sleep(40 * time.Second)
			if err := s.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			fail = true
		}()
		s.Run(ctx)
		if err := s.Sweep(t.Context()); err == nil {
			t.Error("a sweep that nobody took")
		}
		want := []time.Duration{0, 30 * time.Second, 40 * time.Second, 60 * time.Second, 90 * time.Second, 100 * time.Second}
		if d := cmp.Diff(want, at); d != "" || len(ids) != len(want) {
			t.Errorf("%d ids: %s", len(ids), d)
		}
	})
}
