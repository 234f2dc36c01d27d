package sqliteindex_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestUsing: every call holds the file, which a switch to another one replaces: each
// exported method of Index says so.
func TestUsing(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil || !m.Name.IsExported() || m.Name.Name == "Name" || m.Name.Name == "Stage" {
				continue
			}
			if p, ok := m.Recv.List[0].Type.(*ast.StarExpr); !ok || p.X.(*ast.Ident).Name != "Index" {
				continue
			}
			seen++
			holds := false
			ast.Inspect(m.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.SelectorExpr); ok && c.Sel.Name == "using" {
					holds = true
				}
				return true
			})
			if !holds {
				t.Errorf("%s: %s does not call ix.using", name, m.Name.Name)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d methods seen", seen)
	}
}
