package scrub

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// Finds are what the rules change in the chunks of one part, whose texts must be
// loaded: for each chunk its edits, ascending and apart, and how many secrets of
// each kind there are.
//
// A turn is looked at whole, as when it came in: the parts of a message that was
// longer than a chunk are put together again. What stands between turns, their
// header lines, is looked at by itself.
func Finds(chunks []memory.Chunk, red *redact.Redactor) (edits [][]memory.Edit, kinds map[string]int) {
	edits, kinds = make([][]memory.Edit, len(chunks)), map[string]int{}
	var open message
	for i := range chunks {
		c := &chunks[i]
		at := 0
		for ti := range c.Turns {
			t := &c.Turns[ti]
			if t.Start < at || t.End < t.Start || t.End > len(c.Text) {
				continue // Verify names it
			}
			gap := message{parts: []stretch{{i, at, t.Start}}}
			gap.look(chunks, red, edits, kinds)
			at = t.End
			if !(ti == 0 && open.goesOn(chunks, c, t)) {
				open.look(chunks, red, edits, kinds)
				open = message{}
			}
			open.parts = append(open.parts, stretch{i, t.Start, t.End})
			open.turn = t
		}
		tail := message{parts: []stretch{{i, at, len(c.Text)}}}
		tail.look(chunks, red, edits, kinds)
	}
	open.look(chunks, red, edits, kinds)
	for i := range edits {
		edits[i] = Union(edits[i])
	}
	return edits, kinds
}

// stretch is text [from,to) of a chunk.
type stretch struct{ chunk, from, to int }

// message is a text that stands in one chunk or in several.
type message struct {
	parts []stretch
	turn  *memory.ChunkTurn // the last one
}

// goesOn reports whether t, the first turn of c, continues the message.
func (m *message) goesOn(chunks []memory.Chunk, c *memory.Chunk, t *memory.ChunkTurn) bool {
	if m.turn == nil || !c.Split {
		return false
	}
	last := m.parts[len(m.parts)-1]
	return last.chunk == c.I-1 && chunks[last.chunk].Split &&
		m.turn.ID == t.ID && m.turn.Session == t.Session && m.turn.Role == t.Role && m.turn.Kind == t.Kind
}

// look notes the edits of the message in the chunks it stands in.
func (m *message) look(chunks []memory.Chunk, red *redact.Redactor, edits [][]memory.Edit, kinds map[string]int) {
	var text string
	switch len(m.parts) {
	case 0:
		return
	case 1:
		p := m.parts[0]
		text = chunks[p.chunk].Text[p.from:p.to]
	default:
		var b strings.Builder
		for _, p := range m.parts {
			b.WriteString(chunks[p.chunk].Text[p.from:p.to])
		}
		text = b.String()
	}
	out, marks := red.Redact(text)
	for _, k := range marks {
		kinds[k.Kind]++
		at := 0 // of the part in the message
		for _, p := range m.parts {
			from, to := max(k.Start, at), min(k.End, at+p.to-p.from)
			if from < to {
				edits[p.chunk] = append(edits[p.chunk], memory.Edit{
					Start: p.from + from - at, End: p.from + to - at, Mark: out[k.OutStart:k.OutEnd],
				})
			}
			at += p.to - p.from
		}
	}
}

// Union gives edits ascending and apart: of those that overlap, one over all of
// them with the mark of the longest. The same chunk may stand in two parts, with
// other words before it.
func Union(edits []memory.Edit) []memory.Edit {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b memory.Edit) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return b.End - a.End
	})
	var out []memory.Edit
	longest := 0
	for _, e := range edits {
		if n := len(out); n > 0 && e.Start < out[n-1].End {
			if e.End-e.Start > longest {
				longest = e.End - e.Start
				out[n-1].Mark = e.Mark
			}
			out[n-1].End = max(out[n-1].End, e.End)
			continue
		}
		longest = e.End - e.Start
		out = append(out, e)
	}
	return out
}

// Apply makes the edits, which are ascending and apart.
func Apply(text string, edits []memory.Edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.Start])
		b.WriteString(e.Mark)
		at = e.End
	}
	b.WriteString(text[at:])
	return b.String()
}
