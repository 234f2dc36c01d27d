package compress_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/compress"
)

// TestWrittenIsNoLog: programs and documents, full of words of failure, are none
// without their names either. The project's own are looked at.
func TestWrittenIsNoLog(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, root := range []string{"..", "../../docs", "../../functions"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			switch filepath.Ext(path) {
			case ".go", ".md", ".sql", ".py":
			default:
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if looked++; compress.Detect(string(b), "") == compress.Log {
				t.Errorf("%s is taken for a log", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looked < 100 {
		t.Errorf("%d files", looked)
	}
}

// TestListsStay: who searched asked for each of the lines.
func TestListsStay(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"grep -n": times(200, func(i int) string {
			return sp("src/%s/%s.go:%d:\tif err := %s(%s); err != nil {\n", name(i), name(i+3), 7*i, name(i*3+1), name(i+7))
		}),
		"grep": times(200, func(i int) string {
			return sp("src/%s_%d.c:12: %s error %s in %s of %s\n", name(i), i, name(i/20), name(i/7), name(i*3), name(i/40+i))
		}),
		"CSV":            "id,job,state\n" + times(200, func(i int) string { return sp("%d,%s,%s\n", i, name(i), at(i%9, 1, "failed", "done")) }),
		"tabs":           times(200, func(i int) string { return sp("%d\t%s\trefused, failed\n", i, name(i)) }),
		"names of files": times(200, func(i int) string { return sp("/var/lib/shop/%s/error-%d.log\n", name(i), i) }),
		"Python": "import os\n\n\n" + times(30, func(i int) string {
			return sp("def f%d(x):\n    if x is None:\n        raise ValueError(\"error: no %s\")\n    try:\n        return g(x)\n    except KeyError:\n        log.error(\"failed\")\n\n\n", i, name(i))
		}),
		"Markdown": times(12, func(i int) string {
			return sp("## Error %d: `E%d`\n\nThis error is raised when the %s cannot be read.\n\n```\nError: cannot read\n```\n\n", i, i, name(i))
		}),
		"HTML": "<!DOCTYPE html>\n" + times(100, func(i int) string { return sp("<tr><td>error %d</td></tr>\n", i) }),
		"a manual": times(12, func(i int) string {
			return sp("Errors of kind %s\n%s\n\nThe fatal error is printed when the program failed to read its own settings.\n\n", name(i), strings.Repeat("-", len("Errors of kind "+name(i))))
		}),
	} {
		if k := compress.Detect(text, ""); k == compress.Log {
			t.Errorf("%s is taken for a log", name)
		}
		if r := compress.Compress(text, compress.Options{}); r.Changed && r.Kind == compress.Log {
			t.Errorf("%s is shortened:\n%s", name, head(r.Text))
		}
	}
}
