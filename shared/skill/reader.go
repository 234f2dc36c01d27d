package skill

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/questions"
	"github.com/mneme-ai/mneme/shared/replay"
)

// Reader reads what skills are made of out of the log.
type Reader struct {
	log     *eventlog.Log
	catalog *catalog.Catalog
}

// NewReader reads one tenant's.
func NewReader(log *eventlog.Log, c *catalog.Catalog) *Reader { return &Reader{log, c} }

// Source is what a skill of a question's memory is made of, or, of
// questions.SynthesisID, of the project's synthesis. A question that nobody asks, and
// one without a memory, is fault.NotFound.
func (r *Reader) Source(ctx context.Context, project, question string) (Source, error) {
	if question == questions.SynthesisID {
		return r.synthesisSource(ctx, project)
	}
	st, err := r.servingQuestion(ctx, project, question)
	if err != nil {
		return Source{}, err
	}
	below, err := r.statements(ctx, project, st)
	if err != nil {
		return Source{}, err
	}
	m := below.memory
	if m == nil {
		return Source{}, noMemory(project, question)
	}
	src := Source{Project: project, Question: question, Wording: st.Question, Level: memory.L1, Node: m.Node}
	if src.Facts = verbatim(m, below.said); src.Facts == nil {
		src.Facts = factsOf(m.Text, []stream{below}, below.said.lowest(m.Parents))
	}
	return src, nil
}

func noMemory(project, question string) error {
	return fault.At(fault.NotFound, project+"/"+question, "mem query -p "+project+" shows what is known", "the question has no memory yet")
}

// servingQuestion is the stream that answers a question of the project.
func (r *Reader) servingQuestion(ctx context.Context, project, question string) (catalog.Stream, error) {
	streams, err := r.catalog.ServingStreams(ctx, project)
	if err != nil {
		return catalog.Stream{}, err
	}
	var ids []string
	for _, s := range streams {
		if s.QueryID == question {
			return s, nil
		}
		ids = append(ids, s.QueryID)
	}
	return catalog.Stream{}, fault.At(fault.NotFound, project+"/"+question, "its questions are "+strings.Join(ids, ", "), "the project asks no such question")
}

// statement is what the log says of an evidence node.
type statement struct {
	text  string
	trust memory.Trust
	group string
}

// said are the statements of a stream by their node.
type said map[memory.SHA]statement

// stream is what a question stream says that the lines of a memory rest on.
type stream struct {
	said   said
	chunks map[string][]memory.SHA // nodes by the source id of a chunk that states them, the oldest first
	read   []*memory.Memory        // of its memories those that a synthesis read
	memory *memory.Memory          // the present one; nil where there is none
}

// statements reads a stream's evidence, its present memory, and those that are named.
func (r *Reader) statements(ctx context.Context, project string, st catalog.Stream, read ...memory.SHA) (stream, error) {
	c, err := replay.Load(ctx, r.log, project, st.Name)
	if err != nil {
		return stream{}, err
	}
	out := stream{said: said{}, chunks: map[string][]memory.SHA{}}
	for seg, err := range r.log.Segments(ctx, project, st.Name, 0) {
		if err != nil {
			return stream{}, err
		}
		if seg.Header.Seq > c.Head.Seq {
			break // appended since
		}
		for _, rec := range seg.Records {
			switch rec := rec.(type) {
			case *memory.Evidence:
				if rec.Erased != "" {
					continue
				}
				// What a person said too is a person's word.
				if old, ok := out.said[rec.Node]; !ok || weight(rec.Trust) < weight(old.trust) {
					out.said[rec.Node] = statement{rec.Text, rec.Trust, st.QueryID}
				}
				id := rec.Span.Chunk.Short()
				if !slices.Contains(out.chunks[id], rec.Node) {
					out.chunks[id] = append(out.chunks[id], rec.Node)
				}
			case *memory.Memory:
				if rec.Erased != "" {
					continue
				}
				if slices.Contains(read, rec.Node) {
					out.read = append(out.read, rec)
				}
				if rec.Node == c.State.MemoryNode {
					out.memory = rec
				}
			}
		}
	}
	return out, nil
}

// weight orders trust, the highest first.
func weight(t memory.Trust) int {
	order := []memory.Trust{memory.TrustUser, memory.TrustAssistant, memory.TrustTool, memory.TrustWeb, memory.TrustInjected}
	if i := slices.Index(order, t); i >= 0 {
		return i
	}
	return len(order)
}

// unknownTrust is of a text that nothing is known to have said.
const unknownTrust memory.Trust = "unknown"

// lowest is the lowest trust of the nodes.
func (s said) lowest(nodes []memory.SHA) memory.Trust {
	low := memory.Trust("")
	for _, n := range nodes {
		e, ok := s[n]
		if !ok {
			return unknownTrust
		}
		if low == "" || weight(e.trust) > weight(low) {
			low = e.trust
		}
	}
	if low == "" {
		return unknownTrust
	}
	return low
}

