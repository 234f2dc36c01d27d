package bleveindex_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestOpenRefusesAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := bleveindex.Open(t.Context(), dir)
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Kind != fault.Corrupt || !strings.Contains(e.Hint, "mem rebuild") {
		t.Errorf("got %v, want corrupt with the cure `mem rebuild`", err)
	}
}

// An index that does not open is made anew, empty, with its positions at 0, so
// that a sweep fills it; the indexes beside it stay.
func TestDamagedIndexStartsAnew(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir string){
		"garbage in the root": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "root.bolt"), []byte(strings.Repeat("garbage ", 4096)))
		},
		"the root cut short": func(t *testing.T, dir string) {
			cut(t, filepath.Join(dir, "root.bolt"))
		},
		"an empty root": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "root.bolt"), nil)
		},
		"segments cut short": func(t *testing.T, dir string) {
			for _, f := range segments(t, dir) {
				cut(t, f)
			}
		},
		"segments gone": func(t *testing.T, dir string) {
			for _, f := range segments(t, dir) {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			ix := open(t, root)
			n := indextest.Evidence(indextest.Project, "q@1", "Logs rotate daily.", 1)
			other := indextest.Evidence("other", "q@1", "Logs rotate daily.", 1)
			for _, b := range []index.Batch{indextest.Batch(1, n), indextest.Batch(1, other)} {
				if err := ix.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			if err := ix.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(root, indextest.Tenant, indextest.Project, "mem"))
			ix = open(t, root)
			applied := func(project string) int64 {
				seq, err := ix.Applied(t.Context(), indextest.Tenant, project, "q@1", indextest.Space)
				if err != nil {
					t.Error(err)
				}
				return seq
			}
			if seq := applied(indextest.Project); seq != 0 {
				t.Errorf("the damaged index says that %d is applied", seq)
			}
			if seq := applied("other"); seq != 1 {
				t.Errorf("the index beside it says that %d is applied, want 1", seq)
			}
			if err := ix.Apply(t.Context(), indextest.Batch(1, n)); err != nil {
				t.Fatal(err)
			}
			hits, err := ix.Search(t.Context(), "logs", scope, 5)
			if err != nil || len(hits) != 1 {
				t.Errorf("after filling again: %v, %v", hits, err)
			}
		})
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.zap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no segments in %s: %v", dir, err)
	}
	return files
}

func TestCrash(t *testing.T) {
	indextest.RunCrash(t, "TestCrash", 4,
		func(dir string) (indextest.Projection, error) { return bleveindex.Open(t.Context(), dir) },
		func(t *testing.T, want, got indextest.Projection) {
			t.Helper()
			for _, q := range []string{"orders archive", "every batch", "17 reports rows"} {
				w, err := want.(*bleveindex.Index).Search(t.Context(), q, scope, 20)
				if err != nil {
					t.Fatal(err)
				}
				g, err := got.(*bleveindex.Index).Search(t.Context(), q, scope, 20)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(w, g); d != "" || len(w) == 0 {
					t.Errorf("%q after the kill (-undisturbed +got):\n%s", q, d)
				}
			}
		})
}
