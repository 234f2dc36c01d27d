package report

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Stream is what one question stream, or one run of it, did and cost.
type Stream struct {
	Project string      `json:"project"`
	QueryID string      `json:"query_id"`
	Stream  string      `json:"stream"`
	Serving bool        `json:"serving"`
	Models  []string    `json:"models"`         // that decided; empty: a policy without one
	Run     *Run        `json:"run,omitempty"`  // where the figures are of one run alone
	Runs    []Run       `json:"runs,omitempty"` // the latest, where they were asked for
	Figures cost.Report `json:"figures"`
	Memory  Series      `json:"memory"`
	Gates   []Gate      `json:"gates"` // the gate's own row first, then the two baselines
	Labels  Labelled    `json:"labels"`
	Exits   Exits       `json:"exits"`
}

// Labelled says what the labels are that the figures rest on.
type Labelled struct {
	Decided  int            `json:"decided"`  // steps that decided about a piece that may be evidence: what Gate.UpdateRate is of
	Steps    int            `json:"steps"`    // of them, with a label
	Evidence int            `json:"evidence"` // of them, labelled as evidence
	ByKind   map[string]int `json:"by_kind"`  // human | model | rule: whose label counts
	// Untrusted are the judges among them that do not agree with the people well
	// enough, or were not held against them.
	Untrusted []string `json:"untrusted"`
}

// Run is one run of a stream.
type Run struct {
	Run     memory.SHA `json:"run"`
	Cause   string     `json:"cause"` // part | regate | tombstone | synthesis
	Admit   int64      `json:"admit"` // the part; 0 for L2
	FirstT  int        `json:"first_t"`
	Steps   int        `json:"steps"`
	Open    int        `json:"open"`
	Exited  bool       `json:"exited"`
	Started time.Time  `json:"started"`
	Ended   time.Time  `json:"ended,omitzero"`
}

// Options say what of a stream is folded.
type Options struct {
	Run    string // a prefix of a run's id: this run alone
	Last   bool   // the last run alone
	Points int    // of the memory over the steps, at most
	Runs   int    // list the latest runs
}

// Fold folds the records of one stream, in order. Labels may be nil.
type Fold struct {
	o      Options
	labels *labels.Set
	stream string

	figures cost.Figures
	models  map[string]bool
	points  []Point
	steps   []step
	at      map[int]int         // steps, by t
	taken   map[memory.SHA]bool // runs that are folded
	aside   map[memory.SHA]bool // runs of tombstones: they state anew and decide nothing
	picked  []Run
	runs    []Run
	parts   []part
	cur     *part
	budget  int // tokens of memory
}

// step is one decided step.
type step struct {
	evidence labels.Evidence
	decided  bool
	open     bool
	exit     bool
	kind     string
	judge    labels.Judge
}

// part is the steps of one part.
type part struct {
	source memory.SHA
	runs   map[memory.SHA]bool
	steps  []int // of Fold.steps
	whole  bool
	linked bool // its last run was left to another
	exited bool
	lastI  int // the chunk that was read last
	rest   int // where in its text reading ended, where it goes on
}

// New begins a fold of the stream's records.
func New(stream string, set *labels.Set, o Options) *Fold {
	return &Fold{o: o, labels: set, stream: stream, models: map[string]bool{}, at: map[int]int{}, taken: map[memory.SHA]bool{}, aside: map[memory.SHA]bool{}}
}

// Add folds the stream's next record.
func (f *Fold) Add(r eventlog.Record) {
	switch r := r.(type) {
	case *memory.Run:
		f.run(r)
	case *memory.Gate:
		f.gate(r)
	case *memory.RunEnd:
		f.end(r)
	}
}

