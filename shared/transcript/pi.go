package transcript

import (
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// pi reads sessions of the pi agent, versions 1 to 3 (formats.md section 2).
// Its tree is real: entries off the path from the last entry to the root are
// marked abandoned, as far as the window still holds them.
type pi struct {
	r       *Reader
	session string
	header  bool
	start   time.Time // of the header
	raw     string
	cwd     string
	parents map[uint64]uint64
	leaf    uint64
	tools   map[uint64]bool // call id: its result is Mneme's own output
	block   []member
	name    string // id of the entry being read
	parent  string
}

func newPi(r *Reader) *pi {
	return &pi{r: r, parents: map[uint64]uint64{}, tools: map[uint64]bool{}}
}

// sessionID is the header's id, else that in the file name: `<time>_<id>`.
func (p *pi) sessionID() string {
	if p.session != "" {
		return p.session
	}
	s := p.r.stem()
	if i := strings.LastIndexByte(s, '_'); i >= 0 {
		s = s[i+1:]
	}
	return s
}

func (p *pi) record(rec *record) {
	s := &p.r.stats
	b := rec.b
	var typ, id, parent, stamp, message, cwd, content, summary span
	for _, m := range rec.ms {
		switch string(m.key) {
		case "type":
			typ = m.val
		case "id":
			id = m.val
		case "parentId":
			parent = m.val
		case "timestamp":
			stamp = m.val
		case "message":
			message = m.val
		case "cwd":
			cwd = m.val
		case "content":
			content = m.val
		case "summary":
			summary = m.val
		}
	}
	kind := p.r.names.text(b, typ)
	role := ""
	if kind == "message" && isObject(b, message) {
		p.block = append(p.block[:0], rec.in.ms...)
		role = p.r.names.text(b, p.field("role"))
	}
	label := kind
	switch {
	case !typ.ok():
		label = "?"
	case kind == "message":
		label = "message/" + role
	}
	bump(s.types, label)
	t, raw, timed := timeOf(b, stamp)
	if timed {
		s.time(t, raw)
	}
	if kind == "session" {
		if p.header {
			s.drop("second_header")
			return
		}
		p.header = true
		p.session, p.cwd = text(b, id), p.r.names.text(b, cwd)
		p.start, p.raw = t, raw
		s.session(p.session)
		s.cwd(p.cwd)
		return
	}
	if !p.header && s.Records == 1 {
		s.drop("no_header")
		s.session(p.sessionID())
	}
	p.name, p.parent = "", ""
	if isString(b, id) {
		p.name = cleanID(text(b, id))
		p.leaf = p.r.ids.hash([]byte(p.name))
		up := uint64(0)
		if isString(b, parent) {
			p.parent = cleanID(text(b, parent))
			up = p.r.ids.hash([]byte(p.parent))
		}
		p.parents[p.leaf] = up
	} else {
		p.name = string(memory.Sum(b[rec.at.s:rec.at.e]))[:16]
	}
	if !timed {
		if ms := p.field("timestamp"); kind == "message" && ms.ok() {
			t, raw, timed = timeOf(b, ms)
		}
	}
	base := memory.Turn{
		Session: cleanID(p.sessionID()), ParentID: p.parent, Cwd: p.cwd, TimeQuality: memory.TimeNone,
		Kind: memory.KindText, Line: rec.line, From: rec.from(), To: rec.to(),
	}
	switch {
	case timed:
		base.Time, base.TimeRaw, base.TimeQuality = t, raw, memory.TimeExact
	case !p.start.IsZero():
		base.Time, base.TimeRaw, base.TimeQuality = p.start, p.raw, memory.TimeHeader
	}
	switch kind {
	case "message":
		p.message(rec, base, role)
	case "compaction", "branch_summary":
		base.Role, base.Trust = memory.RoleSummary, memory.TrustInjected
		p.say(rec, base, summary)
	case "custom_message":
		base.Role, base.Trust = memory.RoleInjected, memory.TrustInjected
		p.say(rec, base, content)
	case "model_change", "thinking_level_change", "custom", "label", "session_info":
		s.drop(kind)
	case "":
		s.drop("no_type")
	default:
		bump(s.Unknown, kind)
	}
}

func (p *pi) field(name string) span {
	v := span{}
	for _, m := range p.block {
		if string(m.key) == name {
			v = m.val
		}
	}
	return v
}

func (p *pi) emit(t memory.Turn) {
	t.ID = p.r.ids.unique(t.Session + "/" + p.name)
	p.r.emit(t)
}

// say emits the texts of a content value as one turn.
func (p *pi) say(rec *record, t memory.Turn, content span) {
	p.finish(t, p.texts(rec, content))
}

// finish cuts harness passages out and emits what is left.
func (p *pi) finish(t memory.Turn, ps []memory.Piece) {
	var kept []memory.Piece
	derived := false
	for _, q := range ps {
		k, injected, own := cut(q)
		if injected {
			p.r.stats.drop("system_reminder")
		}
		if own {
			p.r.stats.drop("own_memory")
			derived = true
		}
		kept = append(kept, k...)
	}
	if blank(kept) {
		if !derived {
			return
		}
		t.Derived, kept = true, ps
	}
	t.Pieces = kept
	p.emit(t)
}

// texts gives the pieces of a string or of the text blocks of an array.
func (p *pi) texts(rec *record, content span) []memory.Piece {
	b := rec.b
	if isString(b, content) {
		return []memory.Piece{piece(b, content, rec.base)}
	}
	var ps []memory.Piece
	var ms []member
	elements(b, content, func(e span) bool {
		if !isObject(b, e) {
			return true
		}
		ms, _ = members(b, e.s, ms[:0])
		typ, txt := "", span{}
		for _, m := range ms {
			switch string(m.key) {
			case "type":
				typ = p.r.names.text(b, m.val)
			case "text":
				txt = m.val
			}
		}
		if typ == "text" && isString(b, txt) {
			ps = append(ps, piece(b, txt, rec.base))
		} else {
			bump(p.r.stats.Dropped, "block/"+typ)
		}
		return true
	})
	return ps
}

func (p *pi) message(rec *record, base memory.Turn, role string) {
	b := rec.b
	content := p.field("content")
	switch role {
	case "user":
		base.Role, base.Trust = memory.RoleUser, memory.TrustUser
		p.say(rec, base, content)
	case "assistant":
		base.Role, base.Trust = memory.RoleAssistant, memory.TrustAssistant
		if isString(b, content) {
			p.say(rec, base, content)
			return
		}
		elements(b, content, func(e span) bool { p.part(rec, base, e); return true })
	case "toolResult":
		base.Role, base.Trust, base.Kind = memory.RoleTool, memory.TrustTool, memory.KindToolResult
		name, id := p.r.names.text(b, p.field("toolName")), p.field("toolCallId")
		base.Tool = &memory.Tool{Name: name, CallID: text(b, id), IsError: isTrue(b, p.field("isError"))}
		if isWeb(name) {
			base.Trust = memory.TrustWeb
		}
		if id.ok() {
			base.Derived = p.tools[p.r.ids.hash(b[id.s:id.e])]
		}
		if ps := p.texts(rec, content); !blank(ps) {
			p.finish(base, ps)
		} else if !base.Tool.IsError {
			p.r.answeredQuietly(base.Tool.CallID)
		}
	case "bashExecution":
		command, output, code := p.field("command"), p.field("output"), p.field("exitCode")
		failed := code.ok() && b[code.s] != '0' && !isNull(b, code)
		if isString(b, command) {
			t := base
			t.Role, t.Kind, t.Trust = memory.RoleUser, memory.KindCommand, memory.TrustUser
			p.say(rec, t, command)
		}
		if isString(b, output) {
			t := base
			t.Role, t.Kind, t.Trust = memory.RoleTool, memory.KindToolResult, memory.TrustTool
			cmd := text(b, command)
			t.Tool = &memory.Tool{Name: "bash", Target: label(cmd), IsError: failed}
			t.Derived = isOwn("bash", cmd)
			p.say(rec, t, output)
		}
	case "compactionSummary", "branchSummary":
		base.Role, base.Trust = memory.RoleSummary, memory.TrustInjected
		if !content.ok() {
			content = p.field("summary")
		}
		p.say(rec, base, content)
	case "custom", "hookMessage":
		base.Role, base.Trust = memory.RoleInjected, memory.TrustInjected
		p.say(rec, base, content)
	default:
		bump(p.r.stats.Unknown, "message/"+role)
	}
}

// part reads one block of the assistant's content.
func (p *pi) part(rec *record, base memory.Turn, e span) {
	b := rec.b
	if !isObject(b, e) {
		bump(p.r.stats.Dropped, "odd_block")
		return
	}
	ms, _ := members(b, e.s, nil)
	var typ, txt, id, name, args span
	for _, m := range ms {
		switch string(m.key) {
		case "type":
			typ = m.val
		case "text":
			txt = m.val
		case "id":
			id = m.val
		case "name":
			name = m.val
		case "arguments":
			args = m.val
		}
	}
	switch kind := p.r.names.text(b, typ); kind {
	case "text":
		if isString(b, txt) {
			p.say(rec, base, txt)
		}
	case "toolCall":
		t := base
		t.Kind = memory.KindToolCall
		tgt, ok := target(b, args, rec.base)
		t.Tool = &memory.Tool{Name: p.r.names.text(b, name), CallID: text(b, id)}
		t.Tool.Edits = edits(b, args, rec.base, t.Tool.Name)
		if ok {
			t.Tool.Target, t.Pieces = label(tgt.Text), []memory.Piece{tgt}
		}
		if id.ok() && isOwn(t.Tool.Name, tgt.Text) {
			p.tools[p.r.ids.hash(b[id.s:id.e])] = true
		}
		p.emit(t)
	case "thinking":
		p.r.stats.g.thinking++
		p.r.stats.drop("thinking")
	default:
		bump(p.r.stats.Dropped, "block/"+kind)
	}
}

// end marks what is off the active path.
func (p *pi) end() {
	active := map[uint64]bool{}
	for at := p.leaf; at != 0 && !active[at]; at = p.parents[at] {
		active[at] = true
	}
	held := p.r.win.held()
	for i := range held {
		t := &held[i]
		_, name, _ := strings.Cut(t.ID, "/")
		name, _, _ = strings.Cut(name, "#")
		h := p.r.ids.hash([]byte(name))
		if _, ok := p.parents[h]; ok && !active[h] {
			t.Abandoned = true
		}
	}
}
