package extractive_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru/extractive"
)

// sentences are short and of few words, so that many of them are related.
func sentences(rnd *rand.Rand, n int) []string {
	words := strings.Fields("cache queue worker deploy region limit jobs export retry never no not must 5 90 `rows` \"utf\" server port 8443 the of and is 界 面")
	out := make([]string, n)
	for i := range out {
		var s []string
		for range rnd.IntN(9) {
			s = append(s, words[rnd.IntN(len(words))])
		}
		out[i] = strings.Join(s, " ")
	}
	return out
}

// The index agrees with a comparison with everything.
func TestIndexIsExact(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 7))
	seen := map[extractive.Relation]int{}
	for range 20 {
		x := extractive.NewIndex()
		var prints []extractive.Fingerprint
		for _, s := range sentences(rnd, 120) {
			f := extractive.FingerprintOf(s)
			got := x.Related(f)
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Fatalf("%q: %v is not ascending", s, got)
			}
			for i, k := range prints {
				for _, amends := range []bool{false, true} {
					there, back := extractive.Relate(f, k, amends), extractive.Relate(k, f, amends)
					seen[there]++
					needed := there == extractive.Repeat || there == extractive.Supersedes || back == extractive.Supersedes
					if needed && !slices.Contains(got, int32(i)) {
						t.Fatalf("%q: place %d is %v, back %v, and not found in %v", s, i, there, back, got)
					}
				}
			}
			x.Add(f)
			prints = append(prints, f)
		}
		if x.Len() != len(prints) {
			t.Fatalf("%d places, want %d", x.Len(), len(prints))
		}
	}
	for _, r := range []extractive.Relation{extractive.None, extractive.Repeat, extractive.Related, extractive.Supersedes} {
		if seen[r] == 0 {
			t.Errorf("no two sentences were %v: the test shows nothing", r)
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{2000, 10_000} {
		b.Run(fmt.Sprintf("%d-kept", n), func(b *testing.B) {
			x := extractive.NewIndex()
			for i := range n {
				x.Add(extractive.FingerprintOf(fmt.Sprintf("The worker for queue q%d must never hold more than %d jobs, because region r%d pages us.", i, i%90, i%7)))
			}
			f := extractive.FingerprintOf("From now on the export job must write UTF-8, never the old code page, because the ERP rejects it.")
			b.ReportAllocs()
			for b.Loop() {
				x.Related(f)
			}
		})
	}
}
