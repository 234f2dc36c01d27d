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
