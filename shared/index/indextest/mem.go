// Package indextest holds the reference drivers of shared/index, kept in maps
// and written to be obviously right, and the conformance suites that every
// driver runs. It is imported by tests only.
package indextest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

type position struct{ tenant, project, stream, space string }

type vectorKey struct {
	space   string
	passage memory.SHA
}

// Graph is the reference index.Graph: exact, slow, in memory.
type Graph struct {
	mu      sync.Mutex
	nodes   map[memory.SHA]index.Node
	by      map[memory.SHA][]edge // supersedes edges by their older end
	vectors map[vectorKey][]float32
	dims    map[string]int // by tenant and space
	applied map[position]int64
	staged  map[string]*Graph // by tenant
}

type edge struct {
	by              memory.SHA
	tenant, project string
}

var _ index.Graph = (*Graph)(nil)

// NewGraph is an empty reference graph.
func NewGraph() *Graph {
	return &Graph{
		nodes: map[memory.SHA]index.Node{}, by: map[memory.SHA][]edge{}, vectors: map[vectorKey][]float32{},
		dims: map[string]int{}, applied: map[position]int64{},
	}
}

// Apply implements index.Graph.
func (g *Graph) Apply(_ context.Context, b index.Batch) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := position{b.Tenant, b.Project, b.Stream, b.Space}
	if b.Seq >= 1 && b.Seq <= g.applied[at] {
		return nil
	}
	if err := index.Validate(&b, g.dims[b.Tenant+"/"+b.Space]); err != nil {
		return err
	}
	if b.Seq != g.applied[at]+1 {
		return fault.New(fault.Unavailable, "seq %d is not next: %d is applied", b.Seq, g.applied[at])
	}
	if b.Replace && !g.replace(&b) {
		b.Nodes = nil
	}
	for _, n := range b.Nodes {
		n = index.Normal(n)
		g.retire(&n, b.Space)
		if stored, ok := g.nodes[n.ID]; ok {
			n = index.Merge(stored, n)
		}
		for _, by := range n.SupersededBy {
			g.edge(n.ID, edge{by, n.Tenant, n.Project})
		}
		for _, of := range n.Supersedes {
			g.edge(of, edge{n.ID, n.Tenant, n.Project})
		}
		n.SupersededBy = nil
		g.nodes[n.ID] = n
		for _, p := range n.Passages {
			if v, ok := b.Vectors[p.ID]; ok {
				if _, ok := g.vectors[vectorKey{b.Space, p.ID}]; !ok {
					g.vectors[vectorKey{b.Space, p.ID}] = v
				}
			}
		}
	}
	for _, v := range b.Vectors {
		g.dims[b.Tenant+"/"+b.Space] = len(v)
	}
	g.applied[at] = b.Seq
	return nil
}

var _ index.SpaceDropper = (*Graph)(nil)

// DropSpace implements index.SpaceDropper.
func (g *Graph) DropSpace(_ context.Context, tenant, space string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.applied, func(p position, _ int64) bool { return p.tenant == tenant && p.space == space })
	maps.DeleteFunc(g.vectors, func(k vectorKey, _ []float32) bool {
		if k.space != space {
			return false
		}
		for _, n := range g.nodes {
			if n.Tenant == tenant && slices.ContainsFunc(n.Passages, func(p index.Passage) bool { return p.ID == k.passage }) {
				return true
			}
		}
		return false
	})
	delete(g.dims, tenant+"/"+space)
	return nil
}

// replace takes out what the stream stated before b; false where b is outdated.
func (g *Graph) replace(b *index.Batch) bool {
	var ahead int64
	for p, seq := range g.applied {
		if p.tenant == b.Tenant && p.project == b.Project && p.stream == b.Stream && p.space != b.Space {
			ahead = max(ahead, seq)
		}
	}
	if ahead >= b.Seq {
		return ahead == b.Seq
	}
	for id, n := range g.nodes {
		if n.Tenant != b.Tenant || n.Project != b.Project || n.Stream != b.Stream {
			continue
		}
		delete(g.nodes, id)
		maps.DeleteFunc(g.vectors, func(k vectorKey, _ []float32) bool {
			return slices.ContainsFunc(n.Passages, func(p index.Passage) bool { return p.ID == k.passage })
		})
		for of, edges := range g.by {
			g.by[of] = slices.DeleteFunc(edges, func(e edge) bool { return e.by == id })
		}
	}
	return true
}

// retire takes the vectors of the memories that n replaces out of a space.
func (g *Graph) retire(n *index.Node, space string) {
	if n.Level != memory.L1 && n.Level != memory.L2 {
		return
	}
	for _, id := range n.Supersedes {
		old := g.nodes[id]
		for _, p := range old.Passages {
			delete(g.vectors, vectorKey{space, p.ID})
		}
	}
}

