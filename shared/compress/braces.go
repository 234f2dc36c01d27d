package compress

import "strings"

// braces reads languages whose functions stand in braces. It knows their strings
// and comments, and gives up where one does not end as it should.
type braces struct {
	templates bool // `…${…}…`, and /…/ as a literal
	triple    bool // """…"""
	raw       bool // R"x(…)x"
	lifetimes bool // 'a, r#"…"#, comments within comments
	pound     bool // # begins a line for the preprocessor
}

var (
	script   = braces{templates: true}
	javaLike = braces{triple: true}
	cLike    = braces{raw: true, pound: true}
	rust     = braces{lifetimes: true}
)

// noFunction begin statements whose braces hold declarations, or are part of a
// function that is left out as a whole.
var noFunction = map[string]bool{
	"if": true, "for": true, "while": true, "switch": true, "catch": true, "else": true, "do": true, "try": true, "with": true, "using": true, "lock": true, "synchronized": true, "match": true, "loop": true, "unsafe": true,
	"class": true, "interface": true, "struct": true, "enum": true, "union": true, "namespace": true, "impl": true, "trait": true, "mod": true, "module": true, "object": true, "record": true, "extern": true, "declare": true, "package": true, "macro_rules": true, "type": true,
}

func (l braces) bodies(s string) ([]body, bool) {
	var out []body
	var stack []opened
	parens := 0  // open since the last brace
	stmt := 0    // where the statement began
	inside := -1 // depth of the function we are in, or -1
	line := 0    // where the line began
	for i := 0; i < len(s); {
		if s[i] == '\n' {
			line = i + 1
		}
		if l.pound && s[i] == '#' && strings.TrimSpace(s[line:i]) == "" {
			for i < len(s) && s[i] != '\n' { // a line for the preprocessor
				if s[i] == '\\' && i+1 < len(s) {
					i++
				}
				i++
			}
			if strings.TrimSpace(s[stmt:line]) == "" {
				stmt = i
			}
			continue
		}
		next, skipped, ok := l.skip(s, i)
		if !ok {
			return nil, false
		}
		if skipped {
			if s[i] == '/' && strings.TrimSpace(s[stmt:i]) == "" {
				stmt = next // a comment before a statement is no part of its head
			}
			i = next
			continue
		}
		switch s[i] {
		case ';':
			stmt = i + 1
		case '(':
			parens++
		case ')':
			parens--
		case '{':
			part := (parens > 0 || len(stack) > 0 && stack[len(stack)-1].part) && !opensBlock(s[stmt:i])
			if inside < 0 && !part {
				if name, ok := functionHead(s[stmt:i]); ok {
					inside = len(stack)
					out = append(out, body{name: name, from: i + 1, open: " /* ", close: " */ "})
				}
			}
			stack = append(stack, opened{part: part, parens: parens})
			parens = 0
			if !part {
				stmt = i + 1
			}
		case '}':
			if len(stack) == 0 {
				return nil, false
			}
			o := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(stack) == inside {
				inside = -1
				out[len(out)-1].to = i
			}
			parens = o.parens
			if !o.part {
				stmt = i + 1
			}
		}
		i++
	}
	return out, len(stack) == 0
}

// opened is a brace that is open: whether it is part of a statement, as a pattern
// or a type among parameters is, and the parentheses that were open before it.
type opened struct {
	part   bool
	parens int
}

// opensBlock reports that a brace within parentheses begins the body of a function
// that is passed.
func opensBlock(head string) bool {
	head = strings.TrimRight(head, " \t\r\n")
	return strings.HasSuffix(head, ")") || strings.HasSuffix(head, "=>") || strings.HasSuffix(head, "->") || strings.HasSuffix(head, "|")
}

// functionHead reports that the text before a brace declares a function, and its
// name where that is plain.
func functionHead(head string) (string, bool) {
	p := strings.IndexByte(head, '(')
	if p < 0 || !strings.Contains(head[p:], ")") {
		return "", false
	}
	for w := range strings.FieldsFuncSeq(head[:p], func(r rune) bool { return r < 0x80 && !alnum[byte(r)] && r != '_' }) {
		if noFunction[w] {
			return "", false
		}
	}
	before := strings.TrimRight(head[:p], " \t\r\n")
	i := len(before)
	for i > 0 && (alnum[before[i-1]] || before[i-1] == '_') {
		i--
	}
	return before[i:], true
}

