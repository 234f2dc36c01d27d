package lesson_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// A script is a session, a step a line; lines that begin with a tab are the
// step's text. The script itself is the object that spans cite.
//
//	run COMMAND | more of it    a command is called
//	fail [CODE]                 its result: Claude Code's form
//	ok                          its result: no error
//	says                        its result, of a format that tells no errors
//	quiet                       it ended, and printed nothing
//	edit PATH / write PATH      lines "- old", "+ new"
//	refused                     the call before was refused
//	tool NAME, agent NAME, say, user, abandoned, derived, parallel, results
type script struct {
	t     testing.TB
	text  string
	turns []memory.Turn
	agent string
	flags memory.Turn
	calls int
	open  []string // ids of calls without a result, oldest first
}

func play(t testing.TB, text string) []memory.Turn {
	s := &script{t: t, text: text}
	at := 0
	for at < len(text) {
		line, next := cutLine(text, at)
		body := []memory.Piece{}
		for next < len(text) && text[next] == '\t' {
			l, n := cutLine(text, next)
			body = append(body, memory.Piece{Text: l[1:], Start: int64(next + 1), End: int64(next + len(l)), Enc: memory.RawEncoding})
			next = n
		}
		s.step(line, at, body)
		at = next
	}
	return s.turns
}

func cutLine(s string, at int) (string, int) {
	if k := strings.IndexByte(s[at:], '\n'); k >= 0 {
		return s[at : at+k], at + k + 1
	}
	return s[at:], len(s)
}

func (s *script) add(t memory.Turn) {
	t.Session, t.Agent, t.Format, t.Cwd = "s", s.agent, "claude-code", "/w"
	t.Abandoned, t.Derived = s.flags.Abandoned, s.flags.Derived
	t.ID, t.Seq = strconv.Itoa(len(s.turns)), len(s.turns)
	t.Time, t.TimeQuality = time.Date(2026, 5, 1, 8, 0, len(s.turns), 0, time.UTC), memory.TimeExact
	s.turns = append(s.turns, t)
}

func (s *script) call(tool memory.Tool, pieces []memory.Piece) {
	s.calls++
	tool.CallID = "c" + strconv.Itoa(s.calls)
	s.open = append(s.open, tool.CallID)
	s.add(memory.Turn{Role: memory.RoleAssistant, Kind: memory.KindToolCall, Trust: memory.TrustAssistant, Tool: &tool, Pieces: pieces})
}

func (s *script) result(isError bool, body []memory.Piece) {
	if len(s.open) == 0 {
		s.t.Fatal("a result without a call")
	}
	id := s.open[0]
	s.open = s.open[1:]
	s.add(memory.Turn{Role: memory.RoleTool, Kind: memory.KindToolResult, Trust: memory.TrustTool, Tool: &memory.Tool{Name: "Bash", CallID: id, IsError: isError}, Pieces: body})
}

func (s *script) step(line string, at int, body []memory.Piece) {
	word, rest, _ := strings.Cut(line, " ")
	from := int64(at + len(line) - len(rest))
	arg := memory.Piece{Text: rest, Start: from, End: from + int64(len(rest)), Enc: memory.RawEncoding}
	switch word {
	case "run":
		pieces := append([]memory.Piece{arg}, body...)
		t := memory.Turn{Pieces: pieces}
		s.call(memory.Tool{Name: "Bash", Target: rest}, pieces)
		if len(body) > 0 {
			s.turns[len(s.turns)-1].Tool.Target = t.Text()
		}
	case "fail":
		if rest == "" {
			rest = "1"
		}
		head := memory.Piece{Text: "Exit code " + rest, Start: -1}
		s.result(true, append([]memory.Piece{head}, body...))
	case "ok":
		s.result(false, body)
	case "bare": // an error without words about it
		s.result(true, body)
	case "says":
		s.result(false, body)
		s.turns[len(s.turns)-1].Format = "openai-messages"
	case "quiet":
		s.open = s.open[:len(s.open)-1]
		s.turns[len(s.turns)-1].Tool.Quiet = true
	case "edit", "write", "delete":
		e := memory.FileEdit{Kind: memory.EditKind(word), Path: rest}
		for _, p := range body {
			sign, _, _ := strings.Cut(p.Text, " ")
			if sign == "-" {
				e.Removed++
				continue
			}
			e.Added++
			if e.Text.Text == "" {
				e.Text, e.From, e.To = p, len("+ "), len(p.Text)
			}
		}
		s.call(memory.Tool{Name: "Edit", Target: rest, Edits: []memory.FileEdit{e}}, []memory.Piece{arg})
	case "tool":
		s.call(memory.Tool{Name: rest}, nil)
	case "say":
		s.add(memory.Turn{Role: memory.RoleAssistant, Kind: memory.KindText, Trust: memory.TrustAssistant, Pieces: []memory.Piece{arg}})
	case "user":
		s.add(memory.Turn{Role: memory.RoleUser, Kind: memory.KindText, Trust: memory.TrustUser, Pieces: []memory.Piece{arg}})
	case "refused":
		id := s.open[0]
		s.open = s.open[1:]
		s.add(memory.Turn{Role: memory.RoleUser, Kind: memory.KindFeedback, Trust: memory.TrustUser, Tool: &memory.Tool{CallID: id, IsError: true}, Pieces: []memory.Piece{arg}})
	case "agent":
		s.agent = strings.TrimSpace(rest)
	case "abandoned":
		s.flags.Abandoned = rest == "on"
	case "derived":
		s.flags.Derived = rest == "on"
	case "#", "":
	default:
		s.t.Fatalf("no step %q", word)
	}
}

// outline is a lesson in a few lines.
func outline(object string, l *lesson.Lesson) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s `%s`\n  failure: %s\n", l.Outcome, l.Tool, l.Rule, l.Command, l.Failure)
	for _, c := range l.Changes {
		fmt.Fprintf(&b, "  %s %s +%d -%d %q\n", c.Kind, c.Path, c.Added, c.Removed, c.Quote)
	}
	for _, s := range l.Spans {
		fmt.Fprintf(&b, "  %s: %q\n", s.Role, object[s.Start:s.End])
	}
	fmt.Fprintf(&b, "  %s\n", l.Text)
	return b.String()
}

func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/mine", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for _, l := range lesson.Mine(play(t, d.Input), lesson.MinerOptions{Object: "o", ETag: "e"}) {
				checkSpans(t, []byte(d.Input), &l)
				out.WriteString(outline(d.Input, &l))
			}
			if out.Len() == 0 {
				return "none\n"
			}
			return out.String()
		})
	})
}

// checkSpans holds each span against the bytes of the object.
func checkSpans(t testing.TB, object []byte, l *lesson.Lesson) {
	t.Helper()
	if len(l.Spans) == 0 || l.Spans[0].Role != lesson.RoleFailed {
		t.Errorf("lesson %q begins with no span of its failure", l.Failure)
	}
	for _, s := range l.Spans {
		if s.Start < 0 || s.End <= s.Start || s.End > int64(len(object)) {
			t.Errorf("span [%d,%d) of %d bytes", s.Start, s.End, len(object))
			continue
		}
		if b := object[s.Start:s.End]; s.Redacted == (s.SHA256 != "") || !s.Redacted && s.SHA256 != memory.Sum(b) {
			t.Errorf("span [%d,%d) %q: redacted %v, sha256 %q", s.Start, s.End, b, s.Redacted, s.SHA256)
		}
	}
}
