package sqliteindex_test

import (
	"path/filepath"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
)

func TestStages(t *testing.T) {
	t.Parallel()
	indextest.RunGraphStages(t, func(t *testing.T) index.Graph {
		return open(t, filepath.Join(t.TempDir(), "graph.db"))
	})
}

// TestStageCrash: a switch that is killed anywhere leaves the old file or the new one.
func TestStageCrash(t *testing.T) {
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
	indextest.RunStageCrash(t, "TestStageCrash", 12, indextest.Stages{
		Open: func(dir string) (indextest.Projection, error) {
			return sqliteindex.Open(t.Context(), filepath.Join(dir, "graph.sqlite"))
		},
		Stage: func(p indextest.Projection) (indextest.StagedProjection, error) {
			return p.(*sqliteindex.Index).Stage(t.Context(), indextest.Tenant)
		},
		Holds: func(t *testing.T, p indextest.Projection, text string) bool {
			t.Helper()
			hits, err := p.(*sqliteindex.Index).SearchDense(t.Context(), indextest.Space, indextest.Embed(text), f, 20)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if h.Node == indextest.Evidence(indextest.Project, "q@1", text, 1).ID {
					return true
				}
			}
			return false
		},
		Sound: func(t *testing.T, p indextest.Projection) {
			t.Helper()
			problems, err := p.(*sqliteindex.Index).Check(t.Context(), indextest.Tenant)
			if err != nil || len(problems) > 0 {
				t.Errorf("%q, %v", problems, err)
			}
			if _, c, err := p.(*sqliteindex.Index).Hash(t.Context(), indextest.Tenant); err != nil || c.Nodes != 5 {
				t.Errorf("%+v, %v", c, err)
			}
		},
	})
}