// skip passes over the string or comment that begins at i.
func (l braces) skip(s string, i int) (next int, skipped, ok bool) {
	switch c := s[i]; c {
	case '/':
		if strings.HasPrefix(s[i:], "//") {
			if j := strings.IndexByte(s[i:], '\n'); j >= 0 {
				return i + j, true, true
			}
			return len(s), true, true
		}
		if strings.HasPrefix(s[i:], "/*") {
			return l.comment(s, i)
		}
		if l.templates && strings.HasPrefix(s[i:], "/>") {
			return i + 2, true, true // the end of a tag
		}
		if l.templates && literalAllowed(s[:i]) {
			j := pattern(s, i)
			return j, true, j > 0
		}
	case '"':
		if l.triple && strings.HasPrefix(s[i:], `"""`) {
			j := strings.Index(s[i+3:], `"""`)
			return i + 3 + j + 3, true, j >= 0
		}
		if l.raw && i > 0 && s[i-1] == 'R' {
			open := strings.IndexByte(s[i:min(len(s), i+20)], '(')
			if open < 0 {
				return 0, false, false
			}
			end := strings.Index(s[i:], ")"+s[i+1:i+open]+`"`)
			return i + end + open + 1, true, end >= 0
		}
		if l.lifetimes && i > 0 && (s[i-1] == 'r' || s[i-1] == '#') {
			hashes := 0
			for i-1-hashes >= 0 && s[i-1-hashes] == '#' {
				hashes++
			}
			if i-1-hashes >= 0 && s[i-1-hashes] == 'r' {
				close := `"` + strings.Repeat("#", hashes)
				j := strings.Index(s[i+1:], close)
				return i + 1 + j + len(close), true, j >= 0
			}
		}
		j := quoted(s, i, l.lifetimes)
		return j, true, j > 0
	case '\'':
		if l.templates && i > 0 && alnum[s[i-1]] {
			return i + 1, true, true // don't, between tags
		}
		if l.lifetimes { // 'a is a lifetime, 'a' and '\n' are characters
			if i+2 < len(s) && s[i+1] != '\\' && s[i+2] != '\'' && s[i+1] < 0x80 {
				return i + 1, true, true
			}
		}
		if i > 0 && s[i-1] >= '0' && s[i-1] <= '9' && l.raw {
			return i + 1, true, true // 1'000'000
		}
		j := quoted(s, i, false)
		return j, true, j > 0
	case '`':
		if l.templates {
			j := template(s, i, 0)
			return j, true, j > 0
		}
	}
	return 0, false, true
}

func (l braces) comment(s string, i int) (int, bool, bool) {
	depth := 0
	for j := i; j+1 < len(s); j++ {
		switch {
		case s[j] == '/' && s[j+1] == '*' && (depth == 0 || l.lifetimes):
			depth++
			j++
		case s[j] == '*' && s[j+1] == '/':
			if depth--; depth == 0 {
				return j + 2, true, true
			}
			j++
		}
	}
	return 0, false, false
}

// quoted is the place behind the string at i, or -1 where its line ends before
// it does.
func quoted(s string, i int, lines bool) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '\n':
			if !lines {
				return -1
			}
		case s[i]:
			return j + 1
		}
	}
	return -1
}

// template is the place behind the template literal at i, or -1.
func template(s string, i, depth int) int {
	if depth > 20 {
		return -1
	}
	for j := i + 1; j < len(s); {
		switch {
		case s[j] == '\\':
			j += 2
		case s[j] == '`':
			return j + 1
		case strings.HasPrefix(s[j:], "${"):
			open := 1
			for j += 2; j < len(s) && open > 0; {
				switch s[j] {
				case '{':
					open++
				case '}':
					open--
				case '`':
					if j = template(s, j, depth+1); j < 0 {
						return -1
					}
					continue
				case '"', '\'':
					if j = quoted(s, j, false); j < 0 {
						return -1
					}
					continue
				}
				j++
			}
		default:
			j++
		}
	}
	return -1
}

// literalAllowed reports that a slash behind this text begins a pattern, and is
// no division.
func literalAllowed(before string) bool {
	t := strings.TrimRight(before, " \t\r\n")
	if t == "" {
		return true
	}
	c := t[len(t)-1]
	if strings.IndexByte("(,=:[!&|?{};+-*%~^<>", c) >= 0 {
		return c != '<' // </div>
	}
	return strings.HasSuffix(t, "return") || strings.HasSuffix(t, "typeof") || strings.HasSuffix(t, "case")
}

// pattern is the place behind the pattern at i, or -1.
func pattern(s string, i int) int {
	class := false
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '\n':
			return -1
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return j + 1
			}
		}
	}
	return -1
}
