package signature

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// maxJSON bounds one line that is read as JSON.
const maxJSON = 1 << 20

// expander turns lines of JSON that tools write for programs into the lines
// they write for people, so that both forms have one signature.
type expander struct {
	events []event // go test -json, in the order of the log
}

// event is one piece of output of go test -json.
type event struct {
	pkg, test, output string
	n                 int32
}

// record is the union of the forms that are known; each is told by fields that
// no other has.
type record struct {
	Action, Package, Test, Output string // go test -json
	ImportPath                    string // go build -json

	Reason  string `json:"reason"` // cargo --message-format=json
	Message json.RawMessage

	TFLevel   string `json:"@level"` // terraform -json
	TFMessage string `json:"@message"`
	Diag      *struct {
		Severity, Summary, Detail string
	} `json:"diagnostic"`

	Log         *string `json:"log"` // docker json-file
	Stream      *string `json:"stream"`
	ErrorDetail *struct {
		Message string
	} `json:"errorDetail"` // docker build of the API

	Level    any    `json:"level"` // structured logs
	Severity any    `json:"severity"`
	Msg      string `json:"msg"`
	Err      any    `json:"err"`
	File     string `json:"file"` // mypy -O json
	Line     json.Number
	Code     any
	Error    any `json:"error"`
}

// add appends a line, read as JSON where it is JSON of a known form.
func (x *expander) add(out []line, l line) []line {
	var r record
	if json.Unmarshal([]byte(l.text), &r) != nil {
		if len(l.text) > maxLine {
			l.text = cutRune(l.text, maxLine)
		}
		return append(out, l)
	}
	text := ""
	switch {
	case r.Action != "":
		if r.Output != "" {
			x.events = append(x.events, event{cmp.Or(r.Package, r.ImportPath), r.Test, r.Output, l.n})
		}
		return out
	case r.Reason != "":
		var m struct{ Rendered string }
		if r.Reason != "compiler-message" || json.Unmarshal(r.Message, &m) != nil {
			return out
		}
		text = m.Rendered
	case r.Diag != nil && r.TFLevel != "":
		title := strings.ToUpper(r.Diag.Severity[:min(1, len(r.Diag.Severity))]) + r.Diag.Severity[min(1, len(r.Diag.Severity)):]
		text = title + ": " + r.Diag.Summary + "\n\n" + r.Diag.Detail
	case r.TFLevel != "":
		text = r.TFMessage
	case r.ErrorDetail != nil:
		text = "ERROR: " + r.ErrorDetail.Message
	case r.File != "" && r.Line != "" && len(r.Message) > 0 && r.Severity != nil:
		var m string
		if json.Unmarshal(r.Message, &m) == nil && word(r.Severity) == "error" {
			text = mypyLine(r.File, r.Line.String(), word(r.Code), m)
		}
	case r.Log != nil:
		text = *r.Log
	case r.Stream != nil:
		text = *r.Stream
	default:
		if text = r.sentence(); text == "" {
			if len(l.text) > maxLine {
				l.text = cutRune(l.text, maxLine)
			}
			return append(out, l)
		}
	}
	return appendText(out, text, l.n, l.mark)
}

// sentence is a structured log's line as people would write it.
func (r *record) sentence() string {
	msg := r.Msg
	if msg == "" && len(r.Message) > 0 {
		_ = json.Unmarshal(r.Message, &msg) // not a string: no message of this form
	}
	if msg == "" {
		return ""
	}
	level := word(r.Level)
	if level == "" {
		level = word(r.Severity)
	}
	if n, err := strconv.Atoi(level); err == nil && n >= 10 { // pino: 50 is error
		level = map[bool]string{true: "error", false: "info"}[n >= 50]
	}
	if level != "" {
		msg = strings.ToLower(level) + ": " + msg
	}
	for _, e := range []any{r.Err, r.Error} {
		s, ok := e.(string)
		if m, isMap := e.(map[string]any); isMap {
			s, ok = m["message"].(string)
		}
		if ok && s != "" && !strings.Contains(msg, s) {
			msg += ": " + s
		}
	}
	return msg
}

func word(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.Itoa(int(v))
	}
	return ""
}

func appendText(out []line, text string, n int32, m mark) []line {
	for s := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		l := stripLine(s, int(n))
		if l.mark == plain {
			l.mark = m
		}
		out = append(out, l)
	}
	return out
}

// flush appends the output of go test -json: packages and tests run side by
// side, so that it is put into the order of their names.
func (x *expander) flush(out []line) []line {
	if len(x.events) == 0 {
		return out
	}
	slices.SortStableFunc(x.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
	})
	for i := 0; i < len(x.events); {
		e := x.events[i]
		s := e.output
		for i++; i < len(x.events) && !strings.HasSuffix(s, "\n") && x.events[i].pkg == e.pkg && x.events[i].test == e.test; i++ {
			s += x.events[i].output
		}
		out = appendText(out, s, e.n, plain)
	}
	x.events = nil
	return out
}
