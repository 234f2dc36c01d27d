package transcript

import (
	"cmp"
	"path"
	"slices"

	"github.com/mneme-ai/mneme/shared/memory"
)

// schemaReader reads the records of a Schema.
type schemaReader struct {
	r     *Reader
	s     *Schema
	talk  talk
	chain chain
	count counter
	conv  string // id of the conversation that the records' messages belong to
	ms    []member
	spans []placed
}

// placed is a part of a message, in the order in which it stands there.
type placed struct {
	at   span
	call bool
}

func newSchemaReader(r *Reader, s *Schema) *schemaReader {
	return &schemaReader{r: r, s: s, talk: talk{r: r}, count: counter{r}}
}

// matches says that a record is one of the schema's.
func (s *Schema) matches(base string, b []byte, ms []member) bool {
	if len(s.files) > 0 && !slices.ContainsFunc(s.files, func(g string) bool { ok, _ := path.Match(g, base); return ok }) {
		return false
	}
	for i := range s.match {
		if !s.match[i].holds(b, ms) {
			return false
		}
	}
	return true
}

func (r *rule) holds(b []byte, ms []member) bool {
	ok := false
	for _, keys := range r.path {
		follow(b, ms, keys, func(v span) bool {
			ok = (r.is == "" || kindBytes[r.is] == "" || indexByte(kindBytes[r.is], b[v.s])) &&
				(r.equals == nil || slices.Contains(r.equals, word(b, v)))
			return !ok
		})
		if ok {
			return true
		}
	}
	return false
}

