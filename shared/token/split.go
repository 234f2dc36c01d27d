package token

import "unicode/utf8"

// word is the length of the first word of s, which is not empty and is the
// rest of a piece of text. It is a hand-written match of the pre-tokenizer's
// pattern, whose alternatives are tried in this order:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func (t *table) word(s string) int {
	r, n := rune(s[0]), 1
	if r >= utf8.RuneSelf {
		r, n = utf8.DecodeRuneInString(s)
	}
	c := t.classAt(r)
	switch c {
	case letter:
		return t.run(s, n, letter)
	case number:
		return n
	}
	if r == '\'' {
		if m := contraction(s); m > 0 {
			return m
		}
	}
	if r != '\r' && r != '\n' && n < len(s) {
		if c2, n2 := t.next(s[n:]); c2 == letter {
			return t.run(s, n+n2, letter)
		} else if r == ' ' && c2 == other {
			return lineEnds(s, t.run(s, n+n2, other))
		}
	}
	if c == other {
		return lineEnds(s, t.run(s, n, other))
	}
	return t.blank(s)
}

func (t *table) classAt(r rune) class {
	if r < utf8.RuneSelf {
		return t.ascii[r]
	}
	return t.classOf(r)
}

// next is the class and the length of the first character of s.
func (t *table) next(s string) (class, int) {
	if b := s[0]; b < utf8.RuneSelf {
		return t.ascii[b], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return t.classOf(r), n
}

// run is the end of the characters of class c from i on.
func (t *table) run(s string, i int, c class) int {
	for i < len(s) {
		if b := s[i]; b < utf8.RuneSelf {
			if t.ascii[b] != c {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if t.classOf(r) != c {
			return i
		}
		i += n
	}
	return i
}

func lineEnds(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// blank matches the three alternatives for white space: up to the last line
// end in the run; else all of it at the end of the text; else all but its last
// character, which belongs to what follows; else that one.
func (t *table) blank(s string) int {
	end, lastLine, lastStart := 0, 0, 0
	for end < len(s) {
		c, n := t.next(s[end:])
		if c != space {
			break
		}
		lastStart = end
		end += n
		if b := s[lastStart]; b == '\r' || b == '\n' {
			lastLine = end
		}
	}
	switch {
	case lastLine > 0:
		return lastLine
	case end == len(s) || lastStart == 0:
		return end
	}
	return lastStart
}

// contraction is the length of an English contraction at the front of s, which
// begins with an apostrophe; 0 for none. The long s (U+017F) folds to s.
func contraction(s string) int {
	if len(s) < 2 {
		return 0
	}
	second := byte(0)
	if len(s) > 2 {
		second = s[2] | 0x20
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if second == 'e' {
			return 3
		}
	case 'l':
		if second == 'l' {
			return 3
		}
	}
	if len(s) > 2 && s[1:3] == "ſ" {
		return 3
	}
	return 0
}
