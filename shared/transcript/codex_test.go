package transcript_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

const (
	parentThread = "019b0000-0000-7000-8000-000000000001"
	forkThread   = "019b0000-1000-7000-8000-000000000002" // 4,096 ms later
	oldTurn      = "019b0000-0800-7000-8000-000000000003"
	newTurn      = "019b0000-1010-7000-8000-000000000004"
)

// cx is one line of a rollout, at a second of a minute.
func cx(second float64, typ, payload string) string {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(second * float64(time.Second)))
	return fmt.Sprintf(`{"timestamp":%q,"type":%q,"payload":%s}`+"\n", at.Format("2006-01-02T15:04:05.000Z"), typ, payload)
}

func cxMeta(second float64, id, more string) string {
	return cx(second, "session_meta", fmt.Sprintf(`{"id":%q,"timestamp":"2026-03-01T10:00:00Z","cwd":"/w/shop","cli_version":"0.128.0"%s}`, id, more))
}

func cxSay(second float64, role, text string) string {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return cx(second, "response_item", fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, kind, text))
}

func cxEvent(second float64, typ, text string) string {
	return cx(second, "event_msg", fmt.Sprintf(`{"type":%q,"message":%q}`, typ, text))
}

func cxTask(second float64, turn string) string {
	return cx(second, "event_msg", fmt.Sprintf(`{"type":"task_started","turn_id":%q}`, turn))
}