func indexByte(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

// follow calls f with every value to which keys lead from an object, until f
// says false. It reports whether f did.
func follow(b []byte, ms []member, keys []string, f func(span) bool) bool {
	v := span{}
	for _, m := range ms {
		if string(m.key) == keys[0] {
			v = m.val // of two the last counts
		}
	}
	return v.ok() && descend(b, v, keys[1:], f)
}

func descend(b []byte, v span, keys []string, f func(span) bool) (stopped bool) {
	switch {
	case len(keys) == 0:
		return !f(v)
	case keys[0] == "*":
		elements(b, v, func(e span) bool {
			stopped = descend(b, e, keys[1:], f)
			return !stopped
		})
		return stopped
	case isObject(b, v):
		ms, _ := members(b, v.s, nil)
		return follow(b, ms, keys, f)
	}
	return false
}

// first is the first value that is more than null or empty.
func (p paths) first(b []byte, ms []member) span {
	var found span
	for _, keys := range p {
		if follow(b, ms, keys, func(v span) bool {
			if something(b, v) {
				found = v
			}
			return !found.ok()
		}) {
			break
		}
	}
	return found
}

// all are the values of the first alternative that leads to something.
func (p paths) all(b []byte, ms []member) (found []span) {
	for _, keys := range p {
		follow(b, ms, keys, func(v span) bool {
			if something(b, v) {
				found = append(found, v)
			}
			return true
		})
		if found != nil {
			break
		}
	}
	return found
}

func something(b []byte, v span) bool {
	switch b[v.s] {
	case 'n':
		return false
	case '"':
		return v.e-v.s > 2
	case '[', '{':
		i := skipSpace(b, v.s+1)
		return i < v.e && b[i] != ']' && b[i] != '}'
	}
	return true
}

// word is a string's text, or a number or word as it stands.
func word(b []byte, v span) string {
	switch {
	case !v.ok() || isArray(b, v) || isObject(b, v) || isNull(b, v):
		return ""
	case isString(b, v):
		return text(b, v)
	}
	return string(b[v.s:min(v.e, v.s+64)])
}

func (x *schemaReader) record(rec *record) {
	x.count.record(rec)
	if x.s.conversations == nil {
		x.thread(rec, rec.at, rec.ms)
		return
	}
	for _, v := range x.s.conversations.all(rec.b, rec.ms) {
		if isObject(rec.b, v) {
			ms, _ := members(rec.b, v.s, nil)
			x.thread(rec, v, ms)
			continue
		}
		elements(rec.b, v, func(e span) bool {
			if isObject(rec.b, e) {
				ms, _ := members(rec.b, e.s, nil)
				x.thread(rec, e, ms)
			}
			return !x.r.stop
		})
	}
}

// thread reads one conversation, or one message of the object's own.
func (x *schemaReader) thread(rec *record, at span, ms []member) {
	b := rec.b
	list := span{}
	if x.s.messages != nil {
		if list = x.s.messages.first(b, ms); !isArray(b, list) {
			list = span{}
		}
	}
	single := x.s.messages == nil
	if !list.ok() && !single {
		if !x.s.msg.role.first(b, ms).ok() {
			bump(x.r.stats.Unknown, "?")
			return
		}
		// An element of an array that is itself the conversation.
		x.message(rec, memory.Turn{TimeQuality: memory.TimeNone}, at, ms)
		return
	}
	base := x.frame(b, ms)
	id := word(b, x.s.conv.id.first(b, ms))
	if single {
		if id != "" && id != x.conv { // a record without one belongs to the last
			x.conv = id
			x.talk.reset(id)
		}
		x.message(rec, base, at, ms)
		return
	}
	x.talk.reset(id)
	known, h := x.known(b, list, id)
	i := 0
	elements(b, list, func(e span) bool {
		if i++; i <= known {
			x.r.stats.drop("repeated")
		}
		x.talk.quiet = i <= known
		if !isObject(b, e) {
			x.talk.index++
			x.r.stats.drop("not_an_object")
			return true
		}
		x.ms, _ = members(b, e.s, x.ms[:0])
		x.message(rec, base, e, x.ms)
		return !x.r.stop
	})
	x.talk.quiet = false
	x.chain.add(h)
}

// known is how many messages of the list an earlier conversation of the same
// id, or without one, ends with, and the hash of all. It also finds what names a
// conversation that has no id: its first text by a person, else its first.
func (x *schemaReader) known(b []byte, list span, id string) (n int, h uint64) {
	if id != "" {
		h = x.chain.next(0, []byte(id))
	}
	i, person := 0, false
	elements(b, list, func(e span) bool {
		i++
		if h = x.chain.next(h, b[e.s:e.e]); x.chain.seen(h) {
			n = i
		}
		if person || !isObject(b, e) {
			return true
		}
		x.ms, _ = members(b, e.s, x.ms[:0])
		t := x.s.msg.text.first(b, x.ms)
		if !t.ok() {
			return true
		}
		who, _ := x.speaker(lower(word(b, x.s.msg.role.first(b, x.ms))))
		if person = who.role == memory.RoleUser; person || x.talk.base == "" {
			x.talk.base = string(memory.Sum(b[t.s:t.e]))
		}
		return true
	})
	return n, h
}

// frame is what a conversation says of all its messages.
func (x *schemaReader) frame(b []byte, ms []member) memory.Turn {
	c := &x.s.conv
	t := memory.Turn{TimeQuality: memory.TimeNone, Cwd: x.r.names.text(b, c.cwd.first(b, ms)), GitBranch: x.r.names.text(b, c.branch.first(b, ms)), Remote: x.r.names.text(b, c.remote.first(b, ms))}
	x.r.stats.cwd(t.Cwd)
	if at, raw, ok := timeOf(b, c.time.first(b, ms)); ok {
		t.Time, t.TimeRaw, t.TimeQuality = at, raw, memory.TimeHeader
		x.r.stats.time(at, raw)
	}
	return t
}

// speaker is how a role of the file speaks; ok is false for an unknown one.
func (x *schemaReader) speaker(who string) (speaker, bool) {
	if x.s.roles != nil {
		w, ok := x.s.roles[who]
		return roleWords[w], ok
	}
	s, ok := speakers[who]
	return s, ok
}

// message reads one message.
func (x *schemaReader) message(rec *record, base memory.Turn, at span, ms []member) {
	s, b, p := &x.r.stats, rec.b, &x.s.msg
	defer func() { x.talk.index++ }()
	m := utterance{b: b, base: rec.base, t: base, name: word(b, p.id.first(b, ms)), who: lower(word(b, p.role.first(b, ms)))}
	t := &m.t
	t.Line, t.From, t.To = x.talk.line(rec, at.s), rec.base+int64(at.s), rec.base+int64(at.e)
	t.ParentID = cleanID(word(b, p.parent.first(b, ms)))
	if v := p.cwd.first(b, ms); isString(b, v) {
		t.Cwd = x.r.names.text(b, v)
		s.cwd(t.Cwd)
	}
	if v := p.branch.first(b, ms); isString(b, v) {
		t.GitBranch = x.r.names.text(b, v)
	}
	if when, raw, ok := timeOf(b, p.time.first(b, ms)); ok {
		t.Time, t.TimeRaw, t.TimeQuality = when, raw, memory.TimeExact
		s.time(when, raw)
	}
	who, ok := x.speaker(m.who)
	switch {
	case !ok:
		bump(s.Unknown, "role:"+m.who)
		return
	case who.role == "":
		s.drop("skip")
		return
	}
	m.t = m.as(who)
	x.spans = x.spans[:0]
	for _, v := range p.text.all(b, ms) {
		x.spans = append(x.spans, placed{v, false})
	}
	for _, v := range x.s.calls.list.all(b, ms) {
		x.spans = append(x.spans, placed{v, true})
	}
	slices.SortFunc(x.spans, func(a, b placed) int { return cmp.Compare(a.at.s, b.at.s) })
	if len(x.spans) == 0 {
		s.drop("no_content")
		return
	}
	switch who.kind {
	case memory.KindToolResult:
		m.t.Tool = &memory.Tool{Name: x.r.names.text(b, p.tool.first(b, ms)), CallID: word(b, p.callID.first(b, ms)), IsError: isTrue(b, p.failed.first(b, ms))}
		x.talk.results(&m, x.spans)
		return
	case memory.KindToolCall:
		for _, v := range x.spans {
			x.talk.said(&m, v.at, x.r.names.text(b, p.tool.first(b, ms)))
		}
		return
	}
	var run []memory.Piece // texts that follow one another are one turn
	for _, v := range x.spans {
		switch {
		case v.call:
			x.talk.text(&m, run)
			run = nil
			x.called(&m, v.at)
		case isString(b, v.at):
			run = append(run, piece(b, v.at, m.base))
		default:
			x.talk.text(&m, run)
			run = nil
			x.talk.content(&m, v.at)
		}
	}
	x.talk.text(&m, run)
}

// called reads a list of tool calls, or one.
func (x *schemaReader) called(m *utterance, v span) {
	one := func(e span) bool {
		if !isObject(m.b, e) {
			x.r.stats.drop("odd_block")
			return true
		}
		ms, _ := members(m.b, e.s, nil)
		c := &x.s.calls
		x.talk.call(m, word(m.b, c.id.first(m.b, ms)), x.r.names.text(m.b, c.name.first(m.b, ms)), c.arguments.first(m.b, ms))
		return !x.r.stop
	}
	if isArray(m.b, v) {
		elements(m.b, v, one)
		return
	}
	one(v)
}

func (x *schemaReader) end() {}
