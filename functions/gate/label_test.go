package gate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// labeller finds every fact, whatever the memory holds, and fails where it is told.
func labeller(t *testing.T, failAt int) *scripted {
	return &scripted{answer: func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
		if !strings.Contains(r.User, "<memory>\nnone\n") {
			t.Errorf("the labelling model sees a memory: %.200s", r.User)
		}
		if n == failAt {
			return llm.ChatReply{}, fault.New(fault.Unavailable, "the connection broke off")
		}
		return says(r, gru.Verdict{Update: fact.MatchString(section.FindStringSubmatch(r.User)[1])}, gru.ShapeGate), nil
	}}
}

func gatesOf(w *functest.World) []*memory.Gate {
	return functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0]))
}

func labelsOf(t *testing.T, w *functest.World) (out []*memory.Label) {
	t.Helper()
	if err := labels.Each(t.Context(), w.Log, "shop", func(_ memory.SHA, l *memory.Label) error { out = append(out, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLabel: a model's labels are of the chunk alone, cost is told before, what was
// answered is not asked again, and neither the memory nor a comparison with the same
// model as a shadow sees them.
func TestLabel(t *testing.T) {
	t.Parallel()
	second := labeller(t, 0)
	w := shadowed(t, second)
	before := w.Hashes()
	gates := gatesOf(w)
	want := 0
	for _, g := range gates {
		if g.Update {
			want++
		}
	}
	ask := gate.LabelRequest{Project: "shop", Model: "second", DryRun: true}
	plan, err := w.Gate.Label(t.Context(), ask, nil)
	if err != nil || plan.ToAsk != len(gates) || plan.Standing != 0 || plan.Asked != 0 || len(second.asked) != 0 {
		t.Fatalf("%+v %v, %d calls", plan, err, len(second.asked))
	}
	ask.DryRun = false
	var steps []int
	got, err := w.Gate.Label(t.Context(), ask, func(done, of int) { steps = append(steps, done, of) })
	if err != nil || got.Asked != len(gates) || got.Evidence != want || got.Unreadable != 0 || got.Gone != 0 {
		t.Fatalf("%+v %v, want %d of %d", got, err, want, len(gates))
	}
	if n := len(steps); n < 2 || steps[n-2] != len(gates) || steps[n-1] != len(gates) {
		t.Errorf("progress %v", steps)
	}
	e := plan.Estimate
	if e.Low.Calls > got.Asked || e.High.Calls < got.Asked || e.Low.PromptTokens > got.Took.PromptTokens || e.High.PromptTokens < got.Took.PromptTokens ||
		e.Low.USD > got.Took.USD || e.High.USD < got.Took.USD || e.Low.USD <= 0 {
		t.Errorf("estimate %+v, took %+v", e, got.Took)
	}
	if got.Took.PromptTokens != int64(second.prompt) || got.Took.CompletionTokens != int64(second.completion) {
		t.Errorf("%+v; the server counts %d and %d", got.Took, second.prompt, second.completion)
	}
	byChunk := map[memory.SHA]*memory.Gate{}
	for _, g := range gates {
		byChunk[g.Chunk] = g
	}
	for _, l := range labelsOf(t, w) {
		g := byChunk[l.Chunk]
		if g == nil || l.Kind != memory.LabelModel || l.Basis != memory.BasisChunk || l.T != 0 || l.MemoryBeforeSHA != "" || l.Model != "second" || l.PromptVersion == "" || l.Evidence != g.Update || l.Start != g.Start || l.End != g.End {
			t.Errorf("%+v", l)
		}
	}
	if after := w.Hashes(); after.Log != before.Log || after.Index != before.Index {
		t.Errorf("the memory changed: %+v %+v", before, after)
	}
	calls := len(second.asked)
	again, err := w.Gate.Label(t.Context(), ask, func(int, int) {})
	if err != nil || again.Asked != 0 || again.Standing != len(gates) || len(second.asked) != calls {
		t.Errorf("%+v %v, %d calls more", again, err, len(second.asked)-calls)
	}
	// A shadow of the same model is asked all the same: it sees the memory.
	second.answer = func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		return says(r, gru.Verdict{}, gru.ShapeGate), nil
	}
	sh, err := w.Gate.Shadow(t.Context(), gate.ShadowRequest{Project: "shop", Model: "second"}, func(int, int) {})
	if err != nil || sh.Streams[0].Asked != len(gates) || sh.Streams[0].Table.Both != 0 {
		t.Errorf("%+v %v", sh, err)
	}
	if again, err := w.Gate.Label(t.Context(), ask, func(int, int) {}); err != nil || again.ToAsk != 0 {
		t.Errorf("a shadow's labels are in the way: %+v %v", again, err)
	}
	// The label of the chunk alone is the one that counts.
	set, err := labels.Read(t.Context(), w.Log, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gates {
		if v, ok := set.Best(w.Streams("shop")[0], g.Chunk, g.Start, g.End); !ok || v.Memory || v.Evidence != g.Update {
			t.Errorf("step %d: %+v", g.T, v)
		}
	}
}

// TestLabelIsResumed: answers that came before a call failed are kept, and what a
// person labelled is asked about first.
func TestLabelIsResumed(t *testing.T) {
	t.Parallel()
	second := labeller(t, 3)
	w := shadowed(t, second)
	gates := gatesOf(w)
	last := gates[len(gates)-1]
	row := labels.Row{Question: "limits", Chunk: last.Chunk, Start: last.Start, End: last.End}
	if out, err := w.Gate.Import(t.Context(), gate.ImportRequest{Project: "shop", By: "ada", Labels: []labels.Row{row}}); err != nil || out.Written != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	ask := gate.LabelRequest{Project: "shop", Model: "second", Reviewed: true}
	got, err := w.Gate.Label(t.Context(), ask, func(int, int) {})
	if err != nil || got.Pieces != 1 || got.Asked != 1 || got.Evidence != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	ask.Reviewed = false
	if _, err := w.Gate.Label(t.Context(), ask, func(int, int) {}); !errors.Is(err, fault.Unavailable.Sentinel()) {
		t.Fatalf("%v", err)
	}
	got, err = w.Gate.Label(t.Context(), ask, func(int, int) {})
	if err != nil || got.Asked+got.Standing != len(gates) || len(second.asked) != len(gates)+1 {
		t.Errorf("%d calls for %d pieces: %+v %v", len(second.asked), len(gates), got, err)
	}
	ask.Limit = 2
	if got, err := w.Gate.Label(t.Context(), ask, nil); err != nil || got.Pieces != 2 || got.ToAsk != 0 {
		t.Errorf("%+v %v", got, err)
	}
	for name, bad := range map[string]gate.LabelRequest{
		"an endpoint that is not configured": {Project: "shop", Model: "third", BaseURL: "http://10.0.0.1"},
		"another question":                   {Project: "shop", Model: "second", Query: "colours"},
	} {
		if _, err := w.Gate.Label(t.Context(), bad, nil); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLabelRoutes: what is missing or wrong in a request is said, and nothing is
// written for it.
func TestLabelRoutes(t *testing.T) {
	t.Parallel()
	w := shadowed(t, labeller(t, 0))
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
	}{
		{http.MethodPost, "/memory/labels/run", map[string]any{"project": "shop"}, 400},
		{http.MethodPost, "/memory/labels/run", map[string]any{"project": "shop", "model": "second", "limit": -1}, 400},
		{http.MethodPost, "/memory/labels/run", map[string]any{"project": "Shop!", "model": "second"}, 400},
		{http.MethodPost, "/memory/labels/run", map[string]any{"project": "shop", "model": "second", "querry": "limits"}, 400},
		{http.MethodPost, "/memory/labels", map[string]any{"project": "../etc"}, 400},
		{http.MethodPost, "/memory/labels", map[string]any{"project": "shop", "labels": make([]labels.Row, gate.MaxRows+1)}, 400},
		{http.MethodPost, "/memory/labels/rules", map[string]any{"project": "shop", "rules": "rules: 7"}, 400},
		{http.MethodPost, "/memory/labels/rules", map[string]any{"project": "shop", "rules": "rules: [{id: a, question: colours, any: [red], evidence: yes}]"}, 400},
		{http.MethodPost, "/memory/labels/review", map[string]any{"project": "shop"}, 400},
		{http.MethodPost, "/memory/labels/review", map[string]any{"project": "shop", "stream": w.Streams("shop")[0], "admit": 9, "i": 0, "chunk": memory.SumString("x"), "evidence": true, "by": "ada"}, 404},
		{http.MethodPost, "/memory/labels/review", map[string]any{"project": "shop", "stream": "colours@01234567", "admit": 1, "i": 0, "chunk": memory.SumString("x"), "evidence": true, "by": "ada"}, 404},
		{http.MethodPost, "/memory/labels/review", map[string]any{"project": "shop", "stream": w.Streams("shop")[0], "admit": 1, "i": 0, "chunk": memory.SumString("x"), "evidence": true, "by": "ada"}, 404},
		{http.MethodPost, "/memory/labels/review", map[string]any{"project": "shop", "stream": w.Streams("shop")[0], "admit": 1, "i": 0, "chunk": memory.SumString("x"), "evidence": true}, 400},
		{http.MethodGet, "/memory/labels", nil, 400},
		{http.MethodGet, "/memory/labels/review?project=shop&sample=0", nil, 400},
		{http.MethodGet, "/memory/labels/review?project=shop&seed=x", nil, 400},
		{http.MethodGet, "/memory/labels/review?project=shop&query=colours", nil, 404},
		{http.MethodGet, "/memory/labels/agreement?project=shop&min_kappa=2", nil, 400},
		{http.MethodGet, "/memory/labels/agreement?project=shop&min_pairs=-2", nil, 400},
	} {
		if rec := w.Call(tc.method, tc.path, tc.body); rec.Code != tc.status {
			t.Errorf("%s %s %v: %d, want %d: %s", tc.method, tc.path, tc.body, rec.Code, tc.status, rec.Body)
		}
	}
	if l := labelsOf(t, w); len(l) != 0 {
		t.Errorf("%d labels", len(l))
	}
}

// TestImport: a row about what the project does not have is named by line and field
// and costs no other; the same file again writes nothing; what is exported is imported
// by a Mneme that holds the same chunks, and is exported there the same.
func TestImport(t *testing.T) {
	t.Parallel()
	w := shadowed(t, labeller(t, 0))
	g := gatesOf(w)
	half := .5
	rows := []labels.Row{
		{Question: "limits", Chunk: g[0].Chunk, Evidence: true},
		{Question: "limits", Chunk: memory.SumString("elsewhere"), Evidence: true},
		{Question: "colours", Chunk: g[0].Chunk, Evidence: true},
		{Stream: "limits@00000000", Chunk: g[0].Chunk, Evidence: true},
		{Question: "limits", Chunk: g[1].Chunk, Start: 0, End: 1 << 20, Evidence: true},
		{Question: "limits", Chunk: g[1].Chunk, Start: g[1].Start, End: g[1].End, Confidence: &half, At: modelDay},
		{Question: "limits", Chunk: g[1].Chunk, Model: "big", Evidence: true},
		{Question: "limits", Chunk: g[1].Chunk, Kind: memory.LabelModel, Model: "big", Evidence: true},
		{Question: "limits", Chunk: g[2].Chunk, Kind: memory.LabelModel, Model: "big", Basis: memory.BasisMemory, Evidence: true, Exit: true},
		{Stream: w.Streams("shop")[0], Chunk: g[2].Chunk, Kind: memory.LabelRule, Rule: "r1"},
		{Question: "limits", Chunk: g[0].Chunk, Evidence: true}, // the first once more
	}
	var got gate.Imported
	w.Post("/memory/labels", gate.ImportRequest{Project: "shop", By: "ada", Labels: rows}, http.StatusOK, &got)
	var bad []string
	for _, e := range got.Errors {
		bad = append(bad, fmt.Sprint(e.Line, " ", e.Field))
	}
	if diff := cmp.Diff([]string{"2 chunk", "3 question", "4 stream", "5 end", "7 kind"}, bad); diff != "" {
		t.Error(diff)
	}
	if got.Rows != len(rows) || got.Written != 5 || got.Standing != 1 || got.Bad != 5 {
		t.Errorf("%+v", got)
	}
	again, err := w.Gate.Import(t.Context(), gate.ImportRequest{Project: "shop", By: "ada", Labels: rows})
	if err != nil || again.Written != 0 || again.Standing != 6 || again.Bad != 5 || len(labelsOf(t, w)) != 5 {
		t.Errorf("%+v %v", again, err)
	}
	// Another person, and another mind, are new; so is the first mind after it.
	for _, tc := range []struct {
		by       string
		evidence bool
		written  int
	}{{"grace", true, 1}, {"ada", false, 1}, {"ada", false, 0}, {"ada", true, 1}, {"grace", true, 0}} {
		got, err := w.Gate.Import(t.Context(), gate.ImportRequest{Project: "shop", By: tc.by, Labels: []labels.Row{{Question: "limits", Chunk: g[0].Chunk, Evidence: tc.evidence}}})
		if err != nil || got.Written != tc.written {
			t.Errorf("%+v: %+v %v", tc, got, err)
		}
	}
	out, err := w.Gate.Labels(t.Context(), "shop", "", "", "")
	if err != nil || len(out) != 8 {
		t.Fatalf("%d rows, %v", len(out), err)
	}
	other := shadowed(t, labeller(t, 0))
	for _, format := range []string{labels.JSONL, labels.CSV} {
		var file bytes.Buffer
		if err := labels.WriteRows(&file, format, slices.Values(out)); err != nil {
			t.Fatal(err)
		}
		var rows []labels.Row
		for r, err := range labels.ReadRows(&file, format, "") {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
		got, err := other.Gate.Import(t.Context(), gate.ImportRequest{Project: "shop", Labels: rows})
		if err != nil || got.Bad != 0 || got.Written+got.Standing != len(out) || format == labels.CSV && got.Written != 0 {
			t.Fatalf("%s: %+v %v", format, got, err)
		}
		there, err := other.Gate.Labels(t.Context(), "shop", "", "", "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(out, there); diff != "" {
			t.Fatalf("%s: %s", format, diff)
		}
	}
	for _, tc := range []struct {
		query, kind, model string
		n                  int
	}{{"limits", "", "", 8}, {"colours", "", "", 0}, {"", memory.LabelHuman, "", 5}, {"", "", "big", 2}, {w.Streams("shop")[0], memory.LabelRule, "", 1}} {
		if rows, err := w.Gate.Labels(t.Context(), "shop", tc.query, tc.kind, tc.model); err != nil || len(rows) != tc.n {
			t.Errorf("%+v: %d %v", tc, len(rows), err)
		}
	}
}

// TestLabelsHoldNoSecret: a name that redaction would change is refused.
func TestLabelsHoldNoSecret(t *testing.T) {
	t.Parallel()
	w := shadowed(t, labeller(t, 0))
	f, err := gate.New(gate.Config{
		Tenant: functest.Tenant, Log: w.Log, Catalog: w.Catalog, Policy: closed{}, Count: functest.Coarse,
		Redact: func(s string) string { return strings.ReplaceAll(s, "sk-secret", "[key]") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	g := gatesOf(w)
	got, err := f.Import(t.Context(), gate.ImportRequest{Project: "shop", By: "ada", Labels: []labels.Row{
		{Question: "limits", Chunk: g[0].Chunk, By: "sk-secret-1"}, {Question: "limits", Chunk: g[0].Chunk, Kind: memory.LabelRule, Rule: "sk-secret"}, {Question: "limits", Chunk: g[0].Chunk},
	}})
	if err != nil || got.Written != 1 || got.Bad != 2 || got.Errors[0].Field != "by" || got.Errors[1].Field != "rule" {
		t.Errorf("%+v %v", got, err)
	}
	yes := true
	if _, err := f.SaveReview(t.Context(), gate.ReviewLabel{Project: "shop", Stream: w.Streams("shop")[0], Admit: g[0].Admit, I: g[0].I, Chunk: g[0].Chunk, Evidence: &yes, By: "sk-secret"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
}

// TestReview: pieces come open and closed in turn, in an order that the seed decides,
// those with a person's label not again; each label is saved when it is given.
func TestReview(t *testing.T) {
	t.Parallel()
	w := shadowed(t, labeller(t, 0))
	gates := gatesOf(w)
	list := func(more string) (out gate.Review) {
		t.Helper()
		w.Get("/memory/labels/review?project=shop"+more, &out)
		return out
	}
	first := list("")
	if len(first.Items) != len(gates) || first.Left != len(gates) || first.Reviewed != 0 {
		t.Fatalf("%d items of %d: %+v", len(first.Items), len(gates), first)
	}
	if diff := cmp.Diff(first, list("")); diff != "" {
		t.Errorf("another order: %s", diff)
	}
	order := func(r gate.Review) (s []memory.SHA) {
		for _, i := range r.Items {
			s = append(s, i.Chunk)
		}
		return s
	}
	if slices.Equal(order(first), order(list("&seed=2"))) {
		t.Error("the seed changes nothing")
	}
	for i, it := range first.Items[:4] {
		if it.Open != (i%2 == 0) || it.Text == "" || it.Question != functest.Wording("limits") {
			t.Errorf("item %d: %+v", i, it)
		}
	}
	for n, it := range first.Items[:3] {
		var saved gate.ReviewSaved
		yes := n != 1
		w.Post("/memory/labels/review", gate.ReviewLabel{
			Project: "shop", Stream: it.Stream, Admit: it.Admit, I: it.I, Chunk: it.Chunk, Start: it.Start, End: it.End, Evidence: &yes, By: "ada",
		}, http.StatusOK, &saved)
		if l := labelsOf(t, w); len(l) != n+1 || saved.At.IsZero() {
			t.Fatalf("%d labels after %d", len(l), n+1)
		}
	}
	for _, l := range labelsOf(t, w) {
		if l.Kind != memory.LabelHuman || l.By != "ada" || l.ReasonCode != labels.Reviewed || l.QueryID != "limits" || l.Admit == 0 {
			t.Errorf("%+v", l)
		}
	}
	rest := list("&sample=2")
	if rest.Reviewed != 3 || rest.Left != len(gates)-3 || len(rest.Items) != 2 || slices.Contains(order(first)[:3], rest.Items[0].Chunk) {
		t.Errorf("%+v", rest)
	}
	// Nobody differs until a model labels; the person's corrections are no dispute.
	if d := list("&disagree=true"); len(d.Items) != 0 {
		t.Errorf("%+v", d)
	}
	open := rest.Items[0]
	row := labels.Row{Stream: open.Stream, Chunk: open.Chunk, Start: open.Start, End: open.End, Kind: memory.LabelModel, Model: "big", Evidence: !open.Open}
	if _, err := w.Gate.Import(t.Context(), gate.ImportRequest{Project: "shop", Labels: []labels.Row{row}}); err != nil {
		t.Fatal(err)
	}
	if d := list("&disagree=true"); len(d.Items) != 1 || d.Items[0].Chunk != open.Chunk || len(d.Items[0].Said) != 1 || d.Items[0].Said[0] != (gate.Said{Kind: memory.LabelModel, Who: "big", Evidence: !open.Open}) {
		t.Errorf("%+v", d)
	}
}

// TestLabelRules: what a rule matches is labelled once, and what was erased by nobody
// else's rule stays as it is.
func TestLabelRules(t *testing.T) {
	t.Parallel()
	w := shadowed(t, labeller(t, 0))
	gates := gatesOf(w)
	want := 0
	for _, g := range gates {
		if g.Update {
			want++
		}
	}
	ask := gate.RulesRequest{Project: "shop", Name: "r.yaml", DryRun: true, Rules: `rules:
  - {id: fact, question: limits, any: [{regex: 'limit of queue [a-z0-9-]+ at \d+ messages'}], evidence: yes, confidence: 0.9}
  - {id: rest, question: limits, any: [{regex: '(?s).'}], evidence: no}
`}
	got, err := w.Gate.LabelByRules(t.Context(), ask, func(int, int) {})
	if err != nil || got.Matched != len(gates) || got.Evidence != want || got.Written != 0 || got.ByRule["fact"] != want {
		t.Fatalf("%+v %v, want %d", got, err, want)
	}
	ask.DryRun = false
	var over gate.RulesRun
	w.Post("/memory/labels/rules", ask, http.StatusOK, &over)
	if over.Written != len(gates) || over.Standing != 0 {
		t.Errorf("%+v", over)
	}
	again, err := w.Gate.LabelByRules(t.Context(), ask, func(int, int) {})
	if err != nil || again.Written != 0 || again.Standing != len(gates) || len(labelsOf(t, w)) != len(gates) {
		t.Errorf("%+v %v", again, err)
	}
	ask.Rules = strings.ReplaceAll(ask.Rules, "0.9", "0.8")
	if got, err := w.Gate.LabelByRules(t.Context(), ask, func(int, int) {}); err != nil || got.Written != want {
		t.Errorf("%+v %v", got, err)
	}
	set, err := labels.Read(t.Context(), w.Log, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gates {
		if v, ok := set.Best(w.Streams("shop")[0], g.Chunk, g.Start, g.End); !ok || v.Evidence != g.Update || g.Update && *v.Confidence != .8 {
			t.Errorf("step %d: %+v", g.T, v)
		}
	}
}

// TestAgreement: each judge is held against the people, and so is what was decided.
func TestAgreement(t *testing.T) {
	t.Parallel()
	w := shadowed(t, labeller(t, 0))
	gates := gatesOf(w)
	var rows []labels.Row
	for i, g := range gates {
		r := labels.Row{Question: "limits", Chunk: g.Chunk, Start: g.Start, End: g.End, Evidence: g.Update}
		if i > 0 { // one piece is the model's alone
			rows = append(rows, r)
		}
		r.Kind, r.Model = memory.LabelModel, "big"
		r.Evidence = g.Update != (i == 1) // wrong once
		rows = append(rows, r)
	}
	if got, err := w.Gate.Import(t.Context(), gate.ImportRequest{Project: "shop", By: "ada", Labels: rows}); err != nil || got.Bad != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	var got gate.Agreements
	w.Get("/memory/labels/agreement?project=shop&query=limits&min_pairs=5", &got)
	if len(got.Judges) != 1 || got.Human != len(gates)-1 || got.Bound != (labels.Bound{Kappa: .6, Pairs: 5}) {
		t.Fatalf("%+v", got)
	}
	j := got.Judges[0]
	if j.Model != "big" || j.N != len(gates)-1 || j.Labels != len(gates) || j.Table.OnlyA+j.Table.OnlyB != 1 || !j.Trusted {
		t.Errorf("%+v", j)
	}
	if got.Gate.Table.OnlyA+got.Gate.Table.OnlyB != 0 || got.Gate.N != len(gates)-1 || got.Gate.Kappa == nil || *got.Gate.Kappa != 1 {
		t.Errorf("%+v", got.Gate)
	}
	if _, err := w.Gate.Agreement(t.Context(), "shop", "limits", "", labels.DefaultBound); err != nil {
		t.Fatal(err)
	}
	none, err := w.Gate.Agreement(t.Context(), "shop", "limits", "nobody", labels.DefaultBound)
	if err != nil || len(none.Judges) != 1 || none.Judges[0].Trusted || none.Judges[0].Table != (agree.Table{}) {
		t.Errorf("%+v %v", none, err)
	}
}

// BenchmarkImport takes rows in beside labels that stand.
func BenchmarkImport(b *testing.B) {
	w := functest.New(b, functest.Options{Policy: closed{}})
	w.Ask("shop", "limits")
	w.Learned("shop/a.jsonl", functest.Long("s1", modelDay, 40))
	gates := functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0]))
	at := modelDay
	rows := func(n int) []labels.Row {
		out := make([]labels.Row, n)
		for i := range out {
			g := gates[i%len(gates)]
			at = at.Add(time.Second)
			out[i] = labels.Row{Stream: w.Streams("shop")[0], Chunk: g.Chunk, Start: g.Start, End: g.End, Evidence: i%3 == 0, Kind: memory.LabelHuman, By: "ada", At: at}
		}
		return out
	}
	ctx := context.Background()
	for range 5 {
		if _, err := w.Gate.Import(ctx, gate.ImportRequest{Project: "shop", Labels: rows(gate.MaxRows)}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("20k-rows-beside-100k", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			r := rows(gate.MaxRows)
			b.StartTimer()
			if got, err := w.Gate.Import(ctx, gate.ImportRequest{Project: "shop", Labels: r}); err != nil || got.Written != gate.MaxRows {
				b.Fatal(got, err)
			}
		}
	})
}
