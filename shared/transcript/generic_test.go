package transcript_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// reads checks the turns of one object, and the laws of pieces, of repetition
// and of a resumed reading.
func reads(t *testing.T, object, data, format string, want []string) ([]memory.Turn, *transcript.Reader) {
	t.Helper()
	turns, r := read(t, data, transcript.Options{Object: object})
	if r.Format() != format || r.Stats().Unsupported != "" {
		t.Fatalf("format %q (unsupported %q), want %q", r.Format(), r.Stats().Unsupported, format)
	}
	if d := cmp.Diff(want, brief(turns)); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	checkPieces(t, data, turns)
	again, _ := read(t, data, transcript.Options{Object: "folder/" + object})
	if d := cmp.Diff(turns, again); d != "" {
		t.Errorf("read again (-want +got):\n%s", d)
	}
	return turns, r
}

const openAI = `{"messages":[{"role":"system","content":"Be terse."},{"role":"user","content":"How do I run \"make\"?"},{"role":"assistant","content":"make test"}]}
{"messages":[{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"input_text","text":"here."}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"cmd\":\"ls -l\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"go.mod"},{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"Developer","content":"rules"},{"role":"assistant","function_call":{"name":"read","arguments":"{\"path\":\"a.go\"}"}},{"role":"function","name":"read","content":"package a"},{"role":"alien","content":"x"},{"role":"user","content":null}]}
`

var openAITurns = []string{
	"system text: Be terse.", `user text: How do I run "make"?`, "assistant text: make test",
	"user text: Look\nhere.", "assistant tool_call bash: ls -l", "tool tool_result bash: go.mod", "assistant text: No.", "system text: rules",
	"assistant tool_call read: a.go", "tool tool_result read: package a",
}

func TestOpenAI(t *testing.T) {
	t.Parallel()
	turns, r := reads(t, "x.jsonl", openAI, transcript.FormatOpenAI, openAITurns)
	s := r.Stats()
	if s.Records != 2 || s.Unknown["role:alien"] != 1 || s.Dropped["no_content"] != 1 || s.Dropped["image"] != 1 {
		t.Errorf("counts %+v", s.Counts)
	}
	if turns[0].Session == turns[3].Session {
		t.Error("two conversations have one session")
	}
	// The same records as an array, pretty or on one line, are the same turns.
	lines := strings.Split(strings.TrimSpace(openAI), "\n")
	for name, data := range map[string]string{
		"array":      "[" + strings.Join(lines, ",") + "]",
		"a line":     "[\n" + strings.Join(lines, ",\n") + "\n]\n",
		"pretty":     "\ufeff[\r\n  " + strings.ReplaceAll(strings.Join(lines, ",\r\n  "), `,"`, ",\r\n      \"") + "\r\n]\r\n",
		"no suffix":  "[\n" + strings.Join(lines, "\n,\n"),
		"whole file": strings.ReplaceAll(lines[0], `:[{`, ":[\n{"),
	} {
		want := openAITurns
		if name == "whole file" {
			want = want[:3]
		}
		other, r := reads(t, "x.json", data, transcript.FormatOpenAI, want)
		if r.Stats().Bad+r.Stats().Pending != 0 {
			t.Errorf("%s: %+v", name, r.Stats().Counts)
		}
		for i, turn := range other {
			if data[turn.From] != '{' || strings.Count(data[:turn.From], "\n")+1 != turn.Line {
				t.Errorf("%s: turn %d begins at %d, line %d", name, i, turn.From, turn.Line)
			}
		}
	}
	// One conversation as an array of messages.
	list := lines[1][len(`{"messages":`) : len(lines[1])-1]
	one, _ := reads(t, "x.json", list, transcript.FormatOpenAI, openAITurns[3:])
	if one[0].Session != one[6].Session {
		t.Error("one conversation has two sessions")
	}
}

