package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// values reads a file that may be JSON Lines, one JSON object over many lines,
// or one array whose elements are the records. A record is handed on as soon
// as it ends, so a file may be of any size; one record may have as many bytes
// as Options.MaxLineBytes, and a longer one is skipped and counted.
//
// A line that is cut off is a bad line, as in JSON Lines: what follows is read
// again from the next line that is a record by itself.
type values struct {
	r        *Reader
	h        handler
	isRecord func(b []byte, ms []member) bool
	rec      record

	began bool
	list  bool // inside the outermost array

	open   bool // a value that began and did not end yet
	buf    []byte
	base   int64 // of buf[0]
	no     int   // line of buf[0]
	depth  int
	deep   bool // past maxDepth
	quoted bool // inside a string
	esc    bool // after a backslash
	scalar bool // a number or word
	over   bool // longer than the cap: only its end is looked for
	ended  bool // the last line was, by an LF
}

// newValues reads with h. isRecord tells a record of the format from a part of
// one by its members.
func newValues(r *Reader, h handler, isRecord func([]byte, []member) bool) *values {
	v := &values{r: r, h: h, isRecord: isRecord}
	v.rec.ms = make([]member, 0, usualMembers)
	return v
}

func (v *values) line(ln line) {
	b, base := ln.b, ln.off
	v.ended = ln.ended
	if base == 0 {
		b = bytes.TrimPrefix(b, []byte("\ufeff"))
		base += int64(len(ln.b) - len(b))
	}
	if !v.open && len(bytes.TrimRight(b, " \t\r\x00")) == 0 {
		v.r.stats.Blank++
		return
	}
	i := 0
	if !v.began {
		v.began = true
		if i = skipSpace(b, 0); b[i] == '[' {
			v.list = true
			i++
		} else {
			i = 0
		}
	}
	if v.open && v.base+int64(len(v.buf)) != base && !v.over {
		v.lose() // a line over the cap is missing
	}
	if v.list {
		if i = v.items(b, i, base, ln); v.list {
			return
		}
		v.r.lines.pieces = false
		if len(bytes.TrimSpace(b[i:])) == 0 {
			return
		}
	}
	v.records(b, i, base, ln)
}

// items reads elements of the outermost array from b[i] on, and returns the
// index after its end; v.list tells whether it ended.
func (v *values) items(b []byte, i int, base int64, ln line) int {
	for i < len(b) {
		if !v.open {
			switch b[i] {
			case ' ', '\t', '\r', '\n', ',':
				i++
				continue
			case ']':
				v.list = false
				return i + 1
			}
			v.begin(base+int64(i), ln.no)
		}
		e, done := v.scan(b, i)
		v.keep(b[i:e])
		i = e
		if done {
			v.close()
			if v.r.stop {
				return i
			}
		}
	}
	if v.open && ln.ended {
		if v.scalar {
			v.close()
		} else {
			v.keep([]byte{'\n'})
		}
	}
	return i
}

// records reads values of JSON Lines from b[i] on.
func (v *values) records(b []byte, i int, base int64, ln line) {
	s := &v.r.stats
	if v.open {
		if v.fresh(b) {
			v.lose()
		} else {
			e, done := v.scan(b, i)
			v.keep(b[i:e])
			switch {
			case done:
				v.close()
				i = e
			case v.quoted && ln.ended: // JSON has no line end inside a string
				v.lose()
				return
			default:
				if ln.ended {
					v.keep([]byte{'\n'})
				}
				return
			}
			if len(bytes.TrimSpace(b[i:])) == 0 {
				return
			}
		}
	}
	for len(b) > i && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	objects, n := 0, 0
	for i = skipSpace(b, i); i < len(b) && !v.r.stop; i = skipSpace(b, i) {
		e := -1
		if b[i] == '{' {
			if v.rec.ms, e = v.rec.in.members(b, i, v.rec.ms[:0]); e >= 0 {
				objects++
				v.hand(b, base, span{i, e}, ln.no)
			}
		} else {
			e = skipValue(b, i, 0)
		}
		if e < 0 {
			v.torn(b, i, base, ln)
			break
		}
		n++
		i = e
	}
	if n > 1 {
		s.Joined++
	}
	if n > 0 && objects == 0 && !v.open {
		s.Bad++
		s.drop("not_an_object")
	}
}

