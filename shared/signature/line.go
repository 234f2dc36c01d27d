package signature

import (
	"strings"
	"unicode/utf8"
)

// line is one line as rules see it: without colours, time stamps and the marks
// of whatever ran the tool.
type line struct {
	text string
	n    int32 // 1-based, in the whole log
	mark mark
}

// mark is what a wrapper said of a line.
type mark uint8

const (
	plain   mark = iota
	isError      // ##[error], ::error::, level E of klog
	isNoise      // ##[warning], ##[debug], ##[command], ##[endgroup]
	isGroup      // the title of a section
)

// stripLine cleans one raw line without its line end.
func stripLine(s string, n int) line {
	s = strings.TrimSuffix(s, "\r")
	l := line{n: int32(n)}
	if len(s) > maxLine {
		s = cutRune(s, maxLine)
	}
	if strings.IndexByte(s, 0x1b) >= 0 || strings.IndexByte(s, '\r') >= 0 || strings.IndexByte(s, '\b') >= 0 {
		if strings.Contains(s, "section_") {
			s, l.mark = gitlabSection(s)
		}
		s = lastFrame(s)
		s = stripANSI(s)
	}
	for range 4 {
		if strings.TrimSpace(s) == "╵" {
			s = "╵"
			break
		}
		t := l.prefix(s)
		if len(t) == len(s) {
			break
		}
		s = t
	}
	l.text = strings.TrimRight(s, " \t")
	if l.text == "╵" { // the end of a frame
		l.text, l.mark = "", isNoise
	}
	return l
}

// cutRune cuts at a rune's border.
func cutRune(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// lastFrame is what stands on the screen after carriage returns: the last frame
// that is not empty.
func lastFrame(s string) string {
	for {
		i := strings.LastIndexByte(s, '\r')
		if i < 0 {
			return s
		}
		if strings.TrimSpace(stripANSI(s[i+1:])) != "" {
			return s[i+1:]
		}
		s = s[:i]
	}
}

// gitlabSection removes `section_start:EPOCH:name[opts]\r\e[0K` and its end,
// and keeps the text between them.
func gitlabSection(s string) (string, mark) {
	m := plain
	var b strings.Builder
	for {
		i := strings.Index(s, "section_")
		if i < 0 {
			break
		}
		rest := s[i+len("section_"):]
		start := strings.HasPrefix(rest, "start:")
		if !start && !strings.HasPrefix(rest, "end:") {
			b.WriteString(s[:i+len("section_")])
			s = rest
			continue
		}
		j := strings.IndexByte(rest, '\r')
		if j < 0 {
			break
		}
		if start {
			m = isGroup
		}
		b.WriteString(s[:i])
		s = rest[j+1:]
	}
	b.WriteString(s)
	return b.String(), m
}

// stripANSI removes CSI, OSC, APC and two-byte escapes, and what a backspace
// takes back.
func stripANSI(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 && strings.IndexByte(s, '\b') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c := s[i]
		if c == '\b' {
			if len(b) > 0 {
				_, n := utf8.DecodeLastRune(b)
				b = b[:len(b)-n]
			}
			i++
			continue
		}
		if c != 0x1b {
			b = append(b, c)
			i++
			continue
		}
		i = escapeEnd(s, i)
	}
	return string(b)
}

// escapeEnd is the end of the escape that begins at s[i].
func escapeEnd(s string, i int) int {
	i++
	if i >= len(s) {
		return i
	}
	switch s[i] {
	case '[': // CSI: parameters, intermediates, one final byte
		for i++; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return i
	case ']', '_', 'P', '^': // OSC, APC, DCS, PM: up to BEL or ST
		for i++; i < len(s); i++ {
			if s[i] == 7 {
				return i + 1
			}
			if s[i] == 0x1b {
				return min(i+2, len(s))
			}
		}
		return i
	case '(', ')', '#', '%':
		return min(i+2, len(s))
	}
	if s[i] < utf8.RuneSelf {
		return i + 1
	}
	return i
}

