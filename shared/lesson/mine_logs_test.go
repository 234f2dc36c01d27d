package lesson_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/signature"
)

// TestLogs has each labelled log be what a command printed that failed and
// passed after an edit: the log alone finds that lesson by its detail_sha, in the
// forms in which harnesses hand it over.
func TestLogs(t *testing.T) {
	t.Parallel()
	root := filepath.Join(sharedDir(t), "logs")
	b, err := os.ReadFile(filepath.Join(root, "manifest.json"))
	if err != nil {
		t.Skip(err)
	}
	var rows []struct {
		File string `json:"file"`
		Root *int   `json:"root_line"`
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	logs, found := 0, 0
	for _, row := range rows {
		b, err := os.ReadFile(filepath.Join(root, row.File))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if len(text) > 200<<10 || !utf8.ValidString(text) {
			continue
		}
		sig, err := signature.Extract(signature.FromBytes(b), signature.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []struct{ name, head, tail string }{
			{"claude-code", "Exit code 1\n", ""}, {"pi", "", "\n\nCommand exited with code 1"},
			{"codex", "Chunk ID: 1a2b3c\nWall time: 0.5 seconds\nProcess exited with code 1\nOriginal token count: 9\nOutput:\n", ""},
		} {
			logs++
			object := form.head + text + form.tail + "|ok"
			whole := memory.Piece{Text: object[:len(object)-3], End: int64(len(object) - 3), Enc: memory.RawEncoding}
			ok := memory.Piece{Text: "ok", Start: int64(len(object) - 2), End: int64(len(object)), Enc: memory.RawEncoding}
			run := func(id string) memory.Turn {
				return memory.Turn{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Bash", Target: "./ci.sh all", CallID: id}, Pieces: []memory.Piece{ok}}
			}
			turns := []memory.Turn{
				run("1"),
				{Kind: memory.KindToolResult, Tool: &memory.Tool{CallID: "1", IsError: true}, Pieces: []memory.Piece{whole}, Format: form.name},
				{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Edit", CallID: "2", Edits: []memory.FileEdit{{Kind: memory.EditChange, Path: "a", Added: 1, Text: ok, To: 2}}}},
				run("3"),
				{Kind: memory.KindToolResult, Tool: &memory.Tool{CallID: "3"}, Pieces: []memory.Piece{ok}, Format: form.name},
			}
			got := lesson.Mine(turns, options)
			if !lesson.Usable(&sig) {
				if len(got) != 0 {
					t.Errorf("%s as %s: a lesson, though the log does not tell: %s %.1f", row.File, form.name, got[0].Failure, got[0].Confidence)
				}
				continue
			}
			if len(got) != 1 || got[0].DetailSHA != sig.DetailSHA {
				t.Errorf("%s as %s: %d lessons, want the one of %q", row.File, form.name, len(got), sig.Raw)
				continue
			}
			found++
			checkSpans(t, []byte(object), &got[0])
			line := object[got[0].Spans[0].Start:got[0].Spans[0].End]
			if n := strings.Count(object[len(form.head):got[0].Spans[0].Start], "\n") + 1; n != sig.MatchedLine {
				t.Errorf("%s as %s: the span %q stands in line %d, the root line is %d", row.File, form.name, line, n, sig.MatchedLine)
			}
		}
	}
	t.Logf("%d of %d logs gave their lesson", found, logs)
	if found < logs*9/10 {
		t.Errorf("%d of %d logs gave a lesson", found, logs)
	}
}
