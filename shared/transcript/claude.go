package transcript

import (
	"strings"
	"time"
	"unicode"

	"github.com/mneme-ai/mneme/shared/memory"
)

// claude reads Claude Code transcripts (formats.md section 1). File order is
// the order of truth; the parent chain only serves to find rewound prompts.
type claude struct {
	r *Reader

	env    envelope
	block  []member // scratch
	blocks []block  // scratch

	cwd      string // last seen: some records name none
	session  string
	clean    string // session as ids hold it
	branch   string
	worktree string              // folder of the last worktree that was entered
	root     string              // the folder it was entered from
	messages map[uint64]struct{} // message ids
	tools    map[uint64]tool     // by call id
	orphans  map[uint64]struct{} // results whose call has not come
	prompts  map[uint64]int      // Seq of the last human turn under a parent
	queue    queue
	records  map[uint64]struct{} // texts that stand in a record of their own
	steered  map[uint64]*steered // texts that were emitted out of the queue
}

// tool is what a later result needs of its call.
type tool struct {
	name     string
	own      bool // its result is Mneme's own output
	answered bool
}

// envelope is the fields of one record that matter here.
type envelope struct {
	typ, subtype, uuid, parent, session, stamp, cwd, version, branch span
	meta, summary, sidechain, agent, apiError, message, data         span
	op, content                                                      span
	attachment, toolResult, relocated, mid, model, mcontent          span

	rec     *record
	kind    string
	time    time.Time
	timeRaw string
	timeOK  bool
}

func newClaude(r *Reader) *claude {
	return &claude{
		r: r, messages: map[uint64]struct{}{}, tools: map[uint64]tool{}, orphans: map[uint64]struct{}{},
		prompts: map[uint64]int{}, records: map[uint64]struct{}{}, steered: map[uint64]*steered{},
	}
}

func (c *claude) read(rec *record) *envelope {
	c.env = envelope{rec: rec}
	v := &c.env
	for i := range rec.ms {
		m := &rec.ms[i]
		switch string(m.key) {
		case "type":
			v.typ = m.val
		case "subtype":
			v.subtype = m.val
		case "uuid":
			v.uuid = m.val
		case "parentUuid":
			v.parent = m.val
		case "sessionId":
			v.session = m.val
		case "timestamp":
			v.stamp = m.val
		case "cwd":
			v.cwd = m.val
		case "version":
			v.version = m.val
		case "gitBranch":
			v.branch = m.val
		case "isMeta":
			v.meta = m.val
		case "isCompactSummary":
			v.summary = m.val
		case "isSidechain":
			v.sidechain = m.val
		case "agentId":
			v.agent = m.val
		case "isApiErrorMessage":
			v.apiError = m.val
		case "message":
			v.message = m.val
		case "data":
			v.data = m.val
		case "operation":
			v.op = m.val
		case "content":
			v.content = m.val
		case "attachment":
			v.attachment = m.val
		case "toolUseResult":
			v.toolResult = m.val
		case "relocatedCwd":
			v.relocated = m.val
		}
	}
	return v
}

// known are the record types that this reader knows; of any other it counts
// the name.
var known = map[string]bool{
	"assistant": true, "user": true, "progress": true, "system": true, "file-history-snapshot": true,
	"file-history-delta": true, "summary": true, "queue-operation": true, "pr-link": true, "attachment": true,
	"ai-title": true, "custom-title": true, "agent-name": true, "last-prompt": true, "mode": true,
	"permission-mode": true, "atis-latch": true, "frame-link": true, "relocated": true, "worktree-state": true,
	"bridge-session": true, "content-replacement": true, "history-suppression": true, "cost-state": true,
	"tag": true, "compact_boundary": true, "turn_end": true,
}

