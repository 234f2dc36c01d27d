package query_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/osindex"
	"github.com/mneme-ai/mneme/shared/index/pgindex"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

// servers are the indexes in PostgreSQL and OpenSearch, in a schema and under a prefix of
// their own; false where the environment names none.
func servers(t testing.TB) (index.Graph, index.Lexical, bool) {
	t.Helper()
	pg, cluster := os.Getenv("MNEME_TEST_PG"), os.Getenv("MNEME_TEST_OS")
	if pg == "" || cluster == "" {
		return nil, nil, false
	}
	schema, prefix := ownNames(t, pg, cluster)
	ctx := context.WithoutCancel(t.Context())
	g, err := pgindex.Open(ctx, pgindex.Config{URL: pg, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	l, err := osindex.Open(ctx, osindex.Config{URLs: []string{cluster}, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return g, l, true
}

// ownNames are a schema and a prefix of the test's own, removed at its end.
func ownNames(t testing.TB, pg, cluster string) (schema, prefix string) {
	t.Helper()
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	prefix = "test-query-" + hex.EncodeToString(b)
	schema = strings.ReplaceAll(prefix, "-", "_")
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if out, err := exec.Command("psql", "-q", pg, "-c", `DROP SCHEMA IF EXISTS `+schema+` CASCADE`).CombinedOutput(); err != nil {
			t.Logf("schema %s is left behind: %v %s", schema, err, out)
		}
		for _, kind := range []string{"passages", "nodes", "positions"} {
			req, err := http.NewRequestWithContext(ctx, http.MethodDelete, fmt.Sprintf("%s/%s-%s-v%d", cluster, prefix, kind, osindex.SchemaVersion), nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	})
	return schema, prefix
}

// corpus are n statements of three sentences over a vocabulary of Zipf's law; every tenth
// replaces an earlier one.
func corpus(n int) (nodes []index.Node, questions []string) {
	r := mrand.New(mrand.NewPCG(7, 7))
	z := mrand.NewZipf(r, 1.3, 8, 8000)
	verbs := []string{"decided to cap", "moved", "agreed to keep", "must never log", "always retry", "set"}
	word := func() string { return fmt.Sprintf("%s%s", syllables[z.Uint64()%40], syllables[z.Uint64()/40%40]) }
	stream := memory.StreamName("decisions", functest.Wording("decisions"))
	for i := range n {
		var b strings.Builder
		for range 3 {
			fmt.Fprintf(&b, "We %s the %s %s %s of the %s %s at %d. ", verbs[r.IntN(len(verbs))], word(), word(), word(), word(), word(), r.IntN(500))
		}
		text := fmt.Sprintf("%sCase %d.", b.String(), i)
		sum := memory.SumString(text)
		at := day.Add(time.Duration(i) * time.Minute)
		node := index.Node{
			ID:    memory.NodeID(functest.Tenant, "shop", memory.L0, stream, sum),
			Level: memory.L0, Tenant: functest.Tenant, Project: "shop", Stream: stream, QueryID: "decisions", Text: text, TextSHA: sum,
			T: i + 1, Role: memory.RoleUser, Trust: memory.TrustUser, SourceTime: &at, Place: memory.Place{Time: at, Admit: int64(i + 1)},
		}
		node.Occurrences = []index.Occurrence{{T: i + 1, Place: node.Place, Quote: text, Role: node.Role, Span: memory.Span{
			Object: fmt.Sprintf("transcripts/shop/%d.jsonl", i/20), ETag: "e", Start: 1, End: int64(1 + len(text)), Codec: memory.CodecRaw,
			SHA256: sum, Chunk: memory.SumString(fmt.Sprint(i / 20)), ChunkStart: 0, ChunkEnd: len(text),
		}}}
		if i%10 == 9 {
			node.Supersedes = []memory.SHA{nodes[r.IntN(len(nodes))].ID}
		}
		nodes = append(nodes, node)
		if i%(n/64+1) == 0 {
			questions = append(questions, "what did we decide about the "+strings.Join(strings.Fields(text)[3:11], " "))
		}
	}
	return nodes, questions
}

var syllables = strings.Fields("ba be bi bo bu da de di do du fa fe fi fo fu ga ge gi go gu ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu")

// fillWith brings nodes into both indexes of a world whose project asks "decisions".
func fillWith(t testing.TB, w *functest.World, e llm.Embedder, nodes []index.Node) {
	t.Helper()
	w.Ask("shop", "decisions")
	seq := int64(0)
	for part := range slices.Chunk(nodes, 1000) {
		seq++
		b := index.Batch{Tenant: functest.Tenant, Project: "shop", Stream: part[0].Stream, Space: w.Space.ID, Seq: seq, Nodes: part, Vectors: map[memory.SHA][]float32{}}
		for i := range part {
			for _, p := range index.PassagesOf(&part[i]) {
				v, err := e.Embed(t.Context(), []string{p.Embed})
				if err != nil {
					t.Fatal(err)
				}
				b.Vectors[p.ID] = v[0]
			}
		}
		if err := w.Graph.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := w.Lexical.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if m, ok := w.Graph.(index.Maintainer); ok {
		if err := m.Maintain(t.Context(), functest.Tenant); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkHybrid is a whole hybrid query beside the two legs' raw queries of the same
// questions, which run side by side as the query's own do; the ratio is to the slower of
// them. Each round all clients ask some questions raw, and then all ask them whole: no raw
// query waits behind a whole one. A question is timed from before it has a processor, as
// one that comes over a network is: else what never waits in its midst would wait uncounted
// between two of a client's questions. MNEME_BENCH_PASSAGES sets the size.
func BenchmarkHybrid(b *testing.B) {
	n, _ := strconv.Atoi(os.Getenv("MNEME_BENCH_PASSAGES"))
	if n == 0 {
		n = 20_000
	}
	e, err := static.New()
	if err != nil {
		b.Fatal(err)
	}
	nodes, questions := corpus(n)
	for _, stores := range []string{"embedded", "servers"} {
		b.Run(stores, func(b *testing.B) {
			o := functest.Options{Embedder: e}
			if stores == "servers" {
				var ok bool
				if o.Graph, o.Lexical, ok = servers(b); !ok {
					b.Skip("MNEME_TEST_PG and MNEME_TEST_OS are not set")
				}
			}
			w := functest.New(b, o)
			fillWith(b, w, e, nodes)
			for _, clients := range []int{1, 8, 32} {
				b.Run(fmt.Sprintf("%dk-passages/%d-clients", n/1000, clients), func(b *testing.B) { benchHybrid(b, w, e, questions, clients) })
			}
		})
	}
}

func benchHybrid(b *testing.B, w *functest.World, e llm.Embedder, questions []string, clients int) {
	f := index.Filter{Tenant: functest.Tenant, Projects: []string{"shop"}}
	raw := func(ctx context.Context, q string) (slower time.Duration, dense, lexical time.Duration) {
		began := time.Now()
		runtime.Gosched()
		var g sync.WaitGroup
		g.Go(func() {
			v, err := e.Embed(ctx, []string{q})
			if err == nil {
				_, err = w.Graph.SearchDense(ctx, w.Space.ID, v[0], f, 50)
			}
			if err != nil {
				b.Error(err)
			}
			dense = time.Since(began)
		})
		if _, err := w.Lexical.Search(ctx, q, f, 50); err != nil {
			b.Error(err)
		}
		lexical = time.Since(began)
		g.Wait()
		return max(dense, lexical), dense, lexical
	}
	ask := func(ctx context.Context, q string) time.Duration {
		began := time.Now()
		runtime.Gosched()
		a, err := w.Query.Ask(ctx, query.Request{Query: q, Projects: []string{"shop"}})
		took := time.Since(began)
		if err != nil || len(a.Degraded) > 0 || len(a.Results) == 0 {
			b.Errorf("%d results, degraded %v, %v", len(a.Results), a.Degraded, err)
		}
		return took
	}
	var mu sync.Mutex
	var whole, slower, dense, lexical []time.Duration
	const each = 4 // questions of a client in a round
	round := func(n int, f func(q string)) {
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				for i := range each {
					f(questions[(c*7+n*each+i)%len(questions)])
				}
			})
		}
		all.Wait()
	}
	both := func(n int) {
		round(n, func(q string) {
			s, d, l := raw(b.Context(), q)
			mu.Lock()
			defer mu.Unlock()
			slower, dense, lexical = append(slower, s), append(dense, d), append(lexical, l)
		})
		round(n, func(q string) {
			took := ask(b.Context(), q)
			mu.Lock()
			defer mu.Unlock()
			whole = append(whole, took)
		})
	}
	both(0) // connections
	whole, slower, dense, lexical = nil, nil, nil, nil
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		both(n)
	}
	at := func(ds []time.Duration, share float64) float64 {
		slices.SortFunc(ds, cmp.Compare)
		return float64(ds[min(int(share*float64(len(ds))), len(ds)-1)].Microseconds()) / 1000
	}
	for name, v := range map[string]float64{
		"p50-ms": at(whole, .5), "p99-ms": at(whole, .99), "raw-p50-ms": at(slower, .5), "raw-p99-ms": at(slower, .99),
		"dense-p50-ms": at(dense, .5), "lexical-p50-ms": at(lexical, .5),
		"p50-ratio": at(whole, .5) / at(slower, .5), "p99-ratio": at(whole, .99) / at(slower, .99),
	} {
		b.ReportMetric(v, name)
	}
}
