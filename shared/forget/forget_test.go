package forget_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

var day = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

// unique stands in the source that is forgotten and nowhere else.
var unique = []string{"quillfeather", "brambleport", "zorvath"}

func bodies() [][]byte {
	return [][]byte{
		functest.Decision("s0", day, "We decided to sign the releases with the key of the vault, because the old one leaked."),
		functest.Decision("s1", day.AddDate(0, 0, 1), "From now on the cache TTL is 10 minutes, never longer, since stale prices cost us an incident."),
		functest.Session("s2", day.AddDate(0, 0, 2),
			functest.User("From now on the cache TTL is 20 minutes instead of 10 minutes, since Quillfeather asked for it."),
			functest.Assistant("Noted, the brambleport server is told."),
			functest.User("We decided that the mirror is zorvath.example.org, because the first one is slow."),
		),
		functest.Decision("s3", day.AddDate(0, 0, 3), "Always use pgx for the database, because lib/pq is not maintained."),
	}
}

const target = "shop/2.jsonl"

func taught(t *testing.T, o functest.Options, bodies ...[]byte) *functest.World {
	t.Helper()
	w := functest.New(t, o)
	w.AskUp("shop", true, "decisions", "rules")
	for i, b := range bodies {
		w.Learned(fmt.Sprintf("shop/%d.jsonl", i), b)
	}
	return w
}

func reference() functest.Options {
	return functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()}
}

func forgotten(t *testing.T, w *functest.World, req forget.Request) forget.Receipt {
	t.Helper()
	r, err := w.Learn.Forget(t.Context(), "shop", req, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, fault.HintOf(err))
	}
	w.Run(w.Published()...)
	return r
}

// leaks names what of the store holds one of the words.
func leaks(t *testing.T, w *functest.World) (out []string) {
	t.Helper()
	for info, err := range w.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
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
		for _, word := range unique {
			if bytes.Contains(bytes.ToLower(b), []byte(word)) {
				out = append(out, info.Key+": "+word)
			}
		}
	}
	return out
}

func clean(t *testing.T, w *functest.World) {
	t.Helper()
	for _, l := range leaks(t, w) {
		t.Error("holds what was forgotten: " + l)
	}
}

// post is POST /memory/learn.
func post(w *functest.World, body map[string]any) (l learn.Learned) {
	w.T.Helper()
	rec := w.Call("POST", "/memory/learn", body)
	if err := json.Unmarshal(rec.Body.Bytes(), &l); err != nil {
		w.T.Fatalf("%v: %s", err, rec.Body)
	}
	return l
}

// present is the memory of a stream.
func present(t *testing.T, w *functest.World, id string) (text string) {
	t.Helper()
	for _, s := range w.Streams("shop") {
		if memory.QueryID(s) != id {
			continue
		}
		for _, m := range functest.Of[*memory.Memory](w.Records("shop", s)) {
			if !m.Forgotten {
				text = m.Text
			}
		}
	}
	return text
}

