package signature

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// report is the union of the JSON reports that are known.
type report struct {
	FilePath string          // eslint
	Messages []reportMessage // eslint

	TestResults []struct { // jest, vitest
		Name, Message    string
		AssertionResults []struct {
			FullName, Title, Status string
			AncestorTitles          []string
			FailureMessages         []string
			Meta                    *struct{} // vitest alone
		}
	} `json:"testResults"`

	Error *struct{ Code, Summary, Detail string } // npm --json

	Failures []struct { // mocha
		Title, FullTitle string
		Err              struct{ Message, Stack string }
	}

	Diagnostics []struct { // terraform validate -json
		Severity, Summary, Detail string
		Range                     *struct {
			Filename string
			Start    struct{ Line int }
		}
	}

	Filename string // ruff
	Location *struct{ Row, Column int }
	Fix      *struct{ Applicability string }

	Kind      string // gcc
	Locations []struct {
		Caret struct {
			File         string
			Line, Column int
		}
	}

	Severity any // mypy

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
			// Without its full stop, as on the screen.
			text := strings.TrimSuffix(m.Message, ".")
			if strings.HasSuffix(text, " ") {
				text = m.Message
			}
			w.add(m.Message, "  %d:%d  %s  %s  %s", m.Line, m.Column, level, text, m.RuleID)
		}
	case r.TestResults != nil:
		w.tests(r)
	case len(r.Failures) > 0 && r.Failures[0].FullTitle != "":
		w.add("failures", "  %d failing", len(r.Failures))
		for i, f := range r.Failures {
			suite := strings.TrimSpace(strings.TrimSuffix(f.FullTitle, f.Title))
			w.add(f.FullTitle, "\n  %d) %s\n       %s:\n", i+1, cmp.Or(suite, f.Title+":"), f.Title)
			w.add(f.Err.Message, "     %s", strings.ReplaceAll(cmp.Or(f.Err.Stack, f.Err.Message), "\n", "\n     "))
		}
	case r.Diagnostics != nil:
		for _, d := range r.Diagnostics {
			if d.Severity != "error" {
				continue
			}
			place := ""
			if d.Range != nil {
				place = fmt.Sprintf("  on %s line %d:\n\n", d.Range.Filename, d.Range.Start.Line)
			}
			w.add(d.Summary, "Error: %s\n\n%s%s\n\n", d.Summary, place, d.Detail)
		}
	case r.Kind == "error" && len(r.Locations) > 0:
		at := r.Locations[0].Caret
		w.add(r.Message, "%s:%d:%d: error: %s", at.File, at.Line, at.Column, r.Message)
	case r.Filename != "" && r.Location != nil && r.Message != "":
		fix := ""
		if r.Fix != nil && r.Fix.Applicability == "safe" {
			fix = "[*] "
		}
		w.add(r.Message, "%s:%d:%d: %s %s%s", r.Filename, r.Location.Row, r.Location.Column, cmp.Or(word(r.Code), "invalid-syntax:"), fix, r.Message)
	case r.File != "" && r.Message != "" && word(r.Severity) == "error":
		w.add(r.Message, "%s", mypyLine(r.File, r.Line.String(), word(r.Code), r.Message))
	case r.Error != nil && r.Error.Code != "":
		w.add(r.Error.Code, "npm error code %s", r.Error.Code)
		if r.Error.Code == "E404" && strings.HasPrefix(r.Error.Summary, "Not Found") {
			r.Error.Summary = "404 " + r.Error.Summary
		}
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

// tests writes the report of jest or vitest as the runner would on a screen.
func (w *reportWriter) tests(r *report) {
	for _, f := range r.TestResults {
		any := false
		for _, a := range f.AssertionResults {
			if a.Status != "failed" {
				continue
			}
			any = true
			msg := strings.Join(a.FailureMessages, "\n")
			if a.Meta != nil {
				w.add(a.FullName, "Failed Tests\n FAIL  %s > %s\n%s\n", path.Base(f.Name), strings.Join(append(a.AncestorTitles, a.Title), " > "), msg)
				continue
			}
			// jest leaves out the name of a plain error.
			w.add(a.FullName, "  ● %s\n\n    %s\n", strings.Join(append(a.AncestorTitles, cmp.Or(a.Title, a.FullName)), " › "),
				strings.ReplaceAll(strings.TrimPrefix(msg, "Error: "), "\n", "\n    "))
		}
		if any || f.Message == "" {
			continue
		}
		if strings.Contains(f.Message, "●") || f.AssertionResults == nil {
			w.add(f.Message, "%s", f.Message)
		} else {
			w.add(f.Message, "Failed Suites\n FAIL  %s [ %s ]\nError: %s\n", path.Base(f.Name), path.Base(f.Name), strings.TrimPrefix(f.Message, "Error: "))
		}
	}
}

func mypyLine(file, line, code, message string) string {
	if code != "" {
		code = "  [" + code + "]"
	}
	return file + ":" + line + ": error: " + message + code
}
