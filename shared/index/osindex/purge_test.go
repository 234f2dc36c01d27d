package osindex_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestPurge: no segment holds a deleted document when it returns (it says so itself), and
// the index goes on.
func TestPurge(t *testing.T) {
	t.Parallel()
	ix := open(t, fresh(t))
	e := indextest.Evidence(indextest.Project, "q@1", "We decided to keep the ledger.", 1)
	old := indextest.Memory(indextest.Project, "q@1", memory.L1, "The quokkafern ledger is kept.", 1, e.ID)
	now := indextest.Memory(indextest.Project, "q@1", memory.L1, "The ledger is kept for good.", 2, e.ID)
	now.Supersedes = []memory.SHA{old.ID}
	for i, nodes := range [][]index.Node{{e, old}, {now}} {
		if err := ix.Apply(t.Context(), indextest.Batch(int64(i+1), nodes...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ix.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	scope := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
	if hits, err := ix.Search(t.Context(), "quokkafern", scope, 10); err != nil || len(hits) != 0 {
		t.Errorf("%v %v", hits, err)
	}
	if hits, err := ix.Search(t.Context(), "ledger", scope, 10); err != nil || len(hits) != 2 {
		t.Errorf("%v %v", hits, err)
	}
}
