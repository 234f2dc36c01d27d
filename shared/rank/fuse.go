package rank

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// rrfK is the constant of reciprocal rank fusion, Cormack et al. 2009.
const rrfK = 60

// Validate refuses weights that are negative or do not sum to 1, and floors
// outside [0,1]. The error is fault.Invalid.
func (o *Options) Validate() error {
	d, l := o.DenseWeight, o.LexicalWeight
	if !(d >= 0 && l >= 0 && math.Abs(d+l-1) <= 1e-9) {
		return fault.New(fault.Invalid, "weights %v and %v: each must be 0 or more, and their sum 1", d, l)
	}
	if !(o.FloorCosine >= 0 && o.FloorCosine <= 1 && o.FloorIDF >= 0 && o.FloorIDF <= 1) {
		return fault.New(fault.Invalid, "floors %v and %v must be in [0,1]", o.FloorCosine, o.FloorIDF)
	}
	return nil
}

// weights are those in use: scaled, and after a failed leg.
func (o *Options) weights() (dense, lexical float64) {
	d, l := max(o.DenseWeight, 0), max(o.LexicalWeight, 0)
	if !(d+l > 0) {
		def := Defaults()
		d, l = def.DenseWeight, def.LexicalWeight
	}
	switch {
	case (o.DenseFailed || o.LexicalOnly) && (o.LexicalFailed || o.DenseOnly):
		return 0, 0
	case o.DenseFailed, o.LexicalOnly:
		return 0, 1
	case o.LexicalFailed, o.DenseOnly:
		return 1, 0
	}
	return d / (d + l), l / (d + l)
}

// Fuse ranks what the two legs found. Scores that are not finite are dropped
// (see Dropped); an id that a leg gives twice counts once, with its best score.
// Ties go by cosine part, then by id.
//
// The linear score is a convex combination, which beats RRF in and out of
// domain and hardly depends on the normaliser (Bruch, Gai, Ingber,
// arXiv:2210.11934). Legs are normalised by bounds that do not depend on what
// was found, not by min-max: with that, one weak hit alone gets full marks, the
// last hit none, and a worse hit more raises all others.
func Fuse(dense, lexical []Scored, opt Options) []Fused {
	sorted := Find(dense, lexical, &opt).Fuse(&opt)
	out := make([]Fused, len(sorted))
	for i, f := range sorted {
		out[i] = *f
	}
	return out
}

// Fuse ranks what was found, with its replacements. It is called once.
func (in *Found) Fuse(opt *Options) []*Fused {
	byID := in.byID
	depth := succeed(byID, opt.Superseded, opt.amended(byID), in.dense, in.lexical)
	sorted := in.order // nearly in order already
	for _, f := range byID {
		if f.DenseRank == 0 && f.LexicalRank == 0 { // no leg found it: it joins as a replacement
			sorted = append(sorted, f)
		}
	}
	slices.SortFunc(sorted, func(a, b *Fused) int {
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Or(
			cmp.Compare(depth[a.ID], depth[b.ID]), // equal by succession: the newer first
			cmp.Compare(b.Dense, a.Dense),
			cmp.Compare(a.ID, b.ID))
	})
	if opt.Limit > 0 && len(sorted) > opt.Limit {
		sorted = sorted[:opt.Limit]
	}
	return sorted
}

// Explain writes the reasons of what Fuse ranked by the same options. It stands apart, as
// a hundred are ranked and ten are shown.
func Explain(fused []Fused, opt *Options) {
	for i := range fused {
		fused[i].Reason = reason(&fused[i], opt)
	}
}

// IDs are what Fuse ranks before replacements join it, in its order by score: only their
// rows need be read.
func (in *Found) IDs() []memory.SHA {
	ids := make([]memory.SHA, len(in.order))
	for i, f := range in.order {
		ids[i] = f.ID
	}
	return ids
}

// score is a hit's own, before succession.
func (o *Options) score(f *Fused, wd, wl float64) float64 {
	if o.RRF {
		return reciprocal(f.DenseRank) + reciprocal(f.LexicalRank)
	}
	return wd*f.Dense + wl*f.Lexical
}

// Found is what the legs found and the floor lets through.
type Found struct {
	byID           map[memory.SHA]*Fused
	order          []*Fused // by score
	dense, lexical float64  // weights
}

