package indextest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	differDepth   = 50   // hits that a query reads of a leg
	differOverlap = 0.7  // of the first ten, on average
	differPlaces  = 1.0  // that the gold may lose, on average
	differRecall  = 0.99 // of the exact scan's first ten
)

var differScope = index.Filter{Tenant: Tenant, Projects: []string{Project}}

// DifferLexical asks both drivers j's questions. Scores are of other formulas, so that the
// first ten need not be the same: on average at least 0.7 of them are, and the answer stands
// no more than one place lower in b than in a. It prints what it measured.
func DifferLexical(t *testing.T, j Judged, a, b index.Lexical) {
	t.Helper()
	for _, batch := range j.Batches(t, nil) {
		for _, ix := range []index.Lexical{a, b} {
			if err := ix.Apply(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	var overlap, lost, worst float64
	var ranks [2]float64
	var first [2]int
	at := ""
	for _, q := range j.Questions {
		var top [2][]memory.SHA
		var gold [2]int
		for i, ix := range []index.Lexical{a, b} {
			hits, err := ix.Search(t.Context(), q.Text, differScope, differDepth)
			if err != nil {
				t.Fatal(err)
			}
			gold[i] = differDepth + 1
			for n, h := range hits {
				if n < 10 {
					top[i] = append(top[i], h.Node)
				}
				if q.Gold[h.Node] && gold[i] > differDepth {
					gold[i] = n + 1
				}
			}
			ranks[i] += float64(gold[i])
			if gold[i] == 1 {
				first[i]++
			}
		}
		same := 0
		for _, id := range top[0] {
			if slices.Contains(top[1], id) {
				same++
			}
		}
		overlap += float64(same) / float64(max(len(top[0]), len(top[1]), 1))
		d := float64(gold[1] - gold[0])
		if lost += d; d > worst {
			worst, at = d, fmt.Sprintf("; most for %.80q: place %d, then %d", q.Text, gold[0], gold[1])
		}
	}
	n := float64(len(j.Questions))
	t.Logf("%d nodes, %d questions: overlap@10 %.3f; place of the gold %.2f and %.2f on average, first %d and %d times%s",
		len(j.Nodes), len(j.Questions), overlap/n, ranks[0]/n, ranks[1]/n, first[0], first[1], at)
	if overlap/n < differOverlap {
		t.Errorf("the first ten have %.3f in common on average, want %.1f", overlap/n, differOverlap)
	}
	if lost/n > differPlaces {
		t.Errorf("the gold loses %.2f places on average, want at most %.0f", lost/n, differPlaces)
	}
}

// DifferGraph fills the graphs with j and asks each its questions by the static table: of
// the ten nearest passages by an exact scan each finds 0.99, and all have the same hash.
// ready is called when a graph is filled.
func DifferGraph(t *testing.T, j Judged, graphs map[string]index.Graph, ready func(name string)) {
	t.Helper()
	e, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	batches := j.Batches(t, e)
	var want memory.SHA
	for name, g := range graphs {
		for _, b := range batches {
			if err := g.Apply(t.Context(), b); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		ready(name)
		hash, counts, err := g.Hash(t.Context(), Tenant)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want == "" {
			want = hash
		}
		t.Logf("%s: index hash %s over %+v", name, hash.Short(), counts)
		if hash != want || counts.Nodes != int64(len(j.Nodes)) {
			t.Errorf("%s: hash %s over %d nodes, want %s over %d", name, hash, counts.Nodes, want, len(j.Nodes))
		}
	}
	type passage struct {
		node memory.SHA
		unit []float32
	}
	var passages []passage
	for _, b := range batches {
		for i := range b.Nodes {
			for _, p := range index.PassagesOf(&b.Nodes[i]) {
				passages = append(passages, passage{b.Nodes[i].ID, index.Unit(b.Vectors[p.ID])})
			}
		}
	}
	const depth = 10
	got, first := map[string]int{}, map[string]int{}
	for _, q := range j.Questions {
		v, err := e.Embed(t.Context(), []string{q.Text})
		if err != nil {
			t.Fatal(err)
		}
		vec := index.Unit(v[0])
		best := map[memory.SHA]float64{}
		for _, p := range passages {
			s := 0.0
			for d, x := range p.unit {
				s += float64(x) * float64(vec[d])
			}
			if old, ok := best[p.node]; !ok || s > old {
				best[p.node] = s
			}
		}
		exact := make([]float64, 0, len(best))
		for _, s := range best {
			exact = append(exact, s)
		}
		slices.Sort(exact)
		tenth := exact[len(exact)-depth]
		for name, g := range graphs {
			hits, err := g.SearchDense(t.Context(), e.Space().ID, v[0], differScope, differDepth)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i, h := range hits[:min(depth, len(hits))] {
				if best[h.Node] >= tenth-1e-6 { // rounding of float32
					got[name]++
				}
				if i == 0 && q.Gold[h.Node] {
					first[name]++
				}
			}
		}
	}
	for name := range graphs {
		recall := float64(got[name]) / float64(depth*len(j.Questions))
		t.Logf("%s: %d questions, recall@10 of the exact scan %.4f, the gold first %d times", name, len(j.Questions), recall, first[name])
		if recall < differRecall {
			t.Errorf("%s: recall@10 of the exact scan %.4f, want %.2f", name, recall, differRecall)
		}
	}
}
