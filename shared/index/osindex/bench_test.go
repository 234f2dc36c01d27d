package osindex_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

// BenchmarkRebuild fills empty indices with 100,000 nodes of one passage (or as many as
// MNEME_BENCH_PASSAGES says), by Apply in batches of 1,000, and beside it the same documents
// by the same bulk requests, made before and sent one after the other: ratio is the one's
// time over the other's, to where all can be found.
//
//	MNEME_TEST_OS=URL go test ./shared/index/osindex -run '^$' -bench Rebuild -benchtime 1x
func BenchmarkRebuild(b *testing.B) {
	nodes := passages(b)
	b.Run(fmt.Sprintf("passages=%d", nodes), func(b *testing.B) {
		url := cluster(b)
		const perBatch = 1000
		j := indextest.Generate(nodes, 200, 3)
		var batches []index.Batch
		for from := 0; from < nodes; from += perBatch {
			batch := index.Batch{Tenant: indextest.Tenant, Project: indextest.Project, Stream: "q@1", Space: "none", Seq: int64(len(batches) + 1), Nodes: j.Nodes[from:min(from+perBatch, nodes)]}
			for i := range batch.Nodes {
				batch.Nodes[i].Passages = index.PassagesOf(&batch.Nodes[i])
			}
			batches = append(batches, batch)
		}
		apply := func(batches []index.Batch) time.Duration {
			ix := open(b, fresh(b))
			begun, nodes := time.Now(), 0
			for _, batch := range batches {
				nodes += len(batch.Nodes)
				if err := ix.Apply(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if n, err := ix.Passages(b.Context(), indextest.Tenant); n != int64(nodes) || err != nil {
				b.Fatalf("%d passages of %d, error %v", n, nodes, err)
			}
			return time.Since(begun)
		}
		send := func(batches []index.Batch) time.Duration {
			c := fresh(b)
			ix := open(b, c)
			var bodies [][]byte
			for _, batch := range batches {
				bodies = append(bodies, ix.Bulks(b, batch)...)
			}
			begun := time.Now()
			for _, body := range bodies {
				post(b, url+"/_bulk", body, `"errors":false`)
			}
			post(b, url+"/"+c.Prefix+"-passages/_refresh", nil, `"failed":0`)
			return time.Since(begun)
		}
		warm := batches[:max(1, len(batches)/10)] // neither pays for the server's compiler
		apply(warm)
		send(warm)
		var ours, raw time.Duration
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%2 == 0 { // each goes first once
				ours += apply(batches)
				raw += send(batches)
			} else {
				raw += send(batches)
				ours += apply(batches)
			}
		}
		b.ReportMetric(float64(nodes)*float64(b.N)/ours.Seconds(), "passages/s")
		b.ReportMetric(raw.Seconds()/float64(b.N), "raw-s")
		b.ReportMetric(ours.Seconds()/raw.Seconds(), "ratio")
	})
}

// post wants an answer of 200 that holds want.
func post(b *testing.B, url string, body []byte, want string) {
	b.Helper()
	resp, err := http.Post(url, "application/x-ndjson", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(want)) {
		b.Fatalf("%d %.200s, error %v", resp.StatusCode, answer, err)
	}
}

// BenchmarkLexical asks the embedded leg and OpenSearch the same questions of 8 words in
// turn, over the same 100,000 passages of 150 (or as many as MNEME_BENCH_PASSAGES says), all words
// drawn by Zipf's law: ratio is the median of the one over that of the other. A million takes some
// 20 minutes and 5 GB of disk to build.
//
//	MNEME_TEST_OS=URL go test ./shared/index/osindex -run '^$' -bench Lexical -benchtime 200x -timeout 2h
func BenchmarkLexical(b *testing.B) {
	nodes := passages(b)
	var once sync.Once
	var embedded, server index.Lexical
	var questions []string
	b.Run(fmt.Sprintf("passages=%d", nodes), func(b *testing.B) {
		once.Do(func() {
			cluster(b)
			var err error
			if embedded, err = bleveindex.Open(b.Context(), b.TempDir()); err != nil {
				b.Fatal(err)
			}
			server = open(b, fresh(b))
			text := indextest.Zipf(b, 2)
			const perBatch = 5000
			var spent [2]time.Duration
			for from := 0; from < nodes; from += perBatch {
				batch := index.Batch{Tenant: indextest.Tenant, Project: indextest.Project, Stream: "q@1", Space: "none", Seq: int64(from/perBatch + 1)}
				for i := range min(perBatch, nodes-from) {
					n := indextest.Evidence(indextest.Project, "q@1", text(150), i%900+1)
					n.Passages = index.PassagesOf(&n)
					batch.Nodes = append(batch.Nodes, n)
				}
				for i, ix := range []index.Lexical{embedded, server} {
					begun := time.Now()
					if err := ix.Apply(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
					spent[i] += time.Since(begun)
				}
			}
			b.Logf("built %d passages: embedded in %s, OpenSearch in %s", nodes, spent[0].Round(time.Second), spent[1].Round(time.Second))
			for range 200 {
				questions = append(questions, text(8))
			}
		})
		b.ReportAllocs()
		scope := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
		var times [2][]time.Duration
		for i := 0; b.Loop(); i++ {
			for n, ix := range []index.Lexical{embedded, server} {
				begun := time.Now()
				if hits, err := ix.Search(b.Context(), questions[i%len(questions)], scope, 50); err != nil || len(hits) == 0 {
					b.Fatalf("%d hits, error %v", len(hits), err)
				}
				times[n] = append(times[n], time.Since(begun))
			}
		}
		at := func(n, percent int) float64 {
			slices.Sort(times[n])
			return times[n][len(times[n])*percent/100].Seconds() * 1000
		}
		b.ReportMetric(at(0, 50), "embedded-p50-ms")
		b.ReportMetric(at(0, 99), "embedded-p99-ms")
		b.ReportMetric(at(1, 50), "server-p50-ms")
		b.ReportMetric(at(1, 99), "server-p99-ms")
		b.ReportMetric(at(0, 50)/at(1, 50), "ratio")
	})
}

// passages is how many a benchmark has.
func passages(b *testing.B) int {
	b.Helper()
	n := 100_000
	if s := os.Getenv("MNEME_BENCH_PASSAGES"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.Fatal(err)
		}
	}
	return n
}
