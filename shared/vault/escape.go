package vault

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Inline is s as one line of Markdown that shows the characters of s and means
// nothing else, in CommonMark, in GitHub's dialect and in Obsidian: no link, tag,
// embed, comment, formula, HTML, block id, list item or heading. Runs of white
// space are one blank; control characters and marks that turn the direction of
// what follows are U+FFFD.
func Inline(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	appendInline(&b, s)
	return b.String()
}

// special are the ASCII characters that appendInline looks at.
var special = func() (t [utf8.RuneSelf]bool) {
	for _, c := range "\\`*_[]{}#^|<>&%=~$@:\x7f" {
		t[c] = true
	}
	for c := range 0x21 {
		t[c] = true
	}
	return t
}()

// appendInline is Inline into b.
func appendInline(b *strings.Builder, s string) {
	s = strings.TrimSpace(s)
	if n := listStart(s); n > 0 { // what would begin a list, a rule or a setext line
		b.WriteString(s[:n-1])
		b.WriteByte('\\')
		b.WriteByte(s[n-1])
		s = s[n:]
	}
	last := byte(0) // the byte of s before the present one, 0 at its start
	from := 0       // s[from:i] is plain
	flush := func(i int) { b.WriteString(s[from:i]) }
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !special[c] {
				last = c
				i++
				continue
			}
			switch {
			case c == ' ' && last != ' ':
				last = c
				i++
				continue
			case c <= ' ':
				flush(i)
				if c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v' {
					if last != ' ' {
						b.WriteByte(' ')
					}
					c = ' '
				} else {
					b.WriteRune(utf8.RuneError)
				}
			case c == 0x7f:
				flush(i)
				b.WriteRune(utf8.RuneError)
			case c == '_':
				// A run between letters or digits is no emphasis (CommonMark 6.2: it is left- and
				// right-flanking, without punctuation beside it): snake_case. Any other run is
				// escaped whole: of __name__ a part would still be one.
				n := i + 1
				for n < len(s) && s[n] == '_' {
					n++
				}
				if !word(last) || n == len(s) || !word(s[n]) {
					flush(i)
					for range n - i {
						b.WriteString("\\_")
					}
					from = n
				}
				last = c
				i = n
				continue
			case c == ':' && !(i+1 < len(s) && (s[i+1] == '/' || s[i+1] == ':')) && last != ':': // https: and key:: alone mean something
				last = c
				i++
				continue
			case c == '<':
				flush(i)
				b.WriteString("&lt;")
			case c == '>':
				flush(i)
				b.WriteString("&gt;")
			case c == '&':
				flush(i)
				b.WriteString("&amp;")
			case c == '%' && (i+1 < len(s) && s[i+1] == '%' || last == '%'): // Obsidian's comment, which no backslash stops
				flush(i)
				b.WriteString("&#37;")
			case c == '%' || c == '{' && !(i+1 < len(s) && s[i+1] == '{') && last != '{' || c == '}' || c == '=' && !(i+1 < len(s) && s[i+1] == '=') && last != '=':
				last = c
				i++
				continue
			default:
				flush(i)
				b.WriteByte('\\')
				b.WriteByte(c)
			}
			last = c
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, unicode.Is(unicode.Cc, r), turns(r):
			flush(i)
			b.WriteRune(utf8.RuneError)
			from = i + n
			last = '.'
		case unicode.IsSpace(r) || r == '\u2028' || r == '\u2029':
			flush(i)
			if last != ' ' {
				b.WriteByte(' ')
			}
			from = i + n
			last = ' '
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			last = 'x'
		default:
			last = '.' // punctuation, a symbol, a mark
		}
		i += n
	}
	flush(len(s))
}

// word reports letters and digits.
func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// turns reports the marks that override the direction of text: what is behind one
// reads as something else than it is. Arabic and Hebrew need none of them.
func turns(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// listStart is the place behind the character that makes a block of a line's
// start: "- ", "+ ", "---", "1. ", "1) "; 0 where none does. Characters that are
// escaped anywhere are none.
func listStart(s string) int {
	if s == "" {
		return 0
	}
	if s[0] == '-' || s[0] == '+' || s[0] == '=' {
		return 1
	}
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n > 0 && n <= 9 && n < len(s) && (s[n] == '.' || s[n] == ')') { // CommonMark: at most nine digits
		return n + 1
	}
	return 0
}

// quoted is a YAML double-quoted scalar: what JSON calls a string, on one line.
// White space is folded; what a title needs not is U+FFFD; "[[", which Obsidian
// takes for a link there too, is taken apart.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	last := ' '
	for _, r := range strings.TrimSpace(s) {
		switch {
		case unicode.IsSpace(r) || r == '\u2028' || r == '\u2029':
			if last != ' ' {
				b.WriteByte(' ')
			}
			last = ' '
			continue
		case r == '[' && last == '[':
			b.WriteString(" [")
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsControl(r) || turns(r) || r == '\ufeff' || r >= 0xfffe && r <= 0xffff:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
		last = r
	}
	b.WriteByte('"')
	return b.String()
}

// objectName is the key of an object inside a code span: a grave accent and the
// per cent sign are written as in a URL.
func objectName(key string) string {
	key = strings.ReplaceAll(strings.ReplaceAll(key, "%", "%25"), "`", "%60")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || turns(r) || r == '\u2028' || r == '\u2029' {
			return utf8.RuneError
		}
		return r
	}, key)
}

func objectKey(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "%60", "`"), "%25", "%")
}
