package derived

import (
	"strings"
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

// words are the tokens of s. Dropped are punctuation, list marks, check marks,
// quote marks, strokes and emphasis, node suffixes ("[1f0a77c2]", with the link that
// it may be of, "[^1f0a77c2]", " ^1f0a77c2", a link to such a line), the names that
// notes give their lines at their ends (" ^fact-12") and the escapes of a JSON string
// (`\n`). open says that a node suffix stands behind the last token.
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
			case r == '[' && reference(s[i:]) > 0:
				open, space = true, true
				n = reference(s[i:])
			case r == '[' && suffix(s[i:]):
				open, space = true, true
				n = suffixHex + 2
				n += link(s[i+n:])
			case r == '[' && i+1 < len(s) && s[i+1] == '^' && i+1+suffixHex < len(s) && suffix("["+s[i+2:]):
				open, space = true, true
				n = suffixHex + 3
			case r == '[' && checked(s, i):
				space = true
				n = len("[x]")
			case r == '^':
				if m, node := blockID(s, i); m > 0 {
					open, space = open || node, true
					n = m
				}
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

// maxLink bounds the target of a suffix that is a link, in bytes.
const maxLink = 512

// link is the length of the target "(…)" that s begins with, as a Markdown link has
// it behind its text; 0 where there is none.
func link(s string) int {
	if s == "" || s[0] != '(' {
		return 0
	}
	for i := 1; i < len(s) && i < maxLink && s[i] != '\n'; i++ {
		if s[i] == ')' {
			return i + 1
		}
	}
	return 0
}

// reference is the length of the link to a node's line that s begins with, as notes
// have it: "[[decisions#^1f0a77c2|decisions 1f0a77c2]]", its label over two lines or not.
func reference(s string) int {
	if !strings.HasPrefix(s, "[[") {
		return 0
	}
	end := strings.Index(s[:min(len(s), maxLink)], "]]")
	if end < 0 {
		return 0
	}
	target, _, _ := strings.Cut(s[2:end], "|")
	_, block, ok := strings.Cut(target, "#^")
	if i := strings.LastIndexByte(block, '-'); i >= 0 {
		block = block[i+1:]
	}
	if !ok || len(block) != suffixHex || !suffix("["+block+"]") || strings.Contains(s[2:end], "[") {
		return 0
	}
	return end + 2
}

// checked reports whether s[i:] is the mark of a list item that is done, "- [x] ".
func checked(s string, i int) bool {
	if !strings.HasPrefix(s[i:], "[x] ") && !strings.HasPrefix(s[i:], "[X] ") {
		return false
	}
	lead := s[strings.LastIndexByte(s[:i], '\n')+1 : i]
	return strings.ContainsAny(lead, "-*+") && strings.Trim(lead, " \t>-*+") == ""
}

// minBlockID is the least length of a line's name: "x ^2" is a formula.
const minBlockID = 4

// blockID is the length of the line's name that s[i:] begins with, "^fact-12", as
// notes refer to one line of another by it; node says that it is a node's suffix.
// It has white space before it and the end of its line behind it; one that is a node's
// suffix may have anything behind it, as after a new filling of lines.
func blockID(s string, i int) (n int, node bool) {
	if i > 0 && s[i-1] != ' ' && s[i-1] != '\t' {
		return 0, false
	}
	j, hex := i+1, true
	for ; j < len(s) && (lowered[s[j]&0x7f] != 0 && s[j] < utf8.RuneSelf || s[j] == '-'); j++ {
		hex = hex && (s[j] >= '0' && s[j] <= '9' || s[j] >= 'a' && s[j] <= 'f')
	}
	if j-i-1 < minBlockID {
		return 0, false
	}
	if hex && j-i-1 == suffixHex && (j == len(s) || s[j] == ' ' || s[j] == '\n') {
		return j - i, true
	}
	for k := j; k < len(s) && s[k] != '\n'; k++ {
		if s[k] != ' ' && s[k] != '\t' && s[k] != '\r' {
			return 0, false
		}
	}
	return j - i, hex && j-i-1 == suffixHex
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
