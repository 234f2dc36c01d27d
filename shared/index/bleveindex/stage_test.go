package bleveindex_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestStages(t *testing.T) {
	t.Parallel()
	indextest.RunLexicalStages(t, func(t *testing.T) index.Lexical { return open(t, t.TempDir()) })
}

// TestStageCrash: a switch that is killed anywhere leaves the old folder or the new one.
func TestStageCrash(t *testing.T) {
	indextest.RunStageCrash(t, "TestStageCrash", 12, indextest.Stages{
		Open: func(dir string) (indextest.Projection, error) { return bleveindex.Open(t.Context(), dir) },
		Stage: func(p indextest.Projection) (indextest.StagedProjection, error) {
			return p.(*bleveindex.Index).Stage(t.Context(), indextest.Tenant)
		},
		Holds: func(t *testing.T, p indextest.Projection, text string) bool {
			t.Helper()
			hits, err := p.(*bleveindex.Index).Search(t.Context(), text, scope, 20)
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
			if n, err := p.(*bleveindex.Index).Passages(t.Context(), indextest.Tenant); err != nil || n != 5 {
				t.Errorf("%d passages, %v", n, err)
			}
		},
	})
}

// TestHalfSwitch: between the two renames of a switch the process ends. Open goes on with
// the staged folder, and takes the old one back where there is none.
func TestHalfSwitch(t *testing.T) {
	t.Parallel()
	for _, staged := range []bool{true, false} {
		root := t.TempDir()
		ix, err := bleveindex.Open(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{"The old one keeps orders.", "The new one keeps invoices."}
		apply(t, ix, texts[0])
		next, err := ix.Stage(t.Context(), indextest.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Apply(t.Context(), indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", texts[1], 1))); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(next.Close(), ix.Close(), os.Mkdir(filepath.Join(root, ".old"), 0o700),
			os.Rename(filepath.Join(root, indextest.Tenant), filepath.Join(root, ".old", indextest.Tenant))); err != nil {
			t.Fatal(err)
		}
		want := texts[1]
		if !staged {
			want = texts[0]
			if err := os.RemoveAll(filepath.Join(root, ".stage")); err != nil {
				t.Fatal(err)
			}
		}
		ix = open(t, root)
		if got := search(t, ix, texts, "keeps"); len(got) != 1 || got[0] != want {
			t.Errorf("staged %t: found %q, want %q", staged, got, want)
		}
		if left, err := os.ReadDir(filepath.Join(root, ".old")); err != nil || len(left) > 0 {
			t.Errorf("staged %t: %v is left, %v", staged, left, err)
		}
	}
}
