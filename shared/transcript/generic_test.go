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

func TestTRL(t *testing.T) {
	t.Parallel()
	data := `{"prompt":"Which driver?","completion":"pgx v5."}
{"chosen":"Use pgx.","prompt":"Which?","rejected":"Use lib/pq."}
{"prompt":[{"role":"user","content":"a"}],"chosen":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"rejected":[{"role":"assistant","content":"c"}]}
{"chosen":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}],"rejected":[{"role":"user","content":"x"},{"role":"assistant","content":"z"}]}
{"chosen":"\n\nHuman: What?\n\nAssistant: This.\n\nHuman: Sure?","rejected":"\n\nHuman: What?\n\nAssistant: That."}
{"prompt":"p","completion":"bad","label":false}
`
	reads(t, "x.jsonl", data, transcript.FormatTRL, []string{
		"user text: Which driver?", "assistant text: pgx v5.",
		"user text: Which?", "assistant text: Use pgx.", "assistant text abandoned: Use lib/pq.",
		"user text: a", "assistant text: b", "assistant text abandoned: c",
		"user text: x", "assistant text: y", "assistant text abandoned: z",
		"user text: What?", "assistant text: This.", "user text: Sure?", "user text abandoned: What?", "assistant text abandoned: That.",
		"user text: p", "assistant text abandoned: bad",
	})
	reads(t, "x.json", "[\n {\n  \"prompt\": \"p\",\n  \"completion\": \"c\"\n }\n]\n", transcript.FormatTRL, []string{"user text: p", "assistant text: c"})
}

func TestOpenCode(t *testing.T) {
	t.Parallel()
	data := `{
  "info": {"id": "ses_1", "directory": "/w/shop", "version": "1.0.1", "time": {"created": 1767323045000}},
  "messages": [
    {
      "info": {"id": "msg_1", "role": "user", "sessionID": "ses_1", "time": {"created": 1767323046000}},
      "parts": [{"type": "text", "text": "fix it"}, {"type": "text", "text": "Called the Read tool", "synthetic": true}, {"type": "file", "url": "data:"}]
    },
    {
      "info": {"id": "msg_2", "role": "assistant", "time": {"created": 1767323047000}, "path": {"cwd": "/w/shop/api", "root": "/w/shop"}},
      "parts": [
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool", "callID": "c1", "tool": "bash", "state": {"status": "completed", "input": {"command": "go test"}, "output": "ok"}},
        {"type": "tool", "callID": "c2", "tool": "webfetch", "state": {"status": "error", "input": {"url": "http://x"}, "error": "404"}},
        {"type": "tool", "callID": "c3", "tool": "edit", "state": {"status": "running", "input": {"filePath": "a.go"}}},
        {"type": "later"}
      ]
    },
    {"info": {"id": "msg_3", "role": "assistant", "summary": true}, "parts": [{"type": "text", "text": "summary of it"}]}
  ]
}
`
	want := []string{
		"user text: fix it", "injected text: Called the Read tool", "assistant text: I look.", "assistant tool_call bash: go test", "tool tool_result bash: ok",
		"assistant tool_call webfetch: http://x", "tool tool_result webfetch error web: 404", "assistant tool_call edit: a.go", "summary text: summary of it",
	}
	turns, r := reads(t, "export.json", data, transcript.FormatOpenCode, want)
	if turns[0].ID != "ses_1-"+turns[0].ID[6:22]+"/msg_1" || turns[0].Cwd != "/w/shop" || turns[2].Cwd != "/w/shop/api" || turns[8].TimeQuality != memory.TimeHeader {
		t.Errorf("id %q, cwd %q and %q", turns[0].ID, turns[0].Cwd, turns[2].Cwd)
	}
	if s := r.Stats(); s.Unknown["part/later"] != 1 || s.Dropped["thinking"] != 1 || s.Records != 1 {
		t.Errorf("counts %+v", s.Counts)
	}
	reads(t, "export.json", strings.ReplaceAll(data, "\n", ""), transcript.FormatOpenCode, want)
}

