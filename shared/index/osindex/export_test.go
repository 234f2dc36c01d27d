package osindex

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
)

// Bulks are the bulk requests that write the batch into an empty index, but for its position.
func (ix *Index) Bulks(t testing.TB, b index.Batch) (out [][]byte) {
	t.Helper()
	w, names := &bulk{ix: ix, version: 1}, &bulk{ix: ix, version: 1}
	for i := range b.Nodes {
		n := &b.Nodes[i]
		doc := node{Tenant: n.Tenant, Project: n.Project, Stream: n.Stream}
		for j := range n.Passages {
			doc.Passages = append(doc.Passages, string(n.Passages[j].ID))
			if err := w.gather(ix.passages, "index", string(n.Passages[j].ID), documentOf(n, &n.Passages[j])); err != nil {
				t.Fatal(err)
			}
		}
		if err := names.gather(ix.nodes, "index", string(n.ID), doc); err != nil {
			t.Fatal(err)
		}
	}
	return [][]byte{w.body.Bytes(), names.body.Bytes()}
}
