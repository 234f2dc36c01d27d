package gate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/token"
)

var start = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

// world has the reference indexes, which open at once, and one question.
func world(t testing.TB, o functest.Options) *functest.World {
	t.Helper()
	o.Graph, o.Lexical = indextest.NewGraph(), indextest.NewLexical()
	if o.Count == nil {
		o.Count = functest.Coarse
	}
	w := functest.New(t, o)
	if o.From == nil {
		w.Ask("shop", "decisions")
	}
	return w
}

// admit puts three parts into the log: three chunks, one, and one that amends.
func admit(t testing.TB, w *functest.World) {
	t.Helper()
	for i, body := range [][]byte{
		functest.Brief("s1", start, 3),
		functest.Decision("s2", start.Add(24*time.Hour), "From now on the cache TTL is 10 minutes, never longer, since stale prices cost us an incident."),
		functest.Decision("s3", start.Add(48*time.Hour), "From now on the cache TTL is 20 minutes instead of 10, because the price feed is slow."),
	} {
		if _, err := w.Learn.Handle(t.Context(), w.Put(fmt.Sprintf("shop/%d.jsonl", i), body)); err != nil {
			t.Fatal(err)
		}
	}
}

func stream(id string) string { return memory.StreamName(id, functest.Wording(id)) }

func requested(id string, seq int64) ce.Event {
	return event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: stream(id), Seq: seq})
}

func questionsChanged() ce.Event {
	return event.New(event.QuestionsChanged, "test", event.Project{Tenant: functest.Tenant, Project: "shop"})
}

// undisturbed is the stream's hash when nothing disturbs it.
func undisturbed(t testing.TB) memory.SHA {
	t.Helper()
	w := world(t, functest.Options{})
	admit(t, w)
	w.Run(requested("decisions", 0))
	return hash(t, w)
}

