package labels_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

var day = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// pair adds what a person and a model say of piece i.
func pair(s *labels.Set, i int, person, model bool) {
	chunk := memory.SumString(fmt.Sprint("chunk", i))
	s.Add(memory.SumString(fmt.Sprint("h", i)), &memory.Label{Kind: memory.LabelHuman, Stream: "q@01234567", Chunk: chunk, Start: 0, End: 9, Evidence: person, At: day})
	s.Add(memory.SumString(fmt.Sprint("m", i)), &memory.Label{Kind: memory.LabelModel, Basis: memory.BasisChunk, Model: "big", Stream: "q@01234567", Chunk: chunk, Start: 0, End: 9, Evidence: model, FormatOK: true, At: day})
}

// TestTrusted: the bound is on kappa and on how many pieces it rests on; what a
// person did not see, another judge said, or nobody could read is in no table.
func TestTrusted(t *testing.T) {
	t.Parallel()
	var s labels.Set
	if a, ok := labels.Trusted(&s, "big", labels.DefaultBound); ok || a.N != 0 || a.Kappa != nil || a.Refusal() == nil {
		t.Errorf("of nothing: %+v", a)
	}
	// 20 both, 5 only the person, 10 only the model, 15 neither: kappa 0.4.
	i := 0
	for _, c := range []struct {
		n             int
		person, model bool
	}{{20, true, true}, {5, true, false}, {10, false, true}, {15, false, false}} {
		for range c.n {
			pair(&s, i, c.person, c.model)
			i++
		}
	}
	alone := memory.SumString("alone")
	s.Add(alone, &memory.Label{Kind: memory.LabelModel, Model: "big", Stream: "q@01234567", Chunk: alone, End: 4, Evidence: true, FormatOK: true, At: day})
	s.Add(alone, &memory.Label{Kind: memory.LabelModel, Model: "big", Stream: "q@01234567", Chunk: memory.SumString("chunk0"), Start: 9, End: 20, At: day}) // unreadable
	s.Add(alone, &memory.Label{Kind: memory.LabelModel, Model: "small", Stream: "q@01234567", Chunk: memory.SumString("chunk0"), End: 9, FormatOK: true, At: day})
	s.Add(alone, &memory.Label{Kind: memory.LabelRule, Rule: "r", Stream: "q@01234567", Chunk: memory.SumString("chunk0"), End: 9, Evidence: true, At: day})
	// What the model would have done with a memory in view gives way, though later.
	s.Add(alone, &memory.Label{Kind: memory.LabelModel, Model: "big", Stream: "q@01234567", Chunk: memory.SumString("chunk0"), End: 9, FormatOK: true, At: day.AddDate(1, 0, 0), T: 3})

	a, ok := labels.Trusted(&s, "big", labels.DefaultBound)
	if want := (agree.Table{Both: 20, OnlyA: 5, OnlyB: 10, Neither: 15}); ok || a.Table != want || a.N != 50 || a.Labels != 51 || a.Unreadable != 1 || a.WithMemory != 0 {
		t.Errorf("%+v", a)
	}
	if a.Kappa == nil || math.Abs(*a.Kappa-.4) > 1e-9 || math.Abs(a.Precision-20./30) > 1e-9 || math.Abs(a.Recall-.8) > 1e-9 || a.PrecisionCI != agree.Wilson(20, 30) || a.RecallCI != agree.Wilson(20, 25) {
		t.Errorf("%+v", a)
	}
	err := a.Refusal()
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "kappa 0.40 [") || !strings.Contains(err.Error(), "below 0.60") {
		t.Errorf("%v", err)
	}
	if a, ok := labels.Trusted(&s, "big", labels.Bound{Kappa: .399, Pairs: 50}); !ok || a.Refusal() != nil || a.Why != "" {
		t.Errorf("at the bound: %+v", a)
	}
	if a, ok := labels.Trusted(&s, "big", labels.Bound{Kappa: .399, Pairs: 51}); ok || !strings.Contains(a.Why, "50 pieces") {
		t.Errorf("too few: %+v", a)
	}
	want := []labels.Judge{{Kind: memory.LabelModel, Model: "big"}, {Kind: memory.LabelModel, Model: "small"}, {Kind: memory.LabelRule}}
	if diff := cmp.Diff(want, s.Judges()); diff != "" {
		t.Error(diff)
	}
	if a := s.Agreement(labels.Judge{Kind: memory.LabelRule}, labels.Bound{}); a.Table != (agree.Table{Both: 1}) || a.Kappa != nil || a.Trusted {
		t.Errorf("rules: %+v", a)
	}
}

