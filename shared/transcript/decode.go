package transcript

import (
	"bytes"
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
	raw := b[v.s+1 : v.e-1]
	p := memory.Piece{
		Start: base + int64(v.s+1),
		End:   base + int64(v.e-1),
		Enc:   memory.Encoding{Codec: memory.CodecJSONString, Style: styleOf(raw)},
	}
	p.Text, p.Enc.Exceptions = decode(raw, p.Enc.Style, nil)
	return p
}

// styleOf guesses the writer's escape rule: a string that is all ASCII and
// holds an escape past 0x7E comes from a writer that escapes everything there.
func styleOf(raw []byte) memory.Style {
	i := bytes.Index(raw, []byte(`\u`))
	if i < 0 {
		return memory.StyleJS
	}
	for _, c := range raw {
		if c >= 0x7f {
			return memory.StyleJS
		}
	}
	for i < len(raw) {
		k := bytes.IndexByte(raw[i:], '\\')
		if k < 0 {
			break
		}
		if i += k; raw[i+1] != 'u' {
			i += 2
			continue
		}
		if hex4(raw[i+2:]) >= 0x7f {
			return memory.StyleASCII
		}
		i += 6
	}
	return memory.StyleJS
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

// decode gives the text of the inside of a JSON string, as encoding/json
// does: a lone surrogate and each invalid UTF-8 byte become U+FFFD. Each place
// where style would give other bytes than raw has is an exception.
func decode(raw []byte, style memory.Style, exc []memory.Exception) (string, []memory.Exception) {
	k := bytes.IndexByte(raw, '\\')
	if k < 0 && plain(raw, style) {
		return string(raw), exc
	}
	out := make([]byte, 0, len(raw))
	var want [12]byte // what style gives for one rune
	for i := 0; i < len(raw); {
		k := bytes.IndexByte(raw[i:], '\\')
		if k < 0 {
			k = len(raw) - i
		}
		if k > 0 {
			out, exc = literal(out, raw[i:i+k], style, exc)
			i += k
			continue
		}
		at, n := len(out), 2
		var r rune
		switch c := raw[i+1]; c {
		case 'b':
			r = '\b'
		case 'f':
			r = '\f'
		case 'n':
			r = '\n'
		case 'r':
			r = '\r'
		case 't':
			r = '\t'
		case 'u':
			r, n = hex4(raw[i+2:]), 6
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(raw)-i >= 12 && raw[i+6] == '\\' && raw[i+7] == 'u' {
					pair = utf16.DecodeRune(r, hex4(raw[i+8:]))
				}
				if r = pair; r != utf8.RuneError {
					n = 12
				}
			}
		default:
			r = rune(c) // " \ /
		}
		out = utf8.AppendRune(out, r)
		if string(appendRune(want[:0], style, r)) != string(raw[i:i+n]) {
			exc = append(exc, memory.Exception{At: at, Len: len(out) - at, Raw: bytes.Clone(raw[i : i+n])})
		}
		i += n
	}
	return string(out), exc
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
func literal(out, run []byte, style memory.Style, exc []memory.Exception) ([]byte, []memory.Exception) {
	if plain(run, style) {
		return append(out, run...), exc
	}
	for i := 0; i < len(run); {
		r, n := utf8.DecodeRune(run[i:])
		at := len(out)
		out = utf8.AppendRune(out, r)
		bad := r == utf8.RuneError && n == 1
		if bad || style == memory.StyleASCII && r >= 0x7f {
			exc = append(exc, memory.Exception{At: at, Len: len(out) - at, Raw: bytes.Clone(run[i : i+n])})
		}
		i += n
	}
	return out, exc
}

// rawPiece is a piece of a text file. Invalid UTF-8 becomes U+FFFD, by
// exceptions; all other bytes are the text.
func rawPiece(raw []byte, start int64) memory.Piece {
	p := memory.Piece{Start: start, End: start + int64(len(raw)), Enc: memory.RawEncoding}
	out, exc := literal(nil, raw, memory.StyleRaw, nil)
	p.Text, p.Enc.Exceptions = string(out), exc
	return p
}

// slice is the part [from,to) of p's text, with its own source bytes. It
// reports false when a border cuts an escape.
func slice(p memory.Piece, from, to int) (memory.Piece, bool) {
	if from == 0 && to == len(p.Text) {
		return p, true
	}
	q := memory.Piece{Text: strings.Clone(p.Text[from:to]), Enc: memory.Encoding{Codec: p.Enc.Codec, Style: p.Enc.Style}}
	before, err := p.Enc.Append(nil, p.Text, 0, from)
	if err != nil {
		return q, false
	}
	inside, err := p.Enc.Append(nil, p.Text, from, to)
	if err != nil {
		return q, false
	}
	q.Start = p.Start + int64(len(before))
	q.End = q.Start + int64(len(inside))
	for _, x := range p.Enc.Exceptions {
		if x.At >= from && x.At+x.Len <= to {
			x.At -= from
			q.Enc.Exceptions = append(q.Enc.Exceptions, x)
		}
	}
	return q, true
}

// trimmed is slice without the white space at both ends.
func trimmed(p memory.Piece, from, to int) (memory.Piece, bool) {
	s := p.Text[from:to]
	from += len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	to -= len(s) - len(strings.TrimRight(s, " \t\r\n"))
	if from >= to {
		return memory.Piece{}, false
	}
	return slice(p, from, to)
}
