package indextest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// stagedGraph is the reference index.StagedGraph.
type stagedGraph struct {
	*Graph
	of     *Graph
	tenant string
}

// Stage implements index.GraphStager.
func (g *Graph) Stage(_ context.Context, tenant string) (index.StagedGraph, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.staged == nil {
		g.staged = map[string]*Graph{}
	}
	if g.staged[tenant] == nil {
		g.staged[tenant] = NewGraph()
	}
	return &stagedGraph{g.staged[tenant], g, tenant}, nil
}

// Switch implements index.Staged.
func (s *stagedGraph) Switch(ctx context.Context) error {
	old := s.of
	old.mu.Lock()
	defer old.mu.Unlock()
	next := &Graph{nodes: old.nodes, by: old.by, vectors: old.vectors, dims: old.dims, applied: old.applied}
	if err := next.Wipe(ctx, s.tenant, ""); err != nil {
		return err
	}
	maps.Copy(old.nodes, s.nodes)
	for of, edges := range s.by {
		old.by[of] = append(old.by[of], edges...)
	}
	maps.Copy(old.vectors, s.vectors)
	maps.Copy(old.dims, s.dims)
	maps.Copy(old.applied, s.applied)
	delete(old.staged, s.tenant)
	return nil
}

// Drop implements index.Staged.
func (s *stagedGraph) Drop(context.Context) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.staged, s.tenant)
	return nil
}

// stagedLexical is the reference index.StagedLexical.
type stagedLexical struct {
	*Lexical
	of     *Lexical
	tenant string
}

// Stage implements index.LexicalStager.
func (l *Lexical) Stage(_ context.Context, tenant string) (index.StagedLexical, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.staged == nil {
		l.staged = map[string]*Lexical{}
	}
	if l.staged[tenant] == nil {
		l.staged[tenant] = NewLexical()
	}
	return &stagedLexical{l.staged[tenant], l, tenant}, nil
}

// Switch implements index.Staged.
func (s *stagedLexical) Switch(ctx context.Context) error {
	old := s.of
	old.mu.Lock()
	defer old.mu.Unlock()
	next := &Lexical{nodes: old.nodes, current: old.current, applied: old.applied}
	if err := next.Wipe(ctx, s.tenant, ""); err != nil {
		return err
	}
	maps.Copy(old.nodes, s.nodes)
	maps.Copy(old.current, s.current)
	maps.Copy(old.applied, s.applied)
	delete(old.staged, s.tenant)
	return nil
}

// Drop implements index.Staged.
func (s *stagedLexical) Drop(context.Context) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.staged, s.tenant)
	return nil
}

// rival is another tenant in the same store.
const rival = "rival"

// inTenant moves a batch to another tenant.
func inTenant(tenant string, b index.Batch) index.Batch {
	nodes := make([]index.Node, len(b.Nodes))
	for i, n := range b.Nodes {
		n.Tenant = tenant
		n.ID = memory.NodeID(tenant, n.Project, n.Level, n.Stream, n.TextSHA)
		nodes[i] = n
	}
	if b.Tenant = tenant; len(nodes) == 0 {
		return b
	}
	next := Batch(b.Seq, nodes...)
	next.Tenant = tenant
	return next
}

const (
	oldText = "The archive keeps orders for ninety days."
	newText = "The archive keeps invoices for seven years."
	stayed  = "Every release waits for the nightly orders archive."
)

// generation is what the stage suites apply: two streams, a raw row, and in the second
// generation other texts.
func generation(text string) []index.Batch {
	e := Evidence(Project, "q@1", text, 1)
	return []index.Batch{
		Batch(1, Raw(Project, text, 1)),
		Batch(1, e, Evidence(Project, "q@1", stayed, 2)),
		Batch(2, Memory(Project, "q@1", memory.L1, "So: "+text, 2, e.ID)),
		Batch(1, Evidence("other", "q@2", stayed, 3)),
	}
}

type applier interface {
	Apply(context.Context, index.Batch) error
}

func applyAll(t *testing.T, to applier, batches []index.Batch) {
	t.Helper()
	for _, b := range batches {
		if err := to.Apply(t.Context(), b); err != nil {
			t.Fatalf("apply %s/%s %d: %v", b.Project, b.Stream, b.Seq, err)
		}
	}
}

