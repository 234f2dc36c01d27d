package project_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

var (
	day    = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)
	stream = memory.StreamName("decisions", functest.Wording("decisions"))
)

func reference() functest.Options {
	return functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()}
}

func bodies() [][]byte {
	return [][]byte{
		functest.Long("s1", day, 2),
		functest.Decision("s2", day.AddDate(0, 0, 5), "From now on the cache TTL is 10 minutes, never longer, since stale prices cost us an incident."),
		functest.Decision("s3", day.AddDate(0, 0, 9), "From now on the cache TTL is 20 minutes instead of 10 minutes, because the price feed is slow."),
		functest.Decision("s4", day.AddDate(0, 0, 1), "From now on the cache TTL is 5 minutes, since memory is short."), // older, uploaded late
		functest.Decision("s5", day.AddDate(0, 0, 11), "Never deploy on Fridays, no exceptions."),
	}
}

// admit puts the bodies into the log and returns what announces them.
func admit(t *testing.T, w *functest.World) []ce.Event {
	t.Helper()
	w.Ask("shop", "decisions", "rules")
	var out []ce.Event
	for i, b := range bodies() {
		es, err := w.Learn.Handle(t.Context(), w.Put(fmt.Sprintf("shop/%d.jsonl", i), b))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, es...)
	}
	return out
}

func ready(w *functest.World, seq int64) ce.Event {
	return event.New(event.VectorsReady, "embed", event.Segment{Tenant: functest.Tenant, Project: "shop", Stream: stream, Seq: seq, Space: w.Space.ID})
}

func applied(t *testing.T, w *functest.World, stream, space string) (graph, lexical int64) {
	t.Helper()
	g, err := w.Graph.Applied(t.Context(), functest.Tenant, "shop", stream, space)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.Lexical.Applied(t.Context(), functest.Tenant, "shop", stream, space)
	if err != nil {
		t.Fatal(err)
	}
	return g, l
}

// TestWaitsForVectors: a segment without its vectors is not applied, nor is any
// after it; when they come all are applied in order.
func TestWaitsForVectors(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{}) // the embedded indexes
	w.Ask("shop", "decisions")
	w.Learned("shop/0.jsonl", functest.Decision("s0", day, "We decided to use pgx."))
	for i := range 2 {
		es, err := w.Learn.Handle(t.Context(), w.Put(fmt.Sprintf("shop/%d.jsonl", i+1), functest.Decision(fmt.Sprintf("s%d", i+1), day, fmt.Sprintf("Never wait longer than %d seconds.", i))))
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Gate.Handle(t.Context(), es[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Gate.Handle(t.Context(), out[0]); err != nil {
			t.Fatal(err)
		}
	}
	out, err := w.Project.Handle(t.Context(), ready(w, 3))
	if err != nil || len(out) != 0 {
		t.Errorf("without vectors: %v %v", out, err)
	}
	if g, l := applied(t, w, stream, w.Space.ID); g != 1 || l != 1 {
		t.Errorf("applied %d and %d, want 1", g, l)
	}
	if n, err := w.Project.Behind(t.Context()); err != nil || n != 2 { // the stream, and the raw rows
		t.Errorf("behind %d %v", n, err)
	}
	// Vectors of a space that does not serve here announce nothing.
	other := event.New(event.VectorsReady, "embed", event.Segment{Tenant: functest.Tenant, Project: "shop", Stream: stream, Seq: 3, Space: "ffffffff"})
	if out, err := w.Project.Handle(t.Context(), other); err != nil || len(out) != 0 {
		t.Errorf("another space: %v %v", out, err)
	}
	es, err := w.Embed.Handle(t.Context(), event.New(event.RunEnded, "gate", event.Stream{Tenant: functest.Tenant, Project: "shop", Stream: stream, Seq: 3}))
	if err != nil {
		t.Fatal(err)
	}
	if out, err = w.Project.Handle(t.Context(), es[0]); err != nil || len(out) != 1 || out[0].Type() != string(event.Projected) {
		t.Errorf("%v %v", out, err)
	}
	if g, l := applied(t, w, stream, w.Space.ID); g != 3 || l != 3 {
		t.Errorf("applied %d and %d, want 3", g, l)
	}
	w.Sweep()
	if n, err := w.Project.Behind(t.Context()); err != nil || n != 0 {
		t.Errorf("behind %d %v", n, err)
	}
}

// TestAnyOrder: events in any order, each three times, give the same rows, and
// the embedded indexes those of the reference ones.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	calm := functest.New(t, reference())
	calm.Run(admit(t, calm)...)
	want := calm.Hashes()
	if want.Index == "" || len(want.Streams) != 2 {
		t.Fatalf("%+v", want)
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := reference()
			if seed == 0 {
				o = functest.Options{}
			}
			w := functest.New(t, o)
			w.Shuffled(seed, 3, admit(t, w)...)
			if diff := cmp.Diff(want, w.Hashes()); diff != "" {
				t.Errorf("(-calm +shuffled):\n%s", diff)
			}
		})
	}
	t.Run("by sweeps alone", func(t *testing.T) {
		t.Parallel()
		w := functest.New(t, reference())
		admit(t, w)
		w.Sweep()
		if diff := cmp.Diff(want, w.Hashes()); diff != "" {
			t.Errorf("(-calm +swept):\n%s", diff)
		}
	})
}

