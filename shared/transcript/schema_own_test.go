package transcript_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// greedy fits every object that has one of the names that our own formats are
// told by.
const greedy = `name: greedy
match:
  - path: [type, role, id, uuid, sessionId, timestamp, payload, message, messages, conversations, mapping, chat_messages, prompt, completion, chosen, info, sha, text, value]
message: {role: [role, type, from], text: [text, content, value, completion, message]}
roles: {user: assistant, assistant: assistant, human: assistant}
`

// A schema of the user's takes no file from a format that is known by more
// than a name that many formats use, however much it claims.
func TestSchemaStealsNothing(t *testing.T) {
	t.Parallel()
	own := []transcript.Schema{schema(t, greedy)}
	flat := `{"role":"user","content":"x"}` + "\n"
	for name, tt := range map[string]struct{ object, data, want string }{
		"claude":             {"a.jsonl", `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"x"}}` + "\n", transcript.FormatClaude},
		"claude, odd first":  {"a.jsonl", `{"type":"new-thing","id":"1"}` + "\n" + `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"x"}}` + "\n", transcript.FormatClaude},
		"claude, 19 odd":     {"a.jsonl", strings.Repeat(`{"type":"new-thing"}`+"\n", 19) + `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"x"}}` + "\n", transcript.FormatClaude},
		"pi":                 {"a.jsonl", `{"type":"session","id":"s","version":3,"timestamp":"2026-01-02T03:04:05Z","cwd":"/w"}` + "\n", transcript.FormatPi},
		"codex":              {"a.jsonl", `{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"c"}}` + "\n", transcript.FormatCodex},
		"codex, bare":        {"a.jsonl", `{"id":"c","timestamp":"2026-01-02T03:04:05Z","instructions":null}` + "\n", transcript.FormatCodex},
		"gemini":             {"a.jsonl", `{"sessionId":"s","projectHash":"h","startTime":"2026-01-02T03:04:05Z"}` + "\n", transcript.FormatGemini},
		"gemini, document":   {"session-1.json", "{\n \"sessionId\":\"s\",\n \"projectHash\":\"h\",\n \"messages\":[]\n}\n", transcript.FormatGemini},
		"cursor":             {"a.jsonl", `{"role":"user","message":{"content":[{"type":"text","text":"x"}]}}` + "\n", transcript.FormatCursor},
		"opencode":           {"a.json", "{\n \"info\": {\"id\":\"s\"},\n \"messages\": []\n}\n", transcript.FormatOpenCode},
		"trl":                {"a.jsonl", `{"prompt":"x","completion":"y"}` + "\n", transcript.FormatTRL},
		"chatgpt":            {"conversations.json", "[\n{\"mapping\":{},\"current_node\":\"n\"}\n]\n", transcript.FormatChatGPT},
		"claude.ai":          {"conversations.json", `[{"uuid":"c","chat_messages":[{"uuid":"m","sender":"human","text":"x"}]}]`, transcript.FormatClaudeAI},
		"claude.ai, by line": {"a.jsonl", `{"uuid":"c","chat_messages":[]}` + "\n", transcript.FormatClaudeAI},
		"cline":              {"api_conversation_history.json", `[{"role":"user","content":"x"}]`, transcript.FormatCline},
		"git":                {"a.jsonl", `{"type":"commit","sha":"0123456789012345678901234567890123456789","message":"x"}` + "\n", transcript.FormatGit},
		"markdown":           {"a.md", "# role\n\ntext\n", transcript.FormatMarkdown},
		"aider":              {".aider.chat.history.md", "# aider chat started at 2026-01-02 03:04:05\n\n#### x\n", transcript.FormatAider},
		"not JSON":           {"a.txt", "type role text\n", transcript.FormatText},
		"nothing":            {"a.jsonl", "", transcript.FormatEmpty},

		"flat":             {"a.jsonl", flat, "greedy"},
		"openai":           {"a.jsonl", `{"messages":[{"role":"user","content":"x"}]}` + "\n", "greedy"},
		"openai, document": {"a.json", "[\n{\"role\":\"user\",\"content\":\"x\"}\n]\n", "greedy"},
		"sharegpt":         {"a.json", `[{"conversations":[{"from":"human","value":"x"}]}]`, "greedy"},
		"loop":             {"coder.jsonl", flat, "greedy"},
		"header, then own": {"a.jsonl", `{"version":1}` + "\n" + `{"value":"x","from":"user"}` + "\n", "greedy"},
		"nobody's":         {"a.jsonl", `{"kind":"x"}` + "\n", transcript.FormatUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, with := read(t, tt.data, transcript.Options{Object: tt.object, Schemas: own})
			if with.Format() != tt.want {
				t.Errorf("read as %s, want %s", with.Format(), tt.want)
			}
			if _, without := read(t, tt.data, transcript.Options{Object: tt.object}); tt.want != "greedy" && without.Format() != tt.want {
				t.Errorf("the case itself is read as %s", without.Format())
			}
		})
	}
}

