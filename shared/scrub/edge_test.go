package scrub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/projection"
	"github.com/mneme-ai/mneme/shared/serve"
)

// patterns makes the given expressions the user's own.
func patterns(t *testing.T, w *functest.World, exprs ...string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("patterns:\n")
	for i, e := range exprs {
		fmt.Fprintf(&b, "  - name: p%d\n    regexp: '%s'\n", i, e)
	}
	if len(exprs) == 0 {
		b.Reset()
	}
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte(b.String())); err != nil {
		t.Fatal(err)
	}
}

func clean(t *testing.T, w *functest.World) {
	t.Helper()
	for _, k := range leaks(t, w) {
		t.Error("holds a secret: " + k)
	}
	w.Hashes()
	sameState(t, w)
}

var injected = fault.As(fault.Unavailable, errors.New("injected"))

// TestLooseBlobs: an admission that died left chunk texts that no part names.
func TestLooseBlobs(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()[7])
	e := w.Put("shop/late.jsonl", bodies()[0])
	w.Stores.Fail(func(c functest.Call) error {
		if c.Write() && strings.HasPrefix(c.Key, "log/") {
			return injected
		}
		return nil
	}, nil)
	if _, err := w.Learn.Handle(t.Context(), e); err == nil {
		t.Fatal("it was admitted")
	}
	w.Stores.Fail(nil, nil)
	if len(leaks(t, w)) == 0 {
		t.Fatal("no blob holds the secret: the test proves nothing")
	}
	next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
	forbid(t, next)
	scrubbed(t, next)
	clean(t, next)
	next.Run(e)
	clean(t, next)
	if r := scrubbed(t, next).Projects[0]; r.Tombstone != "" {
		t.Errorf("once more: %+v", r)
	}
}

// TestKilledThenOtherRules: a scrub dies anywhere, and the next one knows more
// secrets: nothing of the first one's work holds them, and all checks hold.
func TestKilledThenOtherRules(t *testing.T) {
	t.Parallel()
	few := [][]byte{
		functest.Decision("s0", day, "We decided to sign the releases with the keys "+secret+" and BETA-00112233, because the old one leaked."),
		functest.Decision("s1", day.AddDate(0, 0, 1), "From now on the mirror of the index is BETA-44556677, since the first one is slow."),
	}
	step := 3
	if testing.Short() {
		step = 11
	}
	step *= functest.Stride(4)
	for n := 0; ; n += step {
		w := taught(t, reference(), few...)
		patterns(t, w, "ACME-[0-9a-f]{10}")
		reached := w.Stores.DieAt(n, true, injected)
		_, err := w.Learn.Scrub(t.Context(), "", false, nil)
		w.Stores.Fail(nil, nil)
		if !reached() {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
		patterns(t, next, "ACME-[0-9a-f]{10}", "BETA-[0-9]{8}")
		scrubbed(t, next)
		next.Sweep()
		before := t.Failed()
		clean(t, next)
		for _, k := range holding(t, next, "BETA-") {
			t.Error("holds a later secret: " + k)
		}
		if t.Failed() && !before {
			t.Fatalf("died at %d", n)
		}
	}
}

// holding is leaks for any words.
func holding(t *testing.T, w *functest.World, words string) (out []string) {
	t.Helper()
	for info, err := range w.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(info.Key, "config/") {
			continue
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), info.Key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(info.Key, "blob/"+functest.Tenant+"/shop/"); ok {
			if b, err = w.Log.Blob(t.Context(), "shop", memory.SHA(rest)); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(string(b), words) {
			out = append(out, info.Key)
		}
	}
	return out
}

// TestChain: rules that grow three times, with more learned in between.
func TestChain(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), slices.Delete(slices.Clone(bodies()), 5, 7)...)
	exprs := []string{"ACME-[0-9a-f]{10}", "mirror of the index", "(?:signed?|releases)"}
	for i := range exprs {
		patterns(t, w, exprs[:i+1]...)
		if r := scrubbed(t, w).Projects[0]; r.Tombstone == "" || r.Evidence == 0 {
			t.Errorf("%d: %+v", i, r)
		}
		clean(t, w)
		w.Learned(fmt.Sprintf("shop/more-%d.jsonl", i), functest.Decision(fmt.Sprintf("m%d", i), day.AddDate(0, 0, 10+i), fmt.Sprintf("We decided to keep %d builds of the tool, because the disk is small.", 10+i)))
		clean(t, w)
		want := w.Hashes()
		if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.Hashes()); diff != "" {
			t.Errorf("%d: rebuild (-before +after):\n%s", i, diff)
		}
	}
	for _, k := range holding(t, w, "mirror of the index") {
		t.Error("holds it: " + k)
	}
}

