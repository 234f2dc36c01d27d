package bleveindex_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestStages(t *testing.T) {
	t.Parallel()
	indextest.RunLexicalStages(t, func(t *testing.T) index.Lexical { return open(t, t.TempDir()) })
}
