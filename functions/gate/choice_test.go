package gate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
)

const limits = "# One\n\nWe keep the limit of queue a at 5 messages.\n\n# Lunch\n\nThe soup was fine.\n\n# Two\n\nWe keep the limit of queue b at 9 messages.\n"

// picks are the endpoints that requests of these tests may name: a model gates
// in every project.
func picks(t *testing.T) models.Config {
	t.Helper()
	c, err := models.Parse("models.yaml", []byte("endpoints: [{name: here, url: 'http://127.0.0.1:11434'}]\ngate: {endpoint: here, model: standing}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// chosen answers gate.Config.Picked by one server, under the name that was
// picked, and keeps what was asked for.
func chosen(server llm.Chatter, asked *[]string) func(context.Context, string, *models.Pick) (*gate.Models, error) {
	return func(ctx context.Context, project string, p *models.Pick) (*gate.Models, error) {
		*asked = append(*asked, project+" "+p.Key())
		m, err := modelOf(server, nil)(ctx, project)
		m.Model.Name = p.Gate.Model
		return m, err
	}
}

// TestPicked: the models of a request decide its own stream, those of the
// project the others, over slices, a crash and another configuration.
func TestPicked(t *testing.T) {
	t.Parallel()
	standing, own := perfect(false), perfect(false)
	var asked []string
	day, ticks := modelDay, 0
	o := functest.Options{
		Models: modelOf(standing, nil), Picks: picks(t), Picked: chosen(own, &asked), Slice: time.Second, Lease: time.Minute,
		Now: func() time.Time { ticks++; return day.Add(time.Duration(ticks) * time.Minute) }, // every step ends its slice
	}
	w := modelWorld(t, o)
	req := map[string]any{"project": "shop", "text": limits, "query": "Which limits?", "model": "mine"}
	var l learn.Learned
	w.Post("/memory/learn", req, http.StatusAccepted, &l)
	if l.Status != "running" || l.Model != "mine" {
		t.Errorf("before the run: %+v", l)
	}
	var adhoc string
	var run = event.New(event.RunRequested, "test", event.Stream{})
	for _, e := range w.Published() {
		if d, err := event.DecodeFor[event.Stream](e, functest.Tenant); err == nil && strings.HasPrefix(d.Stream, "adhoc-") {
			adhoc, run = d.Stream, e
		}
	}
	// One step, then the process is another, whose project has other models.
	if _, err := w.Gate.Handle(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if n := len(own.asked); n != 1 {
		t.Fatalf("%d calls in the first slice", n)
	}
	other := perfect(false)
	o.From, o.Models = w, modelOf(other, nil)
	o.Count, o.Graph, o.Lexical = functest.Coarse, indextest.NewGraph(), indextest.NewLexical()
	w = functest.New(t, o)
	w.Run(run)
	w.Sweep()
	w.Get(l.StatusURL, &l)
	if l.Status != "completed" || l.Model != "mine" || l.ChunksSeen != 3 || l.ChunksUsed != 2 || len(own.asked) != 3 {
		t.Errorf("%d calls, %+v", len(own.asked), l)
	}
	recs := w.Records("shop", adhoc)
	if runs := functest.Of[*memory.Run](recs); len(runs) != 1 || runs[0].Model != "mine" {
		t.Errorf("%+v", runs)
	}
	for _, g := range functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[len(w.Streams("shop"))-1])) {
		if g.Model != "small" {
			t.Errorf("a standing question was decided by %s", g.Model)
		}
	}
	want := `shop {"gate":{"url":"http://127.0.0.1:11434","model":"mine"}}`
	for _, a := range asked {
		if diff := cmp.Diff(want, a); diff != "" {
			t.Error(diff)
		}
	}

	// Again: the event, the sweep and the request; not even a look at the model.
	calls, looks := len(own.asked), len(asked)
	w.Run(run, run)
	w.Sweep()
	var again learn.Learned
	w.Post("/memory/learn", req, http.StatusOK, &again)
	w.Run(w.Published()...)
	if len(own.asked) != calls || len(asked) != looks {
		t.Errorf("%d more calls, %d more looks", len(own.asked)-calls, len(asked)-looks)
	}
	if again.ChunksUsed != 0 || again.Stored || again.Model != "mine" || again.Memory != l.Memory {
		t.Errorf("again: %+v", again)
	}
	w.Hashes()
}

// TestChoiceIsAStream: each choice is a stream of its own, and the built-in
// policy is one.
func TestChoiceIsAStream(t *testing.T) {
	t.Parallel()
	standing, own := perfect(false), perfect(false)
	var asked []string
	w := modelWorld(t, functest.Options{Live: true, Models: modelOf(standing, nil), Picks: picks(t), Picked: chosen(own, &asked)})
	streams := map[string]string{}
	for _, model := range []string{"", "mine", "yours", "extractive"} {
		req := map[string]any{"project": "shop", "text": limits, "query": "Which limits?"}
		if model != "" {
			req["model"] = model
		}
		calls := len(own.asked) + len(standing.asked)
		var l learn.Learned
		w.Post("/memory/learn", req, http.StatusOK, &l)
		want := map[string]string{"": "small"}[model]
		if want == "" {
			want = model
		}
		if l.Status != "completed" || l.Model != want {
			t.Errorf("%q: %+v", model, l)
		}
		if other, dup := streams[l.Questions[0].Stream]; dup {
			t.Errorf("%q and %q are one stream", model, other)
		}
		streams[l.Questions[0].Stream] = model
		if n := len(own.asked) + len(standing.asked) - calls; (n == 0) != (model == "extractive") {
			t.Errorf("%q: %d calls", model, n)
		}
	}
	if _, ok := streams[memory.AdhocStream("Which limits?", memory.SumString(limits))]; !ok {
		t.Errorf("the name of a stream without a choice has moved: %v", streams)
	}
	w.Hashes()
}

// TestPickRefused: models that cannot decide are the request's answer, once: no
// event and no sweep asks them again until the request does.
func TestPickRefused(t *testing.T) {
	t.Parallel()
	own := perfect(false)
	var asked []string
	good := chosen(own, &asked)
	var why error
	looks := 0
	w := modelWorld(t, functest.Options{Live: true, Picks: picks(t), Picked: func(ctx context.Context, project string, p *models.Pick) (*gate.Models, error) {
		if looks++; why != nil {
			return nil, why
		}
		return good(ctx, project, p)
	}})
	req := map[string]any{"project": "shop", "text": limits, "query": "Which limits?", "model": "mine"}
	for _, why = range []error{
		fault.At(fault.Invalid, "model here/mine", "ollama pull mine", "mine is not there"),
		fault.At(fault.Denied, "here", "look at the key", "the server answers 401"),
	} {
		looks = 0
		var l, job learn.Learned
		w.Post("/memory/learn", req, http.StatusOK, &l)
		if l.Status != "refused" || !strings.Contains(l.Reason, why.Error()) || l.Hint != fault.HintOf(why) || l.ChunksUsed != 0 || looks != 1 {
			t.Errorf("%d looks: %+v", looks, l)
		}
		w.Get(l.StatusURL, &job)
		if job.Status != "refused" || job.Reason != l.Reason || job.Hint != l.Hint {
			t.Errorf("the job says %+v", job)
		}
		w.Sweep()
		w.Run(event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: l.Questions[0].Stream}))
		if n, err := w.Gate.Behind(t.Context()); err != nil || n != 0 || looks != 1 {
			t.Errorf("%d streams are behind, %d looks, %v", n, looks, err)
		}
	}
	why = nil
	var l learn.Learned
	w.Post("/memory/learn", req, http.StatusOK, &l)
	if l.Status != "completed" || l.Reason != "" || l.ChunksUsed != 2 || len(own.asked) != 3 {
		t.Errorf("after the cure: %+v", l)
	}
	w.Post("/memory/learn", req, http.StatusOK, &l)
	if l.ChunksUsed != 0 || len(own.asked) != 3 {
		t.Errorf("again: %+v", l)
	}
	w.Hashes()
}

