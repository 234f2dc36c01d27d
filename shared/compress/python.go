package compress

import "strings"

// pyLine is a logical line: brackets and triple quotes join what they span.
type pyLine struct {
	from, to int // bytes, without the line feed
	indent   string
	code     string // up to a comment, of its first physical line
	colon    int    // place of a colon outside brackets and strings that ends the header, or -1
	blank    bool   // nothing but white space and comment
}

// pythonLines reads a text to its logical lines; ok is false where a string or a
// bracket stays open.
func pythonLines(s string) (out []pyLine, ok bool) {
	for i := 0; i < len(s); {
		l := pyLine{from: i, colon: -1, blank: true}
		for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		l.indent = s[l.from:i]
		start, depth := i, 0
	scan:
		for i < len(s) {
			switch c := s[i]; {
			case c == '\n':
				if depth == 0 {
					break scan
				}
				i++
			case c == '#':
				for i < len(s) && s[i] != '\n' {
					i++
				}
			case c == '\\' && i+1 < len(s):
				i += 2
				if s[i-1] == '\r' && i < len(s) {
					i++
				}
			case c == '"' || c == '\'':
				l.blank = false
				if i = pythonString(s, i); i < 0 {
					return nil, false
				}
			default:
				switch c {
				case '(', '[', '{':
					depth++
				case ')', ']', '}':
					if depth--; depth < 0 {
						return nil, false
					}
				case ':':
					if depth == 0 && l.colon < 0 {
						l.colon = i
					}
				}
				if c != ' ' && c != '\t' && c != '\r' && c != '\f' {
					l.blank = false
				}
				i++
			}
		}
		if depth != 0 {
			return nil, false
		}
		l.to = i
		l.code = s[start:i]
		out = append(out, l)
		i++
	}
	return out, true
}

// pythonString is the place behind the string that begins at i, or -1.
func pythonString(s string, i int) int {
	q := s[i]
	if strings.HasPrefix(s[i:], strings.Repeat(string(q), 3)) {
		for j := i + 3; j+2 < len(s); j++ {
			switch {
			case s[j] == '\\':
				j++
			case s[j] == q && s[j+1] == q && s[j+2] == q:
				return j + 3
			}
		}
		return -1
	}
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '\n':
			return -1
		case q:
			return j + 1
		}
	}
	return -1
}

func pythonBodies(text string) ([]body, bool) {
	lines, ok := pythonLines(text)
	if !ok {
		return nil, false
	}
	var out []body
	for k := 0; k < len(lines); k++ {
		l := lines[k]
		name, ok := pythonDef(l.code)
		if !ok || l.colon < 0 {
			continue
		}
		rest := text[l.colon+1 : l.to]
		if c := strings.TrimSpace(rest); c != "" && c[0] != '#' {
			continue // the body stands behind the colon
		}
		first, last := -1, -1
		for j := k + 1; j < len(lines); j++ {
			if lines[j].blank {
				continue
			}
			if len(lines[j].indent) <= len(l.indent) || !strings.HasPrefix(lines[j].indent, l.indent) {
				break
			}
			if first < 0 {
				first = j
			}
			last = j
		}
		if first < 0 {
			return nil, false // a header without a body
		}
		out = append(out, body{name: name, from: lines[first].from, to: lines[last].to, open: lines[first].indent + "...  # ", close: ""})
		k = last
	}
	return out, true
}

// pythonDef is the name of the function that a line defines.
func pythonDef(code string) (string, bool) {
	code = strings.TrimSpace(strings.TrimPrefix(code, "async "))
	rest, ok := strings.CutPrefix(code, "def ")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "(")
	if i := strings.IndexByte(name, '['); i >= 0 { // def f[T](x)
		name = name[:i]
	}
	return strings.TrimSpace(name), ok
}