func (c *claude) record(rec *record) {
	s := &c.r.stats
	b := rec.b
	v := c.read(rec)
	v.kind = c.r.names.text(b, v.typ)
	c.count(v)
	if v.stamp.ok() {
		if v.time, v.timeRaw, v.timeOK = timeOf(b, v.stamp); v.timeOK {
			s.time(v.time, v.timeRaw)
		}
	}
	if isString(b, v.session) {
		if id := c.r.names.text(b, v.session); id != c.session {
			c.session, c.clean = id, cleanID(id)
			s.session(id)
		}
	}
	if isString(b, v.version) {
		s.versions.add(c.r.names.text(b, v.version))
	}
	if isString(b, v.cwd) {
		c.cwd = c.r.names.text(b, v.cwd)
		s.cwd(c.cwd)
	}
	if isString(b, v.relocated) {
		c.cwd = text(b, v.relocated)
	}
	if isString(b, v.branch) {
		c.branch = c.r.names.text(b, v.branch)
	}
	switch v.kind {
	case "assistant", "user":
		c.message(v)
	case "queue-operation":
		c.queued(v)
	case "attachment":
		c.attached(v)
	case "system":
		c.system(v)
	case "worktree-state":
		c.entered(v)
		s.drop(v.kind)
	case "":
		s.drop("no_type")
	default:
		if !known[v.kind] {
			bump(s.Unknown, v.kind)
			return
		}
		s.drop(v.kind)
	}
}

// entered reads the record of a worktree that the session moved into:
// {"worktreeSession":{"originalCwd":…,"worktreePath":…}}.
func (c *claude) entered(v *envelope) {
	b := v.rec.b
	for _, m := range v.rec.ms {
		if !isObject(b, m.val) {
			continue
		}
		c.block, _ = members(b, m.val.s, c.block[:0])
		if from, to := text(b, c.field("originalCwd")), text(b, c.field("worktreePath")); from != "" && to != "" {
			c.root, c.worktree = from, strings.TrimRight(to, "/")
		}
	}
}

// count takes the record into the table of types.
func (c *claude) count(v *envelope) {
	b, name := v.rec.b, v.kind
	sub := span{}
	switch {
	case !v.typ.ok():
		name = "?"
	case name == "system":
		sub = v.subtype
	case name == "queue-operation":
		sub = v.op
	case name == "progress" && isObject(b, v.data):
		c.block, _ = members(b, v.data.s, c.block[:0])
		for _, m := range c.block {
			if string(m.key) == "type" {
				sub = m.val
			}
		}
	}
	if isString(b, sub) {
		name = c.r.names.str(append(append([]byte(name), '/'), b[sub.s+1:sub.e-1]...))
	}
	bump(c.r.stats.types, name)
}

// message reads an assistant or user record.
func (c *claude) message(v *envelope) {
	s := &c.r.stats
	b := v.rec.b
	assistant := v.kind == "assistant"
	if assistant {
		s.g.assistantLines++
	}
	if v.message.ok() && !isNull(b, v.message) && !isObject(b, v.message) {
		s.g.messageNotObject++
		s.drop("message_not_object")
		return
	}
	if !isObject(b, v.message) {
		s.drop("no_message")
		return
	}
	for _, m := range v.rec.in.ms {
		switch string(m.key) {
		case "id":
			v.mid = m.val
		case "model":
			v.model = m.val
		case "content":
			v.mcontent = m.val
		}
	}
	c.blocks = c.blocks[:0]
	switch {
	case isString(b, v.mcontent):
		c.blocks = append(c.blocks, block{at: v.mcontent})
	case isArray(b, v.mcontent):
		c.blocks = append(c.blocks, v.rec.in.blocks...)
	}
	if assistant && isString(b, v.mid) {
		h := c.r.ids.hash(b[v.mid.s:v.mid.e])
		if _, ok := c.messages[h]; !ok {
			c.messages[h] = struct{}{}
			s.g.messageIDs++
		}
	}
	drop := ""
	switch {
	case assistant && text(b, v.model) == "<synthetic>":
		drop = "synthetic"
	case isTrue(b, v.apiError):
		drop = "api_error"
	case c.repeated(v):
		drop = "repeated"
	}
	if v.toolResult.ok() {
		s.drop("tool_use_result")
	}
	human := false
	for _, k := range c.blocks {
		if assistant {
			c.said(v, k, drop)
		} else if c.heard(v, k, drop) {
			human = true
		}
	}
	if human {
		s.g.human++
	}
	if drop != "" {
		s.drop(drop)
	}
}

