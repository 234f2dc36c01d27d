package rank_test

import (
	"math"
	"testing"

	"github.com/mneme-ai/mneme/shared/rank"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	ranked := []string{"x", "a", "y", "b", "a", "z"}
	relevant := map[string]bool{"a": true, "b": true, "c": true, "x": false}
	gain := map[string]float64{"a": 3, "b": 1, "c": 2}
	ideal := 3 + 2/math.Log2(3) + 1/math.Log2(4)
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"recall@1", rank.RecallAt(ranked, relevant, 1), 0},
		{"recall@2", rank.RecallAt(ranked, relevant, 2), 1.0 / 3},
		{"recall@10, a repeat counts once", rank.RecallAt(ranked, relevant, 10), 2.0 / 3},
		{"recall, nothing relevant", rank.RecallAt(ranked, map[string]bool{"q": false}, 5), 0},
		{"precision@4", rank.PrecisionAt(ranked, relevant, 4), .5},
		{"precision@10 of six", rank.PrecisionAt(ranked, relevant, 10), .2},
		{"precision@0", rank.PrecisionAt(ranked, relevant, 0), 0},
		{"reciprocal rank", rank.ReciprocalRank(ranked, relevant), .5},
		{"reciprocal rank, none", rank.ReciprocalRank(ranked, map[string]bool{"c": true}), 0},
		{"nDCG@10", rank.NDCGAt(ranked, gain, 10), (3/math.Log2(3) + 1/math.Log2(5)) / ideal},
		{"nDCG@1", rank.NDCGAt(ranked, gain, 1), 0},
		{"nDCG of the best order", rank.NDCGAt([]string{"a", "c", "b"}, gain, 10), 1},
		{"nDCG, no gain", rank.NDCGAt(ranked, map[string]float64{}, 10), 0},
		{"mean", rank.Mean([]float64{1, 0, .5}), .5},
		{"mean of nothing", rank.Mean(nil), 0},
	} {
		if math.Abs(tt.got-tt.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}