// TestPatternTakenBack: a text that was scrubbed is learned again, from another
// document, when the pattern stands no more; and then the pattern comes back.
func TestPatternTakenBack(t *testing.T) {
	t.Parallel()
	doc := "# Releases\n\nWe decided to sign the releases with the key " + secret + " from now on, because the old one leaked. We never sign on Fridays, since nobody is there.\n"
	w := functest.New(t, reference())
	w.Ask("shop", "decisions", "rules")
	w.Learned("shop/a.md", []byte(doc))
	forbid(t, w)
	scrubbed(t, w)
	clean(t, w)
	patterns(t, w)
	w.Learned("shop/b.md", []byte(doc+"\n# Other\n\nWe decided to keep ten builds, because the disk is small.\n"))
	w.Hashes()
	sameStateOnly(t, w)
	// Other rules find nothing in it: what stands is left alone.
	patterns(t, w, "nothing-of-the-kind", "ten builds")
	scrubbed(t, w)
	w.Hashes()
	sameStateOnly(t, w)
	forbid(t, w)
	scrubbed(t, w)
	clean(t, w)
}

func sameStateOnly(t *testing.T, w *functest.World) {
	t.Helper()
	for _, s := range w.Streams("shop") {
		memoryOf(t, w, s)
	}
}

// TestLearnedAgainBeforeTheEnd: a scrub is killed, its pattern taken back, and a
// text that it was to drop is admitted anew: it stays.
func TestLearnedAgainBeforeTheEnd(t *testing.T) {
	t.Parallel()
	doc := "# Releases\n\nWe decided to sign the releases with the key " + secret + " from now on, because the old one leaked.\n"
	w := functest.New(t, reference())
	w.Ask("shop", "decisions", "rules")
	w.Learned("shop/a.md", []byte(doc))
	forbid(t, w)
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op == memstore.OpDelete {
			return injected
		}
		return nil
	}, nil)
	if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err == nil {
		t.Fatal("it was not killed")
	}
	w.Stores.Fail(nil, nil)
	patterns(t, w)
	w.Learned("shop/b.md", []byte(doc+"\n# Other\n\nWe decided to keep ten builds, because the disk is small.\n"))
	scrubbed(t, w)
	w.Hashes()
	forbid(t, w)
	scrubbed(t, w)
	clean(t, w)
}

// TestIndexWithoutItsEvents: the process dies when the log is scrubbed and
// nothing of what it announced was delivered.
func TestIndexWithoutItsEvents(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()[:4]...)
	forbid(t, w)
	if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil {
		t.Fatal(err)
	}
	w.Published() // lost
	next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
	if n, err := next.Project.Behind(t.Context()); err != nil || n == 0 {
		t.Errorf("nothing is behind: %d %v", n, err)
	}
	next.Sweep()
	got := next.Hashes()
	if n, err := next.Project.Behind(t.Context()); err != nil || n != 0 {
		t.Errorf("behind after the sweep: %d %v", n, err)
	}
	if _, err := next.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(next.Hashes(), got); diff != "" {
		t.Errorf("the sweep left other rows (-rebuilt +swept):\n%s", diff)
	}
}

// TestGateBeside: a slice of the gate comes at every call that a scrub makes to
// the store; what it read before does not come back later.
func TestGateBeside(t *testing.T) {
	t.Parallel()
	step := 3
	if testing.Short() {
		step = 17
	}
	for n := 0; ; n += step {
		w := functest.New(t, reference())
		w.Ask("shop", "decisions", "rules")
		for i, b := range bodies()[:4] {
			if _, err := w.Learn.Handle(t.Context(), w.Put(fmt.Sprintf("shop/%d.jsonl", i), b)); err != nil {
				t.Fatal(err)
			}
		}
		forbid(t, w)
		run := func(id string) {
			name := memory.StreamName(id, functest.Wording(id))
			if _, err := w.Gate.Handle(t.Context(), event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: name})); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		// One stream at call n, the other when that one's scrub is over: the
		// second has the first one's parts in the cache.
		var mu sync.Mutex
		seen, first, second, busy := 0, false, false, false
		w.Stores.Fail(func(c functest.Call) error {
			mu.Lock()
			defer mu.Unlock()
			if busy {
				return nil
			}
			seen++
			do := func(id string) {
				busy = true
				mu.Unlock()
				run(id)
				mu.Lock()
				busy = false
			}
			switch {
			case !first && seen > n:
				first = true
				do("rules")
			case first && !second && c.Op == memstore.OpDelete && strings.Contains(c.Key, "blob/"):
				second = true
				do("decisions")
			}
			return nil
		}, nil)
		_, err := w.Learn.Scrub(t.Context(), "", false, nil)
		w.Stores.Fail(nil, nil)
		if err != nil {
			t.Fatalf("at %d: %v", n, err)
		}
		w.Run(w.Published()...)
		w.Sweep()
		clean(t, w)
		if t.Failed() {
			t.Fatalf("gate at call %d", n)
		}
		if !first {
			return
		}
	}
}

