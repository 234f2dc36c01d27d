package transcript

import (
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// cursor reads agent transcripts of Cursor (formats.md section 4): one
// {role, message: {content}} a line. They have neither ids nor times: a turn's
// id is a hash over the object's base name, the message's place and its
// content; its time is the last one that a prompt told, of quality header for
// all but that prompt.
type cursor struct {
	r       *Reader
	session string
	index   int
	cwd     string
	time    time.Time // of the last prompt that told one
	timeRaw string
}

// newCursor reads lines of JSON or the text form, as the first line shows.
func newCursor(r *Reader) parser {
	for _, ln := range r.held {
		b := trimLine(ln)
		if i := skipSpace(b, 0); i < len(b) {
			if b[i] != '{' {
				return &cursorText{cursor: cursor{r: r}}
			}
			break
		}
	}
	return newJSONL(r, &cursor{r: r})
}

func (c *cursor) end() {}

// turn is the common part of the turns of one message.
func (c *cursor) turn(line int, from, to int64) memory.Turn {
	if c.session == "" {
		c.session = c.r.stem()
		c.r.stats.session(c.session)
	}
	t := memory.Turn{Session: c.session, Kind: memory.KindText, Cwd: c.cwd, TimeQuality: memory.TimeNone, Line: line, From: from, To: to}
	if !c.time.IsZero() {
		t.Time, t.TimeRaw, t.TimeQuality = c.time, c.timeRaw, memory.TimeHeader
	}
	return t
}

// name gives the next message's id.
func (c *cursor) name(content []byte) string {
	n := c.index
	c.index++
	return string(memory.SumString(c.r.base + "\x00" + strconv.Itoa(n) + "\x00" + string(content)))[:32]
}

func (c *cursor) record(rec *record) {
	s := &c.r.stats
	b := rec.b
	role := c.r.names.text(b, fieldOf(rec.ms, "role"))
	typ := c.r.names.text(b, fieldOf(rec.ms, "type"))
	switch {
	case role != "":
		bump(s.types, "role:"+role)
	case typ != "":
		bump(s.types, typ)
	default:
		bump(s.types, "?")
	}
	message := fieldOf(rec.ms, "message")
	content := fieldOf(rec.in.ms, "content")
	switch {
	case role == "" && typ == "":
		s.drop("no_type")
		return
	case role == "" && typ == "turn_ended":
		s.drop(typ)
		return
	case role == "":
		bump(s.Unknown, typ)
		return
	case role != "user" && role != "assistant":
		bump(s.Unknown, "role:"+role)
		return
	case !isObject(b, message) || !content.ok():
		s.drop("no_content")
		return
	}
	id := c.name(b[content.s:content.e])
	t := c.turn(rec.line, rec.from(), rec.to())
	t.ID = c.session + "/" + id
	if isString(b, content) {
		c.text(t, role, piece(b, content, rec.base))
		return
	}
	if !isArray(b, content) {
		s.drop("odd_block")
		return
	}
	for _, k := range rec.in.blocks {
		if isString(b, k.at) {
			c.text(t, role, piece(b, k.at, rec.base))
			continue
		}
		c.block(t, role, rec, rec.in.bm[k.from:k.to])
	}
}

// block reads one block of a message's content.
func (c *cursor) block(t memory.Turn, role string, rec *record, ms []member) {
	s := &c.r.stats
	b := rec.b
	switch typ := c.r.names.text(b, fieldOf(ms, "type")); typ {
	case "text":
		if txt := fieldOf(ms, "text"); isString(b, txt) {
			c.text(t, role, piece(b, txt, rec.base))
		}
	case "tool_use":
		s.g.toolUse++
		t.Role, t.Kind, t.Trust = memory.RoleAssistant, memory.KindToolCall, memory.TrustAssistant
		t.Tool = &memory.Tool{Name: c.r.names.text(b, fieldOf(ms, "name")), CallID: text(b, fieldOf(ms, "id"))}
		t.Tool.Edits = edits(b, fieldOf(ms, "input"), rec.base, t.Tool.Name)
		if tgt, ok := target(b, fieldOf(ms, "input"), rec.base); ok {
			t.Tool.Target, t.Pieces = label(tgt.Text), []memory.Piece{tgt}
		}
		c.emit(t)
	case "thinking", "redacted_thinking", "reasoning":
		s.g.thinking++
		s.drop(typ)
	default:
		if typ == "image" {
			s.g.images++
		}
		bump(s.Dropped, "block/"+typ)
	}
}

func (c *cursor) emit(t memory.Turn) {
	t.ID = c.r.ids.unique(t.ID)
	c.r.emit(t)
}

const (
	queryTag     = "user_query"
	timeTag      = "timestamp"
	cursorFolder = "Workspace Path: "
)

// text reads a text of the user or the assistant.
func (c *cursor) text(t memory.Turn, role string, p memory.Piece) {
	if role == "assistant" {
		t.Role, t.Trust = memory.RoleAssistant, memory.TrustAssistant
		c.say(t, []memory.Piece{p})
		return
	}
	if from, to, ok := tagged(p.Text, timeTag); ok {
		if at, ok := cursorTime(p.Text[from:to]); ok {
			c.time, c.timeRaw = at, p.Text[from:to]
			t.Time, t.TimeRaw, t.TimeQuality = at, c.timeRaw, memory.TimeExact
			c.r.stats.time(at, c.timeRaw)
		}
	}
	own, injected := c.asked(p)
	for _, q := range injected {
		if _, rest, ok := strings.Cut(q.Text, cursorFolder); ok && c.cwd == "" {
			dir, _, _ := strings.Cut(rest, "\n")
			c.cwd = strings.TrimSpace(dir)
			c.r.stats.cwd(c.cwd)
		}
	}
	t.Cwd = c.cwd
	if len(injected) > 0 {
		x := t
		x.Role, x.Trust, x.Pieces = memory.RoleInjected, memory.TrustInjected, injected
		c.emit(x)
	}
	if !blank(own) {
		t.Role, t.Trust = memory.RoleUser, memory.TrustUser
		if c.say(t, own) {
			c.r.stats.g.human++
		}
	}
}

// say cuts harness passages out of a turn and emits what is left.
func (c *cursor) say(t memory.Turn, ps []memory.Piece) bool {
	kept, injected, own := cutAll(ps)
	if injected {
		c.r.stats.drop("system_reminder")
	}
	if own {
		c.r.stats.drop("own_memory")
	}
	if blank(kept) {
		if !own {
			c.r.stats.drop("no_content")
			return false
		}
		t.Derived, kept = true, ps
	}
	t.Pieces = kept
	c.emit(t)
	return true
}

// contextTag opens what the editor writes before a prompt: its tags have an
// underscore in their names, but for two.
var contextTag = lazy.MustCompile(`^<(timestamp|rules|[a-z]+(?:_[a-z]+)+)(?: [^<>]*)?>`)

// asked parts the words of the person from what the editor wrote around them.
func (c *cursor) asked(p memory.Piece) (own, injected []memory.Piece) {
	add := func(ps []memory.Piece, from, to int) []memory.Piece {
		if q, ok := trimmed(p, from, to); ok {
			return append(ps, q)
		}
		return ps
	}
	at := 0
	s := p.Text
	if !strings.Contains(s, "<"+queryTag+">") {
		for {
			i := at + len(s[at:]) - len(strings.TrimLeft(s[at:], " \t\r\n"))
			m := contextTag.FindStringSubmatch(s[i:])
			if m == nil {
				break
			}
			end := "</" + m[1] + ">"
			k := strings.Index(s[i:], end)
			if k < 0 {
				break
			}
			at = i + k + len(end)
		}
		return add(nil, at, len(s)), add(nil, 0, at)
	}
	for {
		i := strings.Index(s[at:], "<"+queryTag+">")
		if i < 0 {
			break
		}
		injected = add(injected, at, at+i)
		from := at + i + len(queryTag) + 2
		to, next := len(s), len(s)
		if k := strings.Index(s[from:], "</"+queryTag+">"); k >= 0 {
			to, next = from+k, from+k+len(queryTag)+3
		}
		// Both ends are cut, also where they are the text's.
		q := s[from:to]
		from += len(q) - len(strings.TrimLeft(q, " \t\r\n"))
		to -= len(q) - len(strings.TrimRight(q, " \t\r\n"))
		if from < to {
			own = add(own, from, to)
		}
		at = next
	}
	return own, add(injected, at, len(s))
}

// cursorZone is the zone of "Monday, Aug 24, 2026, 3:01 PM (UTC-5)".
var cursorZone = lazy.MustCompile(`^(.*) \(UTC(?:([+-])(\d{1,2})(?::(\d\d))?)?\)$`)

// cursorTime reads the time that the editor writes before a prompt.
func cursorTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	offset := time.Duration(0)
	if m := cursorZone.FindStringSubmatch(s); m != nil {
		s = m[1]
		if m[3] != "" {
			hours, _ := strconv.Atoi(m[3]) // digits
			minutes := 0
			if m[4] != "" {
				minutes, _ = strconv.Atoi(m[4])
			}
			offset = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
			if m[2] == "-" {
				offset = -offset
			}
		}
	}
	for _, layout := range []string{"Monday, Jan 2, 2006, 3:04 PM", "Monday, Jan 2, 2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return inRange(t.Add(-offset))
		}
	}
	return parseTime(s)
}
