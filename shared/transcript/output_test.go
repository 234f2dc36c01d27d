package transcript_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// A tool's output in a file of its own is one result of the tool, whatever
// stands in it: no person speaks there.
func TestSpilledOutput(t *testing.T) {
	t.Parallel()
	claude := userLine("u", `"We decided to cap retries at 5."`) + "\n" + assistantLine("a", "m", `{"type":"text","text":"ok"}`)
	for _, tt := range []struct {
		name, object, data string
		want               []string
	}{
		{"text", "s1/tool-results/b1.txt", "one\ntwo\n\nthree\n", []string{"tool tool_result : one\ntwo\n\nthree"}},
		{"Windows line ends and a BOM", "s1/tool-results/b1.txt", "\ufeffone\r\ntwo\r\n", []string{"tool tool_result : one\r\ntwo"}},
		{"a transcript that was printed", "s1/tool-results/b1.txt", claude, []string{"tool tool_result : " + claude}},
		{"a conversation that was printed", "s1/tool-results/b1.txt", "user:\nhello\n\nassistant:\nhi", []string{"tool tool_result : user:\nhello\n\nassistant:\nhi"}},
		{"a note that was printed", "s1/tool-results/b1.txt", "---\ndate: 2030-01-01\n---\n# Rule\n\nUse tabs.", []string{"tool tool_result : ---\ndate: 2030-01-01\n---\n# Rule\n\nUse tabs."}},
		{"blocks", "s1/tool-results/b1.json", `[{"type":"text","text":"one\n\"two\""},{"type":"image","source":{}},` + "\n" + ` {"text":"three","type":"text"}]` + "\n", []string{"tool tool_result : one\n\"two\"\nthree"}},
		{"JSON that is no list of blocks", "s1/tool-results/b1.json", `[{"role":"user","content":"use tabs"}]`, []string{`tool tool_result : [{"role":"user","content":"use tabs"}]`}},
		{"JSON that is cut off", "s1/tool-results/b1.json", `[{"type":"text","text":"one"},`, []string{`tool tool_result : [{"type":"text","text":"one"},`}},
		{"an array in a text", "s1/tool-results/b1.txt", `[{"type":"text","text":"one"}]`, []string{`tool tool_result : [{"type":"text","text":"one"}]`}},
		{"what the harness put in", "s1/tool-results/b1.txt", "one\n<system-reminder>\nbe good\n</system-reminder>\ntwo", []string{"tool tool_result : one\ntwo"}},
		{"nothing", "s1/tool-results/b1.txt", " \n\n", nil},
		{"no block of text", "s1/tool-results/b1.json", `[{"type":"image","source":{}}]`, nil},
		{"bytes that are no text", "s1/tool-results/b1.txt", "\x00\x01\x02\x03", nil},
		{"no session", "tool-results/b1.txt", "one", []string{"note text: one"}},
		{"another folder", "s1/results/b1.txt", "one", []string{"note text: one"}},
	} {
		turns, _ := read(t, tt.data, transcript.Options{Object: tt.object})
		if d := cmp.Diff(tt.want, outline(turns)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		checkReading(t, tt.data, transcript.Options{Object: tt.object})
		for _, turn := range turns {
			if turn.Role == memory.RoleTool && (turn.Trust != memory.TrustTool || turn.Session != "s1" || turn.ID != "s1/tool-results/b1" || turn.TimeQuality != memory.TimeNone || turn.Derived) {
				t.Errorf("%s: %+v", tt.name, turn)
			}
		}
	}
}

// A copy elsewhere, compressed or not, is the same turn.
func TestSpilledOutputCopies(t *testing.T) {
	t.Parallel()
	const data = "one\ntwo\n"
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want, _ := read(t, data, transcript.Options{Object: "s1/tool-results/toolu_01.txt"})
	for object, body := range map[string]string{
		"shop/-w/s1/tool-results/toolu_01.txt": data, "/home/ada/.claude/projects/-w/s1/tool-results/toolu_01.txt": data,
		"s1/tool-results/toolu_01.txt.gz": z.String(),
	} {
		if got, _ := read(t, body, transcript.Options{Object: object}); cmp.Diff(want, got) != "" {
			t.Errorf("%s gives %+v", object, got)
		}
	}
	if got, r := read(t, data, transcript.Options{Object: "s1/tool-results/toolu_01.txt", From: 4}); len(got) != 0 {
		t.Errorf("read on from the middle: %d turns, %+v", len(got), r.Stats())
	}
	if got, _ := read(t, data, transcript.Options{Object: "s1/tool-results/mcp-mneme-recall-17.txt"}); len(got) != 1 || !got[0].Derived {
		t.Errorf("what Mneme recalled is not marked: %+v", got)
	}
}

// Of an output over the cap its ends are kept, on whole lines and with their
// own bytes.
func TestSpilledOutputOverTheCap(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for _, n := range []int{8, 40, 60, 1000} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %04d of the output\n", i)
			if i == n/3 {
				b.WriteString(strings.Repeat("x", limit+1) + "\n") // skipped by itself
			}
		}
		data := b.String()
		turns := checkReading(t, data, transcript.Options{Object: "s/tool-results/b.txt", MaxLineBytes: limit})
		if len(turns) != 1 {
			t.Fatalf("%d lines: %d turns", n, len(turns))
		}
		text := turns[0].Text()
		if first, last := "line 0000 of the output\n", fmt.Sprintf("\nline %04d of the output", n-1); !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) || len(text) > limit+2 || strings.Contains(text, "xx") {
			t.Errorf("%d lines: kept %d bytes, %.40q to %.40q", n, len(text), text, text[max(0, len(text)-40):])
		}
		if len(data)-limit-2 <= limit/2 && strings.Count(text, "\n") != n-1 {
			t.Errorf("%d lines: %d kept", n, strings.Count(text, "\n")+1)
		}
		for line := range strings.Lines(text) {
			if len(strings.TrimSuffix(line, "\n")) != len("line 0000 of the output") {
				t.Errorf("%d lines: a cut line %q", n, line)
			}
		}
	}
}

func TestSpilledTo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`<persisted-output>\nOutput too large (91KB). Full output saved to: /home/ada/.claude/projects/-w/s1/tool-results/b1.txt\n\nPreview (first 2KB):\nok`: "s1/tool-results/b1.txt",
		`<persisted-output>\nOutput too large (9MB). Full output saved to: C:\\Users\\ada\\s1\\tool-results\\b1.json\n\nPreview (first 2KB):\nok`:             "s1/tool-results/b1.json",
		`<persisted-output>\nOutput too large (91KB). Full output saved to: /tmp/b1.txt\n\nPreview`:                                                           "",
		`<persisted-output>\nOutput too large (91KB).`:    "",
		`Full output saved to: /x/s1/tool-results/b1.txt`: "",
	} {
		turns, _ := read(t, userLine("u", `[{"type":"tool_result","tool_use_id":"t","content":"`+text+`"}]`), transcript.Options{Object: "x.jsonl"})
		if len(turns) != 1 {
			t.Fatalf("%d turns", len(turns))
		}
		if got, ok := transcript.SpilledTo(&turns[0]); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t; want %q", text, got, ok, want)
		}
	}
}
