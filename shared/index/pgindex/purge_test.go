package pgindex_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/index/indextest"
)

// TestPurge: what was wiped is counted no more, and the tables are of the size of what
// stands.
func TestPurge(t *testing.T) {
	t.Parallel()
	ix := open(t, fresh(t))
	gone := indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "We keep the quokkafern ledger. "+strings.Repeat("It is long. ", 400), 1))
	if err := ix.Apply(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	holds := func(text string) bool { return strings.Contains(text, "quokkafern") }
	if searched, found, err := ix.Holding(t.Context(), indextest.Tenant, indextest.Project, holds); err != nil || searched != 2 || found != 2 { // its text and its quote
		t.Errorf("before: %d of %d, %v", found, searched, err)
	}
	if err := ix.Wipe(t.Context(), indextest.Tenant, indextest.Project); err != nil {
		t.Fatal(err)
	}
	if err := ix.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if searched, found, err := ix.Holding(t.Context(), indextest.Tenant, indextest.Project, holds); err != nil || searched != 0 || found != 0 {
		t.Errorf("after: %d of %d, %v", found, searched, err)
	}
	if err := ix.Apply(t.Context(), indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "The ledger moved.", 1))); err != nil {
		t.Error(err)
	}
}
