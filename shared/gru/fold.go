package gru

import (
	"iter"
	"maps"
	"slices"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Fold rebuilds the state of a stream from its records, in order. Going on
// from it gives the same decisions, byte for byte, as never having stopped.
func Fold(records iter.Seq[any]) State { return State{}.FoldOn(records) }

// FoldOn folds the records that follow a state, as a folded-state cache holds
// it. It is Apply for many records, in time linear in them.
func (s State) FoldOn(records iter.Seq[any]) State {
	s.Kept = slices.Clone(s.Kept)
	at := index(s.Kept)
	for r := range records {
		s.apply(r, at)
	}
	return s
}

// Apply folds one record into the state; s stays as it is. Records of other
// types change nothing.
func (s State) Apply(r Record) State { return s.applyAll([]Record{r}) }

func (s State) applyAll(recs []Record) State {
	changes, finds := false, 0
	for _, r := range recs {
		switch r := r.(type) {
		case *memory.Evidence:
			changes = true
			finds += 1 + len(r.Supersedes)
		case *memory.Gate:
			changes = changes || len(r.Gone) > 0 || r.ReasonCode == ReasonForgotten
			finds += len(r.Gone)
		case *memory.Memory:
			changes = true
		}
	}
	var at map[memory.SHA]int
	if changes {
		s.Kept = slices.Clone(s.Kept) // the state given stays as it was
		if finds > fewFinds {
			at = index(s.Kept)
		}
	}
	for _, r := range recs {
		s.apply(r, at)
	}
	return s
}

// fewFinds is how many look-ups scan the kept statements: a scan compares
// hashes in a row, which an index has to hash and store.
const fewFinds = 16

// index finds a kept statement by its node.
func index(kept []*Kept) map[memory.SHA]int {
	at := make(map[memory.SHA]int, len(kept))
	for i := range kept {
		at[kept[i].Node] = i
	}
	return at
}

// apply changes s, whose Kept nobody else holds. at is the index of Kept, nil
// where a scan is cheaper than building one.
func (s *State) apply(r Record, at map[memory.SHA]int) {
	switch r := r.(type) {
	case *memory.Run:
		if r.Cause.Kind == memory.CauseTombstone {
			return // it states anew what was erased, whatever part is open
		}
		if r.Cause.Kind == memory.CauseSynthesis {
			s.startOver()
		}
		s.Open = &OpenRun{Run: r.Run, Ref: r.Cause.Ref, Admit: r.Admit, Source: r.Source, T0: r.T, Next: r.From, From: r.Offset, Used: r.Used, Regate: r.Cause.Kind == memory.CauseRegate, Synthesis: r.Cause.Kind == memory.CauseSynthesis}
		if r.From > 0 {
			s.Open.Frozen = s.MemoryText // its first batch may begin in the middle of one
		}
	case *memory.Gate:
		s.T = r.T
		if r.ReasonCode == ReasonForgotten && r.Update && r.CandidateSHA == "" {
			s.forget() // nothing is left that a memory could rest on
		}
		if len(r.Shingles) > 0 && !r.Forgotten {
			s.Shingles = append(slices.Clip(s.Shingles), r.Shingles...)
		}
		if r.Newest.After(s.Newest) {
			s.Newest = r.Newest
		}
		for _, n := range r.Gone {
			s.erase(n, at)
		}
		if r.RegateOf > 0 {
			s.regated(r)
		}
		if r.Pending {
			s.Pending = append(slices.Clip(s.Pending), PendingStep{T: r.T, Admit: r.Admit, I: r.I, Start: r.Start, End: r.End})
		}
		if s.Open != nil && s.Open.Run == r.Run {
			o := *s.Open // shared with the state before
			if o.Regate {
				o.Used += b2i(r.Update)
				o.Pending += b2i(r.Pending)
				s.Open = &o
				break
			}
			if r.Parallel > 1 && r.I%r.Parallel == 0 && r.Start == 0 {
				o.Frozen = s.MemoryText // this step's memory comes after its gate
			}
			if o.Next, o.From = r.I+1, 0; r.More {
				o.Next, o.From = r.I, r.End
			}
			if r.Update && o.LastUsed != r.I+1 {
				o.Used++
				o.LastUsed = r.I + 1
			}
			o.Pending += b2i(r.Pending)
			o.Exited = o.Exited || r.ExitActed
			s.Open = &o
		}
	case *memory.Evidence:
		if r.Forgotten {
			s.bridge(r)
			break
		}
		s.keep(r, at)
	case *memory.Memory:
		if r.Forgotten {
			break
		}
		s.MemoryText, s.MemorySHA, s.MemoryNode, s.Tokens = r.Text, r.TextSHA, r.Node, r.Tokens
		if s.Open != nil && s.Open.Synthesis {
			o := *s.Open
			o.Memory, s.Open = r, &o
		}
		in := make(map[memory.SHA]bool, len(r.Parents))
		// Of some thousand statements a memory holds some dozens: most are told
		// apart by the first byte of their hash.
		var first [256]bool
		for _, n := range r.Parents {
			in[n] = true
			first[firstByte(n)] = true
		}
		for i, k := range s.Kept {
			if k.In != (first[firstByte(k.Node)] && in[k.Node]) {
				c := *k
				c.In = !k.In
				s.Kept[i] = &c
			}
		}
	case *memory.RunEnd:
		if s.Open != nil && s.Open.Run != r.Run {
			return
		}
		if s.Open != nil && s.Open.Synthesis {
			s.Ended = s.Open.Ref
		}
		s.Open = nil
		if !r.Continued {
			s.Admit = max(s.Admit, r.Admit)
		}
	}
}

// firstByte folds the first two hex digits of a hash into a byte.
func firstByte(n memory.SHA) byte {
	if len(n) < 2 {
		return 0
	}
	return n[0]<<4 ^ n[1]
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// regated takes the step that r stands for from what is pending: the piece of it
// that r looked at.
func (s *State) regated(r *memory.Gate) {
	i := slices.IndexFunc(s.Pending, func(p PendingStep) bool { return p.T == r.RegateOf })
	if i < 0 {
		return // what a scrub states anew was not pending
	}
	s.Pending = slices.Clone(s.Pending)
	if r.More {
		s.Pending[i].Start = r.End
		return
	}
	s.Pending = slices.Delete(s.Pending, i, i+1)
}

func (s *State) find(node memory.SHA, at map[memory.SHA]int) int {
	if at != nil {
		if i, ok := at[node]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(s.Kept, func(k *Kept) bool { return k.Node == node })
}

// keep adds a statement; what it supersedes, or what supersedes it, is marked
// by the total order of DESIGN section 3.
func (s *State) keep(e *memory.Evidence, at map[memory.SHA]int) {
	n := &Kept{
		Node: e.Node, Text: e.Text, T: e.T, Place: e.Place, Score: e.Score, Role: e.Role,
		TextSHA: e.TextSHA, Chunk: e.Span.Chunk, ChunkStart: e.Span.ChunkStart, ChunkEnd: e.Span.ChunkEnd,
		Amends: slices.Contains(e.Rules, CueAmends),
	}
	if e.Restates != nil && s.restate(e, n, at) {
		return
	}
	related := e.Supersedes
	if len(s.Bridges) > 0 {
		related = memory.Bridged(s.Bridges, func(node memory.SHA) bool { return s.find(node, at) >= 0 }, related)
	}
	for _, o := range related {
		i := s.find(o.Node, at)
		switch {
		case i < 0 || o.Node == n.Node:
		case e.Place.Compare(s.Kept[i].Place) > 0:
			k := *s.Kept[i]
			k.supersede(e.Place)
			s.Kept[i] = &k
		default:
			n.supersede(s.Kept[i].Place)
		}
	}
	if i := s.find(n.Node, at); i >= 0 { // the same words again: the newer statement counts
		if k := s.Kept[i]; n.Place.Compare(k.Place) > 0 {
			n.In = k.In
			s.Kept[i] = n
		}
		return
	}
	if at != nil {
		at[n.Node] = len(s.Kept)
	}
	s.Kept = append(s.Kept, n)
}

// bridge notes what a forgotten statement had to do with others: where a third one has
// to do with it, that one has to do with these.
func (s *State) bridge(e *memory.Evidence) {
	if len(e.Supersedes) == 0 {
		return
	}
	bridges := maps.Clone(s.Bridges) // shared with the state before
	if bridges == nil {
		bridges = map[memory.SHA][]memory.Occurrence{}
	}
	bridges[e.Node] = append(slices.Clip(bridges[e.Node]), e.Supersedes...)
	s.Bridges = bridges
}

// forget empties the memory.
func (s *State) forget() {
	s.MemoryText, s.MemorySHA, s.MemoryNode, s.Tokens = "", "", "", 0
	for i, k := range s.Kept {
		if k.In {
			c := *k
			c.In = false
			s.Kept[i] = &c
		}
	}
}

func (k *Kept) supersede(by memory.Place) {
	k.Superseded = true
	if by.Compare(k.Until) > 0 {
		k.Until = by
	}
}

// restate puts n, which e states, in the place of the erased statement: what it
// superseded and what superseded it stays. It is false where that statement is
// not kept, or where the new words are kept already.
func (s *State) restate(e *memory.Evidence, n *Kept, at map[memory.SHA]int) bool {
	i := s.find(e.Restates.Node, at)
	if i < 0 {
		return false
	}
	if j := s.find(n.Node, at); j >= 0 && j != i {
		s.erase(e.Restates.Node, at) // two statements that differed in a secret alone
		return false
	}
	k := s.Kept[i]
	n.Place, n.Superseded, n.Until, n.In = k.Place, k.Superseded, k.Until, k.In
	s.Kept[i] = n
	if at != nil {
		delete(at, k.Node)
		at[n.Node] = i
	}
	return true
}

// erase takes the words out of a kept statement. It stays for its place.
func (s *State) erase(node memory.SHA, at map[memory.SHA]int) {
	if i := s.find(node, at); i >= 0 {
		k := *s.Kept[i]
		k.Text, k.In = "", false
		s.Kept[i] = &k
	}
}
