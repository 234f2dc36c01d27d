package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// tally is what formats.md section 1 says a Claude Code transcript holds. The
// counter below knows nothing of the reader: it decodes each line with
// encoding/json into maps, and looks at the whole file before it decides.
type tally struct {
	Human     int // user records that a person typed
	ToolUse   int // blocks
	Errors    int // tool results with is_error
	Rejected  int // of them, with the person's words
	Steering  []string
	Feedback  []string
	Calls     int      // turns of tool calls, each record once
	ErrorSays int      // turns of failed tools, each record once
	Records   []string // uuids of the records that say anything
}

type object = map[string]any

var reminderTag = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)

func clean(s string) string { return strings.TrimSpace(reminderTag.ReplaceAllString(s, "")) }

// decoded are the objects of a file, in file order (section 0 rules 1 to 5).
func decoded(data []byte) []object {
	var out []object
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for _, line := range bytes.Split(data, []byte("\n")) {
		d := json.NewDecoder(bytes.NewReader(bytes.TrimRight(line, "\r\x00")))
		for {
			var v any
			if d.Decode(&v) != nil {
				break
			}
			if o, ok := v.(object); ok {
				out = append(out, o)
			}
		}
	}
	return out
}

// parts are the blocks of a message's content.
func parts(message any) []object {
	m, _ := message.(object)
	switch c := m["content"].(type) {
	case string:
		return []object{{"type": "text", "text": c}}
	case []any:
		var out []object
		for _, e := range c {
			if o, ok := e.(object); ok {
				out = append(out, o)
			}
		}
		return out
	}
	return nil
}

// said is the text of a tool result.
func said(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		var out []string
		for _, e := range c {
			o, _ := e.(object)
			if s, ok := o["text"].(string); ok && o["type"] == "text" {
				out = append(out, s)
			}
		}
		return strings.Join(out, "\n")
	}
	return ""
}