// TestForget: of the source nothing is left, the rest stands, what it had replaced holds
// again, and it stays away from a rebuild, a sweep and the same bytes.
func TestForget(t *testing.T) {
	t.Parallel()
	w := taught(t, functest.Options{}, bodies()...)
	w.Hashes()
	if n := len(leaks(t, w)); n < 8 {
		t.Fatalf("%d places hold the words before: the test proves nothing", n)
	}
	if m := present(t, w, "decisions"); !strings.Contains(m, "20 minutes") || strings.Contains(m, "is 10 minutes,") {
		t.Fatalf("the memory before:\n%s", m)
	}
	calls := w.Gate.PolicyCalls()
	dry := forgotten(t, w, forget.Request{Target: memory.Target{Source: "2.jsonl"}, DryRun: true})
	if dry.Tombstone != "" || dry.Removed.Evidence < 2 || dry.Removed.Memories == 0 || len(leaks(t, w)) < 8 {
		t.Errorf("a dry run: %+v", dry)
	}
	r := forgotten(t, w, forget.Request{Target: memory.Target{Source: "2.jsonl"}})
	b, _ := json.MarshalIndent(r, "", " ")
	t.Logf("%s", b)
	if !r.OK || r.Proof.Words == 0 || r.Removed.Evidence != dry.Removed.Evidence || r.Removed.Memories != dry.Removed.Memories || r.Removed.Vectors == 0 || r.Removed.Receipts != 1 || r.Removed.Sources != 1 {
		t.Errorf("%+v", r)
	}
	for _, word := range unique {
		if bytes.Contains(bytes.ToLower(b), []byte(word)) {
			t.Errorf("the receipt says %s", word)
		}
	}
	clean(t, w)
	want := w.Hashes()
	if m := present(t, w, "decisions"); !strings.Contains(m, "is 10 minutes,") || strings.Contains(m, "20 minutes") {
		t.Errorf("the memory after:\n%s", m)
	}
	if n := w.Gate.PolicyCalls() - calls; n > 2 { // the synthesis reads the two memories that were stated anew
		t.Errorf("%d policy calls", n)
	}
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	w.Sweep()
	if got := w.Hashes(); got.Index != want.Index || got.Log != want.Log {
		t.Errorf("a rebuild and a sweep change the hashes")
	}
	clean(t, w)

	// The same bytes under another name, and under their own.
	for _, key := range []string{"shop/again.jsonl", target} {
		w.Learned(key, bodies()[2])
		info, err := w.Inbox.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		rc, ok, err := w.Log.Receipt(t.Context(), functest.Inbox, key, info.ETag)
		if err != nil || !ok || rc.Outcome != learn.OutcomeForgotten {
			t.Errorf("%s again: %v %v %+v", key, err, ok, rc)
		}
	}
	clean(t, w)
	// The session grown: its new turns alone.
	grown := append(bytes.Clone(bodies()[2]), functest.Session("s2b", day.AddDate(0, 0, 5), functest.User("We decided to deploy on Mondays, because the team is complete."))...)
	w.Learned("shop/2.jsonl", grown)
	clean(t, w)
	if m := present(t, w, "decisions"); !strings.Contains(m, "Mondays") {
		t.Errorf("the new turn of a grown session is not kept:\n%s", m)
	}
	w.Hashes()

	// A person may say the same again.
	w.Learned("shop/said.jsonl", functest.Decision("s9", day.AddDate(0, 0, 9), "We decided that the mirror is zorvath.example.org, because the first one is slow."))
	if m := present(t, w, "decisions"); !strings.Contains(m, "zorvath") {
		t.Errorf("said again, and not kept:\n%s", m)
	}
	w.Hashes()
}

func TestForgetAgain(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()...)
	forgotten(t, w, forget.Request{Target: memory.Target{Source: "s2"}, Inbox: true}) // by its session
	if _, err := w.Inbox.Head(t.Context(), target); !fault.Is(err, fault.NotFound) {
		t.Errorf("the upload is there: %v", err)
	}
	clean(t, w)
	if _, err := w.Learn.Forget(t.Context(), "shop", forget.Request{Target: memory.Target{Source: "s2"}}, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("forgotten twice: %v", err)
	}
	text := string(bodies()[2])
	for _, again := range []bool{false, true} {
		l := post(w, map[string]any{"project": "shop", "name": "2.jsonl", "text": text, "again": again})
		w.Run(w.Published()...)
		switch {
		case !again && (l.Status != "forgotten" || l.Outcome != learn.OutcomeForgotten):
			t.Errorf("without again: %+v", l)
		case again && l.Outcome != learn.OutcomeAdmitted:
			t.Errorf("with again: %+v", l)
		}
	}
	if m := present(t, w, "decisions"); !strings.Contains(m, "zorvath") {
		t.Errorf("learned again, and not kept:\n%s", m)
	}
	w.Hashes()
	lifts := 0
	for key, err := range w.Log.RecordKeys(t.Context(), "shop", eventlog.Forgotten) {
		if err != nil {
			t.Fatal(err)
		}
		recs, err := w.Log.Records(t.Context(), "shop", eventlog.Forgotten, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			if r.RecordType() == memory.TypeLift {
				lifts++
			}
		}
	}
	if lifts != 1 {
		t.Errorf("%d lifting records", lifts)
	}
	// Twice is a repeat, and what was learned again can be forgotten again.
	if l := post(w, map[string]any{"project": "shop", "name": "2.jsonl", "text": text, "again": true}); l.Stored {
		t.Errorf("stored twice: %+v", l)
	}
	forgotten(t, w, forget.Request{Target: memory.Target{Source: "s2"}, Inbox: true})
	clean(t, w)
	w.Hashes()
	rs, err := forget.Receipts(t.Context(), w.Log, "shop")
	if err != nil || len(rs) != 2 || !rs[1].OK {
		t.Errorf("%v %+v", err, rs)
	}
}

