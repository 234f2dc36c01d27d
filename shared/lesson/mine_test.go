package lesson_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

var update = flag.Bool("update", false, "write the golden files anew")

var start = time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)

var options = lesson.MinerOptions{Object: "transcripts/shop/s.jsonl", ETag: "e1", TenantKey: []byte("k")}

// The sessions of testdata hold, in the form that Claude Code and two versions
// of Codex write, two cures, one flaky test and one failure that stays.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude-code", "codex-exec", "codex-shell"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", name+".jsonl")
			object, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := lesson.Mine(turnsOf(t, file), options)
			outcomes := map[string]int{}
			for i := range got {
				checkSpans(t, object, &got[i])
				if err := got[i].Check(); err != nil {
					t.Error(err)
				}
				outcomes[got[i].Outcome]++
			}
			if outcomes[lesson.Passed] != 2 || outcomes[lesson.Flaky] != 1 || len(got) != 3 {
				t.Errorf("outcomes %v, want two cures and a flaky test", outcomes)
			}
			b, err := json.MarshalIndent(got, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".lessons.json")
			if *update {
				if err := os.WriteFile(golden, append(b, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(b)+"\n"); d != "" {
				t.Errorf("lessons (-want +got):\n%s", d)
			}
		})
	}
}

// sessions are all the turns that tests have.
func sessions(t testing.TB) map[string][]memory.Turn {
	out := map[string][]memory.Turn{}
	for _, name := range []string{"claude-code", "codex-exec", "codex-shell"} {
		out[name] = turnsOf(t, filepath.Join("testdata", name+".jsonl"))
	}
	files, err := filepath.Glob("testdata/mine/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(b), "\nmine\n")[1:] {
			text, _, _ := strings.Cut(part, "----\n")
			out[fmt.Sprintf("%s#%d", file, i)] = play(t, text)
		}
	}
	return out
}

// withoutSaid drops what depends on where a part ends.
func withoutSaid(ls []lesson.Lesson) []lesson.Lesson {
	out := slices.Clone(ls)
	for i := range out {
		out[i].Text, _, _ = strings.Cut(out[i].Text, " The agent said: ")
		out[i].Spans = slices.DeleteFunc(slices.Clone(out[i].Spans), func(s lesson.Span) bool { return s.Role == lesson.RoleSaid })
	}
	return out
}

// A session that comes in two parts gives the lessons of the whole, wherever
// it is cut; and the same turns again give nothing.
func TestCut(t *testing.T) {
	t.Parallel()
	for name, turns := range sessions(t) {
		whole := lesson.Mine(turns, options)
		for cut := range turns {
			got := lesson.Mine(turns[:cut], options)
			m := lesson.NewMiner(options)
			for i := range turns {
				m.Add(&turns[i], i < cut)
				got = append(got, m.Lessons()...)
			}
			got = append(got, m.Flush()...)
			if d := cmp.Diff(withoutSaid(whole), withoutSaid(got)); d != "" {
				t.Fatalf("%s cut before turn %d (-whole +parts):\n%s", name, cut, d)
			}
		}
		m := lesson.NewMiner(options)
		for i := range turns {
			m.Add(&turns[i], true)
		}
		if again := m.Flush(); len(again) > 0 {
			t.Errorf("%s: known turns gave %d lessons again", name, len(again))
		}
	}
}

// Sessions that stand between one another in one object give each its own.
func TestInterleaved(t *testing.T) {
	t.Parallel()
	all := sessions(t)
	names := []string{"claude-code", "codex-exec", "codex-shell"}
	want := map[string][]lesson.Lesson{}
	var mixed []memory.Turn
	for i := 0; ; i++ {
		more := false
		for _, name := range names {
			if i < len(all[name]) {
				mixed, more = append(mixed, all[name][i]), true
			}
		}
		if !more {
			break
		}
	}
	for _, name := range names {
		for _, l := range lesson.Mine(all[name], options) {
			want[l.Session] = append(want[l.Session], l)
		}
	}
	got := map[string][]lesson.Lesson{}
	for _, l := range lesson.Mine(mixed, options) {
		got[l.Session] = append(got[l.Session], l)
	}
	if d := cmp.Diff(want, got); d != "" || len(want) != len(names) {
		t.Errorf("lessons (-apart +mixed):\n%s", d)
	}
}

