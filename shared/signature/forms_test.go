package signature_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// hand are the hand-written logs of testdata/*.txtar.
func hand(t *testing.T) []txtar.File {
	t.Helper()
	var out []txtar.File
	for _, name := range []string{"forms.txtar", "more.txtar"} {
		ar, err := txtar.ParseFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ar.Files...)
	}
	return out
}

// TestHandWritten runs the hand-written logs.
func TestHandWritten(t *testing.T) {
	t.Parallel()
	for _, f := range hand(t) {
		tool, _, _ := strings.Cut(f.Name, "/")
		want := 0
		var b strings.Builder
		n := 0
		for l := range strings.SplitSeq(string(f.Data), "\n") {
			n++
			if s, ok := strings.CutPrefix(l, ">>> "); ok {
				want, l = n, s
			}
			b.WriteString(l + "\n")
		}
		log := strings.ReplaceAll(b.String(), ":step_script\n", ":step_script\r\x1b[0K\n")
		r := extract(t, tool, log)
		if want == 0 {
			want = 1
		}
		if r.MatchedLine != want {
			t.Errorf("%s: line %d by %s (%.2f) %q, want %d", f.Name, r.MatchedLine, r.Rule, r.Confidence, r.Raw, want)
		}
	}
}
