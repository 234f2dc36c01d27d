package project_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// onSegment calls do once, when the n-th segment of a question is read, counted from 1.
func onSegment(w *functest.World, n int, do func()) {
	var mu sync.Mutex
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op != memstore.OpGet || !strings.Contains(c.Key, "/questions/") {
			return nil
		}
		mu.Lock()
		n--
		now := n == 0
		mu.Unlock()
		if now {
			do()
		}
		return nil
	}, nil)
}

// TestRebuildTwoAtOnce: the second is refused, and told by whom and since when.
func TestRebuildTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := functest.New(t, reference())
	w.Run(admit(t, w)...)
	want := w.Hashes()
	other := functest.New(t, functest.Options{From: w, Folder: "elsewhere", Graph: w.Graph, Lexical: w.Lexical})
	asked := false
	onSegment(w, 2, func() {
		asked = true
		for _, f := range []*project.Function{w.Project, other.Project} {
			_, err := f.RebuildOnly(t.Context(), "", nil)
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "since 2026-03-01T12:00:") || fault.HintOf(err) == "" {
				t.Errorf("a second rebuild: %v", err)
			}
		}
		if _, err := other.Project.Compare(t.Context(), nil); !fault.Is(err, fault.Conflict) {
			t.Errorf("a comparison meanwhile: %v", err)
		}
	})
	r, err := w.Project.Rebuild(t.Context(), nil)
	if err != nil || r.IndexHash != want.Index || !asked {
		t.Errorf("%+v, %v, asked %t", r, err, asked)
	}
	w.Stores.Fail(nil, nil)
	if _, err := other.Project.Rebuild(t.Context(), nil); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

// TestRebuildInterrupted: a process that is killed in the middle leaves the serving
// indexes as they were; its heir goes on with what it staged.
func TestRebuildInterrupted(t *testing.T) {
	t.Parallel()
	resumed := 0
	for n := 0; ; n += 5 {
		o := reference()
		w := functest.New(t, o)
		w.Run(admit(t, w)...)
		want := w.Hashes()
		reached := w.Stores.DieAt(n, false, fault.As(fault.Unavailable, errors.New("injected")))
		_, err := w.Project.Rebuild(t.Context(), nil)
		w.Stores.Fail(nil, nil)
		if !reached() {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("killed at call %d: %v", n, err)
		}
		heir := functest.New(t, functest.Options{From: w, Graph: o.Graph, Lexical: o.Lexical})
		if diff := cmp.Diff(want, heir.Hashes()); diff != "" {
			t.Errorf("killed at call %d (-before +after):\n%s", n, diff)
		}
		r, err := heir.Project.Rebuild(t.Context(), nil)
		if err != nil || r.IndexHash != want.Index || r.Segments+r.Resumed != 7 {
			t.Errorf("after a kill at call %d: %+v, %v", n, r, err)
		}
		if r.Resumed > 0 {
			resumed++
		}
	}
	if resumed == 0 {
		t.Error("no rebuild went on where another was killed")
	}
}

// TestRebuildMeanwhile: what is learned while an index is rebuilt is found at once, and is
// in the new one.
func TestRebuildMeanwhile(t *testing.T) {
	t.Parallel()
	late := functest.Decision("late", day.AddDate(0, 0, 20), "We decided to keep backups for ninety days, because the auditor asks.")
	calm := functest.New(t, reference())
	calm.Run(admit(t, calm)...)
	calm.Learned("shop/late.jsonl", late)
	want := calm.Hashes()
	for n := 1; n <= 4; n++ {
		w := functest.New(t, reference())
		w.Run(admit(t, w)...)
		came := false
		onSegment(w, n, func() {
			came = true
			w.Learned("shop/late.jsonl", late)
			hits, err := w.Lexical.Search(t.Context(), "auditor", index.Filter{Tenant: functest.Tenant, Projects: []string{"shop"}}, 5)
			if err != nil || len(hits) == 0 {
				t.Errorf("what came meanwhile is not found meanwhile: %v", err)
			}
		})
		r, err := w.Project.Rebuild(t.Context(), nil)
		w.Stores.Fail(nil, nil)
		if err != nil || r.IndexHash != want.Index || !came {
			t.Errorf("segment %d: %+v, %v", n, r, err)
		}
		if diff := cmp.Diff(want, w.Hashes()); diff != "" {
			t.Errorf("segment %d (-calm +meanwhile):\n%s", n, diff)
		}
	}
}