func wantPosition(t *testing.T, of Projection, project, stream string, want int64) {
	t.Helper()
	if got, err := of.Applied(t.Context(), Tenant, project, stream, Space); err != nil || got != want {
		t.Errorf("%s/%s: applied %d, %v; want %d", project, stream, got, err, want)
	}
}

// textID is the L0 node of a text of the generations.
func textID(text string) memory.SHA { return Evidence(Project, "q@1", text, 1).ID }

// searchThroughout searches until it is told to stop, and counts answers without the node
// that stands in every generation.
func searchThroughout(t *testing.T, find func() ([]index.Hit, error)) (stop func()) {
	var end atomic.Bool
	var done sync.WaitGroup
	want := textID(stayed)
	begun := make(chan struct{})
	var once sync.Once
	for range 2 {
		done.Go(func() {
			for n := 0; ; n++ {
				time.Sleep(time.Millisecond)
				hits, err := find()
				once.Do(func() { close(begun) })
				if err != nil {
					t.Errorf("a search meanwhile: %v", err)
					return
				}
				found := false
				for _, h := range hits {
					found = found || h.Node == want
				}
				if !found {
					t.Errorf("search %d meanwhile finds %d nodes, and not the one that stands in both", n, len(hits))
					return
				}
				if end.Load() {
					return
				}
			}
		})
	}
	<-begun
	return func() { end.Store(true); done.Wait() }
}