// repeated reports whether a record of this id came before: a session's older
// records are written again on compaction and when it is handed on. A UUID names one
// record for ever, whatever else changed in it; another id may be somebody's
// own numbering, and only the same content makes it a copy.
func (c *claude) repeated(v *envelope) bool {
	b := v.rec.b
	if !v.uuid.ok() || len(c.blocks) == 0 {
		return false
	}
	if isString(b, v.uuid) && isUUID(b[v.uuid.s+1:v.uuid.e-1]) {
		return c.r.ids.repeated(b[v.uuid.s:v.uuid.e], nil)
	}
	return c.r.ids.repeated(b[v.uuid.s:v.uuid.e], b[v.mcontent.s:v.mcontent.e])
}

// isUUID reports whether b is a UUID in its usual form of 36 characters.
func isUUID(b []byte) bool {
	if len(b) != 36 {
		return false
	}
	for i, x := range b {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if x != '-' {
				return false
			}
		case x >= '0' && x <= '9', x >= 'a' && x <= 'f', x >= 'A' && x <= 'F':
		default:
			return false
		}
	}
	return true
}

// blockType puts one content block into c.block and gives its type; a bare
// string is a text block only where the content is a string.
func (c *claude) blockType(b []byte, v *envelope, k block) string {
	c.block = c.block[:0]
	if isString(b, k.at) && k.at == v.mcontent {
		return "text"
	}
	if !isObject(b, k.at) {
		return "odd_block"
	}
	c.block = append(c.block, v.rec.in.bm[k.from:k.to]...)
	for _, m := range c.block {
		if string(m.key) == "type" {
			return c.r.names.text(b, m.val)
		}
	}
	return "odd_block"
}

func (c *claude) field(name string) span {
	v := span{}
	for _, m := range c.block {
		if string(m.key) == name {
			v = m.val
		}
	}
	return v
}

// turn is the common part of every turn of a record.
func (c *claude) turn(v *envelope, role memory.Role, kind memory.Kind, trust memory.Trust) memory.Turn {
	t := memory.Turn{
		Session: c.sessionID(), Role: role, Kind: kind, Trust: trust,
		Cwd: c.cwd, GitBranch: c.branch,
		TimeQuality: memory.TimeNone,
		Line:        v.rec.line, From: v.rec.from(), To: v.rec.to(),
	}
	if c.worktree != "" && (c.cwd == c.worktree || strings.HasPrefix(c.cwd, c.worktree+"/")) {
		t.Root = c.root
	}
	if v.timeOK {
		t.Time, t.TimeRaw, t.TimeQuality = v.time, v.timeRaw, memory.TimeExact
	}
	if isTrue(v.rec.b, v.sidechain) {
		if t.Agent = c.r.names.text(v.rec.b, v.agent); t.Agent == "" {
			t.Agent = "sidechain"
		}
	}
	if isString(v.rec.b, v.parent) {
		t.ParentID = cleanID(text(v.rec.b, v.parent))
	}
	return t
}

func (c *claude) sessionID() string {
	if c.session == "" && c.clean == "" {
		c.clean = c.r.stem()
	}
	return c.clean
}

// id names a turn: session/uuid, else session/message.id, else by its content.
// The parts of one API message stand in records of their own: numbering them
// under the message's id would give a slice that begins in between other ids
// than the whole file.
func (c *claude) id(v *envelope) string {
	b, own := v.rec.b, v.uuid
	if !isString(b, own) {
		own = v.mid
	}
	name := ""
	if isString(b, own) {
		name = cleanID(text(b, own))
	} else {
		name = string(memory.Sum(b[v.rec.at.s:v.rec.at.e]))[:32]
	}
	return c.r.ids.unique(c.sessionID() + "/" + name)
}

