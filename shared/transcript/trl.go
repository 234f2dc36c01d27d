package transcript

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// trl reads the data sets of TRL: {prompt, completion}, {prompt, chosen,
// rejected} and {chosen, rejected}, each a text or a list of messages, a record
// a conversation. An answer that was not wanted (rejected, or a completion
// whose label is false) is marked abandoned.
//
// The prompt comes first whatever the order of the keys: it was said first.
type trl struct {
	x    *schemaReader
	msgs []member
}

func newTRL(r *Reader) parser {
	h := &trl{x: newSchemaReader(r, &builtin()[0])}
	return newValues(r, h, func(_ []byte, ms []member) bool { return isTRL(ms) })
}

func isTRL(ms []member) bool {
	var prompt, completion, chosen, rejected bool
	for _, m := range ms {
		switch string(m.key) {
		case "prompt":
			prompt = true
		case "completion":
			completion = true
		case "chosen":
			chosen = true
		case "rejected":
			rejected = true
		}
	}
	return prompt && (completion || chosen) || chosen && rejected
}

func (h *trl) record(rec *record) {
	x, b := h.x, rec.b
	x.count.record(rec)
	var prompt, completion, chosen, rejected, lbl, id span
	for _, m := range rec.ms {
		switch string(m.key) {
		case "prompt":
			prompt = m.val
		case "completion":
			completion = m.val
		case "chosen":
			chosen = m.val
		case "rejected":
			rejected = m.val
		case "label":
			lbl = m.val
		case "id":
			id = m.val
		}
	}
	if !isTRL(rec.ms) {
		bump(x.r.stats.Unknown, "?")
		return
	}
	x.talk.reset(word(b, id))
	for _, v := range []span{prompt, chosen, completion} {
		if x.talk.base == "" && v.ok() {
			x.talk.base = string(memory.Sum(b[v.s:v.e]))
		}
	}
	h.part(rec, prompt, speakUser, false, span{})
	h.part(rec, chosen, speakAssistant, false, prompt)
	h.part(rec, completion, speakAssistant, lbl.ok() && b[lbl.s] == 'f', prompt)
	known := chosen
	if prompt.ok() {
		known = prompt
	}
	h.part(rec, rejected, speakAssistant, true, known)
}

// part reads one field. Messages with which known begins too were read there.
func (h *trl) part(rec *record, v span, who speaker, unwanted bool, known span) {
	x, b := h.x, rec.b
	base := memory.Turn{TimeQuality: memory.TimeNone, Abandoned: unwanted}
	switch {
	case isString(b, v):
		m := utterance{b: b, base: rec.base, t: base, who: string(who.role)}
		m.t = m.as(who)
		m.t.Line, m.t.From, m.t.To = x.talk.line(rec, v.s), rec.base+int64(v.s), rec.base+int64(v.e)
		for _, p := range dialogue(piece(b, v, rec.base)) {
			if p.who.role != "" {
				m.t = m.as(p.who)
			}
			x.talk.text(&m, []memory.Piece{p.piece})
			m.n = 0
			x.talk.index++
		}
	case isArray(b, v):
		var old []span
		elements(b, known, func(e span) bool { old = append(old, e); return len(old) < maxKnown })
		i := 0
		elements(b, v, func(e span) bool {
			if i >= 0 && i < len(old) && string(b[e.s:e.e]) == string(b[old[i].s:old[i].e]) {
				i++
				x.r.stats.drop("repeated")
				return true
			}
			i = -1
			if isObject(b, e) {
				h.msgs, _ = members(b, e.s, h.msgs[:0])
				x.message(rec, base, e, h.msgs)
			}
			return !x.r.stop
		})
	}
}

// maxKnown bounds the messages of a prompt that an answer is compared with.
const maxKnown = 10000

// said is a part of a text and who says it.
type said struct {
	who   speaker
	piece memory.Piece
}

const (
	humanMark     = "\n\nHuman: "
	assistantMark = "\n\nAssistant: "
)

// dialogue splits a text that is a whole dialogue, as the first preference
// data sets have it; any other text is one part.
func dialogue(p memory.Piece) []said {
	if !strings.HasPrefix(p.Text, humanMark) {
		return []said{{piece: p}}
	}
	var out []said
	for at := 0; at < len(p.Text); {
		who, mark := speakUser, humanMark
		if strings.HasPrefix(p.Text[at:], assistantMark) {
			who, mark = speakAssistant, assistantMark
		}
		from, to := at+len(mark), len(p.Text)
		for i := from; len(out) < maxPassages; i += 2 {
			k := strings.Index(p.Text[i:], "\n\n")
			if k < 0 {
				break
			}
			if i += k; strings.HasPrefix(p.Text[i:], humanMark) || strings.HasPrefix(p.Text[i:], assistantMark) {
				to = i
				break
			}
		}
		if q, ok := trimmed(p, from, to); ok {
			out = append(out, said{who, q})
		}
		at = to
	}
	return out
}

func (h *trl) end() {}