func hash(t testing.TB, w *functest.World) memory.SHA {
	t.Helper()
	h, err := w.Log.StreamHash(t.Context(), "shop", stream("decisions"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// steps checks that a stream folds the parts strictly in order: t counts from 1
// without a gap, runs begin and end once, in admit order.
func steps(t *testing.T, w *functest.World, stream string) (runs, gates int) {
	t.Helper()
	last, at := int64(0), 0
	open := false
	for _, r := range w.Records("shop", stream) {
		switch r := r.(type) {
		case *memory.Run:
			if open || r.Admit != last+1 {
				t.Errorf("%s: run of part %d after part %d (open %t)", stream, r.Admit, last, open)
			}
			open, runs = true, runs+1
		case *memory.Gate:
			if at++; !open || r.T != at || r.Admit != last+1 {
				t.Errorf("%s: step %d of part %d where step %d of part %d comes", stream, r.T, r.Admit, at, last+1)
			}
			if r.Reason == "" || r.ReasonCode == "" || r.Policy == "" || r.PromptVersion == "" {
				t.Errorf("%s: step %d does not say why: %+v", stream, r.T, r)
			}
			gates++
		case *memory.RunEnd:
			if !open || r.Admit != last+1 {
				t.Errorf("%s: end of part %d after part %d", stream, r.Admit, last)
			}
			open, last = false, r.Admit
		}
	}
	if open {
		t.Errorf("%s: a run is open", stream)
	}
	return runs, gates
}

// drive runs gate alone, in order, until nothing is left for it or it fails.
func drive(t *testing.T, w *functest.World, queue ...ce.Event) error {
	t.Helper()
	for ; len(queue) > 0; queue = queue[1:] {
		if event.Type(queue[0].Type()) == event.RunEnded {
			continue
		}
		out, err := w.Gate.Handle(t.Context(), queue[0])
		if err != nil {
			return err
		}
		queue = append(queue, out...)
	}
	return nil
}

func TestFoldsInOrder(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	w.Ask("shop", "decisions", "rules")
	admit(t, w)
	out, err := w.Gate.Handle(t.Context(), event.New(event.ChunksReady, "learn", event.Part{Tenant: functest.Tenant, Project: "shop", Seq: 3, Source: w.Admits("shop")[2].Source}))
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, e := range out {
		d, err := event.Decode[event.Stream](e)
		if err != nil || e.Type() != string(event.RunRequested) {
			t.Fatal(e, err)
		}
		asked = append(asked, d.Stream)
	}
	if diff := cmp.Diff([]string{stream("decisions"), stream("rules")}, asked); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if w.Gate.PolicyCalls() != 0 {
		t.Error("the request itself asks the policy")
	}
	w.Run(out...)
	for _, id := range []string{"decisions", "rules"} {
		runs, gates := steps(t, w, stream(id))
		if runs != 3 || gates < 5 {
			t.Errorf("%s: %d runs, %d gates", id, runs, gates)
		}
	}
	if n := w.Gate.PolicyCalls(); n != int64(2*len(functest.Of[*memory.Gate](w.Records("shop", stream("rules"))))) {
		t.Errorf("%d policy calls", n)
	}
	w.Hashes()
	// Every event once more changes nothing and asks nobody.
	before, h := w.Gate.PolicyCalls(), hash(t, w)
	w.Stores.Calls()
	w.Run(append(out, questionsChanged(), requested("rules", 99))...)
	if w.Gate.PolicyCalls() != before || hash(t, w) != h {
		t.Error("repeats do work again")
	}
	// An unknown stream is that of a removed question, not an error.
	if out, err := w.Gate.Handle(t.Context(), requested("gone", 0)); err != nil || len(out) != 0 {
		t.Errorf("a stream nobody asks for: %v %v", out, err)
	}
	if _, err := w.Gate.Handle(t.Context(), event.New(event.VectorsReady, "embed", event.Segment{Tenant: functest.Tenant, Project: "shop", Stream: stream("rules"), Seq: 1})); !fault.Is(err, fault.Invalid) {
		t.Errorf("an event of another function: %v", err)
	}
}

// TestSlices: a slice of no time at all still makes a step, and the stream is
// the same however it is cut.
func TestSlices(t *testing.T) {
	t.Parallel()
	want := undisturbed(t)
	for _, step := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 10 * time.Second, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			now := functest.Epoch
			w := world(t, functest.Options{Slice: 400 * time.Millisecond, Now: func() time.Time { now = now.Add(step); return now }})
			admit(t, w)
			seen := w.Run(requested("decisions", 0))
			slices := 0
			for _, e := range seen {
				if e == event.RunContinued {
					slices++
				}
			}
			if step >= 10*time.Second && slices < 4 {
				t.Errorf("%d slices: %v", slices, seen)
			}
			if got := hash(t, w); got != want {
				t.Errorf("hash %s, want %s", got.Short(), want.Short())
			}
			steps(t, w, stream("decisions"))
			w.Hashes()
		})
	}
}

// TestLostAppend: another writer takes the stream on just before an append.
func TestLostAppend(t *testing.T) {
	t.Parallel()
	want := undisturbed(t)
	w := world(t, functest.Options{})
	admit(t, w)
	other := world(t, functest.Options{From: w}) // the same folder: it takes the lease over
	once := false
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op != memstore.OpPut || !strings.HasSuffix(c.Key, "/questions/"+stream("decisions")+"/00000000000000000001.jsonl") || once {
			return nil
		}
		once = true
		_, err := other.Gate.Handle(t.Context(), requested("decisions", 0))
		return err
	}, nil)
	w.Run(requested("decisions", 0))
	if !once {
		t.Fatal("the race was not run")
	}
	if got := hash(t, w); got != want {
		t.Errorf("hash %s, want %s", got.Short(), want.Short())
	}
	steps(t, w, stream("decisions"))
	w.Hashes()
}