// prefix removes one prefix, if there is one, and keeps what it says.
func (l *line) prefix(s string) string {
	if s == "" {
		return s
	}
	switch c := s[0]; {
	case c >= '0' && c <= '9':
		return digits(s)
	case c == '#':
		return l.hash(s)
	case c == '[':
		return l.bracket(s)
	case c == ':' && strings.HasPrefix(s, "::"):
		return l.command(s)
	case (c == 'E' || c == 'W' || c == 'I' || c == 'F') && len(s) > 30:
		return l.klog(s)
	case c >= 0xe2:
		return box(s)
	case c >= 'a' && c <= 'z' || c == '@':
		return workspace(compose(s))
	case c == ' ':
		if t := strings.TrimLeft(s, " "); strings.HasPrefix(t, "│") || strings.HasPrefix(t, "╷") || strings.HasPrefix(t, "╵") {
			return box(t)
		}
	}
	return s
}

// box removes the rule at the left of a message in a frame.
func box(s string) string {
	for _, r := range [...]string{"│", "╷", "╵", "┃", "▌", "║"} {
		if t, ok := strings.CutPrefix(s, r); ok {
			return strings.TrimPrefix(t, " ")
		}
	}
	return s
}

// compose removes `service-1  | `, which docker compose writes before a line.
func compose(s string) string {
	i := strings.Index(s[:min(len(s), 64)], " | ")
	if i < 0 {
		return s
	}
	name := strings.TrimRight(s[:i], " ")
	if len(name) < i && !strings.ContainsAny(name, " /:()") && !strings.Contains(s[i+3:], " |") {
		return s[i+3:] // a container's own name, padded to the longest
	}
	j := strings.LastIndexAny(name, "-_")
	if j <= 0 || j == len(name)-1 || strings.ContainsAny(name, " /:()") {
		return s
	}
	for _, c := range name[j+1:] {
		if c < '0' || c > '9' {
			return s
		}
	}
	return s[i+3:]
}

