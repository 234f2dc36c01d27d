package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
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

// batching is a server of both models that answers the gates of a batch only once
// all of them are there, as one that batches would like them.
type batching struct {
	width int // 0: answers at once

	mu                  sync.Mutex
	waiting, gates, all int // of gates: waiting now, and asked in all; all: every call
	most                int
	full                chan struct{}
	repeats             map[string]int
	broken              func(n int) bool // of call n, from 1
}

func (b *batching) Capabilities() llm.Capabilities { return llm.Capabilities{} }

func (b *batching) Chat(ctx context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	if n := b.count(r); b.broken != nil && b.broken(n) {
		return llm.ChatReply{}, fault.New(fault.Unavailable, "the connection broke off")
	}
	if !strings.Contains(r.System, "<check>") { // a rewrite: one fact a line
		f := fact.FindString(section.FindStringSubmatch(r.User)[1])
		return says(r, gru.Verdict{Update: true, Edits: []gru.Edit{{Line: 0, Text: "The " + f + "."}}}, gru.ShapeEdit), nil
	}
	b.mu.Lock()
	b.gates++
	b.waiting++
	b.most = max(b.most, b.waiting)
	if b.full == nil {
		b.full = make(chan struct{})
	}
	full := b.full
	if b.waiting == b.width {
		close(full)
		b.full = nil
	}
	b.mu.Unlock()
	defer func() { b.mu.Lock(); b.waiting--; b.mu.Unlock() }()
	if b.width > 0 {
		select {
		case <-full:
		case <-ctx.Done():
			return llm.ChatReply{}, ctx.Err()
		case <-time.After(20 * time.Second): // the last batch is narrower, or nobody asks side by side
			return llm.ChatReply{}, fault.New(fault.Internal, "a batch never was full")
		}
	}
	// A gate that knows the fact already is closed: what it is shown counts.
	f := fact.FindString(section.FindStringSubmatch(r.User)[1])
	return says(r, gru.Verdict{Think: "t", Update: f != "" && !strings.Contains(r.User, "The "+f)}, gru.ShapeGate), nil
}

func (b *batching) count(r llm.ChatRequest) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.repeats == nil {
		b.repeats = map[string]int{}
	}
	b.all++
	b.repeats[r.Model+r.System+r.User]++
	return b.all
}

func parallelModels(b *batching, width int) func(context.Context, string) (*gate.Models, error) {
	m, err := modelOf(b, b)(context.Background(), "")
	if err != nil {
		panic(err)
	}
	m.Model.Policy, m.Model.Parallel, m.Model.Checks = "model/parallel", width, true
	return modelsOf(m)
}

// parallelSession is one part of 12 chunks, of which the facts of 3, 4 and 9 are new
// and that of 5 is said in 4 already.
func parallelSession() []byte {
	facts := map[int]string{3: "a at 5", 4: "b at 7", 5: "b at 7", 9: "c at 9"}
	var says []functest.Say
	for i := range 12 {
		text := strings.Repeat("It goes through the module and notes what it sees there. ", 24)
		if f := facts[i]; f != "" {
			text = "We decided to keep the limit of queue " + f + " messages. " + text
		}
		says = append(says, functest.Assistant(text))
	}
	return functest.Session("s1", modelDay, says...)
}

// TestGatesSideBySide: the gates of a batch are under way together and see the memory
// before it; open chunks are merged in order, and the records say so.
func TestGatesSideBySide(t *testing.T) {
	t.Parallel()
	b := &batching{width: 4}
	w := modelWorld(t, functest.Options{Models: parallelModels(b, 4)})
	w.Learned("shop/a.jsonl", parallelSession())
	recs := w.Records("shop", w.Streams("shop")[0])
	gates := functest.Of[*memory.Gate](recs)
	if len(gates) != 12 || b.most != 4 || b.gates != 12 {
		t.Fatalf("%d steps, %d gates asked, %d at a time", len(gates), b.gates, b.most)
	}
	var open []int
	for _, g := range gates {
		if g.Update {
			open = append(open, g.I)
		}
		if g.Parallel != 4 || g.Policy != "model/parallel" || g.T != g.I+1 {
			t.Errorf("%+v", g)
		}
		if late := slices.Contains([]int{5, 6, 7, 10, 11}, g.I); late != (g.FrozenSHA != "") {
			t.Errorf("chunk %d saw the memory %q, and stands on %q", g.I, g.FrozenSHA.Short(), g.MemoryBeforeSHA.Short())
		}
	}
	// 4 and 5 are of one batch: 5 did not know what 4 found, and its edit says nothing new.
	if !slices.Equal(open, []int{3, 4, 5, 9}) {
		t.Errorf("open: %v", open)
	}
	mems := functest.Of[*memory.Memory](recs)
	if last := mems[len(mems)-1].Text; len(mems) != 3 || strings.Count(last, "queue b at 7") != 1 || strings.Count(last, "\n") != 2 {
		t.Errorf("%d memories, the last %q", len(mems), last)
	}
	w.Hashes()
}

// TestGatesSideBySideResume: a run that breaks off at any call goes on within its
// batch to the same log, and no call that was answered is made again.
func TestGatesSideBySideResume(t *testing.T) {
	t.Parallel()
	calm := modelWorld(t, functest.Options{Models: parallelModels(&batching{}, 4)})
	calm.Learned("shop/a.jsonl", parallelSession())
	want := calm.Hashes()
	run := event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: memory.StreamName("limits", functest.Wording("limits"))})
	for at := 1; at <= 12; at += functest.Stride(4) {
		for _, fresh := range []bool{false, true} { // the same process goes on, or another
			b := &batching{broken: func(n int) bool { return n == at }}
			o := functest.Options{Models: parallelModels(b, 4)}
			w := modelWorld(t, o)
			if _, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", parallelSession())); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Gate.Handle(t.Context(), run); !errors.Is(err, fault.Unavailable.Sentinel()) {
				t.Fatalf("call %d: %v", at, err)
			}
			calls := b.all
			if fresh {
				o.From = w
				w = modelWorldOf(t, o)
			}
			w.Run(run)
			w.Sweep()
			if got := w.Hashes(); got.Log != want.Log || got.Index != want.Index {
				t.Errorf("call %d, another process %v: %+v, want %+v", at, fresh, got, want)
			}
			if !fresh && b.all > 12+4+1 {
				t.Errorf("call %d: %d calls, %d of them before it", at, b.all, calls)
			}
		}
	}
}
