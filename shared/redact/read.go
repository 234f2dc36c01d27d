package redact

import (
	"strconv"
	"strings"
)

// read is a value in the text: text[start:end] between its quotes, opened at
// open, and clean, the value without escapes and joints.
type read struct {
	open, start, end int
	clean            string
	quoted, joined   bool
	ok               bool
}

// openValue skips spaces and an opening quote, which may be escaped; slashes
// counts the signs of escape before the quote.
func openValue(text string, i int) (s, slashes int, quote byte) {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	k := i
	for k < len(text) && text[k] == '\\' && k-i < 16 {
		k++
	}
	if k < len(text) && (text[k] == '"' || text[k] == '\'' || text[k] == '`') {
		return k + 1, k - i, text[k]
	}
	return i, 0, 0
}

// readValue reads the value that stands behind a separator.
func readValue(text string, i int) read {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	if next, ok := continuation(text, i); ok {
		i = next
	}
	// Python's brackets around literals, one a line.
	if i < len(text) && text[i] == '(' {
		k := i + 1
		for k < len(text) && k-i < maxConcat && (text[k] == ' ' || text[k] == '\t' || text[k] == '\r' || text[k] == '\n') {
			k++
		}
		if k < len(text) && (text[k] == '"' || text[k] == '\'') {
			i = k
		}
	}
	// A list of literals that is joined.
	if i+1 < len(text) && text[i] == '[' && (text[i+1] == '"' || text[i+1] == '\'') {
		if k := strings.IndexByte(text[i:min(len(text), i+maxLineLook)], ']'); k > 0 && strings.HasPrefix(text[i+k+1:], ".join(") {
			i++
		}
	}
	// Prefixes of string literals: b"…", r"…", f"…", @"…", L"…", and SQL's N'…'.
	if i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\'') && strings.IndexByte("bBrRuUfF@LN$", text[i]) >= 0 {
		i++
	}
	s, slashes, quote := openValue(text, i)
	if quote != 0 {
		return readQuoted(text, s, slashes, quote)
	}
	if block, ok := blockScalar(text, s); ok {
		return block
	}
	return readBare(text, s)
}

func readQuoted(text string, s, slashes int, quote byte) read {
	var b []byte
	r := read{open: s, start: s, quoted: true}
	plain := true // text[s:end] is the value
	limit := min(len(text), s+maxValue*2)
	i := s
	for ; i < limit; i++ {
		c := text[i]
		switch {
		case c == quote && slashes == 0, c == '\\' && closes(text, i, slashes, quote):
			if next, ok := concatenation(text, i); ok && !spaced(b) {
				i, plain, r.joined = next-1, false, true
				continue
			}
			r.end, r.ok = i, true
		case c == '\\':
			if next, ok := continuation(text, i); ok {
				i, plain, r.joined = next-1, false, true
				continue
			}
			k, v := unescape(text, i)
			switch {
			case v == '\n' || v == '\t' || v == '\r':
				// A value that ends in an escaped line end, or goes on behind
				// it as a wrapped token does.
				if e := run(text[:limit], k, dotted); e-k >= minWrapped && hasDigit(text[k:e]) && tokenOnly(b) && v == '\n' && len(b) >= minWrapped {
					i, plain, r.joined = k-1, false, true
					continue
				}
				r.end, r.ok = i, true
			default:
				b = append(b, v)
				i, plain = k-1, false
				continue
			}
		case c == '\n':
			// A string over lines: the rest must be one token and its quote.
			next, ok := lineEnd(text, i)
			e := next
			if ok {
				e = run(text[:limit], next, dotted)
			}
			if !ok || !tokenOnly(b) || e == next || e >= len(text) || text[e] != quote && text[e] != '\n' && text[e] != '\\' {
				return read{}
			}
			i, plain, r.joined = next-1, false, true
			continue
		default:
			b = append(b, c)
			continue
		}
		break
	}
	if !r.ok {
		if i < len(text) { // longer than any secret but a token
			e := run(text, s, dotted)
			if e < i || e < len(text) && text[e] != quote && text[e] != '\\' {
				return read{}
			}
			r.end, plain = e, true
		} else {
			r.end = i // cut off
		}
		r.ok = true
	}
	r.clean = text[s:r.end]
	if !plain {
		r.clean = string(b)
	}
	return r
}