// The log of an API holds every request with all messages before it: each
// message counts once.
func TestSnapshotsInOneFile(t *testing.T) {
	t.Parallel()
	a := `{"role":"system","content":"s"},{"role":"user","content":"one"}`
	b := a + `,{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"bash","arguments":"{}"}}]}`
	c := b + `,{"role":"tool","tool_call_id":"c1","content":"out"},{"role":"user","content":"one"}`
	other := a + `,{"role":"assistant","content":"another answer"}`
	var data strings.Builder
	for _, m := range []string{a, b, c, c, other} {
		data.WriteString(`{"messages":[` + m + "]}\n")
	}
	_, r := reads(t, "log.jsonl", data.String(), transcript.FormatOpenAI, []string{
		"system text: s", "user text: one", "assistant tool_call bash: ", "tool tool_result bash: out", "user text: one", "assistant text: another answer",
	})
	if n := r.Stats().Dropped["repeated"]; n != 2+3+5+2 {
		t.Errorf("%d repeated", n)
	}
}

func TestShareGPT(t *testing.T) {
	t.Parallel()
	data := `[
 {
  "id": "identity_0",
  "conversations": [
   {"from": "system", "value": "Help."},
   {"from": "Human", "value": "Where is it set?"},
   {"from": "gpt", "value": "In config.go."},
   {
    "from": "function_call",
    "value": "{\"name\":\"read\",\"arguments\":{\"path\":\"gate/config.go\"}}"
   },
   {"from": "observation", "value": "const threshold = 0.5"},
   {"from": "bing", "value": "0.5"}
  ]
 },
 {"conversation": [{"role": "user", "content": "hi"}, {"from": "tool", "value": "free"}, {"from": "function_call", "value": "ls -l"}]}
]`
	want := []string{
		"system text: Help.", "user text: Where is it set?", "assistant text: In config.go.", "assistant tool_call read: gate/config.go",
		"tool tool_result: const threshold = 0.5", "assistant text: 0.5", "user text: hi", "tool tool_result: free", "assistant tool_call: ls -l",
	}
	turns, r := reads(t, "x.json", data, transcript.FormatShareGPT, want)
	if !strings.HasPrefix(turns[0].Session, "identity_0-") || r.Stats().Records != 2 {
		t.Errorf("session %q, counts %+v", turns[0].Session, r.Stats().Counts)
	}
	compact := `{"id":"7b0e4c7e-0d0f-4d8a-9c6f-1d9a3f0c2b11","conversations":[{"from":"human","value":"one\u2028line"},{"from":"gpt","value":"two \ud83d"}]}` + "\n" + `{"conversations":[]}` + "\n"
	turns, _ = reads(t, "x.jsonl", compact, transcript.FormatShareGPT, []string{"user text: one\u2028line", "assistant text: two \ufffd"})
	if turns[0].Session != "7b0e4c7e-0d0f-4d8a-9c6f-1d9a3f0c2b11" {
		t.Errorf("session %q", turns[0].Session)
	}
}

func TestClaudeAIExport(t *testing.T) {
	t.Parallel()
	data := `[{"uuid":"9a6f1f0e-0000-4000-8000-000000000001","name":"x","created_at":"2026-01-02T03:04:05.000000Z","chat_messages":[{"uuid":"9a6f1f0e-0000-4000-8000-0000000000aa","text":"old text","content":[{"type":"text","text":"asked"}],"sender":"human","created_at":"2026-01-02T03:04:06.123456Z"},{"uuid":"9a6f1f0e-0000-4000-8000-0000000000ab","text":"answered","content":[],"sender":"assistant","created_at":null}]}]`
	turns, _ := reads(t, "conversations.json", data, transcript.FormatClaudeAI, []string{"user text: asked", "assistant text: answered"})
	if turns[0].ID != "9a6f1f0e-0000-4000-8000-000000000001/9a6f1f0e-0000-4000-8000-0000000000aa" || turns[0].TimeQuality != memory.TimeExact || turns[1].TimeQuality != memory.TimeHeader {
		t.Errorf("turns %+v", turns)
	}
}