func (c *claude) emit(v *envelope, t memory.Turn) {
	t.ID = c.id(v)
	c.r.emit(t)
}

// said reads one block of the assistant.
func (c *claude) said(v *envelope, k block, drop string) {
	s := &c.r.stats
	b, base := v.rec.b, v.rec.base
	switch typ := c.blockType(b, v, k); typ {
	case "text":
		txt := k.at
		if isObject(b, txt) {
			txt = c.field("text")
		}
		if !isString(b, txt) || drop != "" {
			return
		}
		c.speech(v, piece(b, txt, base), memory.RoleAssistant, memory.KindText, memory.TrustAssistant)
	case "thinking", "redacted_thinking":
		s.g.thinking++
		s.drop(typ)
	case "tool_use", "server_tool_use":
		if typ == "tool_use" {
			s.g.toolUse++
		}
		name, id, input := c.r.names.text(b, c.field("name")), c.field("id"), c.field("input")
		tgt, ok := target(b, input, base)
		if id.ok() {
			c.called(b[id.s:id.e], tool{name: name, own: isOwn(name, tgt.Text)}, typ == "tool_use")
		}
		if drop != "" {
			return
		}
		if name == "ExitPlanMode" {
			// The plan is what the assistant proposes in words.
			c.block = c.block[:0]
			if isObject(b, input) {
				c.block, _ = members(b, input.s, c.block)
			}
			if plan := c.field("plan"); isString(b, plan) {
				c.speech(v, piece(b, plan, base), memory.RoleAssistant, memory.KindText, memory.TrustAssistant)
			}
		}
		t := c.turn(v, memory.RoleAssistant, memory.KindToolCall, memory.TrustAssistant)
		t.Tool = &memory.Tool{Name: name, CallID: text(b, id), Edits: edits(b, input, base, name)}
		if ok {
			t.Tool.Target = label(tgt.Text)
			t.Pieces = []memory.Piece{tgt}
		}
		c.emit(v, t)
	default:
		c.odd(typ)
	}
}

// odd counts a block that is not read.
func (c *claude) odd(typ string) {
	if typ == "image" {
		c.r.stats.g.images++
	}
	bump(c.r.stats.Dropped, "block/"+typ)
}

// called notes a tool call, answered one for its later result.
func (c *claude) called(id []byte, t tool, counts bool) {
	h := c.r.ids.hash(id)
	if old, ok := c.tools[h]; ok {
		t.answered = old.answered
		counts = false
	}
	if _, ok := c.orphans[h]; ok {
		delete(c.orphans, h)
		c.r.stats.g.orphanResult--
		t.answered = true
	}
	c.tools[h] = t
	if counts && !t.answered {
		c.r.stats.g.orphanUse++
	}
}

func (c *claude) answered(id []byte) tool {
	h := c.r.ids.hash(id)
	t, ok := c.tools[h]
	switch {
	case !ok:
		if _, ok := c.orphans[h]; !ok {
			c.orphans[h] = struct{}{}
			c.r.stats.g.orphanResult++
		}
	case !t.answered:
		t.answered = true
		c.tools[h] = t
		c.r.stats.g.orphanUse--
	}
	return t
}

// heard reads one block of a user record and reports whether a person wrote
// it.
func (c *claude) heard(v *envelope, k block, drop string) bool {
	b, base := v.rec.b, v.rec.base
	switch typ := c.blockType(b, v, k); typ {
	case "text":
		txt := k.at
		if isObject(b, txt) {
			txt = c.field("text")
		}
		if !isString(b, txt) {
			return false
		}
		return c.prompt(v, piece(b, txt, base), drop)
	case "tool_result":
		c.result(v, drop)
	default:
		c.odd(typ)
	}
	return false
}