func TestCodex(t *testing.T) {
	t.Parallel()
	meta := cxMeta(0, parentThread, "")
	call := func(name, args string) string {
		return cx(5, "response_item", fmt.Sprintf(`{"type":"function_call","name":%q,"call_id":"c1","arguments":%s}`, name, args))
	}
	answer := func(out string) string {
		return cx(6, "response_item", fmt.Sprintf(`{"type":"function_call_output","call_id":"c1","output":%s}`, out))
	}
	for _, tt := range []struct {
		name, data string
		want       []string
	}{
		{"written twice", meta + cxSay(1, "user", "fix it") + cxEvent(1, "user_message", "fix it") + cxEvent(2, "agent_message", "done") + cxSay(2, "assistant", "done"),
			[]string{"user text: fix it", "assistant text: done"}},
		{"events first", meta + cxEvent(1, "user_message", "fix it") + cxSay(1, "user", "fix it") + cxEvent(2, "agent_message", "done") + cxSay(2, "assistant", "done"),
			[]string{"user text: fix it", "assistant text: done"}},
		{"events only", meta + cxEvent(1, "user_message", "fix it") + call("shell", `"{\"command\":[\"ls\"]}"`) + cxEvent(2, "agent_message", "done"),
			[]string{"user text: fix it", "assistant tool_call shell: ls", "assistant text: done"}},
		{"user role is polluted", meta +
			cxSay(1, "user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nuse tabs\n</INSTRUCTIONS>") +
			cxSay(1, "user", "<environment_context>\n<cwd>/w</cwd>\n</environment_context>") +
			cxSay(1, "user", "<user_instructions>\nx\n</user_instructions>") + cxSay(1, "user", "<INSTRUCTIONS>y") +
			cxSay(1, "user", "<permissions instructions>z</permissions instructions>") + cxSay(1, "user", "<skills_instructions>z</skills_instructions>") +
			cxSay(2, "user", "<turn_aborted>\nby the user\n</turn_aborted>\n\nuse spaces") +
			cxSay(3, "user", "# Context from my IDE setup:\n\n## Open tabs:\n- a.go\n\n## My request for Codex:\nrename it\n") +
			cxSay(3, "user", "<b> is a tag") + cxSay(4, "developer", "be brief"),
			[]string{
				"injected text: # AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nuse tabs\n</INSTRUCTIONS>",
				"injected text: <environment_context>\n<cwd>/w</cwd>\n</environment_context>",
				"injected text: <user_instructions>\nx\n</user_instructions>", "injected text: <INSTRUCTIONS>y",
				"injected text: <permissions instructions>z</permissions instructions>", "injected text: <skills_instructions>z</skills_instructions>",
				"injected text: <turn_aborted>\nby the user\n</turn_aborted>", "user text: use spaces",
				"injected text: # Context from my IDE setup:\n\n## Open tabs:\n- a.go\n\n## My request for Codex:", "user text: rename it\n",
				"user text: <b> is a tag", "system text: be brief",
			}},
		{"images", meta + cx(1, "response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"<image name=[Image #1]>"},{"type":"input_image","image_url":"data:x"},{"type":"input_text","text":"</image>"},{"type":"input_text","text":"like this"}]}`),
			[]string{"user text: like this"}},
		{"a person's command", meta + cxSay(1, "user", "<user_shell_command>\n<command>\ngo test\n</command>\n<result>\nExit code: 1\nDuration: 2 seconds\nOutput:\nFAIL\n</result>\n</user_shell_command>"),
			[]string{"user command: go test", "tool tool_result shell error: Exit code: 1\nDuration: 2 seconds\nOutput:\nFAIL"}},
		{"not kept", meta + cx(1, "response_item", `{"type":"reasoning","summary":[],"encrypted_content":"gAAAA"}`) + cx(1, "response_item", `{"type":"ghost_snapshot"}`) +
			cx(1, "compacted", `{"message":"a summary","replacement_history":[{"type":"message","role":"user","content":"old"}]}`) + cx(1, "event_msg", `{"type":"token_count"}`) +
			cx(1, "world_state", `{}`) + cx(1, "event_msg", `7`) + cx(1, "response_item", `{"type":"message","role":"user","content":null}`), nil},
		{"arguments in a string", meta + call("exec_command", `"{\"cmd\":\"rg \\\"a\\\"\\ncat b\",\"workdir\":\"/w\"}"`) + answer(`"Chunk ID: 1\nProcess exited with code 2\nOutput:\nno such file"`),
			[]string{"assistant tool_call exec_command: rg \\\"a\\\"\ncat b", "tool tool_result exec_command error: Chunk ID: 1\nProcess exited with code 2\nOutput:\nno such file"}},
		{"arguments an object", meta + call("shell", `{"command":["bash","-lc","go vet"]}`) + answer(`{"content":"fine","success":true}`),
			[]string{"assistant tool_call shell: go vet", "tool tool_result shell: fine"}},
		{"arguments absent or broken", meta + call("apply_patch", `null`) + call("shell", `"{\"command\":"`), []string{"assistant tool_call apply_patch: ", "assistant tool_call shell: {\"command\":"}},
		{"output in a string", meta + call("shell", `"{\"command\":[\"bash\",\"-lc\",\"go test\"]}"`) + answer(`"{\"output\":\"--- FAIL\\n\\tx_test.go: é \\\"q\\\"\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"`),
			[]string{"assistant tool_call shell: go test", "tool tool_result shell error: --- FAIL\n\\tx_test.go: é \\\"q\\\"\n"}},
		{"output in parts", meta + call("view", `"{\"path\":\"a.png\"}"`) + answer(`[{"type":"input_text","text":"seen"},{"type":"input_image","image_url":"x"}]`),
			[]string{"assistant tool_call view: a.png", "tool tool_result view: seen"}},
		{"patch", meta + cx(1, "response_item", `{"type":"custom_tool_call","name":"apply_patch","call_id":"p","input":"*** Begin Patch\n*** Update File: a/b.go\n@@\n-x\n+y\n*** Add File: c.md\n+z\n*** End Patch"}`) +
			cx(1, "response_item", `{"type":"custom_tool_call_output","call_id":"p","output":"{\"output\":\"Success. Updated\",\"metadata\":{\"exit_code\":0}}"}`) +
			call("shell", `"{\"command\":[\"apply_patch\",\"*** Begin Patch\\n*** Delete File: d.go\\n*** End Patch\"]}"`),
			[]string{"assistant tool_call apply_patch: a/b.go\nc.md", "tool tool_result apply_patch: Success. Updated", "assistant tool_call shell: d.go"}},
		{"other calls", meta + cx(1, "response_item", `{"type":"local_shell_call","call_id":"l","action":{"type":"exec","command":["git","status"]}}`) +
			cx(1, "response_item", `{"type":"web_search_call","action":{"type":"search","query":"pgx v5"}}`),
			[]string{"assistant tool_call local_shell: git\nstatus", "assistant tool_call web_search: pgx v5"}},
		{"bare", `{"id":"old-1","timestamp":"2025-05-01T10:00:00Z","instructions":null,"git":{"branch":"main"}}` + "\n" + `{"record_type":"state"}` + "\n" +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}` + "\n" +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}` + "\n",
			[]string{"user text: hello", "assistant text: hi"}},
		{"cut off and written again", meta + strings.TrimSuffix(cxSay(1, "user", "first"), "\n")[:60] + cxSay(1, "user", "first") + cxSay(2, "user", "second")[:70] + "\n" + cxSay(2, "user", "second") + cxSay(2, "user", "second"),
			[]string{"user text: first", "user text: second"}},
		{"said again later", meta + cxSay(1, "user", "go on") + cxSay(9, "user", "go on"), []string{"user text: go on", "user text: go on"}},
		{"fork", cxMeta(4.1, forkThread, `,"forked_from_id":"`+parentThread+`"`) + cxMeta(4.1, parentThread, "") + cxTask(4.1, oldTurn) +
			cxSay(4.1, "user", "of the parent") + cxEvent(4.1, "agent_message", "of the parent") + cxSay(4.1, "assistant", "of the parent") +
			cxTask(4.2, newTurn) + cxSay(4.3, "user", "of the fork") + cxSay(9, "assistant", "done"),
			[]string{"user text: of the fork", "assistant text: done"}},
		{"sub-agent that did nothing", cxMeta(4.1, forkThread, `,"source":{"subagent":{"thread_spawn":{"parent_thread_id":"`+parentThread+`","depth":1}}}`) + cxMeta(4.1, parentThread, "") +
			cxSay(4.1, "user", "of the parent") + cxEvent(4.1, "agent_message", "of the parent"), nil},
		{"fork by ordinal", strings.ReplaceAll(cxMeta(4.1, "child", `,"parent_thread_id":"x","subagent_history_start_ordinal":2`)+cxSay(4.1, "user", "of the parent")+cxSay(4.2, "user", "task"), "", ""),
			[]string{"user text: task"}},
		{"fork of old versions", cxMeta(4.1, "child", `,"forked_from_id":"x"`) + cxSay(4.101, "user", "of the parent") + cxSay(4.102, "assistant", "of the parent") + cxSay(20, "user", "of the fork"),
			[]string{"user text: of the fork"}},
		{"fork whose copy was written slowly", cxMeta(4.1, forkThread, `,"forked_from_id":"x"`) + cxSay(5.5, "user", "of the parent") + cxSay(9, "assistant", "of the parent") + cxTask(10, newTurn) + cxSay(20, "user", "of the fork"),
			[]string{"user text: of the fork"}},
		{"fork of old versions, resumed by a new one", cxMeta(4.1, "child", `,"forked_from_id":"x"`) + cxSay(4.2, "user", "of the parent") + cxSay(9, "user", "of the fork") + cx(9, "turn_context", `{"cwd":"/w"}`) + cxTask(10, newTurn) + cxSay(20, "user", "more"),
			[]string{"user text: of the fork", "user text: more"}},
		{"rolled back", meta + cxSay(1, "user", "one") + cxSay(2, "assistant", "a") + cxSay(3, "user", "two") + cxSay(4, "assistant", "b") + cxSay(5, "user", "three") +
			cx(6, "event_msg", `{"type":"thread_rolled_back","num_turns":2}`) + cxSay(7, "user", "four"),
			[]string{"user text: one", "assistant text: a", "user text: two (abandoned)", "assistant text: b (abandoned)", "user text: three (abandoned)", "user text: four"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turns, r := read(t, tt.data, transcript.Options{Object: "rollout.jsonl"})
			checkPieces(t, tt.data, turns)
			if r.Format() != transcript.FormatCodex {
				t.Fatalf("format %s", r.Format())
			}
			if d := cmp.Diff(tt.want, outline(turns)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			for i, turn := range turns {
				if turn.Seq != i {
					t.Errorf("turn %d has Seq %d", i, turn.Seq)
				}
			}
		})
	}
}

// outline is a turn a line, with what matters of its tool and its branch.
func outline(turns []memory.Turn) (out []string) {
	for _, turn := range turns {
		s := string(turn.Role) + " " + string(turn.Kind)
		if turn.Tool != nil {
			s += " " + turn.Tool.Name
			if turn.Tool.IsError {
				s += " error"
			}
		}
		s += ": " + turn.Text()
		if turn.Abandoned {
			s += " (abandoned)"
		}
		out = append(out, s)
	}
	return out
}

func TestCodexEnvelope(t *testing.T) {
	t.Parallel()
	data := cxMeta(0, parentThread, `,"git":{"branch":"fix","repository_url":"https://u:t0ken@git.example/shop.git"}`) +
		cx(1, "turn_context", `{"cwd":"/w/shop/web"}`) +
		`{"timestamp":1767323045.5,"ordinal":7,"type":"response_item","payload":{"type":"message","role":"user","content":"by seconds"}}` + "\n" +
		`{"timestamp":1767323045500,"type":"response_item","payload":{"type":"message","role":"user","content":"by milliseconds"}}` + "\n" +
		`{"type":"response_item","payload":{"type":"message","role":"user","content":"without"}}` + "\n"
	turns, r := read(t, data, transcript.Options{Object: "x.jsonl"})
	checkPieces(t, data, turns)
	if len(turns) != 3 {
		t.Fatalf("%d turns", len(turns))
	}
	for i, quality := range []memory.TimeQuality{memory.TimeExact, memory.TimeExact, memory.TimeHeader} {
		got := turns[i]
		if got.Cwd != "/w/shop/web" || got.GitBranch != "fix" || got.Remote != "https://git.example/shop.git" || got.Session != parentThread || got.TimeQuality != quality {
			t.Errorf("turn %d: %+v", i, got)
		}
	}
	if got, want := turns[0].Time, time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC); !got.Equal(want) || !turns[1].Time.Equal(want) {
		t.Errorf("times %v and %v, want %v", got, turns[1].Time, want)
	}
	if want := parentThread + "/7"; turns[0].ID != want {
		t.Errorf("id %s, want %s", turns[0].ID, want)
	}
	if d := cmp.Diff([]string{"/w/shop", "/w/shop/web"}, r.Stats().Cwds); d != "" {
		t.Errorf("cwds (-want +got):\n%s", d)
	}
	// An id is of the line without its time: a converter's copy has the same.
	other, _ := read(t, strings.Replace(data, "1767323045500", `"2026-01-02T03:04:05.500Z"`, 1), transcript.Options{})
	if turns[1].ID != other[1].ID {
		t.Errorf("ids %s and %s of one line with its time written in two ways", turns[1].ID, other[1].ID)
	}
}

func TestCodexCompressed(t *testing.T) {
	t.Parallel()
	data := cxMeta(0, parentThread, "") + cxSay(1, "user", strings.Repeat("a long message ", 2000)) + cxSay(2, "assistant", "done")
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := read(t, data, transcript.Options{Object: "rollout.jsonl"})
	turns, r := read(t, string(enc.EncodeAll([]byte(data), nil)), transcript.Options{Object: "rollout.jsonl.zst"})
	if d := cmp.Diff(plain, turns); d != "" || len(turns) != 2 {
		t.Errorf("%d turns (-want +got):\n%s", len(turns), d)
	}
	if r.Stats().Compression != "zstd" {
		t.Errorf("compression %q", r.Stats().Compression)
	}
}

// A header larger than what detection looks at, and an unknown type.
func TestCodexLongHeader(t *testing.T) {
	t.Parallel()
	data := cxMeta(0, parentThread, `,"base_instructions":{"text":"`+strings.Repeat("rules ", 30000)+`"}`) + cx(1, "future_record", `{}`) + cx(1, "event_msg", `{"type":"future_event"}`) + cxSay(1, "user", "hello")
	turns, r := read(t, data, transcript.Options{Object: "x.jsonl"})
	if d := cmp.Diff([]string{"user text: hello"}, outline(turns)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"future_record": 1, "event_msg/future_event": 1}, r.Stats().Unknown); d != "" {
		t.Errorf("unknown (-want +got):\n%s", d)
	}
}

