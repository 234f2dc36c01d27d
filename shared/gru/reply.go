package gru

import (
	"fmt"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Shape is which tags a reply must hold.
type Shape uint8

const (
	ShapeFull    Shape = iota // think, check, update, next: one model for all
	ShapeGate                 // think, check, next: a gate model
	ShapeRewrite              // update: a rewrite model of prompt version 1, or a compress retry
	ShapeEdit                 // edits of the memory's lines, or update: a rewrite model
)

// Verdict is what a reply says.
type Verdict struct {
	Think  string // free reasoning; from the tag, else from the server's reasoning field
	Update bool   // the update gate
	Memory string // the candidate memory; "" unless Update, and in ShapeGate
	Exit   bool   // the exit gate
	// Edits change the memory line by line, in ShapeEdit; nil where Memory is the
	// whole of it.
	Edits []Edit
}

// finishLength is the finish reason of a reply that was cut off.
const finishLength = "length"

// ParseReply reads a model's reply by the contract, strictly: exactly one
// check and one next, with values yes or no, continue or end, whatever their
// case; the update is what stands between the first <update> and the last
// </update> before the last <next>, and may be missing or empty exactly when
// check is no. Text outside the tags is passed over and never read for a
// guess. Anything else, a reply that was cut off included, is Malformed and
// says what was wrong. reasoning is the server's own field for the thought,
// finish its finish reason.
func ParseReply(shape Shape, content, reasoning, finish string) (_ Verdict, err error) {
	bad := func(format string, args ...any) (Verdict, error) {
		return Verdict{}, fault.New(fault.Malformed, format, args...)
	}
	if finish == finishLength {
		return bad("the reply was cut off")
	}
	var v Verdict
	v.Think = strings.TrimSpace(reasoning)
	body := content
	if open := strings.Index(content, "<think>"); open >= 0 {
		thought, rest, closed := strings.Cut(content[open+len("<think>"):], "</think>")
		if !closed {
			return bad("<think> is not closed")
		}
		if before := strings.TrimSpace(content[:open]); strings.Contains(before, "<") {
			return bad("a tag stands before <think>")
		}
		v.Think, body = strings.TrimSpace(thought), rest
	} else if thought, rest, cut := strings.Cut(content, "</think>"); cut {
		v.Think, body = strings.TrimSpace(thought), rest // the server kept the opening tag
	}
	v.Think = Restore(v.Think)
	if shape == ShapeEdit {
		if v.Edits, v.Update, err = readEdits(body); err != nil || v.Update {
			return v, err
		}
		shape = ShapeRewrite
	}
	if shape == ShapeRewrite {
		text, _, _, err := between(body, len(body))
		if err != nil {
			return Verdict{}, err
		}
		if text == "" {
			return bad("<update> is missing or empty")
		}
		v.Update, v.Memory = true, Restore(text)
		return v, nil
	}

	check, checkEnd, err := only(content, body, "check")
	if err != nil {
		return Verdict{}, err
	}
	next, _, err := only(content, body, "next")
	if err != nil {
		return Verdict{}, err
	}
	nextAt := strings.LastIndex(body, "<next>")
	if nextAt < checkEnd {
		return bad("<next> stands before <check>")
	}
	switch strings.ToLower(check) {
	case "yes":
		v.Update = true
	case "no":
	default:
		return bad("<check> is neither yes nor no")
	}
	switch strings.ToLower(next) {
	case "end":
		v.Exit = true
	case "continue":
	default:
		return bad("<next> is neither continue nor end")
	}
	text, from, found, err := between(body, nextAt)
	switch {
	case err != nil:
		return Verdict{}, err
	case shape == ShapeGate && found:
		return bad("<update> in the reply of a gate")
	case found && from < checkEnd:
		return bad("<update> stands before <check>")
	case shape == ShapeFull && v.Update && text == "":
		return bad("check is yes and <update> is missing or empty")
	case v.Update:
		v.Memory = Restore(text)
	}
	return v, nil
}

// only is the trimmed value of the one tag of a name, and where it ends in
// body. The tag is counted over the whole content: a thought that holds a
// second one leaves open which is meant.
func only(content, body, name string) (value string, end int, err error) {
	start, stop := "<"+name+">", "</"+name+">"
	if n, m := strings.Count(content, start), strings.Count(content, stop); n != 1 || m != 1 {
		return "", 0, fault.New(fault.Malformed, "%d <%s> and %d </%s>, want one of each", n, name, m, name)
	}
	i, j := strings.Index(body, start), strings.Index(body, stop)
	if i < 0 || j < i {
		return "", 0, fault.New(fault.Malformed, "<%s> is not closed behind its opening", name)
	}
	return strings.TrimSpace(body[i+len(start) : j]), j + len(stop), nil
}

// between is the trimmed text between the first <update> and the last
// </update> that ends before limit.
func between(body string, limit int) (text string, from int, found bool, err error) {
	i := strings.Index(body, "<update>")
	j := strings.LastIndex(body[:limit], "</update>")
	switch {
	case i < 0 && strings.Contains(body, "</update>"):
		return "", 0, false, fault.New(fault.Malformed, "</update> without <update>")
	case i < 0:
		return "", 0, false, nil
	case j < i:
		return "", 0, false, fault.New(fault.Malformed, "<update> is not closed before <next>")
	}
	return strings.TrimSpace(body[i+len("<update>") : j]), i, true, nil
}

// Render writes a verdict as a reply that ParseReply reads back. It is what a
// model is asked to write, and what training examples are made of.
func (v Verdict) Render(shape Shape) string {
	var b strings.Builder
	put := func(tag, text string) { b.WriteString("<" + tag + ">" + text + "</" + tag + ">\n") }
	if v.Think != "" {
		put("think", Neutralise(v.Think))
	}
	if shape == ShapeEdit && v.Edits != nil {
		for _, e := range v.Edits {
			if e.Line == 0 {
				put("add", Neutralise(e.Text))
			} else {
				fmt.Fprintf(&b, "<replace line=\"%d\">%s</replace>\n", e.Line, Neutralise(e.Text))
			}
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	decides := shape == ShapeFull || shape == ShapeGate
	if decides {
		put("check", pick(v.Update, "yes", "no"))
	}
	if shape != ShapeGate {
		put("update", Neutralise(v.Memory))
	}
	if decides {
		put("next", pick(v.Exit, "end", "continue"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func pick(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
