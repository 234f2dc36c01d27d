package extractive

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sent is a sentence range and what the score needs of it.
type sent struct {
	start, end int
	question   bool // ends in "?"
}

// proseShare is the least share of letters, spaces and sentence punctuation of
// a line that is read without further proof of prose (extractive.md section 2).
const (
	proseShare = 0.72
	proseWords = 40
)

// sentences appends the sentences of text to dst: fenced code, quotes, tables,
// prompts, diffs, log lines and code are left out, and sentences that do not
// fit into a pick.
func (r *rules) sentences(dst []sent, text string) []sent {
	fenced := false
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		next := len(text)
		if end < 0 {
			end = len(text)
		} else {
			end += at
			next = end + 1
		}
		s, e := trim(text, at, end)
		at = next
		if s == e {
			continue
		}
		line := text[s:e]
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced || !r.prose(line) {
			continue
		}
		dst = r.split(dst, text, s+r.bullet(line), e)
	}
	return dst
}

// trim shrinks [s,e) by the white space at both ends.
func trim(text string, s, e int) (int, int) {
	for s < e && asciiSpace(text[s]) {
		s++
	}
	for s < e && asciiSpace(text[e-1]) {
		e--
	}
	if s == e || text[s] < utf8.RuneSelf && text[s] > ' ' && text[e-1] < utf8.RuneSelf && text[e-1] > ' ' {
		return s, e
	}
	part := text[s:e]
	left := strings.TrimLeftFunc(part, unicode.IsSpace)
	s += len(part) - len(left)
	return s, s + len(strings.TrimRightFunc(left, unicode.IsSpace))
}

// prose reports whether a trimmed line is read at all.
func (r *rules) prose(line string) bool {
	if r.logl.match(line) {
		return false
	}
	switch line[len(line)-1] { // what the patterns of code end in
	case ';', '{', '}', ':', '(', '=':
		if r.code2.match(line) {
			return false
		}
	}
	good, all := 0, 0
	for i := 0; i < len(line); all++ {
		if c := line[i]; c < utf8.RuneSelf {
			if proseByte[c] {
				good++
			}
			i++
			continue
		}
		c, n := utf8.DecodeRuneInString(line[i:])
		if c == '’' || unicode.IsLetter(c) {
			good++
		}
		i += n
	}
	if float64(good) >= proseShare*float64(all) {
		return true
	}
	return r.code1.match(line) || !fewerWords(line, proseWords)
}

// proseByte is the ASCII characters that prose consists of.
var proseByte = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = 'a' <= c|0x20 && c|0x20 <= 'z' || strings.ContainsRune(" ,.'\"`", rune(c))
	}
	return t
}()

// bullet is the length of the list marker in front of a trimmed line.
func (r *rules) bullet(line string) int {
	if c := line[0]; c >= 'A' && c < utf8.RuneSelf {
		return 0
	}
	if r.bulAt.scan(line) == 0 {
		return 0
	}
	return r.bul.FindStringIndex(line)[1]
}

// split cuts text[s:e), one line, into sentences.
func (r *rules) split(dst []sent, text string, s, e int) []sent {
	from, ticks := s, 0
	for i := s; i < e; {
		c := text[i]
		if c == '`' {
			ticks++
		}
		if c != '.' && c != '!' && c != '?' {
			i++
			continue
		}
		j := i
		for j < e && (text[j] == '.' || text[j] == '!' || text[j] == '?') {
			j++
		}
		mark := j
		closing := 0
		for j < e {
			n := closer(text[j:e])
			if n == 0 {
				break
			}
			if text[j] == '`' {
				closing++
			}
			j += n
		}
		k := j
		for k < e && asciiSpace(text[k]) {
			k++
		}
		if k == j || ticks%2 == 1 || mark == i+1 && c == '.' && r.abbreviation(text[s:mark]) {
			i = mark
			continue
		}
		dst = appendSent(dst, text, from, j)
		from, i, ticks = k, k, 0
	}
	return appendSent(dst, text, from, e)
}

// closer is the length of a closing quote, bracket or mark at the front of s.
func closer(s string) int {
	switch s[0] {
	case '"', '\'', ')', ']', '*', '`':
		return 1
	}
	if strings.HasPrefix(s, "’") || strings.HasPrefix(s, "”") {
		return len("’")
	}
	return 0
}

func asciiSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'
}

// abbreviation reports whether head, which ends in ".", ends in an
// abbreviation; the rule looks at 9 characters.
func (r *rules) abbreviation(head string) bool {
	i, n := len(head), 0
	for i > 0 && n < 9 {
		_, size := utf8.DecodeLastRuneInString(head[:i])
		i -= size
		n++
	}
	return r.abbr.match(head[i:])
}

func appendSent(dst []sent, text string, s, e int) []sent {
	s, e = trim(text, s, e)
	if s == e || e-s > pickCharacters && utf8.RuneCountInString(text[s:e]) > pickCharacters {
		return dst // too long to be kept
	}
	return append(dst, sent{start: s, end: e, question: question(text[s:e])})
}

// question reports whether a sentence ends in a question mark, quotes and
// closing marks aside.
func question(s string) bool {
	for len(s) > 0 {
		switch c := s[len(s)-1]; {
		case c == '?':
			return true
		case c == '"', c == '\'', c == ')', c == '*', c == '`':
			s = s[:len(s)-1]
		case strings.HasSuffix(s, "’"), strings.HasSuffix(s, "”"):
			s = s[:len(s)-len("’")]
		default:
			return false
		}
	}
	return false
}