// TestRebuildScrubbedMeanwhile: what is erased while an index is rebuilt is in no index
// afterwards, also where the old text had been read.
func TestRebuildScrubbedMeanwhile(t *testing.T) {
	t.Parallel()
	const secret = "ACME-77aa88bb99"
	for n := 1; n <= 3; n++ {
		w := functest.New(t, reference())
		w.Ask("shop", "decisions", "rules")
		w.Learned("shop/s.jsonl", functest.Decision("s", day, "We decided to sign the releases with the key "+secret+", because the old one leaked."))
		if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte("patterns:\n  - name: acme\n    regexp: 'ACME-[0-9a-f]{10}'\n")); err != nil {
			t.Fatal(err)
		}
		find := func() int {
			hits, err := w.Lexical.Search(t.Context(), secret, index.Filter{Tenant: functest.Tenant, Projects: []string{"shop"}, Levels: []memory.Level{memory.L0, memory.L1, memory.L2, memory.LevelRaw}}, 5)
			if err != nil {
				t.Fatal(err)
			}
			return len(hits)
		}
		if find() == 0 {
			t.Fatal("the secret is not found before")
		}
		scrubbed := false
		onSegment(w, n, func() {
			scrubbed = true
			if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil {
				t.Error(err)
			}
		})
		if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		w.Stores.Fail(nil, nil)
		if !scrubbed || find() > 0 {
			t.Errorf("segment %d: scrubbed %t, found %d times", n, scrubbed, find())
		}
		w.Sweep() // what the scrub appended gets its vectors
		if behind, err := w.Project.Behind(t.Context()); err != nil || behind != 0 || find() > 0 {
			t.Errorf("segment %d: behind %d, found %d times, %v", n, behind, find(), err)
		}
	}
}

// TestRebuildRefuses: a log that is broken, or rows that are not sound, leave the serving
// indexes alone.
func TestRebuildRefuses(t *testing.T) {
	t.Parallel()
	hash := func(w *functest.World) memory.SHA {
		h, _, err := w.Graph.Hash(t.Context(), functest.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	t.Run("broken chain", func(t *testing.T) {
		t.Parallel()
		w := functest.New(t, reference())
		w.Run(admit(t, w)...)
		want := hash(w)
		var key string
		for info, err := range w.Bucket.List(t.Context(), "log/"+functest.Tenant+"/shop/questions/"+stream+"/") {
			if err != nil {
				t.Fatal(err)
			}
			key = info.Key
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Bucket.Put(t.Context(), key, []byte(strings.Replace(string(b), `"seq":1`, `"seq":9`, 1))); err != nil {
			t.Fatal(err)
		}
		heir := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
		_, err = heir.Project.Rebuild(t.Context(), nil)
		if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), stream) {
			t.Errorf("%v", err)
		}
		if hash(heir) != want {
			t.Error("the serving graph changed")
		}
	})
	t.Run("missing parent", func(t *testing.T) {
		t.Parallel()
		o := reference()
		o.Graph = unsound{indextest.NewGraph()}
		w := functest.New(t, o)
		w.Run(admit(t, w)...)
		want := hash(w)
		_, err := w.Project.Rebuild(t.Context(), nil)
		if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "parent 00 is not in the index") || fault.HintOf(err) == "" {
			t.Errorf("%v", err)
		}
		if hash(w) != want {
			t.Error("the serving graph changed")
		}
	})
	t.Run("unknown part", func(t *testing.T) {
		t.Parallel()
		w := functest.New(t, functest.Options{})
		if _, err := w.Project.RebuildOnly(t.Context(), "pg", nil); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "sqlite, bleve and vault are") {
			t.Errorf("%v", err)
		}
		rec := w.Call(http.MethodPost, "/memory/rebuild?only=pg", nil)
		if rec.Code != http.StatusBadRequest {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	})
}