func (g *Graph) edge(of memory.SHA, e edge) {
	for _, x := range g.by[of] {
		if x.by == e.by {
			return
		}
	}
	g.by[of] = append(g.by[of], e)
}

// Applied implements index.Graph.
func (g *Graph) Applied(_ context.Context, tenant, project, stream, space string) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.applied[position{tenant, project, stream, space}], nil
}

// Sees reports whether f lets n be found.
func Sees(f *index.Filter, n *index.Node) bool {
	if n.Tenant != f.Tenant || !slices.Contains(f.Projects, n.Project) || !slices.Contains(f.Scope(), n.Level) {
		return false
	}
	return f.Seen(n.Occurrences)
}

// SearchDense implements index.Graph.
func (g *Graph) SearchDense(_ context.Context, space string, vec []float32, f index.Filter, k int) ([]index.Hit, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if norm(vec) == 0 || len(f.Projects) == 0 {
		return nil, nil
	}
	if d := g.dims[f.Tenant+"/"+space]; d != 0 && d != len(vec) {
		return nil, fault.New(fault.Invalid, "query vector has %d dimensions, its space has %d", len(vec), d)
	}
	var hits []index.Hit
	for _, n := range g.nodes {
		if !Sees(&f, &n) {
			continue
		}
		best := index.Hit{Node: n.ID, Score: math.Inf(-1)}
		for _, p := range n.Passages {
			v, ok := g.vectors[vectorKey{space, p.ID}]
			if !ok {
				continue
			}
			if c := cosine(vec, v); c > best.Score || c == best.Score && p.ID < best.Passage {
				best.Passage, best.Score = p.ID, c
			}
		}
		if best.Passage != "" {
			hits = append(hits, best)
		}
	}
	return first(hits, k), nil
}

func first(hits []index.Hit, k int) []index.Hit {
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Node, b.Node))
	})
	return hits[:min(len(hits), max(k, 0))]
}

func norm(v []float32) float64 {
	var s float64
	for _, x := range v {
		s += float64(x) * float64(x)
	}
	return math.Sqrt(s)
}

func cosine(a, b []float32) float64 {
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	if n := norm(a) * norm(b); n > 0 {
		return s / n
	}
	return 0
}

// Nodes implements index.Graph.
func (g *Graph) Nodes(_ context.Context, tenant string, ids []memory.SHA) ([]index.Node, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []index.Node
	seen := map[memory.SHA]bool{}
	for _, id := range ids {
		if n, ok := g.nodes[id]; ok && n.Tenant == tenant && !seen[id] {
			seen[id] = true
			out = append(out, g.whole(n))
		}
	}
	return out, nil
}

// whole is n with the edges that other nodes' batches brought.
func (g *Graph) whole(n index.Node) index.Node {
	n.Supersedes = nil
	for of, edges := range g.by {
		for _, e := range edges {
			if e.by == n.ID {
				n.Supersedes = append(n.Supersedes, of)
			}
		}
	}
	n.Parents = slices.Clone(n.Parents)
	n.Occurrences = slices.Clone(n.Occurrences)
	n.Passages = slices.Clone(n.Passages)
	return index.Sorted(n)
}

// Walk implements index.Graph.
func (g *Graph) Walk(_ context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[memory.SHA][]memory.SHA{}
	for _, root := range ids {
		if n, ok := g.nodes[root]; !ok || n.Tenant != tenant {
			continue
		}
		found := []memory.SHA{}
		seen := map[memory.SHA]bool{}
		for todo := []memory.SHA{root}; len(todo) > 0; {
			id := todo[0]
			todo = todo[1:]
			n, ok := g.nodes[id]
			if seen[id] || !ok {
				continue
			}
			seen[id] = true
			if n.Level == memory.L0 || n.Level == memory.LevelRaw {
				found = append(found, id)
			}
			todo = append(todo, n.Parents...)
		}
		slices.Sort(found)
		out[root] = found
	}
	return out, nil
}

// Superseded implements index.Graph.
func (g *Graph) Superseded(_ context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[memory.SHA][]memory.SHA{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		of, ok := g.nodes[id]
		if !ok || of.Tenant != tenant {
			continue
		}
		for _, e := range g.by[id] {
			if by, ok := g.nodes[e.by]; ok && index.Newer(&by, &of) {
				out[id] = append(out[id], e.by)
			}
		}
		slices.Sort(out[id])
	}
	return out, nil
}

