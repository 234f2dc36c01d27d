package redact

import "strings"

// A joint is where one secret is written on over a break: a shell's `\` at the
// line's end, the same in a JSON string (`\\\n`), or two string literals side
// by side ("abc" + "def", or one a line). In a diff the next line begins with
// the sign of the line before.

// maxJoints bounds the breaks inside one secret; 16 lines of 64 bytes are more
// than any token has.
const maxJoints = 16

// joint reads the break at p and gives where the secret goes on.
func joint(text string, p int) (next int, ok bool) {
	if p >= len(text) {
		return 0, false
	}
	switch text[p] {
	case '\\':
		if next, ok = continuation(text, p); ok {
			return next, true
		}
		return concatenation(text, p)
	case '"', '\'', '`':
		return concatenation(text, p)
	}
	return 0, false
}

func continuation(text string, p int) (int, bool) {
	q := p
	for q < len(text) && text[q] == '\\' && q-p < 8 {
		q++
	}
	switch {
	case q == p:
		return 0, false
	case q < len(text) && (text[q] == '\n' || strings.HasPrefix(text[q:], "\r\n")):
		q = lineOpen(text, p, q+1+btoi(text[q] == '\r'))
	case q < len(text) && text[q] == 'n' && (q-p) >= 3:
		q++ // an escaped backslash and an escaped line end
	default:
		return 0, false
	}
	at := q
	for q < len(text) && (text[q] == ' ' || text[q] == '\t') {
		q++
	}
	if q >= len(text) || text[q] <= ' ' || text[q] >= 0x80 || strings.IndexByte("\"'`\\", text[q]) >= 0 {
		return 0, false
	}
	if q > at {
		// An indented next line is a shell's next word, unless it looks like
		// the rest of a token.
		e := run(text[:min(len(text), q+longToken)], q, dotted)
		if text[q] == '-' || e-q < 4 || !hasDigit(text[q:e]) || strings.IndexByte(text[q:e], '=') > 0 && strings.TrimRight(text[q:e], "=") != text[q:e-1] {
			return 0, false
		}
	}
	return q, true
}

// lineOpen skips the diff sign at q, when the line of p begins with it too.
func lineOpen(text string, p, q int) int {
	if q < len(text) && (text[q] == '+' || text[q] == '-' || text[q] == '>' || text[q] == '<') {
		from := max(0, p-maxLineLook)
		s := strings.LastIndexByte(text[from:p], '\n')
		if s < 0 && from > 0 {
			return q
		}
		if first := from + s + 1; first < p && text[first] == text[q] {
			return q + 1
		}
	}
	return q
}

// maxLineLook is how far left the begin of a line is looked for, in bytes.
const maxLineLook = 512

func concatenation(text string, p int) (int, bool) {
	q := p
	for q < len(text) && text[q] == '\\' && q-p < 8 {
		q++
	}
	slashes := q - p
	if q >= len(text) || text[q] != '"' && text[q] != '\'' && text[q] != '`' {
		return 0, false
	}
	quote := text[q]
	q++
	ops, lines := 0, 0
	for q < len(text) && q-p < maxConcat {
		switch c := text[q]; {
		case c == ' ', c == '\t', c == '\r':
		case c == '\n':
			lines++
			q = lineOpen(text, p, q+1)
			continue
		case c == '`' && quote != '`' && q+1 < len(text) && (text[q+1] == '\n' || text[q+1] == '\r'): // PowerShell
		case c == ',' && ops == 0 && listJoined(text, p, q):
			ops++
		case (c == '+' || c == '.' || c == '&' || c == '~') && ops < 3:
			ops++
		case c == '\\' && q+1 < len(text) && (text[q+1] == 'n' || text[q+1] == 't' || text[q+1] == '\r' || text[q+1] == '\n'):
			if text[q+1] == 'n' {
				lines++
				q++
			} else if text[q+1] == 't' {
				q++
			}
		case c == '\\' || c == quote:
			k := q
			for k < len(text) && text[k] == '\\' && k-q < 8 {
				k++
			}
			if k-q != slashes || k >= len(text) || text[k] != quote || ops+lines == 0 {
				return 0, false
			}
			k++
			// The next literal must be one word through and through.
			e := word(text[:min(len(text), k+maxValue)], k)
			for e > k && e < len(text) && text[e] == '\\' {
				e++
			}
			if e == k || e >= len(text) || text[e] != quote && text[e] != '\n' {
				return 0, false
			}
			return k, true
		default:
			return 0, false
		}
		q++
	}
	return 0, false
}

// listJoined says that the comma at q parts the literals of a list that is
// joined to one text: ["abc", "def"].join(""), "".join(["abc", "def"]).
func listJoined(text string, p, q int) bool {
	rest := text[q:min(len(text), q+maxLineLook)]
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return false
	}
	if strings.HasPrefix(rest[end+1:], ".join(") {
		return true
	}
	before := text[max(0, p-maxLineLook):p]
	open := strings.LastIndexByte(before, '[')
	return open >= 0 && strings.HasSuffix(before[:open], ".join(")
}

// word is the end of the bytes from i on that a value without spaces has.
func word(text string, i int) int {
	for i < len(text) && inWordSet[text[i]] {
		i++
	}
	return i
}

var inWordSet = func() (t [256]bool) {
	for c := '!'; c < 0x80; c++ {
		t[c] = strings.IndexByte("\"'`\\", byte(c)) < 0
	}
	return t
}()

// maxConcat is how far apart two literals of one secret may stand, in bytes:
// an operator and an indentation.
const maxConcat = 64

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unfold reads a token on over the break at n, one more break with each call
// of try, until try takes the joined text. It gives the joined text of at most
// limit bytes, and for each of its bytes the offset behind it in text. A bare
// line end counts as a break: try takes a text only in a vendor's exact form.
func unfold(text string, i, n, limit int, try func(joined string, ends []int) bool) {
	var b []byte
	var ends []int
	for k := 0; k <= maxJoints; k++ {
		for ; i < n && len(b) < limit; i++ {
			b = append(b, text[i])
			ends = append(ends, i+1)
		}
		if k > 0 && try(string(b), ends) || len(b) >= limit {
			return
		}
		next, ok := joint(text, n)
		if !ok {
			next, ok = lineEnd(text, n)
		}
		if !ok {
			return
		}
		i = next
		if n = run(text[:min(len(text), i+limit)], i, vendorByte); n == i {
			return
		}
	}
}

// lineEnd reads a line end, real or escaped, and the next line's indentation.
func lineEnd(text string, p int) (int, bool) {
	q := p
	switch {
	case strings.HasPrefix(text[p:], "\r\n"), strings.HasPrefix(text[p:], `\n`):
		q += 2
	case strings.HasPrefix(text[p:], "\n"):
		q++
	case strings.HasPrefix(text[p:], `\\n`):
		q += 3
	default:
		return 0, false
	}
	q = lineOpen(text, p, q)
	for k := 0; q < len(text) && (text[q] == ' ' || text[q] == '\t') && k < 16; k++ {
		q++
	}
	return q, q < len(text)
}

// extend reads a token that ends at a joint on to its end.
func extend(text string, f found, set charset) found {
	for k := 0; k < maxJoints; k++ {
		next, ok := joint(text, f.end)
		if !ok {
			return f
		}
		e := run(text[:min(len(text), next+maxValue)], next, set)
		if e == next {
			return f
		}
		if f.secret == "" {
			f.secret = text[f.start:f.end]
		}
		f.secret += text[next:e]
		f.end = e
	}
	return f
}
