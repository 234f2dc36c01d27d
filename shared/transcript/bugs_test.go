package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/transcript"
)

// What broke other readers of these three formats (formats.md section 8, by
// row) and is not told by a test of its own.
func TestBugsOfOthers(t *testing.T) {
	t.Parallel()
	gmHead := fmt.Sprintf(gmHeader, "h")
	said := map[string]func(string) string{ // text is the inside of a JSON string
		"codex": func(text string) string {
			return cxMeta(0, parentThread, "") + cx(1, "response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"`+text+`"}]}`)
		},
		"gemini": func(text string) string { return gmHead + gm("a", "user", `,"content":"`+text+`"`) },
		"cursor": func(text string) string {
			return `{"role":"user","message":{"content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
		},
	}
	after := map[string]string{"codex": cxSay(2, "user", "after"), "gemini": gm("z", "user", `,"content":"after"`), "cursor": cu("user", "after")}
	long := strings.Repeat("a long line ", 15<<20/12)
	for format, line := range said {
		for _, tt := range []struct {
			name, data string
			want       []string
			bad        int
		}{
			{"1, 2: line of 15 MB", line(long), []string{"user text: " + long, "user text: after"}, 0},
			{"3: unknown record", line("x") + `{"timestamp":"2026-03-01T10:00:00Z","type":"atis-latch","payload":{}}` + "\n", []string{"user text: x", "user text: after"}, 0},
			{"4: bad line", line("x") + "{broken\n\x00\x00\n", []string{"user text: x", "user text: after"}, 1},
			{"20: U+2028 and U+0085", line("a\u2028b\u0085c"), []string{"user text: a\u2028b\u0085c", "user text: after"}, 0},
			{"21: lone surrogate", line(`a \ud83d b`), []string{"user text: a \ufffd b", "user text: after"}, 0},
			{"25: raw newline in a string", line("one\ntwo"), []string{"user text: after"}, 2},
		} {
			t.Run(format+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				data := tt.data + after[format]
				opt := transcript.Options{Object: "x.jsonl"}
				turns, r := read(t, data, opt)
				if r.Format() != format {
					t.Fatalf("format %s, want %s", r.Format(), format)
				}
				checkPieces(t, data, turns)
				if d := cmp.Diff(tt.want, outline(turns)); d != "" {
					t.Errorf("-want +got:\n%.2000s", d)
				}
				if got := r.Stats().Bad; got != tt.bad {
					t.Errorf("%d bad lines, want %d", got, tt.bad)
				}
			})
		}
	}
	t.Run("15: private items of a provider", func(t *testing.T) {
		t.Parallel()
		data := said["codex"]("x") + cx(1, "response_item", `{"type":"acme_state","blob":"s3cret"}`) +
			cx(1, "response_item", `{"type":"reasoning","encrypted_content":"s3cret","summary":[{"type":"summary_text","text":"s3cret"}]}`) +
			cx(1, "response_item", `{"type":"compaction","encrypted_content":"s3cret"}`)
		turns, r := read(t, data, transcript.Options{Object: "x.jsonl"})
		if d := cmp.Diff([]string{"user text: x"}, outline(turns)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if s := r.Stats(); s.Unknown["response_item/acme_state"] != 1 || s.Dropped["encrypted_content"] != 2 || s.Dropped["reasoning"] != 1 {
			t.Errorf("unknown %v, dropped %v", s.Unknown, s.Dropped)
		}
	})
}