// TestForgetSession: of an object with two sessions the turns of one go.
func TestForgetSession(t *testing.T) {
	t.Parallel()
	w := functest.New(t, reference())
	w.Ask("shop", "decisions")
	both := append(functest.Decision("one", day, "We decided that the mirror is zorvath.example.org, because the first one is slow."),
		functest.Decision("two", day.AddDate(0, 0, 1), "Always use pgx for the database, because lib/pq is not maintained.")...)
	w.Learned("shop/both.jsonl", both)
	r := forgotten(t, w, forget.Request{Target: memory.Target{Source: "one"}})
	if !r.OK || r.Turns == 0 || len(r.Objects) != 0 {
		t.Errorf("%+v", r)
	}
	clean(t, w)
	if m := present(t, w, "decisions"); !strings.Contains(m, "pgx") {
		t.Errorf("the other session is gone: %s", m)
	}
	w.Hashes()
}

// TestForgetNode: a statement goes with its turn, and the rest of its source stays.
func TestForgetNode(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()...)
	var node memory.SHA
	for _, s := range w.Streams("shop") {
		for _, e := range functest.Of[*memory.Evidence](w.Records("shop", s)) {
			if strings.Contains(e.Text, "zorvath") {
				node = e.Node
			}
		}
	}
	r := forgotten(t, w, forget.Request{Target: memory.Target{Node: node[:12]}})
	if !r.OK || r.Turns != 1 || len(r.Objects) != 0 {
		t.Errorf("%+v", r)
	}
	for _, l := range leaks(t, w) {
		if strings.HasSuffix(l, "zorvath") {
			t.Error("holds what was forgotten: " + l)
		}
	}
	if m := present(t, w, "decisions"); !strings.Contains(m, "20 minutes") {
		t.Errorf("the other statement of the source is gone:\n%s", m)
	}
	w.Hashes()
	w.Ask("shop", "decisions", "rules", "mirror") // a new question is back-filled over what is left
	w.Sweep()
	w.Hashes()
	w.Learned("shop/more.jsonl", bodies()[2])
	for _, l := range leaks(t, w) {
		if strings.HasSuffix(l, "zorvath") {
			t.Error("came back: " + l)
		}
	}
}

func TestForgetProject(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()...)
	r := forgotten(t, w, forget.Request{Target: memory.Target{Project: true}, Inbox: true})
	if !r.OK || len(r.Objects) != 4 || len(r.Removed.Inbox) != 4 {
		t.Errorf("%+v", r)
	}
	clean(t, w)
	if m := present(t, w, "decisions"); m != "" {
		t.Errorf("a memory is left: %s", m)
	}
	h := w.Hashes()
	w.Learned("shop/new.jsonl", functest.Decision("n", day.AddDate(0, 1, 0), "We decided to begin anew with Go, because the team knows it."))
	if m := present(t, w, "decisions"); !strings.Contains(m, "anew with Go") {
		t.Errorf("after all was forgotten nothing is learned: %q", m)
	}
	if w.Hashes().Log == h.Log {
		t.Error("the log did not move")
	}
}