// verbatim are the facts of a memory that is its statements word for word, as the
// built-in policy writes it; nil where it is not.
func verbatim(m *memory.Memory, by said) (out []Fact) {
	var b strings.Builder
	for _, p := range m.Parents {
		s, ok := by[p]
		if !ok {
			return nil
		}
		b.WriteString(extractpolicy.Line(s.text, p))
		out = append(out, Fact{Text: s.text, Node: p, Trust: s.trust})
	}
	if b.String() != m.Text {
		return nil
	}
	return out
}

var (
	item   = lazy.MustCompile(`^\s*(?:[-*+•]|\d{1,3}[.)])\s+`)
	idsEnd = lazy.MustCompile(`(?:[\s,;]*\[[0-9a-f]{8}\])+[\s.]*$`)
)

// factsOf are the facts of a text that is not: a line each, with the nodes that its
// source ids name. An id is that of a node that says the line's words, or that it names
// alone; where there is none, of a chunk that a model read, or of a memory below. low
// is the trust of a line that names no node itself.
func factsOf(text string, by []stream, low memory.Trust) (out []Fact) {
	short := map[string][]memory.SHA{}
	all := said{}
	for _, s := range by {
		for n, st := range s.said {
			if _, ok := all[n]; !ok {
				all[n] = st
				short[n.Short()] = append(short[n.Short()], n)
			}
		}
	}
	for _, line := range items(text) {
		fact := Fact{Text: idsEnd.ReplaceAllString(line, ""), Trust: low}
		worst := -1
		var read []memory.SHA
		for _, id := range memory.SourceIDs(line) {
			n, ok := named(short[id], all, fact.Text)
			if !ok {
				read = append(read, under(id, fact.Text, by)...)
				continue
			}
			if w := weight(all[n].trust); w > worst {
				worst, fact.Trust = w, all[n].trust
			}
			if !slices.Contains(fact.Nodes, n) {
				fact.Nodes = append(fact.Nodes, n)
			}
		}
		if len(read) > 0 && weight(low) > worst {
			fact.Trust = low // a model's words, of more than what it names
		}
		nearest(fact.Text, read, all)
		for _, n := range read {
			if weight(all[n].trust) > weight(fact.Trust) {
				fact.Trust = all[n].trust
			}
			if !slices.Contains(fact.Nodes, n) {
				fact.Nodes = append(fact.Nodes, n)
			}
		}
		if len(fact.Nodes) > 0 {
			fact.Node, fact.Group = fact.Nodes[0], all[fact.Nodes[0]].group
		}
		if len(fact.Nodes) == 1 {
			fact.Nodes = nil
		}
		out = append(out, fact)
	}
	return out
}

// under are the nodes under an id of a chunk or of a memory. Several streams may have
// read one chunk: of those whose memory says the line they are taken, where there is
// one.
func under(id, line string, by []stream) (out []memory.SHA) {
	var saying []memory.SHA
	for _, s := range by {
		nodes := slices.Clone(s.chunks[id])
		for _, m := range s.read {
			if m.TextSHA.Short() != id {
				continue
			}
			for _, p := range m.Parents {
				if _, ok := s.said[p]; ok && !slices.Contains(nodes, p) {
					nodes = append(nodes, p)
				}
			}
		}
		out = append(out, nodes...)
		if s.memory != nil && slices.ContainsFunc(memory.Lines(s.memory.Text), func(l string) bool { return memory.Fact(l) == line }) {
			saying = append(saying, nodes...)
		}
	}
	if len(saying) > 0 {
		return saying
	}
	return out
}

// nearest orders nodes by the words that they share with a line.
func nearest(line string, nodes []memory.SHA, all said) {
	words := func(s string) map[string]bool {
		out := map[string]bool{}
		for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
			out[w] = true
		}
		return out
	}
	want, shared := words(line), map[memory.SHA]int{}
	for _, n := range nodes {
		if _, ok := shared[n]; ok {
			continue
		}
		shared[n] = 0
		for w := range words(all[n].text) {
			if want[w] {
				shared[n]++
			}
		}
	}
	slices.SortStableFunc(nodes, func(a, b memory.SHA) int { return cmp.Compare(shared[b], shared[a]) })
}

// named is the node that a short id means: of several the one that says the words.
func named(nodes []memory.SHA, all said, text string) (memory.SHA, bool) {
	if len(nodes) == 1 {
		return nodes[0], true
	}
	want := derived.Shingle(text)
	for _, n := range nodes {
		if derived.Shingle(all[n].text) == want {
			return n, true
		}
	}
	return "", false
}

