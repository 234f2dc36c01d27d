package gru

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// This file is the contract's second form: one JSON object in the place of the
// tags, for servers that hold a reply to a JSON Schema. A reply then cannot be
// malformed but by being cut off. Adapters are trained on the tags, and keep
// them.
//
//	{"think":"…","check":"yes","update":"…","next":"continue"}

// schemas of the call shapes. No field is optional, as a schema with optional
// ones is enforced by fewer servers; `update` is "" where check is no.
var schemas = map[Shape]json.RawMessage{
	ShapeFull: json.RawMessage(`{"type":"object","properties":{"think":{"type":"string"},"check":{"type":"string","enum":["yes","no"]},"update":{"type":"string"},"next":{"type":"string","enum":["continue","end"]}},` +
		`"required":["think","check","update","next"],"additionalProperties":false}`),
	ShapeGate: json.RawMessage(`{"type":"object","properties":{"think":{"type":"string"},"check":{"type":"string","enum":["yes","no"]},"next":{"type":"string","enum":["continue","end"]}},` +
		`"required":["think","check","next"],"additionalProperties":false}`),
	ShapeRewrite: json.RawMessage(`{"type":"object","properties":{"update":{"type":"string"}},"required":["update"],"additionalProperties":false}`),
	ShapeEdit: json.RawMessage(`{"type":"object","properties":{"edits":{"type":"array","items":{"type":"object","properties":{"line":{"type":"integer"},"text":{"type":"string"}},"required":["line","text"],"additionalProperties":false}}},` +
		`"required":["edits"],"additionalProperties":false}`),
}

// Schema is the JSON Schema of a reply of a shape.
func Schema(shape Shape) json.RawMessage { return bytes.Clone(schemas[shape]) }

// reply is the object, as far as a shape has its fields.
type jsonReply struct {
	Think  *string `json:"think"`
	Check  *string `json:"check"`
	Update *string `json:"update"`
	Next   *string `json:"next"`
	Edits  *[]struct {
		Line *int    `json:"line"`
		Text *string `json:"text"`
	} `json:"edits"`
}

// fields are the names that a reply may hold.
var fields = []string{"think", "check", "update", "next", "edits", "line", "text"}

// loose is the first of a reply's fields that its object names twice or spells with
// other capitals: encoding/json takes the last of the two, and any case. content is
// an object that was decoded, so that all names are fields but for their case.
func loose(content string) string {
	dec := json.NewDecoder(strings.NewReader(content))
	var open []map[string]bool // names by object; nil: a list
	name := true               // the next token of an object is a name
	for {
		t, err := dec.Token()
		if err != nil {
			return ""
		}
		switch d, _ := t.(json.Delim); d {
		case '{':
			open, name = append(open, map[string]bool{}), true
			continue
		case '[':
			open = append(open, nil)
			continue
		case '}', ']':
			open = open[:len(open)-1]
			name = true
			continue
		}
		if len(open) == 0 || open[len(open)-1] == nil {
			continue
		}
		if f, ok := t.(string); ok && name {
			in := open[len(open)-1]
			if in[f] || !slices.Contains(fields, f) {
				return strings.ToLower(clip(f))
			}
			in[f], name = true, false
			continue
		}
		name = true
	}
}

// ParseJSON is ParseReply of the JSON form: one object with exactly the fields
// of the shape, each once and spelled as in the schema, white space around it
// aside. Anything else is Malformed.
func ParseJSON(shape Shape, content, reasoning, finish string) (_ Verdict, err error) {
	bad := func(format string, args ...any) (Verdict, error) {
		return Verdict{}, fault.New(fault.Malformed, format, args...)
	}
	if finish == finishLength {
		return bad("the reply was cut off")
	}
	var r jsonReply
	dec := json.NewDecoder(strings.NewReader(content))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return bad("the reply is no JSON object of the schema")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad("text stands behind the JSON object")
	}
	if name := loose(content); name != "" {
		return bad("the field %s is there twice, or is spelled otherwise", name)
	}
	if shape == ShapeEdit {
		if r.Edits != nil {
			switch {
			case r.Think != nil || r.Check != nil || r.Update != nil || r.Next != nil:
				return bad("a field beside edits")
			case len(*r.Edits) > maxEdits:
				return bad("%d edits, at most %d", len(*r.Edits), maxEdits)
			}
			v := Verdict{Think: Restore(strings.TrimSpace(reasoning)), Update: true, Edits: make([]Edit, 0, len(*r.Edits))}
			for _, e := range *r.Edits {
				if e.Line == nil || e.Text == nil { // an empty text takes a line out: it must be said
					return bad("an edit without its line or its text")
				}
				v.Edits = append(v.Edits, Edit{*e.Line, Restore(*e.Text)})
			}
			return v, nil
		}
		shape = ShapeRewrite // the whole memory is understood too
	}
	if r.Edits != nil {
		return bad("the field edits does not belong there")
	}
	for _, f := range []struct {
		name string
		v    *string
		want bool
	}{{"think", r.Think, shape != ShapeRewrite}, {"check", r.Check, shape != ShapeRewrite}, {"update", r.Update, shape != ShapeGate}, {"next", r.Next, shape != ShapeRewrite}} {
		switch {
		case f.want && f.v == nil:
			return bad("the field %s is missing", f.name)
		case !f.want && f.v != nil:
			return bad("the field %s does not belong there", f.name)
		}
	}
	v := Verdict{Think: Restore(strings.TrimSpace(reasoning))}
	if shape == ShapeRewrite {
		if v.Memory = strings.TrimSpace(Restore(*r.Update)); v.Memory == "" {
			return bad("update is empty")
		}
		v.Update = true
		return v, nil
	}
	if t := strings.TrimSpace(*r.Think); t != "" {
		v.Think = Restore(t)
	}
	switch *r.Check {
	case "yes":
		v.Update = true
	case "no":
	default:
		return bad("check is neither yes nor no")
	}
	switch *r.Next {
	case "end":
		v.Exit = true
	case "continue":
	default:
		return bad("next is neither continue nor end")
	}
	if shape == ShapeFull && v.Update {
		if v.Memory = strings.TrimSpace(Restore(*r.Update)); v.Memory == "" {
			return bad("check is yes and update is empty")
		}
	}
	return v, nil
}

// RenderJSON writes a verdict as a reply that ParseJSON reads back.
func (v Verdict) RenderJSON(shape Shape) string {
	think, check, update, next := Neutralise(v.Think), pick(v.Update, "yes", "no"), Neutralise(v.Memory), pick(v.Exit, "end", "continue")
	if shape == ShapeEdit && v.Edits != nil {
		return marshalReply(map[string]any{"edits": v.Edits})
	}
	var r jsonReply
	if shape == ShapeFull || shape == ShapeGate {
		r.Think, r.Check, r.Next = &think, &check, &next
	}
	if shape != ShapeGate {
		r.Update = &update
	}
	out := map[string]any{}
	for name, f := range map[string]*string{"think": r.Think, "check": r.Check, "update": r.Update, "next": r.Next} {
		if f != nil {
			out[name] = *f
		}
	}
	return marshalReply(out)
}

func marshalReply(fields map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		panic("gru: reply: " + err.Error()) // strings and numbers always encode
	}
	return strings.TrimSpace(b.String())
}
