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

func TestSamples(t *testing.T) {
	t.Parallel()
	root := filepath.Join(sharedDir(t), "samples")
	found := map[string]int{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(file, ".json") || filepath.Base(file) == "golden.json" {
			return err
		}
		rel, _ := filepath.Rel(root, file)
		if os.Getenv("ONLY") != "" && !strings.Contains(rel, os.Getenv("ONLY")) || os.Getenv("NOT") != "" && strings.Contains(rel, os.Getenv("NOT")) {
			return nil
		}
		for _, l := range lesson.Mine(turnsOf(t, file), lesson.MinerOptions{Object: rel, ETag: "e"}) {
			found[rel]++
			t.Logf("%s %s %s %s conf=%.2f\n  cmd: %s\n  fail: %s\n  text: %s\n  n=%d spans=%d", rel, l.Outcome, l.Tool, l.Rule, l.Confidence, l.Command, l.Failure, l.Text, len(l.Changes), len(l.Spans))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
