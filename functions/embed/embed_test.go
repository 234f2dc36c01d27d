package embed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

var (
	day    = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)
	stream = memory.StreamName("decisions", functest.Wording("decisions"))
)

func world(t *testing.T, o functest.Options) *functest.World {
	t.Helper()
	o.Graph, o.Lexical = indextest.NewGraph(), indextest.NewLexical()
	w := functest.New(t, o)
	if o.From == nil {
		w.Ask("shop", "decisions")
	}
	return w
}

// gated puts n parts through learn and gate: a segment a part. Part 1 of every
// three holds nothing to keep.
func gated(t *testing.T, w *functest.World, n int) {
	t.Helper()
	for i := range n {
		body := functest.Decision(fmt.Sprintf("s%d", i), day.AddDate(0, 0, i), fmt.Sprintf("We decided to keep the limit of queue q%d at %d messages, because the consumer falls behind.", i, 100+i))
		if i%3 == 1 {
			body = functest.Session(fmt.Sprintf("s%d", i), day.AddDate(0, 0, i), functest.User("Thanks, looks good."), functest.Assistant("Running the tests now."))
		}
		queue, err := w.Learn.Handle(t.Context(), w.Put(fmt.Sprintf("shop/%d.jsonl", i), body))
		for ; err == nil && len(queue) > 0; queue = queue[1:] {
			if event.Type(queue[0].Type()) == event.RunEnded {
				continue
			}
			var out []ce.Event
			out, err = w.Gate.Handle(t.Context(), queue[0])
			queue = append(queue, out...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func ended(seq int64) ce.Event {
	return event.New(event.RunEnded, "gate", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: stream, Seq: seq})
}

func vectors(t *testing.T, w *functest.World) map[string]string {
	t.Helper()
	out := map[string]string{}
	for info, err := range w.Bucket.List(t.Context(), "vector/") {
		if err != nil {
			t.Fatal(err)
		}
		out[info.Key] = info.ETag
	}
	return out
}

// TestOneObjectASegment: one for each, those without a new node included, in
// order, and once.
func TestOneObjectASegment(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	gated(t, w, 6)
	w.Stores.Calls()
	out, err := w.Embed.Handle(t.Context(), ended(6))
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, c := range w.Stores.Calls() {
		if c.Write() {
			written = append(written, c.Key)
		}
	}
	var want []string
	for seq := 1; seq <= 6; seq++ {
		want = append(want, fmt.Sprintf("vector/%s/shop/%s/%s/%020d", functest.Tenant, w.Space.ID, stream, seq))
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if len(out) != 1 || out[0].Type() != string(event.VectorsReady) {
		t.Fatalf("sent %v", out)
	}
	if d, err := event.Decode[event.Segment](out[0]); err != nil || d.Seq != 6 || d.Space != w.Space.ID || d.Stream != stream {
		t.Errorf("%+v %v", d, err)
	}
	rows := 0
	for seq := int64(1); seq <= 6; seq++ {
		v, ok, err := w.Log.Vectors(t.Context(), "shop", w.Space.ID, stream, seq)
		if err != nil || !ok || v.Dims != w.Space.Dims || len(v.Rows) != len(v.Passages)*v.Dims {
			t.Fatalf("segment %d: %t %v", seq, ok, err)
		}
		if (seq-1)%3 == 1 && len(v.Passages) != 0 {
			t.Errorf("segment %d keeps nothing and has %d vectors", seq, len(v.Passages))
		}
		rows += len(v.Passages)
	}
	if rows < 4 {
		t.Errorf("%d rows in all", rows)
	}
	// Repeats, late and by another process: no call of the model, no write.
	before, calls := vectors(t, w), w.Embed.Calls()
	next := world(t, functest.Options{From: w})
	w.Stores.Calls()
	for _, p := range []*functest.World{w, w, next} {
		for _, seq := range []int64{6, 1, 3} {
			if out, err := p.Embed.Handle(t.Context(), ended(seq)); err != nil || len(out) != 0 {
				t.Errorf("a repeat: %v %v", out, err)
			}
		}
	}
	for _, c := range w.Stores.Calls() {
		if c.Write() {
			t.Errorf("a repeat writes %s", c.Key)
		}
	}
	if w.Embed.Calls() != calls || next.Embed.Calls() != 0 {
		t.Error("a repeat embeds again")
	}
	if diff := cmp.Diff(before, vectors(t, w)); diff != "" {
		t.Errorf("vectors changed:\n%s", diff)
	}
}

// TestInterrupted: an embedder that fails after some segments leaves those that
// are done, and the next event goes on behind them.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	table, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	e := &flaky{Embedder: table}
	w := world(t, functest.Options{Embedder: e, Batch: 1})
	gated(t, w, 4)
	e.left.Store(2)
	if _, err := w.Embed.Handle(t.Context(), ended(4)); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("%v", err)
	}
	done := len(vectors(t, w))
	if done == 0 || done == 4 {
		t.Fatalf("%d objects: the fixture does not stop in the middle", done)
	}
	if n, err := w.Embed.Behind(t.Context()); err != nil || n != 1 {
		t.Errorf("behind %d %v", n, err)
	}
	e.left.Store(1000)
	sweep := event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"})
	out, err := w.Embed.Handle(t.Context(), sweep)
	if err != nil || len(out) != 1 {
		t.Fatalf("%v %v", out, err)
	}
	calm := world(t, functest.Options{})
	gated(t, calm, 4)
	if _, err := calm.Embed.Handle(t.Context(), ended(4)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vectors(t, calm), vectors(t, w)); diff != "" {
		t.Errorf("vectors (-undisturbed +interrupted):\n%s", diff)
	}
	if n, err := w.Embed.Behind(t.Context()); err != nil || n != 0 {
		t.Errorf("behind %d %v", n, err)
	}
}

// flaky answers left times.
type flaky struct {
	llm.Embedder
	left atomic.Int64
}

func (f *flaky) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if f.left.Add(-1) < 0 {
		return nil, fault.New(fault.Unavailable, "the model is gone")
	}
	return f.Embedder.Embed(ctx, texts)
}

// TestWrongAnswers: vectors that break the embedder's contract are not stored.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	table, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([][]float32) [][]float32{
		"too few":         func(v [][]float32) [][]float32 { return v[:len(v)-1] },
		"wrong dimension": func(v [][]float32) [][]float32 { v[0] = v[0][:3]; return v },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world(t, functest.Options{Embedder: changed{table, change}})
			gated(t, w, 1)
			if _, err := w.Embed.Handle(t.Context(), ended(1)); err == nil {
				t.Error("no error")
			}
			if v := vectors(t, w); len(v) != 0 {
				t.Errorf("stored %v", v)
			}
		})
	}
}

