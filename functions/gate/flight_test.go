package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// slow answers once it is let to.
type slow struct {
	*scripted
	let   chan struct{}
	begun chan struct{}
}

func (s *slow) Chat(ctx context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	s.begun <- struct{}{}
	select {
	case <-s.let:
		return s.scripted.Chat(ctx, r)
	case <-ctx.Done():
		return llm.ChatReply{}, ctx.Err()
	}
}

// TestLongCall: a call that takes longer than its event goes on, and the next
// deliveries wait for the same one, however many there are.
func TestLongCall(t *testing.T) {
	t.Parallel()
	s := &slow{scripted: perfect(false), let: make(chan struct{}), begun: make(chan struct{}, 9)}
	w := modelWorld(t, functest.Options{Models: modelOf(s, nil)})
	es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Session("s1", modelDay, functest.User("We decided to keep the limit of queue a at 5 messages."))))
	if err != nil {
		t.Fatal(err)
	}
	run := event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: memory.StreamName("limits", functest.Wording("limits"))})
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := w.Gate.Handle(ctx, run)
		cancel()
		if !fault.Is(err, fault.Unavailable) || fault.RetryAfterOf(err) == 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, again after %v", err, fault.RetryAfterOf(err))
		}
	}
	close(s.let)
	w.Run(append(es, run)...)
	gates := functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0]))
	if len(gates) != 1 || !gates[0].Update || len(s.begun) != 1 || len(s.asked) != 1 {
		t.Errorf("%d steps, %d calls begun, %d answered", len(gates), len(s.begun), len(s.asked))
	}
	w.Hashes()
}

// TestCloseGivesUpCalls: a process that ends does not wait for a model.
func TestCloseGivesUpCalls(t *testing.T) {
	t.Parallel()
	s := &slow{scripted: perfect(false), let: make(chan struct{}), begun: make(chan struct{}, 9)}
	w := modelWorld(t, functest.Options{Models: modelOf(s, nil)})
	es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Brief("s1", modelDay, 2)))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := w.Gate.Handle(t.Context(), es[0])
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := w.Gate.Handle(t.Context(), runs[0]); ended <- err }()
	<-s.begun
	if err := w.Gate.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a call that was given up decided something")
	}
	if n := len(functest.Of[*memory.Gate](w.Records("shop", memory.StreamName("limits", functest.Wording("limits"))))); n != 0 {
		t.Errorf("%d steps", n)
	}
}
