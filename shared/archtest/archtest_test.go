package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/archtest"
	"github.com/mneme-ai/mneme/shared/event"
)

// TestTree holds the module as it stands against the rules, once as it is built
// by default and once with every build tag of ours.
func TestTree(t *testing.T) {
	t.Parallel()
	watch(t)
	for _, tags := range []string{"", "hf"} {
		t.Run("tags="+tags, func(t *testing.T) {
			t.Parallel()
			pkgs := list(t, tags)
			if len(pkgs) < 10 {
				t.Fatalf("go list gave %d packages; the module has more", len(pkgs))
			}
			for _, line := range archtest.Check(pkgs) {
				t.Error(line)
			}
		})
	}
}

// watch asks for the state of every Go file of the module, so that the go
// command's test cache knows what this result depends on.
func watch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that another process removed meanwhile
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			_, _ = os.Stat(path) // looked at for the cache alone
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list runs go list over the module. It goes by import path, so it finds the
// module from any of its folders.
func list(t *testing.T, tags string) []archtest.Package {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-tags", tags, "-json=ImportPath,Imports,TestImports,XTestImports", archtest.Module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []archtest.Package
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p archtest.Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// TestMemoryStandsAlone asks go list for everything that shared/memory needs,
// however far down.
func TestMemoryStandsAlone(t *testing.T) {
	t.Parallel()
	const self = archtest.Module + "/shared/memory"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", self).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(self, strings.TrimSpace(string(out))); diff != "" {
		t.Errorf("shared/memory needs more than the standard library:\n%s", diff)
	}
}

