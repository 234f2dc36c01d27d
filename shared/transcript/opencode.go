package transcript

import "github.com/mneme-ai/mneme/shared/memory"

// openCode reads what `opencode export` prints: {info, messages: [{info,
// parts}]}. It is one JSON object of at most Options.MaxLineBytes.
type openCode struct {
	r     *Reader
	talk  talk
	count counter
}

func newOpenCode(r *Reader) parser {
	h := &openCode{r: r, talk: talk{r: r}, count: counter{r}}
	return newValues(r, h, func(b []byte, ms []member) bool {
		return isArray(b, field(ms, "messages")) && isObject(b, field(ms, "info"))
	})
}

// field is the last value of a key.
func field(ms []member, key string) span {
	v := span{}
	for _, m := range ms {
		if string(m.key) == key {
			v = m.val
		}
	}
	return v
}

// inside are the members of an object, nil for any other value.
func inside(b []byte, v span) []member {
	if !isObject(b, v) {
		return nil
	}
	ms, _ := members(b, v.s, nil)
	return ms
}

func (o *openCode) record(rec *record) {
	o.count.record(rec)
	b, s := rec.b, &o.r.stats
	info := inside(b, field(rec.ms, "info"))
	o.talk.reset(text(b, field(info, "id")))
	base := memory.Turn{TimeQuality: memory.TimeNone, Cwd: o.r.names.text(b, field(info, "directory"))}
	s.cwd(base.Cwd)
	if v := text(b, field(info, "version")); v != "" {
		s.versions.add(v)
	}
	o.clock(b, &base, field(inside(b, field(info, "time")), "created"), memory.TimeHeader)
	elements(b, field(rec.ms, "messages"), func(e span) bool {
		if isObject(b, e) {
			o.message(rec, base, e)
		} else {
			s.drop("not_an_object")
		}
		o.talk.index++
		return !o.r.stop
	})
}

func (o *openCode) clock(b []byte, t *memory.Turn, v span, q memory.TimeQuality) {
	if at, raw, ok := timeOf(b, v); ok {
		t.Time, t.TimeRaw, t.TimeQuality = at, raw, q
		o.r.stats.time(at, raw)
	}
}

func (o *openCode) message(rec *record, base memory.Turn, e span) {
	b, s := rec.b, &o.r.stats
	ms := inside(b, e)
	info := inside(b, field(ms, "info"))
	m := utterance{b: b, base: rec.base, t: base, name: text(b, field(info, "id")), who: lower(text(b, field(info, "role")))}
	m.t.Line, m.t.From, m.t.To = o.talk.line(rec, e.s), rec.base+int64(e.s), rec.base+int64(e.e)
	m.t.ParentID = cleanID(text(b, field(info, "parentID")))
	if v := field(inside(b, field(info, "path")), "cwd"); isString(b, v) {
		m.t.Cwd = o.r.names.text(b, v)
		s.cwd(m.t.Cwd)
	}
	o.clock(b, &m.t, field(inside(b, field(info, "time")), "created"), memory.TimeExact)
	who, ok := speakers[m.who]
	if !ok {
		bump(s.Unknown, "role:"+m.who)
		return
	}
	if isTrue(b, field(info, "summary")) && who.role == memory.RoleAssistant {
		who = speakSummary // what a compaction says again
	}
	m.t = m.as(who)
	elements(b, field(ms, "parts"), func(p span) bool {
		o.part(&m, inside(b, p))
		return !o.r.stop
	})
}

// part reads one part of a message.
func (o *openCode) part(m *utterance, ms []member) {
	b, s := m.b, &o.r.stats
	switch kind := o.r.names.text(b, field(ms, "type")); kind {
	case "text":
		v := field(ms, "text")
		if !isString(b, v) {
			return
		}
		keep := m.t
		if isTrue(b, field(ms, "synthetic")) || isTrue(b, field(ms, "ignored")) {
			m.t = m.as(speakInjected)
		}
		o.talk.text(m, []memory.Piece{piece(b, v, m.base)})
		m.t = keep
	case "tool":
		state := inside(b, field(ms, "state"))
		id, name := text(b, field(ms, "callID")), o.r.names.text(b, field(ms, "tool"))
		o.talk.call(m, id, name, field(state, "input"))
		turn := m.as(speakResult)
		turn.Tool = &memory.Tool{Name: name, CallID: id}
		switch status := text(b, field(state, "status")); status {
		case "completed":
			o.talk.result(m, turn, field(state, "output"))
		case "error":
			turn.Tool.IsError = true
			o.talk.result(m, turn, field(state, "error"))
		default:
			s.g.orphanUse++ // it never ended
			s.drop("no_result")
		}
	case "reasoning":
		s.g.thinking++
		s.drop("thinking")
	case "step-start", "step-finish", "snapshot", "patch", "file", "agent", "retry", "compaction", "subtask":
		bump(s.Dropped, "block/"+kind)
	default:
		bump(s.Unknown, "part/"+kind)
	}
}

func (o *openCode) end() {}
