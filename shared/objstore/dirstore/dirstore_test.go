package dirstore_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
	"github.com/mneme-ai/mneme/shared/objstore/objstoretest"
)

func open(t testing.TB, root string) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	objstoretest.Run(t, func(t *testing.T) objstore.Driver { return open(t, t.TempDir()) })
}
