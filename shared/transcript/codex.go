package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// codex reads rollouts of the Codex CLI (formats.md section 3), with and
// without the envelope {timestamp, type, payload}.
//
// Each text stands twice, as response_item and as event_msg. The first is
// read; events are held back and stand in for it in a file that has no
// response_item of that role.
type codex struct {
	r   *Reader
	env codexRecord

	begun    bool // the canonical session_meta was read
	thread   string
	clean    string // thread as ids hold it
	start    time.Time
	startRaw string
	cwd      string
	branch   string
	remote   string
	index    int // of the record, from 0

	replay  replay
	tools   map[uint64]tool // by call id
	user    doubtful        // event turns, while no response_item of the role was read
	agent   doubtful
	guessed doubtful // since the copy of a fork ended by a guess
	prompt  []prompt // human turns that a rollback can take back
}

// doubtful are turns that may be taken back.
type doubtful struct {
	over  bool  // no more of them
	seqs  []int // ascending
	muted int   // the first ones, before Options.From
}

func (d *doubtful) add(r *Reader, seq int) {
	d.seqs = append(d.seqs, seq)
	if r.muted {
		d.muted++
	}
}

// prompt is the start of a user turn.
type prompt struct {
	id  string
	seq int
}

// maxPrompts bounds how many turns a rollback can reach back over.
const maxPrompts = 4096

// codexRecord is one line.
type codexRecord struct {
	rec     *record
	kind    string // of the envelope
	typ     string // of the payload
	role    string
	stamp   span
	ordinal span
	ms      []member // of the payload
	bare    bool     // without an envelope
	time    time.Time
	timeRaw string
	timed   bool
}

func newCodex(r *Reader) *codex {
	return &codex{r: r, tools: map[uint64]tool{}}
}

func (v *codexRecord) field(name string) span { return fieldOf(v.ms, name) }

// fieldOf is the last member of that name.
func fieldOf(ms []member, name string) span {
	v := span{}
	for i := range ms {
		if string(ms[i].key) == name {
			v = ms[i].val
		}
	}
	return v
}

// payloadTypes are the response items that may stand without an envelope.
var payloadTypes = map[string]bool{
	"message": true, "reasoning": true, "function_call": true, "function_call_output": true, "custom_tool_call": true,
	"custom_tool_call_output": true, "local_shell_call": true, "local_shell_call_output": true, "web_search_call": true,
	"tool_search_call": true, "tool_search_output": true, "image_generation_call": true, "ghost_snapshot": true,
	"compaction": true, "compaction_summary": true, "context_compaction": true, "agent_message": true,
}

func (c *codex) read(rec *record) *codexRecord {
	b := rec.b
	c.env = codexRecord{rec: rec, ms: c.env.ms[:0]}
	v := &c.env
	var typ, payload span
	for i := range rec.ms {
		m := &rec.ms[i]
		switch string(m.key) {
		case "type":
			typ = m.val
		case "timestamp":
			v.stamp = m.val
		case "ordinal":
			v.ordinal = m.val
		case "payload":
			payload = m.val
		}
	}
	v.kind = c.r.names.text(b, typ)
	switch {
	case isObject(b, payload):
		v.ms, _ = members(b, payload.s, v.ms)
		v.typ = c.r.names.text(b, v.field("type"))
	case payload.ok():
	case payloadTypes[v.kind] || v.kind == "" && fieldOf(rec.ms, "role").ok():
		v.bare, v.typ, v.kind = true, v.kind, "response_item"
		v.ms = append(v.ms, rec.ms...)
	case v.kind == "" && isString(b, fieldOf(rec.ms, "id")):
		v.bare, v.kind = true, "session_meta"
		v.ms = append(v.ms, rec.ms...)
	}
	v.role = c.r.names.text(b, v.field("role"))
	if v.kind == "response_item" && v.typ == "" && v.role != "" {
		v.typ = "message" // as old versions leave it out
	}
	v.time, v.timeRaw, v.timed = timeOf(b, v.stamp)
	return v
}

// name is the record's place in the table of types.
func (v *codexRecord) name(b []byte) string {
	switch {
	case v.kind == "":
		return "?"
	case v.kind == "response_item" && !v.bare && !v.field("type").ok() && v.role != "":
		return "response_item/role:" + v.role
	case v.kind == "response_item" || v.kind == "event_msg":
		return v.kind + "/" + v.typ
	}
	return v.kind
}

func (c *codex) record(rec *record) {
	s := &c.r.stats
	b := rec.b
	v := c.read(rec)
	index := c.index
	c.index++
	bump(s.types, v.name(b))
	if v.timed {
		s.time(v.time, v.timeRaw)
	}
	if v.kind == "session_meta" {
		c.header(v)
		return
	}
	copied, wrong := c.replay.copied(v, index)
	if wrong {
		c.takeBack(&c.guessed, "fork_replay")
	}
	if copied {
		s.drop("fork_replay")
		return
	}
	switch v.kind {
	case "response_item", "event_msg":
		// A line that was written twice; time and text of two turns never agree.
		if v.timed && c.r.ids.repeated(nil, b[rec.at.s:rec.at.e]) {
			s.drop("repeated")
			return
		}
		if v.kind == "event_msg" {
			c.event(v)
		} else {
			c.item(v)
		}
	case "turn_context":
		if dir := v.field("cwd"); isString(b, dir) {
			c.cwd = c.r.names.text(b, dir)
			s.cwd(c.cwd)
		}
		s.drop(v.kind)
	case "compacted", "world_state", "inter_agent_communication", "inter_agent_communication_metadata", "session_state", "token_usage_record":
		s.drop(v.kind)
	case "":
		if fieldOf(rec.ms, "record_type").ok() {
			s.drop("state")
		} else {
			s.drop("no_type")
		}
	default:
		bump(s.Unknown, v.kind)
	}
}