// Secrets are in no field of a lesson.
func TestRedacted(t *testing.T) {
	t.Parallel()
	secrets := []string{"hunter2-Xk29sLq81", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"}
	n := 0
	for name, turns := range sessions(t) {
		for _, l := range lesson.Mine(turns, options) {
			b, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range secrets {
				if bytes.Contains(b, []byte(s)) {
					t.Errorf("%s: a lesson holds the secret %s", name, s)
				}
			}
			n += bytes.Count(b, []byte("[REDACTED:"))
			for _, s := range l.Spans {
				if s.Redacted && (s.HMAC == "" || s.SHA256 != "") {
					t.Errorf("%s: span of a secret with a plain hash: %+v", name, s)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no redaction anywhere: the sessions with secrets gave no lesson")
	}
}

// What a miner holds does not grow with the session.
func TestBounded(t *testing.T) {
	t.Parallel()
	m := lesson.NewMiner(options)
	for i := range 4_000 {
		session := fmt.Sprint("s", i%100)
		cmd := fmt.Sprintf("go test ./p%d", i)
		add := func(t memory.Turn) { t.Session, t.Format = session, "claude-code"; m.Add(&t, false) }
		id := fmt.Sprint(i)
		add(memory.Turn{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Bash", Target: cmd, CallID: id}})
		add(memory.Turn{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Edit", CallID: "e" + id, Edits: []memory.FileEdit{{Kind: memory.EditChange, Path: id}}}})
		if i%3 > 0 {
			text := fmt.Sprintf("# x\na%d.go:1:2: undefined: foo%d", i, i)
			add(memory.Turn{Kind: memory.KindToolResult, Role: memory.RoleTool, Tool: &memory.Tool{CallID: id, IsError: true}, Pieces: []memory.Piece{{Text: text, End: int64(len(text))}}})
		}
	}
	threads, calls, fails, changes := m.Held()
	if threads > lesson.MaxThreads || calls > threads*lesson.MaxCalls || fails > threads*lesson.MaxFails || changes > threads*lesson.MaxDeeds {
		t.Errorf("%d threads hold %d calls, %d failures, %d changes", threads, calls, fails, changes)
	}
	one := lesson.NewMiner(options)
	for i := range 3_000 {
		id := fmt.Sprint(i)
		text := fmt.Sprintf("# x\na.go:1:2: undefined: foo%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
		for _, turn := range []memory.Turn{
			{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Bash", Target: "go build ./q" + id, CallID: id}},
			{Kind: memory.KindToolResult, Tool: &memory.Tool{CallID: id, IsError: true}, Pieces: []memory.Piece{{Text: text, End: int64(len(text))}}},
			{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Edit", CallID: "e" + id, Edits: []memory.FileEdit{{Kind: memory.EditChange, Path: id}}}},
		} {
			one.Add(&turn, false)
		}
	}
	_, calls, fails, changes = one.Held()
	if calls > lesson.MaxCalls || fails != lesson.MaxFails || changes > lesson.MaxDeeds {
		t.Errorf("one thread holds %d calls, %d failures, %d changes", calls, fails, changes)
	}
}

// Whatever a session holds, its lessons are ones that can be stored.
func TestStorable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é\x00\u2028\x1b[31m<&>", 4_000)
	text := "npm error code ERESOLVE " + long + "\nnpm error ERESOLVE unable to resolve dependency tree " + long + "\n"
	session := strings.Repeat("s", 500)
	var turns []memory.Turn
	add := func(turn memory.Turn) {
		turn.Session, turn.Format = session, "claude-code"
		turns = append(turns, turn)
	}
	piece := memory.Piece{Text: text, End: int64(len(text)), Enc: memory.RawEncoding}
	add(memory.Turn{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Bash", Target: "npm ci", CallID: "1"}, Pieces: []memory.Piece{piece}})
	add(memory.Turn{Kind: memory.KindToolResult, Tool: &memory.Tool{CallID: "1", IsError: true}, Pieces: []memory.Piece{piece}})
	for i := range 30 {
		add(memory.Turn{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Write", CallID: "e", Edits: []memory.FileEdit{{
			Kind: memory.EditWrite, Path: fmt.Sprint(i, long), Text: piece, To: len(text),
		}}}})
	}
	add(memory.Turn{Kind: memory.KindToolCall, Tool: &memory.Tool{Name: "Bash", Target: "npm ci", CallID: "2", Quiet: true}, Pieces: []memory.Piece{piece}})
	add(memory.Turn{Kind: memory.KindText, Role: memory.RoleAssistant, Pieces: []memory.Piece{piece}})
	got := lesson.Mine(turns, options)
	if len(got) != 1 {
		t.Fatalf("%d lessons, want 1", len(got))
	}
	if err := got[0].Check(); err != nil {
		t.Error(err)
	}
	if n := len(got[0].Text); n > lesson.MaxText {
		t.Errorf("%d bytes of text", n)
	}
}