// TestRebuild: wiped and filled again, with no policy and no model call.
func TestRebuild(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Run(admit(t, w)...)
	want := w.Hashes()
	policy, model := w.Gate.PolicyCalls(), w.Embed.Calls()
	var done, all []int
	r, err := w.Project.Rebuild(t.Context(), func(n, of int) { done, all = append(done, n), append(all, of) })
	if err != nil {
		t.Fatal(err)
	}
	if r.IndexHash != want.Index || r.Nodes == 0 || r.Passages == 0 || r.PolicyCalls != 0 || r.ModelCalls != 0 {
		t.Errorf("%+v, want index hash %s", r, want.Index.Short())
	}
	const segments = 7 // five admit lines, and one of each question
	if len(done) < 2 || done[0] != 0 || done[len(done)-1] != segments || !slices.IsSorted(done) || slices.Min(all) != segments || slices.Max(all) != segments {
		t.Errorf("progress %v of %v", done, all)
	}
	if r.Segments != segments || r.Resumed != 0 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(want, w.Hashes()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if w.Gate.PolicyCalls() != policy || w.Embed.Calls() != model {
		t.Error("a rebuild asks the policy or the model")
	}
	// A new index of another process comes to the same, by the sweep alone.
	next := functest.New(t, functest.Options{From: w})
	next.Sweep()
	if diff := cmp.Diff(want, next.Hashes()); diff != "" {
		t.Errorf("a new index (-old +new):\n%s", diff)
	}
	// rebuild.requested does the same for one project.
	next.Run(event.New(event.RebuildRequested, "test", event.Project{Tenant: functest.Tenant, Project: "shop"}))
	if diff := cmp.Diff(want, next.Hashes()); diff != "" {
		t.Errorf("by event (-before +after):\n%s", diff)
	}
}

// TestInterrupted: an index that got a batch the other one did not is brought
// up to date with it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	calm := functest.New(t, reference())
	calm.Run(admit(t, calm)...)
	want := calm.Hashes()
	for n := 0; ; n += 3 {
		w := functest.New(t, reference())
		es := admit(t, w)
		reached := w.Stores.DieAt(n, false, fault.As(fault.Unavailable, errors.New("injected")))
		for _, e := range es {
			_, err := w.Project.Handle(t.Context(), e)
			if err != nil && !fault.Is(err, fault.Unavailable) {
				t.Errorf("call %d: %v", n, err)
			}
		}
		w.Stores.Fail(nil, nil)
		if !reached() {
			break
		}
		w.Run(es...)
		if diff := cmp.Diff(want, w.Hashes()); diff != "" {
			t.Errorf("died at call %d (-calm +died):\n%s", n, diff)
		}
	}
}

// TestSweepGoesOn: one stream that cannot be read does not hold up the others.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	w := functest.New(t, reference())
	es := admit(t, w)
	next := functest.New(t, functest.Options{From: w, Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.Run(es...)
	w.Stores.Fail(func(c functest.Call) error {
		if c.Op == memstore.OpGet && strings.Contains(c.Key, "/questions/"+stream+"/") {
			return fault.As(fault.Unavailable, errors.New("injected"))
		}
		return nil
	}, nil)
	sweep := event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"})
	if _, err := next.Project.Handle(t.Context(), sweep); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	w.Stores.Fail(nil, nil)
	if g, l := applied(t, next, memory.AdmitStream, ""); g != 5 || l != 5 {
		t.Errorf("raw rows: applied %d and %d, want 5", g, l)
	}
	if g, _ := applied(t, next, memory.StreamName("rules", functest.Wording("rules")), next.Space.ID); g == 0 {
		t.Error("the other stream was not applied")
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Run(admit(t, w)...)
	want := w.Hashes()
	var v project.Verified
	w.Get("/memory/verify", &v)
	if !v.OK || v.LogHash != want.Log || v.IndexHash != want.Index || v.Problems == nil || v.Lexical == 0 {
		t.Errorf("%+v", v)
	}
	var r project.Rebuilt
	w.Post("/memory/rebuild", nil, http.StatusOK, &r)
	if r.IndexHash != want.Index {
		t.Errorf("%+v", r)
	}
	// In lines, with progress, the result last.
	mux := http.NewServeMux()
	w.Project.Routes(mux)
	rec := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/memory/rebuild", nil)
	req.Header.Set("Accept", "application/x-ndjson")
	mux.ServeHTTP(rec, req)
	lines := strings.Split(strings.TrimSpace(rec.Body.String()), "\n")
	var last struct{ Result project.Rebuilt }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Result != r || len(lines) < 6 { // fill twice, check, switch, vault

		t.Errorf("%v\n%s", err, rec.Body)
	}
	// What is damaged is named.
	var blob string
	for info, err := range w.Bucket.List(t.Context(), "blob/") {
		if err != nil {
			t.Fatal(err)
		}
		blob = info.Key
	}
	if err := w.Bucket.Delete(t.Context(), blob); err != nil {
		t.Fatal(err)
	}
	w.Get("/memory/verify", &v)
	if v.OK || len(v.Problems) == 0 {
		t.Errorf("a blob is gone: %+v", v)
	}
}