// minWrapped is the least length of a line of a wrapped token.
const minWrapped = 12

func tokenOnly(b []byte) bool {
	for _, c := range b {
		if !dotted.has(c) {
			return false
		}
	}
	return true
}

func spaced(b []byte) bool {
	for _, c := range b {
		if c <= ' ' {
			return true
		}
	}
	return false
}

// closes says that a quote with as many signs of escape as the opening one
// stands at i.
func closes(text string, i, slashes int, quote byte) bool {
	k := i
	for k < len(text) && text[k] == '\\' && k-i <= slashes {
		k++
	}
	return k-i == slashes && k < len(text) && text[k] == quote
}

// unescape reads one escape at i: the byte it stands for and where it ends.
func unescape(text string, i int) (next int, v byte) {
	k := i
	for k < len(text) && text[k] == '\\' && k-i < 8 {
		k++
	}
	if k >= len(text) {
		return k, '\\'
	}
	switch c := text[k]; c {
	case 'n':
		return k + 1, '\n'
	case 't':
		return k + 1, '\t'
	case 'r':
		return k + 1, '\r'
	case '/', '"', '\'', '`', '$', '!', '&', '#', '@', '%':
		return k + 1, c
	case 'u':
		if k+5 <= len(text) {
			n, err := strconv.ParseUint(text[k+1:k+5], 16, 16)
			if err == nil && n > ' ' && n < 0x7f {
				return k + 5, byte(n)
			}
		}
	}
	return k, '\\'
}

// bareEnd end an unquoted value.
const bareEnd = "\"'`,;&|<>(){}[]\\"

func readBare(text string, s int) read {
	r := read{open: s, start: s}
	var b []byte
	end := s
	limit := min(len(text), s+maxValue)
	at := s
	for {
		for end < limit && text[end] > ' ' && text[end] < 0x80 && strings.IndexByte(bareEnd, text[end]) < 0 {
			end++
		}
		if end >= limit {
			break
		}
		if text[end] == '\\' {
			if next, ok := continuation(text, end); ok && len(b) < limit {
				b = append(b, text[at:end]...)
				at, end, r.joined = next, next, true
				continue
			}
			if k, v := unescape(text, end); v != '\\' && v > ' ' && v != '"' && v != '\'' && v != '`' && v != '&' {
				b = append(append(b, text[at:end]...), v)
				at, end, r.joined = k, k, true
				continue
			}
		}
		break
	}
	end = max(at, trimToken(text, at, end))
	if end < len(text) && (text[end] == '(' || text[end] == '[' || text[end] == '{') {
		return read{} // a call or an index; also a mark
	}
	r.clean = text[s:end]
	if r.joined {
		r.clean = string(append(b, text[at:end]...))
	}
	r.end, r.ok = end, end > s
	if end == limit && limit < len(text) {
		// Longer than a password: a token, whole.
		if !looksRandom(r.clean) || r.joined {
			return read{}
		}
		r.end = run(text, end, dotted)
		r.clean = text[s:r.end]
	}
	return r
}

// trimToken drops what ends a sentence rather than a token.
func trimToken(text string, from, to int) int {
	for to > from && (text[to-1] == '.' || text[to-1] == ':') {
		to--
	}
	return to
}

// blockScalar reads YAML's `>-` and `|` with lines of one word each, which are
// indented alike.
func blockScalar(text string, i int) (read, bool) {
	if i >= len(text) || text[i] != '|' && text[i] != '>' {
		return read{}, false
	}
	i++
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	r := read{quoted: true}
	var b []byte
	indent := ""
	for lines := 0; lines < maxJoints; lines++ {
		next, ok := lineEnd(text, i)
		if !ok || next == i || text[next-1] != ' ' && text[next-1] != '\t' {
			break
		}
		e := word(text[:min(len(text), next+maxValue)], next)
		if e == next || e < len(text) && text[e] != '\n' && text[e] != '\r' && text[e] != '\\' {
			break
		}
		if lines == 0 {
			r.open, r.start, indent = next, next, text[i:next]
		} else if text[i:next] != indent {
			break
		}
		b = append(b, text[next:e]...)
		r.end, i = e, e
		r.joined = lines > 0
	}
	r.clean, r.ok = string(b), r.end > r.start
	return r, r.ok
}
