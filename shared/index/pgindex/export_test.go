package pgindex

import (
	"context"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
)

// SetExact changes up to how many passages a scope is scanned exactly.
func (ix *Index) SetExact(n int64) { ix.exact = n }

// Walk is the walk over HNSW alone, without the exact scan where it gives up.
func (ix *Index) WalkOnly(ctx context.Context, t *testing.T, name string, vec []float32, f index.Filter, k int, iterate string) []index.Hit {
	t.Helper()
	tx, err := ix.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	s, err := findSpace(ctx, tx, f.Tenant, name)
	if err != nil {
		t.Fatal(err)
	}
	q := &search{s: s, vec: s.value(index.Unit(vec)), f: &f, k: k, iterative: iterate, giveUp: true}
	hits, err := q.walk(ctx, tx)
	if err != nil {
		t.Fatal(err)
	}
	var is string
	if err := tx.QueryRow(ctx, `SHOW hnsw.iterative_scan`).Scan(&is); err != nil || is != iterate {
		t.Fatalf("hnsw.iterative_scan is %q, %v", is, err)
	}
	return hits
}