// TestLeaseHeld: another process works on the stream; no policy call is made
// twice, and what was admitted meanwhile is asked for by the holder.
func TestLeaseHeld(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	admit(t, w)
	other := world(t, functest.Options{From: w, Folder: "elsewhere"})
	lease, err := w.Log.Acquire(t.Context(), functest.Tenant+"/shop/"+stream("decisions"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.Gate.Handle(t.Context(), requested("decisions", 0))
	if err != nil || len(out) != 0 || other.Gate.PolicyCalls() != 0 {
		t.Errorf("under another's lease: %v, %v, %d policy calls", out, err, other.Gate.PolicyCalls())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.Run(requested("decisions", 0))
	if got, want := hash(t, other), undisturbed(t); got != want {
		t.Errorf("hash %s, want %s", got.Short(), want.Short())
	}
}

// TestAdmittedMeanwhile: a part is admitted after the slice has read the admit
// stream; the notification that comes meanwhile finds the stream taken.
func TestAdmittedMeanwhile(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	body := functest.Decision("s1", start, "We decided to cap retries at 5 attempts, because the upstream bans us after that.")
	if _, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", body)); err != nil {
		t.Fatal(err)
	}
	once := false
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op != memstore.OpPut || !strings.Contains(c.Key, "/questions/"+stream("decisions")+"/") || once {
			return nil
		}
		once = true
		es, err := w.Learn.Handle(t.Context(), w.Put("shop/b.jsonl", functest.Decision("s2", start, "Never deploy on Fridays, no exceptions.")))
		if err != nil {
			return err
		}
		for _, e := range es {
			out, err := w.Gate.Handle(t.Context(), e)
			if err != nil {
				return err
			}
			for _, e := range out { // the stream is taken: nothing comes of it
				if more, err := w.Gate.Handle(t.Context(), e); err != nil || len(more) != 0 {
					return errors.Join(err, fmt.Errorf("%v", more))
				}
			}
		}
		return nil
	}, nil)
	w.Run(requested("decisions", 0))
	if runs, _ := steps(t, w, stream("decisions")); runs != 2 {
		t.Errorf("%d runs, want both parts", runs)
	}
	if n, err := w.Gate.Behind(t.Context()); err != nil || n != 0 {
		t.Errorf("behind %d %v", n, err)
	}
}

var errKilled = fault.As(fault.Unavailable, errors.New("injected"))

// TestKilledAtEachCall ends the process at each store call of a run in slices,
// before and after the call's effect; the next process goes on.
func TestKilledAtEachCall(t *testing.T) {
	t.Parallel()
	want := undisturbed(t)
	clock := func() func() time.Time {
		now := functest.Epoch
		return func() time.Time { now = now.Add(10 * time.Second); return now }
	}
	for _, effect := range []bool{false, true} {
		t.Run(fmt.Sprintf("effect=%t", effect), func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n += functest.Stride(7) {
				w := world(t, functest.Options{Slice: time.Second, Now: clock()})
				admit(t, w)
				reached := w.Stores.DieAt(n, effect, errKilled)
				if err := drive(t, w, requested("decisions", 0)); err != nil && !fault.Is(err, fault.Unavailable) {
					t.Errorf("call %d: %v is no reason to come again", n, err)
				}
				w.Stores.Fail(nil, nil)
				if !reached() {
					if n < 20 {
						t.Fatalf("the run makes %d store calls only", n)
					}
					break
				}
				next := world(t, functest.Options{From: w, Slice: time.Second, Now: clock()})
				out, err := next.Gate.Handle(t.Context(), event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"}))
				if err := errors.Join(err, drive(t, next, out...)); err != nil {
					t.Fatalf("after call %d: %v", n, err)
				}
				if got := hash(t, next); got != want {
					t.Errorf("killed at call %d: hash %s, want %s", n, got.Short(), want.Short())
				}
				steps(t, next, stream("decisions"))
			}
		})
	}
}

