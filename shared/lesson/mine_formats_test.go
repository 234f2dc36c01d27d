package lesson_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// One story in the forms of several agents: a test fails, a file is edited, the
// test passes.
func TestFormats(t *testing.T) {
	t.Parallel()
	const red, green = `--- FAIL: TestA (0.00s)\n    a_test.go:9: got 1, want 2\nFAIL\nFAIL\tx/a\t0.01s`, `ok  \tx/a\t0.01s`
	nested := func(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) }
	want := []string{"passed go.test_says `go test ./a` a.go +1 -1 `return 2`"}
	for _, tt := range []struct {
		name, object, data string
		want               []string
	}{
		{"gemini", "session-1.json", `{"sessionId":"s","projectHash":"h","messages":[{"id":"u","timestamp":"2026-01-01T00:00:00Z","type":"user","content":"go"},{"id":"m","timestamp":"2026-01-01T00:00:00Z","type":"gemini","content":"","toolCalls":[
{"id":"c1","name":"run_shell_command","args":{"command":"go test ./a","description":"d"},"status":"success","result":[{"functionResponse":{"response":{"output":"Command: go test ./a\nDirectory: (root)\nOutput: ` + red + `\nError: (none)\nExit Code: 1\nSignal: (none)\nProcess Group PGID: 7"}}}]},
{"id":"c2","name":"replace","args":{"file_path":"a.go","old_string":"return 1","new_string":"return 2"},"status":"success","result":[{"functionResponse":{"response":{"output":"Successfully modified"}}}]},
{"id":"c3","name":"run_shell_command","args":{"command":"go test ./a"},"status":"success","result":[{"functionResponse":{"response":{"output":"Command: go test ./a\nDirectory: (root)\nOutput: ` + green + `\nProcess Group PGID: 8"}}}]}]}]}`, want},

		{"openai messages", "a.jsonl", `{"messages":[{"role":"user","content":"go"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"` + nested(`{"command":"go test ./a"}`) + `"}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"` + red + `"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"edit_file","arguments":"` + nested(`{"path":"a.go","old_str":"return 1","new_str":"return 2"}`) + `"}}]},` +
			`{"role":"tool","tool_call_id":"c2","content":"done"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c3","type":"function","function":{"name":"bash","arguments":"` + nested(`{"command":"go test ./a"}`) + `"}}]},` +
			`{"role":"tool","tool_call_id":"c3","content":"` + green + `"},{"role":"assistant","content":"Fixed."}]}` + "\n", want},

		{"opencode", "export.json", `{"info":{"id":"ses_0123456789abcdef","directory":"/w"},"messages":[{"info":{"id":"m1","role":"user","time":{"created":1767225600000}},"parts":[{"type":"text","text":"go"}]},{"info":{"id":"m2","role":"assistant","time":{"created":1767225601000}},"parts":[` +
			`{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"go test ./a"},"output":"` + red + `"}},` +
			`{"type":"tool","callID":"c2","tool":"edit","state":{"status":"completed","input":{"filePath":"/w/a.go","oldString":"return 1","newString":"return 2"},"output":""}},` +
			`{"type":"tool","callID":"c3","tool":"bash","state":{"status":"completed","input":{"command":"go test ./a"},"output":"` + green + `"}}]}]}`, want},

		{"pi, the person runs it", "s.jsonl", `{"type":"session","id":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00Z"}` + "\n" +
			`{"type":"message","timestamp":"2026-01-01T00:00:01Z","message":{"role":"bashExecution","command":"go test ./a","output":"` + red + `","exitCode":1}}` + "\n" +
			`{"type":"message","timestamp":"2026-01-01T00:00:02Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"edit","arguments":{"path":"/w/a.go","oldText":"return 1","newText":"return 2"}}]}}` + "\n" +
			`{"type":"message","timestamp":"2026-01-01T00:00:03Z","message":{"role":"toolResult","toolCallId":"c","toolName":"edit","content":[{"type":"text","text":"ok"}],"isError":false}}` + "\n" +
			`{"type":"message","timestamp":"2026-01-01T00:00:04Z","message":{"role":"bashExecution","command":"go test ./a","output":"` + green + `","exitCode":0}}` + "\n", want},

		{"codex, cut before the pass", "rollout.jsonl", `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}` + "\n" +
			`{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"c","arguments":"` + nested(`{"cmd":"go test ./a"}`) + `"}}` + "\n" +
			`{"timestamp":"2026-01-01T00:00:02Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"Process exited with code 1\nOutput:\n` + red + `"}}` + "\n", nil},
	} {
		rd, err := transcript.Open(strings.NewReader(tt.data), transcript.Options{Object: tt.object})
		if err != nil {
			t.Fatal(err)
		}
		var turns []memory.Turn
		for turn, err := range rd.Turns() {
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, turn)
		}
		var got []string
		for _, l := range lesson.Mine(turns, options) {
			checkSpans(t, []byte(tt.data), &l)
			line := l.Outcome + " " + l.Rule + " `" + l.Command + "`"
			for _, c := range l.Changes {
				line += " " + c.Path + " +1 -1 `" + c.Quote + "`"
				if c.Added != 1 || c.Removed != 1 {
					t.Errorf("%s: +%d -%d", tt.name, c.Added, c.Removed)
				}
			}
			got = append(got, line)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s, read as %s (-want +got):\n%s", tt.name, rd.Format(), d)
		}
	}
}
