package chunk

import (
	"slices"
	"sort"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// view is one turn's redacted text and the way back to its source bytes.
type view struct {
	c     *Chunker
	t     *memory.Turn
	orig  string
	red   string
	marks []redact.Mark
	parts []placed
}

// placed is a piece and its place in the turn's text.
type placed struct {
	p        *memory.Piece
	from, to int // in orig
	// cursor: source offset src stands for text offset txt of the piece
	txt int
	src int64
}

func (c *Chunker) view(t *memory.Turn) *view {
	v := &view{c: c, t: t, orig: t.Text()}
	v.red, v.marks = c.opt.Redact.Redact(v.orig)
	at := 0
	for i := range t.Pieces {
		p := &t.Pieces[i]
		v.parts = append(v.parts, placed{p: p, from: at, to: at + len(p.Text), src: p.Start})
		at += len(p.Text) + 1 // the joining newline
	}
	return v
}

// toOrig maps an offset of the redacted text that lies in no mark.
func (v *view) toOrig(r int) int {
	k := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].OutEnd > r })
	if k == 0 {
		return r
	}
	m := v.marks[k-1]
	return r - m.OutEnd + m.End
}

// toRed maps an offset of the text. One inside a secret maps to the mark's
// end, or to its start when down is set.
func (v *view) toRed(o int, down bool) int {
	k := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].End > o })
	if k < len(v.marks) {
		if m := v.marks[k]; m.Start < o {
			if down {
				return m.OutStart
			}
			return m.OutEnd
		}
	}
	if k == 0 {
		return o
	}
	m := v.marks[k-1]
	return o - m.End + m.OutEnd
}

// inMark gives the mark that the offset of the redacted text cuts.
func (v *view) inMark(r int) (redact.Mark, bool) {
	k := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].OutEnd > r })
	if k < len(v.marks) && v.marks[k].OutStart < r {
		return v.marks[k], true
	}
	return redact.Mark{}, false
}

// bytes gives the source bytes of the piece's text [from,to).
func (x *placed) bytes(dst []byte, from, to int) ([]byte, bool) {
	e := x.p.Enc
	lo := sort.Search(len(e.Exceptions), func(i int) bool { return e.Exceptions[i].At+e.Exceptions[i].Len > from })
	hi := sort.Search(len(e.Exceptions), func(i int) bool { return e.Exceptions[i].At >= to })
	e.Exceptions = e.Exceptions[lo:max(lo, hi)]
	b, err := e.Append(dst, x.p.Text, from, to)
	return b, err == nil
}

// offset is the source offset of a text offset of the piece. It is cheap when
// called with ascending offsets.
func (x *placed) offset(at int) (int64, bool) {
	if at < x.txt {
		x.txt, x.src = 0, x.p.Start
	}
	b, ok := x.bytes(nil, x.txt, at)
	if !ok {
		return 0, false
	}
	x.txt, x.src = at, x.src+int64(len(b))
	return x.src, true
}

// run is a stretch of the redacted text.
type run struct{ from, to int }

// pieces maps red[from:to], which stands at offset at of the block.
func (v *view) pieces(from, to, at int) []memory.ChunkPiece {
	var out []memory.ChunkPiece
	for i := range v.parts {
		x := &v.parts[i]
		if !x.p.Cited() {
			continue
		}
		a, b := max(from, v.toRed(x.from, false)), min(to, v.toRed(x.to, true))
		if a >= b {
			continue
		}
		seals, holes := v.seals(x, a, b)
		for _, r := range without(run{a, b}, holes) {
			if p, ok := v.piece(x, r, seals, at-from); ok {
				out = append(out, p)
			}
		}
	}
	return out
}

// without is r less the holes, which are ascending.
func without(r run, holes []run) []run {
	var out []run
	for _, h := range holes {
		if h.from > r.from {
			out = append(out, run{r.from, h.from})
		}
		r.from = h.to
	}
	if r.from < r.to {
		out = append(out, r)
	}
	return out
}

