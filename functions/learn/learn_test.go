package learn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

var start = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

func decision(id string) []byte {
	return functest.Decision(id, start, "We decided to cap retries at 5 attempts, because the upstream bans us after that.")
}

// object is the version that a notification announces.
func object(t *testing.T, e ce.Event) event.Object {
	t.Helper()
	o, err := event.Decode[event.Object](e)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func receive(t *testing.T, w *functest.World, e ce.Event) learn.Result {
	t.Helper()
	r, err := w.Learn.Object(t.Context(), object(t, e))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAdmitsOnce(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	e := w.Put("shop/a.jsonl", decision("s1"))
	first := receive(t, w, e)
	if first.Receipt.Outcome != learn.OutcomeAdmitted || first.Repeat || len(first.Events) != 1 {
		t.Fatalf("first delivery: %+v", first)
	}
	late := w.Put("shop/b.jsonl", decision("s2"))
	receive(t, w, late)
	w.Stores.Calls()
	again := receive(t, w, e)
	if !again.Repeat || len(again.Events) != 0 {
		t.Errorf("a late repeat: %+v", again)
	}
	calls := w.Stores.Calls()
	if len(calls) != 1 || calls[0].Op != memstore.OpGet {
		t.Errorf("a repeated notification costs %v, want one get", calls)
	}
	if again.Receipt.Outcome != first.Receipt.Outcome {
		t.Errorf("outcome %q, first %q", again.Receipt.Outcome, first.Receipt.Outcome)
	}
	if diff := cmp.Diff(first.Receipt.Parts, again.Receipt.Parts); diff != "" {
		t.Errorf("the first answer is not the second (-first +again):\n%s", diff)
	}
	// A process that starts anew knows no more than the store.
	next := functest.New(t, functest.Options{From: w})
	w.Stores.Calls()
	if r := receive(t, next, e); !r.Repeat {
		t.Errorf("after a restart: %+v", r)
	}
	if calls := w.Stores.Calls(); len(calls) != 1 {
		t.Errorf("after a restart a repeat costs %v", calls)
	}
	if n := len(w.Admits("shop")); n != 2 {
		t.Errorf("%d admit lines, want 2", n)
	}
}

// TestConcurrent delivers every notification of ten objects six times, at the
// same time, to two processes.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	other := functest.New(t, functest.Options{From: w})
	var wg sync.WaitGroup
	const objects = 10
	for i := range objects {
		e := w.Put(fmt.Sprintf("shop/%d.jsonl", i), decision(fmt.Sprintf("s%d", i)))
		for k := range 6 {
			wg.Go(func() {
				p := []*functest.World{w, other}[k%2]
				for range 20 {
					_, err := p.Learn.Handle(context.Background(), e)
					if err == nil {
						return
					}
					if !fault.Is(err, fault.Unavailable) { // what the broker repeats
						t.Error(err)
						return
					}
				}
				t.Errorf("object %d is refused 20 times", i)
			})
		}
	}
	wg.Wait()
	seen := map[memory.SHA]int{}
	for i, a := range w.Admits("shop") {
		if a.Seq != int64(i+1) {
			t.Errorf("line %d has seq %d", i, a.Seq)
		}
		seen[a.RawSHA256]++
	}
	if len(seen) != objects {
		t.Errorf("%d objects admitted, want %d", len(seen), objects)
	}
	for sha, n := range seen {
		if n != 1 {
			t.Errorf("%s is admitted %d times", sha.Short(), n)
		}
	}
}

func TestSameBytesOtherName(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	body := decision("s1")
	first := receive(t, w, w.Put("shop/a.jsonl", body))
	r := receive(t, w, w.Put("shop/other/b.jsonl", body))
	if r.Receipt.Outcome != learn.OutcomeDuplicate || len(r.Events) != 0 {
		t.Errorf("outcome %q with %d events, want a duplicate", r.Receipt.Outcome, len(r.Events))
	}
	if len(r.Receipt.Parts) != 1 || r.Receipt.Parts[0].Source != first.Receipt.Parts[0].Source || r.Receipt.Parts[0].Seq != 1 {
		t.Errorf("parts %+v do not name the part that stands: %+v", r.Receipt.Parts, first.Receipt.Parts)
	}
	if n := len(w.Admits("shop")); n != 1 {
		t.Errorf("%d admit lines, want 1", n)
	}
	// Another project knows nothing of it.
	if r := receive(t, w, w.Put("bank/a.jsonl", body)); r.Receipt.Outcome != learn.OutcomeAdmitted {
		t.Errorf("in another project: %q", r.Receipt.Outcome)
	}
}

func TestGrownSession(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	short := []functest.Say{
		functest.User("We decided to cap retries at 5 attempts, because the upstream bans us after that."), functest.Assistant("Understood."),
	}
	long := append(short, functest.User("From now on the cache TTL is 10 minutes, since stale prices cost us an incident."), functest.Assistant("Noted."))
	a := functest.Session("s1", start, short...)
	b := functest.Session("s1", start, long...)
	if !bytes.HasPrefix(b, a) {
		t.Fatal("the fixture does not grow")
	}
	receive(t, w, w.Put("shop/s1.jsonl", a))
	r := receive(t, w, w.Put("shop/s1.jsonl", b)) // the same key, as an agent's log grows
	if r.Receipt.Outcome != learn.OutcomeAdmitted {
		t.Fatalf("outcome %q: %s", r.Receipt.Outcome, r.Receipt.Reason)
	}
	lines := w.Admits("shop")
	if len(lines) != 2 {
		t.Fatalf("%d admit lines, want 2", len(lines))
	}
	got := lines[1]
	if got.From != int64(len(a)) || got.To != int64(len(b)) || got.RawSHA256 != memory.Sum(b) || got.PrefixSHA256 != memory.Sum(b) {
		t.Errorf("the line covers [%d,%d) raw %s, want [%d,%d) %s", got.From, got.To, got.RawSHA256.Short(), len(a), len(b), memory.Sum(b).Short())
	}
	src, chunks, err := w.Log.Source(t.Context(), "shop", got.Source)
	if err != nil {
		t.Fatal(err)
	}
	if len(src.TurnIDs) != 2 || src.Counts.Duplicates != 2 {
		t.Errorf("%d turns and %d duplicates, want 2 and 2", len(src.TurnIDs), src.Counts.Duplicates)
	}
	if len(chunks) != 1 || !chunks[0].Continues {
		t.Errorf("%d chunks, continues %t", len(chunks), chunks[0].Continues)
	}
	text, err := w.Log.Blob(t.Context(), "shop", chunks[0].SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("retries")) || !bytes.Contains(text, []byte("cache TTL")) {
		t.Errorf("the part holds more than the new turns:\n%s", text)
	}
	// The short form again, under a new name: everything in it is known.
	if r := receive(t, w, w.Put("shop/copy.jsonl", append([]byte("\n"), a...))); r.Receipt.Outcome != learn.OutcomeDuplicate {
		t.Errorf("other bytes of known turns: %q", r.Receipt.Outcome)
	}
}

func TestAutoProjects(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	body := functest.Session("s1", start,
		functest.Say{Role: "user", Text: "We decided to cap retries at 5 attempts.", Cwd: "/home/ada/shop"},
		functest.Say{Role: "assistant", Text: "Understood.", Cwd: "/home/ada/shop"},
		functest.Say{Role: "user", Text: "In the bank we never log account numbers.", Cwd: "/home/ada/bank"},
	)
	r := receive(t, w, w.Put("_auto/s1.jsonl", body))
	if r.Receipt.Outcome != learn.OutcomeAdmitted || len(r.Receipt.Parts) != 2 || len(r.Events) != 2 {
		t.Fatalf("%+v", r)
	}
	if a, b := r.Receipt.Parts[0].Project, r.Receipt.Parts[1].Project; a[:5] != "bank-" || b[:5] != "shop-" {
		t.Errorf("projects %s and %s", a, b)
	}
	for _, p := range r.Receipt.Parts {
		if n := len(w.Admits(p.Project)); n != 1 {
			t.Errorf("%s: %d admit lines", p.Project, n)
		}
	}
	// The tenant's own mapping decides before the folder's name.
	mapping := "mappings:\n  - cwd: /home/ada/bank\n    project: bank\n"
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/projects.yaml", []byte(mapping)); err != nil {
		t.Fatal(err)
	}
	r = receive(t, w, w.Put("_auto/s2.jsonl", functest.Session("s2", start, functest.Say{Role: "user", Text: "Never log card numbers either.", Cwd: "/home/ada/bank/sub"})))
	if len(r.Receipt.Parts) != 1 || r.Receipt.Parts[0].Project != "bank" {
		t.Errorf("mapped to %+v", r.Receipt.Parts)
	}
	// A worktree is its repository's, as far as the file or the path tells.
	body = append([]byte(`{"type":"worktree-state","sessionId":"s3","worktreeSession":{"originalCwd":"/home/ada/bank","worktreePath":"/trees/fix"}}`+"\n"),
		functest.Session("s3", start,
			functest.Say{Role: "user", Text: "Never log names either.", Cwd: "/trees/fix"},
			functest.Say{Role: "user", Text: "Never log addresses either.", Cwd: "/home/ada/bank/.claude/worktrees/b"})...)
	r = receive(t, w, w.Put("_auto/s3.jsonl", body))
	if len(r.Receipt.Parts) != 1 || r.Receipt.Parts[0].Project != "bank" {
		t.Errorf("worktrees go to %+v", r.Receipt.Parts)
	}
	// Without any folder it is kept apart, not lost.
	r = receive(t, w, w.Put("_auto/note.md", []byte("# Rule\n\nWe decided to use pgx.\n")))
	if len(r.Receipt.Parts) != 1 || r.Receipt.Parts[0].Project != "unsorted" {
		t.Errorf("without a folder: %+v", r.Receipt.Parts)
	}
}

