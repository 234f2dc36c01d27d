package scrub

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// Rules are what a text is redacted and measured by.
type Rules struct {
	Redact    *redact.Redactor
	TenantKey []byte           // of the seals' HMAC
	Count     func(string) int // Qwen2.5 tokens
}

// Chunk gives c, whose text must be loaded, in its newly redacted form: turns,
// pieces and seals moved, and the lines of each new mark sealed. What can no
// longer be proved by its own bytes is in no piece, and so can not be cited.
func (r Rules) Chunk(c *memory.Chunk, edits []memory.Edit) memory.Chunk {
	m := mover{Rules: r, old: c, moved: memory.Scrubbed{Edits: edits}, text: Apply(c.Text, edits)}
	out := *c
	out.Text, out.SHA256, out.SizeBytes, out.Tokens = m.text, memory.SumString(m.text), len(m.text), r.Count(m.text)
	out.Turns = make([]memory.ChunkTurn, len(c.Turns))
	for i, t := range c.Turns {
		t.Start, t.End, _ = m.moved.Moved(t.Start, t.End)
		var pieces []memory.ChunkPiece
		for pi := range t.Pieces {
			pieces = append(pieces, m.piece(&t.Pieces[pi])...)
		}
		t.Pieces = pieces
		out.Turns[i] = t
	}
	return out
}

// mover moves one chunk's map of its source bytes.
type mover struct {
	Rules
	old   *memory.Chunk
	moved memory.Scrubbed
	text  string // the new one
}

// run is a range of the old text.
type run struct {
	from, to int
	seal     *memory.Seal // nil in a hole
}

// piece gives the pieces that are left of p.
func (m *mover) piece(p *memory.ChunkPiece) []memory.ChunkPiece {
	seals := make([]run, len(p.Seals))
	for i := range p.Seals {
		seals[i] = run{p.Seals[i].C0, p.Seals[i].C1, &p.Seals[i]}
	}
	var fresh, holes []run
	for _, e := range m.moved.Edits {
		if e.Start >= p.C1 || e.End <= p.C0 {
			continue
		}
		lines := m.lines(max(e.Start, p.C0), min(e.End, p.C1), p)
		switch {
		case e.Start < p.C0 || e.End > p.C1: // the secret stands in two pieces
			holes = append(holes, lines)
		case slices.ContainsFunc(seals, func(s run) bool { return s.from <= e.Start && e.End <= s.to }):
			// The seal's bytes are what they were; only its text changes.
		default:
			fresh = append(fresh, lines)
		}
	}
	for _, f := range united(fresh) {
		if s, ok := m.seal(p, f, seals); ok {
			seals = append(seals, run{f.from, f.to, s})
		} else {
			holes = append(holes, f)
		}
	}
	seals = slices.DeleteFunc(seals, func(s run) bool {
		for i := range holes {
			if h := &holes[i]; s.from < h.to && h.from < s.to {
				h.from, h.to = min(h.from, s.from), max(h.to, s.to)
				return true
			}
		}
		return false
	})
	holes = united(append(holes, m.exposed(p, seals, holes)...))
	slices.SortFunc(seals, byPlace)
	var out []memory.ChunkPiece
	for _, r := range without(run{from: p.C0, to: p.C1}, holes) {
		if q, ok := m.part(p, r, seals); ok {
			out = append(out, q)
		}
	}
	return out
}

// seal seals run r of p, which holds new marks and whose source bytes follow
// from its old text. It is false where they do not, or where they alone do not
// give the new text.
func (m *mover) seal(p *memory.ChunkPiece, r run, seals []run) (*memory.Seal, bool) {
	for _, s := range seals {
		if s.from < r.to && r.from < s.to {
			return nil, false // the bytes under an old mark are not known
		}
	}
	from, err := p.Offset(m.old.Text, r.from)
	if err != nil {
		return nil, false
	}
	raw, err := p.Enc.Append(nil, m.old.Text[p.C0:p.C1], r.from-p.C0, r.to-p.C0)
	if err != nil {
		return nil, false
	}
	c0, c1, _ := m.moved.Moved(r.from, r.to)
	if got, _ := m.Redact.Redact(m.old.Text[r.from:r.to]); got != m.text[c0:c1] {
		return nil, false
	}
	return &memory.Seal{C0: c0, C1: c1, O0: from, O1: from + int64(len(raw)), HMAC: memory.HMAC(m.TenantKey, raw)}, true
}