// TestLateWriter: a statement that was appended all the same, by a gate that
// had lost its lease unknowingly, is found by the next scrub.
func TestLateWriter(t *testing.T) {
	t.Parallel()
	behind := func() *functest.World {
		w := functest.New(t, reference())
		w.Ask("shop", "decisions")
		if _, err := w.Learn.Handle(t.Context(), w.Put("shop/0.jsonl", bodies()[0])); err != nil {
			t.Fatal(err)
		}
		return w
	}
	other := behind()
	other.Sweep()
	stream := memory.StreamName("decisions", functest.Wording("decisions"))
	late := other.Records("shop", stream)
	w := behind()
	forbid(t, w)
	if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Log.Append(t.Context(), "shop", stream, eventlog.Head{}, late); err != nil {
		t.Fatal(err)
	}
	if len(leaks(t, w)) == 0 {
		t.Fatal("nothing leaks: the test proves nothing")
	}
	w.Run(w.Published()...)
	scrubbed(t, w)
	w.Sweep()
	clean(t, w)
}

// TestWordsOfTheGate: a secret that stands in no chunk but in what the loop
// wrote beside it.
func TestWordsOfTheGate(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()[7])
	stream := memory.StreamName("decisions", functest.Wording("decisions"))
	recs := w.Records("shop", stream)
	other := functest.New(t, reference())
	other.Ask("shop", "decisions")
	if _, err := other.Learn.Handle(t.Context(), other.Put("shop/0.jsonl", bodies()[7])); err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		switch r := r.(type) {
		case *memory.Gate:
			r.Think = "they use " + secret
		case *memory.Run:
			r.Question += " Is it " + another + "?"
		}
	}
	if _, err := other.Log.Append(t.Context(), "shop", stream, eventlog.Head{}, recs); err != nil {
		t.Fatal(err)
	}
	other.Sweep()
	forbid(t, other)
	scrubbed(t, other)
	clean(t, other)
	if r := scrubbed(t, other).Projects[0]; r.Tombstone != "" {
		t.Errorf("once more: %+v", r)
	}
}

// TestDeadLetters: the bytes of a torn segment and of a damaged blob were set
// aside, and hold what the rules now know.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()[7])
	stream := memory.StreamName("decisions", functest.Wording("decisions"))
	key := "log/" + functest.Tenant + "/shop/questions/" + stream + "/00000000000000000002.jsonl"
	if _, err := w.Bucket.Put(t.Context(), key, []byte(`{"v":1,"type":"header","text":"`+secret)); err != nil {
		t.Fatal(err)
	}
	w.Learned("shop/more.jsonl", bodies()[1])
	body := func() (n int) {
		for d, err := range w.Log.DeadLetters(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(d.Body), secret) {
				n++
			}
		}
		return n
	}
	if body() != 1 {
		t.Fatalf("%d letters hold the secret: the test proves nothing", body())
	}
	forbid(t, w)
	r := scrubbed(t, w).Projects[0]
	if body() != 0 {
		t.Errorf("a letter holds the secret after %+v", r)
	}
	clean(t, w)
	if r := scrubbed(t, w).Projects[0]; r.Tombstone != "" {
		t.Errorf("once more: %+v", r)
	}
}

// TestQuestion: the wording of a question is the asker's own; it is reported.
func TestQuestion(t *testing.T) {
	t.Parallel()
	w := functest.New(t, reference())
	file := "project: shop\nqueries:\n  - id: keys\n    question: Where is " + secret + " used?\n"
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/shop/questions.yaml", []byte(file)); err != nil {
		t.Fatal(err)
	}
	w.Learned("shop/a.jsonl", bodies()[7])
	forbid(t, w)
	for range 2 {
		r := scrubbed(t, w).Projects[0]
		if len(r.Names) != 1 || !strings.Contains(r.Names[0], "wording of question") {
			t.Errorf("%q", r.Names)
		}
		for _, s := range w.Streams("shop") {
			for _, run := range functest.Of[*memory.Run](w.Records("shop", s)) {
				if strings.Contains(run.Question, secret) {
					t.Errorf("run of %s asks %q", s, run.Question)
				}
			}
		}
	}
}

