package signature

import (
	"html"
	"strings"
)

// document reads a log that is one report for programs: JUnit XML, and the JSON
// of eslint, jest, npm and of tsc's formatters. Its lines are those that the
// tool prints for people, each with the line of the report it stands in.
func document(s string) ([]line, bool) {
	head := strings.TrimLeft(s[:min(len(s), 4096)], " \t\r\n")
	switch {
	case strings.HasPrefix(head, "<"):
		if i := strings.Index(s[:min(len(s), 8192)], "<testsuite"); i >= 0 {
			return junit(s), true
		}
	case strings.HasPrefix(head, "[") || strings.HasPrefix(head, "{"):
		if len(s) <= maxJSON {
			return jsonReport(strings.TrimSpace(s), strings.Count(s[:len(s)-len(strings.TrimLeft(s, " \t\r\n"))], "\n")+1)
		}
	}
	return nil, false
}

var attr = lazy(`([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')`)

// junit scans a report for failed test cases. It needs no well-formed document:
// a report that was cut still has its first failures.
func junit(s string) []line {
	var out []line
	n := 1
	class := ""
	at := 0
	for {
		i := strings.IndexByte(s[at:], '<')
		if i < 0 {
			break
		}
		n += strings.Count(s[at:at+i], "\n")
		at += i
		name := tagName(s[at+1:])
		if strings.HasPrefix(s[at:], "<![CDATA[") {
			j := strings.Index(s[at:], "]]>")
			if j < 0 {
				break
			}
			n += strings.Count(s[at:at+j], "\n")
			at += j
			continue
		}
		end := tagEnd(s, at)
		if end < 0 {
			break
		}
		tag := s[at:end]
		switch name {
		case "testcase":
			a := attrs(tag)
			class = strings.Trim(a["classname"]+"."+a["name"], ".")
		case "failure", "error":
			body, next := "", end
			if !strings.HasSuffix(tag, "/>") {
				if j := strings.Index(s[end:], "</"+name); j >= 0 {
					body, next = s[end:end+j], end+j
				} else {
					body, next = s[end:], len(s)
				}
			}
			a := attrs(tag)
			out = append(out, line{text: "JUnit " + name + ": " + class + ": " + strings.TrimSpace(a["type"]+" "+firstLine(a["message"])), n: int32(n)})
			out = append(out, bodyLines(body, a["message"], n+strings.Count(tag, "\n"))...)
			n += strings.Count(s[at:next], "\n")
			at = next
			continue
		}
		n += strings.Count(tag, "\n")
		at = end
	}
	return out
}

func tagName(s string) string {
	i := 0
	for i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z') {
		i++
	}
	return s[:i]
}

// tagEnd is behind the `>` of the tag at i; one in quotes does not count.
func tagEnd(s string, i int) int {
	var quote byte
	for j := i; j < len(s); j++ {
		switch c := s[j]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return j + 1
		}
	}
	return -1
}

func attrs(tag string) map[string]string {
	out := map[string]string{}
	for _, m := range attr().FindAllStringSubmatch(tag, 64) {
		if _, twice := out[m[1]]; !twice {
			out[m[1]] = html.UnescapeString(m[2] + m[3])
		}
	}
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// bodyLines are a failure's text, or its message where it has no text.
func bodyLines(body, message string, n int) []line {
	body = strings.NewReplacer("<![CDATA[", "", "]]>", "").Replace(body)
	if strings.TrimSpace(body) == "" {
		body = message
	} else {
		body = html.UnescapeString(body)
	}
	var out []line
	for l := range strings.SplitSeq(body, "\n") {
		out = append(out, stripLine(l, n))
		n++
	}
	return out
}