// A schema that nothing fits changes no reading: turns, counts and format of the
// sample sessions and of the shapes are the same with it and without.
func TestSchemaOfOthersChangesNothing(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"flat.jsonl":   strings.Repeat(`{"role":"user","content":"x"}`+"\n", 30) + `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}` + "\n",
		"mixed.jsonl":  `{"role":"user","content":"x"}` + "\n" + `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}` + "\n",
		"openai.json":  "{\n\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]\n}",
		"share.jsonl":  `{"conversations":[{"from":"human","value":"x"}]}` + "\n",
		"coder.jsonl":  `{"role":"user","content":"x"}` + "\n",
		"joined.jsonl": `{"role":"user","content":"x"}{"role":"assistant","content":"y"}` + "\n",
		"odd.jsonl":    `{"a":1}` + "\n",
	}
	for _, f := range []string{"claude-code-shop-retries.jsonl", "pi-shop-money.jsonl"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "transcripts", f))
		if err != nil {
			t.Fatal(err)
		}
		files[f] = string(b)
	}
	other := []transcript.Schema{schema(t, support), schema(t, "name: b\nmatch: [{path: zz.y}]\nmessage: {role: r, text: t}\n")}
	for name, data := range files {
		turns, r := read(t, data, transcript.Options{Object: name})
		again, r2 := read(t, data, transcript.Options{Object: name, Schemas: other})
		if d := cmp.Diff(turns, again); d != "" || r.Format() != r2.Format() || r2.Version() != transcript.ReaderVersion {
			t.Errorf("%s: %s, then %s\n%s", name, r.Format(), r2.Format(), d)
		}
		if d := cmp.Diff(r.Stats().Counts, r2.Stats().Counts); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Of two that fit, the first in the list reads; the version is that of its file.
func TestSchemaOrderAndVersion(t *testing.T) {
	t.Parallel()
	const one, two = "name: one\nmatch: [{path: k}]\nmessage: {role: r, text: t}\n", "name: two\nmatch: [{path: k}]\nmessage: {role: r, text: t}\n"
	data := `{"k":1,"r":"user","t":"x"}` + "\n"
	a, b := schema(t, one), schema(t, two)
	_, r := read(t, data, transcript.Options{Object: "a.jsonl", Schemas: []transcript.Schema{a, b}})
	_, r2 := read(t, data, transcript.Options{Object: "a.jsonl", Schemas: []transcript.Schema{b, a}})
	if r.Format() != "one" || r2.Format() != "two" || r.Version() != transcript.ReaderVersion+"+"+a.Version() || r.Version() == r2.Version() || len(a.Version()) != 8 {
		t.Errorf("%s %s, %s %s", r.Format(), r.Version(), r2.Format(), r2.Version())
	}
	// A first line that looks like a shape does not end the search.
	if _, r := read(t, `{"role":"system","content":"v2"}`+"\n"+data, transcript.Options{Object: "a.jsonl", Schemas: []transcript.Schema{a}}); r.Format() != "one" {
		t.Errorf("shape, then its own: %s", r.Format())
	}
	if c := schema(t, one+"# reworded\n"); c.Version() == a.Version() {
		t.Error("another file has the same version")
	}
}

// The formats of our own keep their names: a record that says claude-code was
// read by the reader of Claude Code.
func TestSchemaNames(t *testing.T) {
	t.Parallel()
	for _, name := range transcript.Reserved {
		_, err := transcript.ParseSchema("s.yaml", fmt.Appendf(nil, "name: %s\nmatch: [{path: a}]\nmessage: {role: r, text: t}\n", name))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(transcript.Reserved) < 20 || transcript.ValidSchemaName("A") || transcript.ValidSchemaName("") || !transcript.ValidSchemaName("a-1") {
		t.Errorf("%d names are reserved", len(transcript.Reserved))
	}
}

// An error names the field, where the file has many of the kind.
func TestSchemaErrorNamesField(t *testing.T) {
	t.Parallel()
	const head = "name: x\nmatch:\n  - path: a\n"
	for in, want := range map[string]string{
		head + "message:\n  role: [a, [b]]\n":                                  "s.yaml:5: role must be text",
		head + "message:\n  role: {a: b}\n":                                    "s.yaml:5: role must be text or a list of texts",
		head + "message:\n  role: a\n  text: []\n":                             "s.yaml:6: text is an empty list",
		head + "message:\n  role: a\n  time: .a\n":                             `s.yaml:6: time: ".a" is no path`,
		head + "message: a\n":                                                  "s.yaml:4: message must be a mapping of fields",
		head + "roles: [a]\n":                                                  "s.yaml:4: roles must be a mapping of the file's roles",
		head + "roles:\n  a: [user]\n":                                         "s.yaml:5: role a must be text",
		head + "files: [" + strings.Repeat("x, ", 101) + "]\n":                 "s.yaml:4: files has 101 entries, at most 100 are allowed",
		"name: x\nmatch: {path: a}\n":                                          "s.yaml:2: match must be a list",
		"name: x\nmatch:\nmessage: {role: r, text: t}\n":                       "s.yaml:1: nothing tells records of this format",
		"name: x\nmatch:\n  - &a {path: b}\n  - *a\n":                          "s.yaml:3: anchors and aliases are not allowed",
		"name: claude-code\nmatch: [{path: a}]\nmessage: {role: r, text: t}\n": `s.yaml: "claude-code" is a format that is read without a schema`,
	} {
		if _, err := transcript.ParseSchema("s.yaml", []byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", in, err, want)
		}
	}
}

func TestSchemaRules(t *testing.T) {
	t.Parallel()
	s := schema(t, support)
	want := []string{"the file is named *.desk.json or *.jsonl", "kind is ticket or call", "log.entries is of kind array"}
	if d := cmp.Diff(want, s.Rules()); d != "" {
		t.Error(d)
	}
	g := schema(t, "name: x\nmatch: [{path: [a.b, c], is: any}]\nmessage: {role: r, text: t}\n")
	if d := cmp.Diff([]string{"a.b or c is there"}, g.Rules()); d != "" {
		t.Error(d)
	}
}

// What is guessed at is put off while a schema can not be read.
func TestGuessed(t *testing.T) {
	t.Parallel()
	own := []transcript.Schema{schema(t, support)}
	for data, want := range map[string]bool{
		`{"role":"user","content":"x"}` + "\n": true,
		`{"messages":[]}`:                      true,
		`{"a":1}` + "\n":                       true,
		`[{"a":1}]`:                            true,
		"{\n\"a\":1}":                          true,
		"\x89PNG\r\n\x1a\n\x00\xff\xfe":        false,
		"# Note\n\nx\n":                        false,
		"":                                     false,
		`{"type":"user","uuid":"u","sessionId":"s","parentUuid":null,"message":{"role":"user","content":"x"}}`: false,
		`{"kind":"call","log":{"entries":[]}}`: false,
	} {
		if _, r := read(t, data, transcript.Options{Object: "a.jsonl", Schemas: own}); r.Guessed() != want {
			t.Errorf("%q: guessed is %t", data, r.Guessed())
		}
	}
}

// The example of docs/UPLOAD.md reads as the page says.
func TestSchemaOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "UPLOAD.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## A format of your own\n")
	block := func(kind string) string {
		_, rest, ok := strings.Cut(section, "```"+kind+"\n")
		text, _, end := strings.Cut(rest, "```\n")
		if !ok || !end {
			t.Fatalf("the section has no block of %s", kind)
		}
		return text
	}
	data, own := block("json"), schema(t, block("yaml"))
	turns, r := read(t, data, transcript.Options{Object: "monday.jsonl", Schemas: []transcript.Schema{own}})
	checkPieces(t, data, turns)
	want := []string{
		"user text: The till rounds to 5 cents from March on, because the small coins go away.",
		"assistant text: I look at the tests first.", "assistant tool_call bash: go test ./till", "tool tool_result bash error: FAIL till/round",
	}
	if d := cmp.Diff(want, brief(turns)); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	if !strings.Contains(section, "`"+r.Version()+"`") || !strings.Contains(section, "\nstand-up  "+own.Version()+"  new\n  fits where "+strings.Join(own.Rules(), "; ")+"\n") {
		t.Errorf("the page does not say %s, or what it fits: %v", r.Version(), own.Rules())
	}
}
