package eventlog_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

func TestShelves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	one := &eventlog.Opaque{Type: "label", Line: []byte(`{"v":1,"type":"label","level":"-","evidence":true,"text":"why"}`)}
	two := &eventlog.Opaque{Type: "label", Line: []byte(`{"v":1,"type":"label","level":"-","evidence":false}`)}
	key, err := l.PutRecords(ctx, project, eventlog.Labels, []eventlog.Record{one, two})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.PutRecords(ctx, project, eventlog.Labels, []eventlog.Record{one, two}); err != nil || again != key {
		t.Errorf("again: %s, %v", again, err)
	}
	got, err := l.Records(ctx, project, eventlog.Labels, key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]eventlog.Record{one, two}, got); diff != "" {
		t.Error(diff)
	}
	var keys []memory.SHA
	for k, err := range l.RecordKeys(ctx, project, eventlog.Labels) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	if diff := cmp.Diff([]memory.SHA{key}, keys); diff != "" {
		t.Error(diff)
	}
	if rep, err := l.Verify(ctx, nil); err != nil || !rep.OK {
		t.Errorf("%v, %v", rep.Problems, err)
	}
	rewrite(t, b, "log/local/shop/labels/"+string(key)+".jsonl", func(b []byte) []byte { b[30] ^= 1; return b })
	if _, err := l.Records(ctx, project, eventlog.Labels, key); !fault.Is(err, fault.Corrupt) {
		t.Errorf("damaged: %v", err)
	}
	if rep, err := l.Verify(ctx, nil); err != nil || rep.OK {
		t.Errorf("damage unnoticed: %v", err)
	}
	if _, err := l.Records(ctx, project, eventlog.Notes, key); !fault.Is(err, fault.NotFound) {
		t.Errorf("another shelf: %v", err)
	}
	if _, err := l.PutRecords(ctx, project, "sources", []eventlog.Record{one}); !fault.Is(err, fault.Invalid) {
		t.Errorf("no shelf: %v", err)
	}
	if _, err := l.PutRecords(ctx, project, eventlog.Notes, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("no records: %v", err)
	}
}

func TestCountAttempt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	for want := 1; want <= 3; want++ {
		l := eventlog.Open(b, tenant, "w") // a new process goes on counting
		if n, err := l.CountAttempt(ctx, "gate", "e1"); err != nil || n != want {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
	}
	l := eventlog.Open(b, tenant, "w")
	if n, err := l.CountAttempt(ctx, "embed", "e1"); err != nil || n != 1 {
		t.Errorf("another function: %d, %v", n, err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]bool{}
	for range 4 {
		wg.Go(func() {
			n, err := l.CountAttempt(ctx, "gate", "e2")
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[n] {
				t.Errorf("%d twice, or %v", n, err)
			}
			seen[n] = true
		})
	}
	wg.Wait()
}
