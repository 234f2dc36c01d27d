package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

const (
	claudeCall = `{"type":"assistant","uuid":"u%d","sessionId":"s1","message":{"role":"assistant","content":[{"type":"tool_use","id":"t%[1]d","name":"%s","input":%s}]}}` + "\n"
	codexHead  = `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}` + "\n"
	patch      = `*** Begin Patch\n*** Update File: a.go\n@@\n-old\n-older\n+new \"x\"\n*** Add File: b.go\n+}\n+package b\n*** Delete File: c.go\n*** End Patch\n`
)

// What calls are to change in files, with the first changed line.
func TestEdits(t *testing.T) {
	t.Parallel()
	nested := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, tt := range []struct {
		name, data string
		want       []string
	}{
		{"claude edit", fmt.Sprintf(claudeCall, 1, "Edit", `{"file_path":"/w/a.go","old_string":"a\nb\nc\n","new_string":"a\n\tB \"q\"\nc\n","replace_all":false}`),
			[]string{`edit /w/a.go +1 -1 "B \"q\""`}},
		{"claude write", fmt.Sprintf(claudeCall, 1, "Write", `{"file_path":"/w/a.go","content":"/**\n * é\n */\n"}`), []string{`write /w/a.go +3 -0 "* é"`}},
		{"claude removal", fmt.Sprintf(claudeCall, 1, "Edit", `{"file_path":"/w/a.go","old_string":"a\nb\nc","new_string":"a\nc"}`), []string{`edit /w/a.go +0 -1 "b"`}},
		{"claude multi", fmt.Sprintf(claudeCall, 1, "MultiEdit", `{"file_path":"/w/a.go","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d\ne"},7]}`),
			[]string{`edit /w/a.go +1 -1 "b"`, `edit /w/a.go +2 -1 "d"`}},
		{"claude notebook", fmt.Sprintf(claudeCall, 1, "NotebookEdit", `{"notebook_path":"/w/a.ipynb","new_source":"x = 1"}`), []string{`edit /w/a.ipynb +1 -0 "x = 1"`}},
		{"claude read", fmt.Sprintf(claudeCall, 1, "Read", `{"file_path":"/w/a.go","content":"x"}`), nil},
		{"claude bash", fmt.Sprintf(claudeCall, 1, "Bash", `{"command":"echo new_string"}`), nil},
		{"odd arguments", fmt.Sprintf(claudeCall, 1, "Edit", `{"file_path":7,"old_string":null,"new_string":["x"]}`), nil},
		{"no object", fmt.Sprintf(claudeCall, 1, "Edit", `"x"`), nil},
		{"pi edit", `{"type":"session","id":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00Z"}` + "\n" +
			`{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"edit","arguments":{"path":"a.go","oldText":"x","newText":"y\nz"}}]}}` + "\n",
			[]string{`edit a.go +2 -1 "y"`}},
		{"codex custom patch", codexHead + `{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"c","input":"` + patch + `"}}` + "\n",
			[]string{`edit a.go +1 -2 "new \"x\""`, `write b.go +2 -0 "package b"`, `delete c.go +0 -0 ""`}},
		{"codex patch in a shell", codexHead + `{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"function_call","name":"shell","call_id":"c","arguments":"` +
			nested.Replace(`{"command":["bash","-lc","apply_patch <<'EOF'\n`+patch+`EOF"]}`) + `"}}` + "\n",
			[]string{`edit a.go +1 -2 "new \\\"x\\\""`, `write b.go +2 -0 "package b"`, `delete c.go +0 -0 ""`}},
		{"openai arguments", `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"write_file","arguments":"` +
			nested.Replace(`{"path":"a.txt","content":"one\ntwo\n"}`) + `"}}]}]}` + "\n",
			[]string{`write a.txt +2 -0 "one"`}},
		{"gemini replace", `{"sessionId":"s","projectHash":"h","messages":[{"id":"m","timestamp":"2026-01-01T00:00:00Z","type":"gemini","content":"","toolCalls":[{"id":"c","name":"replace","args":{"file_path":"/w/a","old_string":"x","new_string":"y"},"status":"success","result":[]}]}]}`,
			[]string{`edit /w/a +1 -1 "y"`}},
	} {
		turns, _ := read(t, tt.data, transcript.Options{Object: "o.jsonl"})
		var got []string
		for _, turn := range turns {
			if turn.Tool == nil {
				continue
			}
			for _, e := range turn.Tool.Edits {
				got = append(got, fmt.Sprintf("%s %s +%d -%d %q", e.Kind, e.Path, e.Added, e.Removed, e.Text.Text[e.From:e.To]))
				p := e.Text
				if p.Text == "" {
					continue
				}
				raw, err := p.Enc.Append(nil, p.Text, 0, len(p.Text))
				if err != nil || string(raw) != tt.data[p.Start:p.End] {
					t.Errorf("%s: piece %q is %q in the object (%v)", tt.name, raw, tt.data[p.Start:p.End], err)
				}
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: edits (-want +got):\n%s", tt.name, d)
		}
	}
}

// A large file's text is not kept whole, and its lines are counted.
func TestEditsBounded(t *testing.T) {
	t.Parallel()
	big := strings.Repeat(`line é\n`, 200_000)
	turns, _ := read(t, fmt.Sprintf(claudeCall, 1, "Write", `{"file_path":"/w/a","content":"`+big+`"}`), transcript.Options{})
	e := turns[0].Tool.Edits[0]
	if e.Added != 200_000 || len(e.Text.Text) > 10<<10 {
		t.Errorf("+%d, %d bytes kept", e.Added, len(e.Text.Text))
	}
	patch := strings.Repeat(`*** Add File: a\n+b\n`, 5_000)
	turns, _ = read(t, codexHead+`{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"c","input":"*** Begin Patch\n`+patch+`"}}`+"\n", transcript.Options{})
	if n := len(turns[0].Tool.Edits); n != 64 {
		t.Errorf("%d edits of one patch, want the bound", n)
	}
}

// A result without text has no turn: the call says so. A sub-agent's turns name it.
func TestQuiet(t *testing.T) {
	t.Parallel()
	result := `{"type":"user","uuid":"r%d","sessionId":"s1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%[1]d","content":"%s","is_error":%v}]}}` + "\n"
	data := fmt.Sprintf(claudeCall, 1, "Bash", `{"command":"go build"}`) + fmt.Sprintf(result, 1, "", false) +
		fmt.Sprintf(claudeCall, 2, "Bash", `{"command":"go vet"}`) + fmt.Sprintf(result, 2, "x", false) +
		fmt.Sprintf(claudeCall, 3, "Bash", `{"command":"false"}`) + fmt.Sprintf(result, 3, "", true) +
		fmt.Sprintf(claudeCall, 4, "Bash", `{"command":"cut off"}`) +
		strings.Replace(fmt.Sprintf(claudeCall, 5, "Bash", `{"command":"sub"}`), `"uuid"`, `"isSidechain":true,"agentId":"a7","uuid"`, 1) +
		strings.Replace(fmt.Sprintf(claudeCall, 6, "Bash", `{"command":"sub"}`), `"uuid"`, `"isSidechain":true,"uuid"`, 1)
	turns, _ := read(t, data, transcript.Options{})
	var got []string
	for _, turn := range turns {
		if turn.Kind == memory.KindToolCall {
			got = append(got, fmt.Sprintf("%s quiet=%v agent=%q", turn.Tool.Target, turn.Tool.Quiet, turn.Agent))
		}
	}
	want := []string{`go build quiet=true agent=""`, `go vet quiet=false agent=""`, `false quiet=false agent=""`, `cut off quiet=false agent=""`, `sub quiet=false agent="a7"`, `sub quiet=false agent="sidechain"`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}
