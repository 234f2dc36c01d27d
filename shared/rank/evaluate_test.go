package rank_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/rank"
)

// By hand: the first question has its answer in second place behind a stale one, the
// second both answers in places 1 and 3, the third nothing.
func TestEvaluate(t *testing.T) {
	got := rank.Evaluate([]rank.Judged{
		{Ranked: []string{"old", "new", "x"}, Relevant: map[string]bool{"new": true}, Stale: []string{"old"}},
		{Ranked: []string{"a", "x", "b", "old"}, Relevant: map[string]bool{"a": true, "b": true, "x": false}, Stale: []string{"old"}},
		{Relevant: map[string]bool{"c": true}, Stale: []string{"old"}},
	})
	second := 1 / math.Log2(3)
	third := (1 + 1/math.Log2(4)) / (1 + 1/math.Log2(3))
	want := rank.Quality{
		Questions: 3, MRR: (0.5 + 1) / 3, NDCG10: (second + third) / 3, Precision1: 1. / 3, Precision10: (.1 + .2) / 3,
		Recall1: .5 / 3, Recall5: 2. / 3, Recall10: 2. / 3, StaleFirst: 1, Unanswered: 1,
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(rank.Quality{}, rank.Evaluate(nil)); d != "" {
		t.Errorf("of nothing (-want +got):\n%s", d)
	}
}
