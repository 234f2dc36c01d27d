package transcript

import (
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// gemini reads sessions of the Gemini CLI (formats.md section 4): JSON Lines
// with a header, messages, $set and $rewindTo, or one JSON document
// {sessionId, projectHash, messages}.
//
// A message is appended again when its tool calls have ended. The last copy
// counts, at the place of the first: messages are held back, as much as the
// window holds, and of one that is gone only what is new comes later.
type gemini struct {
	r     *Reader
	doc   document
	lines *jsonl

	session  string
	clean    string
	project  string // hash of the working directory
	cwd      string
	start    time.Time
	startRaw string
	spoken   bool // a message was read

	held  []*geminiMessage
	at    map[string]*geminiMessage // of those held, by id
	gone  map[uint64]int            // ids of those given out: how many turns
	bytes int
}

// geminiMessage is the newest copy of one message.
type geminiMessage struct {
	id    string
	turns []memory.Turn
	bytes int
	skip  int // turns that were given out before
}

func newGemini(r *Reader) *gemini {
	g := &gemini{r: r, at: map[string]*geminiMessage{}, gone: map[uint64]int{}}
	g.lines = newJSONL(r, g)
	g.doc = document{r: r, head: g.field, element: g.element}
	return g
}

func (g *gemini) line(ln line) {
	if g.doc.open || g.r.stats.Records == 0 && !g.spoken && g.doc.begins(ln) {
		g.doc.line(ln)
		return
	}
	g.lines.line(ln)
}

func (g *gemini) end() {
	g.doc.end()
	for len(g.held) > 0 && !g.r.stop {
		g.give()
	}
}

// record reads one line of JSON Lines, or a document on one line.
func (g *gemini) record(rec *record) {
	s := &g.r.stats
	b := rec.b
	var set, rewind, list, session, typ span
	for i := range rec.ms {
		m := &rec.ms[i]
		switch string(m.key) {
		case "$set":
			set = m.val
		case "$rewindTo":
			rewind = m.val
		case "messages":
			list = m.val
		case "sessionId":
			session = m.val
		case "type":
			typ = m.val
		}
	}
	switch {
	case set.ok():
		bump(s.types, "$set")
		if !isObject(b, set) {
			return
		}
		ms, _ := members(b, set.s, nil)
		for _, m := range ms {
			g.field(string(m.key), b, m.val)
		}
		g.list(rec, fieldOf(ms, "messages"), false)
	case rewind.ok():
		bump(s.types, "$rewindTo")
		g.rewind(text(b, rewind))
	case session.ok() && !typ.ok():
		for _, m := range rec.ms {
			g.field(string(m.key), b, m.val)
		}
		if !isArray(b, list) {
			bump(s.types, "header")
			return
		}
		s.Records--
		g.list(rec, list, true)
	default:
		g.message(rec, true)
	}
}

// list reads the messages of an array.
func (g *gemini) list(rec *record, list span, count bool) {
	elements(rec.b, list, func(e span) bool {
		if isObject(rec.b, e) {
			ms, _ := members(rec.b, e.s, nil)
			sub := record{b: rec.b, base: rec.base, at: e, line: rec.line, ms: ms}
			if count {
				g.r.stats.Records++
			}
			g.message(&sub, count)
		}
		return !g.r.stop
	})
}

// element reads a message of a document.
func (g *gemini) element(rec *record) { g.message(rec, true) }

// field reads a member of the header, of the document or of $set.
func (g *gemini) field(key string, b []byte, v span) {
	switch key {
	case "sessionId":
		if id := text(b, v); id != "" && g.session == "" {
			g.session = id
			g.clean = ""
			g.r.stats.session(id)
		}
	case "projectHash":
		g.project = text(b, v)
	case "startTime":
		if at, raw, ok := timeOf(b, v); ok {
			g.start, g.startRaw = at, raw
		}
	case "directories":
		elements(b, v, func(e span) bool { g.folder(text(b, e), false); return true })
	}
}

// folder takes dir as the working directory when its hash says so, or when
// there is no hash and the file claims it.
func (g *gemini) folder(dir string, claimed bool) {
	if dir == "" || g.cwd != "" {
		return
	}
	if string(memory.SumString(dir)) == g.project || claimed && !memory.SHA(g.project).Valid() {
		g.cwd = dir
		g.r.stats.cwd(dir)
	}
}

func (g *gemini) sessionID() string {
	if g.clean == "" {
		if g.session != "" {
			g.clean = cleanID(g.session)
		} else {
			g.clean = g.r.stem()
		}
	}
	return g.clean
}

// message reads one copy of a message.
func (g *gemini) message(rec *record, count bool) {
	s := &g.r.stats
	b := rec.b
	var id, typ, stamp, content, calls, thoughts span
	for i := range rec.ms {
		m := &rec.ms[i]
		switch string(m.key) {
		case "id":
			id = m.val
		case "type":
			typ = m.val
		case "timestamp":
			stamp = m.val
		case "content":
			content = m.val
		case "toolCalls":
			calls = m.val
		case "thoughts":
			thoughts = m.val
		}
	}
	kind := g.r.names.text(b, typ)
	if count {
		if !typ.ok() {
			bump(s.types, "?")
		} else {
			bump(s.types, kind)
		}
	}
	g.spoken = true
	t := memory.Turn{
		Session: g.sessionID(), Kind: memory.KindText, Cwd: g.cwd, TimeQuality: memory.TimeNone,
		Line: rec.line, From: rec.from(), To: rec.to(),
	}
	if at, raw, ok := timeOf(b, stamp); ok {
		t.Time, t.TimeRaw, t.TimeQuality = at, raw, memory.TimeExact
		s.time(at, raw)
	} else if !g.start.IsZero() {
		t.Time, t.TimeRaw, t.TimeQuality = g.start, g.startRaw, memory.TimeHeader
	}
	name := cleanID(text(b, id))
	if name == "" {
		name = string(memory.Sum(b[rec.at.s:rec.at.e]))[:32]
	}
	t.ID = t.Session + "/" + name
	elements(b, thoughts, func(span) bool {
		s.g.thinking++
		s.drop("thinking")
		return true
	})
	m := &geminiMessage{id: name}
	switch kind {
	case "user":
		g.asked(m, t, g.texts(rec, content))
	case "gemini", "model":
		t.Role, t.Trust = memory.RoleAssistant, memory.TrustAssistant
		g.add(m, t, g.texts(rec, content))
		n := 0
		elements(b, calls, func(e span) bool {
			if isObject(b, e) {
				g.call(m, t, rec, e, n)
				n++
			} else {
				s.drop("odd_block")
			}
			return true
		})
	case "info", "warning", "error":
		s.drop(kind)
		return
	case "":
		s.drop("no_type")
		return
	default:
		bump(s.Unknown, kind)
		return
	}
	g.hold(m)
}

// hold keeps the newest copy of a message at the place of the first.
func (g *gemini) hold(m *geminiMessage) {
	for i := range m.turns {
		m.bytes += cost(&m.turns[i])
	}
	if old, ok := g.at[m.id]; ok {
		g.r.stats.drop("rewritten")
		g.bytes += m.bytes - old.bytes
		old.turns, old.bytes = m.turns, m.bytes
	} else {
		if n, ok := g.gone[g.r.ids.hash([]byte(m.id))]; ok {
			g.r.stats.drop("rewritten")
			m.skip = min(n, len(m.turns))
		}
		g.held = append(g.held, m)
		g.at[m.id] = m
		g.bytes += m.bytes
	}
	for g.bytes > windowBytes && !g.r.stop {
		g.give()
	}
}

// give emits the oldest message that is held.
func (g *gemini) give() {
	s := &g.r.stats
	m := g.held[0]
	g.held[0] = nil
	g.held = g.held[1:]
	g.bytes -= m.bytes
	delete(g.at, m.id)
	if h := g.r.ids.hash([]byte(m.id)); len(m.turns) > g.gone[h] {
		g.gone[h] = len(m.turns)
	}
	muted := g.r.muted
	for _, t := range m.turns[m.skip:] {
		t.ID = g.r.ids.unique(t.ID)
		g.r.muted = t.From < g.r.opt.From
		if !g.r.muted {
			switch {
			case t.Kind == memory.KindToolCall:
				s.g.toolUse++
			case t.Kind == memory.KindToolResult:
				s.g.toolResult++
				if t.Tool.IsError {
					s.g.toolErrors++
				}
			case t.Role == memory.RoleUser:
				s.g.human++
			}
		}
		g.r.emit(t)
	}
	g.r.muted = muted
}

// rewind marks the message of that id, and all since, as abandoned, as far as
// they are held. What comes again under one of their ids is a new message.
func (g *gemini) rewind(id string) {
	m, ok := g.at[cleanID(id)]
	if !ok {
		g.r.stats.drop("rewind_unknown")
		return
	}
	on := false
	for _, h := range g.held {
		if on = on || h == m; !on {
			continue
		}
		for i := range h.turns {
			h.turns[i].Abandoned = true
		}
		if g.at[h.id] == h {
			delete(g.at, h.id)
		}
	}
}

// texts gives the pieces of a string, a part or an array of them.
func (g *gemini) texts(rec *record, content span) (ps []memory.Piece) {
	b := rec.b
	one := func(e span) bool {
		switch {
		case isString(b, e):
			ps = append(ps, piece(b, e, rec.base))
		case isObject(b, e):
			ms, _ := members(b, e.s, nil)
			switch txt := fieldOf(ms, "text"); {
			case isTrue(b, fieldOf(ms, "thought")):
				g.r.stats.g.thinking++
				g.r.stats.drop("thinking")
			case isString(b, txt):
				ps = append(ps, piece(b, txt, rec.base))
			default:
				g.r.stats.drop("block")
			}
		default:
			g.r.stats.drop("odd_block")
		}
		return true
	}
	if isArray(b, content) {
		elements(b, content, one)
	} else if content.ok() && !isNull(b, content) {
		one(content)
	}
	return ps
}

const (
	geminiContext = "session_context"
	geminiSetup   = "This is the Gemini CLI. We are setting up the context for our chat."
	// Files that the person named by @path follow their words, in parts between these.
	geminiFiles    = "--- Content from referenced files ---"
	geminiFilesEnd = "--- End of content ---"
	geminiFolder   = "I'm currently working in the directory: "
)

// asked reads a message of the user's, of which the program writes a part.
func (g *gemini) asked(m *geminiMessage, t memory.Turn, ps []memory.Piece) {
	var own, injected []memory.Piece
	files := false
	for _, p := range ps {
		trim := strings.TrimSpace(p.Text)
		if strings.HasPrefix(trim, geminiFiles) {
			files = true
		}
		if files || strings.HasPrefix(trim, geminiSetup) {
			injected = append(injected, p)
			files = files && !strings.HasSuffix(trim, geminiFilesEnd)
			g.here(p.Text)
			continue
		}
		if !strings.HasPrefix(trim, "<"+geminiContext+">") {
			own = append(own, p)
			continue
		}
		g.here(p.Text)
		_, to, ok := tagged(p.Text, geminiContext)
		if !ok {
			injected = append(injected, p)
			continue
		}
		to += len("</" + geminiContext + ">")
		if q, ok := trimmed(p, 0, to); ok {
			injected = append(injected, q)
		}
		if q, ok := trimmed(p, to, len(p.Text)); ok {
			own = append(own, q)
		}
	}
	t.Cwd = g.cwd
	if len(injected) > 0 {
		x := t
		x.Role, x.Trust, x.Pieces = memory.RoleInjected, memory.TrustInjected, injected
		m.turns = append(m.turns, x)
	}
	if len(own) > 0 {
		t.Role, t.Trust = memory.RoleUser, memory.TrustUser
		g.add(m, t, own)
	}
}

// here finds the working directory in what the program says of the session.
func (g *gemini) here(s string) {
	if _, rest, ok := strings.Cut(s, geminiFolder); ok {
		dir, _, _ := strings.Cut(rest, "\n")
		g.folder(strings.TrimSpace(dir), true)
		return
	}
	if _, rest, ok := strings.Cut(s, "Workspace Directories:**"); ok {
		for line := range strings.Lines(strings.TrimLeft(rest, "\n")) {
			dir, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if !ok || !strings.HasPrefix(dir, "/") && !strings.Contains(dir, `:\`) {
				return
			}
			g.folder(dir, true)
		}
	}
}

// add cuts harness passages out of a turn and keeps what is left.
func (g *gemini) add(m *geminiMessage, t memory.Turn, ps []memory.Piece) {
	if blank(ps) && t.Kind != memory.KindToolCall {
		return
	}
	kept, injected, own := cutAll(ps)
	if injected {
		g.r.stats.drop("system_reminder")
	}
	if own {
		g.r.stats.drop("own_memory")
	}
	switch {
	case !blank(kept):
		ps = kept
	case own:
		t.Derived = true
	case t.Kind != memory.KindToolCall:
		return
	}
	t.Pieces = ps
	m.turns = append(m.turns, t)
}

// call reads a tool call and its result, which stand together.
func (g *gemini) call(m *geminiMessage, t memory.Turn, rec *record, e span, n int) {
	b := rec.b
	ms, _ := members(b, e.s, nil)
	id, name := text(b, fieldOf(ms, "id")), g.r.names.text(b, fieldOf(ms, "name"))
	own := cleanID(id)
	if own == "" {
		own = "call" + strconv.Itoa(n)
	}
	t.ID += "/" + own
	use := t
	use.Kind = memory.KindToolCall
	use.Tool = &memory.Tool{Name: name, CallID: id, Edits: edits(b, fieldOf(ms, "args"), rec.base, name)}
	var ps []memory.Piece
	about := ""
	if tgt, ok := target(b, fieldOf(ms, "args"), rec.base); ok {
		about, ps = tgt.Text, []memory.Piece{tgt}
	}
	use.Tool.Target = label(about)
	g.add(m, use, ps)

	ps, failed := g.result(rec, fieldOf(ms, "result"))
	if shown := fieldOf(ms, "resultDisplay"); blank(ps) && isString(b, shown) {
		ps = []memory.Piece{piece(b, shown, rec.base)}
	}
	status := text(b, fieldOf(ms, "status"))
	t.Role, t.Kind, t.Trust = memory.RoleTool, memory.KindToolResult, memory.TrustTool
	t.Tool = &memory.Tool{Name: name, CallID: id, IsError: failed || status == "error" || status == "cancelled"}
	if isWeb(name) {
		t.Trust = memory.TrustWeb
	}
	t.Derived = isOwn(name, about)
	use.Tool.Quiet = blank(ps) && status == "success"
	if at, raw, ok := timeOf(b, fieldOf(ms, "timestamp")); ok {
		t.Time, t.TimeRaw, t.TimeQuality = at, raw, memory.TimeExact
	}
	g.add(m, t, ps)
}

// result gives the texts of a call's result: parts of text, or function
// responses, whose error makes it a failure.
func (g *gemini) result(rec *record, v span) (ps []memory.Piece, failed bool) {
	b := rec.b
	one := func(e span) bool {
		if isString(b, e) {
			ps = append(ps, piece(b, e, rec.base))
			return true
		}
		if !isObject(b, e) {
			return true
		}
		ms, _ := members(b, e.s, nil)
		if txt := fieldOf(ms, "text"); isString(b, txt) {
			ps = append(ps, piece(b, txt, rec.base))
			return true
		}
		fr := fieldOf(ms, "functionResponse")
		if !isObject(b, fr) {
			g.r.stats.drop("block")
			return true
		}
		ms, _ = members(b, fr.s, nil)
		resp := fieldOf(ms, "response")
		if !isObject(b, resp) {
			return true
		}
		ms, _ = members(b, resp.s, nil)
		for _, m := range ms {
			switch string(m.key) {
			case "output", "content":
			case "error":
				failed = failed || !isNull(b, m.val)
			default:
				continue
			}
			if isString(b, m.val) {
				ps = append(ps, piece(b, m.val, rec.base))
			}
		}
		return true
	}
	if isArray(b, v) {
		elements(b, v, one)
	} else if v.ok() {
		one(v)
	}
	return ps, failed
}
