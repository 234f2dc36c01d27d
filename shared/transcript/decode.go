package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/memory"
)

// unquote decodes the inside of a JSON string that the scanner accepted.
func unquote(raw []byte) string {
	text, _ := decode(raw, memory.StyleJS, nil)
	return text
}

// text decodes a string value that has no need of a source, such as an id.
func text(b []byte, v span) string {
	if !isString(b, v) {
		return ""
	}
	raw := b[v.s+1 : v.e-1]
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	return unquote(raw)
}

// piece decodes a string value and says how its bytes follow from the text.
// base is the offset of b[0] in the object.
func piece(b []byte, v span, base int64) memory.Piece {
	return rawString(b[v.s+1:v.e-1], base+int64(v.s+1))
}

// rawString is piece for the inside of a string, or a part of it.
func rawString(raw []byte, start int64) memory.Piece {
	p := memory.Piece{
		Start: start,
		End:   start + int64(len(raw)),
		Enc:   memory.Encoding{Codec: memory.CodecJSONString, Style: memory.StyleJS},
	}
	p.Text, p.Enc.Exceptions = decode(raw, memory.StyleJS, nil)
	// A string that is all ASCII and holds an escape past 0x7E comes from a
	// writer that escapes everything there.
	if len(p.Enc.Exceptions) > 0 && escapesAll(raw, p.Enc.Exceptions) {
		p.Enc.Style = memory.StyleASCII
		p.Text, p.Enc.Exceptions = decode(raw, memory.StyleASCII, nil)
	}
	return p
}

