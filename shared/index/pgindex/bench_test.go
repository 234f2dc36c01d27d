package pgindex_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"
	pgxvector "github.com/pgvector/pgvector-go/pgx"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
)

// BenchmarkRebuild fills an empty schema with 30,000 nodes (or as many thousands as
// MNEME_BENCH_PASSAGES says) of one passage and 256 dimensions, the HNSW index behind them, and beside it the same rows by COPY into
// tables without a primary key and CREATE INDEX: ratio is the one's time over the other's.
//
//	MNEME_TEST_PG=URL go test ./shared/index/pgindex -run '^$' -bench Rebuild -benchtime 1x
func BenchmarkRebuild(b *testing.B) {
	const dims, perBatch = 256, 1000
	nodes := 30_000
	if s := os.Getenv("MNEME_BENCH_PASSAGES"); s != "" {
		if _, err := fmt.Sscan(s, &nodes); err != nil {
			b.Fatal(err)
		}
		nodes -= nodes % perBatch
	}
	b.Run(fmt.Sprintf("passages=%d", nodes), func(b *testing.B) {
		database(b)
		r := rand.New(rand.NewPCG(1, 2))
		var batches []index.Batch
		for seq := int64(1); seq <= int64(nodes/perBatch); seq++ {
			batch := index.Batch{Tenant: indextest.Tenant, Project: indextest.Project, Stream: "q@1", Space: "bench", Seq: seq, Vectors: map[memory.SHA][]float32{}}
			for i := range perBatch {
				n := indextest.Evidence(indextest.Project, "q@1", fmt.Sprintf("We decided in meeting %d-%d that the queue holds %d jobs, because more of them starve the workers.", seq, i, r.IntN(1000)), i+1)
				n.Passages = index.PassagesOf(&n)
				v := make([]float32, dims)
				for j := range v {
					v[j] = float32(r.NormFloat64())
				}
				batch.Nodes = append(batch.Nodes, n)
				batch.Vectors[n.Passages[0].ID] = v
			}
			batches = append(batches, batch)
		}
		var ours, raw time.Duration
		for b.Loop() {
			ix := open(b, fresh(b))
			ix.SetExact(int64(nodes - 1))
			begun := time.Now()
			for _, batch := range batches {
				if err := ix.Apply(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			loaded := time.Since(begun)
			if err := ix.Maintain(b.Context(), indextest.Tenant); err != nil {
				b.Fatal(err)
			}
			ours += time.Since(begun)
			b.ReportMetric(float64(nodes)/loaded.Seconds(), "nodes/s")
			raw += rawCopy(b, batches, dims)
		}
		b.ReportMetric(ours.Seconds()/float64(b.N), "s/rebuild")
		b.ReportMetric(ours.Seconds()/raw.Seconds(), "ratio")
	})
}

// rawCopy copies the same rows into bare tables and makes the same indexes.
func rawCopy(b *testing.B, batches []index.Batch, dims int) time.Duration {
	b.Helper()
	c := fresh(b)
	ctx := context.WithoutCancel(b.Context())
	conn, err := pgx.Connect(ctx, c.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := pgxvector.RegisterTypes(ctx, conn); err != nil {
		b.Fatal(err)
	}
	exec := func(sql string) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			b.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`CREATE SCHEMA ` + c.Schema + `; SET search_path = ` + c.Schema + `, public;
		CREATE TABLE node (sha bytea, tenant text, project text, level text, stream text, text text, text_sha bytea, t int, place text);
		CREATE TABLE occurrence (node bytea, t int, object text, quote text, at bigint);
		CREATE TABLE passage (sha bytea, node bytea, n int, start int, stop int);
		CREATE TABLE vec (passage bytea, node bytea, project text, level text, v vector(` + fmt.Sprint(dims) + `))`)
	bytes := func(s memory.SHA) []byte { x, _ := hex.DecodeString(string(s)); return x }
	begun := time.Now()
	for _, batch := range batches {
		var nodes, occurrences, passages, vectors [][]any
		for _, n := range batch.Nodes {
			nodes = append(nodes, []any{bytes(n.ID), n.Tenant, n.Project, string(n.Level), n.Stream, n.Text, bytes(n.TextSHA), n.T, "{}"})
			occurrences = append(occurrences, []any{bytes(n.ID), n.T, n.Occurrences[0].Span.Object, n.Occurrences[0].Quote, n.Place.Time.UnixNano()})
			for _, p := range n.Passages {
				passages = append(passages, []any{bytes(p.ID), bytes(n.ID), p.N, p.Start, p.End})
				vectors = append(vectors, []any{bytes(p.ID), bytes(n.ID), n.Project, string(n.Level), pgvector.NewVector(batch.Vectors[p.ID])})
			}
		}
		for _, t := range []struct {
			name string
			cols []string
			rows [][]any
		}{
			{"node", []string{"sha", "tenant", "project", "level", "stream", "text", "text_sha", "t", "place"}, nodes},
			{"occurrence", []string{"node", "t", "object", "quote", "at"}, occurrences},
			{"passage", []string{"sha", "node", "n", "start", "stop"}, passages},
			{"vec", []string{"passage", "node", "project", "level", "v"}, vectors},
		} {
			if _, err := conn.CopyFrom(ctx, pgx.Identifier{t.name}, t.cols, pgx.CopyFromRows(t.rows)); err != nil {
				b.Fatal(err)
			}
		}
	}
	exec(`CREATE UNIQUE INDEX ON node (sha); CREATE INDEX ON node (tenant, project, stream, level); CREATE UNIQUE INDEX ON occurrence (node, t);
		CREATE UNIQUE INDEX ON passage (sha); CREATE INDEX ON passage (node, n); CREATE UNIQUE INDEX ON vec (passage); CREATE INDEX ON vec (node); CREATE INDEX ON vec (project, level)`)
	exec(`CREATE INDEX ON vec USING hnsw (v vector_cosine_ops)`)
	return time.Since(begun)
}
