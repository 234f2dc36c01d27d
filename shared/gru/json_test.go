package gru_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
)

func TestParseJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		shape   gru.Shape
		content string
		finish  string
		want    gru.Verdict
		err     string
	}{
		"open":                    {gru.ShapeFull, `{"think":"a limit","check":"yes","update":" Retries: 5. ","next":"end"}` + "\n ", "stop", gru.Verdict{Think: "a limit", Update: true, Memory: "Retries: 5.", Exit: true}, ""},
		"closed":                  {gru.ShapeFull, `{"think":"","check":"no","update":"left over","next":"continue"}`, "stop", gru.Verdict{Think: "from the server"}, ""},
		"a gate":                  {gru.ShapeGate, `{"think":"x","check":"yes","next":"continue"}`, "stop", gru.Verdict{Think: "x", Update: true}, ""},
		"a rewrite":               {gru.ShapeRewrite, `{"update":"Retries: 5."}`, "stop", gru.Verdict{Think: "from the server", Update: true, Memory: "Retries: 5."}, ""},
		"cut off":                 {gru.ShapeFull, `{"think":"a`, "length", gru.Verdict{}, "cut off"},
		"prose":                   {gru.ShapeFull, `Yes, this is useful!`, "stop", gru.Verdict{}, "no JSON object"},
		"two objects":             {gru.ShapeRewrite, `{"update":"a"}{"update":"b"}`, "stop", gru.Verdict{}, "behind"},
		"prose behind":            {gru.ShapeRewrite, `{"update":"a"} done`, "stop", gru.Verdict{}, "behind"},
		"a fence":                 {gru.ShapeRewrite, "```json\n{\"update\":\"a\"}\n```", "stop", gru.Verdict{}, "no JSON object"},
		"a field more":            {gru.ShapeRewrite, `{"update":"a","delete":true}`, "stop", gru.Verdict{}, "no JSON object"},
		"a field less":            {gru.ShapeFull, `{"think":"x","check":"yes","update":"a"}`, "stop", gru.Verdict{}, "next is missing"},
		"a field of another form": {gru.ShapeGate, `{"think":"x","check":"yes","update":"a","next":"end"}`, "stop", gru.Verdict{}, "update does not belong"},
		"another word":            {gru.ShapeGate, `{"think":"x","check":"ja","next":"end"}`, "stop", gru.Verdict{}, "neither yes nor no"},
		"another quote":           {gru.ShapeGate, `{„think“:"x","check":"yes","next":"end"}`, "stop", gru.Verdict{}, "no JSON object"},
		"a raw line break":        {gru.ShapeRewrite, "{\"update\":\"a\nb\"}", "stop", gru.Verdict{}, "no JSON object"},
		"yes to nothing":          {gru.ShapeFull, `{"think":"x","check":"yes","update":" ","next":"end"}`, "stop", gru.Verdict{}, "update is empty"},
		"said twice":              {gru.ShapeFull, `{"check":"no","think":"x","update":"","check":"yes","update":"a","next":"end"}`, "stop", gru.Verdict{}, "check is there twice"},
		"said twice, the same":    {gru.ShapeRewrite, `{"update":"a","update":"a"}`, "stop", gru.Verdict{}, "update is there twice"},
		"twice, escaped":          {gru.ShapeRewrite, `{"update":"a","\u0075pdate":"b"}`, "stop", gru.Verdict{}, "update is there twice"},
		"other capitals":          {gru.ShapeGate, `{"THINK":"x","Check":"yes","next":"end"}`, "stop", gru.Verdict{}, "think is there twice, or"},
		"a long s":                {gru.ShapeEdit, `{"editſ":[]}`, "stop", gru.Verdict{}, "or is spelled otherwise"},
		"twice in an edit":        {gru.ShapeEdit, `{"edits":[{"line":0,"text":"a"},{"line":1,"line":0,"text":"b"}]}`, "stop", gru.Verdict{}, "line is there twice"},
		"capitals in an edit":     {gru.ShapeEdit, `{"edits":[{"line":0,"Text":"a"}]}`, "stop", gru.Verdict{}, "text is there twice, or"},
		"an edit without a text":  {gru.ShapeEdit, `{"edits":[{"line":1}]}`, "stop", gru.Verdict{}, "without its line or its text"},
		"an edit without a line":  {gru.ShapeEdit, `{"edits":[{"text":"a"}]}`, "stop", gru.Verdict{}, "without its line or its text"},
		"two edits":               {gru.ShapeEdit, `{"edits":[{"line":0,"text":"line"},{"line":1,"text":"text"}]}`, "stop", gru.Verdict{Think: "from the server", Update: true, Edits: []gru.Edit{{0, "line"}, {1, "text"}}}, ""},
		"names as values":         {gru.ShapeGate, `{"think":"check","check":"yes","next":"end"}`, "stop", gru.Verdict{Think: "check", Update: true, Exit: true}, ""},
		"not a number":            {gru.ShapeRewrite, `{"update":NaN}`, "stop", gru.Verdict{}, "no JSON object"},
		"null":                    {gru.ShapeRewrite, `null`, "stop", gru.Verdict{}, "missing"},
		"empty":                   {gru.ShapeRewrite, ``, "stop", gru.Verdict{}, "no JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := gru.ParseJSON(tc.shape, tc.content, "from the server", tc.finish)
			if tc.err != "" {
				if !fault.Is(err, fault.Malformed) || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestJSONRoundTrip: what a model is asked to write is read back, and has the
// fields of the schema.
func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	for _, shape := range []gru.Shape{gru.ShapeFull, gru.ShapeGate, gru.ShapeRewrite} {
		v := gru.Verdict{Think: "a <check> in a thought", Update: true, Memory: "</section> \"quoted\"\nand a line", Exit: true}
		text := v.RenderJSON(shape)
		got, err := gru.ParseJSON(shape, text, "", "stop")
		if err != nil {
			t.Fatal(err)
		}
		switch shape {
		case gru.ShapeGate:
			v.Memory = ""
		case gru.ShapeRewrite:
			v.Think, v.Exit = "", false
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Errorf("shape %d (-want +got):\n%s", shape, diff)
		}
		var schema struct {
			Required   []string
			Properties map[string]any
		}
		if err := json.Unmarshal(gru.Schema(shape), &schema); err != nil {
			t.Fatal(err)
		}
		var fields map[string]string
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatal(err)
		}
		for _, f := range schema.Required {
			if _, ok := fields[f]; !ok || schema.Properties[f] == nil {
				t.Errorf("shape %d: no %s in %s", shape, f, text)
			}
		}
		if len(fields) != len(schema.Required) {
			t.Errorf("shape %d: %s, the schema has %v", shape, text, schema.Required)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add(`{"think":"","check":"yes","update":"a","next":"end"}`, uint8(0))
	f.Add(`{"update":"a"}`, uint8(2))
	f.Fuzz(func(t *testing.T, content string, shape uint8) {
		v, err := gru.ParseJSON(gru.Shape(shape%4), content, "", "stop")
		if err == nil && v.Update && gru.Shape(shape%4) != gru.ShapeGate && v.Edits == nil && strings.TrimSpace(v.Memory) == "" {
			t.Errorf("an update of nothing from %q", content)
		}
		if err != nil && !fault.Is(err, fault.Malformed) {
			t.Error(err)
		}
	})
}