type changed struct {
	llm.Embedder
	f func([][]float32) [][]float32
}

func (c changed) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	v, err := c.Embedder.Embed(ctx, texts)
	return c.f(v), err
}

// TestBadTextsStopNothing: a text that the model has no vector for leaves the
// others theirs. Its passage is on record as one without, found by its words, and
// a rebuild and a verification take it for what it is.
func TestBadTextsStopNothing(t *testing.T) {
	t.Parallel()
	table, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	src := &nan{table: table}
	e, err := embedding.New(src, embedding.Config{Model: "m", Dims: table.Space().Dims, Count: functest.Coarse, DenseWeight: 0.6, Floor: 0.4})
	if err != nil {
		t.Fatal(err)
	}
	w := functest.New(t, functest.Options{Embedder: e})
	w.Ask("shop", "decisions")
	w.Learned("shop/0.jsonl", functest.Session("s0", day,
		functest.User("We decided to cap retries at 5 attempts, because the upstream bans us after that."), functest.Assistant("Noted."),
		functest.User("We decided to keep the zorbulator at 7 turns, because more would break it."), functest.Assistant("Noted."),
		functest.User("From now on the cache TTL is 10 minutes, never longer, since stale prices cost us an incident."), functest.Assistant("Noted.")))
	var with, without int
	for seq := int64(1); ; seq++ {
		v, ok, err := w.Log.Vectors(t.Context(), "shop", w.Space.ID, stream, seq)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		with, without = with+len(v.Passages), without+len(v.Without)
	}
	if with < 2 || without < 1 || int64(without) != w.Embed.Without() {
		t.Fatalf("%d with a vector, %d without, %d counted", with, without, w.Embed.Without())
	}
	ask := func(w *functest.World, q string) query.Answer {
		t.Helper()
		a, err := w.Query.Ask(t.Context(), query.Request{Query: q, Levels: []memory.Level{memory.L0}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	check := func(w *functest.World) {
		t.Helper()
		if a := ask(w, "how many turns for the zorbulator?"); len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "zorbulator") || a.Results[0].Components.Lexical == 0 {
			t.Errorf("by its words: %+v", a)
		}
		if a := ask(w, "after how many attempts are retries capped?"); len(a.Results) == 0 || a.Results[0].Components.Cosine < 0.4 {
			t.Errorf("its neighbour, by meaning: %+v", a)
		}
	}
	check(w)
	before, asked := w.Hashes(), src.asked.Load()
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if src.asked.Load() != asked {
		t.Error("the rebuild asks the model")
	}
	if diff := cmp.Diff(before, w.Hashes()); diff != "" { // fails on every problem that verify finds
		t.Errorf("rebuilt (-before +after):\n%s", diff)
	}
	check(w)
}

// nan is a model whose vector of one word is no number.
type nan struct {
	table *static.Embedder
	asked atomic.Int64
}

func (n *nan) Vectors(ctx context.Context, _ string, texts []string, _ int) ([][]float32, error) {
	n.asked.Add(1)
	for _, t := range texts {
		if strings.Contains(t, "keep the zorbulator") { // a server fails the batch, as it cannot write NaN
			return nil, fault.New(fault.Invalid, "the model's vector is not a number")
		}
	}
	return n.table.Embed(ctx, texts)
}

// TestServerDown: what is down leaves the segment as it was, and the next delivery
// does it.
func TestServerDown(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	ep, err := endpoint.Open(endpoint.Config{URL: s.URL, Kind: endpoint.OpenAI, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	src, err := openaiapi.New(ep, openaiapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(dims int) llm.Embedder {
		e, err := embedding.New(src, embedding.Config{Model: llmtest.Model, Dims: dims, Count: functest.Coarse})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	w := world(t, functest.Options{Embedder: open(llmtest.Dims)})
	gated(t, w, 1)
	s.Play(llmtest.Status(503, "loading"))
	if _, err := w.Embed.Handle(t.Context(), ended(1)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	// Its sweeps are no dead letters, and what is behind is seen.
	s.Play(llmtest.Status(503, "loading"))
	sweep := event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"})
	if out, err := w.Embed.Handle(t.Context(), sweep); err != nil || len(out) != 0 {
		t.Errorf("%v %v", out, err)
	}
	if n, err := w.Embed.Behind(t.Context()); n != 1 || err != nil {
		t.Errorf("behind %d %v", n, err)
	}
	if v := vectors(t, w); len(v) != 0 {
		t.Errorf("written by a server that is down: %v", v)
	}
	if out, err := w.Embed.Handle(t.Context(), ended(1)); err != nil || len(out) != 1 {
		t.Errorf("%v %v", out, err)
	}
	if v := vectors(t, w); len(v) != 1 {
		t.Errorf("%v", v)
	}
	// Configured for another length, nothing is written, and the error says so.
	other := world(t, functest.Options{From: w, Embedder: open(llmtest.Dims + 1)})
	if _, err := other.Embed.Handle(t.Context(), ended(1)); !fault.Is(err, fault.Corrupt) || !strings.Contains(fault.HintOf(err), "dimensions") {
		t.Errorf("%v (%s)", err, fault.HintOf(err))
	}
	if v := vectors(t, w); len(v) != 1 {
		t.Errorf("vectors of another length are written: %v", v)
	}
}

// TestSweepGoesOn: one stream that cannot be read does not hold up the others.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	w.Ask("shop", "decisions", "rules")
	gated(t, w, 1)
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op == memstore.OpPut && strings.HasPrefix(c.Key, "vector/") && !strings.Contains(c.Key, "rules@") {
			return fault.As(fault.Unavailable, errors.New("injected"))
		}
		return nil
	}, nil)
	sweep := event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"})
	if _, err := w.Embed.Handle(t.Context(), sweep); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	if v := vectors(t, w); len(v) != 1 {
		t.Errorf("%v", v)
	}
}