// TestCheck shows each rule a tree that breaks it.
func TestCheck(t *testing.T) {
	t.Parallel()
	const m = archtest.Module + "/"
	tests := map[string]struct {
		pkg  archtest.Package
		want []string
	}{
		"standard library": {archtest.Package{ImportPath: m + "shared/memory", Imports: []string{"crypto/sha256"}}, nil},
		"lower rank":       {archtest.Package{ImportPath: m + "shared/chunk", Imports: []string{m + "shared/token", m + "shared/memory"}}, nil},
		"listed sibling":   {archtest.Package{ImportPath: m + "shared/gru/extractpolicy", Imports: []string{m + "shared/gru"}}, nil},
		"owner":            {archtest.Package{ImportPath: m + "shared/objstore/s3store", Imports: []string{"github.com/minio/minio-go/v7/pkg/credentials"}}, nil},
		"folder of owners": {archtest.Package{ImportPath: m + "functions/gate", Imports: []string{"github.com/cloudevents/sdk-go/v2/event"}}, nil},
		"tests go anywhere": {archtest.Package{
			ImportPath: m + "shared/index", XTestImports: []string{m + "shared/index/sqliteindex", "github.com/google/go-cmp/cmp", m + "shared/index/indextest"},
		}, nil},
		"a suite is test code": {archtest.Package{
			ImportPath: m + "shared/index/indextest", Imports: []string{m + "shared/index", "github.com/google/go-cmp/cmp"},
		}, nil},
		"unlisted package": {
			archtest.Package{ImportPath: m + "shared/util"},
			[]string{"shared/util has no rank: give it one in the table Ranks of shared/archtest"},
		},
		"higher rank": {
			archtest.Package{ImportPath: m + "shared/eventlog", Imports: []string{m + "shared/serve"}},
			[]string{"shared/eventlog (rank 4) imports shared/serve (rank 5): only lower ranks, or a pair listed in Siblings"},
		},
		"unlisted sibling": {
			archtest.Package{ImportPath: m + "shared/gru", Imports: []string{m + "shared/gru/extractpolicy"}},
			[]string{"shared/gru (rank 2) imports shared/gru/extractpolicy (rank 2): only lower ranks, or a pair listed in Siblings"},
		},
		"memory with a friend": {
			archtest.Package{ImportPath: m + "shared/memory", Imports: []string{m + "shared/fault"}},
			[]string{"shared/memory imports shared/fault: it imports the standard library only"},
		},
		"memory with a module": {
			archtest.Package{ImportPath: m + "shared/memory", Imports: []string{"github.com/gowebpki/jcs"}},
			[]string{"shared/memory imports github.com/gowebpki/jcs: github.com/gowebpki/jcs belongs to shared/eventlog, shared/index"},
		},
		"function to function": {
			archtest.Package{ImportPath: m + "functions/gate", Imports: []string{m + "functions/learn"}},
			[]string{"functions/gate imports functions/learn: functions meet through events and the log"},
		},
		"function to adapter": {
			archtest.Package{ImportPath: m + "functions/query", Imports: []string{m + "shared/index/sqliteindex"}},
			[]string{"functions/query imports the adapter shared/index/sqliteindex: take the port, cmd/internal/wire hands in the adapter"},
		},
		"test package in code": {
			archtest.Package{ImportPath: m + "cmd/mem", Imports: []string{m + "shared/index/indextest"}},
			[]string{"cmd/mem imports shared/index/indextest outside its tests: a …test package is for _test.go files"},
		},
		"module of another": {
			archtest.Package{ImportPath: m + "cmd/mem", Imports: []string{"github.com/minio/minio-go/v7"}},
			[]string{"cmd/mem imports github.com/minio/minio-go/v7: github.com/minio/minio-go/v7 belongs to shared/objstore/s3store, docs/upload"},
		},
		"module for tests in code": {
			archtest.Package{ImportPath: m + "shared/rank", Imports: []string{"github.com/google/go-cmp/cmp"}},
			[]string{"shared/rank imports github.com/google/go-cmp/cmp: github.com/google/go-cmp belongs to tests"},
		},
		"module of another in a test": {
			archtest.Package{ImportPath: m + "shared/rank", TestImports: []string{"modernc.org/sqlite"}},
			[]string{"shared/rank imports modernc.org/sqlite: modernc.org/sqlite belongs to shared/index/sqliteindex, shared/lookup/sqlitelookup"},
		},
		"module without an owner": {
			archtest.Package{ImportPath: m + "shared/rank", Imports: []string{"example.com/new"}},
			[]string{"shared/rank imports example.com/new, which has no owner: give its module one in the table Modules of shared/archtest, with the reason in docs/ARCHITECTURE.md"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, archtest.Check([]archtest.Package{tc.pkg})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBars shows a tree in which a text that was shortened could be indexed.
func TestBars(t *testing.T) {
	t.Parallel()
	const m = archtest.Module + "/"
	tree := func(edges ...string) (out []archtest.Package) {
		for i := 0; i < len(edges); i += 2 {
			out = append(out, archtest.Package{ImportPath: m + edges[i], Imports: []string{m + edges[i+1]}})
		}
		return out
	}
	tests := map[string]struct {
		pkgs []archtest.Package
		want []string
	}{
		"query may":  {tree("functions/query", "shared/originals", "shared/originals", "shared/compress"), nil},
		"embed":      {tree("functions/embed", "shared/compress"), []string{"functions/embed needs shared/compress (by shared/compress): indexes never see compressed text"}},
		"an index":   {tree("shared/index/sqliteindex", "shared/compress"), []string{"shared/index/sqliteindex needs shared/compress (by shared/compress): indexes never see compressed text"}},
		"by another": {tree("functions/project", "shared/report", "shared/report", "shared/compress"), []string{"functions/project needs shared/compress (by shared/report, shared/compress): indexes never see compressed text"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, archtest.Check(tc.pkgs)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTables holds the tables against one another.
func TestTables(t *testing.T) {
	t.Parallel()
	for from, tos := range archtest.Siblings {
		for _, to := range tos {
			if archtest.Ranks[from] != archtest.Ranks[to] || archtest.Ranks[to] == 0 {
				t.Errorf("Siblings: %s (rank %d) and %s (rank %d) are no siblings", from, archtest.Ranks[from], to, archtest.Ranks[to])
			}
			for _, back := range archtest.Siblings[to] {
				if back == from {
					t.Errorf("Siblings: %s and %s import each other", from, to)
				}
			}
		}
	}
	for a := range archtest.Adapters {
		if _, ok := archtest.Ranks[a]; !ok {
			t.Errorf("Adapters: %s has no rank", a)
		}
	}
}

// TestArchitecturePage holds docs/ARCHITECTURE.md against the tables and the
// code: its tree, its events and its dependencies are those that stand.
func TestArchitecturePage(t *testing.T) {
	t.Parallel()
	watch(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	pkgs := list(t, "hf")
	for _, p := range pkgs {
		rel := strings.TrimPrefix(p.ImportPath, archtest.Module+"/")
		if row := fmt.Sprintf("| %d | %s |", archtest.Ranks[rel], rel); !bytes.Contains(page, []byte(row)) {
			t.Errorf("the tree has no row that begins %q", row)
		}
	}
	for _, typ := range event.Types() {
		if !bytes.Contains(page, []byte("`"+string(typ)+"`")) {
			t.Errorf("the events have no row for %s", typ)
		}
	}
	for _, m := range archtest.Modules {
		name := strings.TrimPrefix(m.Path, "github.com/")
		if parts := strings.Split(m.Path, "/"); parts[0] == "golang.org" {
			name = parts[2] // they share a row
		}
		if used(pkgs, m.Path) && !bytes.Contains(page, []byte(name)) {
			t.Errorf("the dependencies have no row for %s", m.Path)
		}
	}
}

// used reports whether a package of the module imports the third-party module.
func used(pkgs []archtest.Package, path string) bool {
	for _, p := range pkgs {
		for _, imp := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if imp == path || strings.HasPrefix(imp, path+"/") {
				return true
			}
		}
	}
	return false
}
