package gate_test

import (
	"context"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestAnotherModelInTheMiddle: a part whose model is changed while it is read goes on
// in a run of its own; each run's decisions are those of the model that it froze.
func TestAnotherModelInTheMiddle(t *testing.T) {
	t.Parallel()
	run := event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: memory.StreamName("limits", functest.Wording("limits"))})
	named := func(s *scripted, name string) func(context.Context, string) (*gate.Models, error) {
		m, err := modelOf(s, nil)(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		m.Model.Name = name
		return modelsOf(m)
	}
	first := moody("never", new(bool))
	good := first.answer
	first.answer = func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
		if n > 3 {
			return llm.ChatReply{}, fault.New(fault.Unavailable, "it is taken away")
		}
		return good(n, r)
	}
	w := modelWorld(t, functest.Options{Models: named(first, "m1")})
	if _, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Brief("s1", modelDay, 8))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Gate.Handle(t.Context(), run); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("%v", err)
	}
	next := modelWorldOf(t, functest.Options{From: w, Models: named(moody("never", new(bool)), "m2")})
	var job struct {
		Status string
		Model  string
	}
	next.Get("/memory/ingest/"+string(receipt(next, "shop/a.jsonl")), &job)
	if job.Status != "running" {
		t.Errorf("in the middle the job is %s", job.Status)
	}
	next.Run(run)
	recs := next.Records("shop", next.Streams("shop")[0])
	runs, ends, gates := functest.Of[*memory.Run](recs), functest.Of[*memory.RunEnd](recs), functest.Of[*memory.Gate](recs)
	if len(runs) != 2 || len(ends) != 2 || !ends[0].Continued || ends[1].Continued || runs[0].Run == runs[1].Run || runs[1].From != 3 || runs[0].Source != runs[1].Source {
		t.Fatalf("%+v\n%+v", runs, ends)
	}
	of := map[memory.SHA]string{runs[0].Run: "m1", runs[1].Run: "m2"}
	used := 0
	for i, g := range gates {
		if of[g.Run] != g.Model || g.I != i || g.T != i+1 {
			t.Errorf("step %d of chunk %d is of run %s, by %s", g.T, g.I, g.Run.Short(), g.Model)
		}
		if g.Update {
			used++
		}
	}
	if len(gates) != runs[0].Chunks || ends[1].ChunksSeen != len(gates) || ends[1].ChunksUsed != used {
		t.Errorf("%d steps of %d chunks: %+v", len(gates), runs[0].Chunks, ends[1])
	}
	next.Get("/memory/ingest/"+string(receipt(next, "shop/a.jsonl")), &job)
	if job.Status != "completed" || job.Model != "m2" {
		t.Errorf("%+v", job)
	}
	next.Run(run)
	next.Sweep()
	if n := len(next.Records("shop", next.Streams("shop")[0])); n != len(recs) {
		t.Errorf("%d records more", n-len(recs))
	}
	next.Hashes()
}
