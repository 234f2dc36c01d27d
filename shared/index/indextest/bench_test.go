package indextest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

// The benchmarks search 100,000 passages of 150 words, drawn by Zipf's law from
// the words of the static table, embedded with that table. This is hard for the
// dense leg: without topics all texts are near each other. MNEME_BENCH_PASSAGES
// sets another size. Questions have 8 words of the same law.
//
//	go test ./shared/index/indextest -run '^$' -bench . -benchtime 200x
const benchWords = 150

var big struct {
	once    sync.Once
	c       *corpus
	dir     string
	size    int
	vectors [][]float32
	queries []string
	qvecs   [][]float32
	build   time.Duration
}

func TestMain(m *testing.M) {
	code := m.Run()
	if big.c != nil {
		big.c.graph.Close()
		big.c.lexical.Close()
	}
	if big.dir != "" {
		os.RemoveAll(big.dir)
	}
	os.Exit(code)
}

func bigCorpus(b *testing.B) *corpus {
	b.Helper()
	big.once.Do(func() { buildBig(b) })
	if big.c == nil {
		b.Fatal("the corpus could not be built")
	}
	return big.c
}

func buildBig(b *testing.B) {
	start := time.Now()
	big.size = 100_000
	if s := os.Getenv("MNEME_BENCH_PASSAGES"); s != "" {
		if _, err := fmt.Sscan(s, &big.size); err != nil {
			b.Fatal(err)
		}
	}
	text := indextest.Zipf(b, 2)
	var err error
	ctx := context.Background()
	if big.dir, err = os.MkdirTemp("", "mneme-bench"); err != nil {
		b.Fatal(err)
	}
	e, err := static.New()
	if err != nil {
		b.Fatal(err)
	}
	g, err := sqliteindex.Open(ctx, filepath.Join(big.dir, "graph.db"))
	if err != nil {
		b.Fatal(err)
	}
	l, err := bleveindex.Open(ctx, filepath.Join(big.dir, "lexical"))
	if err != nil {
		b.Fatal(err)
	}
	const perBatch = 5000
	for seq := int64(1); len(big.vectors) < big.size; seq++ {
		batch := index.Batch{Tenant: indextest.Tenant, Project: indextest.Project, Stream: "q@1", Space: e.Space().ID, Seq: seq, Vectors: map[memory.SHA][]float32{}}
		for range min(perBatch, big.size-len(big.vectors)) {
			n := indextest.Evidence(indextest.Project, "q@1", text(benchWords), int(seq))
			p := index.PassagesOf(&n)
			v, err := e.Embed(ctx, []string{p[0].Embed})
			if err != nil {
				b.Fatal(err)
			}
			n.Passages = p
			batch.Nodes = append(batch.Nodes, n)
			batch.Vectors[p[0].ID] = v[0]
			big.vectors = append(big.vectors, v[0])
		}
		if err := g.Apply(ctx, batch); err != nil {
			b.Fatal(err)
		}
		if err := l.Apply(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	for range 200 {
		q := text(8)
		v, err := e.Embed(ctx, []string{q})
		if err != nil {
			b.Fatal(err)
		}
		big.queries, big.qvecs = append(big.queries, q), append(big.qvecs, v[0])
	}
	big.build = time.Since(start)
	big.c = &corpus{graph: g, lexical: l, embed: e}
	b.Logf("built %d passages in %s", big.size, big.build.Round(time.Second))
}

// timer gathers single times for their median.
type timer []time.Duration

func (t *timer) measure(f func()) {
	start := time.Now()
	f()
	*t = append(*t, time.Since(start))
}

func (t timer) p50() float64 {
	s := slices.Sorted(slices.Values(t))
	return float64(s[len(s)/2].Microseconds()) / 1000
}

var benchScope = index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}

func dense(b *testing.B, c *corpus, i int) []index.Hit {
	hits, err := c.graph.SearchDense(context.Background(), c.embed.Space().ID, big.qvecs[i%len(big.qvecs)], benchScope, 50)
	if err != nil {
		b.Error(err)
	}
	return hits
}

func lexical(b *testing.B, c *corpus, i int) {
	if _, err := c.lexical.Search(context.Background(), big.queries[i%len(big.queries)], benchScope, 50); err != nil {
		b.Error(err)
	}
}

func BenchmarkDense(b *testing.B) {
	b.Run("100k", func(b *testing.B) {
		c := bigCorpus(b)
		b.ReportAllocs()
		start := time.Now()
		dense(b, c, 0)
		first := time.Since(start) // reads the vectors
		var t timer
		i := 0
		for b.Loop() {
			t.measure(func() { dense(b, c, i) })
			i++
		}
		b.ReportMetric(float64(first.Milliseconds()), "first-ms")
		b.ReportMetric(t.p50(), "p50-ms")
		b.ReportMetric(recall(b, c, 50), "recall@10")
	})
}

// recall compares the first ten of n questions with an exact scan, by score:
// equal texts may stand for each other.
func recall(b *testing.B, c *corpus, n int) float64 {
	got := 0
	for q := range n {
		vec := big.qvecs[q]
		exact := make([]float64, 0, len(big.vectors))
		for _, v := range big.vectors {
			var s float64
			for j := range v {
				s += float64(v[j]) * float64(vec[j])
			}
			exact = append(exact, s)
		}
		slices.Sort(exact)
		tenth := exact[len(exact)-10]
		for _, h := range dense(b, c, q)[:10] {
			if h.Score >= tenth-1e-6 { // rounding of float32
				got++
			}
		}
	}
	return float64(got) / float64(10*n)
}

func BenchmarkLexical(b *testing.B) {
	b.Run("100k", func(b *testing.B) {
		c := bigCorpus(b)
		b.ReportAllocs()
		var t timer
		i := 0
		for b.Loop() {
			t.measure(func() { lexical(b, c, i) })
			i++
		}
		b.ReportMetric(t.p50(), "p50-ms")
	})
}

// BenchmarkBoth runs the legs alone and side by side in turn, so that all three
// see the same machine.
func BenchmarkBoth(b *testing.B) {
	b.Run("100k", func(b *testing.B) {
		c := bigCorpus(b)
		dense(b, c, 0)
		var td, tl, both timer
		i := 0
		for b.Loop() {
			td.measure(func() { dense(b, c, i) })
			tl.measure(func() { lexical(b, c, i) })
			both.measure(func() {
				var wg sync.WaitGroup
				wg.Go(func() { dense(b, c, i) })
				lexical(b, c, i)
				wg.Wait()
			})
			i++
		}
		b.ReportMetric(td.p50(), "dense-p50-ms")
		b.ReportMetric(tl.p50(), "lexical-p50-ms")
		b.ReportMetric(both.p50(), "both-p50-ms")
		b.ReportMetric(both.p50()/max(td.p50(), tl.p50()), "both/slower")
	})
}
