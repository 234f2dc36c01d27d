package sqliteindex

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

// BenchmarkScan searches 100,000 vectors in memory, or as many as MNEME_BENCH_PASSAGES says:
// texts of 150 words drawn by Zipf's law from the static table's, embedded by it, and
// questions of 8. It is SearchDense without the file, so that a million is there in minutes.
//
//	MNEME_BENCH_PASSAGES=1000000 go test ./shared/index/sqliteindex -run '^$' -bench Scan -benchtime 200x
func BenchmarkScan(b *testing.B) {
	size := 100_000
	if s := os.Getenv("MNEME_BENCH_PASSAGES"); s != "" {
		if _, err := fmt.Sscan(s, &size); err != nil {
			b.Fatal(err)
		}
	}
	var once sync.Once
	var d *dense
	var queries [][]float32
	b.Run(fmt.Sprintf("passages=%d", size), func(b *testing.B) {
		once.Do(func() { d, queries = zipfSpace(b, size) })
		f := &index.Filter{Tenant: "t", Projects: []string{"p"}}
		var times []time.Duration
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			begun := time.Now()
			if _, err := d.search(context.Background(), queries[i%len(queries)], f, 50); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(begun))
			i++
		}
		slices.Sort(times)
		b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "p99-ms")
		const asked, depth = 50, 10
		got := 0
		for _, q := range queries[:asked] {
			exact := make([]float32, d.rows())
			for r := range exact {
				exact[r] = dot(q, d.row(r))
			}
			slices.Sort(exact)
			hits, err := d.search(context.Background(), q, f, 50)
			if err != nil {
				b.Fatal(err)
			}
			for _, h := range hits[:depth] {
				if h.Score >= float64(exact[len(exact)-depth])-1e-6 { // equal texts stand for each other
					got++
				}
			}
		}
		b.ReportMetric(float64(got)/(asked*depth), "recall@10")
	})
}

// zipfSpace is a space of n texts, each of a node of its own, and 200 questions.
func zipfSpace(b *testing.B, n int) (*dense, [][]float32) {
	b.Helper()
	e, err := static.New()
	if err != nil {
		b.Fatal(err)
	}
	embed := func(seed uint64, texts, words int) (out [][]float32) {
		text := indextest.Zipf(b, seed)
		for range texts {
			v, err := e.Embed(context.Background(), []string{text(words)})
			if err != nil {
				b.Error(err)
				return nil
			}
			out = append(out, index.Unit(v[0]))
		}
		return out
	}
	const parts = 20
	vecs := make([][][]float32, parts)
	var wg sync.WaitGroup
	for _, odd := range []int{0, 1} {
		wg.Go(func() {
			for p := odd; p < parts; p += 2 {
				vecs[p] = embed(uint64(p)+2, n/parts, 150)
			}
		})
	}
	wg.Wait()
	d := newDense(e.Space().Dims)
	for p := range vecs {
		for _, v := range vecs[p] {
			row := denseRow{nodeRow: int64(d.rows() + 1), project: "p", level: memory.L0, v: v}
			row.passage[0], row.passage[1], row.passage[2] = byte(d.rows()), byte(d.rows()>>8), byte(d.rows()>>16)
			row.node = row.passage
			d.add(&row)
		}
		vecs[p] = nil
	}
	d.encode()
	return d, embed(1, 200, 8)
}