// torn looks at a value that does not end on its line: it may go on.
func (v *values) torn(b []byte, i int, base int64, ln line) {
	if !ln.ended {
		v.r.stats.Pending = 1 // the writer may still be at it
		return
	}
	v.deep = false
	if b[i] == '{' || b[i] == '[' {
		v.begin(base+int64(i), ln.no)
		if _, done := v.scan(b, i); !done && !v.quoted {
			v.keep(b[i:])
			v.keep([]byte{'\n'})
			return
		}
		v.open = false
	}
	v.bad()
}

// fresh says that a line is a record by itself, so that what is open was cut.
func (v *values) fresh(b []byte) bool {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return false
	}
	ms, e := members(b, i, v.rec.ms[:0])
	v.rec.ms = ms
	return e >= 0 && skipSpace(b, e) == len(b) && v.isRecord(b, ms)
}

// lose gives up what is open.
func (v *values) lose() {
	if v.over {
		v.r.lines.tooLong++
	} else {
		v.bad()
	}
	v.open = false
	v.buf = v.buf[:0]
}

func (v *values) begin(at int64, no int) {
	v.open, v.base, v.no = true, at, no
	v.deep = false
	v.depth, v.quoted, v.esc, v.scalar, v.over = 0, false, false, false, false
	if cap(v.buf) > keepSize {
		v.buf = nil
	}
	v.buf = v.buf[:0]
}

func (v *values) keep(b []byte) {
	switch {
	case v.over:
	case len(v.buf)+len(b) > v.r.opt.MaxLineBytes:
		v.over, v.buf = true, nil
	default:
		v.buf = append(v.buf, b...)
	}
}

// close reads the value that ended.
func (v *values) close() {
	v.open = false
	s := &v.r.stats
	if v.over {
		v.r.lines.tooLong++
		return
	}
	b := v.buf
	if b[0] == '{' {
		e := 0
		if v.rec.ms, e = v.rec.in.members(b, 0, v.rec.ms[:0]); e == len(b) {
			v.hand(b, v.base, span{0, e}, v.no)
			return
		}
	} else if skipValue(b, 0, 0) == len(b) {
		s.drop("not_an_object")
	}
	v.bad()
}

// bad counts a value that is none, and names a nesting bomb.
func (v *values) bad() {
	v.r.stats.Bad++
	if v.deep {
		v.r.stats.drop("nested_too_deep")
	}
}

// hand gives one record to the handler.
func (v *values) hand(b []byte, base int64, at span, no int) {
	v.rec.b, v.rec.base, v.rec.at, v.rec.line = b, base, at, no
	v.r.stats.Records++
	muted := v.r.muted
	v.r.muted = muted || v.rec.from() < v.r.opt.From
	v.h.record(&v.rec)
	v.r.muted = muted
}

// scan follows strings and brackets from b[i] on to the end of the open value.
// It checks nothing else, needs no recursion, and goes on where it stopped.
func (v *values) scan(b []byte, i int) (end int, done bool) {
	for i < len(b) {
		c := b[i]
		switch {
		case v.esc:
			v.esc = false
		case v.quoted:
			for i+8 <= len(b) {
				if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
					i += bits.TrailingZeros64(m) >> 3
					break
				}
				i += 8
			}
			if i == len(b) {
				return i, false
			}
			switch b[i] {
			case '\\':
				v.esc = true
			case '"':
				if v.quoted = false; v.depth == 0 {
					return i + 1, true
				}
			}
		case v.scalar:
			switch c {
			case ',', ']', '}', ' ', '\t', '\r':
				return i, true
			}
		case c == '"':
			v.quoted = true
		case c == '{' || c == '[':
			if v.depth++; v.depth > maxDepth {
				v.deep = true
			}
		case c == '}' || c == ']':
			if v.depth--; v.depth <= 0 {
				return i + 1, true
			}
		case v.depth == 0:
			v.scalar = true
		}
		i++
	}
	return i, false
}

func (v *values) end() {
	s := &v.r.stats
	if v.open {
		switch {
		case v.over:
			v.r.lines.tooLong++
		case !v.ended || v.list:
			s.Pending = 1
		default:
			s.Bad++
		}
	}
	v.h.end()
}