// TestPickUnavailable: a server that is only down is tried again, by the event.
func TestPickUnavailable(t *testing.T) {
	t.Parallel()
	own := perfect(false)
	var asked []string
	good, answer := chosen(own, &asked), own.answer
	own.answer = func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
		if n == 2 {
			return llm.ChatReply{}, fault.New(fault.Unavailable, "the model is loading")
		}
		return answer(n, r)
	}
	w := modelWorld(t, functest.Options{Picks: picks(t), Picked: good})
	var l learn.Learned
	w.Post("/memory/learn", map[string]any{"project": "shop", "text": limits, "query": "Which limits?", "model": "mine"}, http.StatusAccepted, &l)
	es := w.Published()
	if _, err := w.Gate.Handle(t.Context(), es[len(es)-1]); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("%v", err)
	}
	w.Get(l.StatusURL, &l)
	if l.Status != "running" {
		t.Errorf("%+v", l)
	}
	w.Run(es...)
	w.Get(l.StatusURL, &l)
	if l.Status != "completed" || l.ChunksUsed != 2 || len(own.asked) != 4 { // three chunks and the failed call
		t.Errorf("%d calls, %+v", len(own.asked), l)
	}
}

// TestPickSmallerBudget: a refusal that asks for a smaller memory budget is cured by one.
func TestPickSmallerBudget(t *testing.T) {
	t.Parallel()
	own := perfect(false)
	var asked []string
	good := chosen(own, &asked)
	w := modelWorld(t, functest.Options{Live: true, Picks: picks(t), Picked: func(ctx context.Context, project string, p *models.Pick) (*gate.Models, error) {
		m, err := good(ctx, project, p)
		m.Model.WindowTokens, m.Model.ReplyTokens = 7000, 1100
		return m, err
	}})
	req := map[string]any{"project": "shop", "text": limits, "query": "Which limits?", "model": "mine"}
	var l learn.Learned
	w.Post("/memory/learn", req, http.StatusOK, &l)
	if l.Status != "refused" || !strings.Contains(l.Reason, "memory 4096") || !strings.Contains(l.Hint, "smaller memory budget") {
		t.Fatalf("%+v", l)
	}
	req["memory_budget"] = 1024
	w.Post("/memory/learn", req, http.StatusOK, &l)
	if l.Status != "completed" || l.ChunksUsed != 2 {
		t.Errorf("%+v", l)
	}
	if runs := functest.Of[*memory.Run](w.Records("shop", l.Questions[0].Stream)); len(runs) != 1 || runs[0].MemoryBudget != 1024 {
		t.Errorf("%+v", runs)
	}
	w.Hashes()
}
