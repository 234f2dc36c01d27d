package memstore_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/objstore/objstoretest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	objstoretest.Run(t, func(*testing.T) objstore.Driver { return memstore.New() })
}

// TestVersioned: the same with versions kept.
func TestVersioned(t *testing.T) {
	t.Parallel()
	objstoretest.RunLimited(t, objstoretest.Limits{Versioned: true}, func(*testing.T) objstore.Driver {
		return memstore.NewWith(memstore.Hooks{Versioned: true})
	})
}
