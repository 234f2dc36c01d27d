package signature

import (
	"encoding/json"
	"fmt"
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

// report is the union of the JSON reports that are known.
type report struct {
	FilePath string          // eslint
	Messages []reportMessage // eslint

	TestResults []struct { // jest, vitest
		Name, Message    string
		AssertionResults []struct {
			FullName, Status string
			FailureMessages  []string
		}
	} `json:"testResults"`

	Error *struct{ Code, Summary, Detail string } // npm --json

	// tsc's formatters
	File    string
	Line    json.Number
	Column  json.Number
	Code    any
	Message string
	Value   *struct {
		Path    struct{ Value string }
		Cursor  struct{ Value struct{ Line, Col int } }
		TSError struct {
			Value struct{ ErrorString string }
		}
		Message struct{ Value string }
	}
}

type reportMessage struct {
	RuleID   string `json:"ruleId"`
	Severity int
	Message  string
	Line     int
	Column   int
	Fatal    bool
}

// jsonReport reads one JSON document that begins at line n.
func jsonReport(s string, n int) ([]line, bool) {
	var rs []report
	if strings.HasPrefix(s, "{") {
		var r report
		if json.Unmarshal([]byte(s), &r) != nil {
			return nil, false
		}
		rs = []report{r}
	} else if json.Unmarshal([]byte(s), &rs) != nil {
		return nil, false
	}
	w := reportWriter{doc: s, n: n}
	for i := range rs {
		w.report(&rs[i])
	}
	return w.out, len(w.out) > 0
}

type reportWriter struct {
	doc string
	n   int
	out []line
}

// add appends text that says what the value q of the document says.
func (w *reportWriter) add(q, format string, args ...any) {
	n := w.n
	if b, err := json.Marshal(q); err == nil && q != "" {
		if i := strings.Index(w.doc, string(b)); i >= 0 {
			n += strings.Count(w.doc[:i], "\n")
		}
	}
	w.out = appendText(w.out, fmt.Sprintf(format, args...), int32(n), plain)
}

func (w *reportWriter) report(r *report) {
	switch {
	case r.Messages != nil:
		w.add(r.FilePath, "%s", r.FilePath)
		for _, m := range r.Messages {
			level := "warning"
			if m.Severity == 2 || m.Fatal {
				level = "error"
			}
			w.add(m.Message, "  %d:%d  %s  %s  %s", m.Line, m.Column, level, m.Message, m.RuleID)
		}
	case r.TestResults != nil:
		for _, f := range r.TestResults {
			any := false
			for _, a := range f.AssertionResults {
				if a.Status == "failed" {
					any = true
					msg := strings.Join(a.FailureMessages, "\n")
					w.add(a.FullName, "  ● %s\n\n%s", a.FullName, msg)
				}
			}
			if !any && f.Message != "" {
				w.add(f.Message, "%s", f.Message)
			}
		}
	case r.Error != nil && r.Error.Code != "":
		w.add(r.Error.Code, "npm error code %s", r.Error.Code)
		w.add(r.Error.Summary, "npm error %s", strings.ReplaceAll(r.Error.Summary, "\n", "\nnpm error "))
		w.add(r.Error.Detail, "npm error %s", strings.ReplaceAll(r.Error.Detail, "\n", "\nnpm error "))
	case r.Value != nil && r.Value.TSError.Value.ErrorString != "":
		v := r.Value
		w.add(v.Message.Value, "%s(%d,%d): error %s: %s", v.Path.Value, v.Cursor.Value.Line, v.Cursor.Value.Col, v.TSError.Value.ErrorString, v.Message.Value)
	case r.File != "" && r.Message != "" && r.Code != nil:
		code := word(r.Code)
		if !strings.HasPrefix(code, "TS") {
			code = "TS" + code
		}
		w.add(r.Message, "%s(%s,%s): error %s: %s", r.File, r.Line, r.Column, code, r.Message)
	}
}
