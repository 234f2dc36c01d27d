package pgindex_test

import (
	"path/filepath"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
)

// TestAsEmbedded: PostgreSQL, scanning and walking HNSW, and SQLite hold the same and
// find what an exact scan finds.
func TestAsEmbedded(t *testing.T) {
	t.Parallel()
	database(t)
	lite, err := sqliteindex.Open(t.Context(), filepath.Join(t.TempDir(), "graph.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer lite.Close()
	scan, walk := open(t, fresh(t)), open(t, fresh(t))
	walk.SetExact(100)
	indextest.DifferGraph(t, indextest.Generate(3000, 200, 1), map[string]index.Graph{"sqlite": lite, "pg scan": scan, "pg HNSW": walk}, func(name string) {
		if name == "pg HNSW" {
			if err := walk.Maintain(t.Context(), indextest.Tenant); err != nil {
				t.Fatal(err)
			}
		}
	})
}
