package lesson_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// anyTurns makes turns of any bytes: three say what a turn is, and the text
// follows up to the next line end.
func anyTurns(b []byte) (turns []memory.Turn, object string) {
	object = strings.ToValidUTF8(string(b), "?")
	kinds := []memory.Kind{memory.KindToolCall, memory.KindToolResult, memory.KindText, memory.KindCommand, memory.KindFeedback, memory.KindToolCall, memory.KindToolResult}
	roles := []memory.Role{memory.RoleAssistant, memory.RoleUser, memory.RoleTool, memory.RoleInjected}
	tools := []string{"Bash", "Edit", "shell", "Read", "mcp__x__y", "", "apply_patch"}
	formats := []string{"claude-code", "openai-messages", "pi", "codex"}
	for at := 0; at < len(object) && len(turns) < 400; {
		line, next := cutLine(object, at)
		if len(line) < 3 {
			at = next
			continue
		}
		op := line[0]
		p := memory.Piece{Text: line[3:], Start: int64(at + 3), End: int64(at + len(line)), Enc: memory.RawEncoding}
		if !utf8.ValidString(p.Text) || !utf8.ValidString(line[:3]) {
			p = memory.Piece{Text: strings.ToValidUTF8(p.Text, "?"), Start: -1}
		}
		t := memory.Turn{
			Session: "s", Kind: kinds[int(op)%len(kinds)], Role: roles[int(line[1])%len(roles)], Format: formats[int(line[1]/8)%len(formats)],
			Pieces: []memory.Piece{p}, Abandoned: line[1] == 0x7f, Derived: line[1] == 0x7e, Seq: len(turns), Cwd: "/w",
			Tool: &memory.Tool{Name: tools[int(line[2])%len(tools)], Target: p.Text, CallID: fmt.Sprint(line[2] % 5), IsError: line[1]&1 == 1, Quiet: line[1]&6 == 6},
		}
		if line[2]%7 == 1 {
			t.Tool.Edits = []memory.FileEdit{{Kind: memory.EditChange, Path: "/w/a", Added: 1, Text: p, To: len(p.Text)}}
		}
		if line[1]%16 == 3 {
			t.Agent = "one"
		}
		if line[1]%16 == 5 {
			t.Tool = nil
		}
		turns, at = append(turns, t), next
	}
	return turns, object
}

// FuzzMiner: any sequence of turns ends, gives lessons that are lessons, with
// spans inside the object and of its bytes, and gives them again.
func FuzzMiner(f *testing.F) {
	for _, s := range []string{
		"\x00\x00\x00go test ./...\n\x01\x01\x00--- FAIL: TestA\n\x00\x00\x01a.go\n\x01\x00\x01ok\n\x00\x00\x00go test ./...\n\x01\x00\x00ok  \tx/a\t0.01s\n\x02\x00\x00Done it.\n",
		"\x00\x00\x00x y\n\x01\x01\x00/bin/sh: 1: x: not found\n\x00\x00\x00sudo x y\n\x01\x00\x00fine\n",
		"\x03\x01\x00make\n\x01\x01\x00make: *** [a] Error 1 password=hunter2-Xk29sLq81\n\x03\x01\x00make\n\x01\x00\x00ok\n",
		"\x00\x06\x00go vet ./...\n\x00\x00\x00cat <<EOF\n\x00\x00\x00((((((((\n\x00\x00\x00'a\n",
	} {
		f.Add([]byte(s))
	}
	opt := options
	opt.Time = start
	f.Fuzz(func(t *testing.T, b []byte) {
		turns, object := anyTurns(b)
		got := lesson.Mine(turns, opt)
		for i := range got {
			if err := got[i].Check(); err != nil {
				t.Fatalf("%+v: %v", got[i], err)
			}
			checkSpans(t, []byte(object), &got[i])
		}
		again := lesson.Mine(turns, opt)
		if fmt.Sprint(got) != fmt.Sprint(again) {
			t.Fatal("the same turns give other lessons")
		}
		parts := lesson.Mine(turns[:len(turns)/2], opt)
		m := lesson.NewMiner(opt)
		for i := range turns {
			m.Add(&turns[i], i < len(turns)/2)
		}
		parts = append(parts, m.Flush()...)
		if len(parts) != len(got) {
			t.Fatalf("%d lessons of the whole, %d of its parts", len(got), len(parts))
		}
	})
}

// FuzzCommand: any line is read, and runs all that it runs.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{
		"cd a && FOO=1 timeout 5 go test ./... 2>&1 | tail -5", "cat <<'E'\nx\nE", "a;b|c&&d||e&", "if a; then b; fi", "$(a) `b` ${c} $((1+2))",
		"((((", "'", "bash -c 'bash -c \"bash -c x\"'", "npx -y -- jest", "npm run", "git -C x commit -m y", "xargs", "env", "sudo -u", "{ a; b; }", "a=b", "\\", "make TEST=x", "\x00\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if !lesson.Covers(line, line) {
			t.Errorf("%q does not cover itself", line)
		}
		if !lesson.Alike(line, line) {
			t.Errorf("%q differs from itself", line)
		}
		lesson.Effect(line)
		lesson.Masked(line)
	})
}
