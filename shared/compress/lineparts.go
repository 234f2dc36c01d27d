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
			for j < len(line) && line[j] == ' ' && n == 0 { // the kernel's: [   12.345678]
				j++
			}
			for j < len(line) && timeByte[line[j]] {
				j++
			}
			if j == i+1 || j >= len(line) || line[j] != ']' && line[j] != ')' {
				return i, stamped
			}
			stamped = stamped || isTime(line[i+1:j]) || n == 0 && isUptime(line[i+1:j])
			i = j + 1
		case c == '#' || '0' <= c && c <= '9':
			j := i + 1
			for j < len(line) && timeByte[line[j]] {
				j++
			}
			if j < len(line) && line[j] > ' ' && line[j] != '|' || c == '#' && j == i+1 {
				return i, stamped
			}
			if c != '#' && !isTime(line[i:j]) && !strings.Contains(line[i:j], ".") && !(j-i == 5 && shape(line[i:], "00-00 00:00:00")) {
				return i, stamped
			}
			stamped = stamped || isTime(line[i:j])
			i = j
		default:
			j := i
			switch {
			case n == 0 && c == '=' && strings.HasPrefix(line[i:], "=="): // Valgrind and sanitizers: ==31==
				if k := digits(line, i+2); k > i+2 && strings.HasPrefix(line[k:], "==") {
					j = k + 2
				}
			case n == 0:
				j = stampEnd(line, i)
			}
			if j == i {
				return i, stamped
			}
			stamped = true
			i = j
		}
		at = i
	}
	return min(at, len(line)), stamped
}

const monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"

// stampEnd is the place behind a time that begins with a letter, as syslog, ctime
// and klog write it: Mar 04 08:07:13, Wed Mar  4 08:07:13 2026, I0304 08:07:13.123456.
// It is i where there is none.
func stampEnd(line string, i int) int {
	s := line[i:]
	if len(s) < 15 {
		return i
	}
	if strings.IndexByte("IWEF", s[0]) >= 0 && shape(s[1:], "0000 00:00:00") {
		return i + 1 // the letter tells the level
	}
	at := 0
	if strings.Contains("MonTueWedThuFriSatSun", s[:3]) {
		at = 3
		for at < len(s) && (s[at] == ' ' || s[at] == ',') {
			at++
		}
	}
	if at+15 > len(s) || !strings.Contains(monthNames, s[at:at+3]) || s[at+3] != ' ' || !shape(s[at+7:], "00:00:00") {
		return i
	}
	end := at + 15
	if end < len(s) && s[end] == '.' {
		end = digits(s, end+1)
	}
	if end < len(s) && s[end] == ' ' && shape(s[end+1:], "0000 ") {
		end += 5
	}
	return i + end
}

// lettered reads a level that is one letter, or what a linter says behind the place
// in a file: E/Tag(12): of Android's old log, 4711 4711 E Tag: of its new one, E0304
// of klog, 88:7  error  of eslint.
func lettered(body string) level {
	letter := byte(' ')
	switch c := body[0]; {
	case len(body) > 3 && body[1] == '/' && strings.Contains(body[:min(len(body), 60)], "("):
		letter = c
	case '0' <= c && c <= '9':
		i := digits(body, 0)
		if i < len(body) && body[i] == ':' {
			j := digits(body, i+1)
			rest := strings.TrimLeft(body[j:], " ")
			switch {
			case j == i+1 || len(rest) == len(body[j:]):
			case strings.HasPrefix(rest, "error "):
				return strong
			case strings.HasPrefix(rest, "warning "):
				return warn
			}
			return info
		}
		j := i
		for j < len(body) && body[j] == ' ' {
			j++
		}
		k := digits(body, j)
		if j > i && k > j && k+3 < len(body) && body[k] == ' ' && body[k+2] == ' ' {
			letter = body[k+1]
		}
	}
	switch letter {
	case 'E', 'F':
		return strong
	case 'W':
		return warn
	}
	return info
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

// isUptime reports seconds with a fraction of three or six digits, as kernels and
// builders print them.
func isUptime(s string) bool {
	i := strings.IndexByte(s, '.')
	return i > 0 && (len(s)-i-1 == 6 || len(s)-i-1 == 3) && strings.Trim(s[i+1:], "0123456789") == "" && strings.Trim(s[:i], " 0123456789") == ""
}

// isAccess reports a line of a web server's access log: 10.0.0.1 - - [04/Mar/2026:…
func isAccess(line string) bool {
	i := strings.IndexByte(line[:min(len(line), 120)], '[')
	return i > 8 && line[i-1] == ' ' && len(line) > i+21 && line[i+3] == '/' && line[i+7] == '/' && line[i+12] == ':' && line[i+15] == ':'
}

// statusNames stand before a status of HTTP; the last two only in the lines of
// Gin and of Rails.
var statusNames = []string{`" `, "status=", "status: ", "status:", "status_code=", "statusCode=", "status code ", "statuscode: ", "HTTP ", "HTTP/1.1 ", "HTTP/1.0 ", "HTTP/2 ", "HTTP/2.0 ", "code=", "Completed ", "| "}

// isStatus reports that the three digits line[i:j] are a status of HTTP.
func isStatus(line string, i, j int) bool {
	if j < len(line) && line[j] != ' ' && line[j] != ',' && line[j] != '"' && line[j] != ';' && line[j] != ')' && line[j] != '\r' {
		return false
	}
	if i > 1 && line[i-1] == ' ' && digits(line, i-2) == i-1 {
		k := strings.LastIndexByte(line[:i-1], ' ')
		if strings.Count(line[k+1:i-1], "/") == 4 && strings.Trim(line[k+1:i-1], "0123456789/-+") == "" {
			return true // HAProxy: behind five times
		}
	}
	for k, n := range statusNames {
		if !strings.HasSuffix(line[:i], n) {
			continue
		}
		switch k {
		case 0:
			return strings.Contains(line[:i], " HTTP/")
		case len(statusNames) - 1:
			return strings.Contains(line[:i], "[GIN]")
		}
		return true
	}
	return false
}

// isFrame reports a frame of a stack, as runtimes print them.
func isFrame(body string) bool {
	switch body[0] {
	case 'a':
		return strings.HasPrefix(body, "at ")
	case 'b':
		return strings.HasPrefix(body, "by 0x")
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
