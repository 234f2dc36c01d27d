package compress

import "strings"

// skipEscape is the place after the terminal's escape sequence at i.
func skipEscape(s string, i int) int {
	i++
	if i >= len(s) {
		return i
	}
	switch s[i] {
	case '[':
		for i++; i < len(s) && (s[i] < 0x40 || s[i] > 0x7e); i++ {
		}
	case ']': // an operating system command, to BEL or ESC \
		for i++; i < len(s) && s[i] != 0x07 && s[i] != 0x1b; i++ {
		}
	}
	return min(i+1, len(s))
}

// prefix is where a line's message begins, behind times, colours, the numbers of
// build steps and the bars that other programs put before it.
func prefix(line string) (at int, stamped bool) {
	for i, n := 0, 0; i < len(line) && n < 12; n++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '|' || c == '\r':
			i++
			n--
		case c == 0x1b:
			i = skipEscape(line, i)
		case c == '[' || c == '(':
			j := i + 1
			for j < len(line) && timeByte[line[j]] {
				j++
			}
			if j == i+1 || j >= len(line) || line[j] != ']' && line[j] != ')' {
				return i, stamped
			}
			stamped = stamped || isTime(line[i+1:j])
			i = j + 1
		case c == '#' || '0' <= c && c <= '9':
			j := i + 1
			for j < len(line) && timeByte[line[j]] {
				j++
			}
			if j < len(line) && line[j] > ' ' && line[j] != '|' || c == '#' && j == i+1 {
				return i, stamped
			}
			if c != '#' && !isTime(line[i:j]) && !strings.Contains(line[i:j], ".") {
				return i, stamped
			}
			stamped = stamped || isTime(line[i:j])
			i = j
		default:
			return i, stamped
		}
		at = i
	}
	return min(at, len(line)), stamped
}

var timeByte = func() (t [256]bool) {
	for _, c := range []byte("0123456789:.,-+TZ/ws") {
		t[c] = true
	}
	return t
}()

// isTime reports a clock time or a date.
func isTime(s string) bool {
	return strings.Count(s, ":") >= 2 || strings.Count(s, "-") >= 2 || strings.Count(s, "/") == 2 && len(s) >= 8
}

// isFrame reports a frame of a stack, as runtimes print them.
func isFrame(body string) bool {
	switch body[0] {
	case 'a':
		return strings.HasPrefix(body, "at ")
	case 'F':
		return strings.HasPrefix(body, `File "`)
	case 'g':
		return strings.HasPrefix(body, "goroutine ")
	case '.':
		return strings.HasPrefix(body, "... ") && strings.HasSuffix(body, " more")
	case '/':
		return strings.Contains(body, ".go:") && !strings.Contains(body, ": ")
	case 'c':
		return strings.HasPrefix(body, "created by ")
	case 'f':
		return strings.HasPrefix(body, "from ") && strings.Contains(body, ":in ")
	}
	return false
}

// place is how exactly a line names a place in a file.
type place uint8

const (
	nowhere place = iota
	atLine        // x.go:3: …
	column        // x.go:3:2: …, src/a.ts(4,7): …
)

// located reports a line that begins with a place in a file and says something
// of it.
func located(body string) place {
	i := 0
	for i < len(body) && i < 300 && body[i] != ':' && body[i] != '(' && body[i] != ' ' && body[i] != '\t' {
		i++
	}
	if i+2 >= len(body) || i < 3 || body[i] == ' ' || body[i] == '\t' {
		return nowhere
	}
	name := body[:i]
	if !strings.ContainsAny(name, "./") || strings.HasPrefix(name, "http") {
		return nowhere
	}
	j := digits(body, i+1)
	if j == i+1 || j >= len(body) {
		return nowhere
	}
	switch body[j] {
	case ':', ',':
		if k := digits(body, j+1); k > j+1 && k < len(body) && (body[k] == ':' || body[k] == ')') {
			return column
		}
		if body[j] == ':' {
			return atLine
		}
	case ')':
		return atLine
	}
	return nowhere
}

func digits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

func isResult(body string, closes bool) bool {
	for _, i := range resultsBy[body[0]] {
		if strings.HasPrefix(body, results[i]) {
			return true
		}
	}
	if !closes || len(body) > 400 {
		return false
	}
	for _, e := range endings {
		if strings.Contains(body, e) {
			return true
		}
	}
	return false
}
