package gate_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// moody adds each fact to the memory, as a function of the prompt alone, but for
// sections that hold a word: of them it says nothing readable while it sulks.
func moody(word string, sulks *bool) *scripted {
	return &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		if !section.MatchString(r.User) { // a memory that is too long: its first fact is enough here
			return says(r, gru.Verdict{Update: true, Memory: fact.FindString(r.User)}, gru.ShapeRewrite), nil
		}
		read := section.FindStringSubmatch(r.User)[1]
		f := fact.FindString(read)
		mem := strings.TrimSpace(strings.Split(strings.Split(r.User, "<memory>\n")[1], "\n</memory>")[0])
		out := says(r, gru.Verdict{}, gru.ShapeFull)
		switch {
		case *sulks && strings.Contains(read, word):
			out.Content = "I would rather not say."
		case f != "":
			out = says(r, gru.Verdict{Update: true, Memory: strings.TrimPrefix(mem+"; "+f, "none; ")}, gru.ShapeFull)
		}
		return out, nil
	}}
}

// sulked is a world with two sessions learned, the first of which the model did not
// read, and the switch that makes it read.
func sulked(t *testing.T, o functest.Options) (*functest.World, *scripted, *bool) {
	t.Helper()
	sulks := true
	m := moody("queue a", &sulks)
	o.Models = modelOf(m, nil)
	w := modelWorld(t, o)
	w.Learned("shop/a.jsonl", functest.Session("s1", modelDay, functest.User("We decided to keep the limit of queue a at 5 messages.")))
	w.Learned("shop/b.jsonl", functest.Session("s2", modelDay.AddDate(0, 0, 1), functest.User("We decided to keep the limit of queue b at 9 messages.")))
	return w, m, &sulks
}

// TestRegatePending: a step without a readable reply is asked again as a new step of
// the stream that names it, once, and only when somebody asks.
func TestRegatePending(t *testing.T) {
	t.Parallel()
	w, m, sulks := sulked(t, functest.Options{})
	stream := w.Streams("shop")[0]
	var list gate.Regated
	w.Get("/memory/regate?project=shop", &list)
	if len(list.Streams) != 1 || len(list.Streams[0].Pending) != 1 || list.Streams[0].Asked != 0 || list.Streams[0].Pending[0].T != 1 {
		t.Fatalf("%+v", list)
	}
	*sulks = false
	calls := len(m.asked)
	w.Sweep()
	if len(m.asked) != calls {
		t.Errorf("%d calls that nobody asked for", len(m.asked)-calls)
	}
	w.Post("/memory/regate", map[string]any{"project": "shop"}, http.StatusAccepted, &list)
	if list.Streams[0].Asked != 1 {
		t.Errorf("%+v", list)
	}
	w.Run(w.Published()...)
	gates := functest.Of[*memory.Gate](w.Records("shop", stream))
	last := gates[len(gates)-1]
	if len(gates) != 3 || last.RegateOf != 1 || last.T != 3 || last.I != gates[0].I || last.Admit != gates[0].Admit || last.Chunk != gates[0].Chunk || !last.Update || last.Pending || last.TotalT != 1 || last.MemoryBeforeSHA != gates[1].MemorySHA {
		t.Errorf("%d steps, the last %+v", len(gates), last)
	}
	runs := functest.Of[*memory.Run](w.Records("shop", stream))
	if r := runs[len(runs)-1]; r.Cause.Kind != memory.CauseRegate || r.Chunks != 1 || r.Admit != 0 {
		t.Errorf("%+v", r)
	}
	w.Get("/memory/regate", &list)
	if len(list.Streams) != 0 {
		t.Errorf("still pending: %+v", list)
	}
	calls = len(m.asked)
	w.Post("/memory/regate", map[string]any{}, http.StatusOK, &list)
	w.Run(event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: stream}))
	w.Sweep()
	if len(m.asked) != calls {
		t.Error("a decided step was asked again")
	}
	w.Learned("shop/c.jsonl", functest.Session("s3", modelDay.AddDate(0, 0, 2), functest.User("We decided to keep the limit of queue c at 7 messages.")))
	var job struct{ Status string }
	w.Get("/memory/ingest/"+string(receipt(w, "shop/b.jsonl")), &job)
	if job.Status != "completed" {
		t.Errorf("a part before the re-gated step is %s", job.Status)
	}
	w.Hashes()
}