func machine(text string) bool { // section 1.6 rule 3
	for _, p := range []string{
		"<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>",
		"<bash-stdout>", "<task-notification>", "[Request interrupted", "This session is being continued", "Caveat: The messages below",
	} {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

func count(data []byte) tally {
	var t tally
	records := decoded(data)
	seen, names := map[string]bool{}, map[string]string{}
	standing := map[string]bool{} // texts of user and attachment records
	says := map[string]bool{}
	var absorbed, attached []string
	for _, r := range records {
		for _, p := range parts(r["message"]) {
			if id, ok := p["id"].(string); ok && p["type"] == "tool_use" {
				names[id], _ = p["name"].(string)
			}
		}
	}
	for _, r := range records {
		kind, _ := r["type"].(string)
		if kind != "user" && kind != "assistant" && kind != "attachment" {
			continue
		}
		uuid, _ := r["uuid"].(string)
		again := uuid != "" && seen[uuid]
		ps := parts(r["message"])
		if uuid != "" && (len(ps) > 0 || kind == "attachment") {
			seen[uuid] = true
		}
		say := func() {
			if !again {
				says[uuid] = true
			}
		}
		if kind == "attachment" {
			a, _ := r["attachment"].(object)
			if mode, ok := a["commandMode"].(string); a["type"] != "queued_command" || ok && mode != "prompt" || again {
				continue
			}
			prompt, _ := a["prompt"].(string)
			if prompt = strings.TrimSpace(prompt); prompt != "" && !machine(prompt) {
				standing[prompt] = true
				attached = append(attached, prompt)
				say()
			}
			continue
		}
		m, _ := r["message"].(object)
		again = again || kind == "assistant" && m["model"] == "<synthetic>" || r["isApiErrorMessage"] == true
		human := false
		for _, p := range ps {
			text, _ := p["text"].(string)
			switch p["type"] {
			case "text":
				text = clean(text)
				if text == "" {
					continue
				}
				say()
				if kind == "user" && r["isMeta"] != true && r["isCompactSummary"] != true && r["isSidechain"] != true && !machine(text) && !strings.HasPrefix(text, "<bash-input>") {
					human = true
					if !again {
						standing[text] = true
					}
				}
			case "tool_use":
				if kind == "assistant" {
					t.ToolUse++
					say()
					if !again {
						t.Calls++
					}
				}
			case "tool_result":
				if kind != "user" {
					continue
				}
				text := said(p["content"])
				if clean(text) != "" {
					say()
				}
				if p["is_error"] == true {
					t.Errors++
					if !again && clean(text) != "" {
						t.ErrorSays++
					}
					if _, words, ok := strings.Cut(text, "the user said:\n"); ok && strings.HasPrefix(text, "The user doesn't want to") {
						words, _, _ = strings.Cut(words, "\n\nNote: The user's next message")
						t.Rejected++
						if !again {
							t.Feedback = append(t.Feedback, clean(words))
						}
					}
					continue
				}
				id, _ := p["tool_use_id"].(string)
				if rest, ok := strings.CutPrefix(text, "User has answered your questions: "); ok && names[id] == "AskUserQuestion" && !again {
					t.Feedback = append(t.Feedback, rest[:strings.LastIndexByte(rest, '"')+1])
				}
			}
		}
		if human {
			t.Human++
		}
	}
	var queue []string
	for _, r := range records {
		if r["type"] != "queue-operation" {
			continue
		}
		text, _ := r["content"].(string)
		switch r["operation"] {
		case "enqueue":
			queue = append(queue, strings.TrimSpace(text))
		case "popAll":
			queue = nil
		case "dequeue", "remove":
			if len(queue) == 0 {
				continue
			}
			if text = queue[0]; r["operation"] == "remove" && text != "" && !machine(text) && !standing[text] {
				absorbed = append(absorbed, text)
			}
			queue = queue[1:]
		}
	}
	// A queued slash command is run, not said.
	absorbed = slices.DeleteFunc(absorbed, func(s string) bool { return strings.HasPrefix(s, "/") && !strings.ContainsAny(s, " \n") })
	t.Steering = append(t.Steering, append(absorbed, attached...)...)
	slices.Sort(t.Steering)
	slices.Sort(t.Feedback)
	for id := range says {
		t.Records = append(t.Records, id)
	}
	slices.Sort(t.Records)
	return t
}

// found is the same of what the reader gives.
func found(tb testing.TB, data []byte) (tally, []memory.Turn) {
	tb.Helper()
	turns, r := read(tb, string(data), transcript.Options{Object: "x.jsonl"})
	checkPieces(tb, string(data), turns)
	g := r.Stats().Golden("")
	t := tally{Human: g.HumanPrompts, ToolUse: g.ToolUse, Errors: g.ToolResultErrors, Rejected: g.RejectFeedback}
	says := map[string]bool{}
	for _, turn := range turns {
		_, id, _ := strings.Cut(turn.ID, "/")
		id, _, _ = strings.Cut(id, "#")
		switch {
		case turn.Kind == memory.KindToolCall:
			t.Calls++
		case turn.Kind == memory.KindSteering:
			t.Steering = append(t.Steering, strings.TrimSpace(turn.Text()))
		case turn.Kind == memory.KindFeedback:
			t.Feedback = append(t.Feedback, strings.TrimSpace(turn.Text()))
		}
		if turn.Tool != nil && turn.Tool.IsError {
			t.ErrorSays++
		}
		if !strings.HasPrefix(id, "queue-") {
			says[id] = true
		}
	}
	if s := r.Stats(); s.Steering != len(t.Steering) || s.Feedback != len(t.Feedback) {
		tb.Errorf("stats say %d steering and %d feedback turns of %d and %d", s.Steering, s.Feedback, len(t.Steering), len(t.Feedback))
	}
	slices.Sort(t.Steering)
	slices.Sort(t.Feedback)
	for id := range says {
		t.Records = append(t.Records, id)
	}
	slices.Sort(t.Records)
	return t, turns
}

func TestClaudeCountsOverSamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(samples(t), "claude-code", "*.jsonl"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			want := count(data)
			got, _ := found(t, data)
			if strings.HasPrefix(filepath.Base(f), "cc15") {
				want.Records, got.Records = nil, nil // two records of one hand-made id there
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-counted +read:\n%s", d)
			}
		})
	}
}

// writer makes up a transcript of every record type, with damage.
type writer struct {
	*rand.Rand
	out  bytes.Buffer
	n    int
	last string
	open []string // calls without a result
	past []string // lines that may come again
}

func (w *writer) uuid() string {
	w.n++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", w.Uint32(), w.n)
}

func (w *writer) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *writer) words() string {
	s := w.pick("use pgx", "go on", "why does it fail", "keep the limit at five", "no, not that way", "ok") + w.pick("", fmt.Sprintf(" %d", w.IntN(40)))
	return w.pick("", "", "", "<system-reminder>\nbe careful\n</system-reminder>\n") + s + w.pick("", "", " ", "\n", " \u2028 é 😀", "<system-reminder>x</system-reminder>")
}

func (w *writer) line(r object) {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers, lists and maps only
	}
	if id, ok := r["uuid"].(string); ok {
		w.last = id
		if len(r) > 2 {
			w.past = append(w.past, string(b))
		}
	}
	w.raw(string(b))
}

func (w *writer) raw(s string) {
	w.out.WriteString(s + w.pick("\n", "\n", "\n", "\n", "\n", "\n", "\r\n", "\n\n", "", "\x00\n"))
}

