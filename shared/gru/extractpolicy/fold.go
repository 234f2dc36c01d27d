package extractpolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/memory"
)

// statement is a kept statement, of the past or of this step.
type statement struct {
	*gru.Kept                        // those of the past are the state's own: copied before a change
	turn      int                    // of this chunk; -1 for one of the past
	print     extractive.Fingerprint // of the text
}

// folder compares the picks of one step with what the stream has kept. The
// statements have places: those of the past are State.Kept's, this step's
// follow.
type folder struct {
	p          *Policy
	in         gru.PolicyInput
	index      *keptIndex        // held until close
	changed    map[int]statement // of the past, what this step changed
	fresh      []statement
	picks      []gru.Pick
	repeats    int
	superseded int
	dropped    int
	shingles   []string // of the picks that are not kept
}

func newFolder(p *Policy, in gru.PolicyInput) *folder {
	f := &folder{p: p, in: in, index: p.indexOf(in.Config), changed: map[int]statement{}}
	f.index.mu.Lock()
	f.index.sync(p, in.State)
	return f
}

func (f *folder) close() { f.index.mu.Unlock() }

// at is the statement at a place.
func (f *folder) at(i int) statement {
	past := f.in.State.Kept
	if i >= len(past) {
		return f.fresh[i-len(past)]
	}
	if len(f.changed) > 0 {
		if s, ok := f.changed[i]; ok {
			return s
		}
	}
	return statement{Kept: past[i], turn: -1, print: f.index.index.At(i)}
}

// set changes the statement at a place.
func (f *folder) set(i int, s statement) {
	if past := len(f.in.State.Kept); i >= past {
		f.fresh[i-past] = s
	} else {
		f.changed[i] = s
	}
}

// near gives, ascending, the places in the past of the statements that n may
// repeat, supersede or be superseded by.
func (f *folder) near(n *statement) []int32 {
	past := int32(len(f.in.State.Kept))
	if f.p.everything {
		all := make([]int32, past)
		for i := range all {
			all[i] = int32(i)
		}
		return all
	}
	out := f.index.index.Related(n.print)
	for len(out) > 0 && out[len(out)-1] >= past { // the index may know more than an earlier state
		out = out[:len(out)-1]
	}
	return out
}

// relations is what one pick has to do with what is kept.
type relations struct {
	known  bool  // it says nothing new
	again  int   // the place of the same words, which were replaced meanwhile; -1
	others []int // the places of what it replaces, or what replaced it
}

// look compares n with the statement at place i; false ends the looking.
func (f *folder) look(n *statement, i int, r *relations) bool {
	k := f.at(i)
	rel := extractive.Relate(n.print, k.print, n.Amends)
	if k.Node == n.Node || rel == extractive.Repeat {
		if !k.Superseded || n.Place.Compare(k.Until) <= 0 {
			r.known = true
			return false
		}
		// What was replaced is said again, later: it holds again.
		if k.Node == n.Node {
			r.again = i
		}
		return true
	}
	if k.Superseded || !f.comparable(&k, n) {
		return true
	}
	if n.Place.Compare(k.Place) <= 0 {
		rel = extractive.Relate(k.print, n.print, k.Amends)
	}
	if rel == extractive.Supersedes {
		r.others = append(r.others, i)
	}
	return true
}

// compare compares n with the past and with this step's statements.
func (f *folder) compare(n *statement) relations {
	r := relations{again: -1}
	for _, i := range f.near(n) {
		if !f.look(n, int(i), &r) {
			return r
		}
	}
	for i := range f.fresh {
		if !f.look(n, len(f.in.State.Kept)+i, &r) {
			return r
		}
	}
	return r
}

// add takes chunk text [from,to) of a turn, unless it says nothing new. said
// is what the turn says, without the memory's own words.
func (f *folder) add(turn, from, to int, s *extractive.Sentence, said string) {
	c, cfg := f.in.Chunk, f.in.Config
	// A span that touches a redaction is widened to whole lines; the statement
	// is what the citation will hold.
	span, err := cfg.Citable(c, "", "", from, to)
	if err != nil {
		f.dropped++
		return
	}
	text := c.Text[span.ChunkStart:span.ChunkEnd]
	t := &c.Turns[turn]
	n := statement{turn: turn, Kept: &gru.Kept{
		Node: memory.NodeID(cfg.Tenant, cfg.Project, memory.L0, cfg.Stream, memory.SumString(text)),
		Text: text, T: f.in.State.T + 1, Place: f.in.Place(turn, span.ChunkStart), Score: s.Score, Role: t.Role,
		Amends: extractive.HasSupersede(said),
	}}
	if cfg.Count(line(n.Kept)) > cfg.BudgetTokens {
		f.dropped++ // one statement larger than a whole memory; the raw index holds it
		return
	}
	n.print = f.p.print(text)
	r := f.compare(&n)
	if r.known {
		f.repeats++
		f.pass(from, to)
		return
	}
	pick := gru.Pick{Turn: turn, Start: span.ChunkStart, End: span.ChunkEnd, Score: s.Score, Cues: s.Cues}
	if n.Amends {
		pick.Cues = append(slices.Clone(s.Cues), gru.CueAmends)
	}
	for _, i := range r.others {
		k := f.at(i)
		pick.Supersedes = append(pick.Supersedes, memory.Occurrence{Node: k.Node, T: k.T, Place: k.Place})
		if n.Place.Compare(k.Place) > 0 {
			changed := *k.Kept
			changed.Superseded, changed.Until = true, n.Place
			k.Kept = &changed
			f.set(i, k)
			f.superseded++
		} else {
			n.Superseded = true
		}
	}
	n.In = true
	f.picks = append(f.picks, pick)
	if r.again >= 0 {
		f.set(r.again, n)
		return
	}
	f.fresh = append(f.fresh, n)
}