func TestCline(t *testing.T) {
	t.Parallel()
	data := `[{"role":"user","content":[{"type":"text","text":"<task>\nadd a retry\n</task>"},{"type":"text","text":"<environment_details>\n# Current Working Directory (/w/shop) Files\na.go\n</environment_details>"}],"ts":1767323045000},
{"role":"assistant","content":[{"type":"text","text":"I read it."},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"a.go"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"package a"}]},{"type":"text","text":"[execute_command for 'go test'] Result:"},{"type":"text","text":"FAIL"},{"type":"text","text":"[write_to_file for 'a.go'] Result:\n\nThe user denied this operation and provided the following feedback:\n<feedback>\nuse tabs\n</feedback>"}]},
{"role":"assistant","content":"<read_file>\n<path>b.go</path>\n</read_file>"},
{"role":"user","content":[{"type":"text","text":"[read_file for 'b.go'] Result:\n\npackage b\n<environment_details>x</environment_details>"},{"type":"text","text":"[ERROR] You did not use a tool"}]},
{"role":"user","content":[{"type":"text","text":"[ask_followup_question for 'why?'] Result:\n\n<answer>\nbecause\n</answer>"},{"type":"text","text":"plain words"}]}]`
	turns, r := reads(t, "api_conversation_history.json", data, transcript.FormatCline, []string{
		"user text: add a retry", "assistant text: I read it.", "assistant tool_call read_file: a.go", "tool tool_result read_file: package a",
		"tool tool_result execute_command: FAIL", "user feedback: use tabs", "assistant text: <read_file>\n<path>b.go</path>\n</read_file>",
		"tool tool_result read_file: package b", "injected text: [ERROR] You did not use a tool", "user text: because", "user text: plain words",
	})
	for _, turn := range turns {
		if turn.Cwd != "/w/shop" {
			t.Errorf("turn %s: cwd %q", turn.ID, turn.Cwd)
		}
	}
	if turns[0].TimeQuality != memory.TimeExact || r.Stats().Dropped["environment_details"] != 2 {
		t.Errorf("time %s, counts %+v", turns[0].TimeQuality, r.Stats().Counts)
	}
}

func TestChatGPT(t *testing.T) {
	t.Parallel()
	node := func(id, parent, role, rest, kids string) string {
		return `"` + id + `":{"id":"` + id + `","parent":"` + parent + `","children":[` + kids + `],"message":{"id":"` + id + `","author":{"role":"` + role + `"},"create_time":1767323045.5,` + rest + `}}`
	}
	say := func(s string) string {
		return `"content":{"content_type":"text","parts":["` + s + `"]},"recipient":"all"`
	}
	data := `[{"title":"t","create_time":1767323045.1,"mapping":{"root":{"id":"root","message":null,"parent":null,"children":["a"]},` +
		strings.Join([]string{
			node("d", "b", "assistant", say("final"), ""),
			node("a", "root", "system", say(""), `"b"`),
			node("b", "a", "user", say("asked"), `"c","d"`),
			node("c", "b", "assistant", say("an answer not kept"), ""),
			node("e", "d", "assistant", `"content":{"content_type":"code","text":"print(1)"},"recipient":"python"`, ""),
			node("f", "e", "tool", say("1"), ""),
			node("g", "f", "user", `"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer"},"see"]}`, ""),
		}, ",") + `},"current_node":"g","conversation_id":"0a0a0a0a-0000-4000-8000-000000000001"}]`
	turns, _ := reads(t, "conversations.json", data, transcript.FormatChatGPT, []string{
		"user text: asked", "assistant text: final", "assistant tool_call python: print(1)", "tool tool_result: 1", "user text: see", "assistant text abandoned: an answer not kept",
	})
	if turns[0].ID != "0a0a0a0a-0000-4000-8000-000000000001/b" || turns[0].TimeQuality != memory.TimeExact {
		t.Errorf("turn %+v", turns[0])
	}
}

// A loop's folder holds what a writing and a reviewing agent said, in one file
// with their names as roles, or in a file for each.
func TestAgentLoop(t *testing.T) {
	t.Parallel()
	one := `{"role":"user","content":"add a retry","task":"t-17"}
{"role":"coder","content":"done","task":"t-17","ts":"2026-01-02T03:04:05Z"}
{"role":"reviewer","content":"the retry has no bound","task":"t-17"}
{"role":"Coder","content":[{"type":"text","text":"bounded"},{"type":"tool_use","id":"c","name":"bash","input":{"command":"go test"}}],"task":"t-17"}
{"role":"tool","tool_call_id":"c","content":"ok"}
`
	want := []string{"user text: add a retry", "assistant text: done", "assistant feedback: the retry has no bound", "assistant text: bounded", "assistant tool_call bash: go test", "tool tool_result bash: ok"}
	reads(t, "loop.jsonl", one, transcript.FormatFlat, want) // the first record does not tell
	turns, _ := reads(t, "loop.jsonl", one[strings.Index(one, "\n")+1:], transcript.FormatLoop, want[1:])
	if turns[0].Session == "" || turns[1].Trust != memory.TrustAssistant || turns[0].TimeQuality != memory.TimeExact {
		t.Errorf("turns %+v", turns[:2])
	}
	side := `{"role":"system","content":"s"}
{"role":"user","content":"the diff"}
{"role":"assistant","content":"the words"}
`
	reads(t, "task-3-coder.jsonl", side, transcript.FormatLoop, []string{"system text: s", "user text: the diff", "assistant text: the words"})
	reads(t, "reviewer.jsonl", side, transcript.FormatLoop, []string{"system text: s", "injected text: the diff", "assistant feedback: the words"})
}