// unsound is a graph beside which only one with a fault can be built.
type unsound struct{ *indextest.Graph }

type unsoundStaged struct{ index.StagedGraph }

func (u unsound) Stage(ctx context.Context, tenant string) (index.StagedGraph, error) {
	s, err := u.Graph.Stage(ctx, tenant)
	return unsoundStaged{s}, err
}

func (unsoundStaged) Check(context.Context, string) ([]string, error) {
	return []string{"node 11: parent 00 is not in the index"}, nil
}

// TestCompare: what serves is what a rebuild gives, over the embedded indexes; what was
// changed in them or in the pages is named, and stays for a rebuild to cure.
func TestCompare(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Run(admit(t, w)...)
	w.Sweep()
	want := w.Hashes()
	compare := func() project.Comparison {
		t.Helper()
		c, err := w.Project.Compare(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := compare()
	if !c.OK || c.IndexHash != want.Index || c.Pages == 0 || c.LexicalPassages == 0 || c.Segments != 7 || c.PolicyCalls+c.ModelCalls != 0 || len(c.Differences) > 0 {
		t.Errorf("%+v", c)
	}
	// A node that the log does not hold, in both indexes.
	text := "Never said."
	n := indextest.Evidence("shop", "alien@1", text, 1)
	n.Tenant = functest.Tenant
	n.ID = memory.NodeID(n.Tenant, n.Project, n.Level, n.Stream, n.TextSHA)
	b := index.Batch{Tenant: functest.Tenant, Project: "shop", Stream: "alien@1", Space: w.Space.ID, Seq: 1, Nodes: []index.Node{n}}
	if err := errors.Join(w.Graph.Apply(t.Context(), b), w.Lexical.Apply(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
	page := "derived/vault/" + functest.Tenant + "/shop/decisions.md"
	old, _, err := w.Bucket.ReadAll(t.Context(), page, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Bucket.Put(t.Context(), page, []byte(strings.Repeat("x", len(old)))); err != nil {
		t.Fatal(err)
	}
	c = compare()
	all := strings.Join(c.Differences, "\n")
	for _, part := range []string{"index_hash of sqlite", "shop/alien@1: node " + string(n.ID) + " (L0) is not in the log", "bleve holds", "shop: page decisions.md"} {
		if c.OK || !strings.Contains(all, part) {
			t.Errorf("%q is not said:\n%s", part, all)
		}
	}
	var v project.Verified
	w.Get("/memory/verify?rebuild=true", &v)
	if v.OK || v.Rebuild == nil || v.Rebuild.OK {
		t.Errorf("%+v", v)
	}
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if c := compare(); !c.OK {
		t.Errorf("after a rebuild: %+v", c)
	}
	if diff := cmp.Diff(want, w.Hashes()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestRebuildLease: one of another folder that was killed is in the way for a minute.
func TestRebuildLease(t *testing.T) {
	t.Parallel()
	o := reference()
	w := functest.New(t, o)
	w.Run(admit(t, w)...)
	w.Stores.DieAt(30, false, fault.As(fault.Unavailable, errors.New("injected")))
	if _, err := w.Project.Rebuild(t.Context(), nil); err == nil {
		t.Fatal("it was not killed")
	}
	w.Stores.Fail(nil, nil)
	other := functest.New(t, functest.Options{From: w, Folder: "elsewhere", Graph: o.Graph, Lexical: o.Lexical})
	if _, err := other.Project.Rebuild(t.Context(), nil); !fault.Is(err, fault.Conflict) {
		t.Errorf("at once: %v", err)
	}
	w.Stores.Skip(2 * time.Minute)
	if _, err := other.Project.Rebuild(t.Context(), nil); err != nil {
		t.Errorf("after two minutes: %v", err)
	}
}
