package index

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Validate refuses a batch that a projection must not hold: a node that cannot
// reach its source, whose id or text hash is not its own, or that belongs
// elsewhere. dims is the space's dimension when it is known, else 0. Errors
// are fault.Invalid and name the node.
func Validate(b *Batch, dims int) error {
	if !memory.ValidName(b.Tenant) || !memory.ValidName(b.Project) {
		return fault.New(fault.Invalid, "batch of %q/%q: not a tenant and a project", b.Tenant, b.Project)
	}
	if b.Stream == "" || b.Seq < 1 {
		return fault.New(fault.Invalid, "batch of stream %q, seq %d: a stream and a seq from 1 are needed", b.Stream, b.Seq)
	}
	for i := range b.Nodes {
		if err := validateNode(b, &b.Nodes[i]); err != nil {
			return fault.At(fault.Invalid, "node "+string(b.Nodes[i].ID), "", "%v", err)
		}
	}
	for id, v := range b.Vectors {
		if b.Space == "" {
			return fault.New(fault.Invalid, "vectors without a space")
		}
		if dims == 0 {
			dims = len(v)
		}
		if len(v) != dims || dims == 0 {
			return fault.New(fault.Invalid, "vector of passage %s has %d dimensions, its space has %d", id.Short(), len(v), dims)
		}
		for _, x := range v {
			if x != x || x-x != 0 { // NaN or infinite
				return fault.New(fault.Invalid, "vector of passage %s is not finite", id.Short())
			}
		}
	}
	return nil
}

func validateNode(b *Batch, n *Node) error {
	switch {
	case n.Tenant != b.Tenant || n.Project != b.Project || n.Stream != b.Stream:
		return fault.New(fault.Invalid, "stands in %s/%s/%s, its batch in %s/%s/%s", n.Tenant, n.Project, n.Stream, b.Tenant, b.Project, b.Stream)
	case n.TextSHA != memory.SumString(n.Text):
		return fault.New(fault.Invalid, "text does not match text_sha %s", n.TextSHA.Short())
	case n.ID != memory.NodeID(n.Tenant, n.Project, n.Level, n.Stream, n.TextSHA):
		return fault.New(fault.Invalid, "id is not that of its content")
	}
	switch n.Level {
	case memory.L0, memory.LevelRaw:
		if len(n.Occurrences) == 0 {
			return fault.New(fault.Invalid, "level %s without a span cannot reach its source", n.Level)
		}
		for _, o := range n.Occurrences {
			if o.Span.Object == "" || !o.Span.Chunk.Valid() || o.Span.End <= o.Span.Start {
				return fault.New(fault.Invalid, "occurrence at t=%d has no span", o.T)
			}
		}
	case memory.L1, memory.L2:
		if len(n.Parents) == 0 {
			return fault.New(fault.Invalid, "level %s without parents cannot reach its source", n.Level)
		}
	default:
		return fault.New(fault.Invalid, "level %q is not one of L0, L1, L2, raw", n.Level)
	}
	for _, ids := range [][]memory.SHA{n.Parents, n.Supersedes, n.SupersededBy} {
		for _, id := range ids {
			if !id.Valid() || id == n.ID {
				return fault.New(fault.Invalid, "edge to %q", id)
			}
		}
	}
	return nil
}

// Normal is the stored form of a batch's node: lists sorted without repeats,
// passages cut, and for L1 and L2 an occurrence of their own step.
func Normal(n Node) Node {
	n.Parents = sortedSet(n.Parents)
	n.Supersedes = sortedSet(n.Supersedes)
	n.SupersededBy = sortedSet(n.SupersededBy)
	if len(n.Occurrences) == 0 {
		n.Occurrences = []Occurrence{{T: n.T, Place: n.Place, Role: n.Role}}
	}
	n.Occurrences = uniteOccurrences(nil, n.Occurrences)
	if len(n.Passages) == 0 {
		n.Passages = PassagesOf(&n)
	}
	return n
}

// Merge unites a stored node with a later statement of the same text. The
// first occurrence keeps deciding T, date, speaker and passages. Both are in
// Normal form, and so is the result.
func Merge(stored, later Node) Node {
	stored.Parents = sortedSet(slices.Concat(stored.Parents, later.Parents))
	stored.Supersedes = sortedSet(slices.Concat(stored.Supersedes, later.Supersedes))
	stored.SupersededBy = sortedSet(slices.Concat(stored.SupersededBy, later.SupersededBy))
	stored.Occurrences = uniteOccurrences(stored.Occurrences, later.Occurrences)
	return stored
}

func uniteOccurrences(a, b []Occurrence) []Occurrence {
	out := slices.Concat(a, b)
	slices.SortStableFunc(out, compareOccurrences)
	return slices.CompactFunc(out, func(x, y Occurrence) bool { return compareOccurrences(x, y) == 0 })
}

func compareOccurrences(a, b Occurrence) int {
	return cmp.Or(cmp.Compare(a.T, b.T), compareSpans(a.Span, b.Span))
}

