package indextest_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestReferenceStages(t *testing.T) {
	t.Parallel()
	indextest.RunGraphStages(t, func(*testing.T) index.Graph { return indextest.NewGraph() })
	indextest.RunLexicalStages(t, func(*testing.T) index.Lexical { return indextest.NewLexical() })
}
