package sqliteindex_test

import (
	"path/filepath"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestStages(t *testing.T) {
	t.Parallel()
	indextest.RunGraphStages(t, func(t *testing.T) index.Graph {
		return open(t, filepath.Join(t.TempDir(), "graph.db"))
	})
}