// Find scores what the legs found, by opt as far as it does not speak of replacements.
func Find(dense, lexical []Scored, opt *Options) *Found {
	wd, wl := opt.weights()
	all := make([]Fused, 0, len(dense)+len(lexical)) // never grows: byID points into it
	byID := make(map[memory.SHA]*Fused, cap(all))
	entry := func(id memory.SHA) *Fused {
		f := byID[id]
		if f == nil {
			all = append(all, Fused{ID: id, DenseWeight: wd, LexicalWeight: wl})
			f = &all[len(all)-1]
			byID[id] = f
		}
		return f
	}
	if !opt.DenseFailed && !opt.LexicalOnly {
		rank := 0
		for _, s := range ordered(dense) {
			f := entry(s.ID)
			if f.DenseRank > 0 { // again, and no better
				continue
			}
			rank++
			f.Cosine, f.Dense, f.DenseRank = s.Score, clamp(s.Score), rank
		}
	}
	if !opt.LexicalFailed && !opt.DenseOnly {
		hits := ordered(lexical)
		rank := 0
		for _, s := range hits {
			f := entry(s.ID)
			if f.LexicalRank > 0 {
				continue
			}
			rank++
			bound := s.Max
			if !(bound > 0) || math.IsInf(bound, 1) {
				bound = hits[0].Score
			}
			f.BM25, f.IDFShare, f.LexicalRank = s.Score, clamp(s.IDFShare), rank
			if bound > 0 {
				f.Lexical = clamp(s.Score / bound)
			}
		}
	}
	opt.floor(byID)
	order := make([]*Fused, 0, len(byID))
	for i := range all {
		if f := &all[i]; byID[f.ID] != nil {
			f.Score = opt.score(f, wd, wl)
			order = append(order, f)
		}
	}
	slices.SortFunc(order, func(a, b *Fused) int {
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return &Found{byID: byID, order: order, dense: wd, lexical: wl}
}

// Dropped counts the scores of a leg that are not finite and were left out.
func Dropped(leg []Scored) int {
	n := 0
	for _, s := range leg {
		if !finite(s.Score) {
			n++
		}
	}
	return n
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// ordered is a leg's ranking: finite scores, best first. An index gives its hits so.
func ordered(leg []Scored) []Scored {
	better := func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID),
			cmp.Compare(b.IDFShare, a.IDFShare), cmp.Compare(b.Max, a.Max))
	}
	if Dropped(leg) == 0 && slices.IsSortedFunc(leg, better) {
		return leg
	}
	out := slices.DeleteFunc(slices.Clone(leg), func(s Scored) bool { return !finite(s.Score) })
	slices.SortFunc(out, better)
	return out
}

// clamp puts x into [0,1]. A cosine below 0 says no more than 0 does: not alike.
func clamp(x float64) float64 {
	if !(x > 0) { // NaN too
		return 0
	}
	return min(x, 1)
}

func reciprocal(rank int) float64 {
	if rank == 0 {
		return 0
	}
	return 1 / float64(rrfK+rank)
}

// tailShare of the floor is asked of every hit of a question that passed: what
// is below says as little as nonsense does. Measured with the default weights
// on SDE-bench: of 18 plain tasks 17 keep their answer in first place, the 18th
// is a question that the floor takes for unknown; the whole floor asked of
// every hit keeps 16, as in a long question the words and the meaning of the
// answer both match in part.
const tailShare = 0.5

// floor removes everything when no hit reaches the floor, else the hits under
// tailShare of it.
func (o *Options) floor(byID map[memory.SHA]*Fused) {
	if o.NoFloor || o.FloorCosine <= 0 && o.FloorIDF <= 0 {
		return
	}
	known := false
	for _, f := range byID {
		known = known || o.reaches(f, 1)
	}
	maps.DeleteFunc(byID, func(_ memory.SHA, f *Fused) bool { return !known || !o.reaches(f, tailShare) })
}

// reaches reports whether a hit has a share of the floor.
func (o *Options) reaches(f *Fused, share float64) bool {
	return f.DenseRank > 0 && f.Cosine >= share*o.FloorCosine || f.LexicalRank > 0 && f.IDFShare >= share*o.FloorIDF
}

// amended are the amendments that hold for this question, by statement: the replaced one
// answers the question too, and not much worse, and the statement holds less of the
// question's words than the floor asks. Of a question that names what the statement says,
// the statement is the answer whatever else its conversation decided.
func (o *Options) amended(byID map[memory.SHA]*Fused) map[memory.SHA][]memory.SHA {
	out := map[memory.SHA][]memory.SHA{}
	for _, a := range o.Amended {
		of, through := byID[a.Of], byID[a.Through]
		if of == nil || through == nil || a.By == a.Of || slices.Contains(out[a.Of], a.By) {
			continue
		}
		vague := of.IDFShare < o.FloorIDF && o.reaches(through, 1) && through.Score >= tailShare*of.Score
		if a.Whole || vague {
			out[a.Of] = append(out[a.Of], a.By)
		}
	}
	return out
}

