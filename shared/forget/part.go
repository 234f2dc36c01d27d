package forget

import (
	"github.com/mneme-ai/mneme/shared/memory"
)

// without gives a chunk, whose text must be loaded, without the turns that gone names,
// and the edits that take them out; none where no text of it goes. A chunk of which
// every turn goes has no text left, and with it go its heading and its turns.
func without(c *memory.Chunk, count func(string) int, gone func(*memory.ChunkTurn) bool) (memory.Chunk, []memory.Edit) {
	var left []memory.ChunkTurn
	var edits []memory.Edit
	at := 0
	for i := range c.Turns {
		t := c.Turns[i]
		if !gone(&t) {
			left = append(left, t)
			at = t.End
			continue
		}
		if from := min(at, t.Start); t.End > from { // its header line too
			edits = append(edits, memory.Edit{Start: from, End: t.End})
		}
		at = t.End
	}
	if len(left) == 0 {
		return empty(c)
	}
	if len(edits) == 0 {
		return *c, nil
	}
	moved := memory.Scrubbed{Edits: edits}
	out := *c
	out.Text = ""
	from := 0
	for _, e := range edits {
		out.Text += c.Text[from:e.Start]
		from = e.End
	}
	out.Text += c.Text[from:]
	out.SHA256, out.SizeBytes, out.Tokens = memory.SumString(out.Text), len(out.Text), count(out.Text)
	out.Turns = make([]memory.ChunkTurn, len(left))
	for i, t := range left {
		t.Start, t.End, _ = moved.Moved(t.Start, t.End)
		t.Pieces = append([]memory.ChunkPiece(nil), t.Pieces...)
		for pi := range t.Pieces {
			p := &t.Pieces[pi]
			p.C0, p.C1, _ = moved.Moved(p.C0, p.C1)
			p.Seals = append([]memory.Seal(nil), p.Seals...)
			for si := range p.Seals {
				s := &p.Seals[si]
				s.C0, s.C1, _ = moved.Moved(s.C0, s.C1)
			}
		}
		out.Turns[i] = t
	}
	out.Roles = map[string]int{}
	for _, t := range out.Turns {
		out.Roles[string(t.Role)]++
	}
	return out, edits
}

// empty is a chunk of which nothing is left but its place.
func empty(c *memory.Chunk) (memory.Chunk, []memory.Edit) {
	out := memory.Chunk{
		I: c.I, SHA256: memory.SumString(""), Policy: c.Policy, Start: c.Start, End: c.End, Trust: c.Trust,
		Roles: map[string]int{}, Turns: []memory.ChunkTurn{}, Continues: c.Continues,
	}
	if len(c.Text) == 0 {
		return out, nil
	}
	return out, []memory.Edit{{End: len(c.Text)}}
}

// takenOut reports whether an edit that forgets took out some of text [from,to).
func takenOut(edits []memory.Edit, from, to int) bool {
	for _, e := range edits {
		if e.Mark == "" && e.Start < to && e.End > from {
			return true
		}
	}
	return false
}
