package indextest_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestGraph(t *testing.T) {
	t.Parallel()
	indextest.RunGraph(t, func(t *testing.T) index.Graph { return indextest.NewGraph() })
}

func TestLexical(t *testing.T) {
	t.Parallel()
	indextest.RunLexical(t, func(t *testing.T) index.Lexical { return indextest.NewLexical() })
}
