package catalog_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// TestRefusalIsCleared: a refusal stands until it is reopened, whoever sets it.
func TestRefusalIsCleared(t *testing.T) {
	t.Parallel()
	c, _ := open(t, memstore.New())
	check := func(want catalog.Refusal, refused bool) {
		t.Helper()
		if got, is, err := c.Refused(t.Context(), "shop", "adhoc-1"); err != nil || got != want || is != refused {
			t.Errorf("%+v %v %v, want %+v", got, is, err, want)
		}
	}
	check(catalog.Refusal{}, false)
	if was, err := c.Reopen(t.Context(), "shop", "adhoc-1"); was || err != nil {
		t.Errorf("%v %v", was, err)
	}
	for _, r := range []catalog.Refusal{{Reason: "a", Hint: "b"}, {Reason: "a", Hint: "b"}, {Reason: "c"}} {
		if err := c.Refuse(t.Context(), "shop", "adhoc-1", r); err != nil {
			t.Fatal(err)
		}
		check(r, true)
	}
	for _, want := range []bool{true, false} {
		if was, err := c.Reopen(t.Context(), "shop", "adhoc-1"); was != want || err != nil {
			t.Errorf("%v %v", was, err)
		}
		check(catalog.Refusal{}, false)
	}
}