// pass notes the shingle of a pick that this stream does not keep: one about
// other questions, or one that is known in other words. Another stream may keep
// it, and what that one gives out comes back to all.
func (f *folder) pass(from, to int) {
	span, err := f.in.Config.Citable(f.in.Chunk, "", "", from, to)
	if err != nil {
		return
	}
	s := derived.Shingle(f.in.Chunk.Text[span.ChunkStart:span.ChunkEnd])
	if s != "" && !f.index.own.Knows(s, len(f.in.State.Kept), len(f.in.State.Shingles)) && !slices.Contains(f.shingles, s) {
		f.shingles = append(f.shingles, s)
	}
}

// comparable reports whether one of two statements may replace the other. One
// message does not contradict itself sentence by sentence, nor one document
// section by section: there, like statements with other values stand side by
// side ("staging has two replicas", "production has four").
func (f *folder) comparable(k, n *statement) bool {
	if k.turn == n.turn {
		return false
	}
	return n.Role != memory.RoleNote || k.Role != memory.RoleNote || k.Place.Admit != n.Place.Admit
}

// summary is what the reason says of the fold.
func (f *folder) summary() string {
	s := fmt.Sprintf("; %d kept", len(f.picks))
	if f.repeats > 0 {
		s += fmt.Sprintf(", %d known", f.repeats)
	}
	if f.superseded > 0 {
		s += fmt.Sprintf(", %d superseded", f.superseded)
	}
	return s
}

// compose is the memory text and the nodes of its statements. Over the budget,
// of the older half of the statements the one with the least score leaves, on
// a tie the oldest, until the rest fits: so what is new has its turn, and what
// is old stays for its weight.
func (f *folder) compose() (string, []memory.SHA) {
	var in []*gru.Kept
	take := func(k *gru.Kept) {
		if k.In && !k.Superseded {
			in = append(in, k)
		}
	}
	for i, k := range f.in.State.Kept {
		if len(f.changed) > 0 {
			if c, ok := f.changed[i]; ok {
				k = c.Kept
			}
		}
		take(k)
	}
	for i := range f.fresh {
		take(f.fresh[i].Kept)
	}
	in = fitting(in, f.in.Config.Count, f.in.Config.BudgetTokens)
	if len(in) == 0 {
		return f.in.State.MemoryText, []memory.SHA{} // all that is new is outdated already: evidence alone
	}
	return written(in)
}

// Compose is the memory of statements that stand, as the policy would write it: all
// that none replaces, in order, without what the budget has no room for. "" of none.
func Compose(kept []*gru.Kept, count func(string) int, budgetTokens int) (text string, parents []memory.SHA) {
	var in []*gru.Kept
	for _, k := range kept {
		if k.Text != "" && !k.Superseded {
			in = append(in, k)
		}
	}
	return written(fitting(in, count, budgetTokens))
}

// fitting sorts statements and takes out what a budget has no room for.
func fitting(in []*gru.Kept, count func(string) int, budgetTokens int) []*gru.Kept {
	slices.SortFunc(in, func(a, b *gru.Kept) int {
		if c := a.Place.Compare(b.Place); c != 0 {
			return c
		}
		return strings.Compare(string(a.Node), string(b.Node))
	})
	sizes := make([]int, len(in))
	total := 0
	for i, k := range in {
		sizes[i] = count(line(k))
		total += sizes[i]
	}
	for total > budgetTokens && len(in) > 0 {
		out := 0
		for i := range (len(in) + 1) / 2 {
			if in[i].Score < in[out].Score {
				out = i
			}
		}
		total -= sizes[out]
		in, sizes = slices.Delete(in, out, out+1), slices.Delete(sizes, out, out+1)
	}
	return in
}

// written is the memory text of statements, and their nodes.
func written(in []*gru.Kept) (string, []memory.SHA) {
	var b strings.Builder
	parents := make([]memory.SHA, len(in))
	for i, k := range in {
		b.WriteString(line(k))
		parents[i] = k.Node
	}
	return b.String(), parents
}

// Line is a statement as it stands in the memory text. It ends in a line end, so
// that the tokens of two lines are the sum of the tokens of each.
func Line(text string, node memory.SHA) string { return "- " + text + " [" + node.Short() + "]\n" }

func line(k *gru.Kept) string { return Line(k.Text, k.Node) }