func (w *writer) record(kind string, message any, extra object) {
	r := object{
		"type": kind, "uuid": w.uuid(), "parentUuid": w.last, "sessionId": "s", "timestamp": "2026-01-13T00:00:00.000Z",
		"cwd": w.pick("/w", "/w/sub", "/other"), "gitBranch": w.pick("main", "", "HEAD"), "isSidechain": false, "message": message,
	}
	for k, v := range extra {
		r[k] = v
	}
	w.line(r)
}

func (w *writer) assistant(id string, block object) {
	w.record("assistant", object{"id": id, "role": "assistant", "model": "m", "content": []any{block}, "usage": object{"output_tokens": w.IntN(9)}}, object{"requestId": "r"})
}

func (w *writer) user(content any, extra object) {
	w.record("user", object{"role": "user", "content": content}, extra)
}

func text(s string) object { return object{"type": "text", "text": s} }

// result answers a call; it may be any of those that wait.
func (w *writer) result(content any, isError bool) {
	id := "nobody"
	if len(w.open) > 0 {
		i := w.IntN(len(w.open))
		id = w.open[i]
		w.open = slices.Delete(w.open, i, i+1)
	}
	b := object{"type": "tool_result", "tool_use_id": id, "content": content}
	if isError {
		b["is_error"] = true
	} else if w.IntN(3) == 0 {
		b["is_error"] = false
	}
	w.user([]any{b}, object{"toolUseResult": w.pick("x", "Error: x"), "sourceToolAssistantUUID": w.last})
}