// piece maps one run of a piece; shift turns an offset of the redacted text
// into one of the block.
func (v *view) piece(x *placed, r run, seals []run, shift int) (memory.ChunkPiece, bool) {
	o0, o1 := v.toOrig(r.from)-x.from, v.toOrig(r.to)-x.from
	p := memory.ChunkPiece{
		C0: r.from + shift, C1: r.to + shift,
		Enc: memory.Encoding{Codec: x.p.Enc.Codec, Style: x.p.Enc.Style},
	}
	var ok bool
	if p.O0, ok = x.offset(o0); !ok {
		return p, false
	}
	for _, s := range seals {
		if s.from < r.from || s.to > r.to {
			continue
		}
		so, eo := v.toOrig(s.from)-x.from, v.toOrig(s.to)-x.from
		b, ok := x.bytes(nil, so, eo)
		if !ok {
			return p, false
		}
		start, ok := x.offset(so)
		if !ok {
			return p, false
		}
		p.Seals = append(p.Seals, memory.Seal{
			C0: s.from + shift, C1: s.to + shift, O0: start, O1: start + int64(len(b)),
			HMAC: memory.HMAC(v.c.opt.TenantKey, b),
		})
	}
	if p.O1, ok = x.offset(o1); !ok {
		return p, false
	}
	ex := x.p.Enc.Exceptions
	k := 0 // next seal
	for i := sort.Search(len(ex), func(i int) bool { return ex[i].At >= o0 }); i < len(ex) && ex[i].At < o1; i++ {
		red := v.toRed(ex[i].At+x.from, true)
		for k < len(p.Seals) && p.Seals[k].C1 <= red+shift {
			k++
		}
		if k < len(p.Seals) && p.Seals[k].C0 <= red+shift {
			continue
		}
		e := ex[i]
		e.At = red - r.from
		p.Enc.Exceptions = append(p.Enc.Exceptions, e)
	}
	return p, true
}

// maxWiden bounds how often a seal is widened before its lines are given up.
const maxWiden = 6

// seals gives the runs of red[from:to], which lie in the piece, that hold
// redactions: whole lines, ascending and apart. What can not be proved by its
// own bytes is a hole, which no piece covers.
func (v *view) seals(x *placed, from, to int) (seals, holes []run) {
	k := sort.Search(len(v.marks), func(i int) bool { return v.marks[i].OutEnd > from })
	for ; k < len(v.marks) && v.marks[k].OutStart < to; k++ {
		m := v.marks[k]
		r := v.lineRun(m.OutStart, m.OutEnd, from, to)
		if n := len(seals); n > 0 && r.from <= seals[n-1].to {
			seals[n-1].to = max(seals[n-1].to, r.to)
			continue
		}
		seals = append(seals, r)
	}
	var kept []run
	for i := 0; i < len(seals); i++ {
		r := seals[i]
		good := v.proves(x, r)
		for n := 0; !good && n < maxWiden; n++ {
			w := v.lineRun(max(from, r.from-1), min(to, r.to+1), from, to)
			for i+1 < len(seals) && seals[i+1].from <= w.to {
				i++
				w.to = max(w.to, seals[i].to)
			}
			for len(kept) > 0 && kept[len(kept)-1].to >= w.from {
				w.from = min(w.from, kept[len(kept)-1].from)
				kept = kept[:len(kept)-1]
			}
			if n := len(holes); n > 0 && holes[n-1].to > w.from {
				w.from = holes[n-1].to
			}
			if w == r {
				break
			}
			r = w
			good = v.proves(x, r)
		}
		if good {
			kept = append(kept, r)
		} else {
			holes = append(holes, r)
		}
	}
	return kept, v.exposed(run{from, to}, kept, holes)
}

// exposed adds to the holes the lines of r, outside seals, that alone look
// like a secret and in their place did not: a cut stands before them.
func (v *view) exposed(r run, seals, holes []run) []run {
	if len(v.marks) == 0 && r.from == 0 && r.to == len(v.red) {
		return holes
	}
	covered := append(append([]run(nil), seals...), holes...)
	slices.SortFunc(covered, func(a, b run) int { return a.from - b.from })
	more := holes
	for _, gap := range without(r, covered) {
		_, marks := v.c.opt.Redact.Redact(v.red[gap.from:gap.to])
		for _, m := range marks {
			h := v.lineRun(gap.from+m.Start, gap.from+m.End, gap.from, gap.to)
			if n := len(more); n > 0 && more[n-1].from <= h.from && h.from < more[n-1].to {
				more[n-1].to = max(more[n-1].to, h.to)
				continue
			}
			more = append(more, h)
		}
	}
	slices.SortFunc(more, func(a, b run) int { return a.from - b.from })
	return more
}

// lineRun widens [a,b) to whole lines within [from,to).
func (v *view) lineRun(a, b, from, to int) run {
	if k := strings.LastIndexByte(v.red[from:a], '\n'); k >= 0 {
		a = from + k + 1
	} else {
		a = from
	}
	if k := strings.IndexByte(v.red[b:to], '\n'); k >= 0 {
		b += k
	} else {
		b = to
	}
	return run{a, b}
}

// proves says that the run's own bytes, redacted alone, give its text.
func (v *view) proves(x *placed, r run) bool {
	got, _ := v.c.opt.Redact.Redact(v.orig[v.toOrig(r.from):v.toOrig(r.to)])
	return got == v.red[r.from:r.to]
}
