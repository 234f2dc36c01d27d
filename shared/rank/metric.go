package rank

import (
	"cmp"
	"math"
	"slices"
)

// RecallAt is the share of the relevant ids among the first k, [0,1]; 0 when
// nothing is relevant.
func RecallAt[T comparable](ranked []T, relevant map[T]bool, k int) float64 {
	want := 0
	for _, ok := range relevant {
		if ok {
			want++
		}
	}
	if want == 0 {
		return 0
	}
	return float64(matched(ranked, relevant, k)) / float64(want)
}

// PrecisionAt is the share of the first k places that hold a relevant id,
// [0,1]. A place that the ranking does not fill counts as a miss.
func PrecisionAt[T comparable](ranked []T, relevant map[T]bool, k int) float64 {
	if k <= 0 {
		return 0
	}
	return float64(matched(ranked, relevant, k)) / float64(k)
}

// matched counts relevant ids among the first k, each once.
func matched[T comparable](ranked []T, relevant map[T]bool, k int) int {
	seen := map[T]bool{}
	for i, id := range ranked {
		if i >= k {
			break
		}
		if relevant[id] {
			seen[id] = true
		}
	}
	return len(seen)
}

// ReciprocalRank is 1 over the place of the first relevant id, 0 when there is
// none. Its mean over questions is MRR.
func ReciprocalRank[T comparable](ranked []T, relevant map[T]bool) float64 {
	for i, id := range ranked {
		if relevant[id] {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// NDCGAt is the normalised discounted cumulative gain of the first k, [0,1]:
// gain over log2(place+1), divided by that of the best order (Järvelin and
// Kekäläinen 2002). gain is 0 for ids that are not in it; a repeat gains
// nothing.
func NDCGAt[T comparable](ranked []T, gain map[T]float64, k int) float64 {
	var dcg, ideal float64
	seen := map[T]bool{}
	for i, id := range ranked {
		if i >= k {
			break
		}
		if !seen[id] {
			seen[id] = true
			dcg += max(gain[id], 0) / math.Log2(float64(i+2))
		}
	}
	gains := make([]float64, 0, len(gain))
	for _, g := range gain {
		if g > 0 {
			gains = append(gains, g)
		}
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, g := range gains {
		if i >= k {
			break
		}
		ideal += g / math.Log2(float64(i+2))
	}
	if ideal == 0 {
		return 0
	}
	return dcg / ideal
}

// Mean is the arithmetic mean; 0 of nothing.
func Mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(len(xs), 1))
}
