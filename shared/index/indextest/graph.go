package indextest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// near compares scores that two drivers may add up in another order.
var near = cmp.Options{cmpopts.EquateApprox(0, 1e-5), cmpopts.EquateEmpty()}

// everything is the filter that sees both fixture projects.
func everything() index.Filter {
	return index.Filter{Tenant: Tenant, Projects: []string{Project, "other"}}
}

// applyStory applies every stream in turn, in an order by name.
func applyStory(t *testing.T, g interface {
	Apply(context.Context, index.Batch) error
}) {
	t.Helper()
	story := Story()
	for _, key := range slices.Sorted(maps.Keys(story)) {
		for _, b := range story[key] {
			if err := g.Apply(t.Context(), b); err != nil {
				t.Fatalf("apply %s %d: %v", key, b.Seq, err)
			}
		}
	}
}

// ids of every node of the story, sorted.
func storyIDs() []memory.SHA {
	set := map[memory.SHA]bool{}
	for _, batches := range Story() {
		for _, b := range batches {
			for _, n := range b.Nodes {
				set[n.ID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// RunGraph is the conformance suite of index.Graph. open gives an empty graph
// that the test closes.
func RunGraph(t *testing.T, open func(t *testing.T) index.Graph) {
	fresh := func(t *testing.T) index.Graph {
		g := open(t)
		t.Cleanup(func() { g.Close() })
		return g
	}
	t.Run("same as the reference", func(t *testing.T) {
		t.Parallel()
		g, ref := fresh(t), NewGraph()
		applyStory(t, g)
		applyStory(t, ref)
		sameGraph(t, ref, g)
	})
	t.Run("any order, any repetition, one hash", func(t *testing.T) {
		t.Parallel()
		ref := NewGraph()
		applyStory(t, ref)
		for seed := range uint64(4) {
			g := fresh(t)
			applyShuffled(t, g, rand.New(rand.NewPCG(seed, 1)))
			sameGraph(t, ref, g)
		}
	})
	t.Run("concurrent use", func(t *testing.T) {
		t.Parallel()
		g, ref := fresh(t), NewGraph()
		applyStory(t, ref)
		applyAtOnce(t, g, func(ctx context.Context) error {
			f := everything()
			f.Since = Epoch
			hits, err := g.SearchDense(ctx, Space, Embed("port 8080"), f, 5)
			if err != nil {
				return err
			}
			var ids []memory.SHA
			for _, h := range hits {
				ids = append(ids, h.Node)
			}
			nodes, err := g.Nodes(ctx, Tenant, ids)
			if err == nil && len(nodes) != len(hits) {
				err = fault.New(fault.Internal, "%d nodes for %d hits", len(nodes), len(hits))
			}
			return err
		})
		sameGraph(t, ref, g)
	})
	t.Run("sequence", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		n := Evidence(Project, "q@1", "Logs rotate daily.", 1)
		err := g.Apply(t.Context(), Batch(2, n))
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("a gap: got %v, want unavailable", err)
		}
		wantApplied(t, g, 0)
		for range 2 {
			if err := g.Apply(t.Context(), Batch(1, n)); err != nil {
				t.Fatal(err)
			}
			wantApplied(t, g, 1)
		}
		empty := index.Batch{Tenant: Tenant, Project: Project, Stream: "q@1", Space: Space, Seq: 2}
		if err := g.Apply(t.Context(), empty); err != nil {
			t.Errorf("a segment without nodes: %v", err)
		}
		wantApplied(t, g, 2)
	})
	t.Run("refuses what has no source", func(t *testing.T) {
		t.Parallel()
		testRefused(t, fresh(t).Apply)
	})
	t.Run("a refused batch leaves nothing", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		good := Evidence(Project, "q@1", "Logs rotate daily.", 1)
		bad := Memory(Project, "q@1", memory.L1, "Logs.", 1)
		if err := g.Apply(t.Context(), Batch(1, good, bad)); !fault.Is(err, fault.Invalid) {
			t.Fatalf("got %v, want invalid", err)
		}
		if got, err := g.Nodes(t.Context(), Tenant, []memory.SHA{good.ID}); err != nil || len(got) > 0 {
			t.Errorf("nodes of a refused batch: %v, %v", got, err)
		}
		wantApplied(t, g, 0)
	})
	t.Run("filters", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		applyStory(t, g)
		testFilters(t, g)
	})
	t.Run("a decision taken back is current", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		applyStory(t, g)
		const s = "decisions@11111111"
		id := func(text string) memory.SHA { return Evidence(Project, s, text, 1).ID }
		p8080, p9090 := id("We serve on port 8080 behind the proxy."), id("Moved the server to port 9090 for the new ingress.")
		five, ten := id("Retries are capped at five attempts."), id("Retries are capped at ten attempts.")
		got, err := g.Superseded(t.Context(), Tenant, []memory.SHA{p8080, p9090, five, ten})
		if err != nil {
			t.Fatal(err)
		}
		want := map[memory.SHA][]memory.SHA{p9090: {p8080}, ten: {five}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("superseded (-want +got):\n%s", d)
		}
	})
	t.Run("a replaced memory is not found, one that holds again is", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		const s = "decisions@11111111"
		e := Evidence(Project, s, "We serve on port 8080 behind the proxy.", 1)
		m1 := Memory(Project, s, memory.L1, "Port 8080 behind the proxy.", 1, e.ID)
		m2 := Memory(Project, s, memory.L1, "Port 9090 behind the proxy.", 2, e.ID)
		m2.Supersedes = []memory.SHA{m1.ID}
		m3 := Memory(Project, s, memory.L1, m1.Text, 3, e.ID)
		m3.Supersedes = []memory.SHA{m2.ID}
		for i, step := range []struct {
			nodes []index.Node
			want  memory.SHA
		}{{[]index.Node{e, m1}, m1.ID}, {[]index.Node{m2}, m2.ID}, {[]index.Node{m3}, m1.ID}, {[]index.Node{m2, m3}, m1.ID}} {
			if err := g.Apply(t.Context(), Batch(int64(i+1), step.nodes...)); err != nil {
				t.Fatal(err)
			}
			hits, err := g.SearchDense(t.Context(), Space, Embed("port proxy"), index.Filter{Tenant: Tenant, Projects: []string{Project}, Levels: []memory.Level{memory.L1}}, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) != 1 || hits[0].Node != step.want {
				t.Errorf("after batch %d: %v, want %s alone", i+1, hits, step.want)
			}
		}
		if problems, err := g.Check(t.Context(), Tenant); err != nil || len(problems) > 0 {
			t.Errorf("check: %v, %v", problems, err)
		}
	})
	t.Run("a run of a synthesis leaves nothing of those before", func(t *testing.T) {
		t.Parallel()
		g, ref := fresh(t), fresh(t)
		runs := syntheses()
		for i, b := range runs {
			b.Seq = int64(i + 1)
			if i == 1 { // what was loaded into memory must follow
				if _, err := g.SearchDense(t.Context(), Space, Embed("port"), everything(), 5); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			b.Replace = false
			if b.Seq = 1; i == len(runs)-1 {
				if err := ref.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
		}
		want, counts, err := ref.Hash(t.Context(), Tenant)
		if err != nil {
			t.Fatal(err)
		}
		got, c, err := g.Hash(t.Context(), Tenant)
		if err != nil || got != want || c != counts {
			t.Errorf("%s %+v %v, want %s %+v", got.Short(), c, err, want.Short(), counts)
		}
		f := everything()
		f.Since, f.Levels = Epoch.AddDate(-9, 0, 0), []memory.Level{memory.L2}
		for _, q := range []string{"port", "queue"} {
			a, errA := g.SearchDense(t.Context(), Space, Embed(q), f, 9)
			b, errB := ref.SearchDense(t.Context(), Space, Embed(q), f, 9)
			if d := cmp.Diff(b, a, near); d != "" || errA != nil || errB != nil {
				t.Errorf("%q: %v %v (-last alone +replaced):\n%s", q, errA, errB, d)
			}
		}
		// Another space that is filled later passes over the outdated runs.
		for i, b := range runs {
			b.Seq, b.Space = int64(i+1), "second"
			if err := g.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if got, _, err := g.Hash(t.Context(), Tenant); err != nil || got != want {
				t.Errorf("run %d in a second space: %s %v, want %s", i+1, got.Short(), err, want.Short())
			}
		}
		hits, err := g.SearchDense(t.Context(), "second", Embed("port"), f, 9)
		first, errFirst := g.SearchDense(t.Context(), Space, Embed("port"), f, 9)
		if d := cmp.Diff(first, hits, near); d != "" || err != nil || errFirst != nil || len(hits) == 0 {
			t.Errorf("%v %v (-first +second space):\n%s", err, errFirst, d)
		}
	})
	t.Run("bad queries", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		applyStory(t, g)
		none := func(name string, hits []index.Hit, err error) {
			if err != nil || len(hits) > 0 {
				t.Errorf("%s: got %d hits, %v; want none", name, len(hits), err)
			}
		}
		hits, err := g.SearchDense(t.Context(), Space, make([]float32, Dims), everything(), 5)
		none("zero vector", hits, err)
		hits, err = g.SearchDense(t.Context(), "nowhere", Embed("port"), everything(), 5)
		none("unknown space", hits, err)
		hits, err = g.SearchDense(t.Context(), Space, Embed("port"), everything(), 0)
		none("k 0", hits, err)
		if _, err = g.SearchDense(t.Context(), Space, make([]float32, Dims+1), everything(), 5); err != nil {
			t.Errorf("zero vector of another dimension: %v", err)
		}
		wrong := append(Embed("port"), 1)
		if _, err = g.SearchDense(t.Context(), Space, wrong, everything(), 5); !fault.Is(err, fault.Invalid) {
			t.Errorf("wrong dimension: got %v, want invalid", err)
		}
		nodes, err := g.Nodes(t.Context(), Tenant, []memory.SHA{memory.SumString("no such node"), "not an id"})
		if err != nil || len(nodes) > 0 {
			t.Errorf("unknown ids: %v, %v", nodes, err)
		}
	})
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		applyStory(t, g)
		if got, err := g.Check(t.Context(), Tenant); err != nil || len(got) > 0 {
			t.Errorf("a sound index: %q, %v", got, err)
		}
		open := Memory(Project, "q@9", memory.L1, "Rests on nothing.", 1, memory.SumString("gone"))
		if err := g.Apply(t.Context(), Batch(1, open)); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Check(t.Context(), Tenant); err != nil || len(got) != 2 {
			t.Errorf("a memory over a missing parent: %q, %v; want the open edge and the missing evidence", got, err)
		}
	})
	t.Run("wipe", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		applyStory(t, g)
		want, _, err := g.Hash(t.Context(), Tenant)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Wipe(t.Context(), Tenant, "other"); err != nil {
			t.Fatal(err)
		}
		f := everything()
		hits, err := g.SearchDense(t.Context(), Space, Embed("nightly job archive rows"), f, 50)
		if err != nil {
			t.Fatal(err)
		}
		nodes := nodesOf(t, g, hits)
		for _, n := range nodes {
			if n.Project == "other" {
				t.Errorf("found %s of a wiped project", n.ID)
			}
		}
		if len(nodes) == 0 {
			t.Error("wiping one project took the other with it")
		}
		for key, batches := range Story() {
			for _, b := range batches {
				if err := g.Apply(t.Context(), b); err != nil {
					t.Fatalf("%s after the wipe: %v", key, err)
				}
			}
		}
		if got, _, err := g.Hash(t.Context(), Tenant); err != nil || got != want {
			t.Errorf("hash after wipe and rebuild: %s, %v; want %s", got, err, want)
		}
		if err := g.Wipe(t.Context(), Tenant, ""); err != nil {
			t.Fatal(err)
		}
		_, c, err := g.Hash(t.Context(), Tenant)
		if d := cmp.Diff(index.Counts{}, c); d != "" || err != nil {
			t.Errorf("after wiping the tenant (-want +got):\n%s%v", d, err)
		}
	})
	t.Run("a second space", func(t *testing.T) {
		t.Parallel()
		g := fresh(t)
		applyStory(t, g)
		want, _, _ := g.Hash(t.Context(), Tenant)
		half := Story()[Project+"/decisions@11111111"][0]
		half.Space = "test0003"
		if err := g.Apply(t.Context(), half); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Check(t.Context(), Tenant); err != nil || len(got) > 0 {
			t.Errorf("a space that is being filled: %q, %v", got, err)
		}
		for _, batches := range Story() {
			for _, b := range batches {
				if b.Space == "" {
					continue
				}
				b.Space = "test0002"
				for id, v := range b.Vectors {
					b.Vectors[id] = v[:Dims/2]
				}
				if err := g.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, _, err := g.Hash(t.Context(), Tenant); err != nil || got != want {
			t.Errorf("hash with a second space: %s, %v; want %s", got, err, want)
		}
		for space, dims := range map[string]int{Space: Dims, "test0002": Dims / 2} {
			hits, err := g.SearchDense(t.Context(), space, Embed("port 8080")[:dims], everything(), 3)
			if err != nil || len(hits) != 3 {
				t.Errorf("space %s: %d hits, %v", space, len(hits), err)
			}
			if _, err := g.SearchDense(t.Context(), space, make([]float32, Dims+1), everything(), 3); err != nil {
				t.Errorf("space %s, a zero vector: %v", space, err)
			}
			if _, err := g.SearchDense(t.Context(), space, Embed("port 8080")[:dims-1], everything(), 3); !fault.Is(err, fault.Invalid) {
				t.Errorf("space %s, a vector of another space: %v", space, err)
			}
		}
		// A vector of another space's length is not written, and nothing else of its batch.
		wrong := half
		wrong.Space, wrong.Seq = "test0002", int64(len(Story()[Project+"/decisions@11111111"]))+1
		if err := g.Apply(t.Context(), wrong); !fault.Is(err, fault.Invalid) {
			t.Errorf("vectors of %d dimensions in a space of %d: %v", Dims, Dims/2, err)
		}
		if at, err := g.Applied(t.Context(), Tenant, Project, half.Stream, "test0002"); err != nil || at != wrong.Seq-1 {
			t.Errorf("it is applied up to %d, %v", at, err)
		}
		d, ok := g.(index.SpaceDropper)
		if !ok {
			return
		}
		for range 2 { // again is no error
			if err := d.DropSpace(t.Context(), Tenant, "test0002"); err != nil {
				t.Fatal(err)
			}
		}
		if hits, err := g.SearchDense(t.Context(), "test0002", Embed("port 8080")[:Dims/2], everything(), 3); err != nil || len(hits) > 0 {
			t.Errorf("a space that was dropped: %d hits, %v", len(hits), err)
		}
		if hits, err := g.SearchDense(t.Context(), Space, Embed("port 8080"), everything(), 3); err != nil || len(hits) != 3 {
			t.Errorf("the other space: %d hits, %v", len(hits), err)
		}
		if got, _, err := g.Hash(t.Context(), Tenant); err != nil || got != want {
			t.Errorf("hash after the drop: %s, %v; want %s", got, err, want)
		}
		if at, err := g.Applied(t.Context(), Tenant, Project, half.Stream, "test0002"); err != nil || at != 0 {
			t.Errorf("a dropped space is applied up to %d, %v", at, err)
		}
	})
}

func wantApplied(t *testing.T, g interface {
	Applied(ctx context.Context, tenant, project, stream, space string) (int64, error)
}, want int64) {
	t.Helper()
	if got, err := g.Applied(t.Context(), Tenant, Project, "q@1", Space); err != nil || got != want {
		t.Errorf("applied: got %d, %v; want %d", got, err, want)
	}
}

// testRefused gives Apply batches that break one rule each.
func testRefused(t *testing.T, apply func(context.Context, index.Batch) error) {
	parent := memory.SumString("parent")
	noSpan := Evidence(Project, "q@1", "No span.", 1)
	noSpan.Occurrences[0].Span = memory.Span{}
	noOccurrence := Evidence(Project, "q@1", "No occurrence.", 1)
	noOccurrence.Occurrences = nil
	noParent := Memory(Project, "q@1", memory.L1, "No parents.", 1)
	otherText := Evidence(Project, "q@1", "Text.", 1)
	otherText.Text = "Changed."
	otherID := Evidence(Project, "q@1", "Id.", 1)
	otherID.ID = parent
	level := Memory(Project, "q@1", "L7", "Level.", 1, parent)
	elsewhere := Evidence("other", "q@1", "Elsewhere.", 1)
	itself := Evidence(Project, "q@1", "Itself.", 1)
	itself.Supersedes = []memory.SHA{itself.ID}
	for name, n := range map[string]index.Node{
		"L0 without a span": noSpan, "L0 without an occurrence": noOccurrence, "L1 without parents": noParent,
		"text and hash differ": otherText, "a foreign id": otherID, "an unknown level": level, "replaces itself": itself,
	} {
		if err := apply(t.Context(), Batch(1, n)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want invalid", name, err)
		}
	}
	b := Batch(1, elsewhere)
	b.Project = Project
	if err := apply(t.Context(), b); !fault.Is(err, fault.Invalid) {
		t.Errorf("a node of another project: got %v, want invalid", err)
	}
	if err := apply(t.Context(), Batch(0, Evidence(Project, "q@1", "Seq 0.", 1))); !fault.Is(err, fault.Invalid) {
		t.Errorf("seq 0: got %v, want invalid", err)
	}
}

// testFilters compares what each filter lets through with Sees.
func testFilters(t *testing.T, g index.Graph) {
	day := func(n int) time.Time { return Epoch.AddDate(0, 0, n) }
	all := everything()
	with := func(edit func(*index.Filter)) index.Filter {
		f := all
		edit(&f)
		return f
	}
	for name, f := range map[string]index.Filter{
		"zero":           {},
		"no project":     {Tenant: Tenant},
		"no tenant":      {Projects: []string{Project}},
		"another tenant": {Tenant: "rival", Projects: []string{Project}},
		"one project":    {Tenant: Tenant, Projects: []string{"other"}},
		"all":            all,
		"L1":             with(func(f *index.Filter) { f.Levels = []memory.Level{memory.L1} }),
		"L1 and L2":      with(func(f *index.Filter) { f.Levels = []memory.Level{memory.L1, memory.L2} }),
		"raw":            with(func(f *index.Filter) { f.Levels = []memory.Level{memory.LevelRaw} }),
		"since":          with(func(f *index.Filter) { f.Since = day(3) }),
		"until":          with(func(f *index.Filter) { f.Until = day(2) }),
		"one day":        with(func(f *index.Filter) { f.Since, f.Until = day(3), day(4) }),
		"as of":          with(func(f *index.Filter) { f.AsOf = day(1) }),
		"an object":      with(func(f *index.Filter) { f.Sources = []string{"transcripts/shop/4.jsonl"} }),
		"a folder":       with(func(f *index.Filter) { f.Sources = []string{"transcripts/shop/"} }),
		"two objects":    with(func(f *index.Filter) { f.Sources = []string{"transcripts/shop/2", "transcripts/shop/3"} }),
		"no object":      with(func(f *index.Filter) { f.Sources = []string{"transcripts/other/"} }),
		"a wild name":    with(func(f *index.Filter) { f.Sources = []string{"transcripts/%", `transcripts/"`, "*", "é"} }),
		// Said on day 1 in one object and on day 4 in another: no statement is of both.
		"an object in time":           with(func(f *index.Filter) { f.Sources, f.Since = []string{"transcripts/shop/1.jsonl"}, day(3) }),
		"an object, and its time":     with(func(f *index.Filter) { f.Sources, f.Since = []string{"transcripts/shop/4.jsonl"}, day(3) }),
		"an object as of a time":      with(func(f *index.Filter) { f.Sources, f.AsOf = []string{"transcripts/shop/1"}, day(1) }),
		"evidence of an object":       with(func(f *index.Filter) { f.Sources, f.Levels = []string{"transcripts/shop/1"}, []memory.Level{memory.L0} }),
		"memories have no own object": with(func(f *index.Filter) { f.Sources, f.Levels = []string{"transcripts/"}, []memory.Level{memory.L1} }),
	} {
		hits, err := g.SearchDense(t.Context(), Space, Embed("port"), f, 1000)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got, want []memory.SHA
		for _, h := range hits {
			got = append(got, h.Node)
		}
		nodes, err := g.Nodes(t.Context(), Tenant, storyIDs())
		if err != nil {
			t.Fatal(err)
		}
		replaced, err := g.Superseded(t.Context(), Tenant, storyIDs())
		if err != nil {
			t.Fatal(err)
		}
		for i := range nodes {
			n := &nodes[i]
			if n.Level == memory.LevelRaw || n.Level != memory.L0 && len(replaced[n.ID]) > 0 {
				continue // raw has no vectors, and a replaced memory none any more
			}
			if Sees(&f, n) {
				want = append(want, n.ID)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func nodesOf(t *testing.T, g index.Graph, hits []index.Hit) []index.Node {
	t.Helper()
	var ids []memory.SHA
	for _, h := range hits {
		ids = append(ids, h.Node)
	}
	nodes, err := g.Nodes(t.Context(), Tenant, ids)
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// applyAtOnce applies every stream of the story in a goroutine of its own while
// others search.
func applyAtOnce(t *testing.T, g interface {
	Apply(context.Context, index.Batch) error
}, search func(context.Context) error) {
	t.Helper()
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for key, batches := range Story() {
		writers.Go(func() {
			for _, b := range batches {
				if err := g.Apply(t.Context(), b); err != nil {
					t.Errorf("%s seq %d: %v", key, b.Seq, err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				if err := search(t.Context()); err != nil {
					t.Errorf("search while applying: %v", err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// applyShuffled applies the story with the streams interleaved at random,
// batches repeated, and later ones offered too early.
func applyShuffled(t *testing.T, g interface {
	Apply(context.Context, index.Batch) error
}, r *rand.Rand) {
	t.Helper()
	story := Story()
	next := map[string]int{}
	keys := slices.Sorted(maps.Keys(story))
	for len(keys) > 0 {
		key := keys[r.IntN(len(keys))]
		batches, n := story[key], next[key]
		if i := n + 1 + r.IntN(3); i < len(batches) {
			if err := g.Apply(t.Context(), batches[i]); !fault.Is(err, fault.Unavailable) {
				t.Fatalf("%s seq %d before its turn: got %v, want unavailable", key, batches[i].Seq, err)
			}
		}
		if err := g.Apply(t.Context(), batches[n]); err != nil {
			t.Fatalf("%s seq %d: %v", key, batches[n].Seq, err)
		}
		if err := g.Apply(t.Context(), batches[r.IntN(n+1)]); err != nil {
			t.Fatalf("%s again: %v", key, err)
		}
		if next[key]++; next[key] == len(batches) {
			keys = slices.DeleteFunc(keys, func(k string) bool { return k == key })
		}
	}
}

// sameGraph compares every answer of two graphs that hold the story.
func sameGraph(t *testing.T, want, got index.Graph) {
	t.Helper()
	ctx, ids := t.Context(), storyIDs()
	compare := func(what string, f func(index.Graph) (any, error)) {
		t.Helper()
		w, err := f(want)
		if err != nil {
			t.Fatal(err)
		}
		g, err := f(got)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(w, g, near); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	compare("nodes", func(g index.Graph) (any, error) { return g.Nodes(ctx, Tenant, ids) })
	compare("nodes of another tenant", func(g index.Graph) (any, error) { return g.Nodes(ctx, "rival", ids) })
	compare("walk", func(g index.Graph) (any, error) { return g.Walk(ctx, Tenant, ids) })
	for _, steps := range []int{0, 1, 8} {
		compare(fmt.Sprintf("succession of %d steps", steps), func(g index.Graph) (any, error) { return g.Succession(ctx, Tenant, ids[:len(ids)/2], steps) })
	}
	compare("succession of another tenant", func(g index.Graph) (any, error) { return g.Succession(ctx, "rival", ids, 8) })
	compare("superseders", func(g index.Graph) (any, error) {
		nodes, err := g.Succession(ctx, Tenant, ids, 8)
		if err != nil {
			return nil, err
		}
		by, err := g.Superseded(ctx, Tenant, ids)
		if d := cmp.Diff(by, index.Superseders(nodes), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("two ways to the same (-superseded +succession):\n%s", d)
		}
		return by, err
	})
	for _, of := range [][]memory.SHA{ids, ids[:3], nil, {"not an id"}} {
		compare(fmt.Sprintf("below %d", len(of)), func(g index.Graph) (any, error) {
			walk, nodes, err := g.Below(ctx, Tenant, of)
			return []any{walk, nodes}, err
		})
	}
	compare("superseded", func(g index.Graph) (any, error) { return g.Superseded(ctx, Tenant, ids) })
	compare("hash", func(g index.Graph) (any, error) {
		h, c, err := g.Hash(ctx, Tenant)
		return []any{h, c}, err
	})
	for _, q := range []string{"which port", "retries attempts", "nightly archive rows"} {
		compare("search "+q, func(g index.Graph) (any, error) { return g.SearchDense(ctx, Space, Embed(q), everything(), 5) })
	}
}
