package chunk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/chunk"
	"github.com/mneme-ai/mneme/shared/memory"
)

// said is a turn with one piece of raw source at offset at.
func said(id string, role memory.Role, text string, at int64) memory.Turn {
	trust := map[memory.Role]memory.Trust{
		memory.RoleUser: memory.TrustUser, memory.RoleAssistant: memory.TrustAssistant, memory.RoleTool: memory.TrustTool,
		memory.RoleNote: memory.TrustUser, memory.RoleInjected: memory.TrustInjected,
	}[role]
	return memory.Turn{
		ID: id, Session: "s", Role: role, Kind: memory.KindText, Trust: trust,
		Pieces: []memory.Piece{{Text: text, Start: at, End: at + int64(len(text)), Enc: memory.RawEncoding}},
		Time:   time.Date(2026, 1, 13, 0, 0, 39, 236e6, time.UTC), TimeQuality: memory.TimeExact,
		From: at, To: at + int64(len(text)),
	}
}

func tool(id string, kind memory.Kind, name, text string, isError bool) memory.Turn {
	t := said(id, memory.RoleTool, text, 0)
	t.Kind, t.Tool = kind, &memory.Tool{Name: name, IsError: isError}
	return t
}

func TestLayout(t *testing.T) {
	t.Parallel()
	call := tool("c", memory.KindToolCall, "Bash", "go test ./...", false)
	feedback := said("f", memory.RoleUser, "not like that", 60)
	feedback.Kind = memory.KindFeedback
	bare := said("b", memory.RoleAssistant, "", 80)
	bare.Kind, bare.Pieces, bare.Tool = memory.KindToolCall, nil, &memory.Tool{Name: "Todo Write"}
	got := chunks(t, options(), []memory.Turn{
		said("u", memory.RoleUser, "Use pgx v5.", 0), said("x", memory.RoleInjected, "skill body", 20), call,
		tool("r", memory.KindToolResult, "Bash", "FAIL", true), feedback, bare,
	})
	want := `[user 2026-01-13T00:00:39Z]
Use pgx v5.

[tool_call Bash 2026-01-13T00:00:39Z]
go test ./...

[tool_result Bash error 2026-01-13T00:00:39Z]
FAIL

[user feedback 2026-01-13T00:00:39Z]
not like that

[tool_call Todo_Write 2026-01-13T00:00:39Z]
`
	if len(got) != 1 {
		t.Fatalf("%d chunks", len(got))
	}
	if d := cmp.Diff(want, got[0].Text); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"user": 2, "tool": 2, "assistant": 1}, got[0].Roles); d != "" {
		t.Errorf("roles (-want +got):\n%s", d)
	}
	if got[0].Trust != memory.TrustTool || got[0].Continues || !got[0].Turns[0].First || got[0].Turns[1].First {
		t.Errorf("trust %s, continues %v, first %v %v", got[0].Trust, got[0].Continues, got[0].Turns[0].First, got[0].Turns[1].First)
	}
}

func TestDialogueIsCutBetweenMessages(t *testing.T) {
	t.Parallel()
	opt := options()
	opt.Tokens = 100
	var in []memory.Turn
	for i := range 20 {
		in = append(in, said(fmt.Sprint("t", i), memory.RoleUser, strings.Repeat("word ", 20), int64(i)*200))
	}
	got := chunks(t, opt, in)
	n := 0
	for i, c := range got {
		if c.Tokens > opt.Tokens || c.Split || c.Continues != (i > 0) {
			t.Errorf("chunk %d: %d tokens, split %v, continues %v", i, c.Tokens, c.Split, c.Continues)
		}
		n += len(c.Turns)
	}
	if n != 20 || len(got) < 7 {
		t.Errorf("%d turns in %d chunks", n, len(got))
	}
}

func TestLongMessageIsSplitAtLines(t *testing.T) {
	t.Parallel()
	opt := options()
	opt.Tokens = 100
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("line %d of the message", i))
	}
	lines[50] = strings.Repeat("a very long line ", 60)
	text := strings.Join(lines, "\n")
	got := chunks(t, opt, []memory.Turn{said("long", memory.RoleUser, text, 0), said("next", memory.RoleUser, "next", 9000)})
	var joined strings.Builder
	for i, c := range got {
		if c.Tokens > opt.Tokens || !c.Split {
			t.Errorf("chunk %d: %d tokens, split %v", i, c.Tokens, c.Split)
		}
		for _, ct := range c.Turns {
			if ct.ID == "long" {
				joined.WriteString(c.Text[ct.Start:ct.End])
			}
		}
	}
	if joined.String() != text {
		t.Errorf("the parts do not make the message")
	}
}

// One word of a megabyte is never counted whole: a tokenizer merges it pair by
// pair, in memory of 40 times its size.
func TestHugeMessageIsNotCountedWhole(t *testing.T) {
	t.Parallel()
	for _, role := range []memory.Role{memory.RoleUser, memory.RoleNote} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			opt := options()
			opt.Tokens = 100
			longest := 0
			opt.Count = func(s string) int {
				longest = max(longest, len(s))
				return quarter(s)
			}
			text := strings.Repeat("y", 1<<20)
			var joined strings.Builder
			for _, c := range chunks(t, opt, []memory.Turn{said("huge", role, text, 0)}) {
				for _, ct := range c.Turns {
					joined.WriteString(c.Text[ct.Start:ct.End])
				}
			}
			if joined.String() != text {
				t.Error("the parts do not make the message")
			}
			if most := 3 * 128 * opt.Tokens; longest > most {
				t.Errorf("a text of %d bytes was counted, at most %d hold a chunk", longest, most)
			}
		})
	}
}

