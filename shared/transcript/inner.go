package transcript

import (
	"bytes"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Some writers put JSON text into a JSON string: a call's arguments, a
// command's output. Spans know one level of escapes, so a piece of such a
// string holds the inner text as the outer string has it: `\"` stays `\"`.
// Only line ends are undone: each inner line is a piece of its own, and the
// pieces of a turn are joined by newlines.

// maxInnerLines bounds the pieces of one inner string; the rest is one piece.
const maxInnerLines = 4096

// inner is JSON text inside the JSON string at b[v.s:v.e].
type inner struct {
	raw  []byte // inside of the outer string
	base int64  // of raw[0] in the object
	text []byte // raw decoded once
}

// innerOf reports false when the string does not hold a JSON value.
func innerOf(b []byte, v span, base int64) (inner, bool) {
	if !isString(b, v) {
		return inner{}, false
	}
	x := inner{raw: b[v.s+1 : v.e-1], base: base + int64(v.s+1)}
	i := skipSpace(x.raw, 0)
	if i == len(x.raw) || x.raw[i] != '{' && x.raw[i] != '[' {
		return x, false
	}
	x.text = []byte(unquote(x.raw))
	e := skipValue(x.text, i, 0)
	return x, e >= 0 && skipSpace(x.text, e) == len(x.text)
}

// value is the outermost value.
func (x *inner) value() span { return span{skipSpace(x.text, 0), len(x.text)} }

// pieces are the lines of the inner string v, as the outer string has them.
func (x *inner) pieces(v span) []memory.Piece {
	from, to := x.place(v.s+1, v.e-1)
	n := min(bytes.Count(x.raw[from:to], []byte(`\\n`)), maxInnerLines)
	ps := make([]memory.Piece, 0, n+1)
	start := from
	for i := from; i+2 < to && len(ps) < maxInnerLines; {
		switch {
		case x.raw[i] != '\\':
			i++
		case x.raw[i+1] != '\\':
			i += 2 // a \uxxxx goes on as letters
		case x.raw[i+2] == 'n':
			ps = append(ps, x.piece(start, i))
			i += 3
			start = i
		case x.raw[i+2] == '\\':
			i += 4
		default:
			i += 3
		}
	}
	return append(ps, x.piece(start, to))
}

// piece is the run raw[from:to].
func (x *inner) piece(from, to int) memory.Piece {
	return rawString(x.raw[from:to], x.base+int64(from))
}

// place finds the source bytes of the decoded run [from,to).
func (x *inner) place(from, to int) (s, e int) {
	s, e = -1, len(x.raw)
	at := 0
	for i := 0; i < len(x.raw); {
		if at >= from && s < 0 {
			s = i
		}
		if at >= to {
			e = i
			break
		}
		switch c := x.raw[i]; {
		case c == '\\' && x.raw[i+1] == 'u':
			r, n := escapedRune(x.raw[i:])
			i += n
			at += utf8.RuneLen(r)
		case c == '\\':
			i += 2
			at++
		case c < utf8.RuneSelf:
			i++
			at++
		default:
			r, n := utf8.DecodeRune(x.raw[i:])
			i += n
			at += utf8.RuneLen(r)
		}
	}
	if s < 0 {
		s = len(x.raw)
	}
	return s, max(s, e)
}
