package transcript

import "bytes"

// document reads one JSON object that stands on many lines and whose member
// "messages" is an array of records. Only one record is held at a time, so the
// file may be of any size; a record over the cap on lines is skipped and
// counted. JSON strings hold no line ends, so each line is whole tokens.
//
// A damaged line spoils its record alone: reading goes on where a line begins
// a record as the first one was begun.
type document struct {
	r       *Reader
	head    func(key string, b []byte, v span) // a member of the object
	element func(rec *record)

	open  bool
	depth int
	list  bool   // inside the array
	key   string // of the member being read at depth 1
	val   []byte // its value, as far as it goes
	colon bool

	in     bool   // a record is being read
	buf    []byte // as far as it goes
	base   int64  // of buf[0]
	size   int64  // of the record so far, over or not
	line0  int
	over   bool
	lost   bool   // the record being read is damaged
	indent []byte // of the first record's line
	rec    record
}

// maxHeadBytes bounds a member of the object that is not a record.
const maxHeadBytes = 1 << 20

// begins reports whether a line begins an object that it does not end.
func (d *document) begins(ln line) bool {
	b := trimLine(ln)
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' || !ln.ended {
		return false
	}
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return false
			}
		case '"':
			e := skipString(b, i+1)
			if e < 0 {
				return false
			}
			i = e - 1
		}
	}
	d.open = true
	return true
}

func (d *document) line(ln line) {
	b, base := ln.b, ln.off
	if ln.off == 0 && bytes.HasPrefix(b, []byte("\ufeff")) {
		b, base = b[3:], 3
	}
	if d.lost {
		if !d.fresh(b) {
			return
		}
		d.lost, d.list, d.depth = false, true, 2
	}
	if d.in {
		d.put([]byte{'\n'})
		if d.base+d.size != base || d.fresh(b) { // a line over the cap is missing, or the record's end
			d.damage()
			d.line(ln)
			return
		}
	}
	for i := 0; i < len(b); {
		e := i + 1
		switch c := b[i]; c {
		case '{', '[':
			if d.list && d.depth == 2 && !d.in {
				d.begin(base+int64(i), ln.no)
				if d.indent == nil && c == '{' && skipSpace(b, 0) == i && len(bytes.TrimRight(b, "\r")) == i+1 {
					d.indent = bytes.Clone(b[:i+1])
				}
			}
			if d.depth == 1 && c == '[' && !d.in && d.key == "messages" && d.colon {
				d.list = true
			}
			d.depth++
		case '}', ']':
			d.depth--
		case '"':
			if e = skipString(b, i+1); e < 0 {
				d.damage()
				return
			}
			if d.depth == 1 && !d.colon {
				d.key = string(plainKey(b[i+1 : e-1]))
				d.val = d.val[:0]
			}
		}
		switch {
		case d.in:
			d.put(b[i:e])
			if d.depth == 2 {
				d.close()
				if d.r.stop {
					return
				}
			}
		case d.list:
			if d.depth == 1 {
				d.list = false
				d.val = d.val[:0]
			}
		case d.depth == 0:
			d.member()
			d.open = false
			return
		case d.depth == 1 && b[i] == ',':
			d.member()
		case d.depth == 1 && b[i] == ':' && !d.colon:
			d.colon = true
		case d.colon && len(d.val) < maxHeadBytes:
			d.val = append(d.val, b[i:e]...)
		}
		i = e
	}
}

// member hands on what was read at depth 1.
func (d *document) member() {
	b := d.val
	i := skipSpace(b, 0)
	if d.colon && i < len(b) {
		if e := skipValue(b, i, 0); e >= 0 {
			d.head(d.key, b, span{i, e})
		}
	}
	d.key, d.val, d.colon = "", d.val[:0], false
}

// fresh reports whether a line begins a record as the first one was begun.
func (d *document) fresh(b []byte) bool {
	return d.indent != nil && bytes.Equal(bytes.TrimRight(b, "\r"), d.indent)
}

func (d *document) begin(at int64, no int) {
	if cap(d.buf) > keepSize {
		d.buf = nil
	}
	d.in, d.buf, d.base, d.size, d.line0, d.over = true, d.buf[:0], at, 0, no, false
}

func (d *document) put(b []byte) {
	d.size += int64(len(b))
	if d.over = d.over || d.size > int64(d.r.opt.MaxLineBytes); !d.over {
		d.buf = append(d.buf, b...)
	}
}

// close hands on the record that ended.
func (d *document) close() {
	s := &d.r.stats
	d.in = false
	if d.over {
		s.Bad++
		s.drop("record_too_long")
		return
	}
	ms, e := members(d.buf, 0, d.rec.ms[:0])
	if e < 0 {
		s.Bad++
		return
	}
	d.rec = record{b: d.buf, base: d.base, at: span{0, e}, line: d.line0, ms: ms}
	s.Records++
	d.element(&d.rec)
}

// damage gives up the record being read.
func (d *document) damage() {
	d.r.stats.Bad++
	d.in, d.lost = false, true
}

// end is called at the object's end: what is open was cut off.
func (d *document) end() {
	if d.open {
		d.r.stats.Pending = 1
	}
}