func (f *Fold) run(r *memory.Run) {
	one := Run{Run: r.Run, Cause: r.Cause.Kind, Admit: r.Admit, Started: r.Started}
	if f.o.Runs > 0 {
		if len(f.runs) == 2*f.o.Runs {
			f.runs = slices.Delete(f.runs, 0, f.o.Runs)
		}
		f.runs = append(f.runs, one)
	}
	switch {
	case f.o.Run != "":
		if !strings.HasPrefix(string(r.Run), f.o.Run) {
			return
		}
	case f.o.Last:
		if r.Cause.Kind == memory.CauseTombstone {
			return
		}
		runs := f.runs
		*f = *New(f.stream, f.labels, f.o)
		f.runs = runs
	}
	f.taken[r.Run] = true
	if f.o.Run != "" || f.o.Last {
		f.picked = append(f.picked, one)
	}
	f.budget = r.MemoryBudget
	switch r.Cause.Kind {
	case memory.CauseTombstone:
		f.aside[r.Run] = true
	case memory.CauseRegate: // its steps stand in the place of those that they ask again
	default:
		later := strings.Contains(r.Cause.Ref, "#") || r.From > 0 || r.Offset > 0
		if c := f.cur; c != nil && c.linked && c.source == r.Source && later {
			c.runs[r.Run], c.linked = true, false
			return
		}
		f.cur = &part{source: r.Source, runs: map[memory.SHA]bool{r.Run: true}, whole: !later}
	}
}

// eachRun calls do with what is kept of the run in the lists.
func (f *Fold) eachRun(sha memory.SHA, do func(*Run)) {
	for _, list := range [2][]Run{f.runs, f.picked} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Run == sha {
				do(&list[i])
				break
			}
		}
	}
}

func (f *Fold) gate(g *memory.Gate) {
	f.eachRun(g.Run, func(r *Run) {
		if r.Steps++; r.FirstT == 0 {
			r.FirstT = g.T
		}
		if gru.Opened(g) {
			r.Open++
		}
	})
	if !f.taken[g.Run] {
		return
	}
	f.figures.Add(g)
	if g.Model != "" {
		f.models[g.Model] = true
	}
	p := Point{T: g.T, Steps: 1, Min: g.MemoryTokens, Max: g.MemoryTokens, Last: g.MemoryTokens}
	if gru.Opened(g) {
		p.Open = 1
	}
	if !g.FormatOK || g.TruncatedByServer {
		p.Bad = 1
	}
	if f.o.Points > 0 {
		f.points = append(f.points, p)
	}
	if f.aside[g.Run] {
		return
	}
	s := f.judge(g)
	if n, ok := f.at[g.RegateOf]; ok && g.RegateOf > 0 {
		f.at[g.T] = n // a step may be asked again more than once
		if s.decided {
			f.steps[n] = s
		}
		return
	}
	f.at[g.T] = len(f.steps)
	if c := f.cur; c != nil && c.runs[g.Run] {
		c.steps = append(c.steps, len(f.steps))
		c.lastI, c.rest = g.I, 0
		if g.More {
			c.rest = g.End
		}
	}
	f.steps = append(f.steps, s)
}

// judge is a step with what the labels say of its piece.
func (f *Fold) judge(g *memory.Gate) step {
	s := step{decided: !g.Pending && g.Erased == "", open: gru.Opened(g), exit: g.Exit}
	switch g.ReasonCode {
	case "empty", "derived", "scrubbed": // nothing was asked: no word there may be evidence, or is there
		s.decided, s.evidence = false, labels.HasNot
		return s
	}
	v, ok := f.verdict(g.Chunk, g.Start, g.End)
	if !ok {
		return s
	}
	s.evidence, s.kind, s.judge = labels.HasNot, v.Kind, labels.Judge{Kind: v.Kind}
	if v.Evidence {
		s.evidence = labels.Has
	}
	if v.Kind == memory.LabelModel {
		s.judge.Model = v.Model
	}
	return s
}

// verdict is the label that counts of those that saw the piece alone: what a model said
// with a memory in view depends on what that held.
func (f *Fold) verdict(chunk memory.SHA, start, end int) (labels.Verdict, bool) {
	if f.labels == nil {
		return labels.Verdict{}, false
	}
	for _, v := range f.labels.Of(f.stream, chunk, start, end) {
		if v.FormatOK && !v.Memory {
			return v, true
		}
	}
	return labels.Verdict{}, false
}

func (f *Fold) end(r *memory.RunEnd) {
	f.eachRun(r.Run, func(x *Run) { x.Ended, x.Exited = r.Ended, r.Exited })
	c := f.cur
	if c == nil || !c.runs[r.Run] {
		return
	}
	if r.Continued {
		c.linked = true
		return
	}
	c.exited, f.cur = r.Exited, nil
	if len(c.steps) > 0 {
		f.parts = append(f.parts, *c)
	}
}

