package transcript_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

func cu(role, text string) string {
	return fmt.Sprintf(`{"role":%q,"message":{"content":[{"type":"text","text":%q}]}}`+"\n", role, text)
}

const cuText = "user:\n<user_info>\nWorkspace Path: /w/shop\n</user_info>\n<user_query>\nrun the tests\n\nassistant: is a word\n</user_query>\n\n" +
	"assistant:\n[Thinking] which ones?\n  all of them\n[Tool call] Shell\n  description: Run tests\n  command: go test ./...\n\n[Tool result] Shell\n  ok\n  FAIL\nOne fails.\n\n" +
	"assistant:\n[Tool call] Read\n  path=main.go\nDone.\n"

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, object, data string
		want               []string
		cwd                string
	}{
		{"plain", "u.jsonl", cu("user", "list it") + cu("assistant", "here") + `{"type":"turn_ended","status":"success"}` + "\n",
			[]string{"user text: list it", "assistant text: here"}, ""},
		{"wrapped", "u.jsonl", cu("user", "<user_info>\nOS: x\nWorkspace Path: /w/shop\n</user_info>\n<timestamp>Monday, Aug 24, 2026, 3:01 PM (UTC-5)</timestamp>\n<user_query>\nfix it\n</user_query>"),
			[]string{"injected text: <user_info>\nOS: x\nWorkspace Path: /w/shop\n</user_info>\n<timestamp>Monday, Aug 24, 2026, 3:01 PM (UTC-5)</timestamp>", "user text: fix it"}, "/w/shop"},
		{"two queries", "u.jsonl", cu("user", "<user_query>a</user_query>\n<attached_files>f</attached_files>\n<user_query>b"),
			[]string{"injected text: <attached_files>f</attached_files>", "user text: a\nb"}, ""},
		{"context without a query", "u.jsonl", cu("user", "<system_notification kind=\"x\">\ndone\n</system_notification>") + cu("user", "<git_status>clean</git_status> so go on") + cu("user", "<b>bold</b> words"),
			[]string{"injected text: <system_notification kind=\"x\">\ndone\n</system_notification>", "injected text: <git_status>clean</git_status>", "user text: so go on", "user text: <b>bold</b> words"}, ""},
		{"tools", "u.jsonl", `{"role":"assistant","message":{"content":[{"type":"text","text":"look"},{"type":"tool_use","name":"Read","input":{"path":"a.go"}},{"type":"tool_use","name":"Todo","input":{}},{"type":"thinking","thinking":"h"},{"type":"image"},3]}}` + "\n",
			[]string{"assistant text: look", "assistant tool_call Read: a.go", "assistant tool_call Todo: "}, ""},
		{"string content", "u.jsonl", `{"role":"user","message":{"content":"hi"}}` + "\n" + `{"role":"user","message":{"content":null}}` + "\n" + `{"role":"user","message":"x"}` + "\n" + `{"role":"robot","message":{"content":"x"}}` + "\n" + `{"type":"future"}` + "\n",
			[]string{"user text: hi"}, ""},
		{"text form", "u.txt", cuText, []string{
			"injected text: <user_info>\nWorkspace Path: /w/shop\n</user_info>", "user text: run the tests\n\nassistant: is a word",
			"assistant tool_call Shell: go test ./...", "tool tool_result Shell:   ok\n  FAIL", "assistant text: One fails.", "assistant tool_call Read: main.go", "assistant text: Done.",
		}, "/w/shop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turns := checkReading(t, tt.data, transcript.Options{Object: "agent-transcripts/" + tt.object})
			if d := cmp.Diff(tt.want, outline(turns)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			for _, turn := range turns {
				if turn.Format != transcript.FormatCursor || turn.Session != "u" {
					t.Errorf("turn %s: format %s, session %s", turn.ID, turn.Format, turn.Session)
				}
			}
			if got := turns[len(turns)-1].Cwd; got != tt.cwd {
				t.Errorf("cwd %q, want %q", got, tt.cwd)
			}
		})
	}
}

// A prompt's time is the time of what follows, with less certainty; the same
// words said again are another turn; a grown file keeps the ids.
func TestCursorTimesAndIDs(t *testing.T) {
	t.Parallel()
	data := cu("assistant", "before") + cu("user", "<timestamp>Monday, Aug 24, 2026, 3:01 PM (UTC-5:30)</timestamp>\n<user_query>\ngo on\n</user_query>") + cu("assistant", "done") +
		cu("user", "<timestamp>Tuesday, Aug 25, 2026</timestamp><user_query>go on</user_query>")
	turns := checkReading(t, data, transcript.Options{Object: "u.jsonl"})
	first := time.Date(2026, 8, 24, 20, 31, 0, 0, time.UTC)
	second := time.Date(2026, 8, 25, 0, 0, 0, 0, time.UTC)
	type stamp struct {
		Role    memory.Role
		Time    time.Time
		Quality memory.TimeQuality
	}
	var got []stamp
	for _, turn := range turns {
		got = append(got, stamp{turn.Role, turn.Time, turn.TimeQuality})
	}
	want := []stamp{
		{memory.RoleAssistant, time.Time{}, memory.TimeNone},
		{memory.RoleInjected, first, memory.TimeExact}, {memory.RoleUser, first, memory.TimeExact}, {memory.RoleAssistant, first, memory.TimeHeader},
		{memory.RoleInjected, second, memory.TimeExact}, {memory.RoleUser, second, memory.TimeExact},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	grown := checkReading(t, data+cu("user", "more"), transcript.Options{Object: "elsewhere/u.jsonl"})
	if d := cmp.Diff(turns, grown[:len(turns)]); d != "" {
		t.Errorf("grown (-want +got):\n%s", d)
	}
}

// A text file that only speaks of roles stays a document.
func TestCursorTextIsTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ object, data string }{
		{"a.txt", "user:\nis a heading here\n\nassistant:\nand so is this\n"},
		{"a.md", cuText},
		{"a.txt", "notes\n\nuser:\n<user_query>\nx\n</user_query>\n"},
	} {
		if _, r := read(t, tt.data, transcript.Options{Object: tt.object}); r.Format() == transcript.FormatCursor {
			t.Errorf("%s %q is read as a transcript", tt.object, tt.data)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cu("user", "<timestamp>Monday, Aug 24, 2026, 3:01 PM (UTC-5)</timestamp>\n<user_query>\nfix\n</user_query> x")+`{"type":"turn_ended"}`, false)
	f.Add(`{"role":"assistant","message":{"content":["a",{"type":"tool_use","name":"Read","input":{"path":"a\ud83d"}}]}}`, false)
	f.Add(cu("user", "<git_status>a</git_status><rules>b</rules><x_y c>d</x_y>e"), false)
	f.Add(cuText, true)
	f.Add("user:\n[Thinking]\n<user_query>\xff\r\n</user_query>\r\nassistant:\r\n[Tool call] X\r\n\tcommand: \xc3\r\n[Tool result]\r\n r\r\np", true)
	f.Fuzz(func(t *testing.T, data string, text bool) {
		object := "u.jsonl"
		if text {
			object = "u.txt"
		}
		checkReading(t, data, transcript.Options{Object: object, MaxLineBytes: 4096})
	})
}