// workspace removes what runners of several packages write before a line:
// `@acme/api: ` of lerna, `web:build: ` of turbo.
func workspace(s string) string {
	name, _, ok := strings.Cut(s[:min(len(s), 96)], ": ")
	if !ok || strings.ContainsAny(name, " \t") {
		return s
	}
	if _, task, ok := strings.Cut(name, ":"); ok {
		switch task {
		case "build", "test", "lint", "typecheck", "type-check", "check", "start", "dev", "deploy", "compile", "bundle":
			return s[len(name)+2:]
		}
		return s
	}
	if name[0] == '@' && strings.Count(name, "/") == 1 {
		return s[len(name)+2:]
	}
	return s
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// shape reports whether s begins with the form f, in which 0 stands for a
// digit and everything else for itself.
func shape(s, f string) bool {
	if len(s) < len(f) {
		return false
	}
	for i := range len(f) {
		if f[i] == '0' && !isDigit(s[i]) || f[i] != '0' && f[i] != s[i] {
			return false
		}
	}
	return true
}

// digits removes a time stamp, or the seconds of a docker build step.
func digits(s string) string {
	if shape(s, "0000-00-00T00:00:00") || shape(s, "0000-00-00 00:00:00") {
		i := fraction(s, 19)
		i = zone(s, i)
		if i < len(s) && (s[i] == ' ' || s[i] == '\t') {
			s = s[i+1:]
			// GitLab: stream number, O or E, and + where the line goes on.
			if shape(s, "00O") || shape(s, "00E") {
				s = strings.TrimPrefix(strings.TrimPrefix(s[3:], "+"), " ")
			}
			return s
		}
		if i == len(s) {
			return ""
		}
		return s
	}
	if shape(s, "00:00:00") {
		i := fraction(s, 8)
		if i == len(s) {
			return ""
		}
		if s[i] == ' ' && !strings.HasPrefix(strings.TrimLeft(s[i:], " "), "|") {
			return strings.TrimPrefix(s[i+1:], " ")
		}
		return s
	}
	// `12.345 text` of a docker build
	i := 0
	for i < len(s) && i < 6 && isDigit(s[i]) {
		i++
	}
	if i < len(s) && s[i] == '.' {
		j := i + 1
		for j < len(s) && isDigit(s[j]) {
			j++
		}
		if j-i >= 2 && j-i <= 4 && j < len(s) && s[j] == ' ' {
			return s[j+1:]
		}
	}
	return s
}

// fraction skips `.123` or `,123` at i.
func fraction(s string, i int) int {
	if i < len(s) && (s[i] == '.' || s[i] == ',') {
		j := i + 1
		for j < len(s) && isDigit(s[j]) {
			j++
		}
		if j > i+1 {
			return j
		}
	}
	return i
}

// zone skips Z, +01:00, +0100 or ` +0000` at i.
func zone(s string, i int) int {
	switch {
	case i < len(s) && s[i] == 'Z':
		return i + 1
	case i < len(s) && (shape(s[i:], "+00:00") || shape(s[i:], "-00:00")):
		return i + 6
	case i < len(s) && (shape(s[i:], "+0000") || shape(s[i:], "-0000")):
		return i + 5
	}
	return i
}

// hash reads `##[error]` of GitHub and Azure, and `#6 12.3 ` of docker build.
func (l *line) hash(s string) string {
	if strings.HasPrefix(s, "##[") {
		i := strings.IndexByte(s, ']')
		if i < 0 {
			return s
		}
		switch s[3:i] {
		case "error":
			l.mark = isError
		case "group", "section":
			l.mark = isGroup
		default:
			l.mark = isNoise
		}
		return s[i+1:]
	}
	if strings.HasPrefix(s, "##vso[") {
		i := strings.IndexByte(s, ']')
		if i < 0 {
			return s
		}
		l.mark = isNoise
		if strings.Contains(s[:i], "type=error") {
			l.mark = isError
		}
		return s[i+1:]
	}
	i := 1
	for i < len(s) && i < 6 && isDigit(s[i]) {
		i++
	}
	if i == 1 || i >= len(s) || s[i] != ' ' {
		return s
	}
	return s[i+1:]
}

// bracket removes `[2026-03-04T09:15:02.881Z] ` of Jenkins and `[command]`.
func (l *line) bracket(s string) string {
	switch {
	case strings.HasPrefix(s, "[command]"):
		l.mark = isNoise
		return s[len("[command]"):]
	case shape(s, "[0000-00-00T00:00:00"), shape(s, "[0000-00-00 00:00:00"):
		if i := strings.IndexByte(s, ']'); i > 0 && i < 40 {
			return strings.TrimPrefix(s[i+1:], " ")
		}
	case shape(s, "[00:00:00]"):
		return strings.TrimPrefix(s[10:], " ")
	}
	return s
}

// command reads `::error file=a.ts,line=1::text`.
func (l *line) command(s string) string {
	i := strings.Index(s[2:], "::")
	if i < 0 {
		return s
	}
	name, _, _ := strings.Cut(s[2:2+i], " ")
	switch name {
	case "error":
		l.mark = isError
	case "group":
		l.mark = isGroup
	case "warning", "notice", "debug", "endgroup", "add-mask", "set-output":
		l.mark = isNoise
	default:
		return s
	}
	return s[2+i+2:]
}

// klog removes `E1130 05:39:28.784659   25283 memcache.go:265] `.
func (l *line) klog(s string) string {
	if !shape(s[1:], "0000 00:00:00.") {
		return s
	}
	i := strings.Index(s[:min(len(s), 160)], "] ")
	if i < 0 {
		return s
	}
	if s[0] == 'E' || s[0] == 'F' {
		l.mark = isError
	}
	return s[i+2:]
}
