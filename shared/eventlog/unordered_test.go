package eventlog_test

import (
	"context"
	"sync"
	"testing"
	"time"

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

// A skill is read back as it was written; erased it keeps its key and all but its text.
func TestSkillRecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	at := time.Date(2026, 2, 1, 10, 0, 0, 0, time.FixedZone("", 3600))
	want := memory.Skill{Tenant: tenant, Project: project, Name: "shop-decisions", Action: memory.SkillPromoted, From: "decisions",
		GeneratedFrom: memory.SumString("memory"), SHA256: memory.SumString("text"), Text: "text", PromotedBy: "Ada", At: at, Prev: memory.SumString("prev")}
	r, err := eventlog.SkillRecord(&want)
	if err != nil {
		t.Fatal(err)
	}
	key, err := l.PutRecords(ctx, project, eventlog.Skills, []eventlog.Record{r})
	if err != nil {
		t.Fatal(err)
	}
	read := func() *memory.Skill {
		t.Helper()
		recs, err := l.Records(ctx, project, eventlog.Skills, key)
		if err != nil || len(recs) != 1 {
			t.Fatalf("%d records, %v", len(recs), err)
		}
		s, ok, err := eventlog.AsSkill(recs[0])
		if err != nil || !ok {
			t.Fatalf("%t, %v", ok, err)
		}
		return s
	}
	want.V, want.Type, want.Level, want.At = 1, memory.TypeSkill, memory.LevelNone, at.UTC()
	if diff := cmp.Diff(&want, read()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tomb := memory.SumString("tombstone")
	for range 2 { // twice is once
		if err := l.EraseRecords(ctx, project, eventlog.Skills, key, tomb); err != nil {
			t.Fatal(err)
		}
	}
	want.Text, want.Erased = "", tomb
	if diff := cmp.Diff(&want, read()); diff != "" {
		t.Errorf("erased (-want +got):\n%s", diff)
	}
	if rep, err := l.Verify(ctx, nil); err != nil || !rep.OK {
		t.Errorf("%v, %v", rep.Problems, err)
	}
	for what, err := range map[string]error{
		"no tombstone": l.EraseRecords(ctx, project, eventlog.Skills, key, "x"),
		"no key":       l.EraseRecords(ctx, project, eventlog.Skills, "x", tomb),
		"no shelf":     l.EraseRecords(ctx, project, "admit", key, tomb),
	} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := l.EraseRecords(ctx, project, eventlog.Skills, tomb, tomb); !fault.Is(err, fault.NotFound) {
		t.Errorf("not there: %v", err)
	}
	if _, ok, err := eventlog.AsSkill(&eventlog.Opaque{Type: "label", Line: []byte(`{}`)}); ok || err != nil {
		t.Errorf("a label: %t, %v", ok, err)
	}
	if _, ok, err := eventlog.AsSkill(&eventlog.Opaque{Type: memory.TypeSkill, Line: []byte(`{"name":1}`)}); !ok || !fault.Is(err, fault.Corrupt) {
		t.Errorf("a broken one: %t, %v", ok, err)
	}
}