func (w *writer) step() {
	switch w.IntN(26) {
	case 0, 1:
		w.user(w.words(), nil)
	case 2:
		w.user([]any{text(w.words()), object{"type": "image", "source": object{"type": "base64", "data": "AAAA"}}, text(w.words())}, nil)
	case 3: // parts of one message, results between them
		id := w.uuid()
		w.assistant(id, object{"type": "thinking", "thinking": w.pick("", "hm"), "signature": "x"})
		w.assistant(id, text(w.words()))
		for range 1 + w.IntN(3) {
			call := "toolu_" + w.uuid()
			w.open = append(w.open, call)
			w.assistant(id, object{"type": "tool_use", "id": call, "name": w.pick("Bash", "Read", "Task"), "input": object{"command": "ls"}})
			if w.IntN(2) == 0 {
				w.result(w.words(), w.IntN(3) == 0)
			}
		}
	case 4:
		w.result([]any{text(w.words()), object{"type": "image"}}, w.IntN(2) == 0)
	case 5:
		w.result("<tool_use_error>no such file</tool_use_error>", true)
	case 6:
		w.result("The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n"+w.pick("use tabs", "stop\n\nand think")+w.pick("", "\n\nNote: The user's next message may contain a correction."), true)
	case 7:
		w.result("The user doesn't want to take this action right now. STOP what you are doing.", true)
	case 8: // answers come at once
		call := "toolu_" + w.uuid()
		w.assistant(w.uuid(), object{"type": "tool_use", "id": call, "name": "AskUserQuestion", "input": object{"questions": []any{}}})
		w.user([]any{object{"type": "tool_result", "tool_use_id": call, "content": `User has answered your questions: "Which db?"="pg", "Why?"="it \"works\"". You can now continue.`}}, nil)
	case 9:
		w.assistant(w.uuid(), object{"type": "tool_use", "id": "toolu_" + w.uuid(), "name": "ExitPlanMode", "input": object{"plan": "1. do it"}})
		w.user("Implement the following plan:\n\n1. do it", object{"planContent": "1. do it"})
	case 10:
		w.record("assistant", object{"id": w.uuid(), "model": "<synthetic>", "content": []any{text("API Error: 529")}}, object{"isApiErrorMessage": true})
	case 11:
		w.line(object{"type": "system", "subtype": "compact_boundary", "uuid": w.uuid(), "parentUuid": nil, "logicalParentUuid": "gone", "sessionId": "s", "content": "Conversation compacted"})
		w.user("This session is being continued from a previous conversation.", object{"isCompactSummary": true, "isVisibleInTranscriptOnly": true})
	case 12:
		w.user([]any{text("Base directory for this skill: x")}, object{"isMeta": true, "sourceToolUseID": "t"})
	case 13:
		w.user(w.pick("<command-name>/review</command-name>\n<command-args></command-args>", "<local-command-stdout>x</local-command-stdout>", "[Request interrupted by user]", "<bash-stdout>ok</bash-stdout>",
			"<task-notification>\ndone</task-notification>", "<bash-input>make test</bash-input>", "Caveat: The messages below were generated"), nil)
	case 14:
		w.line(object{"type": "progress", "uuid": w.uuid(), "sessionId": "s", "data": object{"type": w.pick("bash_progress", "hook_progress", "agent_progress"), "message": object{"type": "user", "message": object{"role": "user", "content": "look"}}}})
	case 15:
		w.line(object{"type": w.pick("file-history-snapshot", "summary", "ai-title", "last-prompt", "mode", "pr-link", "worktree-state", "atis-latch"), "sessionId": "s", "messageId": w.last, "summary": "x", "content": "x"})
	case 16, 17:
		q := object{"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "timestamp": "2026-01-13T00:00:00.000Z"}
		if s := w.pick(w.words(), w.words(), "/compact", "<task-notification>x", ""); s != "" {
			q["content"] = strings.TrimSpace(clean(s))
		}
		w.line(q)
	case 18, 19:
		w.line(object{"type": "queue-operation", "operation": w.pick("remove", "remove", "remove", "dequeue", "popAll"), "sessionId": "s"})
	case 20:
		w.line(object{"type": "attachment", "uuid": w.uuid(), "parentUuid": w.last, "sessionId": "s", "attachment": object{"type": w.pick("queued_command", "skill_listing"), "prompt": w.pick("be quick", "go on"), "commandMode": w.pick("prompt", "task-notification")}})
	case 21:
		if len(w.past) > 0 {
			w.raw(w.past[w.IntN(len(w.past))])
		}
	case 22:
		w.raw(w.pick("not json", `{"type":"user","uuid":"cut","message":{"content":"x"`, "42", `"massive error"`, "[1]", `{"a":}`, "null"))
		w.out.WriteByte('\n')
	case 23:
		w.record("user", w.pick("error", ""), nil)
		w.user(nil, nil)
		w.user([]any{nil, "bare", 3, object{"type": "text"}, object{"text": "no type"}}, nil)
	case 24:
		w.line(object{"type": fmt.Sprintf("new-%d", w.IntN(5)), "uuid": w.uuid(), "sessionId": "s", "message": object{"role": "user", "content": "hidden"}})
	case 25:
		w.user("look at the tests", object{"isSidechain": true, "agentId": "a1"})
	}
}

// TestClaudeCounts compares the reader with the counter over made-up
// transcripts of every record type, with lines joined, cut, repeated and
// broken.
func TestClaudeCounts(t *testing.T) {
	t.Parallel()
	sum := tally{}
	for seed := range uint64(300) {
		w := &writer{Rand: rand.New(rand.NewPCG(seed, 4))}
		if seed%7 == 0 {
			w.out.WriteString("\ufeff")
		}
		w.line(object{"type": "file-history-snapshot", "messageId": "x", "snapshot": object{}})
		for range w.IntN(120) {
			w.step()
		}
		data := w.out.Bytes()
		if seed%5 == 0 && len(data) > 200 {
			data = data[:len(data)-1-w.IntN(100)] // the writer was still at it
		}
		if seed%3 != 0 {
			data = bytes.ReplaceAll(data, []byte("é"), []byte(`\u00e9`))
		}
		want := count(data)
		got, turns := found(t, data)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d (-counted +read):\n%s", seed, d)
		}
		for i, turn := range turns {
			if turn.Seq != i {
				t.Fatalf("seed %d: turn %d has seq %d", seed, i, turn.Seq)
			}
		}
		// Read on from a line in the middle, it gives the rest.
		from := int64(bytes.LastIndexByte(data[:len(data)/2], '\n') + 1)
		rest, _ := read(t, string(data), transcript.Options{Object: "x.jsonl", From: from})
		if len(rest) > len(turns) {
			t.Fatalf("seed %d: %d turns from byte %d on, %d in all", seed, len(rest), from, len(turns))
		}
		tail := turns[len(turns)-len(rest):]
		for i := range tail {
			tail[i].Abandoned = rest[i].Abandoned // the window begins at From
		}
		if len(rest) > 0 && !reflect.DeepEqual(tail, rest) {
			t.Fatalf("seed %d, from byte %d (-whole +resumed):\n%s", seed, from, cmp.Diff(tail, rest))
		}
		sum.Human += want.Human
		sum.Calls += want.Calls
		sum.Errors += want.Errors
		sum.Steering = append(sum.Steering, want.Steering...)
		sum.Feedback = append(sum.Feedback, want.Feedback...)
	}
	if sum.Human < 500 || sum.Calls < 500 || sum.Errors < 500 || len(sum.Steering) < 150 || len(sum.Feedback) < 250 {
		t.Errorf("the generator is too tame: %d prompts, %d calls, %d errors, %d steering, %d feedback", sum.Human, sum.Calls, sum.Errors, len(sum.Steering), len(sum.Feedback))
	}
}