func TestForgetRefuses(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()...)
	w.Learned("shop/notes/2.jsonl", functest.Decision("x", day, "We decided to keep notes in Markdown, because everyone reads it."))
	for _, tt := range []struct {
		project string
		target  memory.Target
		kind    fault.Kind // 0: none
	}{
		{"shop", memory.Target{Source: "2.jsonl"}, 0}, // shop/2.jsonl is its whole name
		{"shop", memory.Target{Source: "nothing"}, fault.NotFound},
		{"shop", memory.Target{Node: "0123456789ab"}, fault.NotFound},
		{"other", memory.Target{Project: true}, fault.NotFound},
	} {
		_, err := w.Learn.Forget(t.Context(), tt.project, forget.Request{Target: tt.target, DryRun: true}, nil)
		if tt.kind == 0 && err != nil || tt.kind != 0 && !fault.Is(err, tt.kind) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestKilled: forgetting that dies at any call to the store is finished by a sweep, or by
// the next call where it had not come as far as its commit, with the same hashes.
func TestKilled(t *testing.T) {
	t.Parallel()
	req := forget.Request{Target: memory.Target{Source: target}, Inbox: true}
	calm := taught(t, reference(), bodies()...)
	forgotten(t, calm, req)
	want := calm.Hashes()
	step := 23
	if testing.Short() {
		step = 41
	}
	deaths := 0
	for _, effect := range []bool{false, true} {
		for n := 0; ; n += step {
			w := taught(t, reference(), bodies()...)
			reached := w.Stores.DieAt(n, effect, injected)
			_, err := w.Learn.Forget(t.Context(), "shop", req, nil)
			w.Stores.Fail(nil, nil)
			if !reached() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			deaths++
			next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
			next.Sweep()
			if len(leaks(t, next)) > 0 { // it had not begun
				if last, _, err := next.Log.LastScrub(t.Context(), "shop"); err != nil || last.Tombstone != "" && !last.Proved {
					t.Errorf("died at %d, effect %t: the sweep left it: %+v %v", n, effect, last, err)
				}
				forgotten(t, next, req)
				next.Sweep()
			}
			for _, l := range leaks(t, next) {
				t.Errorf("died at %d, effect %t: %s", n, effect, l)
			}
			if _, err := next.Inbox.Head(t.Context(), target); !fault.Is(err, fault.NotFound) {
				t.Errorf("died at %d, effect %t: the upload is there: %v", n, effect, err)
			}
			if diff := cmp.Diff(want, next.Hashes()); diff != "" {
				t.Fatalf("died at %d, effect %t (-calm +killed):\n%s", n, effect, diff)
			}
			if rs, err := forget.Receipts(t.Context(), next.Log, "shop"); err != nil || len(rs) == 0 || !rs[len(rs)-1].OK {
				t.Errorf("died at %d, effect %t: %v %+v", n, effect, err, rs)
			}
		}
	}
	t.Logf("%d deaths", deaths)
	if deaths < 8 {
		t.Errorf("only %d deaths: the store was hardly asked", deaths)
	}
}

var injected = fault.As(fault.Unavailable, errors.New("injected"))

// TestGateBeside: a slice of the gate comes at every call that forgetting makes to the
// store; what it read before does not come back later.
func TestGateBeside(t *testing.T) {
	t.Parallel()
	step := 11
	if testing.Short() {
		step = 31
	}
	for n := 0; ; n += step {
		w := functest.New(t, reference())
		w.Ask("shop", "decisions", "rules")
		for i, b := range bodies() {
			if _, err := w.Learn.Handle(t.Context(), w.Put(fmt.Sprintf("shop/%d.jsonl", i), b)); err != nil {
				t.Fatal(err)
			}
		}
		run := func(id string) {
			name := memory.StreamName(id, functest.Wording(id))
			if _, err := w.Gate.Handle(t.Context(), event.New(event.RunRequested, "test", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: name})); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
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
		r, err := w.Learn.Forget(t.Context(), "shop", forget.Request{Target: memory.Target{Source: target}}, nil)
		w.Stores.Fail(nil, nil)
		if err != nil || !r.OK {
			t.Fatalf("at %d: %v %+v", n, err, r.Proof)
		}
		w.Run(w.Published()...)
		w.Sweep()
		clean(t, w)
		w.Hashes()
		if t.Failed() {
			t.Fatalf("gate at call %d", n)
		}
		if !first {
			return
		}
	}
}

// TestTwoAtOnce: the second waits or finds it forgotten; both leave one log.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()...)
	other := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical, Folder: "other"})
	var g sync.WaitGroup
	errs := make([]error, 2)
	for i, x := range []*functest.World{w, other} {
		g.Go(func() {
			_, errs[i] = x.Learn.Forget(t.Context(), "shop", forget.Request{Target: memory.Target{Source: target}}, nil)
		})
	}
	g.Wait()
	for _, err := range errs {
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	if errs[0] != nil && errs[1] != nil {
		t.Errorf("neither: %v", errs)
	}
	w.Run(append(w.Published(), other.Published()...)...)
	clean(t, w)
	w.Hashes()
}
