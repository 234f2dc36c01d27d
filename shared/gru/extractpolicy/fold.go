package extractpolicy

import (
	"fmt"
	"slices"
	"strings"

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

// folder compares the picks of one step with what the stream has kept.
type folder struct {
	p          *Policy
	in         gru.PolicyInput
	now        []statement // the past, then this step's
	picks      []gru.Pick
	repeats    int
	superseded int
	dropped    int
}

func newFolder(p *Policy, in gru.PolicyInput) *folder {
	f := &folder{p: p, in: in, now: make([]statement, len(in.State.Kept), len(in.State.Kept)+8)}
	for i := range in.State.Kept {
		k := in.State.Kept[i]
		f.now[i] = statement{Kept: k, turn: -1, print: f.print(k.Node, k.Text)}
	}
	return f
}

// print is the fingerprint of a node's text.
func (f *folder) print(node memory.SHA, text string) extractive.Fingerprint {
	fp, ok := f.p.prints.get(node)
	if !ok {
		fp = extractive.FingerprintOf(text)
		f.p.prints.put(node, fp)
	}
	return fp
}

// add takes chunk text [from,to) of a turn, unless it says nothing new.
func (f *folder) add(turn, from, to int, s *extractive.Sentence) {
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
		Amends: extractive.HasSupersede(c.Text[t.Start:t.End]),
	}}
	if cfg.Count(line(&n)) > cfg.BudgetTokens {
		f.dropped++ // one statement larger than a whole memory; the raw index holds it
		return
	}
	n.print = f.print(n.Node, text)
	var others []int
	again := -1 // the same words, kept before
	for i := range f.now {
		k := &f.now[i]
		rel := extractive.Relate(n.print, k.print, n.Amends)
		if k.Node == n.Node || rel == extractive.Repeat {
			if !k.Superseded || n.Place.Compare(k.Until) <= 0 {
				f.repeats++
				return
			}
			// What was replaced is said again, later: it holds again.
			if k.Node == n.Node {
				again = i
			}
			continue
		}
		if k.Superseded || !f.comparable(k, &n) {
			continue
		}
		if n.Place.Compare(k.Place) <= 0 {
			rel = extractive.Relate(k.print, n.print, k.Amends)
		}
		if rel == extractive.Supersedes {
			others = append(others, i)
		}
	}
	pick := gru.Pick{Turn: turn, Start: span.ChunkStart, End: span.ChunkEnd, Score: s.Score, Cues: s.Cues}
	if n.Amends {
		pick.Cues = append(slices.Clone(s.Cues), gru.CueAmends)
	}
	for _, i := range others {
		k := &f.now[i]
		pick.Supersedes = append(pick.Supersedes, memory.Occurrence{Node: k.Node, T: k.T, Place: k.Place})
		if n.Place.Compare(k.Place) > 0 {
			changed := *k.Kept
			changed.Superseded, changed.Until = true, n.Place
			k.Kept = &changed
			f.superseded++
		} else {
			n.Superseded = true
		}
	}
	n.In = true
	f.picks = append(f.picks, pick)
	if again >= 0 {
		f.now[again] = n
		return
	}
	f.now = append(f.now, n)
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
	var in []*statement
	for i := range f.now {
		if k := &f.now[i]; k.In && !k.Superseded {
			in = append(in, k)
		}
	}
	slices.SortStableFunc(in, func(a, b *statement) int {
		if c := a.Place.Compare(b.Place); c != 0 {
			return c
		}
		return strings.Compare(string(a.Node), string(b.Node))
	})
	count := f.in.Config.Count
	sizes := make([]int, len(in))
	total := 0
	for i, k := range in {
		sizes[i] = count(line(k))
		total += sizes[i]
	}
	for total > f.in.Config.BudgetTokens && len(in) > 0 {
		out := 0
		for i := range (len(in) + 1) / 2 {
			if in[i].Score < in[out].Score {
				out = i
			}
		}
		total -= sizes[out]
		in, sizes = slices.Delete(in, out, out+1), slices.Delete(sizes, out, out+1)
	}
	if len(in) == 0 {
		return f.in.State.MemoryText, []memory.SHA{} // all that is new is outdated already: evidence alone
	}
	var b strings.Builder
	parents := make([]memory.SHA, len(in))
	for i, k := range in {
		b.WriteString(line(k))
		parents[i] = k.Node
	}
	return b.String(), parents
}

// line is a statement in the memory text. It ends in a line end, so that the
// tokens of two lines are the sum of the tokens of each.
func line(k *statement) string { return "- " + k.Text + " [" + k.Node.Short() + "]\n" }
