package sqliteindex_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
)

// TestPurge: of what was wiped neither the file nor its journal holds a word, and what
// stands is still searched.
func TestPurge(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "graph.sqlite")
	ix, err := sqliteindex.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	gone := indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "We keep the quokkafern ledger. "+strings.Repeat("It is long. ", 400), 1))
	if err := ix.Apply(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	kept := indextest.Batch(1, indextest.Evidence("other", "q@1", "We keep the other ledger.", 1))
	kept.Project = "other"
	if err := ix.Apply(t.Context(), kept); err != nil {
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
	for _, f := range []string{path, path + "-wal"} {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("quokkafern")) {
			t.Errorf("%s holds what was wiped", filepath.Base(f))
		}
	}
	if searched, found, err := ix.Holding(t.Context(), indextest.Tenant, indextest.Project, holds); err != nil || searched != 0 || found != 0 {
		t.Errorf("after: %d of %d, %v", found, searched, err)
	}
	if searched, _, err := ix.Holding(t.Context(), indextest.Tenant, "other", holds); err != nil || searched != 2 {
		t.Errorf("the other project: %d %v", searched, err)
	}
}