// header reads session_meta. The first one names the session; later ones of
// another thread are copied from the parent.
func (c *codex) header(v *codexRecord) {
	s := &c.r.stats
	b := v.rec.b
	id := text(b, v.field("id"))
	if id == "" {
		id = text(b, v.field("session_id"))
	}
	if c.begun && id != c.thread {
		s.drop("copied_meta")
		return
	}
	if !c.begun {
		c.begun, c.thread = true, id
		c.clean = ""
		s.session(id)
		stamp := v.field("timestamp")
		if c.start, c.startRaw, _ = timeOf(b, stamp); c.start.IsZero() {
			c.start, c.startRaw = v.time, v.timeRaw
		}
		if c.start.IsZero() {
			c.startRaw = ""
		}
		c.replay.begin(v, id, c.start)
	}
	if dir := v.field("cwd"); isString(b, dir) {
		c.cwd = c.r.names.text(b, dir)
		s.cwd(c.cwd)
	}
	if version := v.field("cli_version"); isString(b, version) {
		s.versions.add(c.r.names.text(b, version))
	}
	if git := v.field("git"); isObject(b, git) {
		ms, _ := members(b, git.s, nil)
		if branch := fieldOf(ms, "branch"); isString(b, branch) {
			c.branch = text(b, branch)
		}
		if remote := fieldOf(ms, "repository_url"); isString(b, remote) {
			c.remote = withoutPassword(text(b, remote))
		}
	}
}

// withoutPassword drops a user name and a password or token from a URL, as a
// turn's remote stands in records unredacted.
func withoutPassword(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || u.User == nil || u.Scheme != "http" && u.Scheme != "https" {
		return remote
	}
	u.User = nil
	return u.String()
}

// sessionID is the thread's id, else what follows the time in the file name:
// rollout-2026-01-02T03-04-05-<uuid>.
func (c *codex) sessionID() string {
	if c.clean == "" {
		id := c.thread
		if id == "" {
			id = c.r.stem()
			if t, ok := strings.CutPrefix(id, "rollout-"); ok && len(t) > 20 && t[19] == '-' {
				id = t[20:]
			}
		}
		c.clean = cleanID(id)
	}
	return c.clean
}

// turn is the common part of every turn of a record.
func (c *codex) turn(v *codexRecord, role memory.Role, kind memory.Kind, trust memory.Trust) memory.Turn {
	t := memory.Turn{
		Session: c.sessionID(), Role: role, Kind: kind, Trust: trust,
		Cwd: c.cwd, GitBranch: c.branch, Remote: c.remote, TimeQuality: memory.TimeNone,
		Line: v.rec.line, From: v.rec.from(), To: v.rec.to(),
	}
	switch {
	case v.timed:
		t.Time, t.TimeRaw, t.TimeQuality = v.time, v.timeRaw, memory.TimeExact
	case !c.start.IsZero():
		t.Time, t.TimeRaw, t.TimeQuality = c.start, c.startRaw, memory.TimeHeader
	}
	return t
}

// id is thread/ordinal, else thread/hash of the line without its timestamp.
func (c *codex) id(v *codexRecord) string {
	b, at := v.rec.b, v.rec.at
	if n := v.ordinal; n.ok() && n.e-n.s <= 20 && b[n.s] >= '0' && b[n.s] <= '9' {
		return c.r.ids.unique(c.sessionID() + "/" + cleanID(string(b[n.s:n.e])))
	}
	h := sha256.New()
	if v.stamp.ok() {
		h.Write(b[at.s:v.stamp.s])
		h.Write(b[v.stamp.e:at.e])
	} else {
		h.Write(b[at.s:at.e])
	}
	return c.r.ids.unique(c.sessionID() + "/" + hex.EncodeToString(h.Sum(nil)[:16]))
}

// emit cuts harness passages out of a turn and emits what is left. It reports
// the turn's id, "" when nothing is left.
func (c *codex) emit(v *codexRecord, t memory.Turn) string {
	if len(t.Pieces) > 0 || t.Kind != memory.KindToolCall {
		kept, injected, own := cutAll(t.Pieces)
		if injected {
			c.r.stats.drop("system_reminder")
		}
		if own {
			c.r.stats.drop("own_memory")
		}
		switch {
		case !blank(kept):
			t.Pieces = kept
		case own:
			t.Derived = true
		default:
			if t.Kind != memory.KindToolCall {
				c.r.stats.drop("no_content")
				return ""
			}
			t.Pieces = nil
		}
	}
	t.ID = c.id(v)
	if c.replay.guess {
		c.guessed.add(c.r, c.r.seq)
	}
	c.r.emit(t)
	return t.ID
}

// end gives up nothing: event turns without a response_item stay.
func (c *codex) end() {}

// rescue finds a whole record after one that was cut off without a line end.
func (c *codex) rescue(b []byte, i int) int {
	at := bytes.LastIndex(b[i+1:], []byte(`{"timestamp":`))
	if at < 0 {
		return -1
	}
	at += i + 1
	if e := skipValue(b, at, 0); e < 0 || skipSpace(b, e) != len(b) {
		return -1
	}
	ms, _ := members(b, at, nil)
	if !fieldOf(ms, "payload").ok() {
		return -1
	}
	return at
}

// intOf reads a whole number; n is -1 when v is none.
func intOf(b []byte, v span) int {
	if !v.ok() || v.e-v.s > 18 {
		return -1
	}
	n, err := strconv.Atoi(string(b[v.s:v.e]))
	if err != nil || n < 0 {
		return -1
	}
	return n
}
