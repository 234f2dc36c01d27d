// Package projection says which index rows follow from which log records. Both
// functions that need them, embed and project, see the same nodes.
//
// Invariant: rows are a function of the log alone. The direction of a
// supersession is resolved here, by the total order of DESIGN section 3: the
// later-admitted record names the other statement, whichever is the newer.
//
// The package reads no store and writes no index.
package projection

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Replaces reports whether a segment ends a run of a synthesis: its nodes then stand
// in the place of all that the stream stated before (index.Batch.Replace).
func Replaces(seg *eventlog.Segment) bool { return lastRun(seg) != "" }

// lastRun is the last run of a synthesis that ends in the segment.
func lastRun(seg *eventlog.Segment) (run memory.SHA) {
	if memory.QueryID(seg.Header.Stream) != memory.SynthesisID {
		return ""
	}
	for _, r := range seg.Records {
		if e, ok := r.(*memory.RunEnd); ok && !e.Continued {
			run = e.Run
		}
	}
	return run
}

// synthesized is the memory that the last run of a synthesis in the segment came to;
// the loop states it in the segment of its end. What a run says on its way is no node:
// how many runs there were is nobody's business.
func synthesized(seg *eventlog.Segment) []eventlog.Record {
	run := lastRun(seg)
	for i := len(seg.Records) - 1; run != "" && i >= 0; i-- {
		if m, ok := seg.Records[i].(*memory.Memory); ok && m.Run == run {
			first := *m
			first.Supersedes = nil // within the run, of which nothing else is a row
			return []eventlog.Record{&first}
		}
	}
	return nil
}

// Nodes gives the nodes that a segment of a question stream states, in record
// order. The same node may stand in it more than once; an index merges them.
// What was erased is no node; edges to it lead to what gone, which may be nil,
// says of the stream.
func Nodes(seg *eventlog.Segment, gone *Gone) []index.Node {
	h := &seg.Header
	var out []index.Node
	add := func(n index.Node) {
		had := len(n.Parents) > 0
		gone.lead(&n)
		if !had || len(n.Parents) > 0 { // a memory of nothing that is left is none
			out = append(out, n)
		}
	}
	records := seg.Records
	if memory.QueryID(h.Stream) == memory.SynthesisID {
		records = synthesized(seg)
	}
	for _, r := range records {
		switch r := r.(type) {
		case *memory.Evidence:
			if r.Erased == "" {
				add(evidence(h, r, gone))
			}
		case *memory.Memory:
			if r.Erased != "" {
				continue
			}
			add(index.Node{
				ID: r.Node, Level: r.Level, Tenant: h.Tenant, Project: h.Project, Stream: h.Stream,
				QueryID: r.QueryID, Text: r.Text, TextSHA: r.TextSHA, T: r.T, Place: r.Place,
				Trust: memory.TrustAssistant, Parents: r.Parents, Supersedes: r.Supersedes,
				SourceTime: nil,
			})
		}
	}
	return out
}

// Stated are the passages of the nodes that a segment states: of no others are
// vectors kept.
func Stated(seg *eventlog.Segment) map[memory.SHA]bool {
	out := map[memory.SHA]bool{}
	nodes := Nodes(seg, nil)
	for i := range nodes {
		for _, p := range index.PassagesOf(&nodes[i]) {
			out[p.ID] = true
		}
	}
	return out
}

// Gone is what the erased statements of one stream left: which statements stand
// for them now. It is the fold of the whole stream.
type Gone struct {
	restated map[memory.SHA]memory.SHA   // L0: by the erased node; "" where nothing stands for it
	memories map[memory.SHA][]memory.SHA // L1 and L2: what the erased one superseded
	// Of forgotten statements: what each had to do with others, by node. One whose words
	// stand elsewhere is none.
	bridges map[memory.SHA][]memory.Occurrence
	stated  map[memory.SHA]bool
}

// Tombs reports whether a segment holds what was erased, or what stands for it:
// its stream has a Gone.
func Tombs(seg *eventlog.Segment) bool {
	for _, r := range seg.Records {
		switch r := r.(type) {
		case *memory.Run:
			if r.Cause.Kind == memory.CauseTombstone {
				return true
			}
		case *memory.Evidence:
			if r.Erased != "" {
				return true
			}
		case *memory.Memory:
			if r.Erased != "" {
				return true
			}
		}
	}
	return false
}

// Add folds the next segment of the stream.
func (g *Gone) Add(seg *eventlog.Segment) {
	if g.restated == nil {
		g.restated, g.memories = map[memory.SHA]memory.SHA{}, map[memory.SHA][]memory.SHA{}
		g.bridges, g.stated = map[memory.SHA][]memory.Occurrence{}, map[memory.SHA]bool{}
	}
	for _, r := range seg.Records {
		switch r := r.(type) {
		case *memory.Evidence:
			if r.Forgotten {
				g.bridges[r.Node] = append(g.bridges[r.Node], r.Supersedes...)
				break
			}
			g.stated[r.Node] = g.stated[r.Node] || r.Erased == ""
			if _, ok := g.restated[r.Node]; r.Erased != "" && !ok {
				g.restated[r.Node] = ""
			}
			if r.Restates != nil {
				g.restated[r.Restates.Node] = r.Node
			}
		case *memory.Memory:
			if r.Erased != "" {
				g.memories[r.Node] = r.Supersedes
			}
		}
	}
}