// Cut are the source records of parts of which an exit gate left pieces unread: whether
// it was early depends on what labels say of those. None without labels.
func (f *Fold) Cut() []memory.SHA {
	if f.labels == nil || f.labels.N() == 0 {
		return nil
	}
	var out []memory.SHA
	for i := range f.parts {
		if p := &f.parts[i]; p.exited && p.whole && p.source != "" && !slices.Contains(out, p.source) {
			out = append(out, p.source)
		}
	}
	return out
}

// Picked are the runs that Options.Run or Options.Last chose.
func (f *Fold) Picked() []Run { return f.picked }

// Steps is how many gate records were folded.
func (f *Fold) Steps() int { return f.figures.Steps }

// Close gives the report. cut are the chunks of the parts that Cut names; of a part
// that is not there the exit is not known. trusted says of a judge whether its labels
// may stand for those of people.
func (f *Fold) Close(cut map[memory.SHA][]memory.Chunk, trusted func(labels.Judge) bool) Stream {
	out := Stream{
		QueryID: memory.QueryID(f.stream), Stream: f.stream, Models: append([]string{}, slices.Sorted(maps.Keys(f.models))...),
		Figures: f.figures.Report(), Memory: Series{BudgetTokens: f.budget, Points: thin(f.points, f.o.Points)},
		Labels: Labelled{ByKind: map[string]int{}, Untrusted: []string{}},
	}
	if len(f.picked) == 1 {
		out.Run = &f.picked[0]
	}
	if f.o.Runs > 0 {
		out.Runs = f.runs[max(0, len(f.runs)-f.o.Runs):]
	}
	decided, open := 0, 0
	var table agree.Table
	doubted := map[string]bool{}
	for i := range f.steps {
		s := &f.steps[i]
		if !s.decided {
			continue
		}
		decided++
		if s.open {
			open++
		}
		if s.evidence == labels.Unknown {
			continue
		}
		table.Add(s.evidence == labels.Has, s.open)
		out.Labels.ByKind[s.kind]++
		if s.kind != memory.LabelHuman && (trusted == nil || !trusted(s.judge)) {
			doubted[s.judge.Name()] = true
		}
	}
	out.Labels.Decided, out.Labels.Steps, out.Labels.Evidence = decided, table.N(), table.Both+table.OnlyA
	out.Labels.Untrusted = append(out.Labels.Untrusted, slices.Sorted(maps.Keys(doubted))...)
	out.Gates = gatesOf(decided, open, table)
	for i := range f.parts {
		f.exit(&out.Exits, &f.parts[i], cut)
	}
	out.Exits.close()
	return out
}

// exit counts one part's exit.
func (f *Fold) exit(e *Exits, p *part, cut map[memory.SHA][]memory.Chunk) {
	read := make([]labels.Evidence, len(p.steps))
	exit, opened := len(read)-1, false
	for t, n := range p.steps {
		read[t] = f.steps[n].evidence
		if f.steps[n].exit && !opened {
			exit, opened = t, true
		}
	}
	var unread []labels.Evidence
	if p.exited {
		chunks, ok := cut[p.source]
		if !ok {
			e.add(labels.NotKnown, opened)
			return
		}
		unread = f.unread(p, chunks)
	}
	if !p.whole {
		e.add(labels.NotKnown, opened)
		return
	}
	e.add(labels.ExitOf(exit, read, unread), opened)
}

// unread is what labels say of what the part's exit gate left unread.
func (f *Fold) unread(p *part, chunks []memory.Chunk) []labels.Evidence {
	var out []labels.Evidence
	for i := range chunks {
		switch c := &chunks[i]; {
		case c.I > p.lastI:
			out = append(out, f.evidence(c, 0))
		case c.I == p.lastI && p.rest > 0 && p.rest < c.SizeBytes:
			out = append(out, f.evidence(c, p.rest))
		}
	}
	return out
}

// evidence is what labels say of the chunk's text from a byte on.
func (f *Fold) evidence(c *memory.Chunk, from int) labels.Evidence {
	if c.Derived {
		return labels.HasNot
	}
	v, ok := f.verdict(c.SHA256, from, c.SizeBytes)
	switch {
	case !ok:
		return labels.Unknown
	case v.Evidence:
		return labels.Has
	}
	return labels.HasNot
}
