package transcript

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth is the nesting that encoding/json accepts; a deeper value is a bad
// line, not a crash.
const maxDepth = 10000

// The scanner accepts exactly what encoding/json accepts as one value, by
// index and without allocation. Each function returns the index past what it
// read, or -1. Strings are scanned eight bytes at a time, so a value that
// nobody needs (a second copy of a tool's output, a signature, an image) costs
// about half a nanosecond a byte.
//
// Measured on one core over 4.2 MB of real transcripts, top-level and nested
// members found: this 680 MB/s; gjson (Valid and ForEach, top level only)
// 250; jsonparser (EachKey, which does not validate) 210; json.Valid alone 250.

const (
	loBits = 0x0101010101010101
	hiBits = 0x8080808080808080
)

// skipSpace returns the index of the first byte from i on that is no JSON
// white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}

// escapes marks the bytes that may follow a backslash.
var escapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true, 'u': true}

// special marks, by the high bit of each byte of w, the bytes that end the
// plain run of a string: a quote, a backslash, a control. Of a byte x^2, only
// controls and the quote are at most 0x20, so that one subtraction finds both;
// a byte past 0x7F is taken out at the end. The lowest mark is exact: the
// borrow of a subtraction only runs upwards from a true hit.
func special(w uint64) uint64 {
	quoteOrControl := (w ^ loBits*0x02) - loBits*0x21
	backslash := (w ^ loBits*'\\') - loBits
	return (quoteOrControl | backslash) &^ w & hiBits
}

// skipString reads a string whose opening quote stands before i.
func skipString(b []byte, i int) int {
	for {
		for i+16 <= len(b) {
			w := b[i : i+16 : i+16] // one check of bounds for both words
			x, y := special(binary.LittleEndian.Uint64(w)), special(binary.LittleEndian.Uint64(w[8:]))
			if x|y == 0 {
				i += 16
				continue
			}
			if x != 0 {
				i += bits.TrailingZeros64(x) >> 3
			} else {
				i += 8 + bits.TrailingZeros64(y)>>3
			}
			break
		}
		if i >= len(b) {
			return -1
		}
		c := b[i]
		for c == '\\' { // escapes often stand in a row
			if i+2 >= len(b) || !escapes[b[i+1]] {
				return -1
			}
			if b[i+1] != 'u' {
				i += 2
			} else {
				if i+6 >= len(b) || !isHex(b[i+2]) || !isHex(b[i+3]) || !isHex(b[i+4]) || !isHex(b[i+5]) {
					return -1
				}
				i += 6
			}
			c = b[i]
		}
		switch {
		case c == '"':
			return i + 1
		case c < 0x20:
			return -1
		}
		i++
	}
}

// skipKey is skipString for a key, which it gives unescaped. Nearly every key
// is short and plain.
func skipKey(b []byte, i int) (key []byte, end int) {
	if i+16 <= len(b) {
		w := b[i : i+16 : i+16]
		n := 16
		if x := special(binary.LittleEndian.Uint64(w)); x != 0 {
			n = bits.TrailingZeros64(x) >> 3
		} else if y := special(binary.LittleEndian.Uint64(w[8:])); y != 0 {
			n = 8 + bits.TrailingZeros64(y)>>3
		}
		if n < 16 && w[n] == '"' {
			return w[:n], i + n + 1
		}
	}
	if end = skipString(b, i); end < 0 {
		return nil, -1
	}
	return plainKey(b[i : end-1]), end
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// skipValue reads the value at b[i].
func skipValue(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return skipString(b, i+1)
	case '{':
		return skipObject(b, i, depth)
	case '[':
		return skipArray(b, i, depth)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

func skipWord(b []byte, i int, w string) int {
	if len(b)-i >= len(w) && string(b[i:i+len(w)]) == w {
		return i + len(w)
	}
	return -1
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func skipNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && b[i] >= '1' && b[i] <= '9':
		i = skipDigits(b, i)
	default:
		return -1
	}
	if i < len(b) && b[i] == '.' {
		j := skipDigits(b, i+1)
		if j == i+1 {
			return -1
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := skipDigits(b, i)
		if j == i {
			return -1
		}
		i = j
	}
	return i
}

func skipObject(b []byte, i, depth int) int {
	if depth++; depth > maxDepth {
		return -1
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		if i = skipString(b, i+1); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return -1
		}
		if i = skipValue(b, skipSpace(b, i+1), depth); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return -1
		}
	}
}

func skipArray(b []byte, i, depth int) int {
	if depth++; depth > maxDepth {
		return -1
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = skipValue(b, i, depth); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return -1
		}
	}
}

// span is a value's place in a line; the zero span stands for "absent".
type span struct{ s, e int }

func (v span) ok() bool { return v.e > 0 }

// member is one key of an object, without quotes and unescaped, and its value.
type member struct {
	key []byte
	val span
}

// members reads the object at b[i] and appends its members to dst.
func members(b []byte, i int, dst []member) ([]member, int) {
	return walk(b, i, dst, shallow)
}

func shallow(b, _ []byte, v int) int { return skipValue(b, v, 1) }

// maxMembers bounds what one list of members takes, 20 MB; an object with more
// is a bad one. The largest real one is the tree of a ChatGPT conversation,
// with some thousands.
const maxMembers = 1 << 19

// walk reads the object at b[i]; value reads the value of a key.
func walk(b []byte, i int, dst []member, value func(b, key []byte, v int) int) ([]member, int) {
	if i >= len(b) || b[i] != '{' {
		return dst, -1
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return dst, i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return dst, -1
		}
		var key []byte
		if key, i = skipKey(b, i+1); i < 0 {
			return dst, -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return dst, -1
		}
		v := skipSpace(b, i+1)
		if i = value(b, key, v); i < 0 {
			return dst, -1
		}
		if len(dst) == maxMembers {
			return dst, -1
		}
		dst = append(dst, member{key, span{v, i}})
		if i = skipSpace(b, i); i >= len(b) {
			return dst, -1
		}
		switch b[i] {
		case '}':
			return dst, i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return dst, -1
		}
	}
}

// plainKey unescapes a key; nearly none needs it.
func plainKey(key []byte) []byte {
	for _, c := range key {
		if c == '\\' {
			return []byte(unquote(key))
		}
	}
	return key
}

// elements calls f with each element of the array v, until f says false. v
// was checked before.
func elements(b []byte, v span, f func(span) bool) {
	if !v.ok() || b[v.s] != '[' {
		return
	}
	i := skipSpace(b, v.s+1)
	for i < v.e && b[i] != ']' {
		e := skipValue(b, i, 0)
		if e < 0 || !f(span{i, e}) {
			return
		}
		if i = skipSpace(b, e); i < v.e && b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
}

func isString(b []byte, v span) bool { return v.ok() && b[v.s] == '"' }
func isObject(b []byte, v span) bool { return v.ok() && b[v.s] == '{' }
func isArray(b []byte, v span) bool  { return v.ok() && b[v.s] == '[' }
func isTrue(b []byte, v span) bool   { return v.ok() && b[v.s] == 't' }
func isNull(b []byte, v span) bool   { return v.ok() && b[v.s] == 'n' }
