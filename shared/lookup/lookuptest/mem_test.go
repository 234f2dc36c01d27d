package lookuptest_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/lookup/lookuptest"
)

func TestMem(t *testing.T) {
	t.Parallel()
	lookuptest.Run(t, func(*testing.T) lookup.Index { return lookuptest.NewMem() })
}
