package gate_test

import (
	"bytes"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestAnswersKept: the gate's answer is kept while its rewrite fails, unless it is so
// large that a cache of them would fill the memory.
func TestAnswersKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, asked int }{
		"small": {200 << 10, 1},
		"large": {300 << 10, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
				out := says(r, gru.Verdict{Think: "a limit", Update: true}, gru.ShapeGate)
				out.Raw = bytes.Repeat([]byte("x"), tc.raw)
				return out, nil
			}}
			writer := &scripted{answer: func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
				if n == 1 {
					return llm.ChatReply{}, fault.New(fault.Unavailable, "busy")
				}
				return says(r, gru.Verdict{Memory: "limit of queue a at 5 messages"}, gru.ShapeRewrite), nil
			}}
			w := modelWorld(t, functest.Options{Models: modelOf(judge, writer)})
			es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Session("s1", modelDay, functest.User("We decided to keep the limit of queue a at 5 messages."))))
			if err != nil {
				t.Fatal(err)
			}
			run := event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: memory.StreamName("limits", functest.Wording("limits"))})
			if _, err := w.Gate.Handle(t.Context(), run); !fault.Is(err, fault.Unavailable) {
				t.Fatalf("%v", err)
			}
			w.Run(append(es, run)...)
			if len(judge.asked) != tc.asked || len(writer.asked) != 2 {
				t.Errorf("the gate was asked %d times, want %d; the rewrite %d", len(judge.asked), tc.asked, len(writer.asked))
			}
		})
	}
}