func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"Shop/a.jsonl", "no-project.jsonl", "_other/a.jsonl", "-x/a.jsonl"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			w := functest.New(t, functest.Options{})
			e := w.Put(key, decision("s1"))
			for range 2 {
				r := receive(t, w, e)
				if r.Receipt.Outcome != learn.OutcomeRefused || r.Receipt.Reason == "" || len(r.Events) != 0 {
					t.Errorf("%+v", r.Receipt)
				}
			}
			var dead []eventlog.Dead
			for d, err := range w.Log.DeadLetters(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				dead = append(dead, d)
			}
			if len(dead) != 1 || dead[0].Key != functest.Inbox+"/"+key || dead[0].Hint == "" || dead[0].Function != "learn" {
				t.Errorf("dead letters %+v", dead)
			}
			if p, err := w.Learn.Pending(t.Context()); err != nil || len(p) != 0 {
				t.Errorf("the sweep would read it again: %v %v", p, err)
			}
		})
	}
}

func TestMissingObject(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	_, err := w.Learn.Handle(t.Context(), event.New(event.ObjectCreated, "s3", event.Object{Bucket: functest.Inbox, Key: "shop/gone.jsonl", ETag: "x"}))
	if !fault.Is(err, fault.Unavailable) || fault.BrokerStatus(err) != 503 {
		t.Errorf("%v: status %d, want 503: it may become visible", err, fault.BrokerStatus(err))
	}
	_, err = w.Learn.Handle(t.Context(), event.New(event.ObjectCreated, "s3", event.Object{Bucket: "elsewhere", Key: "shop/a.jsonl", ETag: "x"}))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("an event of another bucket: %v", err)
	}
	if _, err := w.Learn.Handle(t.Context(), event.New(event.RunEnded, "gate", event.Stream{Tenant: "local", Project: "shop", Stream: "a@00000000"})); !fault.Is(err, fault.Invalid) {
		t.Errorf("an event of another function: %v", err)
	}
}

