package gate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestRegateApply: a new stream decides everything once more by another model, the
// old one answers until it has caught up, and the log keeps both.
func TestRegateApply(t *testing.T) {
	t.Parallel()
	second := &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		if !section.MatchString(r.User) {
			return says(r, gru.Verdict{Update: true, Memory: "short"}, gru.ShapeRewrite), nil
		}
		f := fact.FindString(section.FindStringSubmatch(r.User)[1])
		return says(r, gru.Verdict{Update: f != "", Memory: "As the second says, the " + f}, gru.ShapeFull), nil
	}}
	w := shadowed(t, second)
	old := w.Streams("shop")[0]
	before := w.Records("shop", old)
	dry := gate.Reopened{}
	w.Post("/memory/regate", map[string]any{"project": "shop", "apply": true, "model": "second", "dry_run": true}, http.StatusOK, &dry)
	if len(dry.Streams) != 1 || dry.Streams[0] != old || dry.Model != "second" || dry.Estimate.Chunks == 0 || dry.Estimate.Questions != 1 {
		t.Errorf("%+v", dry)
	}
	w.Sweep()
	if len(second.asked) != 0 || len(w.Streams("shop")) != 1 {
		t.Fatalf("a dry run made %d calls, and %v", len(second.asked), w.Streams("shop"))
	}
	var got gate.Reopened
	w.Post("/memory/regate", map[string]any{"project": "shop", "apply": true, "model": "second", "query": "limits"}, http.StatusOK, &got)
	if len(got.Streams) != 1 || got.Streams[0] != old+".2" {
		t.Fatalf("%+v", got)
	}
	var qs gate.Questions
	w.Get("/memory/questions?project=shop", &qs)
	if q := qs.Questions[0]; q.Stream != old+".2" || q.Serving != old || q.CaughtUp {
		t.Errorf("while it is filled: %+v", q)
	}
	w.Run(w.Published()...)
	w.Get("/memory/questions?project=shop", &qs)
	if q := qs.Questions[0]; q.Serving != old+".2" || !q.CaughtUp {
		t.Errorf("%+v", q)
	}
	gates := functest.Of[*memory.Gate](w.Records("shop", old+".2"))
	if len(gates) != len(functest.Of[*memory.Gate](before)) || gates[0].Model != "second" || gates[0].T != 1 || len(second.asked) < len(gates) {
		t.Errorf("%d steps", len(gates))
	}
	if n := len(w.Records("shop", old)); n != len(before) {
		t.Errorf("the old stream has %d records, not %d", n, len(before))
	}
	var a struct {
		Results []struct{ Text string }
	}
	w.Get("/memory/query?project=shop&level=L1&query=what+are+the+limits+of+the+queue", &a)
	if len(a.Results) != 1 || !strings.Contains(a.Results[0].Text, "second") && a.Results[0].Text != "short" {
		t.Errorf("%+v", a)
	}
	calls := len(second.asked)
	w.Run(event.New(event.QuestionsChanged, "test", event.Project{Tenant: functest.Tenant, Project: "shop"}))
	w.Sweep()
	if len(second.asked) != calls {
		t.Error("what was decided is decided again")
	}
	w.Learned("shop/c.jsonl", functest.Session("s3", modelDay.AddDate(0, 0, 3), functest.User("We decided to keep the limit of queue z at 70 messages.")))
	gates = functest.Of[*memory.Gate](w.Records("shop", old+".2"))
	if g := gates[len(gates)-1]; g.Model != "second" || !g.Update || len(w.Records("shop", old)) != len(before) {
		t.Errorf("a new part: %+v", g)
	}
	w.Post("/memory/regate", map[string]any{"project": "shop", "apply": true}, http.StatusOK, &got)
	if got.Streams[0] != old+".3" || got.Model != "small" {
		t.Errorf("%+v", got)
	}
	w.Run(w.Published()...)
	w.Hashes()
}

// TestRegateApplyIsRefused: nothing is opened for a model that cannot be used, for
// no question, or beside a request for pending steps.
func TestRegateApplyIsRefused(t *testing.T) {
	t.Parallel()
	w := shadowed(t, &scripted{})
	for _, tc := range []struct {
		body map[string]any
		code int
		want string
	}{
		{map[string]any{"project": "shop", "apply": true, "query": "nothing"}, 404, "no such question"},
		{map[string]any{"apply": true}, 400, "name one"},
		{map[string]any{"project": "shop", "model": "second"}, 400, "with apply"},
		{map[string]any{"project": "shop", "apply": true, "model": "x", "base_url": "http://10.1.1.1"}, 400, "http://127.0.0.1:9"},
	} {
		if rec := w.Call(http.MethodPost, "/memory/regate", tc.body); rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.want) {
			t.Errorf("%v: %d %s", tc.body, rec.Code, rec.Body)
		}
	}
	if n := len(w.Streams("shop")); n != 1 {
		t.Errorf("%d streams", n)
	}
}
