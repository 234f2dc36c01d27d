package rank

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Rerank puts the first len(scores) of a ranking into the order of a
// cross-encoder's scores, greater first, which must be finite; what follows them
// keeps its place. Score stays that of the fusion: a reranker's scores are
// comparable within one call alone.
//
// A replacement takes the best score of what it replaces, over any number of
// steps, so that it stands before it still. in is as Fuse gave it, or parts of
// it in its order; same names, for an id that was left out as the repeat of
// another, the one that stands for it.
func Rerank(in []Fused, scores []float64, same map[memory.SHA]memory.SHA) []Fused {
	n := min(len(scores), len(in))
	at := make(map[memory.SHA]int, n)
	for i := range in[:n] {
		at[in[i].ID] = i
	}
	key := slices.Clone(scores[:n])
	from := make([]int, n)
	for i := range from {
		from[i] = i
	}
	for i := n - 1; i >= 0; i-- { // what replaces stands before, so that steps add up
		for _, by := range in[i].SupersededBy {
			if s, ok := same[by]; ok {
				by = s
			}
			if j, ok := at[by]; ok && j < i && key[i] > key[j] {
				key[j], from[j] = key[i], from[i]
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key[b], key[a]) })
	out := slices.Clone(in)
	for place, i := range order {
		f := in[i]
		f.Reranked, f.Rerank = true, scores[i]
		f.Reason += fmt.Sprintf("; place %d by fusion, %d by the reranker (%.3g", i+1, place+1, scores[i])
		if from[i] != i {
			f.Reason += fmt.Sprintf("; it replaces %s, which has %.3g", in[from[i]].ID.Short(), key[i])
		}
		f.Reason += ")"
		out[place] = f
	}
	return out
}