// png is the signature of a PNG file and the head of its first chunk.
var png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00")

// TestBadInput says what becomes of each kind of bad input, and that the good
// lines beside it are kept.
func TestBadInput(t *testing.T) {
	t.Parallel()
	good := decision("s1")
	lines := bytes.SplitAfter(bytes.TrimSuffix(good, []byte("\n")), []byte("\n"))
	join := func(ls ...[]byte) []byte { return bytes.Join(ls, nil) }
	unknown := []byte(`{"type":"hologram","uuid":"u","sessionId":"s1","timestamp":"2026-02-01T09:00:00Z"}` + "\n")
	type counts struct{ Bad, Joined, Pending, BadUTF8, Unknown int }
	tests := map[string]struct {
		name    string
		body    []byte
		outcome string
		turns   int // admitted
		want    counts
	}{
		"empty":           {"a.jsonl", nil, learn.OutcomeEmpty, 0, counts{}},
		"blank lines":     {"a.jsonl", []byte("\n\n\n"), learn.OutcomeEmpty, 0, counts{}},
		"png":             {"a.jsonl", png, learn.OutcomeUnsupported, 0, counts{}},
		"whole":           {"a.jsonl", good, learn.OutcomeAdmitted, 6, counts{}},
		"truncated last":  {"a.jsonl", good[:len(good)-40], learn.OutcomeAdmitted, 5, counts{Pending: 1}},
		"joined lines":    {"a.jsonl", join(bytes.TrimSuffix(lines[0], []byte("\n")), lines[1], join(lines[2:]...)), learn.OutcomeAdmitted, 6, counts{Joined: 1}},
		"a broken line":   {"a.jsonl", join(lines[0], []byte("{\"type\":\"user\", oops\n"), join(lines[1:]...)), learn.OutcomeAdmitted, 6, counts{Bad: 1}},
		"wrong UTF-8":     {"a.jsonl", bytes.Replace(good, []byte("looks good"), []byte("looks \xff\xfe good"), 1), learn.OutcomeAdmitted, 6, counts{BadUTF8: 1}},
		"unknown records": {"a.jsonl", join(unknown, good, unknown), learn.OutcomeAdmitted, 6, counts{Unknown: 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := functest.New(t, functest.Options{})
			r := receive(t, w, w.Put("shop/"+tc.name, tc.body))
			if r.Receipt.Outcome != tc.outcome {
				t.Fatalf("outcome %q (%s), want %q", r.Receipt.Outcome, r.Receipt.Reason, tc.outcome)
			}
			if tc.outcome != learn.OutcomeAdmitted {
				if r.Receipt.Reason == "" || len(w.Admits("shop")) != 0 {
					t.Errorf("reason %q, %d admit lines", r.Receipt.Reason, len(w.Admits("shop")))
				}
				return
			}
			src, _, err := w.Log.Source(t.Context(), "shop", w.Admits("shop")[0].Source)
			if err != nil {
				t.Fatal(err)
			}
			if len(src.TurnIDs) != tc.turns {
				t.Errorf("%d turns, want %d", len(src.TurnIDs), tc.turns)
			}
			got := counts{src.Counts.Bad, src.Counts.Joined, src.Counts.Pending, src.Counts.BadUTF8, 0}
			for _, n := range src.Counts.Unknown {
				got.Unknown += n
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if r.Receipt.Counts == nil || r.Receipt.Counts.Bad != tc.want.Bad {
				t.Errorf("the receipt's counts are %+v", r.Receipt.Counts)
			}
		})
	}
}

// TestCutLastLine is the agent that writes while the file is uploaded: the last
// line comes whole the next time and is not lost.
func TestCutLastLine(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	good := decision("s1")
	receive(t, w, w.Put("shop/a.jsonl", good[:len(good)-40]))
	r := receive(t, w, w.Put("shop/a.jsonl", good))
	if r.Receipt.Outcome != learn.OutcomeAdmitted {
		t.Fatalf("%+v", r.Receipt)
	}
	lines := w.Admits("shop")
	src, _, err := w.Log.Source(t.Context(), "shop", lines[1].Source)
	if err != nil {
		t.Fatal(err)
	}
	if len(src.TurnIDs) != 1 || lines[0].To != lines[1].From {
		t.Errorf("%d turns; the first part ends at %d, the second begins at %d", len(src.TurnIDs), lines[0].To, lines[1].From)
	}
}

var errKilled = fault.As(fault.Unavailable, errors.New("injected"))

// severalParts is an object that is too large for one part.
const severalParts = "several parts"

// fixtures are uploads whose admission is disturbed: the last event is the one
// that is, all before it are admitted in peace.
var fixtures = map[string]func(w *functest.World) []ce.Event{
	severalParts: func(w *functest.World) []ce.Event {
		return []ce.Event{w.Put("shop/a.jsonl", functest.Brief("s1", start, 3))}
	},
	"one part": func(w *functest.World) []ce.Event {
		return []ce.Event{w.Put("shop/a.jsonl", functest.Brief("s1", start, 2))}
	},
	"two projects": func(w *functest.World) []ce.Event {
		return []ce.Event{w.Put("_auto/a.jsonl", functest.Session("s1", start,
			functest.User("We decided to cap retries at 5 attempts, because the upstream bans us after that."), functest.Assistant("Understood."),
			functest.Say{Role: "user", Text: "Never log an account number, no exceptions.", Cwd: "/home/ada/bank"}))}
	},
	"a grown session": func(w *functest.World) []ce.Event {
		says := []functest.Say{functest.User("We decided to cap retries at 5 attempts."), functest.Assistant("Understood.")}
		short := functest.Session("s1", start, says...)
		long := functest.Session("s1", start, append(says, functest.User("Never deploy on Fridays, no exceptions."))...)
		return []ce.Event{w.Put("shop/a.jsonl", short), w.Put("shop/b.jsonl", long)}
	},
}

// crash runs learn on each fixture while every store call in turn goes wrong,
// and delivers the notification again afterwards.
func crash(t *testing.T, inject func(s *functest.Stores, n int, effect bool) func() bool) {
	t.Helper()
	for name, upload := range fixtures {
		for _, effect := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, effect=%t", name, effect), func(t *testing.T) {
				t.Parallel()
				partBytes := 0 // the default
				if name == severalParts {
					partBytes = 1 // a chunk a part
				}
				crashAt(t, partBytes, upload, func(s *functest.Stores, n int) func() bool { return inject(s, n, effect) })
			})
		}
	}
}