// succeed adds replacements that were not found, lifts each to the score of
// what it replaces or amends, over any number of steps, and gives how many
// stand before each node. What was asked about an old statement is asked about
// the newer one, whose words may be far from the question's.
func succeed(byID map[memory.SHA]*Fused, superseded, amended map[memory.SHA][]memory.SHA, wd, wl float64) map[memory.SHA]int {
	depth := map[memory.SHA]int{}
	if len(superseded) == 0 && len(amended) == 0 {
		return depth
	}
	replaces := map[memory.SHA][]memory.SHA{} // found nodes by their replacement
	var todo []memory.SHA
	for id := range byID {
		if len(superseded[id])+len(amended[id]) > 0 {
			todo = append(todo, id)
		}
	}
	slices.Sort(todo)
	seen := map[memory.SHA]bool{} // all that replace or are replaced
	for len(todo) > 0 {
		old := todo[0]
		todo = todo[1:]
		if seen[old] {
			continue
		}
		seen[old] = true
		after := func(by memory.SHA) bool {
			if by == old || slices.Contains(replaces[by], old) {
				return false
			}
			if byID[by] == nil {
				byID[by] = &Fused{ID: by, DenseWeight: wd, LexicalWeight: wl}
			}
			replaces[by] = append(replaces[by], old)
			todo = append(todo, by)
			return true
		}
		for _, by := range superseded[old] {
			if after(by) {
				byID[old].SupersededBy = append(byID[old].SupersededBy, by)
			}
		}
		for _, by := range amended[old] {
			if after(by) {
				byID[old].AmendedBy = append(byID[old].AmendedBy, by)
			}
		}
	}
	for _, olds := range replaces {
		slices.Sort(olds)
	}
	// Both walks end on a ring, which Graph.Superseded never gives.
	own := make(map[memory.SHA]float64, len(seen))
	for id := range seen {
		own[id] = byID[id].Score
	}
	up := &chain{byID: byID, depth: depth, above: map[memory.SHA]bool{}}
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		f := byID[id]
		slices.Sort(f.SupersededBy)
		slices.Sort(f.AmendedBy)
		reached := map[memory.SHA]bool{id: true}
		for todo := slices.Clone(replaces[id]); len(todo) > 0; todo = todo[1:] {
			old := todo[0]
			if reached[old] {
				continue
			}
			reached[old] = true
			if own[old] > f.Score || own[old] == f.Score && own[id] == 0 && f.Replaces == "" {
				f.Score, f.Replaces = own[old], old
				f.Amends = slices.Contains(byID[old].AmendedBy, id)
			}
			todo = append(todo, replaces[old]...)
		}
		up.steps(id)
	}
	return depth
}

// chain measures how many replacements stand above each node.
type chain struct {
	byID  map[memory.SHA]*Fused
	depth map[memory.SHA]int
	above map[memory.SHA]bool // those that are being measured
	rings int                 // how often one of them was met
}

// steps is the longest chain of replacements above id.
func (c *chain) steps(id memory.SHA) int {
	if c.above[id] {
		c.rings++
		return 0
	}
	if n, ok := c.depth[id]; ok {
		return n
	}
	rings := c.rings
	c.above[id] = true
	n := 0
	for _, before := range [][]memory.SHA{c.byID[id].SupersededBy, c.byID[id].AmendedBy} {
		for _, by := range before {
			n = max(n, 1+c.steps(by))
		}
	}
	delete(c.above, id)
	if c.rings == rings || len(c.above) == 0 { // on a ring the length depends on where one begins
		c.depth[id] = n
	}
	return n
}

// reason says in words why the node stands where it stands.
func reason(f *Fused, o *Options) string {
	var s string
	switch {
	case f.DenseRank > 0 && f.LexicalRank > 0 && f.Cosine < tailShare*o.FloorCosine:
		s = fmt.Sprintf("near in words alone (%.0f %% of what the question's rarer words weigh)", 100*f.IDFShare)
	case f.DenseRank > 0 && f.LexicalRank > 0:
		s = fmt.Sprintf("near in meaning (cosine %.2f) and in words (%.0f %% of what the question's rarer words weigh)", f.Cosine, 100*f.IDFShare)
	case f.DenseRank > 0:
		s = fmt.Sprintf("near in meaning alone (cosine %.2f)", f.Cosine)
	case f.LexicalRank > 0:
		s = fmt.Sprintf("near in words alone (%.0f %% of what the question's rarer words weigh)", 100*f.IDFShare)
	default:
		s = "not found itself"
	}
	switch {
	case o.DenseFailed && f.LexicalRank > 0:
		s += "; the search by meaning failed"
	case o.LexicalFailed && f.DenseRank > 0:
		s += "; the search by words failed"
	}
	switch {
	case f.Replaces == "":
	case f.Amends:
		s += fmt.Sprintf("; amends what was decided where %s stands, which matched better", f.Replaces.Short())
	default:
		s += fmt.Sprintf("; replaces %s, which matched better", f.Replaces.Short())
	}
	if len(f.SupersededBy) > 0 {
		s += fmt.Sprintf("; replaced by %s", f.SupersededBy[0].Short())
	}
	if len(f.AmendedBy) > 0 {
		s += fmt.Sprintf("; what its conversation decided was replaced by %s", f.AmendedBy[0].Short())
	}
	return s
}
