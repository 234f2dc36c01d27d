package lesson_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// turnsOf reads a transcript whole.
func turnsOf(t testing.TB, file string) []memory.Turn {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rd, err := transcript.Open(f, transcript.Options{Object: filepath.Base(file)})
	if err != nil {
		t.Fatal(err)
	}
	var out []memory.Turn
	for turn, err := range rd.Turns() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, turn)
	}
	return out
}

func sharedDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("MNEME_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "samples")); err != nil {
		t.Skipf("no samples: %v (MNEME_SHARED names their folder)", err)
	}
	return dir
}

// TestSamples mines real sessions. What is found in them is printed with -v, to
// be read; here it is held against the bytes.
func TestSamples(t *testing.T) {
	t.Parallel()
	root := filepath.Join(sharedDir(t), "samples")
	total, files := 0, 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(file, ".json") || filepath.Base(file) == "golden.json" {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		object, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files++
		for _, l := range lesson.Mine(turnsOf(t, file), lesson.MinerOptions{Object: rel, ETag: "e"}) {
			total++
			t.Logf("%s: %s %s %.2f `%s`\n  failure: %s\n  %s", rel, l.Outcome, l.Rule, l.Confidence, l.Command, l.Failure, l.Text)
			if err := l.Check(); err != nil {
				t.Errorf("%s: %q: %v", rel, l.Failure, err)
			}
			checkSpans(t, object, &l)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// By hand 18 were counted; of one the signature does not tell the root line.
	if total < 15 || files < 30 {
		t.Errorf("%d lessons in %d files", total, files)
	}
}