// Newest is the place of the node's last statement, and the last step at which
// it was made.
func (n *Node) Newest() (memory.Place, int) {
	p, t := n.Place, n.T
	for _, o := range n.Occurrences {
		if o.Place.Compare(p) > 0 {
			p = o.Place
		}
		t = max(t, o.T)
	}
	return p, t
}

// Newer reports whether a was stated after b. Of two nodes joined by a supersedes
// edge the newer is current: a decision that was taken back and then taken
// again is named by edges both ways, perhaps over a third node, and its last
// statement holds. As the order is total, some node of every such ring is
// current. Memories (L1, L2) of one stream go by step, evidence by the order of
// DESIGN section 3.
func Newer(a, b *Node) bool {
	pa, ta := a.Newest()
	pb, tb := b.Newest()
	if (a.Level == memory.L1 || a.Level == memory.L2) && a.Stream == b.Stream {
		return ta > tb
	}
	return pa.Compare(pb) > 0
}

// Sorted is n with its lists in the order that Graph.Nodes promises.
func Sorted(n Node) Node {
	slices.Sort(n.Parents)
	slices.Sort(n.Supersedes)
	slices.SortFunc(n.Occurrences, compareOccurrences)
	return n
}

// Scope is the filter's levels with the default filled in.
func (f *Filter) Scope() []memory.Level {
	if len(f.Levels) == 0 {
		return []memory.Level{memory.L0, memory.L1, memory.L2}
	}
	return f.Levels
}

// Timed reports whether the filter looks at time at all.
func (f *Filter) Timed() bool {
	return !f.Since.IsZero() || !f.Until.IsZero() || !f.AsOf.IsZero()
}

// Range is the filter's time as nanoseconds since 1970, [from, to).
func (f *Filter) Range() (from, to int64) {
	from, to = minNano, maxNano
	if !f.Since.IsZero() {
		from = Nano(f.Since)
	}
	if !f.Until.IsZero() {
		to = Nano(f.Until)
	}
	if !f.AsOf.IsZero() {
		to = min(to, Nano(f.AsOf)+1)
	}
	return from, to
}

// Succession says of each memory (L1, L2) that nodes state or replace, taken in
// order, whether it is current after them. A stream states a new memory at
// nearly every step; only the last one may be found by a search, or its old
// versions, which hold nearly the same words, would fill every answer. The rows
// stay, for the hash and for the memory as it was; when the same text becomes
// the memory again, so does its node. Evidence is never taken out: what is
// superseded there is only outranked.
func Succession(nodes []Node) map[memory.SHA]bool {
	out := map[memory.SHA]bool{}
	for i := range nodes {
		n := &nodes[i]
		if n.Level != memory.L1 && n.Level != memory.L2 {
			continue
		}
		for _, id := range n.Supersedes {
			out[id] = false
		}
		out[n.ID] = true
	}
	return out
}

// Distinct are a batch's nodes in Normal form, each once: what a later one states joins
// the first.
func Distinct(in []Node) (out []Node) {
	at := map[memory.SHA]int{}
	for _, n := range in {
		n = Normal(n)
		if i, ok := at[n.ID]; ok {
			out[i] = Merge(out[i], n)
			continue
		}
		at[n.ID] = len(out)
		out = append(out, n)
	}
	return out
}

// Replacement says that one node names another as replaced.
type Replacement struct{ By, Of memory.SHA }

// Current are, of what replacements say, those that hold: where the one is newer (see
// Newer). nodes are both sides of them.
func Current(rs []Replacement, nodes []Node) map[memory.SHA][]memory.SHA {
	byID := make(map[memory.SHA]*Node, len(nodes))
	for i := range nodes {
		byID[nodes[i].ID] = &nodes[i]
	}
	out := map[memory.SHA][]memory.SHA{}
	for _, r := range rs {
		by, of := byID[r.By], byID[r.Of]
		if by != nil && of != nil && Newer(by, of) {
			out[r.Of] = append(out[r.Of], r.By)
		}
	}
	return out
}

// Superseders are, of nodes that name each other as replaced, those that hold; see
// Graph.Succession.
func Superseders(nodes []Node) map[memory.SHA][]memory.SHA {
	var rs []Replacement
	for i := range nodes {
		for _, of := range nodes[i].Supersedes {
			rs = append(rs, Replacement{By: nodes[i].ID, Of: of})
		}
	}
	out := Current(rs, nodes)
	for _, by := range out {
		slices.Sort(by)
	}
	return out
}

// Seen reports whether the filter's times and sources let one of a node's occurrences
// through.
func (f *Filter) Seen(occurrences []Occurrence) bool {
	if !f.Timed() && len(f.Sources) == 0 {
		return true
	}
	from, to := f.Range()
	return slices.ContainsFunc(occurrences, func(o Occurrence) bool {
		at := Nano(o.Place.Time)
		return at >= from && at < to && f.From(o.Span.Object)
	})
}

// From reports whether an object is one of the filter's sources.
func (f *Filter) From(object string) bool {
	return len(f.Sources) == 0 || object != "" && slices.ContainsFunc(f.Sources, func(s string) bool { return strings.HasPrefix(object, s) })
}

// Unit is v with length 1; the zero vector stays.
func Unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, len(v))
	if sum == 0 {
		return out
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out
}
