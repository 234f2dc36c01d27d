package transcript

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// talk turns the messages of a conversation into turns, for all formats whose
// messages hold texts, content blocks and tool calls as the model APIs name
// them. A message without an id gets one from its conversation, place, role
// and text.
type talk struct {
	r *Reader

	session string
	base    string // seed of the session's id where the file names none
	index   int    // of the message in its conversation
	buf     []byte // what an id is the hash of
	quiet   bool   // messages are only looked at for their calls
	calls   map[uint64]calledTool

	// say takes a text that stands in a message; nil means that it is one turn.
	say func(m *utterance, ps []memory.Piece)

	from, at int64 // lines are counted from one place to a later one
	no       int
	lfs      []int // line ends of the record, once a place is before the last
}

// maxPieces bounds the pieces of one turn, which take 100 bytes each: a
// content may be an array of millions of empty strings.
const maxPieces = 4096

// calledTool is what a result needs to know of its call.
type calledTool struct {
	name, target string
	own          bool // its result is Mneme's own output
}

// maxCalls bounds the calls of one conversation that wait for a result.
const maxCalls = 1 << 16

// speaker is how one role of a format speaks.
type speaker struct {
	role  memory.Role
	kind  memory.Kind
	trust memory.Trust
}

var (
	speakUser      = speaker{memory.RoleUser, memory.KindText, memory.TrustUser}
	speakAssistant = speaker{memory.RoleAssistant, memory.KindText, memory.TrustAssistant}
	speakResult    = speaker{memory.RoleTool, memory.KindToolResult, memory.TrustTool}
	speakCall      = speaker{memory.RoleAssistant, memory.KindToolCall, memory.TrustAssistant}
	speakSystem    = speaker{memory.RoleSystem, memory.KindText, memory.TrustInjected}
	speakInjected  = speaker{memory.RoleInjected, memory.KindText, memory.TrustInjected}
	speakSummary   = speaker{memory.RoleSummary, memory.KindText, memory.TrustInjected}
	speakFeedback  = speaker{memory.RoleUser, memory.KindFeedback, memory.TrustUser}
	speakReview    = speaker{memory.RoleAssistant, memory.KindFeedback, memory.TrustAssistant}
	speakCommand   = speaker{memory.RoleUser, memory.KindCommand, memory.TrustUser}
)

// speakers maps what writers call the speakers, in lower case.
var speakers = map[string]speaker{
	"user": speakUser, "human": speakUser,
	"assistant": speakAssistant, "model": speakAssistant, "ai": speakAssistant, "gpt": speakAssistant,
	"chatgpt": speakAssistant, "bing": speakAssistant, "bard": speakAssistant, "claude": speakAssistant, "bot": speakAssistant,
	"tool": speakResult, "function": speakResult, "observation": speakResult, "tool_result": speakResult, "function_response": speakResult,
	"coder": speakAssistant, "reviewer": speakReview,
	"function_call": speakCall, "tool_call": speakCall,
	"system": speakSystem, "developer": speakSystem,
}

// utterance is one message while it is read.
type utterance struct {
	b    []byte
	base int64 // of b[0] in the object
	t    memory.Turn
	name string // its id in the file, or ""
	who  string // its role as it stands, in lower case
	key  string // of the turns that the message gives
	n    int    // turns given
}

// reset begins a conversation. id is its own, or "".
func (t *talk) reset(id string) {
	t.session, t.base, t.index = "", "", 0
	t.calls = nil
	if id != "" {
		t.session = t.sessionOf(id)
		t.r.stats.session(t.session)
	}
}

// globalIDBytes is the least length of a conversation id that is taken to be
// unique in the world, as a UUID is; a shorter one, such as a row's number, is
// unique in its file.
const globalIDBytes = 16

func (t *talk) sessionOf(id string) string {
	if len(id) < globalIDBytes {
		return cleanID(id) + "-" + string(memory.SumString(t.r.base + "\x00" + id))[:16]
	}
	return cleanID(id)
}

// line is the physical line of b[at], counted on from the last one asked for.
func (t *talk) line(rec *record, at int) int {
	off := rec.base + int64(at)
	if t.no == 0 || t.from != rec.from() {
		t.from, t.at, t.no, t.lfs = rec.from(), rec.from(), rec.line, nil
	}
	if off < t.at && t.lfs == nil {
		t.lfs = []int{}
		for i := rec.at.s; i < rec.at.e; i++ {
			if rec.b[i] == '\n' {
				t.lfs = append(t.lfs, i)
			}
		}
	}
	if t.lfs != nil {
		n, _ := slices.BinarySearch(t.lfs, at)
		return rec.line + n
	}
	t.no += bytes.Count(rec.b[t.at-rec.base:at], []byte("\n"))
	t.at = off
	return t.no
}