// TestTrustedCorrects: a person who corrects herself counts with what she said last,
// whichever order the labels are read in.
func TestTrustedCorrects(t *testing.T) {
	t.Parallel()
	chunk := memory.SumString("c")
	said := []*memory.Label{
		{Kind: memory.LabelHuman, Stream: "q@01234567", Chunk: chunk, End: 9, Evidence: false, At: day},
		{Kind: memory.LabelHuman, Stream: "q@01234567.2", Chunk: chunk, Evidence: true, At: day.Add(time.Hour)}, // the whole chunk, in a later generation
		{Kind: memory.LabelModel, Basis: memory.BasisChunk, Model: "big", Stream: "q@01234567", Chunk: chunk, End: 9, Evidence: true, FormatOK: true, At: day},
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		var s labels.Set
		for _, i := range order {
			s.Add(memory.SumString(fmt.Sprint(i)), said[i])
		}
		if a, _ := labels.Trusted(&s, "big", labels.Bound{}); a.Table != (agree.Table{Both: 1}) {
			t.Errorf("%v: %+v", order, a.Table)
		}
	}
}

// TestRead: more objects than are read ahead give the set that one after the other
// would, and keep is asked.
func TestRead(t *testing.T) {
	t.Parallel()
	log := shelf(t, 1200)
	s, err := labels.Read(t.Context(), log, "shop", nil)
	if err != nil || s.N() != 1200 {
		t.Fatalf("%v %v", s, err)
	}
	some, err := labels.Read(t.Context(), log, "shop", func(l *memory.Label) bool { return l.Evidence })
	if err != nil || some.N() != 600 {
		t.Errorf("%v %v", some, err)
	}
	var keys []memory.SHA
	if err := labels.Each(t.Context(), log, "shop", func(key memory.SHA, _ *memory.Label) error { keys = append(keys, key); return nil }); err != nil || len(keys) != 1200 {
		t.Fatal(len(keys), err)
	}
	for i := range keys[1:] {
		if keys[i] >= keys[i+1] {
			t.Fatalf("key %d is not in order", i)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := labels.Read(ctx, log, "shop", nil); err == nil {
		t.Error("a cancelled reading says nothing")
	}
}

// shelf is a log of a project with n labels of people, an object each.
func shelf(tb testing.TB, n int) *eventlog.Log {
	tb.Helper()
	log := eventlog.Open(objstore.NewBucket("mneme", memstore.New()), "local", "w")
	for i := range n {
		r, err := eventlog.LabelRecord(&memory.Label{Level: memory.L1, Kind: memory.LabelHuman, Stream: "q@01234567", QueryID: "q", Chunk: memory.SumString(fmt.Sprint(i)), End: 9, Evidence: i%2 == 0, At: day})
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := log.PutRecords(tb.Context(), "shop", eventlog.Labels, []eventlog.Record{r}); err != nil {
			tb.Fatal(err)
		}
	}
	return log
}

// BenchmarkRead reads labels of people, an object each, and labels of a model, sixteen
// in an object.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		log := shelf(b, n)
		b.Run(fmt.Sprintf("%dk-objects", n/1000), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s, err := labels.Read(b.Context(), log, "shop", nil); err != nil || s.N() != n {
					b.Fatal(s, err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "labels/s")
		})
	}
}

func BenchmarkTrusted(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		var s labels.Set
		for i := range n / 2 {
			pair(&s, i, i%10 == 0, i%11 == 0)
		}
		b.Run(fmt.Sprintf("%dk-labels", n/1000), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a, _ := labels.Trusted(&s, "big", labels.DefaultBound); a.N != n/2 {
					b.Fatal(a.N)
				}
			}
		})
	}
}