func crashAt(t *testing.T, partBytes int, upload func(w *functest.World) []ce.Event, inject func(s *functest.Stores, n int) func() bool) {
	t.Helper()
	world := func(from *functest.World) *functest.World {
		w := functest.New(t, functest.Options{From: from, Count: functest.Coarse, PartBytes: partBytes, Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
		if from == nil {
			w.Ask("shop", "decisions")
			w.Ask("bank", "decisions")
			mapping := "mappings:\n  - cwd: /home/ada/shop\n    project: shop\n  - cwd: /home/ada/bank\n    project: bank\n"
			if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/projects.yaml", []byte(mapping)); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	lines := func(w *functest.World) map[string]int {
		return map[string]int{"shop": len(w.Admits("shop")), "bank": len(w.Admits("bank"))}
	}
	calm := world(nil)
	for _, e := range upload(calm) {
		calm.Run(e)
	}
	want, wantLines := calm.Hashes(), lines(calm)
	for n := 0; ; n++ {
		w := world(nil)
		es := upload(w)
		for _, e := range es[:len(es)-1] {
			w.Run(e)
		}
		e := es[len(es)-1]
		reached := inject(w.Stores, n)
		out, err := w.Learn.Handle(t.Context(), e)
		hit := reached()
		w.Stores.Fail(nil, nil)
		if !hit {
			if n < 5 {
				t.Fatalf("learn makes %d store calls only", n)
			}
			return
		}
		next := world(w) // the process that comes after
		if err != nil {
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("call %d: %v is no reason to come again", n, err)
			}
			if out, err = next.Learn.Handle(t.Context(), e); err != nil {
				t.Fatalf("call %d: the redelivery: %v", n, err)
			}
		}
		if len(out) == 0 {
			// The receipt stood, and only its answer was lost: whoever comes again
			// is answered by one read, and the sweep finds what nobody announced.
			next.Sweep()
		}
		next.Run(out...)
		if diff := cmp.Diff(wantLines, lines(next)); diff != "" {
			t.Errorf("call %d: admit lines (-calm +crashed):\n%s", n, diff)
		}
		if diff := cmp.Diff(want, next.Hashes()); diff != "" {
			t.Errorf("call %d: hashes differ (-calm +crashed):\n%s", n, diff)
		}
		if r := receive(t, next, e); !r.Repeat {
			t.Errorf("call %d: no receipt stands", n)
		}
	}
}

// TestFaultAtEachCall loses one call, or its answer, and goes on in the same
// store.
func TestFaultAtEachCall(t *testing.T) {
	t.Parallel()
	crash(t, func(s *functest.Stores, n int, effect bool) func() bool { return s.FailOnce(n, effect, errKilled) })
}

// TestKilledAtEachCall is a process that ends at each store call in turn.
func TestKilledAtEachCall(t *testing.T) {
	t.Parallel()
	crash(t, func(s *functest.Stores, n int, effect bool) func() bool { return s.DieAt(n, effect, errKilled) })
}

// TestAnnouncedAfterCrash: the notification that is delivered again after the
// admit line was written announces the part, as the first delivery would have.
func TestAnnouncedAfterCrash(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	e := w.Put("shop/a.jsonl", decision("s1"))
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op == memstore.OpPut && bytes.HasPrefix([]byte(c.Key), []byte("receipts/")) {
			return errKilled
		}
		return nil
	}, nil)
	if _, err := w.Learn.Handle(t.Context(), e); err == nil {
		t.Fatal("the receipt was written")
	}
	if len(w.Admits("shop")) != 1 {
		t.Fatal("the admit line does not stand")
	}
	w.Stores.Fail(nil, nil)
	r := receive(t, functest.New(t, functest.Options{From: w}), e)
	if r.Receipt.Outcome != learn.OutcomeAdmitted || len(r.Events) != 1 {
		t.Errorf("outcome %q with %d events: the part is this object's own", r.Receipt.Outcome, len(r.Events))
	}
	if len(r.Receipt.Parts) != 1 || r.Receipt.Parts[0].Chunks != 1 {
		t.Errorf("parts %+v", r.Receipt.Parts)
	}
}

