package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// brief is what a test compares of a turn: who, what, the text, its marks.
func brief(turns []memory.Turn) []string {
	var out []string
	for _, t := range turns {
		s := string(t.Role) + " " + string(t.Kind)
		if t.Tool != nil && t.Tool.Name != "" {
			s += " " + t.Tool.Name
		}
		if t.Tool != nil && t.Tool.IsError {
			s += " error"
		}
		if t.Trust == memory.TrustWeb {
			s += " web"
		}
		if t.Abandoned {
			s += " abandoned"
		}
		if t.Derived {
			s += " derived"
		}
		out = append(out, s+": "+t.Text())
	}
	return out
}

func userLine(id, content string, extra ...string) string {
	return fmt.Sprintf(`{"type":"user","uuid":%q,"sessionId":"s","timestamp":"2026-01-13T00:00:00.000Z","cwd":"/w",%s"message":{"role":"user","content":%s}}`, id, strings.Join(extra, ""), content)
}

func assistantLine(uuid, id, block string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":%q,"sessionId":"s","message":{"id":%q,"role":"assistant","model":"m","content":[%s]}}`, uuid, id, block)
}

func TestClaude(t *testing.T) {
	t.Parallel()
	call := func(id, name, input string) string {
		return assistantLine("a-"+id, "m-"+id, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, name, input))
	}
	result := func(id, content string, extra ...string) string {
		return userLine("r-"+id, fmt.Sprintf(`[{"type":"tool_result","tool_use_id":%q,"content":%s%s}]`, id, content, strings.Join(extra, "")))
	}
	queue := func(op, content string) string {
		return fmt.Sprintf(`{"type":"queue-operation","operation":%q,"sessionId":"s"%s}`, op, content)
	}
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"human and assistant", []string{userLine("u", `"Use pgx."`), assistantLine("a", "m", `{"type":"text","text":"Yes."}`)},
			[]string{"user text: Use pgx.", "assistant text: Yes."}},
		{"thinking, images and synthetic text go", []string{
			assistantLine("a", "m", `{"type":"thinking","thinking":"hm","signature":"x"}`), userLine("u", `[{"type":"image","source":{}},{"type":"text","text":"see"}]`),
			`{"type":"assistant","uuid":"b","sessionId":"s","message":{"id":"n","model":"<synthetic>","content":[{"type":"text","text":"API error"}]}}`,
		}, []string{"user text: see"}},
		{"reminders are cut out", []string{userLine("u", `"a<system-reminder>x</system-reminder> b <system-reminder> stays"`)},
			[]string{"user text: a\nb <system-reminder> stays"}},
		{"own memory is cut out or derived", []string{userLine("u", `"<mneme-memory project=\"p\">old</mneme-memory> new"`), userLine("v", `"<mneme-memory>old</mneme-memory>"`)},
			[]string{"user text: new", "user text derived: <mneme-memory>old</mneme-memory>"}},
		{"own tools answer derived", []string{call("t", "Bash", `{"command":"mem query retries"}`), result("t", `"we decided"`)},
			[]string{"assistant tool_call Bash: mem query retries", "tool tool_result Bash derived: we decided"}},
		{"not speech", []string{
			userLine("u1", `"skill body"`, `"isMeta":true,`), userLine("u2", `"story"`, `"isCompactSummary":true,`),
			userLine("u3", `"<local-command-stdout>x</local-command-stdout>"`), userLine("u4", `"[Request interrupted by user]"`),
		}, []string{"injected text: skill body", "summary text: story", "injected text: <local-command-stdout>x</local-command-stdout>", "injected text: [Request interrupted by user]"}},
		{"a command's words", []string{
			userLine("u", `"<command-name>/review</command-name><command-args>check the retry rule please</command-args>"`), userLine("v", `"<bash-input>make test</bash-input>"`),
		}, []string{"user command: check the retry rule please", "injected text: <command-name>/review</command-name><command-args>check the retry rule please</command-args>", "user command: make test"}},
		{"feedback", []string{call("t", "Edit", `{"file_path":"a.go","new_string":"x"}`),
			result("t", `"The user doesn't want to proceed. To tell you how to proceed, the user said:\nuse tabs\n\nNote: The user's next message may contain a correction"`, `,"is_error":true`)},
			[]string{"assistant tool_call Edit: a.go", "user feedback Edit error: use tabs"}},
		{"answers", []string{call("t", "AskUserQuestion", `{}`), result("t", `"User has answered your questions: \"Which db?\"=\"pg\". You can now continue."`)},
			[]string{"assistant tool_call AskUserQuestion: ", `user feedback AskUserQuestion: "Which db?"="pg"`}},
		{"answers in other words", []string{call("t", "AskUserQuestion", `{}`), result("t", `"Your questions have been answered: \"Which db?\"=\"pg\". Go on."`), call("v", "Bash", `{"command":"env"}`), result("v", `"Your questions have been answered: \"A\"=\"B\""`)},
			[]string{"assistant tool_call AskUserQuestion: ", `user feedback AskUserQuestion: "Which db?"="pg"`, "assistant tool_call Bash: env", `tool tool_result Bash: Your questions have been answered: "A"="B"`}},
		{"no answer", []string{call("t", "AskUserQuestion", `{}`), result("t", `"The user did not answer."`)},
			[]string{"assistant tool_call AskUserQuestion: ", "tool tool_result AskUserQuestion: The user did not answer."}},
		{"text beside a tool result is the person's", []string{call("t", "Read", `{"path":"x"}`),
			userLine("u", `[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"body"}]},{"type":"text","text":"and faster"}]`, `"toolUseResult":{},`)},
			[]string{"assistant tool_call Read: x", "tool tool_result Read: body", "user text: and faster"}},
		{"the web is not trusted", []string{call("t", "WebFetch", `{"url":"https://x","prompt":"p"}`), result("t", `"page"`)},
			[]string{"assistant tool_call WebFetch: https://x", "tool tool_result WebFetch web: page"}},
		{"a plan is the assistant's words", []string{call("t", "ExitPlanMode", `{"plan":"1. do it"}`)}, []string{"assistant text: 1. do it", "assistant tool_call ExitPlanMode: "}},
		{"a plan in a prompt", []string{userLine("u", `"Implement the following plan:\n\n# Retries"`, `"planContent":"# Retries",`)}, []string{"user text: Implement the following plan:\n\n# Retries"}},
		{"steering that was absorbed", []string{queue("enqueue", `,"content":"be quick"`), queue("enqueue", `,"content":"/skills"`), queue("remove", ""), queue("remove", "")},
			[]string{"user steering: be quick"}},
		{"steering that became a prompt", []string{queue("enqueue", `,"content":"be quick"`), queue("dequeue", ""), userLine("u", `"be quick"`)},
			[]string{"user text: be quick"}},
		{"steering repeated by a record", []string{queue("enqueue", `,"content":"be quick"`), queue("remove", ""),
			`{"type":"attachment","uuid":"x","sessionId":"s","attachment":{"type":"queued_command","prompt":"be quick","commandMode":"prompt"}}`},
			[]string{"user steering: be quick"}},
		{"steering that stands later as a prompt", []string{queue("enqueue", `,"content":"be quick"`), queue("remove", ""), userLine("u", `"other"`, `"parentUuid":"p",`), userLine("v", `" be quick"`), userLine("w", `"third"`, `"parentUuid":"p",`)},
			[]string{"user text abandoned: other", "user text abandoned:  be quick", "user text: third"}},
		{"steering that stood before as a prompt", []string{userLine("u", `"go on"`), queue("enqueue", `,"content":"go on"`), queue("remove", "")},
			[]string{"user text: go on"}},
		{"the same steering twice", []string{queue("enqueue", `,"content":"go on"`), queue("remove", ""), queue("enqueue", `,"content":"go on"`), queue("remove", "")},
			[]string{"user steering: go on", "user steering: go on"}},
		{"the queue is first in first out", []string{queue("enqueue", `,"content":"a one"`), queue("enqueue", ""), queue("enqueue", `,"content":"<task-notification>x</task-notification>"`), queue("enqueue", `,"content":["b two",{"type":"text","text":"and"}]`),
			queue("dequeue", ""), queue("remove", ""), queue("remove", ""), queue("remove", "")},
			[]string{"user steering: b two\nand"}},
		{"the removed prompt is named", []string{queue("enqueue", `,"content":"one"`), queue("enqueue", `,"content":"two"`), queue("remove", `,"content":"two","reason":"absorbed_mid_turn"`), queue("dequeue", "")},
			[]string{"user steering: two"}},
		{"steering typed before a slice begins", []string{userLine("u", `"start"`), queue("remove", `,"content":"the parser first"`), queue("remove", `,"content":"/skills"`), queue("remove", ""), userLine("v", `"more"`)},
			[]string{"user text: start", "user steering: the parser first", "user text: more"}},
		{"another prompt waits", []string{queue("enqueue", `,"content":"one"`), queue("remove", `,"content":"two"`), queue("remove", "")},
			[]string{"user steering: two", "user steering: one"}},
		{"steering taken back", []string{queue("enqueue", `,"content":"be quick"`), queue("popAll", ""), queue("remove", "")}, nil},
		{"queued command record", []string{`{"type":"attachment","uuid":"x","sessionId":"s","attachment":{"type":"queued_command","prompt":"be quick"}}`},
			[]string{"user steering: be quick"}},
		{"queued command of a machine", []string{`{"type":"attachment","uuid":"x","sessionId":"s","attachment":{"type":"queued_command","prompt":"<task-notification>","commandMode":"task-notification"}}`, `{"type":"attachment","uuid":"y","sessionId":"s","attachment":{"type":"skill_listing","content":"x"}}`}, nil},
		{"queued command twice", []string{`{"type":"attachment","uuid":"x","sessionId":"s","attachment":{"type":"queued_command","prompt":[{"type":"text","text":"be quick"}]}}`, `{"type":"attachment","uuid":"x","sessionId":"s","attachment":{"type":"queued_command","prompt":"be quick"}}`},
			[]string{"user steering: be quick"}},
		{"a prompt that a hook blocked", []string{`{"type":"system","subtype":"informational","uuid":"x","sessionId":"s","content":"blocked by hook: no\n\nOriginal prompt: drop the table"}`, `{"type":"system","subtype":"informational","uuid":"y","sessionId":"s","content":"update available"}`},
			[]string{"user text: drop the table"}},
		{"refused without a word", []string{call("t", "Edit", `{"file_path":"a.go"}`), result("t", `"The user doesn't want to take this action right now."`, `,"is_error":true`)},
			[]string{"assistant tool_call Edit: a.go", "tool tool_result Edit error: The user doesn't want to take this action right now."}},
		{"the words of a refusal need an error", []string{call("t", "Bash", `{"command":"cat x"}`), result("t", `"The user doesn't want to proceed. the user said:\nuse tabs"`)},
			[]string{"assistant tool_call Bash: cat x", "tool tool_result Bash: The user doesn't want to proceed. the user said:\nuse tabs"}},
		{"feedback to a sub-agent", []string{call("t", "Edit", `{"file_path":"a.go"}`), result("t", `[{"type":"text","text":"Permission for this tool use was denied. The user said:\nuse tabs"}]`, `,"is_error":true`)},
			[]string{"assistant tool_call Edit: a.go", "user feedback Edit error: use tabs"}},
		{"a sub-agent is told by its agent", []string{userLine("u", `"look at the tests"`, `"isSidechain":true,"agentId":"a1",`), assistantLine("a", "m", `{"type":"text","text":"ok"}`)},
			[]string{"assistant text: look at the tests", "assistant text: ok"}},
		{"the echo of a sub-agent", []string{`{"type":"progress","uuid":"p","sessionId":"s","data":{"type":"agent_progress","message":{"type":"user","message":{"role":"user","content":"look at the tests"}}}}`}, nil},
		{"a stub of a long output", []string{call("t", "Bash", `{"command":"make"}`), result("t", `"<persisted-output>\nOutput too large (91KB). Full output saved to: /x/tool-results/b.txt\n\nPreview (first 2KB):\nok"`)},
			[]string{"assistant tool_call Bash: make", "tool tool_result Bash: <persisted-output>\nOutput too large (91KB). Full output saved to: /x/tool-results/b.txt\n\nPreview (first 2KB):\nok"}},
		{"a result before its call", []string{result("t", `"page"`), call("t", "WebFetch", `{"url":"https://x"}`)},
			[]string{"tool tool_result: page", "assistant tool_call WebFetch: https://x"}},
		{"odd content", []string{userLine("u", `null`), userLine("v", `7`), userLine("w", `[null,"x",{"type":"text"},{"type":"text","text":"kept"},{"type":"document","source":{}}]`), assistantLine("a", "m", `{"type":"tool_use","id":"t","name":"ExitPlanMode","input":"no"}`)},
			[]string{"user text: kept", "assistant tool_call ExitPlanMode: "}},
		{"rewound", []string{userLine("u1", `"first"`, `"parentUuid":"p",`), assistantLine("a", "m", `{"type":"text","text":"way one"}`), userLine("u2", `"second"`, `"parentUuid":"p",`)},
			[]string{"user text abandoned: first", "assistant text abandoned: way one", "user text: second"}},
		{"a record twice", []string{userLine("u", `"once"`), userLine("u", `"once"`), userLine("u", `"other"`)},
			[]string{"user text: once", "user text: other"}},
		{"a UUID names one record", []string{userLine("0b7e4f6c-1111-4222-8333-444455556666", `"once"`), userLine("0b7e4f6c-1111-4222-8333-444455556666", `"once, and its usage"`)},
			[]string{"user text: once"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := `{"type":"summary","leafUuid":"x"}` + "\n" + strings.Join(tt.lines, "\n") + "\n"
			turns, _ := read(t, data, transcript.Options{Object: "x.jsonl"})
			checkPieces(t, data, turns)
			if d := cmp.Diff(tt.want, brief(turns)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestClaudeIDs(t *testing.T) {
	t.Parallel()
	data := strings.Join([]string{
		assistantLine("a1", "m", `{"type":"text","text":"one"}`), userLine("u", `[{"type":"text","text":"x"},{"type":"text","text":"y"}]`),
		assistantLine("a2", "m", `{"type":"text","text":"two"}`), `{"type":"user","sessionId":"s","message":{"content":"no uuid"}}`,
	}, "\n")
	turns, _ := read(t, data, transcript.Options{})
	var ids []string
	for _, turn := range turns[:4] {
		ids = append(ids, turn.ID)
	}
	if d := cmp.Diff([]string{"s/a1", "s/u", "s/u#2", "s/a2"}, ids); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestPi(t *testing.T) {
	t.Parallel()
	data := `{"type":"session","version":3,"id":"p","timestamp":"2026-06-21T00:00:00Z","cwd":"/w"}
{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"start","timestamp":1784673261635}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-06-20T10:00:00Z","message":{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"}}]}}
{"type":"message","id":"3","parentId":"2","message":{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"out"}],"isError":true}}
{"type":"message","id":"4","parentId":"1","message":{"role":"user","content":[{"type":"text","text":"other way"}]}}
{"type":"custom_message","id":"5","parentId":"4","content":"injected"}
{"type":"branch_summary","id":"6","parentId":"5","fromId":"3","summary":"went wrong"}
`
	turns, _ := read(t, data, transcript.Options{Object: "x.jsonl"})
	checkPieces(t, data, turns)
	want := []string{
		"user text: start", "assistant text abandoned: a", "assistant tool_call bash abandoned: ls",
		"tool tool_result bash error abandoned: out", "user text: other way", "injected text: injected", "summary text: went wrong",
	}
	if d := cmp.Diff(want, brief(turns)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if turns[0].Time.Year() != 2026 || turns[0].TimeQuality != memory.TimeExact || turns[4].TimeQuality != memory.TimeHeader {
		t.Errorf("times: %v %s, %s", turns[0].Time, turns[0].TimeQuality, turns[4].TimeQuality)
	}
	// Without its header the session is named by the file.
	headless := data[strings.IndexByte(data, '\n')+1:]
	turns, r := read(t, headless, transcript.Options{Object: "a/2026-06-21T00-00-00-000Z_p.jsonl"})
	if r.Format() != transcript.FormatPi || turns[0].ID != "p/1" {
		t.Errorf("headless: format %s, id %s", r.Format(), turns[0].ID)
	}
}

// Where a record stands: its own folder, branch and session, else the last one
// named; a file's name counts only where no record names a session.
func TestClaudePlaces(t *testing.T) {
	t.Parallel()
	rec := func(uuid, fields string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,%s"message":{"role":"user","content":"words"}}`, uuid, fields)
	}
	for _, tt := range []struct {
		name, data string
		want       []string // session/uuid cwd branch
	}{
		{"several folders", rec("1", `"sessionId":"s","cwd":"/a","gitBranch":"main",`) + "\n" + rec("2", `"sessionId":"s","cwd":"/b","gitBranch":"",`) + "\n" + rec("3", `"sessionId":"s",`) + "\n",
			[]string{"s/1 /a main", "s/2 /b ", "s/3 /b "}},
		{"handed on in the middle of a line", rec("1", `"sessionId":"s","cwd":"/a",`) + rec("2", `"sessionId":"s","cwd":"/b",`) + rec("3", `"sessionId":"t","cwd":"/b",`),
			[]string{"s/1 /a ", "s/2 /b ", "t/3 /b "}},
		{"a continuation", rec("1", `"sessionId":"older","cwd":"/a","slug":"kind-blue-fox",`) + "\n" + rec("2", `"sessionId":"x","cwd":"/a",`) + "\n",
			[]string{"older/1 /a ", "x/2 /a "}},
		{"no session", rec("1", `"parentUuid":null,`) + "\n", []string{"x/1  "}},
		{"relocated", rec("1", `"sessionId":"s","cwd":"/a",`) + "\n" + `{"type":"relocated","sessionId":"s","relocatedCwd":"/c"}` + "\n" + rec("2", `"sessionId":"s",`) + "\n" + rec("3", `"sessionId":"s","cwd":"/a",`) + "\n",
			[]string{"s/1 /a ", "s/2 /c ", "s/3 /a "}},
		{"a worktree", rec("1", `"sessionId":"s","cwd":"/a",`) + "\n" + `{"type":"worktree-state","sessionId":"s","worktreeSession":{"originalCwd":"/a","worktreePath":"/trees/x"}}` + "\n" +
			rec("2", `"sessionId":"s","cwd":"/trees/x/cmd",`) + "\n" + `{"type":"worktree-state","sessionId":"s","worktreeSession":null}` + "\n" + rec("3", `"sessionId":"s","cwd":"/trees/xy",`) + "\n",
			[]string{"s/1 /a ", "s/2 /trees/x/cmd  of /a", "s/3 /trees/xy "}},
		{"a sub-agent's file", rec("1", `"isSidechain":true,"agentId":"a1","sessionId":"parent","cwd":"/a",`) + "\n", []string{"parent/1 /a "}},
		{"records before the first message", `{"type":"summary","summary":"t","leafUuid":"q"}` + "\n" + `{"type":"file-history-snapshot","messageId":"1","snapshot":{}}` + "\n" + rec("1", `"sessionId":"s","cwd":"/a",`) + "\n",
			[]string{"s/1 /a "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turns, r := read(t, tt.data, transcript.Options{Object: "-slug/x.jsonl"})
			checkPieces(t, tt.data, turns)
			var got []string
			for _, turn := range turns {
				at := turn.ID + " " + turn.Cwd + " " + turn.GitBranch
				if turn.Root != "" {
					at += " of " + turn.Root
				}
				got = append(got, at)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if s := r.Stats(); s.Bad+s.Pending > 0 || len(s.Unknown) > 0 {
				t.Errorf("bad %d, pending %d, unknown %v", s.Bad, s.Pending, s.Unknown)
			}
		})
	}
}

// White space of any kind is no prompt, and what is counted is what is given.
func TestClaudeBlankPrompt(t *testing.T) {
	t.Parallel()
	data := strings.Join([]string{userLine("u", `"\n\u2028 \u00a0"`), userLine("v", `" \u0085 go on"`)}, "\n")
	turns, r := read(t, data, transcript.Options{Object: "x.jsonl"})
	if n := r.Stats().Golden("").HumanPrompts; len(turns) != 1 || n != 1 {
		t.Errorf("%d prompts counted, turns %q", n, brief(turns))
	}
}
