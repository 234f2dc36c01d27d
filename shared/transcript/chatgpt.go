package transcript

import (
	"github.com/mneme-ai/mneme/shared/memory"
)

// chatGPT reads conversations.json of ChatGPT's data export: an array of
// conversations, each a tree of messages under `mapping`. Turns come in the
// order of the tree; what is not on the path to `current_node` is abandoned.
type chatGPT struct {
	r     *Reader
	talk  talk
	count counter
}

func newChatGPT(r *Reader) parser {
	h := &chatGPT{r: r, talk: talk{r: r}, count: counter{r}}
	return newValues(r, h, func(b []byte, ms []member) bool { return isObject(b, field(ms, "mapping")) })
}

// gptNode is a node of the tree.
type gptNode struct {
	id, parent string
	message    span
	kids       []int
}

// maxNodes bounds the tree of one conversation: a node costs about 150 bytes,
// and the longest known conversations have some thousands.
const maxNodes = 200_000

func (g *chatGPT) record(rec *record) {
	g.count.record(rec)
	b, s := rec.b, &g.r.stats
	mapping := field(rec.ms, "mapping")
	if !isObject(b, mapping) {
		bump(s.Unknown, "?")
		return
	}
	id := text(b, field(rec.ms, "conversation_id"))
	if id == "" {
		id = text(b, field(rec.ms, "id"))
	}
	g.talk.reset(id)
	base := memory.Turn{TimeQuality: memory.TimeNone}
	if at, raw, ok := timeOf(b, field(rec.ms, "create_time")); ok {
		base.Time, base.TimeRaw, base.TimeQuality = at, raw, memory.TimeHeader
		s.time(at, raw)
	}
	var nodes []gptNode
	byID := map[string]int{}
	for _, m := range inside(b, mapping) {
		if len(nodes) == maxNodes {
			s.drop("node")
			continue
		}
		ms := inside(b, m.val)
		n := gptNode{id: string(m.key), parent: text(b, field(ms, "parent")), message: field(ms, "message")}
		if _, twice := byID[n.id]; !twice {
			byID[n.id] = len(nodes)
			nodes = append(nodes, n)
		}
	}
	var todo []int
	for i := len(nodes) - 1; i >= 0; i-- {
		if up, ok := byID[nodes[i].parent]; ok && nodes[i].parent != nodes[i].id {
			nodes[up].kids = append(nodes[up].kids, i) // the last first: todo is a stack
		} else {
			todo = append(todo, i)
		}
	}
	active := map[int]bool{}
	at, ok := byID[text(b, field(rec.ms, "current_node"))]
	for ok && !active[at] {
		active[at] = true
		at, ok = byID[nodes[at].parent]
	}
	seen := 0
	for ; len(todo) > 0 && !g.r.stop; seen++ {
		i := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], nodes[i].kids...)
		t := base
		t.ParentID = cleanID(nodes[i].parent)
		t.Abandoned = len(active) > 0 && !active[i]
		g.message(rec, t, nodes[i].id, nodes[i].message)
	}
	if seen < len(nodes) && !g.r.stop { // parents in a circle hang on no root
		s.Dropped["node"] += len(nodes) - seen
	}
}

func (g *chatGPT) message(rec *record, base memory.Turn, id string, at span) {
	b, s := rec.b, &g.r.stats
	if !isObject(b, at) {
		return // the root
	}
	defer func() { g.talk.index++ }()
	ms := inside(b, at)
	author, content := inside(b, field(ms, "author")), inside(b, field(ms, "content"))
	if v := text(b, field(ms, "id")); v != "" {
		id = v
	}
	m := utterance{b: b, base: rec.base, t: base, name: id, who: lower(text(b, field(author, "role")))}
	m.t.Line, m.t.From, m.t.To = g.talk.line(rec, at.s), rec.base+int64(at.s), rec.base+int64(at.e)
	if when, raw, ok := timeOf(b, field(ms, "create_time")); ok {
		m.t.Time, m.t.TimeRaw, m.t.TimeQuality = when, raw, memory.TimeExact
		s.time(when, raw)
	}
	who, ok := speakers[m.who]
	if !ok {
		bump(s.Unknown, "role:"+m.who)
		return
	}
	m.t = m.as(who)
	meta := inside(b, field(ms, "metadata"))
	name, to := g.r.names.text(b, field(author, "name")), g.r.names.text(b, field(ms, "recipient"))
	body := field(content, "parts")
	if !body.ok() {
		body = field(content, "text")
	}
	switch kind := g.r.names.text(b, field(content, "content_type")); {
	case kind == "thoughts" || kind == "reasoning_recap":
		s.g.thinking++
		s.drop("thinking")
	case isTrue(b, field(meta, "is_visually_hidden_from_conversation")), kind == "user_editable_context", kind == "model_editable_context":
		m.t = m.as(speakInjected)
		g.talk.content(&m, body)
	case who.kind == memory.KindToolResult:
		m.t.Tool = &memory.Tool{Name: name}
		if kind == "tether_quote" || kind == "tether_browsing_display" {
			m.t.Trust = memory.TrustWeb
			if !body.ok() {
				body = field(content, "result")
			}
		}
		g.talk.result(&m, m.t, body)
	case who.role == memory.RoleAssistant && to != "" && to != "all":
		if isArray(b, body) {
			elements(b, body, func(e span) bool {
				if isString(b, e) {
					g.talk.call(&m, "", to, e)
				}
				return true
			})
		} else if isString(b, body) {
			g.talk.call(&m, "", to, body)
		}
	default:
		g.talk.content(&m, body)
	}
}

func (g *chatGPT) end() {}