// TestSeveralParts: an object that is too large for one part is admitted in
// several, and known as a whole afterwards.
func TestSeveralParts(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Count: functest.Coarse, PartBytes: 1})
	w.Ask("shop", "decisions")
	body := functest.Brief("s1", start, 4)
	r := receive(t, w, w.Put("shop/a.jsonl", body))
	if r.Receipt.Outcome != learn.OutcomeAdmitted || len(r.Receipt.Parts) < 3 || len(r.Events) != len(r.Receipt.Parts) {
		t.Fatalf("%+v", r.Receipt)
	}
	w.Run(r.Events...)
	lines := w.Admits("shop")
	for i, l := range lines {
		if more := i < len(lines)-1; l.More != more || l.Seq != int64(i+1) || l.RawSHA256 != lines[0].RawSHA256 {
			t.Errorf("line %d: %+v", i, l)
		}
	}
	one := functest.New(t, functest.Options{Count: functest.Coarse})
	one.Ask("shop", "decisions")
	one.Run(one.Put("shop/a.jsonl", body))
	kept := func(w *functest.World) (out []string) {
		for _, rec := range w.Records("shop", "decisions") {
			if e, ok := rec.(*memory.Evidence); ok {
				out = append(out, e.Text)
			}
		}
		return out
	}
	if diff := cmp.Diff(kept(one), kept(w)); diff != "" {
		t.Errorf("kept (-in one part +in several):\n%s", diff)
	}
	again := receive(t, w, w.Put("shop/b.jsonl", body))
	if again.Receipt.Outcome != learn.OutcomeDuplicate || len(w.Admits("shop")) != len(lines) {
		t.Errorf("the same bytes again: %+v", again.Receipt)
	}
	if rep, err := w.Log.Verify(t.Context(), nil); err != nil || !rep.OK {
		t.Errorf("verify: %v %v", rep.Problems, err)
	}
}

