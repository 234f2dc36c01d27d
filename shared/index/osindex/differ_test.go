package osindex_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

// TestAsEmbedded: OpenSearch answers as the embedded leg does, over a generated corpus
// and over sde-bench.
func TestAsEmbedded(t *testing.T) {
	t.Parallel()
	cluster(t)
	differ := func(name string, j indextest.Judged) {
		t.Run(name, func(t *testing.T) {
			b, err := bleveindex.Open(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			indextest.DifferLexical(t, j, b, open(t, fresh(t)))
		})
	}
	differ("generated", indextest.Generate(3000, 200, 1))
	if j, ok := indextest.Chats(t); ok {
		differ("sde-bench", j)
	}
}