// items cuts a memory text into its list items and paragraphs, without list signs. A
// line that ends in a node ends its item.
func items(text string) (out []string) {
	var cur []string
	flush := func() {
		if s := strings.TrimSpace(strings.Join(cur, " ")); s != "" {
			out = append(out, s)
		}
		cur = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		bare := strings.TrimSpace(line)
		if bare == "" || strings.HasPrefix(bare, "#") || item.MatchString(line) {
			flush()
		}
		bare = strings.TrimSpace(strings.TrimLeft(item.ReplaceAllString(line, ""), "#"))
		if bare != "" {
			cur = append(cur, bare)
		}
		if idsEnd.MatchString(bare) {
			flush()
		}
	}
	flush()
	return out
}

// synthesisSource is that of the project's synthesis, whose lines are told by the
// evidence of the memories that it read.
func (r *Reader) synthesisSource(ctx context.Context, project string) (Source, error) {
	st, ok, err := r.catalog.Synthesis(ctx, project)
	if err != nil {
		return Source{}, err
	}
	if !ok {
		return Source{}, fault.At(fault.NotFound, project, "give its question file a synthesis, or name one of its questions: "+project+"/decisions", "the project asks for no synthesis")
	}
	run, ok, err := replay.Synthesis(ctx, r.log, project, st.Name)
	if err != nil {
		return Source{}, err
	}
	if !ok || run.Memory == nil {
		return Source{}, noMemory(project, questions.SynthesisID)
	}
	streams, err := r.catalog.ServingStreams(ctx, project)
	if err != nil {
		return Source{}, err
	}
	var by []stream
	low := memory.Trust("")
	for _, s := range streams {
		if s.Only != 0 {
			continue // the synthesis reads standing questions alone
		}
		below, err := r.statements(ctx, project, s, run.Memory.Parents...)
		if err != nil {
			return Source{}, err
		}
		by = append(by, below)
		if m := below.memory; m != nil && slices.Contains(run.Memory.Parents, m.Node) {
			if t := below.said.lowest(m.Parents); low == "" || weight(t) > weight(low) {
				low = t
			}
		}
	}
	if low == "" {
		low = unknownTrust // of memories that are outdated
	}
	return Source{
		Project: project, Question: questions.SynthesisID, Wording: st.Question, Level: memory.L2, Node: run.Memory.Node,
		Facts: factsOf(run.Memory.Text, by, low),
	}, nil
}

// Serving is the memory that answers a question now; "" where there is none, and
// asked is false where nobody asks it.
func (r *Reader) Serving(ctx context.Context, project, question string) (_ memory.SHA, asked bool, err error) {
	if question == questions.SynthesisID {
		st, ok, err := r.catalog.Synthesis(ctx, project)
		if err != nil || !ok {
			return "", false, err
		}
		run, _, err := replay.Synthesis(ctx, r.log, project, st.Name)
		if err != nil || run.Memory == nil {
			return "", true, err
		}
		return run.Memory.Node, true, nil
	}
	st, err := r.servingQuestion(ctx, project, question)
	if fault.Is(err, fault.NotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	c, err := replay.Load(ctx, r.log, project, st.Name)
	return c.State.MemoryNode, true, err
}

// Stated reports whether some memory of a question was this node. A generation or an
// earlier wording counts too.
func (r *Reader) Stated(ctx context.Context, project, question string, node memory.SHA) (bool, error) {
	streams, err := r.log.Streams(ctx, project)
	if err != nil {
		return false, err
	}
	for _, s := range streams {
		if memory.QueryID(s) != question {
			continue
		}
		for seg, err := range r.log.Segments(ctx, project, s, 0) {
			if err != nil {
				return false, err
			}
			for _, rec := range seg.Records {
				if m, ok := rec.(*memory.Memory); ok && m.Node == node {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// Text is a memory that answers a question now.
type Text struct {
	Question string // id; questions.SynthesisID of the synthesis
	Level    memory.Level
	Node     memory.SHA
	Text     string
}

// Memories are the present memories of a project: of every question in the order of
// the question file, ad-hoc ones by name behind them, and the synthesis last. Those
// without a text are left out.
func (r *Reader) Memories(ctx context.Context, project string) (out []Text, err error) {
	defer fault.Wrap(&err, "memories of %s", project)
	streams, err := r.catalog.ServingStreams(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, s := range streams {
		c, err := replay.Load(ctx, r.log, project, s.Name)
		if err != nil {
			return nil, err
		}
		if c.State.MemoryText != "" {
			out = append(out, Text{s.QueryID, memory.L1, c.State.MemoryNode, c.State.MemoryText})
		}
	}
	st, ok, err := r.catalog.Synthesis(ctx, project)
	if err != nil || !ok {
		return out, err
	}
	run, _, err := replay.Synthesis(ctx, r.log, project, st.Name)
	if err == nil && run.Memory != nil {
		out = append(out, Text{questions.SynthesisID, memory.L2, run.Memory.Node, run.Memory.Text})
	}
	return out, err
}