// TestEmbedBeside: a scrub comes between the reading of a segment and the writing
// of its vectors.
func TestEmbedBeside(t *testing.T) {
	t.Parallel()
	w := functest.New(t, reference())
	w.Ask("shop", "decisions")
	es, err := w.Learn.Handle(t.Context(), w.Put("shop/0.jsonl", bodies()[0]))
	for len(es) > 0 && err == nil && es[0].Type() != string(event.RunEnded) {
		es, err = w.Gate.Handle(t.Context(), es[0])
	}
	if err != nil || len(es) == 0 {
		t.Fatalf("%d events, %v", len(es), err)
	}
	stream := memory.StreamName("decisions", functest.Wording("decisions"))
	forbid(t, w)
	came := false
	w.Stores.Fail(func(c functest.Call) error {
		if came || !c.Write() || !strings.HasPrefix(c.Key, "vector/") {
			return nil
		}
		came = true
		_, err := w.Learn.Scrub(t.Context(), "", false, nil)
		return err
	}, nil)
	out, err := w.Embed.Handle(t.Context(), es[0])
	if err != nil || !came {
		t.Fatal(came, err)
	}
	w.Stores.Fail(nil, nil)
	w.Run(append(out, w.Published()...)...)
	seg, err := w.Log.Segment(t.Context(), "shop", stream, 1)
	if err != nil {
		t.Fatal(err)
	}
	stated := projection.Stated(&seg)
	v, _, err := w.Log.Vectors(t.Context(), "shop", w.Space.ID, stream, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range v.Passages {
		if !stated[p] {
			t.Errorf("a vector of %s, which was erased", p.Short())
		}
	}
	clean(t, w)
}

// TestBesideTheBroker: a scrub runs while events are delivered; then all that
// stands is clean, and as a rebuild gives it.
func TestBesideTheBroker(t *testing.T) {
	t.Parallel()
	w := functest.New(t, reference())
	w.Ask("shop", "decisions", "rules", "causes")
	b := serve.NewBroker(serve.BrokerConfig{Attempts: 6, BackoffBase: 20 * time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	client := &http.Client{Transport: serve.Local(b)}
	for name, fn := range w.Functions() {
		s := serve.New(fn, serve.Config{Sink: "http://broker.mneme.local/", Client: client})
		if err := s.Open(ctx); err != nil {
			t.Fatal(err)
		}
		b.Subscribe(name, s.Handler())
	}
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	few := slices.Delete(slices.Clone(bodies()), 6, 7)
	send := func(round int) {
		for i, body := range few {
			if round > 0 {
				body = bytes.ReplaceAll(body, []byte(`"s`), fmt.Appendf(nil, `"r%d-`, round))
			}
			if err := b.Publish(t.Context(), w.Put(fmt.Sprintf("shop/%d-%d.jsonl", round, i), body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(0)
	forbid(t, w)
	send(1)
	for range 3 {
		if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range w.Published() {
			if err := b.Publish(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if s := b.Stats(); s.Dead > 0 {
		t.Errorf("dead letters: %+v", s)
	}
	w.Sweep()
	clean(t, w)
	want := w.Hashes()
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.Hashes()); diff != "" {
		t.Errorf("rebuild (-before +after):\n%s", diff)
	}
}

// TestTombstoneIsReadOnce: it holds the edits of the whole project; were it read
// for each part, the time would be the square of the parts.
func TestTombstoneIsReadOnce(t *testing.T) {
	t.Parallel()
	var many [][]byte
	for i := range 30 {
		many = append(many, functest.Decision(fmt.Sprintf("s%d", i), day, fmt.Sprintf("We decided to sign release %d with the key ACME-%010x, because the old one leaked.", i, i)))
	}
	w := taught(t, reference(), many...)
	forbid(t, w)
	w.Stores.Calls()
	scrubbed(t, w)
	w.Hashes()
	reads := 0
	for _, c := range w.Stores.Calls() {
		if c.Op == memstore.OpGet && strings.Contains(c.Key, "/tombstones/") {
			reads++
		}
	}
	if reads > 10 {
		t.Errorf("the tombstone of 30 parts was read %d times", reads)
	}
}