// lead gives the node's edges to erased ones what stands for these.
func (g *Gone) lead(n *index.Node) {
	if g == nil {
		return
	}
	n.Parents = g.all(n.ID, n.Parents)
	n.Supersedes = g.all(n.ID, n.Supersedes)
	n.SupersededBy = g.all(n.ID, n.SupersededBy)
}

// bridged gives occurrences with what stands behind forgotten ones in their place.
func (g *Gone) bridged(os []memory.Occurrence) []memory.Occurrence {
	if g == nil || len(g.bridges) == 0 {
		return os
	}
	return memory.Bridged(g.bridges, func(node memory.SHA) bool { return g.stated[node] }, os)
}

func (g *Gone) all(self memory.SHA, ids []memory.SHA) []memory.SHA {
	out := ids[:0:0]
	seen := map[memory.SHA]bool{self: true}
	todo := slices.Clone(ids)
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		if id == "" || seen[id] {
			continue
		}
		seen[id] = true
		if _, gone := g.bridges[id]; gone && !g.stated[id] {
			continue
		} else if next, gone := g.restated[id]; gone {
			todo = append(todo, next)
		} else if before, gone := g.memories[id]; gone {
			todo = append(todo, before...)
		} else {
			out = append(out, id)
		}
	}
	return out
}

func evidence(h *eventlog.Header, r *memory.Evidence, gone *Gone) index.Node {
	n := index.Node{
		ID: r.Node, Level: r.Level, Tenant: h.Tenant, Project: h.Project, Stream: h.Stream,
		QueryID: memory.QueryID(h.Stream), Text: r.Text, TextSHA: r.TextSHA, T: r.T,
		Role: r.Role, Trust: r.Trust, Place: r.Place, SourceTime: r.SourceTime,
		Occurrences: []index.Occurrence{{T: r.T, Place: r.Place, Span: r.Span, Quote: r.Text, Role: r.Role, TurnID: r.TurnID}},
	}
	for _, o := range gone.bridged(r.Supersedes) {
		switch {
		case o.Node == r.Node: // the same words again replace nothing
		case r.Place.Compare(o.Place) > 0:
			n.Supersedes = append(n.Supersedes, o.Node)
		default:
			n.SupersededBy = append(n.SupersededBy, o.Node)
		}
	}
	return n
}

// Raw gives the rows of one admitted part at level raw: what was seen, kept or
// not. Chunk texts must be loaded. A chunk of which no byte can be cited gives
// no row.
func Raw(line *memory.Admit, src *memory.Source, chunks []memory.Chunk) []index.Node {
	var out []index.Node
	for i := range chunks {
		c := &chunks[i]
		n := index.Node{
			ID:    memory.NodeID(line.Tenant, line.Project, memory.LevelRaw, memory.AdmitStream, c.SHA256),
			Level: memory.LevelRaw, Tenant: line.Tenant, Project: line.Project, Stream: memory.AdmitStream,
			Text: c.Text, TextSHA: c.SHA256, T: int(line.Seq), Trust: c.Trust,
			Place: memory.Place{Time: line.StoredAt.UTC(), Admit: line.Seq, I: c.I},
		}
		for ti := range c.Turns {
			t := &c.Turns[ti]
			if n.SourceTime == nil && t.Time != nil {
				n.SourceTime = t.Time
				n.Place.Time = t.Time.UTC()
			}
			for pi := range t.Pieces {
				for _, r := range paragraphs(c.Text, &t.Pieces[pi]) {
					span, err := c.SpanOf(src.Object, src.ETag, r[0], r[1])
					if err != nil {
						continue // a part without source bytes cannot be cited
					}
					n.Occurrences = append(n.Occurrences, index.Occurrence{
						T: int(line.Seq), Place: memory.Place{Time: n.Place.Time, Admit: line.Seq, I: c.I, Start: r[0]},
						Span: span, Role: t.Role, TurnID: t.ID,
					})
				}
			}
		}
		if len(n.Occurrences) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// paragraphBytes is about the size of one raw citation: a few sentences, so
// that an answer shows where in a long message the words stand.
const paragraphBytes = 600

// paragraphs cuts a piece at line ends into ranges of about paragraphBytes
// that never leave or cut a seal: a redacted passage is its own range.
func paragraphs(text string, p *memory.ChunkPiece) [][2]int {
	var out [][2]int
	at := p.C0
	plain := func(to int) {
		for at < to {
			end := to
			if to-at > paragraphBytes {
				if nl := strings.LastIndexByte(text[at:at+paragraphBytes], '\n'); nl > 0 {
					end = at + nl + 1
				} else if nl := strings.IndexByte(text[at:to], '\n'); nl >= 0 {
					end = at + nl + 1
				}
			}
			from, stop := at, end
			for stop > from && (text[stop-1] == '\n' || text[stop-1] == '\r') {
				stop--
			}
			for from < stop && (text[from] == '\n' || text[from] == '\r') {
				from++
			}
			if strings.TrimSpace(text[from:stop]) != "" {
				out = append(out, [2]int{from, stop})
			}
			at = end
		}
	}
	for i := range p.Seals {
		s := &p.Seals[i]
		plain(s.C0)
		out = append(out, [2]int{s.C0, s.C1})
		at = max(at, s.C1)
	}
	plain(p.C1)
	return out
}
