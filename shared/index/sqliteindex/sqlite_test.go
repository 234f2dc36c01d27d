package sqliteindex_test

import (
	"path/filepath"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
)

func open(t testing.TB, path string) *sqliteindex.Index {
	t.Helper()
	ix, err := sqliteindex.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

func TestGraph(t *testing.T) {
	t.Parallel()
	indextest.RunGraph(t, func(t *testing.T) index.Graph {
		return open(t, filepath.Join(t.TempDir(), "graph.db"))
	})
}
