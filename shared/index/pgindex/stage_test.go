package pgindex_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestStages(t *testing.T) {
	t.Parallel()
	database(t)
	indextest.RunGraphStages(t, func(t *testing.T) index.Graph { return open(t, fresh(t)) })
}