func TestSweepOrder(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	names := []string{"shop/z.jsonl", "shop/a.jsonl", "shop/m.jsonl"}
	var want []string
	for i, n := range names {
		w.Put(n, decision(fmt.Sprintf("s%d", i)))
		want = append(want, functest.Inbox+"/"+n)
	}
	w.Sweep()
	var got []string
	for _, a := range w.Admits("shop") {
		got = append(got, a.Object)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of admission (-want +got):\n%s", diff)
	}
	if p, err := w.Learn.Pending(t.Context()); err != nil || len(p) != 0 {
		t.Errorf("pending %v %v", p, err)
	}
	w.Stores.Calls()
	w.Sweep()
	for _, c := range w.Stores.Calls() {
		if c.Write() {
			t.Errorf("an idle sweep writes %s", c.Key)
		}
	}
}

// TestSweepGoesOn: objects of the same instant come by key; one that cannot be
// read does not hold up the others, and its error brings the sweep back.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Put("shop/a.jsonl", decision("s1"))
	w.Put("shop/b.jsonl", decision("s2"))
	w.Stores.Fail(func(c functest.Call) error {
		if c.Bucket == functest.Inbox && c.Key == "shop/a.jsonl" {
			return errKilled
		}
		return nil
	}, nil)
	_, err := w.Learn.Handle(t.Context(), event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"}))
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("the sweep that could not read an object answers %v", err)
	}
	if es := w.Published(); len(es) != 1 || es[0].Type() != string(event.ChunksReady) {
		t.Errorf("announced %v", es)
	}
	if n := len(w.Admits("shop")); n != 1 {
		t.Errorf("%d admit lines, want that of the readable object", n)
	}
}

