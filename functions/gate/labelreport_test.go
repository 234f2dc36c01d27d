package gate_test

import (
	"net/http"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// exited is a world with an exit gate that ended its one part before all was read.
func exited(t *testing.T) (w *functest.World, read, unread []memory.Chunk) {
	t.Helper()
	w = modelWorldOf(t, functest.Options{Models: modelOf(perfect(true), nil)})
	set := "project: shop\nqueries:\n  - id: limits\n    question: What is known about limits?\n    exit_gate: true\n"
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/shop/questions.yaml", []byte(set)); err != nil {
		t.Fatal(err)
	}
	w.Learned("shop/a.jsonl", functest.Brief("s1", modelDay, 8))
	gates := gatesOf(w)
	_, chunks, err := w.Log.Source(t.Context(), "shop", w.Admits("shop")[0].Source)
	if err != nil {
		t.Fatal(err)
	}
	last := gates[len(gates)-1]
	if !last.ExitActed || last.More || last.I+1 >= len(chunks) {
		t.Fatalf("nothing is left unread: %+v of %d chunks", last, len(chunks))
	}
	return w, chunks[:last.I+1], chunks[last.I+1:]
}

// TestReportOfExits: whether an exit gate opened early, exactly or late is known when
// a person labelled what it read and what it left unread, and not before.
func TestReportOfExits(t *testing.T) {
	t.Parallel()
	w, read, unread := exited(t)
	all := append(append([]memory.Chunk{}, read...), unread...)
	exit := len(read) - 1
	say := func(last int) {
		t.Helper()
		var rows []labels.Row
		for i := range all {
			rows = append(rows, labels.Row{Question: "limits", Chunk: all[i].SHA256, Evidence: i == last})
		}
		var out gate.Imported
		w.Post("/memory/labels", gate.ImportRequest{Project: "shop", By: "ada", Labels: rows}, http.StatusOK, &out)
		if out.Bad != 0 || out.Written == 0 {
			t.Fatalf("%+v", out)
		}
	}
	report := func() query.Reports {
		t.Helper()
		var r query.Reports
		w.Get("/memory/report?project=shop&query=limits&points=600", &r)
		if len(r.Streams) != 1 {
			t.Fatalf("%+v", r)
		}
		return r
	}
	if e := report().Streams[0].Exits; e.Known() != 0 || e.NotKnown != 1 || e.Reward != nil {
		t.Errorf("without labels: %+v", e)
	}
	for name, tc := range map[string]struct {
		last   int
		reward float64
		early  int
		exact  int
		late   int
	}{
		"evidence left unread": {len(all) - 1, -.75, 1, 0, 0},
		"at the last evidence": {exit, 0, 0, 1, 0},
	} {
		say(tc.last)
		s := report().Streams[0]
		if e := s.Exits; e.Early != tc.early || e.Exact != tc.exact || e.Late != tc.late || e.Reward == nil || *e.Reward != tc.reward || e.Never != 0 {
			t.Errorf("%s: %+v", name, e)
		}
		if s.Labels.Steps != len(read) || s.Labels.ByKind[memory.LabelHuman] != len(read) || len(s.Memory.Points) != len(read) || s.Memory.BudgetTokens == 0 || s.Figures.Steps != len(read) {
			t.Errorf("%s: %+v %+v", name, s.Labels, s.Memory)
		}
	}
	if exit > 0 {
		say(0)
		if e := report().Streams[0].Exits; e.Late != 1 || *e.Reward != -.5 {
			t.Errorf("after the last evidence: %+v", e)
		}
	}
}

// TestReportRoute: a run is found by the first digits of its id; what is wrong with a
// request is said.
func TestReportRoute(t *testing.T) {
	t.Parallel()
	w := shadowed(t, labeller(t, 0))
	runs := functest.Of[*memory.Run](w.Records("shop", w.Streams("shop")[0]))
	if len(runs) != 2 {
		t.Fatal(len(runs))
	}
	for _, target := range []string{"run=" + string(runs[1].Run), "run=" + string(runs[1].Run[:6]), "last=true&query=limits"} {
		var r query.Reports
		w.Get("/memory/report?project=shop&"+target, &r)
		if len(r.Streams) != 1 || r.Streams[0].Run == nil || r.Streams[0].Run.Run != runs[1].Run || r.Streams[0].Figures.Steps != 1 || len(r.Streams[0].Memory.Points) != 0 {
			t.Errorf("%s: %+v", target, r)
		}
	}
	for target, status := range map[string]int{
		"run=00000000": 404, "run=zz": 400, "run=abc": 400, "run=abcd&last=true": 400, "points=-1": 400, "points=1e9": 400, "runs=5000": 400, "project=nobody": 404,
	} {
		if rec := w.Call(http.MethodGet, "/memory/report?"+target, nil); rec.Code != status {
			t.Errorf("%s: %d, want %d: %s", target, rec.Code, status, rec.Body)
		}
	}
	var r query.Reports
	w.Get("/memory/report?project=shop&runs=1&query=limits", &r)
	if len(r.Streams) != 1 || len(r.Streams[0].Runs) != 1 || r.Streams[0].Runs[0].Run != runs[1].Run || r.Streams[0].Run != nil {
		t.Errorf("%+v", r)
	}
}