// speech emits a text without the passages that a harness put into it.
func (c *claude) speech(v *envelope, p memory.Piece, role memory.Role, kind memory.Kind, trust memory.Trust) {
	kept, injected, derived := cut(p)
	if injected {
		c.r.stats.drop("system_reminder")
	}
	if derived {
		c.r.stats.drop("own_memory")
	}
	t := c.turn(v, role, kind, trust)
	t.Pieces = kept
	if blank(kept) {
		if !derived {
			return
		}
		t.Derived, t.Pieces = true, []memory.Piece{p}
	}
	c.emit(v, t)
}

// Openings of user texts that no person typed (formats.md 1.6).
var notSpeech = []string{
	"<command-name>", "<command-message>", "<local-command-", "<bash-stdout>", "<bash-stderr>",
	"<task-notification>", "[Request interrupted", "This session is being continued",
	"Caveat: The messages below", "<ide_opened_file>", "<ide_selection>", "<user-prompt-submit-hook>",
}

func isNotSpeech(s string) bool {
	for _, p := range notSpeech {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// prompt sorts a user text and reports whether a person wrote it.
func (c *claude) prompt(v *envelope, p memory.Piece, drop string) bool {
	b := v.rec.b
	kept, _, derived := cut(p)
	head := ""
	if len(kept) > 0 {
		head = strings.TrimLeftFunc(kept[0].Text, unicode.IsSpace)
	}
	role, kind, trust := memory.RoleUser, memory.KindText, memory.TrustUser
	human := false
	switch {
	case isTrue(b, v.summary):
		role, trust = memory.RoleSummary, memory.TrustInjected
	case isTrue(b, v.meta):
		role, trust = memory.RoleInjected, memory.TrustInjected
	case strings.HasPrefix(head, "<bash-input>"):
		kind = memory.KindCommand
		if from, to, ok := tagged(kept[0].Text, "bash-input"); ok {
			if q, ok := trimmed(kept[0], from, to); ok {
				p = q
			}
		}
	case isNotSpeech(head):
		if q, ok := arguments(kept[0]); ok && drop == "" {
			c.speech(v, q, memory.RoleUser, memory.KindCommand, memory.TrustUser)
		}
		role, trust = memory.RoleInjected, memory.TrustInjected
	case head == "" && !derived:
		return false
	case isTrue(b, v.sidechain):
		// To a sub-agent the agent speaks that started it.
		role, trust = memory.RoleAssistant, memory.TrustAssistant
	default:
		human = head != ""
	}
	if drop != "" {
		return human
	}
	if human {
		c.stands(p)
		if isString(b, v.parent) {
			c.rewound(v)
		}
	}
	c.speech(v, p, role, kind, trust)
	return human
}

// minArgumentWords is how many words make a slash command's arguments a
// person's request rather than flags.
const minArgumentWords = 3

// arguments are the words after a slash command, when they are words.
func arguments(p memory.Piece) (memory.Piece, bool) {
	from, to, ok := tagged(p.Text, "command-args")
	if !ok || len(strings.Fields(p.Text[from:to])) < minArgumentWords || strings.HasPrefix(strings.TrimSpace(p.Text[from:to]), "-") {
		return memory.Piece{}, false
	}
	return trimmed(p, from, to)
}

// rewound marks what stands between two human prompts under one parent: the
// person went back and took another way (formats.md 1.5).
func (c *claude) rewound(v *envelope) {
	b := v.rec.b
	h := c.r.ids.hash(b[v.parent.s:v.parent.e])
	first, ok := c.prompts[h]
	c.prompts[h] = c.r.seq
	if !ok {
		return
	}
	session := c.sessionID()
	held := c.r.win.held()
	for i := range held {
		if t := &held[i]; t.Seq >= first && t.Line != v.rec.line && t.Session == session {
			t.Abandoned = true
		}
	}
}

// Words by which a rejected tool call hands on what the person said.
const (
	rejectedNote = "\n\nNote: The user's next message may contain"
	answersHead  = "User has answered your questions:"
)

var (
	rejectedHeads = []string{"The user doesn't want to", "Permission for this tool use was denied"} // the latter to sub-agents
	userSaid      = []string{"the user said:\n", "The user said:\n"}
)

// refusal finds what the person said in the text of a rejected tool call; ok
// is false when it is none or holds no words of a person.
func refusal(p memory.Piece) (said memory.Piece, ok bool) {
	for _, h := range rejectedHeads {
		if !strings.HasPrefix(p.Text, h) {
			continue
		}
		for _, w := range userSaid {
			from := strings.Index(p.Text, w)
			if from < 0 {
				continue
			}
			from += len(w)
			to := len(p.Text)
			if k := strings.Index(p.Text[from:], rejectedNote); k >= 0 {
				to = from + k
			}
			return trimmed(p, from, to)
		}
	}
	return memory.Piece{}, false
}

// isAnswer says that a result holds a person's answers, "question"="answer".
// What stands before them differs by version, so the call tells where the file
// has it.
func isAnswer(tool, result string, isError bool) bool {
	switch tool {
	case "AskUserQuestion":
		return !isError && strings.Contains(result, `"="`)
	case "":
		return strings.HasPrefix(result, answersHead)
	}
	return false
}

// result reads the tool_result block in c.block.
func (c *claude) result(v *envelope, drop string) {
	s := &c.r.stats
	b, base := v.rec.b, v.rec.base
	id, content, isError := c.field("tool_use_id"), c.field("content"), isTrue(b, c.field("is_error"))
	s.g.toolResult++
	if isError {
		s.g.toolErrors++
	}
	var call tool
	if id.ok() {
		call = c.answered(b[id.s:id.e])
	}
	var ps []memory.Piece
	take := func(txt span) {
		kept, injected, derived := cut(piece(b, txt, base))
		if injected {
			s.drop("system_reminder")
		}
		if derived {
			s.drop("own_memory")
		}
		ps = append(ps, kept...)
	}
	switch {
	case isString(b, content):
		take(content)
	case isArray(b, content):
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
					typ = text(b, m.val)
				case "text":
					txt = m.val
				}
			}
			if typ == "text" && isString(b, txt) {
				take(txt)
			} else {
				c.odd(typ)
			}
			return true
		})
	}
	if isError && len(ps) > 0 {
		if q, ok := refusal(ps[0]); ok {
			s.g.reject++
			if drop == "" {
				t := c.turn(v, memory.RoleUser, memory.KindFeedback, memory.TrustUser)
				t.Pieces = []memory.Piece{q}
				t.Tool = &memory.Tool{Name: call.name, CallID: text(b, id), IsError: true}
				c.emit(v, t)
			}
			return
		}
	}
	if drop != "" {
		return
	}
	if len(ps) > 0 && isAnswer(call.name, ps[0].Text, isError) {
		from, to := strings.IndexByte(ps[0].Text, '"'), strings.LastIndexByte(ps[0].Text, '"')+1
		if from >= 0 && from < to {
			if q, ok := slice(ps[0], from, to); ok {
				t := c.turn(v, memory.RoleUser, memory.KindFeedback, memory.TrustUser)
				t.Pieces = []memory.Piece{q}
				t.Tool = &memory.Tool{Name: call.name, CallID: text(b, id)}
				c.emit(v, t)
				return
			}
		}
	}
	if blank(ps) {
		s.drop("empty_result")
		if !isError {
			c.r.answeredQuietly(text(b, id))
		}
		return
	}
	trust := memory.TrustTool
	if isWeb(call.name) {
		trust = memory.TrustWeb
	}
	t := c.turn(v, memory.RoleTool, memory.KindToolResult, trust)
	t.Tool = &memory.Tool{Name: call.name, CallID: text(b, id), IsError: isError}
	t.Pieces, t.Derived = ps, call.own
	c.emit(v, t)
}

func (c *claude) end() {}
