package derived

import (
	"unicode"
	"unicode/utf8"
)

// word is one token of a text: a run of letters and digits, or one character of
// a script without spaces. The same words are the same tokens however the text
// is wrapped, indented, quoted, emphasised or listed.
type word struct {
	from, to int  // bytes of the text
	hash     hash // of the lower-case form
	cited    bool // a node suffix stands between the token before and this one
}

// hash is a token's hash. Its lowest bit is no part of it: it is set where the
// token begins a word in the usual sense, with white space before it, so that
// "write-once" counts as one word and still equals "write-" and "once" on two
// lines.
type hash uint32

const wordBit hash = 1

func (h hash) same(o hash) bool { return (h^o)&^wordBit == 0 }

// suffixHex is the length of the node ids in a memory text.
const suffixHex = 8

// words are the tokens of s. Dropped are punctuation, list marks, quote marks,
// node suffixes ("[1f0a77c2]") and the escapes of a JSON string (`\n`). open
// says that a node suffix stands behind the last token.
func words(dst []word, s string) (_ []word, open bool) {
	space := true
	for i := 0; i < len(s); {
		if s[i] == ' ' {
			space = true
			i++
			continue
		}
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case !letter(r):
			switch {
			case r == '[' && suffix(s[i:]):
				open, space = true, true
				n = suffixHex + 2
			case r == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 't' || s[i+1] == 'r'):
				space = true
				n = 2
			case r <= ' ' || r >= utf8.RuneSelf && unicode.IsSpace(r):
				space = true
			}
			i += n
			continue
		case r <= '9':
			if m := number(s, i); m > 0 {
				i += m
				space = true
				continue
			}
		}
		from := i
		h := uint64(fnvOffset)
		if spaceless(r) {
			space = true
			for ; i < from+n; i++ {
				h = (h ^ uint64(s[i])) * fnvPrime
			}
		} else {
			for i < len(s) {
				if s[i] < utf8.RuneSelf {
					c := lowered[s[i]]
					if c == 0 {
						break
					}
					h = (h ^ uint64(c)) * fnvPrime
					i++
					continue
				}
				r, n = utf8.DecodeRuneInString(s[i:])
				if !unicode.IsLetter(r) && !unicode.IsDigit(r) || spaceless(r) {
					break
				}
				h = (h ^ uint64(unicode.ToLower(r))) * fnvPrime
				i += n
			}
		}
		w := word{from: from, to: i, hash: hash(h^h>>32) &^ wordBit, cited: open}
		if space {
			w.hash |= wordBit
		}
		dst = append(dst, w)
		space, open = false, false
	}
	return dst, open
}

// lowered is the lower case of ASCII letters and digits, 0 for all else.
var lowered = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch c := byte(c); {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
			t[c] = c
		case 'A' <= c && c <= 'Z':
			t[c] = c | 0x20
		}
	}
	return t
}()

func letter(r rune) bool {
	if uint32(r) < utf8.RuneSelf {
		return lowered[r] != 0
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// spaceless reports whether r belongs to a script without spaces.
func spaceless(r rune) bool {
	return r >= 0x3040 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// suffix reports whether s begins with the suffix of a node, "[1f0a77c2]".
func suffix(s string) bool {
	if len(s) < suffixHex+2 || s[suffixHex+1] != ']' {
		return false
	}
	for _, c := range []byte(s[1 : suffixHex+1]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// number is the length of the list number at s[i:], "12. " or "3) ", 0 where
// there is none: it begins its line, marks aside, and the line before does not
// stop within a sentence. A number that a new wrapping brought to the front of
// a line ("stop after exactly / 5. Then") is a word.
func number(s string, i int) int {
	j := i
	for j < len(s) && j-i <= 3 && '0' <= s[j] && s[j] <= '9' {
		j++
	}
	if j == i || j-i > 3 || j+1 >= len(s) || s[j] != '.' && s[j] != ')' || s[j+1] > ' ' {
		return 0
	}
	for k := i - 1; k >= 0; k-- {
		switch c := s[k]; c {
		case ' ', '\t', '\r', '>', '-', '*', '+', '#', '|':
			continue
		case '\n':
			for k--; k >= 0 && (s[k] == ' ' || s[k] == '\t' || s[k] == '\r'); k-- {
			}
			if k >= 0 && (s[k] >= utf8.RuneSelf || letter(rune(s[k])) || s[k] == ',') {
				return 0
			}
			return j + 1 - i
		default:
			return 0
		}
	}
	return j + 1 - i
}

// FNV-1a, 64 bits, folded to 32: what has equal hashes is compared in runs of
// at least three words, so that a false match has a chance under 1e-28.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)
