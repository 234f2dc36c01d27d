package transcript

import "bytes"

// record is one JSON object of a line.
type record struct {
	b    []byte   // the line
	base int64    // offset of b[0] in the object
	at   span     // the object in b
	line int      // physical line, from 1
	ms   []member // valid until the next record
	in   nested   // of its message
}

func (c *record) from() int64 { return c.base + int64(c.at.s) }
func (c *record) to() int64   { return c.base + int64(c.at.e) }

// handler takes the records of one JSONL format in file order.
type handler interface {
	record(rec *record)
	end()
}

// rescuer is a handler whose writer begins a record anew after a partial one
// without a line end between. rescue gives the index after i at which a whole
// record begins that ends the line, or -1.
type rescuer interface {
	rescue(b []byte, i int) int
}

// jsonl decodes lines of JSON values: a line may hold none, one or more.
type jsonl struct {
	r   *Reader
	h   handler
	rec record
}

// usualMembers is room for what a record, its message or the blocks of its
// content usually hold; more makes the room grow.
const usualMembers = 24

func newJSONL(r *Reader, h handler) *jsonl {
	j := &jsonl{r: r, h: h}
	j.rec.ms = make([]member, 0, usualMembers)
	j.rec.in.ms = make([]member, 0, usualMembers)
	j.rec.in.bm = make([]member, 0, usualMembers)
	return j
}

func (j *jsonl) line(ln line) {
	s := &j.r.stats
	b := trimLine(ln)
	base := ln.off
	if ln.off == 0 && bytes.HasPrefix(ln.b, []byte("\ufeff")) {
		base += 3
	}
	i := skipSpace(b, 0)
	if i == len(b) {
		s.Blank++
		return
	}
	objects, values, broken, rescued := 0, 0, false, false
	for i < len(b) {
		e := -1
		if b[i] == '{' {
			j.rec.ms, e = j.rec.in.members(b, i, j.rec.ms[:0])
			if e >= 0 {
				objects++
				j.rec.b, j.rec.base, j.rec.at, j.rec.line = b, base, span{i, e}, ln.no
				s.Records++
				j.h.record(&j.rec)
				if j.r.stop {
					return
				}
			}
		} else {
			e = skipValue(b, i, 0)
		}
		if e < 0 {
			broken = true
			if h, ok := j.h.(rescuer); ok {
				if e = h.rescue(b, i); e > i {
					i, rescued = e, true
					continue
				}
			}
			break
		}
		values++
		i = skipSpace(b, e)
	}
	if values > 1 {
		s.Joined++
	}
	switch {
	case broken && !ln.ended && !rescued:
		s.Pending = 1 // the writer may still be at it
	case broken:
		s.Bad++
	case objects == 0:
		s.Bad++
		s.drop("not_an_object")
	}
}

func (j *jsonl) end() { j.h.end() }

// whole reads a file that may be one JSON value over many lines, or JSONL of
// a format that is not read, and only counts.
type whole struct {
	jsonl
	buf  []byte
	over bool
}

func (w *whole) line(ln line) {
	if len(w.buf)+len(ln.b) < w.r.opt.MaxLineBytes && !w.over {
		w.buf = append(append(w.buf, ln.b...), '\n')
	} else {
		w.over, w.buf = true, nil
	}
	w.jsonl.line(ln)
}

func (w *whole) end() {
	s := &w.r.stats
	b := bytes.TrimPrefix(w.buf, []byte("\ufeff"))
	i := skipSpace(b, 0)
	if w.over || i == len(b) || b[i] != '{' && b[i] != '[' {
		return
	}
	e := skipValue(b, i, 0)
	if e < 0 || skipSpace(b, e) != len(b) || bytes.IndexByte(b[i:e], '\n') < 0 && b[i] == '{' {
		return // several values, or one line that was counted
	}
	// One value: what the lines seemed to hold was a part of it.
	s.Records, s.Bad, s.Pending, s.Joined, s.Blank = 0, 0, 0, 0, 0
	clear(s.types)
	clear(s.Dropped)
	list := span{i, e}
	if b[i] == '{' {
		s.Records = 1
		ms, _ := members(b, i, nil)
		for _, m := range ms {
			if string(m.key) == "messages" && isArray(b, m.val) {
				list, s.Records = m.val, 0
			}
		}
	}
	elements(b, list, func(v span) bool {
		s.Records++
		if isObject(b, v) {
			ms, _ := members(b, v.s, nil)
			for _, m := range ms {
				if string(m.key) == "type" {
					bump(s.types, text(b, m.val))
				}
			}
		}
		return true
	})
}

// counter counts the records of a format that is not read.
type counter struct{ r *Reader }

func (c *counter) record(rec *record) {
	name := "?"
	for _, m := range rec.ms {
		switch string(m.key) {
		case "type":
			name = text(rec.b, m.val)
		case "role":
			if name == "?" {
				name = "role:" + text(rec.b, m.val)
			}
		case "messages", "conversations":
			if name == "?" {
				name = string(m.key)
			}
		case "timestamp":
			if t, raw, ok := timeOf(rec.b, m.val); ok {
				c.r.stats.time(t, raw)
			}
		}
	}
	bump(c.r.stats.types, name)
}

func (c *counter) end() {}