// A snapshot's turns are those of the grown file, and a fork shares none with
// its parent.
func TestCodexGrown(t *testing.T) {
	t.Parallel()
	data := cxMeta(0, parentThread, "") + cxSay(1, "user", "one") + cxSay(2, "assistant", "same") + cxSay(3, "assistant", "same") + cxSay(4, "user", "two")
	all, _ := read(t, data, transcript.Options{Object: "a.jsonl"})
	end := strings.Index(data, "\n")
	for range 2 {
		end += strings.Index(data[end+1:], "\n") + 1
	}
	part, _ := read(t, data[:end+1], transcript.Options{Object: "b.jsonl"})
	for i := range part {
		if part[i].ID != all[i].ID {
			t.Errorf("turn %d: id %s in the snapshot, %s in the whole", i, part[i].ID, all[i].ID)
		}
	}
	rest, _ := read(t, data, transcript.Options{Object: "a.jsonl", From: int64(end + 1)})
	if d := cmp.Diff(all[len(part):], rest); d != "" || len(part) != 2 {
		t.Errorf("resumed after %d turns (-want +got):\n%s", len(part), d)
	}
	ids := map[string]bool{}
	for _, turn := range all {
		ids[turn.ID] = true
	}
	fork := cxMeta(4.1, forkThread, `,"forked_from_id":"`+parentThread+`"`) + data + cxTask(5, newTurn) + cxSay(6, "user", "three")
	own, _ := read(t, fork, transcript.Options{Object: "f.jsonl"})
	if d := cmp.Diff([]string{"user text: three"}, outline(own)); d != "" {
		t.Errorf("fork (-want +got):\n%s", d)
	}
	for _, turn := range own {
		if ids[turn.ID] {
			t.Errorf("the fork has the parent's turn %s", turn.ID)
		}
	}
}

