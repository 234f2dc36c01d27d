package transcript

import (
	"bytes"
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// cursorText reads the text form of Cursor's transcripts: a line `user:` or
// `assistant:` before each message; in the assistant's, `[Thinking]`,
// `[Tool call] NAME` and `[Tool result]`, each with indented lines of its own.
type cursorText struct {
	cursor
	role string // of the message being read; "" before the first
	part string // thinking, call or result; "" for prose
	tool string // name of the last call
	buf  []byte // of the part being read
	base int64
	no   int
}

var (
	cursorRole = lazy.MustCompile(`^(user|assistant):[ \t\r]*$`)
	cursorMark = lazy.MustCompile(`^\[(Thinking|Tool call|Tool result)\](?:[ \t]+(.*?))?[ \t\r]*$`)
	// cursorTextHead tells the form from other text files.
	cursorTextHead = lazy.MustCompile(`\A\s*user:[ \t\r]*\n`)
	cursorTextMark = lazy.MustCompile(`(?m)^(?:<user_query>|\[Tool call\] |\[Tool result\]|\[Thinking\])`)
)

// isCursorText reports whether b begins a transcript in the text form.
func isCursorText(b []byte) bool { return cursorTextHead.Match(b) && cursorTextMark.Match(b) }

func (c *cursorText) line(ln line) {
	b, base := ln.b, ln.off
	if ln.off == 0 && bytes.HasPrefix(b, []byte("\ufeff")) {
		b, base = b[3:], 3
	}
	if len(bytes.TrimSpace(b)) == 0 {
		c.r.stats.Blank++
	}
	if m := cursorRole.FindSubmatch(b); m != nil {
		c.flush()
		c.role, c.part = string(m[1]), ""
		c.r.stats.Records++
		bump(c.r.stats.types, "role:"+c.role)
		return
	}
	if c.role == "assistant" {
		if m := cursorMark.FindSubmatch(b); m != nil {
			c.flush()
			c.part = string(m[1])
			c.mark(strings.TrimSpace(string(m[2])), base, int64(len(b)), ln.no)
			return
		}
		if c.part != "" && len(b) > 0 && b[0] != ' ' && b[0] != '\t' && b[0] != '\r' {
			c.flush() // prose goes on
		}
	}
	if len(c.buf) > 0 && (c.base+int64(len(c.buf))+1 != base || len(c.buf)+len(b) >= c.r.opt.MaxLineBytes) {
		part := c.part
		c.flush()
		c.part = part
	}
	if len(c.buf) == 0 {
		if len(bytes.TrimSpace(b)) == 0 {
			return
		}
		c.base, c.no = base, ln.no
	} else {
		c.buf = append(c.buf, '\n')
	}
	c.buf = append(c.buf, b...)
}

// mark begins a part of the assistant's message.
func (c *cursorText) mark(name string, from, size int64, no int) {
	s := &c.r.stats
	switch c.part {
	case "Thinking":
		s.g.thinking++
		s.drop("thinking")
	case "Tool call":
		s.g.toolUse++
		c.tool = name
	case "Tool result":
		if name != "" {
			c.tool = name
		}
		s.g.toolResult++
	}
	c.base, c.no = from+size, no
}

// argument is a line of a tool call: `  path: x` or `  path=x`.
var argument = lazy.MustCompile(`(?m)^[ \t]+([A-Za-z_]+)(?:: |=)(.*?)\r?$`)

// flush emits the part that was read.
func (c *cursorText) flush() {
	part := c.part
	c.part = ""
	text := bytes.TrimRight(c.buf, " \t\r\n")
	lead := len(text) - len(bytes.TrimLeft(text, "\r\n"))
	text = text[lead:]
	start := c.base + int64(lead)
	defer func() { c.buf = c.buf[:0] }()
	if part == "Thinking" || part != "Tool call" && len(text) == 0 {
		return
	}
	if c.role == "" {
		c.r.stats.drop("before_first_role")
		return
	}
	id := c.name(append([]byte(part+c.tool), text...))
	t := c.turn(c.no, start, start+int64(len(text)))
	t.ID = c.session + "/" + id
	switch part {
	case "Tool call":
		t.Role, t.Kind, t.Trust = memory.RoleAssistant, memory.KindToolCall, memory.TrustAssistant
		t.Tool = &memory.Tool{Name: c.tool}
		if from, to, ok := bestArgument(text); ok {
			p := rawPiece(text[from:to], start+int64(from))
			t.Tool.Target, t.Pieces = label(p.Text), []memory.Piece{p}
		}
		c.emit(t)
	case "Tool result":
		t.Role, t.Kind, t.Trust = memory.RoleTool, memory.KindToolResult, memory.TrustTool
		t.Tool = &memory.Tool{Name: c.tool}
		if isWeb(c.tool) {
			t.Trust = memory.TrustWeb
		}
		c.say(t, []memory.Piece{rawPiece(text, start)})
	default:
		c.text(t, c.role, rawPiece(text, start))
	}
}

// bestArgument is the place of the argument that says what a call is about.
func bestArgument(b []byte) (from, to int, ok bool) {
	rank := len(targetKeys)
	for _, m := range argument.FindAllSubmatchIndex(b, -1) {
		for k, name := range targetKeys[:rank] {
			if string(b[m[2]:m[3]]) == name && m[4] < m[5] {
				from, to, ok, rank = m[4], m[5], true, k
				break
			}
		}
	}
	return from, to, ok
}

func (c *cursorText) end() { c.flush() }