// RunGraphStages is the conformance suite of index.GraphStager. open gives an empty graph
// that the test closes.
func RunGraphStages(t *testing.T, open func(t *testing.T) index.Graph) {
	fresh := func(t *testing.T) (index.Graph, index.GraphStager) {
		g := open(t)
		t.Cleanup(func() { g.Close() })
		s, ok := g.(index.GraphStager)
		if !ok {
			t.Fatalf("%T is no stager", g)
		}
		return g, s
	}
	hash := func(t *testing.T, g index.Graph, tenant string) memory.SHA {
		t.Helper()
		h, _, err := g.Hash(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	hashOf := func(t *testing.T, batches []index.Batch) memory.SHA {
		g := NewGraph()
		applyAll(t, g, batches)
		return hash(t, g, Tenant)
	}
	stage := func(t *testing.T, s index.GraphStager) index.StagedGraph {
		t.Helper()
		next, err := s.Stage(t.Context(), Tenant)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	finds := func(t *testing.T, g index.Graph, text string) bool {
		t.Helper()
		hits, err := g.SearchDense(t.Context(), Space, Embed(text), everything(), 20)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			if h.Node == textID(text) {
				return true
			}
		}
		return false
	}

	t.Run("switch", func(t *testing.T) {
		t.Parallel()
		g, s := fresh(t)
		applyAll(t, g, generation(oldText))
		for _, b := range generation(oldText) {
			applyAll(t, g, []index.Batch{inTenant(rival, b)})
		}
		rivals := hash(t, g, rival)
		stop := searchThroughout(t, func() ([]index.Hit, error) {
			return g.SearchDense(t.Context(), Space, Embed(stayed), everything(), 20)
		})
		texts := []string{oldText, newText}
		for round := 1; round <= 2; round++ { // there and back
			was, is := texts[(round+1)%2], texts[round%2]
			next := stage(t, s)
			applyAll(t, next, generation(is))
			if m, ok := next.(index.Maintainer); ok {
				if err := m.Maintain(t.Context(), Tenant); err != nil {
					t.Fatal(err)
				}
			}
			if hash(t, g, Tenant) != hashOf(t, generation(was)) || !finds(t, g, was) || finds(t, g, is) {
				t.Fatalf("round %d: before the switch something of the staged one is seen", round)
			}
			if hash(t, next, Tenant) != hashOf(t, generation(is)) {
				t.Errorf("round %d: the staged one has another hash", round)
			}
			if err := next.Switch(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
			if hash(t, g, Tenant) != hashOf(t, generation(is)) || finds(t, g, was) || !finds(t, g, is) {
				t.Errorf("round %d: after the switch the old one is seen", round)
			}
			if nodes, err := g.Nodes(t.Context(), Tenant, []memory.SHA{textID(was), textID(is)}); err != nil || len(nodes) != 1 || nodes[0].Text != is {
				t.Errorf("round %d: nodes %v, %v", round, nodes, err)
			}
			wantPosition(t, g, Project, "q@1", 2)
			if hash(t, g, rival) != rivals {
				t.Errorf("round %d: another tenant's rows changed", round)
			}
			if problems, err := g.Check(t.Context(), Tenant); err != nil || len(problems) > 0 {
				t.Errorf("round %d: %q, %v", round, problems, err)
			}
		}
		stop()
		// It goes on where the staged one was, and so does the other tenant.
		more := Batch(3, Evidence(Project, "q@1", "Deploys stop on Friday.", 4))
		applyAll(t, g, []index.Batch{more, inTenant(rival, more)})
		if !finds(t, g, "Deploys stop on Friday.") {
			t.Error("a batch after the switch is not found")
		}
	})
	t.Run("resume and drop", func(t *testing.T) {
		t.Parallel()
		g, s := fresh(t)
		applyAll(t, g, generation(oldText))
		want := hash(t, g, Tenant)
		next := stage(t, s)
		applyAll(t, next, generation(newText)[:3])
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		next = stage(t, s)
		wantPosition(t, next, Project, "q@1", 2)
		wantPosition(t, next, "other", "q@2", 0)
		if err := next.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		if hash(t, g, Tenant) != want {
			t.Error("a staged graph that was dropped changed the serving one")
		}
		next = stage(t, s)
		wantPosition(t, next, Project, "q@1", 0)
		if err := next.Switch(t.Context()); err != nil { // of nothing
			t.Fatal(err)
		}
		if _, c, err := g.Hash(t.Context(), Tenant); err != nil || c != (index.Counts{}) {
			t.Errorf("%+v, %v after a switch to an empty one", c, err)
		}
		applyAll(t, g, generation(oldText))
		if hash(t, g, Tenant) != want {
			t.Error("filled again it has another hash")
		}
	})
	t.Run("rows", func(t *testing.T) {
		t.Parallel()
		g, _ := fresh(t)
		r, ok := g.(index.Rower)
		if !ok {
			t.Skipf("%T gives no rows", g)
		}
		applyStory(t, g)
		seen, before := 0, memory.SHA("")
		for row, err := range r.Rows(t.Context(), Tenant) {
			if err != nil {
				t.Fatal(err)
			}
			if row.ID <= before {
				t.Errorf("%s after %s", row.ID, before)
			}
			before = row.ID
			seen++
			nodes, err := g.Nodes(t.Context(), Tenant, []memory.SHA{row.ID})
			if err != nil || len(nodes) != 1 {
				t.Fatalf("%d nodes of a row, %v", len(nodes), err)
			}
			if n := nodes[0]; row != (index.Row{Project: n.Project, Stream: n.Stream, Level: n.Level, ID: n.ID, Hash: index.RowHash(&n)}) {
				t.Errorf("row %+v of %+v", row, n)
			}
		}
		if _, c, err := g.Hash(t.Context(), Tenant); err != nil || int64(seen) != c.Nodes || seen == 0 {
			t.Errorf("%d rows of %d nodes, %v", seen, c.Nodes, err)
		}
		for range r.Rows(t.Context(), Tenant) {
			break // an early end frees what it holds
		}
	})
	t.Run("searchable", func(t *testing.T) {
		t.Parallel()
		g, _ := fresh(t)
		c, ok := g.(index.Searchable)
		if !ok {
			t.Skipf("%T does not count", g)
		}
		l := NewLexical()
		applyStory(t, g)
		applyStory(t, l)
		want, err := l.Passages(t.Context(), Tenant)
		got, gerr := c.Searchable(t.Context(), Tenant, Space)
		if want != got || want == 0 || err != nil || gerr != nil {
			t.Errorf("%d passages, the words have %d (%v %v)", got, want, gerr, err)
		}
	})
}

// RunLexicalStages is the conformance suite of index.LexicalStager. open gives an empty
// index that the test closes.
func RunLexicalStages(t *testing.T, open func(t *testing.T) index.Lexical) {
	fresh := func(t *testing.T) (index.Lexical, index.LexicalStager) {
		l := open(t)
		t.Cleanup(func() { l.Close() })
		s, ok := l.(index.LexicalStager)
		if !ok {
			t.Fatalf("%T is no stager", l)
		}
		return l, s
	}
	stage := func(t *testing.T, s index.LexicalStager) index.StagedLexical {
		t.Helper()
		next, err := s.Stage(t.Context(), Tenant)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	state := func(t *testing.T, l index.Lexical, tenant string) string {
		t.Helper()
		n, err := l.Passages(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		out := fmt.Sprint(n)
		for _, q := range []string{"ninety", "seven", "nightly"} {
			f := everything()
			f.Tenant = tenant
			hits, err := l.Search(t.Context(), q, f, 20)
			if err != nil {
				t.Fatal(err)
			}
			out += fmt.Sprintf(" %s:%d", q, len(hits))
		}
		return out
	}
	const was, is = "5 ninety:2 seven:0 nightly:2", "5 ninety:0 seven:2 nightly:2"

	t.Run("switch", func(t *testing.T) {
		t.Parallel()
		l, s := fresh(t)
		applyAll(t, l, generation(oldText))
		for _, b := range generation(oldText) {
			applyAll(t, l, []index.Batch{inTenant(rival, b)})
		}
		if got := state(t, l, Tenant); got != was {
			t.Fatalf("%q, want %q", got, was)
		}
		rivals := state(t, l, rival)
		stop := searchThroughout(t, func() ([]index.Hit, error) {
			return l.Search(t.Context(), "nightly release", everything(), 20)
		})
		texts, states := []string{oldText, newText}, []string{was, is}
		for round := 1; round <= 2; round++ {
			next := stage(t, s)
			applyAll(t, next, generation(texts[round%2]))
			if got := state(t, l, Tenant); got != states[(round+1)%2] {
				t.Fatalf("round %d: before the switch %q", round, got)
			}
			if got := state(t, next, Tenant); got != states[round%2] {
				t.Errorf("round %d: the staged one has %q", round, got)
			}
			if err := next.Switch(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
			if got := state(t, l, Tenant); got != states[round%2] {
				t.Errorf("round %d: after the switch %q", round, got)
			}
			wantPosition(t, l, Project, "q@1", 2)
			if got := state(t, l, rival); got != rivals {
				t.Errorf("round %d: another tenant has %q, had %q", round, got, rivals)
			}
		}
		stop()
		more := Batch(3, Evidence(Project, "q@1", "Seven deploys stop.", 4))
		applyAll(t, l, []index.Batch{more, inTenant(rival, more)})
		if got := state(t, l, Tenant); got != "6 ninety:2 seven:1 nightly:2" {
			t.Errorf("a batch after the switch: %q", got)
		}
	})
	t.Run("resume and drop", func(t *testing.T) {
		t.Parallel()
		l, s := fresh(t)
		applyAll(t, l, generation(oldText))
		next := stage(t, s)
		applyAll(t, next, generation(newText)[:3])
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		next = stage(t, s)
		wantPosition(t, next, Project, "q@1", 2)
		if got := state(t, next, Tenant); got != "4 ninety:0 seven:2 nightly:1" {
			t.Errorf("gone on with: %q", got)
		}
		wantPosition(t, next, "other", "q@2", 0)
		if err := next.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		if got := state(t, l, Tenant); got != was {
			t.Errorf("a staged index that was dropped changed the serving one: %q", got)
		}
		next = stage(t, s)
		wantPosition(t, next, Project, "q@1", 0)
		if err := next.Switch(t.Context()); err != nil { // of nothing
			t.Fatal(err)
		}
		if got := state(t, l, Tenant); got != "0 ninety:0 seven:0 nightly:0" {
			t.Errorf("after a switch to an empty one: %q", got)
		}
		applyAll(t, l, generation(oldText))
		if got := state(t, l, Tenant); got != was {
			t.Errorf("filled again: %q", got)
		}
	})
}