func serving(t *testing.T, w *functest.World, id string) string {
	t.Helper()
	s, _, err := w.Catalog.Serving(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	return s.Serving[id]
}

// TestRewordedQuestion: the new wording back-fills while the old stream serves;
// other streams do not move.
func TestRewordedQuestion(t *testing.T) {
	t.Parallel()
	now := functest.Epoch
	w := world(t, functest.Options{Slice: time.Second, Now: func() time.Time { now = now.Add(10 * time.Second); return now }})
	w.Ask("shop", "decisions", "rules")
	admit(t, w)
	w.Run(questionsChanged())
	old := stream("rules")
	if got := serving(t, w, "rules"); got != old {
		t.Fatalf("serving %q, want %q", got, old)
	}
	before := w.Hashes()
	var set struct {
		Questions []struct {
			ID, Stream, Serving string
			CaughtUp            bool `json:"caught_up"`
		}
	}
	w.Post("/memory/questions", map[string]any{"project": "shop", "id": "rules", "question": "Which rules hold now?"}, 200, &set)
	reworded := memory.StreamName("rules", "Which rules hold now?")
	if q := set.Questions[1]; len(set.Questions) != 2 || q.Stream != reworded || q.Serving != old || q.CaughtUp {
		t.Errorf("%+v", set)
	}
	es := w.Published()
	if len(es) != 1 || es[0].Type() != string(event.QuestionsChanged) {
		t.Fatalf("published %v", es)
	}
	// One slice after the other: the old stream serves until the last.
	queue, slices := es, 0
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if event.Type(e.Type()) == event.RunEnded {
			continue
		}
		out, err := w.Gate.Handle(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		queue = append(queue, out...)
		goesOn := false
		for _, e := range queue {
			goesOn = goesOn || event.Type(e.Type()) != event.RunEnded
		}
		want := old
		if !goesOn {
			want = reworded
		}
		if got := serving(t, w, "rules"); got != want {
			t.Errorf("after slice %d %q serves, want %q", slices, got, want)
		}
		slices++
	}
	if slices < 4 {
		t.Errorf("%d slices only", slices)
	}
	w.Sweep()
	after := w.Hashes()
	for name, h := range before.Streams {
		if after.Streams[name] != h {
			t.Errorf("stream %s moved", name)
		}
	}
	if len(after.Streams) != len(before.Streams)+1 {
		t.Errorf("%d streams, want %d", len(after.Streams), len(before.Streams)+1)
	}
	// The new stream decides as the old one did: same parts, same chunks.
	if a, b := len(functest.Of[*memory.Gate](w.Records("shop", old))), len(functest.Of[*memory.Gate](w.Records("shop", reworded))); a != b {
		t.Errorf("%d gates, the old wording had %d", b, a)
	}
}

func TestRemovedQuestion(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	w.Ask("shop", "decisions", "rules")
	admit(t, w)
	w.Run(questionsChanged())
	before := w.Hashes()
	if rec := w.Call("DELETE", "/memory/questions/rules?project=shop", nil); rec.Code != 200 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	w.Run(w.Published()...)
	if diff := cmp.Diff(before, w.Hashes()); diff != "" {
		t.Errorf("removing a question changed the log (-before +after):\n%s", diff)
	}
	w.Learned("shop/later.jsonl", functest.Decision("s9", start.Add(96*time.Hour), "Never deploy on Fridays, no exceptions."))
	if runs, _ := steps(t, w, stream("decisions")); runs != 4 {
		t.Errorf("decisions: %d runs, want 4", runs)
	}
	if runs, _ := steps(t, w, stream("rules")); runs != 3 {
		t.Errorf("the removed question goes on: %d runs, want 3", runs)
	}
	// Asked again in the same words it goes on where it was.
	w.Ask("shop", "decisions", "rules")
	w.Run(questionsChanged())
	if runs, _ := steps(t, w, stream("rules")); runs != 4 {
		t.Errorf("asked again: %d runs, want 4", runs)
	}
}

// BenchmarkChunk is the loop above the store's own writes: a policy that costs
// nothing, and chunks that are in the cache. DESIGN wants at most 1 ms a chunk.
func BenchmarkChunk(b *testing.B) {
	real, err := token.Default()
	if err != nil {
		b.Fatal(err)
	}
	for name, p := range map[string]gru.Policy{"policy=none": closed{}, "policy=extractive": extractpolicy.New(extractive.Options{})} {
		b.Run(name, func(b *testing.B) {
			w := world(b, functest.Options{Policy: p, Count: real.Count})
			if _, err := w.Learn.Handle(b.Context(), w.Put("shop/a.jsonl", functest.Long("s1", start, 100))); err != nil {
				b.Fatal(err)
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				w.Ask("shop", fmt.Sprintf("q%d", n)) // a new stream each time
				if _, err := w.Gate.Handle(b.Context(), requested(fmt.Sprintf("q%d", n), 0)); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(w.Gate.PolicyCalls()), "µs/chunk")
		})
	}
}

// closed keeps nothing.
type closed struct{}

func (closed) Name() string          { return "closed/1" }
func (closed) PromptVersion() string { return "-" }
func (closed) Decide(gru.PolicyInput) gru.Decision {
	return gru.Decision{FormatOK: true, Reason: "nothing is looked at", ReasonCode: gru.ReasonClosed}
}