// Events that the window has given out already stay; the numbers go on.
func TestCodexManyEvents(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(cxMeta(0, parentThread, ""))
	long := strings.Repeat("word ", transcript.WindowBytes/5/8)
	for i := range 12 {
		b.WriteString(cxEvent(float64(i), "agent_message", fmt.Sprint(i, long)))
		b.WriteString(cxEvent(float64(i), "user_message", fmt.Sprint("u", i)))
	}
	b.WriteString(cxSay(30, "assistant", "real"))
	b.WriteString(cxSay(31, "user", "real too"))
	turns, _ := read(t, b.String(), transcript.Options{Object: "x.jsonl"})
	n := 0
	for i, turn := range turns {
		if turn.Seq != i {
			t.Errorf("turn %d has Seq %d", i, turn.Seq)
		}
		if strings.HasPrefix(turn.Text(), "u") {
			n++
		}
	}
	if got := outline(turns[len(turns)-2:]); !cmp.Equal(got, []string{"assistant text: real", "user text: real too"}) {
		t.Errorf("last turns %q", got)
	}
	if n == 0 || n == 12 {
		t.Errorf("%d event turns had been given out", n)
	}
}

func FuzzCodex(f *testing.F) {
	meta := cxMeta(0, parentThread, "")
	for _, s := range []string{
		meta + cxEvent(1, "user_message", "a") + cxSay(1, "user", "a") + cx(6, "event_msg", `{"type":"thread_rolled_back","num_turns":1}`) + cxSay(2, "assistant", "b"),
		cxMeta(4.1, forkThread, `,"forked_from_id":"x"`) + meta + cxSay(5.5, "user", "p") + cxEvent(6, "user_message", "q") + cxTask(10, newTurn) + cxSay(20, "user", "f"),
		meta + cx(5, "response_item", `{"type":"function_call","name":"shell","call_id":"c","arguments":"{\"command\":[\"bash\",\"-lc\",\"a\\nb \\\\\\\" \ud83d\\u00e9\"]}"}`) +
			cx(5, "response_item", `{"type":"function_call_output","call_id":"c","output":"{\"output\":\"x\\ny\\\\n\\t\",\"metadata\":{\"exit_code\":1}}"}`),
		`{"id":"o","timestamp":"2025-05-01T10:00:00Z","instructions":null}` + "\n" + `{"type":"message","role":"user","content":["<environment_context> <cwd>/x</cwd></environment_context> hi"]}`,
		meta + cxSay(1, "user", "cut")[:40] + cxSay(1, "user", "<user_shell_command><command>ls</command><result>Exit code: 1</result></user_shell_command>"),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		checkReading(t, data, transcript.Options{Object: "rollout.jsonl"})
	})
}
