package labels_test

import (
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

func TestBest(t *testing.T) {
	t.Parallel()
	chunk, day := memory.SumString("c"), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	var s labels.Set
	if _, ok := s.Best("q@01234567", chunk, 0, 9); ok {
		t.Error("an empty set says something")
	}
	add := func(kind, stream string, start, end int, evidence, readable bool, at time.Time) {
		s.Add(memory.SumString(kind+at.String()), &memory.Label{Kind: kind, Stream: stream, Chunk: chunk, Start: start, End: end, Evidence: evidence, FormatOK: readable, At: at})
	}
	best := func(want bool, kind string) {
		t.Helper()
		v, ok := s.Best("q@01234567.3", chunk, 2, 9)
		if !ok || v.Evidence != want || v.Kind != kind {
			t.Errorf("%+v %v, want %s %v", v, ok, kind, want)
		}
	}
	add(memory.LabelRule, "q@01234567", 0, 0, true, true, day.AddDate(0, 0, 9))
	best(true, memory.LabelRule)
	add(memory.LabelModel, "q@01234567.2", 2, 9, false, true, day)
	best(false, memory.LabelModel)
	add(memory.LabelModel, "q@01234567", 2, 9, true, false, day.AddDate(0, 0, 1)) // unreadable: says nothing
	best(false, memory.LabelModel)
	add(memory.LabelModel, "q@01234567", 2, 9, true, true, day.AddDate(0, 0, 1))
	best(true, memory.LabelModel)
	add(memory.LabelHuman, "q@01234567", 0, 20, false, true, day)
	best(false, memory.LabelHuman)
	add(memory.LabelHuman, "q@01234567", 0, 8, true, true, day.AddDate(1, 0, 0)) // of other bytes
	add(memory.LabelHuman, "r@01234567", 0, 0, true, true, day.AddDate(1, 0, 0)) // of another question
	best(false, memory.LabelHuman)
	if s.N() != 7 {
		t.Errorf("%d labels", s.N())
	}
}
