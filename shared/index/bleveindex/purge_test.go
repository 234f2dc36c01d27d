package bleveindex_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestPurge: a passage that was replaced is in no segment any more, those that stand are
// found, and the index goes on.
func TestPurge(t *testing.T) {
	t.Parallel()
	var ix *bleveindex.Index
	e := indextest.Evidence(indextest.Project, "q@1", "We decided to keep the ledger.", 1)
	old := indextest.Memory(indextest.Project, "q@1", memory.L1, "The quokkafern ledger is kept.", 1, e.ID)
	now := indextest.Memory(indextest.Project, "q@1", memory.L1, "The ledger is kept for good.", 2, e.ID)
	now.Supersedes = []memory.SHA{old.ID}
	// A dictionary is an automaton: no file holds a word as it stands.
	holding := func() int {
		n := 0
		for _, term := range ix.Terms(t, indextest.Tenant, indextest.Project) {
			if term == "quokkafern" {
				n++
			}
		}
		return n
	}
	for range 20 { // segments in memory may be merged, and it is gone, before anybody asks
		ix = open(t, t.TempDir())
		if err := ix.Apply(t.Context(), indextest.Batch(1, e, old)); err != nil {
			t.Fatal(err)
		}
		if err := ix.Apply(t.Context(), indextest.Batch(2, now)); err != nil {
			t.Fatal(err)
		}
		if holding() > 0 {
			break
		}
	}
	if holding() == 0 { // under the race detector it always is: what follows holds all the same
		t.Log("merged before it was asked: the purge has nothing to do")
	}
	if err := ix.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := holding(); n != 0 {
		t.Errorf("%d segments hold what was replaced", n)
	}
	if hits, err := ix.Search(t.Context(), "ledger", scope, 10); err != nil || len(hits) != 2 {
		t.Errorf("%v %v", hits, err)
	}
	if err := ix.Apply(t.Context(), indextest.Batch(3, indextest.Evidence(indextest.Project, "q@1", "The ledger moved.", 3))); err != nil {
		t.Fatal(err)
	}
	if err := ix.Purge(t.Context()); err != nil { // nothing to do
		t.Fatal(err)
	}
	if hits, err := ix.Search(t.Context(), "ledger", scope, 10); err != nil || len(hits) != 3 {
		t.Errorf("%v %v", hits, err)
	}
}
