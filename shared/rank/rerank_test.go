package rank_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/rank"
)

func TestRerank(t *testing.T) {
	t.Parallel()
	id := func(s string) memory.SHA { return memory.SumString(s) }
	by := func(name string, replacedBy ...string) rank.Fused {
		f := rank.Fused{ID: id(name), Score: 0.5, Reason: "found"}
		for _, r := range replacedBy {
			f.SupersededBy = append(f.SupersededBy, id(r))
		}
		return f
	}
	for name, tc := range map[string]struct {
		in     []rank.Fused
		scores []float64
		same   map[memory.SHA]memory.SHA
		want   string
	}{
		"by score":              {[]rank.Fused{by("a"), by("b"), by("c")}, []float64{-1, 3, 0.5}, nil, "b c a"},
		"ties keep their order": {[]rank.Fused{by("a"), by("b"), by("c")}, []float64{1, 2, 1}, nil, "b a c"},
		"the rest stays behind": {[]rank.Fused{by("a"), by("b"), by("c"), by("d")}, []float64{1, 2}, nil, "b a c d"},
		"none":                  {[]rank.Fused{by("a"), by("b")}, nil, nil, "a b"},
		"more than there are":   {[]rank.Fused{by("a")}, []float64{1, 2}, nil, "a"},
		"a replacement takes what it replaces has": {[]rank.Fused{by("new"), by("x"), by("old", "new")}, []float64{0, 1, 2}, nil, "new old x"},
		"over two steps":                            {[]rank.Fused{by("newest"), by("newer", "newest"), by("x"), by("old", "newer")}, []float64{0, 0.1, 1, 2}, nil, "newest newer old x"},
		"and keeps its own where that is more":      {[]rank.Fused{by("new"), by("x"), by("old", "new")}, []float64{3, 2, 1}, nil, "new x old"},
		"a replacement that stands under a twin":    {[]rank.Fused{by("twin"), by("x"), by("old", "new")}, []float64{0, 1, 2}, map[memory.SHA]memory.SHA{id("new"): id("twin")}, "twin old x"},
		"one that nobody sees lifts nothing":        {[]rank.Fused{by("x"), by("old", "hidden")}, []float64{1, 2}, nil, "old x"},
		"what is replaced beyond the first is calm": {[]rank.Fused{by("new"), by("x"), by("old", "new")}, []float64{1, 2}, nil, "x new old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names := map[memory.SHA]string{}
			for _, n := range strings.Fields("a b c d x new old newer newest twin hidden") {
				names[id(n)] = n
			}
			var got []string
			for _, f := range rank.Rerank(tc.in, tc.scores, tc.same) {
				got = append(got, names[f.ID])
				if f.Reranked != strings.Contains(f.Reason, "by the reranker") || f.Score != 0.5 {
					t.Errorf("%s: %+v", names[f.ID], f)
				}
			}
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	out := rank.Rerank([]rank.Fused{by("new"), by("x"), by("old", "new")}, []float64{0.25, 1, 2}, nil)
	if want := "found; place 1 by fusion, 1 by the reranker (0.25; it replaces " + id("old").Short() + ", which has 2)"; out[0].Reason != want || out[0].Rerank != 0.25 {
		t.Errorf("%q, want %q", out[0].Reason, want)
	}
}