func TestToolResultKeepsItsEnds(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("row %d", i))
	}
	for _, tt := range []struct {
		name, text string
		first      string
		last       string
	}{
		{"many lines", strings.Join(lines, "\n"), "row 0\n", "\nrow 499"},
		{"one long line", strings.Repeat("abc def ", 5000) + "END", "abc def ", "END"},
		{"long first line", strings.Repeat("abc def ", 5000) + "\nx\nEND", "abc def ", "\nx\nEND"},
		{"huge", strings.Repeat("0123456789\n", 300000) + "END", "0123456789\n", "\nEND"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := chunks(t, options(), []memory.Turn{tool("r", memory.KindToolResult, "Bash", tt.text, false)})
			ct := got[0].Turns[0]
			text := got[0].Text[ct.Start:ct.End]
			if n := quarter(text); n > chunk.ToolTokens {
				t.Errorf("%d tokens", n)
			}
			if n := strings.Count(text, "\n"); n > 2*chunk.ToolLines+1 {
				t.Errorf("%d lines", n)
			}
			if !strings.HasPrefix(text, tt.first) || !strings.HasSuffix(text, tt.last) || strings.Count(text, "left out ...]") != 1 {
				t.Errorf("ends or mark missing: %q", text)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	note := said("n", memory.RoleNote, "# Rules\n\nnever force-push", 0)
	note.Heading, note.TimeQuality = "Rules", memory.TimeFile
	long := said("l", memory.RoleNote, strings.Repeat("para "+strings.Repeat("w", 400)+"\n\n", 10)+"```\n"+strings.Repeat("code\n\n", 500)+"```", 100)
	got := chunks(t, options(), []memory.Turn{note, long})
	if d := cmp.Diff("[note Rules]\n# Rules\n\nnever force-push\n", got[0].Text); d != "" {
		t.Errorf("text (-want +got):\n%s", d)
	}
	if got[0].Heading != "Rules" || got[0].Split || len(got) < 4 {
		t.Fatalf("heading %q, split %v, %d chunks", got[0].Heading, got[0].Split, len(got))
	}
	for _, c := range got[1:] {
		ct := c.Turns[0]
		text := c.Text[ct.Start:ct.End]
		if !c.Split || strings.Count(text, "```")%2 != 0 || len(text) > chunk.NoteChars && !strings.HasPrefix(text, "```") {
			t.Errorf("part %d: split %v, %d characters", c.I, c.Split, len(text))
		}
	}
}

func TestSeenRedactionsAndSeals(t *testing.T) {
	t.Parallel()
	opt := options()
	opt.Seen = func(id string) bool { return id == "old" }
	c := chunk.New(opt)
	text := "one\nexport DB_PASSWORD=hunter2x\nthree"
	for _, turn := range []memory.Turn{said("old", memory.RoleUser, "known", 0), said("new", memory.RoleUser, text, 10)} {
		if _, err := c.Add(turn); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Flush()
	if err != nil {
		t.Fatal(err)
	}
	if c.Duplicates() != 1 || len(got) != 1 || !got[0].Continues || got[0].Turns[0].First {
		t.Fatalf("duplicates %d, chunks %d, continues %v", c.Duplicates(), len(got), got[0].Continues)
	}
	if d := cmp.Diff(map[string]int{"password": 1}, c.Redactions()); d != "" {
		t.Errorf("redactions (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"new"}, c.TurnIDs()); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
	if strings.Contains(got[0].Text, "hunter2x") {
		t.Errorf("the secret stands in the text: %s", got[0].Text)
	}
	p := got[0].Turns[0].Pieces[0]
	line := "export DB_PASSWORD=hunter2x"
	at := 10 + int64(strings.Index(text, line))
	want := []memory.Seal{{C0: p.Seals[0].C0, C1: p.Seals[0].C1, O0: at, O1: at + int64(len(line)), HMAC: memory.HMAC(tenantKey, []byte(line))}}
	if d := cmp.Diff(want, p.Seals); d != "" {
		t.Errorf("seals (-want +got):\n%s", d)
	}
}

// The modification time of an object is in no chunk: the same bytes uploaded
// again are the same chunks.
func TestTextHasNoFileTime(t *testing.T) {
	t.Parallel()
	a := said("n", memory.RoleNote, "text", 0)
	a.TimeQuality = memory.TimeFile
	b := a
	b.Time = b.Time.Add(time.Hour)
	x, y := chunks(t, options(), []memory.Turn{a}), chunks(t, options(), []memory.Turn{b})
	if x[0].SHA256 != y[0].SHA256 {
		t.Errorf("%q and %q", x[0].Text, y[0].Text)
	}
}

func BenchmarkChunk(b *testing.B) {
	var in []memory.Turn
	size := 0
	for i := range 200 {
		turn := said(fmt.Sprint("t", i), memory.RoleUser, strings.Repeat("We retry three times because the upstream drops.\n", 40), int64(size))
		size += len(turn.Pieces[0].Text)
		in = append(in, turn)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		chunks(b, options(), in)
	}
}