// emit gives one turn of the message.
func (t *talk) emit(m *utterance, turn memory.Turn) {
	if t.quiet {
		return
	}
	all := turn.Text()
	if t.session == "" {
		seed := t.base
		if seed == "" {
			seed = all
		}
		t.session = string(memory.SumString(t.r.base + "\x00" + seed))[:16]
		t.r.stats.session(t.session)
	}
	turn.Session = t.session
	if m.name != "" {
		m.key = cleanID(m.name)
	} else if m.n == 0 {
		t.buf = append(append(t.buf[:0], t.session...), 0)
		t.buf = append(strconv.AppendInt(t.buf, int64(t.index), 10), 0)
		t.buf = append(append(append(t.buf, m.who...), 0), all...)
		m.key = string(memory.Sum(t.buf))[:32]
		if cap(t.buf) > keepSize {
			t.buf = nil
		}
	}
	m.n++
	turn.ID = t.r.ids.unique(t.session + "/" + m.key)
	t.r.emit(turn)
}

// text gives a text of the message as one turn, without what a harness put in.
func (t *talk) text(m *utterance, ps []memory.Piece) {
	if blank(ps) {
		return
	}
	if t.say != nil {
		t.say(m, ps)
		return
	}
	t.finish(m, m.t, ps)
}

// finish cuts harness passages out of ps and emits what is left.
func (t *talk) finish(m *utterance, turn memory.Turn, ps []memory.Piece) {
	s := &t.r.stats
	derived := false
	turn.Pieces = nil
	for _, p := range ps {
		kept, injected, own := cut(p)
		if injected {
			s.drop("system_reminder")
		}
		if own {
			s.drop("own_memory")
			derived = true
		}
		turn.Pieces = append(turn.Pieces, kept...)
	}
	if blank(turn.Pieces) && turn.Kind != memory.KindToolResult {
		if !derived {
			return
		}
		turn.Derived, turn.Pieces = true, ps
	}
	t.emit(m, turn)
}

// as gives the message's turn another speaker.
func (m *utterance) as(s speaker) memory.Turn {
	t := m.t
	t.Role, t.Kind, t.Trust = s.role, s.kind, s.trust
	return t
}

// content reads a string, an array of strings and blocks, or one block.
func (t *talk) content(m *utterance, v span) {
	switch {
	case isString(m.b, v):
		t.text(m, []memory.Piece{piece(m.b, v, m.base)})
	case isArray(m.b, v):
		var run []memory.Piece
		elements(m.b, v, func(e span) bool {
			if run = t.block(m, e, run); len(run) == maxPieces {
				t.text(m, run)
				run = nil
			}
			return !t.r.stop
		})
		t.text(m, run)
	case isObject(m.b, v):
		t.text(m, t.block(m, v, nil))
	}
}

// block reads one block. Texts that follow one another are one turn: they are
// gathered in run, which a call or a result ends.
func (t *talk) block(m *utterance, e span, run []memory.Piece) []memory.Piece {
	b := m.b
	if isString(b, e) {
		return append(run, piece(b, e, m.base))
	}
	if !isObject(b, e) {
		t.r.stats.drop("odd_block")
		return run
	}
	var typ, txt, refusal, id, name, input, content, failed, use span
	ms, _ := members(b, e.s, nil)
	for _, x := range ms {
		switch string(x.key) {
		case "type":
			typ = x.val
		case "text":
			txt = x.val
		case "refusal":
			refusal = x.val
		case "id":
			id = x.val
		case "name":
			name = x.val
		case "input", "arguments":
			input = x.val
		case "content":
			content = x.val
		case "is_error":
			failed = x.val
		case "tool_use_id", "tool_call_id":
			use = x.val
		}
	}
	kind := t.r.names.text(b, typ)
	switch kind {
	case "text", "input_text", "output_text", "":
		if isString(b, txt) {
			return append(run, piece(b, txt, m.base))
		}
		t.r.stats.drop("block")
	case "refusal":
		if isString(b, refusal) {
			return append(run, piece(b, refusal, m.base))
		}
	case "tool_use", "toolCall", "server_tool_use", "mcp_tool_use":
		t.text(m, run)
		t.call(m, text(b, id), t.r.names.text(b, name), input)
		return nil
	case "tool_result", "web_search_tool_result", "mcp_tool_result":
		t.text(m, run)
		turn := m.as(speakResult)
		turn.Tool = &memory.Tool{CallID: text(b, use), IsError: isTrue(b, failed)}
		t.result(m, turn, content)
		return nil
	case "thinking", "redacted_thinking", "reasoning":
		t.r.stats.g.thinking++
		t.r.stats.drop("thinking")
	case "image", "image_url", "input_image":
		t.r.stats.g.images++
		t.r.stats.drop("image")
	default:
		bump(t.r.stats.Dropped, "block/"+kind)
	}
	return run
}

// call emits a tool call. input is its arguments: an object, or a string that
// holds one.
func (t *talk) call(m *utterance, id, name string, input span) {
	turn := m.as(speakCall)
	turn.Tool = &memory.Tool{Name: name, CallID: id, Edits: edits(m.b, input, m.base, name)}
	t.r.stats.g.toolUse++
	aim := t.aim(m, &turn, input)
	if t.calls == nil {
		t.calls = map[uint64]calledTool{}
	}
	if id != "" && len(t.calls) < maxCalls {
		t.calls[t.r.ids.hash([]byte(id))] = calledTool{name, aim, isOwn(name, aim)}
	}
	t.emit(m, turn)
}

