package compress_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/compress"
)

var update = flag.Bool("update", false, "write testdata/out")

// TestGolden compresses each file of testdata/in to testdata/out. A text that
// comes back as it is has the reason in its place.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "in", "*"))
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code := strings.HasPrefix(filepath.Base(name), "tricky")
			r := law(t, name, string(b), compress.Options{Path: filepath.Base(name), Code: true, Original: !code})
			got := r.Text
			if !r.Changed {
				got = r.Kind.String() + ", as it was: " + r.Reason + "\n"
			}
			out := filepath.Join("testdata", "out", filepath.Base(name))
			if *update {
				if err := os.WriteFile(out, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
