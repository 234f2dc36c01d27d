package skill

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff is the unified difference between two texts; "" where they are equal.
func Diff(oldName, old, newName, new string) string {
	d := diff.Diff(oldName, []byte(old), newName, []byte(new))
	// The first line, "diff old new", is the library's own.
	if bytes.HasPrefix(d, []byte("diff ")) {
		_, d, _ = bytes.Cut(d, []byte("\n"))
	}
	return string(d)
}