// aim gives a call its target.
func (t *talk) aim(m *utterance, turn *memory.Turn, input span) string {
	b, base := m.b, m.base
	if isString(b, input) {
		if x, ok := innerOf(b, input, base); ok && x.text[x.value().s] == '{' {
			ms, _ := members(x.text, x.value().s, nil)
			if v := targetOf(x.text, ms); v.ok() {
				turn.Tool.Target = label(text(x.text, v))
				turn.Pieces = x.pieces(v)
				return text(x.text, v)
			}
			return ""
		}
		p := piece(b, input, base) // free text, such as a patch
		turn.Tool.Target, turn.Pieces = label(p.Text), []memory.Piece{p}
		return p.Text
	}
	if p, ok := target(b, input, base); ok {
		turn.Tool.Target, turn.Pieces = label(p.Text), []memory.Piece{p}
		return p.Text
	}
	return ""
}

// said emits the call that a text names: {"name": …, "arguments": …}, or
// whatever it says.
func (t *talk) said(m *utterance, v span, name string) {
	x, ok := innerOf(m.b, v, m.base)
	if !ok {
		t.call(m, "", name, v)
		return
	}
	one := func(e span) bool {
		if !isObject(x.text, e) {
			return true
		}
		turn := m.as(speakCall)
		turn.Tool = &memory.Tool{Name: name}
		ms, _ := members(x.text, e.s, nil)
		args := e
		for _, y := range ms {
			switch string(y.key) {
			case "name":
				turn.Tool.Name = t.r.names.text(x.text, y.val)
			case "arguments", "parameters", "args", "input":
				args = y.val
			}
		}
		if isObject(x.text, args) {
			ms, _ = members(x.text, args.s, nil)
			if best := targetOf(x.text, ms); best.ok() {
				turn.Tool.Target, turn.Pieces = label(text(x.text, best)), x.pieces(best)
			}
		}
		t.r.stats.g.toolUse++
		t.emit(m, turn)
		return true
	}
	if top := x.value(); x.text[top.s] == '[' {
		elements(x.text, top, one)
	} else {
		one(top)
	}
}

// results emits one result whose texts stand at several places.
func (t *talk) results(m *utterance, at []placed) {
	for _, v := range at {
		t.result(m, m.t, v.at)
	}
}

// result emits a tool's result.
func (t *talk) result(m *utterance, turn memory.Turn, content span) {
	tool := *turn.Tool
	turn.Tool = &tool
	t.r.stats.g.toolResult++
	if turn.Tool.IsError {
		t.r.stats.g.toolErrors++
	}
	if c, ok := t.calls[t.r.ids.hash([]byte(turn.Tool.CallID))]; ok {
		if turn.Tool.Name == "" {
			turn.Tool.Name = c.name
		}
		turn.Derived = c.own
	}
	if isWeb(turn.Tool.Name) {
		turn.Trust = memory.TrustWeb
	}
	t.finish(m, turn, t.texts(m, content))
}

// texts are the texts of a content value, other blocks left out.
func (t *talk) texts(m *utterance, v span) []memory.Piece {
	var ps []memory.Piece
	switch {
	case isString(m.b, v):
		ps = append(ps, piece(m.b, v, m.base))
	case isArray(m.b, v):
		elements(m.b, v, func(e span) bool {
			switch {
			case isString(m.b, e):
				ps = append(ps, piece(m.b, e, m.base))
			case isObject(m.b, e):
				if txt := textOf(m.b, e); isString(m.b, txt) {
					ps = append(ps, piece(m.b, txt, m.base))
				} else {
					t.r.stats.drop("block")
				}
			}
			return len(ps) < maxPieces
		})
	}
	return ps
}

// chain tells a conversation that goes on from an earlier one of the same
// file: the log of an API holds each request with all messages before it.
// Only hashes are kept, for maxChains conversations.
type chain struct {
	seed maphash.Seed
	ends map[uint64]struct{}
}

const maxChains = 1 << 20

// next is the chain's hash after one more message.
func (c *chain) next(h uint64, msg []byte) uint64 {
	if c.ends == nil {
		c.seed, c.ends = maphash.MakeSeed(), map[uint64]struct{}{}
	}
	return (h+1)*0x9E3779B97F4A7C15 ^ maphash.Bytes(c.seed, msg)
}

func (c *chain) seen(h uint64) bool { _, ok := c.ends[h]; return ok }

func (c *chain) add(h uint64) {
	if len(c.ends) < maxChains {
		c.ends[h] = struct{}{}
	}
}

// lower is a role's name as the tables have it.
func lower(who string) string { return strings.ToLower(strings.TrimSpace(who)) }

// textOf is the `text` of a text block.
func textOf(b []byte, e span) span {
	ms, _ := members(b, e.s, nil)
	return field(ms, "text")
}