// Succession implements index.Graph.
func (g *Graph) Succession(ctx context.Context, tenant string, ids []memory.SHA, steps int) ([]index.Node, error) {
	g.mu.Lock()
	all := slices.Clone(ids)
	for last, n := ids, 0; n < steps && len(last) > 0; n++ {
		var next []memory.SHA
		for _, id := range last {
			for _, e := range g.by[id] {
				if !slices.Contains(all, e.by) {
					all, next = append(all, e.by), append(next, e.by)
				}
			}
		}
		last = next
	}
	g.mu.Unlock()
	slices.Sort(all)
	nodes, err := g.Nodes(ctx, tenant, all)
	return bare(nodes), err
}

func bare(nodes []index.Node) []index.Node {
	for i := range nodes {
		nodes[i].Passages = nil
	}
	return nodes
}

// Below implements index.Graph.
func (g *Graph) Below(ctx context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, []index.Node, error) {
	walk, err := g.Walk(ctx, tenant, ids)
	if err != nil {
		return nil, nil, err
	}
	tops, err := g.Nodes(ctx, tenant, ids)
	if err != nil {
		return nil, nil, err
	}
	var all []memory.SHA
	for _, found := range walk {
		all = append(all, found...)
	}
	for i := range tops {
		all = append(all, tops[i].Parents...)
	}
	slices.Sort(all)
	nodes, err := g.Nodes(ctx, tenant, all)
	return walk, bare(nodes), err
}

// All gives a tenant's nodes, sorted by id.
func (g *Graph) All(tenant string) ([]index.Node, error) {
	g.mu.Lock()
	ids := slices.Sorted(maps.Keys(g.nodes))
	g.mu.Unlock()
	return g.Nodes(context.Background(), tenant, ids)
}

// Hash implements index.Graph.
func (g *Graph) Hash(_ context.Context, tenant string) (memory.SHA, index.Counts, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var c index.Counts
	h := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(g.nodes)) {
		n := g.whole(g.nodes[id])
		if n.Tenant != tenant {
			continue
		}
		index.AddRow(h, &n)
		c.Nodes++
		c.Passages += int64(len(n.Passages))
		c.Occurrences += int64(len(n.Occurrences))
		c.Edges += int64(len(n.Parents))
		for key := range g.vectors {
			if slices.ContainsFunc(n.Passages, func(p index.Passage) bool { return p.ID == key.passage }) {
				c.Vectors++
			}
		}
	}
	for _, edges := range g.by {
		for _, e := range edges {
			if e.tenant == tenant {
				c.Edges++
			}
		}
	}
	return memory.SHA(hex.EncodeToString(h.Sum(nil))), c, nil
}

// Check implements index.Graph for what the suite tests: open edges and nodes
// without what they rest on.
func (g *Graph) Check(_ context.Context, tenant string) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	below := map[memory.Level]memory.Level{memory.L1: memory.L0, memory.L2: memory.L1}
	for id, n := range g.nodes {
		if n.Tenant != tenant {
			continue
		}
		rests := n.Level == memory.L0 || n.Level == memory.LevelRaw
		for _, p := range n.Parents {
			parent, ok := g.nodes[p]
			if !ok {
				out = append(out, fmt.Sprintf("node %s: parent %s is not in the index", id, p))
			}
			rests = rests || ok && parent.Level == below[n.Level]
		}
		if !rests {
			out = append(out, fmt.Sprintf("node %s has nothing below it", id))
		}
	}
	for of, edges := range g.by {
		for _, e := range edges {
			_, okBy := g.nodes[e.by]
			_, okOf := g.nodes[of]
			if e.tenant == tenant && (!okBy || !okOf) {
				out = append(out, fmt.Sprintf("node %s replaces %s, and one is not in the index", e.by, of))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// Wipe implements index.Graph.
func (g *Graph) Wipe(_ context.Context, tenant, project string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tenant == "" {
		return fault.New(fault.Invalid, "a tenant is needed")
	}
	in := func(t, p string) bool { return t == tenant && (project == "" || p == project) }
	for id, n := range g.nodes {
		if !in(n.Tenant, n.Project) {
			continue
		}
		for key := range g.vectors {
			if slices.ContainsFunc(n.Passages, func(p index.Passage) bool { return p.ID == key.passage }) {
				delete(g.vectors, key)
			}
		}
		delete(g.nodes, id)
	}
	for of, edges := range g.by {
		g.by[of] = slices.DeleteFunc(edges, func(e edge) bool { return in(e.tenant, e.project) })
	}
	maps.DeleteFunc(g.applied, func(p position, _ int64) bool { return in(p.tenant, p.project) })
	return nil
}

// Close implements index.Graph.
func (g *Graph) Close() error { return nil }