// exposed are the lines of p, outside seals and holes, that alone look like a
// secret and in their place did not.
func (m *mover) exposed(p *memory.ChunkPiece, seals, holes []run) (out []run) {
	if len(holes) == 0 && !slices.ContainsFunc(m.moved.Edits, func(e memory.Edit) bool { return e.Start < p.C1 && e.End > p.C0 }) {
		return nil // nothing was cut anew
	}
	for _, gap := range without(run{from: p.C0, to: p.C1}, united(slices.Concat(seals, holes))) {
		_, marks := m.Redact.Redact(m.old.Text[gap.from:gap.to])
		for _, k := range marks {
			out = append(out, m.lines(gap.from+k.Start, gap.from+k.End, &memory.ChunkPiece{C0: gap.from, C1: gap.to}))
		}
	}
	return out
}

// part is run r of p as a piece of the new chunk.
func (m *mover) part(p *memory.ChunkPiece, r run, seals []run) (memory.ChunkPiece, bool) {
	q := memory.ChunkPiece{Enc: memory.Encoding{Codec: p.Enc.Codec, Style: p.Enc.Style}}
	q.C0, q.C1, _ = m.moved.Moved(r.from, r.to)
	sealed := *p // offsets count from the seals, the new ones too
	sealed.Seals = nil
	for _, s := range seals {
		if s.from < r.from || s.to > r.to {
			continue
		}
		old := memory.Seal{C0: s.from, C1: s.to, O0: s.seal.O0, O1: s.seal.O1}
		sealed.Seals = append(sealed.Seals, old)
		n := *s.seal
		n.C0, n.C1, _ = m.moved.Moved(s.from, s.to)
		q.Seals = append(q.Seals, n)
	}
	var err error
	if q.O0, err = p.Offset(m.old.Text, r.from); err != nil {
		return q, false
	}
	q.O1 = p.O1
	if r.to < p.C1 {
		if q.O1, err = sealed.Offset(m.old.Text, r.to); err != nil {
			return q, false
		}
	}
	for _, x := range p.Enc.Exceptions {
		at := p.C0 + x.At
		if at < r.from || at >= r.to || slices.ContainsFunc(seals, func(s run) bool { return s.from <= at && at < s.to }) {
			continue
		}
		to, _, _ := m.moved.Moved(at, at+x.Len)
		x.At = to - q.C0
		q.Enc.Exceptions = append(q.Enc.Exceptions, x)
	}
	return q, true
}

// lines widens [from,to) to whole lines of the piece.
func (m *mover) lines(from, to int, p *memory.ChunkPiece) run {
	r := run{from: p.C0, to: p.C1}
	if k := strings.LastIndexByte(m.old.Text[p.C0:from], '\n'); k >= 0 {
		r.from = p.C0 + k + 1
	}
	if k := strings.IndexByte(m.old.Text[to:p.C1], '\n'); k >= 0 {
		r.to = to + k
	}
	return r
}

func byPlace(a, b run) int { return a.from - b.from }

// united gives runs ascending, those that meet as one.
func united(runs []run) []run {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, byPlace)
	var out []run
	for _, r := range runs {
		if n := len(out); n > 0 && r.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, r.to)
			continue
		}
		out = append(out, run{from: r.from, to: r.to})
	}
	return out
}

// without is r less the holes, which are ascending and apart.
func without(r run, holes []run) (out []run) {
	for _, h := range holes {
		if h.from > r.from {
			out = append(out, run{from: r.from, to: h.from})
		}
		r.from = max(r.from, h.to)
	}
	if r.from < r.to {
		out = append(out, r)
	}
	return out
}
