package sqliteindex

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// BenchmarkSuccession reads the rows of 30 hits of 20,000 nodes, every tenth of which
// replaces another: kept rows, and rows from the file.
func BenchmarkSuccession(b *testing.B) {
	const size, hits = 20_000, 30
	ix, err := Open(b.Context(), filepath.Join(b.TempDir(), "index.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	r := rand.New(rand.NewPCG(5, 5))
	var ids []memory.SHA
	for part := range size / 1000 {
		batch := index.Batch{Tenant: "t", Project: "p", Stream: "decisions@00000000", Seq: int64(part + 1), Space: "s"}
		for i := range 1000 {
			n := part*1000 + i
			text := fmt.Sprintf("We decided to cap the number %d of retries at %d, as %d of the clients wait for %d seconds.", n, n%7, n*31, n*17)
			sum := memory.SumString(text)
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n) * time.Minute)
			node := index.Node{
				ID: memory.NodeID("t", "p", memory.L0, batch.Stream, sum), Level: memory.L0, Tenant: "t", Project: "p", Stream: batch.Stream,
				QueryID: "decisions", Text: text, TextSHA: sum, T: n + 1, Role: memory.RoleUser, Trust: memory.TrustUser, SourceTime: &at,
				Place: memory.Place{Time: at, Admit: int64(n + 1)},
			}
			node.Occurrences = []index.Occurrence{{T: n + 1, Place: node.Place, Quote: text, Role: node.Role, Span: memory.Span{
				Object: fmt.Sprintf("transcripts/p/%d.jsonl", n/20), ETag: "e", Start: 1, End: int64(1 + len(text)), Codec: memory.CodecRaw,
				SHA256: sum, Chunk: memory.SumString(fmt.Sprint(n / 20)), ChunkStart: 0, ChunkEnd: len(text),
			}}}
			if n%10 == 9 {
				node.Supersedes = []memory.SHA{ids[r.IntN(len(ids))]}
			}
			ids = append(ids, node.ID)
			batch.Nodes = append(batch.Nodes, node)
		}
		if err := ix.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	sets := make([][]memory.SHA, 64)
	for i := range sets {
		for range hits {
			sets[i] = append(sets[i], ids[r.IntN(size)])
		}
	}
	for _, kept := range []bool{true, false} {
		b.Run(fmt.Sprintf("20k-nodes/%d-hits/kept=%v", hits, kept), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !kept {
					ix.cache.changed()
				}
				nodes, err := ix.Succession(b.Context(), "t", sets[i%len(sets)], 8)
				if err != nil || len(nodes) < hits-3 {
					b.Fatal(len(nodes), err)
				}
			}
		})
	}
}
