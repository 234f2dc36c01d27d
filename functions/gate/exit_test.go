package gate_test

import (
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestExitGateOfAQuestion: a question that asks for it ends a part where the model has
// enough; the others read all, and have that on record.
func TestExitGateOfAQuestion(t *testing.T) {
	t.Parallel()
	for _, acts := range []bool{false, true} {
		w := modelWorldOf(t, functest.Options{Models: modelOf(perfect(true), nil)})
		set := "project: shop\nqueries:\n  - id: limits\n    question: What is known about limits?\n"
		if acts {
			set += "    exit_gate: true\n"
		}
		if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/shop/questions.yaml", []byte(set)); err != nil {
			t.Fatal(err)
		}
		w.Learned("shop/a.jsonl", functest.Brief("s1", modelDay, 8))
		recs := w.Records("shop", w.Streams("shop")[0])
		gates := functest.Of[*memory.Gate](recs)
		first := 0
		for i, g := range gates {
			if g.Exit {
				first = i
				break
			}
		}
		end := functest.Of[*memory.RunEnd](recs)[0]
		run := functest.Of[*memory.Run](recs)[0]
		if !gates[first].Exit || run.ExitGate != acts || end.Exited != acts || gates[first].ExitActed != acts || (len(gates) == first+1) != acts {
			t.Errorf("exit gate %v: %d steps, the exit opens at %d: %+v", acts, len(gates), first, end)
		}
		w.Learned("shop/b.jsonl", functest.Brief("s2", modelDay.AddDate(0, 0, 1), 2))
		if n := len(functest.Of[*memory.RunEnd](w.Records("shop", w.Streams("shop")[0]))); n != 2 {
			t.Errorf("%d parts ended", n)
		}
		w.Hashes()
	}
}

// TestKillLosesLittle: what a model decided is in the log two seconds later, and not
// only at the end of its slice.
func TestKillLosesLittle(t *testing.T) {
	t.Parallel()
	now := modelDay
	m := perfect(false)
	good := m.answer
	var w *functest.World
	m.answer = func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
		if n > 5 { // a kill would leave what stands now
			stands := 0
			for seg, err := range w.Log.Segments(t.Context(), "shop", memory.StreamName("limits", functest.Wording("limits")), 0) {
				if err != nil {
					t.Error(err)
				}
				stands += len(functest.Of[*memory.Gate](seg.Records))
			}
			if stands < n-5 {
				t.Errorf("before call %d, %d steps stand in the log", n, stands)
			}
		}
		now = now.Add(700 * time.Millisecond)
		return good(n, r)
	}
	w = modelWorld(t, functest.Options{Models: modelOf(m, nil), Now: func() time.Time { return now }, Slice: time.Hour, Lease: 3 * time.Hour})
	w.Learned("shop/a.jsonl", functest.Brief("s1", modelDay, 20))
	if len(m.asked) < 10 {
		t.Errorf("%d calls", len(m.asked))
	}
}