func TestFlatCalls(t *testing.T) {
	t.Parallel()
	data := `{"role":"user","content":"run it","id":"m1"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"bash","arguments":"{\"command\":\"printf 'a\\nb'\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"a"}
`
	turns, _ := reads(t, "x.jsonl", data, transcript.FormatFlat, []string{"user text: run it", "assistant tool_call bash: printf 'a\nb'", "tool tool_result bash: a"})
	if !strings.HasSuffix(turns[0].ID, "/m1") {
		t.Errorf("id %q", turns[0].ID)
	}
}

func TestAider(t *testing.T) {
	t.Parallel()
	data := "\n# aider chat started at 2026-01-02 03:04:05\n\n> Aider v0.86.1  \n> Model: x  \n\n#### add a retry  \n#### and log it  \n\nI will.\n\nup.go\n```go\n// #### no prompt\n> no output\n```\n\n> Applied edit to up.go  \n> Tokens: 2.1k sent, 301 received.  \n\n" +
		"#### /ask is it bounded?  \n\n```\nnever closed\n\n> Tokens: 1k sent, 2 received.  \n\n#### /add b.go  \n\n# aider chat started at 2026-01-02 09:00:00\r\n\r\n#### add a retry  \r\n\r\nYes.\xff\r\n"
	turns, r := reads(t, "repo/.aider.chat.history.md", data, transcript.FormatAider, []string{
		"tool tool_result aider: Aider v0.86.1\nModel: x", "user text: add a retry\nand log it",
		"assistant text: I will.\n\nup.go\n```go\n// #### no prompt\n> no output\n```", "tool tool_result aider: Applied edit to up.go\nTokens: 2.1k sent, 301 received.",
		"user text: /ask is it bounded?", "assistant text: ```\nnever closed", "tool tool_result aider: Tokens: 1k sent, 2 received.", "user command: /add b.go",
		"user text: add a retry", "assistant text: Yes.\ufffd",
	})
	if turns[1].Session == turns[8].Session || turns[1].TimeRaw != "2026-01-02 03:04:05" || turns[8].TimeQuality != memory.TimeHeader || r.Stats().Records != 10 {
		t.Errorf("%+v, %+v", turns[1], turns[8])
	}
	for _, turn := range turns {
		if strings.Count(data[:turn.From], "\n")+1 != turn.Line {
			t.Errorf("turn %q: line %d", turn.Text(), turn.Line)
		}
	}
	more, _ := read(t, data+"\n#### next  \n", transcript.Options{Object: ".aider.chat.history.md"})
	for i := range turns {
		if more[i].ID != turns[i].ID {
			t.Errorf("turn %d changed its id", i)
		}
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	data := "First words\ngo on.\n\n# no heading in a text\n\n```\nno fence\n\nuser: no role\n"
	turns, _ := reads(t, "notes.txt", data, transcript.FormatText, []string{"note text: " + strings.TrimSpace(data)})
	if turns[0].Heading != "" || turns[0].TimeQuality != memory.TimeNone {
		t.Errorf("%+v", turns[0])
	}
	small, _ := read(t, data, transcript.Options{Object: "notes.txt", NoteChars: 30})
	if d := cmp.Diff([]string{"note text: First words\ngo on.", "note text: # no heading in a text", "note text: ```\nno fence\n\nuser: no role"}, brief(small)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for name, tt := range map[string]struct{ object, data, format string }{
		"no suffix":          {"NOTES", "just words\n\nand more\n", transcript.FormatText},
		"markdown, no name":  {"NOTES", "intro\n\n## Part\n", transcript.FormatMarkdown},
		"front matter":       {"NOTES", "---\nupdated: 2026-01-05\n---\nwords\n", transcript.FormatMarkdown},
		"hash in a sentence": {"NOTES", "see #12 for more\n", transcript.FormatText},
		"chinese":            {"a.txt", "每次部署之前都要检查配置\n", transcript.FormatText},
		"nul":                {"a.txt", "words\x00words", transcript.FormatUnknown},
		"control codes":      {"a.txt", strings.Repeat("a\x01\x02", 40), transcript.FormatUnknown},
		"colours":            {"a.log", "\x1b[31mred\x1b[0m " + strings.Repeat("plain words ", 10), transcript.FormatText},
		"words in json":      {"a.json", "words\n", transcript.FormatUnknown},
	} {
		if _, r := read(t, tt.data, transcript.Options{Object: tt.object}); r.Format() != tt.format {
			t.Errorf("%s: format %s, want %s", name, r.Format(), tt.format)
		}
	}
}

// A heading or a fence may follow a paragraph at once, where the part before it
// is given away.
func TestHeadingAfterLongPart(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"# B\nmore\n", "```\ncode\n```\n"} {
		data := "# A\nfirst paragraph of some words\n\nsecond paragraph of some words\n" + next
		turns, _ := read(t, data, transcript.Options{Object: "x.md", NoteChars: 40})
		checkPieces(t, data, turns)
		if d := cmp.Diff([]string{"note text: # A\nfirst paragraph of some words", "note text: second paragraph of some words", "note text: " + strings.TrimSpace(next)}, brief(turns)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
}