func escapesAll(raw []byte, exc []memory.Exception) bool {
	for _, c := range raw {
		if c >= 0x7f {
			return false
		}
	}
	for _, x := range exc {
		if x.Raw[0] == '\\' && x.Raw[1] == 'u' && hex4(x.Raw[2:]) >= 0x7f {
			return true
		}
	}
	return false
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			c -= '0'
		case c >= 'a':
			c -= 'a' - 10
		default:
			c -= 'A' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescaped is what stands for the letter after a backslash; 0 for none.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decode gives the text of the inside of a JSON string, as encoding/json
// does: a lone surrogate and each invalid UTF-8 byte become U+FFFD. Each place
// where style would give other bytes than raw has is an exception.
func decode(raw []byte, style memory.Style, exc []memory.Exception) (string, []memory.Exception) {
	i := simple(raw, 0)
	if i == len(raw) && style == memory.StyleJS {
		return string(raw), exc
	}
	var sb strings.Builder
	sb.Grow(len(raw))
	for i = 0; i < len(raw); {
		if k := simple(raw, i); k > i {
			if style == memory.StyleASCII {
				exc = literal(&sb, raw[i:k], style, exc) // may hold a bare DEL
			} else {
				sb.Write(raw[i:k])
			}
			i = k
			continue
		}
		if raw[i] != '\\' {
			k := i + 1
			for k < len(raw) && raw[k] >= utf8.RuneSelf {
				k++
			}
			exc = literal(&sb, raw[i:k], style, exc)
			i = k
			continue
		}
		c := raw[i+1]
		if c != 'u' && c != '/' {
			sb.WriteByte(unescaped[c])
			i += 2
			continue
		}
		r, n := rune('/'), 2
		if c == 'u' {
			r, n = escapedRune(raw[i:])
		}
		at := sb.Len()
		sb.WriteRune(r)
		var want [12]byte // what style gives for one rune
		if string(appendRune(want[:0], style, r)) != string(raw[i:i+n]) {
			exc = append(exc, memory.Exception{At: at, Len: sb.Len() - at, Raw: bytes.Clone(raw[i : i+n])})
		}
		i += n
	}
	return sb.String(), exc
}

// escapedRune reads \uxxxx, or the two of a surrogate pair.
func escapedRune(b []byte) (r rune, n int) {
	r, n = hex4(b[2:]), 6
	if !utf16.IsSurrogate(r) {
		return r, n
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(b[8:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, n
}

// simple is the end of the run of ASCII without a backslash from i on.
func simple(b []byte, i int) int {
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		s := w ^ (loBits * '\\')
		if m := ((s-loBits)&^s | w) & hiBits; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i] != '\\' && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// validUTF8 is utf8.Valid, faster where runs of ASCII are long or short.
func validUTF8(b []byte) bool {
	for i := 0; i < len(b); {
		for i+32 <= len(b) {
			w := b[i : i+32 : i+32]
			if (binary.LittleEndian.Uint64(w)|binary.LittleEndian.Uint64(w[8:])|
				binary.LittleEndian.Uint64(w[16:])|binary.LittleEndian.Uint64(w[24:]))&hiBits != 0 {
				break
			}
			i += 32
		}
		for i+8 <= len(b) { // at most four times
			if m := binary.LittleEndian.Uint64(b[i:]) & hiBits; m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		for i < len(b) && b[i] < utf8.RuneSelf && i+8 > len(b) {
			i++
		}
		for i < len(b) && b[i] >= utf8.RuneSelf {
			r, k := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && k == 1 {
				return false
			}
			i += k
		}
	}
	return true
}

// appendRune appends the bytes that style gives for r.
func appendRune(dst []byte, style memory.Style, r rune) []byte {
	switch {
	case r < 0x20 || r == '"' || r == '\\' || r == 0x7f && style == memory.StyleASCII:
		return memory.AppendControl(dst, byte(r))
	case r >= utf8.RuneSelf && style == memory.StyleASCII:
		return memory.AppendASCIIRune(dst, r)
	}
	return utf8.AppendRune(dst, r)
}

// plain reports whether style gives text for text, which holds no escape.
func plain(raw []byte, style memory.Style) bool {
	if style == memory.StyleASCII {
		for _, c := range raw {
			if c >= 0x7f {
				return false
			}
		}
		return true
	}
	return utf8.Valid(raw)
}

// literal appends a run without escapes.
func literal(sb *strings.Builder, run []byte, style memory.Style, exc []memory.Exception) []memory.Exception {
	if plain(run, style) {
		sb.Write(run)
		return exc
	}
	for i := 0; i < len(run); {
		r, n := utf8.DecodeRune(run[i:])
		at := sb.Len()
		sb.WriteRune(r)
		bad := r == utf8.RuneError && n == 1
		if bad || style == memory.StyleASCII && r >= 0x7f {
			exc = append(exc, memory.Exception{At: at, Len: sb.Len() - at, Raw: bytes.Clone(run[i : i+n])})
		}
		i += n
	}
	return exc
}

// rawPiece is a piece of a text file. Invalid UTF-8 becomes U+FFFD, by
// exceptions; all other bytes are the text.
func rawPiece(raw []byte, start int64) memory.Piece {
	p := memory.Piece{Start: start, End: start + int64(len(raw)), Enc: memory.RawEncoding}
	var sb strings.Builder
	sb.Grow(len(raw))
	p.Enc.Exceptions = literal(&sb, raw, memory.StyleRaw, nil)
	p.Text = sb.String()
	return p
}

// slice is the part [from,to) of p's text, with its own source bytes. It
// reports false when a border cuts an escape.
func slice(p memory.Piece, from, to int) (memory.Piece, bool) {
	if from == 0 && to == len(p.Text) {
		return p, true
	}
	q := memory.Piece{Text: strings.Clone(p.Text[from:to]), Enc: memory.Encoding{Codec: p.Enc.Codec, Style: p.Enc.Style}}
	var ok bool
	if q.Start, ok = place(&p, from); !ok {
		return q, false
	}
	if q.End, ok = place(&p, to); !ok {
		return q, false
	}
	for _, x := range p.Enc.Exceptions {
		if x.At >= from && x.At+x.Len <= to {
			x.At -= from
			q.Enc.Exceptions = append(q.Enc.Exceptions, x)
		}
	}
	return q, true
}

// place is the source offset of a text offset, counted from the nearer end.
func place(p *memory.Piece, at int) (int64, bool) {
	if at <= len(p.Text)/2 {
		b, err := p.Enc.Append(nil, p.Text, 0, at)
		return p.Start + int64(len(b)), err == nil
	}
	b, err := p.Enc.Append(nil, p.Text, at, len(p.Text))
	return p.End - int64(len(b)), err == nil
}

// trimmed is slice without the white space at the ends that are cut.
func trimmed(p memory.Piece, from, to int) (memory.Piece, bool) {
	s := p.Text[from:to]
	if strings.TrimSpace(s) == "" {
		return memory.Piece{}, false
	}
	if from > 0 {
		from += len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	}
	if to < len(p.Text) {
		to -= len(s) - len(strings.TrimRight(s, " \t\r\n"))
	}
	return slice(p, from, to)
}