// TestSweepBudget: a sweep that is over its time goes on by event.
func TestSweepBudget(t *testing.T) {
	t.Parallel()
	now := functest.Epoch
	w := functest.New(t, functest.Options{Sweep: time.Second, Now: func() time.Time { now = now.Add(time.Second); return now }})
	for i := range 4 {
		w.Put(fmt.Sprintf("shop/%d.jsonl", i), decision(fmt.Sprintf("s%d", i)))
	}
	out, err := w.Learn.Handle(t.Context(), event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"}))
	if err != nil {
		t.Fatal(err)
	}
	if last := out[len(out)-1]; last.Type() != string(event.SweepRequested) {
		t.Fatalf("the last event is %s", last.Type())
	}
	w.Run(out...)
	if n := len(w.Admits("shop")); n != 4 {
		t.Errorf("%d admit lines, want 4", n)
	}
}

func BenchmarkRepeatedNotification(b *testing.B) {
	w := functest.New(b, functest.Options{})
	e := w.Put("shop/a.jsonl", decision("s1"))
	if _, err := w.Learn.Handle(b.Context(), e); err != nil {
		b.Fatal(err)
	}
	w.Stores.Calls()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := w.Learn.Handle(b.Context(), e); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(len(w.Stores.Calls()))/float64(n), "calls/op")
}

// TestSessionMovesMeanwhile: another process admits a turn of the first session
// while this one reads the second; the turn is admitted once all the same.
func TestSessionMovesMeanwhile(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	other := functest.New(t, functest.Options{From: w})
	one := functest.Session("s1", start, functest.User("We decided to cap retries at 5 attempts."))
	two := functest.Session("s2", start, functest.User("Never deploy on Fridays, no exceptions."))
	racing := w.Put("shop/one.jsonl", append([]byte("\n"), one...)) // other bytes, the same turn
	e := w.Put("shop/both.jsonl", append(bytes.Clone(one), two...))
	reads := 0
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op != memstore.OpGet || !strings.HasSuffix(c.Key, "/admit/00000000000000000001.jsonl") {
			return nil
		}
		if reads++; reads == 2 { // the first session is read, the second is asked for
			_, err := other.Learn.Handle(t.Context(), racing)
			return err
		}
		return nil
	}, nil)
	receive(t, w, e)
	if reads < 2 {
		t.Fatal("the race was not run")
	}
	seen := map[string]int{}
	for _, a := range w.Admits("shop") {
		src, _, err := w.Log.Source(t.Context(), "shop", a.Source)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range src.TurnIDs {
			seen[id]++
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d turns admitted, want 2", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("turn %s is admitted %d times", id, n)
		}
	}
}

// TestRulesChangeMeanwhile: what was redacted by rules that no longer stand is
// not admitted; another process may have scrubbed by the new ones already.
func TestRulesChangeMeanwhile(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	e := w.Put("shop/a.jsonl", functest.Decision("s1", time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC), "We decided to sign with the key ACME-77aa88bb99, because the old one leaked."))
	set := false
	w.Stores.Fail(nil, func(c functest.Call) error {
		if set || !strings.HasPrefix(c.Key, "blob/") {
			return nil
		}
		set = true
		_, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte("patterns:\n  - name: acme\n    regexp: 'ACME-[0-9a-f]{10}'\n"))
		return err
	})
	if _, err := w.Learn.Handle(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.Stores.Fail(nil, nil)
	lines := w.Admits("shop")
	if len(lines) != 1 {
		t.Fatalf("%d parts", len(lines))
	}
	src, chunks, err := w.Log.Source(t.Context(), "shop", lines[0].Source)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		b, err := w.Log.Blob(t.Context(), "shop", c.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "ACME-") {
			t.Errorf("admitted under rules %s: %s", src.RedactRules, b)
		}
	}
}
