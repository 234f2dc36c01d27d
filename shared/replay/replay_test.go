package replay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/replay"
)

var day = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

var stream = memory.StreamName("decisions", functest.Wording("decisions"))

// folded is a stream of `parts` segments, one a part.
func folded(t *testing.T, parts int) *functest.World {
	t.Helper()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.Ask("shop", "decisions")
	for i := range parts {
		body := functest.Decision(fmt.Sprintf("s%d", i), day.AddDate(0, 0, i), fmt.Sprintf("We decided to keep the limit of queue q%d at %d messages, because the consumer falls behind.", i, 100+i))
		w.Learned(fmt.Sprintf("shop/%d.jsonl", i), body)
	}
	return w
}

// walk is the state without any cache.
func walk(t *testing.T, w *functest.World) gru.State {
	t.Helper()
	var s gru.State
	for _, r := range w.Records("shop", stream) {
		s = s.Apply(r)
	}
	return s
}

func TestCacheChangesNothing(t *testing.T) {
	t.Parallel()
	w := folded(t, 40)
	want := walk(t, w)
	load := func(w *functest.World) (replay.Cursor, int) {
		t.Helper()
		w.Stores.Calls()
		c, err := replay.Load(t.Context(), w.Log, "shop", stream)
		if err != nil {
			t.Fatal(err)
		}
		reads := 0
		for _, c := range w.Stores.Calls() {
			if strings.Contains(c.Key, "/questions/"+stream+"/") && c.Op == "get" {
				reads++
			}
		}
		return c, reads
	}
	cold := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
	c, reads := load(cold)
	if diff := cmp.Diff(want, c.State); diff != "" {
		t.Errorf("state from the cache (-walked +loaded):\n%s", diff)
	}
	if reads >= 40 {
		t.Errorf("%d segments read: the cached fold is not used", reads)
	}
	// Without the cache, with a damaged one, and with one of another log.
	var caches []string
	for info, err := range w.Bucket.List(t.Context(), "derived/") {
		if err != nil {
			t.Fatal(err)
		}
		caches = append(caches, info.Key)
	}
	if len(caches) == 0 {
		t.Fatal("no cached fold was written")
	}
	for name, damage := range map[string]func(key string) error{
		"damaged": func(key string) error { _, err := w.Bucket.Put(t.Context(), key, []byte("{")); return err },
		"absent":  func(key string) error { return w.Bucket.Delete(t.Context(), key) },
	} {
		for _, key := range caches {
			if err := damage(key); err != nil {
				t.Fatal(err)
			}
		}
		next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
		c, reads := load(next)
		if diff := cmp.Diff(want, c.State); diff != "" {
			t.Errorf("%s: state (-walked +loaded):\n%s", name, diff)
		}
		if reads < 40 {
			t.Errorf("%s: %d segments read", name, reads)
		}
	}
}

// TestSave writes a cached fold rarely, and a later process starts from it.
func TestSave(t *testing.T) {
	t.Parallel()
	w := folded(t, 3)
	c, err := replay.Load(t.Context(), w.Log, "shop", stream)
	if err != nil {
		t.Fatal(err)
	}
	w.Stores.Calls()
	if err := c.Save(t.Context(), w.Log, "shop", stream); err != nil {
		t.Fatal(err)
	}
	if calls := w.Stores.Calls(); len(calls) != 0 {
		t.Errorf("3 segments past the cache cost %v", calls)
	}
	// A lost write of the cache is an error to the caller and nothing else.
	long := folded(t, 20)
	c, err = replay.Load(t.Context(), long.Log, "shop", stream)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(walk(t, long), c.State); diff != "" {
		t.Errorf("(-walked +loaded):\n%s", diff)
	}
}

func TestPartEnd(t *testing.T) {
	t.Parallel()
	w := folded(t, 5)
	ends := functest.Of[*memory.RunEnd](w.Records("shop", stream))
	if len(ends) != 5 {
		t.Fatalf("%d run ends", len(ends))
	}
	for i := int64(1); i <= 5; i++ {
		e, ok, err := replay.PartEnd(t.Context(), w.Log, "shop", stream, i)
		if err != nil || !ok {
			t.Fatalf("part %d: %t %v", i, ok, err)
		}
		if diff := cmp.Diff(*ends[i-1], e); diff != "" {
			t.Errorf("part %d (-want +got):\n%s", i, diff)
		}
		used := map[memory.SHA]bool{}
		left, err := replay.Updates(t.Context(), w.Log, "shop", stream, e, used)
		if err != nil || len(used) != e.ChunksUsed || !strings.Contains(left.Text, fmt.Sprintf("queue q%d", i-1)) || memory.SumString(left.Text) != e.MemorySHA || left.Model != "" {
			t.Errorf("part %d: %d chunks of %d, left %+v, %v", i, len(used), e.ChunksUsed, left, err)
		}
	}
	for _, i := range []int64{0, 6} {
		if _, ok, err := replay.PartEnd(t.Context(), w.Log, "shop", stream, i); ok || err != nil {
			t.Errorf("part %d: %t %v", i, ok, err)
		}
	}
	if _, ok, err := replay.PartEnd(t.Context(), w.Log, "shop", "gone@00000000", 1); ok || err != nil {
		t.Errorf("no stream: %t %v", ok, err)
	}
}

// TestPartInProgress: a part whose run is open has no end yet.
func TestPartInProgress(t *testing.T) {
	t.Parallel()
	now := functest.Epoch
	w := functest.New(t, functest.Options{
		Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(),
		Slice: time.Second, Now: func() time.Time { now = now.Add(time.Minute); return now },
	})
	w.Ask("shop", "decisions")
	if _, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Long("s1", day, 3))); err != nil {
		t.Fatal(err)
	}
	e := event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: stream})
	if _, err := w.Gate.Handle(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	c, err := replay.Load(t.Context(), w.Log, "shop", stream)
	if err != nil || c.State.Open == nil {
		t.Fatalf("open %+v, %v", c.State.Open, err)
	}
	if _, ok, err := replay.PartEnd(t.Context(), w.Log, "shop", stream, 1); ok || err != nil {
		t.Errorf("the part is in progress: %t %v", ok, err)
	}
	w.Stores.Fail(func(functest.Call) error { return errors.New("gone") }, nil)
	if _, _, err := replay.PartEnd(t.Context(), w.Log, "shop", stream, 1); err == nil || !strings.Contains(err.Error(), "run end of part 1") {
		t.Errorf("a store that is gone: %v", err)
	}
}
