package osindex_test

import (
	"net/http"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestStages(t *testing.T) {
	t.Parallel()
	cluster(t)
	indextest.RunLexicalStages(t, func(t *testing.T) index.Lexical { return open(t, fresh(t)) })
}

// TestReplacedIndices: what a switch replaced and a killed process did not delete goes with
// the next start; staged indices stay for the next rebuild.
func TestReplacedIndices(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	ix := open(t, c)
	next, err := ix.Stage(t.Context(), indextest.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Apply(t.Context(), indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "The archive keeps orders.", 1))); err != nil {
		t.Fatal(err)
	}
	left := c.URLs[0] + "/" + c.Prefix + "-passages-v1-00000000-a"
	if code := request(t, http.MethodPut, left, `{"aliases":{"`+c.Prefix+`-passages-old":{}}}`); code != http.StatusOK {
		t.Fatalf("%d", code)
	}
	open(t, c)
	if code := request(t, http.MethodHead, left, ""); code != http.StatusNotFound {
		t.Errorf("%d: what was replaced stands", code)
	}
	again, err := ix.Stage(t.Context(), indextest.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := again.Applied(t.Context(), indextest.Tenant, indextest.Project, "q@1", indextest.Space); err != nil || n != 1 {
		t.Errorf("staged: applied %d, %v", n, err)
	}
}