// TestRegateOnceMore: a step that cannot be read again is pending anew, and nobody
// goes round in circles over it.
func TestRegateOnceMore(t *testing.T) {
	t.Parallel()
	w, m, sulks := sulked(t, functest.Options{})
	var list gate.Regated
	w.Post("/memory/regate", map[string]any{"project": "shop", "query": "limits"}, http.StatusAccepted, &list)
	w.Run(w.Published()...)
	w.Sweep()
	gates := functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0]))
	if len(gates) != 3 || !gates[2].Pending || gates[2].RegateOf != 1 {
		t.Fatalf("%d steps", len(gates))
	}
	calls := len(m.asked)
	w.Sweep()
	w.Get("/memory/regate", &list)
	if len(m.asked) != calls || len(list.Streams) != 1 || list.Streams[0].Pending[0].T != 3 || list.Streams[0].Asked != 0 {
		t.Errorf("%d calls, %+v", len(m.asked)-calls, list)
	}
	*sulks = false
	w.Post("/memory/regate", map[string]any{}, http.StatusAccepted, &list)
	w.Run(w.Published()...)
	w.Get("/memory/regate", &list)
	if len(list.Streams) != 0 {
		t.Errorf("%+v", list)
	}
	w.Hashes()
}

// TestRegateIsResumed: a process that dies in a re-gate, wherever it is, leaves a
// stream that the next one brings to the same end, the event lost or not.
func TestRegateIsResumed(t *testing.T) {
	t.Parallel()
	calm, _, sulks := sulked(t, functest.Options{})
	*sulks = false
	var list gate.Regated
	calm.Post("/memory/regate", map[string]any{}, http.StatusAccepted, &list)
	calm.Run(calm.Published()...)
	want := calm.Hashes()
	for at, died := 0, true; died; at += functest.Stride(7) {
		for _, effect := range []bool{false, true} {
			w, _, sulks := sulked(t, functest.Options{})
			*sulks = false
			w.Post("/memory/regate", map[string]any{}, http.StatusAccepted, &list)
			lost := w.Published()
			reached := w.Stores.DieAt(at, effect, errors.New("the store is gone"))
			_, err := w.Gate.Handle(t.Context(), lost[0])
			died = reached()
			w.Stores.Fail(nil, nil)
			if died && err == nil {
				t.Errorf("call %d: no error", at)
			}
			o := functest.Options{From: w, Models: modelOf(moody("queue a", new(bool)), nil)}
			next := modelWorldOf(t, o)
			next.Sweep()
			if got := next.Hashes(); got.Log != want.Log || got.Index != want.Index {
				t.Errorf("died at call %d, effect %v: %+v, want %+v", at, effect, got, want)
			}
		}
	}
}

// TestRegateNeedsAModel: without one the request says so; a run that a model began
// and that none can end is closed.
func TestRegateNeedsAModel(t *testing.T) {
	t.Parallel()
	w, _, _ := sulked(t, functest.Options{})
	none := functest.Options{From: w, Models: modelsOf(nil)}
	plain := modelWorldOf(t, none)
	rec := plain.Call(http.MethodPost, "/memory/regate", map[string]any{})
	if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "configure a gate model") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if err := w.Catalog.AskRegate(t.Context(), "shop", w.Streams("shop")[0], 1); err != nil {
		t.Fatal(err)
	}
	before := len(plain.Records("shop", w.Streams("shop")[0]))
	plain.Sweep()
	if n := len(plain.Records("shop", w.Streams("shop")[0])); n != before {
		t.Errorf("%d records more", n-before)
	}
	broken := modelWorldOf(t, functest.Options{From: w, Models: failing(fault.At(fault.Invalid, "model small", "ollama pull small", "it is not there"))})
	rec = broken.Call(http.MethodPost, "/memory/regate", map[string]any{})
	if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "ollama pull small") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// TestRegateInSlices: a slice that is over in the middle goes on by event.
func TestRegateInSlices(t *testing.T) {
	t.Parallel()
	sulks := true
	m := moody("queue", &sulks)
	now := modelDay.AddDate(1, 0, 0)
	w := modelWorld(t, functest.Options{Models: modelOf(m, nil), Slice: time.Second, Now: func() time.Time { now = now.Add(700 * time.Millisecond); return now }})
	for _, q := range []string{"a", "b", "c", "d"} {
		w.Learned("shop/"+q+".jsonl", functest.Session("s"+q, modelDay, functest.User("We decided to keep the limit of queue "+q+" at 5 messages.")))
	}
	sulks = false
	var list gate.Regated
	w.Post("/memory/regate", map[string]any{}, http.StatusAccepted, &list)
	if len(list.Streams) != 1 || len(list.Streams[0].Pending) != 4 {
		t.Fatalf("%+v", list)
	}
	w.Run(w.Published()...)
	w.Get("/memory/regate", &list)
	gates := functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0]))
	if len(list.Streams) != 0 || len(gates) != 8 {
		t.Errorf("%d steps, %+v", len(gates), list)
	}
	w.Hashes()
}
