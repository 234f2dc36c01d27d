package report_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/report"
)

const stream = "limits@1f2e3d4c"

var at = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)

// world is a stream that is written by hand: a chunk a step, named by part and place.
type world struct {
	recs []eventlog.Record
	set  labels.Set
	t    int
}

func chunkOf(part, i int) memory.SHA { return memory.SumString(fmt.Sprint("chunk ", part, " ", i)) }
func runOf(name any) memory.SHA      { return memory.SumString(fmt.Sprint("run ", name)) }
func sourceOf(part int) memory.SHA   { return memory.SumString(fmt.Sprint("source ", part)) }

// part adds a run over a part: a letter a step, o an open gate, c a closed one, e a
// closed one with an open exit gate, b an open one over the budget, p one that is
// pending, d a chunk of Mneme's own output. acted ends the run at its exit gate.
func (w *world) part(n int, steps string, acted bool) {
	w.recs = append(w.recs, &memory.Run{Run: runOf(n), Stream: stream, Cause: memory.Cause{Kind: memory.CausePart, Ref: string(sourceOf(n))}, Admit: int64(n), Source: sourceOf(n), MemoryBudget: 1024, Started: at})
	for i, c := range steps {
		w.gate(runOf(n), n, i, c, 0)
	}
	w.recs = append(w.recs, &memory.RunEnd{Run: runOf(n), Admit: int64(n), Exited: acted, Ended: at.Add(time.Minute)})
}

func (w *world) gate(run memory.SHA, part, i int, c rune, regateOf int) {
	w.t++
	g := &memory.Gate{T: w.t, Run: run, Admit: int64(part), I: i, Chunk: chunkOf(part, i), End: 100, FormatOK: true, Attempt: 1, ReasonCode: "closed", MemoryTokens: 10 * w.t, RegateOf: regateOf}
	switch c {
	case 'o':
		g.Update, g.ReasonCode = true, "kept"
	case 'e':
		g.Exit = true
	case 'b':
		g.ReasonCode = "budget_exceeded"
	case 'p':
		g.Pending, g.FormatOK, g.ReasonCode = true, false, "format"
	case 'd':
		g.ReasonCode = "derived"
	}
	w.recs = append(w.recs, g)
}

// says adds a label a step: y, n, or nothing.
func (w *world) says(part int, kind, judge, what string) {
	for i, c := range what {
		if c != 'y' && c != 'n' {
			continue
		}
		l := &memory.Label{Kind: kind, Stream: stream, Chunk: chunkOf(part, i), Start: 0, End: 100, Evidence: c == 'y', FormatOK: true, At: at}
		switch kind {
		case memory.LabelHuman:
			l.By = judge
		case memory.LabelModel:
			l.Model, l.Basis = judge, memory.BasisChunk
		case memory.LabelRule:
			l.Rule = judge
		}
		w.set.Add(memory.SumString(fmt.Sprint(part, kind, judge, i)), l)
	}
}

func (w *world) fold(o report.Options) *report.Fold {
	f := report.New(stream, &w.set, o)
	for _, r := range w.recs {
		f.Add(r)
	}
	return f
}

func (w *world) report(o report.Options) report.Stream {
	chunks := map[memory.SHA][]memory.Chunk{}
	f := w.fold(o)
	for _, sha := range f.Cut() {
		for part := range 20 {
			if sourceOf(part) == sha {
				for i := range 6 {
					chunks[sha] = append(chunks[sha], memory.Chunk{I: i, SHA256: chunkOf(part, i), SizeBytes: 100, Derived: i == 5})
				}
			}
		}
	}
	return f.Close(chunks, func(j labels.Judge) bool { return j.Model == "large" })
}

func ref(v float64) *float64 { return &v }

// TestGates: the gate is measured at the labelled steps it decided, beside the two
// that look at nothing; an open gate counts whatever became of the memory.
func TestGates(t *testing.T) {
	t.Parallel()
	var w world
	w.part(1, "ocobcpd", false)
	w.says(1, memory.LabelHuman, "ada", "yynyn")
	w.says(1, memory.LabelRule, "r", "nnynyyy") // a person's counts before a rule's
	w.part(2, "cc", false)
	w.says(2, memory.LabelModel, "large", "y")
	got := w.report(report.Options{})
	// Decided: o c o b c, c c. Labelled: y y n y n, y.
	want := []report.Gate{
		{Who: "gate", UpdateRate: 3. / 7, Labelled: agree.Table{Both: 2, OnlyA: 2, OnlyB: 1, Neither: 1}, Precision: ref(2. / 3), Recall: ref(.5), F1: ref(4. / 7), MCC: ref(0), Reward: ref(0)},
		{Who: "always_yes", UpdateRate: 1, Labelled: agree.Table{Both: 4, OnlyB: 2}, Precision: ref(4. / 6), Recall: ref(1), F1: ref(.8), Reward: ref(2. / 6)},
		{Who: "always_no", UpdateRate: 0, Labelled: agree.Table{OnlyA: 4, Neither: 2}, Recall: ref(0), F1: ref(0), Reward: ref(-2. / 6)},
	}
	for i := range want {
		g := got.Gates[i]
		if g.Precision != nil && (g.PrecisionCI[0] >= *g.Precision || g.PrecisionCI[1] <= *g.Precision) {
			t.Errorf("%s: precision %v in %v", g.Who, *g.Precision, g.PrecisionCI)
		}
		g.PrecisionCI, g.RecallCI = [2]float64{}, [2]float64{}
		if diff := cmp.Diff(want[i], g); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(report.Labelled{Decided: 7, Steps: 6, Evidence: 4, ByKind: map[string]int{"human": 5, "model": 1}, Untrusted: []string{}}, got.Labels); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(got.Labels.Text(), "6 steps are labelled (5 by a person, 1 by a model), 4 as evidence") {
		t.Error(got.Labels.Text())
	}
	if s := got.Bases(); !strings.Contains(s, fmt.Sprintf("of all %d steps; open, of the 7 that", got.Figures.Steps)) || !strings.Contains(s, "of the 6 of these with a label") {
		t.Error(s)
	}
	w.says(2, memory.LabelRule, "r", " n")
	if l := w.report(report.Options{}).Labels; !cmp.Equal(l.Untrusted, []string{"rules"}) || !strings.Contains(l.Text(), "not trusted: rules") {
		t.Errorf("%+v", l)
	}
	if b, err := json.Marshal(got); err != nil || !strings.Contains(string(b), `"mcc":null`) {
		t.Errorf("%v %s", err, b) // not a number that JSON can not say
	}
}

// TestGatesWithoutLabels: what rests on labels is absent and not 0.
func TestGatesWithoutLabels(t *testing.T) {
	t.Parallel()
	var w world
	w.part(1, "occc", true)
	got := w.report(report.Options{})
	for i, rate := range []float64{.25, 1, 0} {
		if g := got.Gates[i]; g.UpdateRate != rate || g.Precision != nil || g.Recall != nil || g.F1 != nil || g.MCC != nil || g.Reward != nil {
			t.Errorf("%+v", g)
		}
	}
	if len(w.fold(report.Options{}).Cut()) != 0 || got.Exits.Known() != 0 || got.Exits.Reward != nil || !strings.Contains(got.Labels.Text(), "mem label") {
		t.Errorf("%+v %s", got.Exits, got.Labels.Text())
	}
	none := report.New(stream, nil, report.Options{}).Close(nil, nil)
	if none.Gates[0].UpdateRate != 0 || none.Figures.Steps != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}

// TestNoSign: a mean of nothing and what rounds to it have no sign.
func TestNoSign(t *testing.T) {
	t.Parallel()
	var w world
	w.part(1, "oe", false)
	w.says(1, memory.LabelHuman, "ada", "ny")
	e := w.report(report.Options{}).Exits
	if s := e.Text(); e.Exact != 1 || !strings.HasSuffix(s, "mean r_exit 0.00") {
		t.Error(s)
	}
	if b, err := json.Marshal(e); err != nil || !strings.Contains(string(b), `"r_exit":0}`) {
		t.Errorf("%v %s", err, b)
	}
	if s := (report.Exits{Reward: ref(-.004)}).Text(); !strings.HasSuffix(s, "mean r_exit 0.00") {
		t.Error(s)
	}
	if s := report.MaybeText(ref(-.004)); s != "0.00" {
		t.Error(s)
	}
}

// TestExits: each part's exit against its last evidence, read or not, by the labels.
func TestExits(t *testing.T) {
	t.Parallel()
	var w world
	for n, tc := range []struct {
		steps, says string
		acted       bool
	}{
		{"oce", "nyn", false},    // late: it read on after the last evidence
		{"oe", "yynnn", true},    // exact: nothing behind it; the sixth is Mneme's own output
		{"oe", "ynyn?", true},    // not known: the last but one chunk has no label
		{"oe", "ynynn", true},    // early
		{"occ", "nny", false},    // exact: it never opened, and the last piece is it
		{"occ", "ynn", false},    // late, and never opened
		{"cc", "nn", false},      // nothing to find
		{"occ", "yn ", false},    // not known: the last piece has no label
		{"oeoo", "ynny", false},  // early: the gate opened, though it was not acted on
		{"oced", "ynyn?", false}, // exact: behind it is Mneme's own output alone
	} {
		w.part(n, tc.steps, tc.acted)
		w.says(n, memory.LabelHuman, "ada", tc.says)
	}
	got := w.report(report.Options{}).Exits
	want := report.Exits{Early: 2, Exact: 3, Late: 2, NoEvidence: 1, NotKnown: 2, Never: 2, Reward: ref((2*-.75 + 2*-.5) / 7)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := got.Text(); s != "early 2, exact 3, late 2 (2 never opened and end with the part); without evidence 1, not known 2; mean r_exit -0.36" {
		t.Error(s)
	}
	// Of a part whose chunk list is gone nothing is known.
	if e := w.fold(report.Options{}).Close(nil, nil).Exits; e.Early != 1 || e.NotKnown != 4 {
		t.Errorf("%+v", e)
	}
}

// TestExitWithinAChunk: what is left of the chunk that was read last counts as unread.
func TestExitWithinAChunk(t *testing.T) {
	t.Parallel()
	for said, want := range map[bool]int{true: 1, false: 0} {
		var w world
		w.part(1, "oe", true)
		g := w.recs[2].(*memory.Gate)
		g.End, g.More = 40, true
		w.says(1, memory.LabelHuman, "ada", "y nnn")
		for _, p := range [][2]int{{0, 40}, {40, 100}} {
			w.set.Add("", &memory.Label{Kind: memory.LabelHuman, By: "ada", Stream: stream, Chunk: g.Chunk, Start: p[0], End: p[1], Evidence: said && p[0] > 0, At: at})
		}
		if e := w.report(report.Options{}).Exits; e.Early != want || e.Late != 1-want || e.NotKnown != 0 {
			t.Errorf("the rest is evidence: %v: %+v", said, e)
		}
	}
}

// TestRegated: a step that is asked again stands in the place of the one that gave no
// answer; runs that state anew decide nothing.
func TestRegated(t *testing.T) {
	t.Parallel()
	var w world
	w.part(1, "opc", false)
	w.says(1, memory.LabelHuman, "ada", "nyn")
	w.recs = append(w.recs, &memory.Run{Run: runOf("again"), Cause: memory.Cause{Kind: memory.CauseRegate}})
	w.gate(runOf("again"), 1, 1, 'p', 2) // once more without an answer
	w.gate(runOf("again"), 1, 1, 'o', 4)
	w.recs = append(w.recs, &memory.RunEnd{Run: runOf("again")}, &memory.Run{Run: runOf("forget"), Cause: memory.Cause{Kind: memory.CauseTombstone}})
	w.gate(runOf("forget"), 1, 1, 'c', 0)
	w.recs = append(w.recs, &memory.RunEnd{Run: runOf("forget")})
	got := w.report(report.Options{Runs: 2})
	if diff := cmp.Diff(agree.Table{Both: 1, OnlyB: 1, Neither: 1}, got.Gates[0].Labelled); diff != "" || got.Gates[0].UpdateRate != 2./3 {
		t.Errorf("%v %s", got.Gates[0].UpdateRate, diff)
	}
	if got.Exits.Late != 1 || got.Exits.Known() != 1 || got.Figures.Steps != 6 || got.Figures.Pending != 0 {
		t.Errorf("%+v %+v", got.Exits, got.Figures)
	}
	if len(got.Runs) != 2 || got.Runs[0].Cause != "regate" || got.Runs[0].Steps != 2 || got.Runs[0].FirstT != 4 || got.Runs[1].Cause != "tombstone" {
		t.Errorf("%+v", got.Runs)
	}
	last := w.report(report.Options{Last: true})
	if last.Run == nil || last.Run.Run != runOf("again") || last.Figures.Steps != 2 || last.Gates[0].Labelled.Both != 1 {
		t.Errorf("%+v", last)
	}
}

// TestOneRun: figures of a run are of its steps alone.
func TestOneRun(t *testing.T) {
	t.Parallel()
	var w world
	for n := range 5 {
		w.part(n, strings.Repeat("o", n+1), false)
		w.says(n, memory.LabelHuman, "ada", strings.Repeat("y", n+1))
	}
	for _, o := range []report.Options{{Run: string(runOf(4)), Points: 9, Runs: 3}, {Last: true, Points: 9, Runs: 3}, {Run: string(runOf(4))[:12], Points: 9, Runs: 3}} {
		got := w.report(o)
		if got.Run == nil || got.Run.Run != runOf(4) || got.Run.FirstT != 11 || got.Run.Steps != 5 || got.Run.Open != 5 || got.Run.Ended.IsZero() ||
			got.Figures.Steps != 5 || len(got.Memory.Points) != 5 || got.Memory.Points[0].T != 11 || got.Labels.Steps != 5 || got.Exits.Exact != 1 || len(got.Runs) != 3 || got.Runs[2].Run != runOf(4) {
			t.Errorf("%+v: %+v", o, got)
		}
	}
	if f := w.fold(report.Options{Run: "ffffffffffff"}); len(f.Picked()) != 0 || f.Steps() != 0 {
		t.Errorf("%+v", f.Picked())
	}
	if f := w.fold(report.Options{Run: ""}); f.Close(nil, nil).Run != nil {
		t.Error("all runs are named as one")
	}
}

// TestAPartThatOthersWentOnWith: two runs over one part are one trajectory, of which
// one run alone knows no exit.
func TestAPartThatOthersWentOnWith(t *testing.T) {
	t.Parallel()
	var w world
	w.part(1, "oc", false)
	w.recs[len(w.recs)-1].(*memory.RunEnd).Continued = true
	w.recs = append(w.recs, &memory.Run{Run: runOf("b"), Cause: memory.Cause{Kind: memory.CausePart, Ref: string(sourceOf(1)) + "#2"}, Admit: 1, Source: sourceOf(1), From: 2})
	w.gate(runOf("b"), 1, 2, 'o', 0)
	w.recs = append(w.recs, &memory.RunEnd{Run: runOf("b"), Admit: 1})
	w.says(1, memory.LabelHuman, "ada", "yny")
	if e := w.report(report.Options{}).Exits; e.Exact != 1 || e.Known() != 1 {
		t.Errorf("%+v", e)
	}
	if e := w.report(report.Options{Last: true}).Exits; e.NotKnown != 1 || e.Known() != 0 {
		t.Errorf("%+v", e)
	}
	w.recs = w.recs[:len(w.recs)-1]
	if e := w.report(report.Options{}).Exits; e != (report.Exits{}) {
		t.Errorf("a part that has not ended: %+v", e)
	}
}

// TestShadowLabelsAreNoTruth: what a model said with a memory in view is not what a
// chunk holds.
func TestShadowLabelsAreNoTruth(t *testing.T) {
	t.Parallel()
	var w world
	w.part(1, "o", false)
	w.set.Add("", &memory.Label{Kind: memory.LabelModel, Model: "large", Stream: stream, Chunk: chunkOf(1, 0), End: 100, Evidence: true, FormatOK: true, At: at})
	w.set.Add("", &memory.Label{Kind: memory.LabelModel, Model: "large", Basis: memory.BasisChunk, Stream: stream, Chunk: chunkOf(1, 0), End: 100, Evidence: true, At: at}) // unreadable
	if got := w.report(report.Options{}); got.Labels.Steps != 0 {
		t.Errorf("%+v", got.Labels)
	}
}

// TestThinning: joined points lose no step, no peak and no rare event.
func TestThinning(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 7, 600, 601, 5000} {
		var w world
		w.part(1, strings.Repeat("c", n-1)+"o", false)
		got := w.report(report.Options{Points: 600}).Memory
		steps, open, most := 0, 0, 0
		for _, p := range got.Points {
			steps, open, most = steps+p.Steps, open+p.Open, max(most, p.Max)
			if p.Min > p.Last || p.Last > p.Max {
				t.Errorf("%+v", p)
			}
		}
		if len(got.Points) != min(n, 600) || steps != n || open != 1 || most != 10*n || got.Points[len(got.Points)-1].T != n || got.BudgetTokens != 1024 {
			t.Errorf("%d steps: %d points of %d steps, %d open, most %d", n, len(got.Points), steps, open, most)
		}
	}
}

// TestPictures: SVG is XML, the page says what the terminal says, and a name that is
// markup stays text. Neither loads anything.
func TestPictures(t *testing.T) {
	t.Parallel()
	var w world
	w.part(1, "ocpoe", true)
	w.says(1, memory.LabelHuman, "ada", "ynnyn")
	one := w.report(report.Options{Points: 600, Last: true})
	one.Project = `shop"><script>alert(1)</script>`
	none := report.New(stream, nil, report.Options{}).Close(nil, nil)
	point := func() report.Stream {
		var w world
		w.part(1, "c", false)
		return w.report(report.Options{Points: 5})
	}()
	for name, list := range map[string][]report.Stream{"one": {one}, "several": {one, none, point}, "none": nil} {
		var svg, page strings.Builder
		if err := errors.Join(report.WriteSVG(&svg, list), report.WriteHTML(&page, list)); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(svg.String()))
		lines := 0
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, svg.String())
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "polyline" {
				lines++
			}
		}
		want := min(len(list), 2)
		if lines != want {
			t.Errorf("%s: %d lines, want %d", name, lines, want)
		}
		for what, text := range map[string]string{"svg": svg.String(), "page": page.String()} {
			for _, bad := range []string{"<script", "NaN", "ZgotmplZ", "Inf", "src=", "@import", "url("} {
				if strings.Contains(text, bad) {
					t.Errorf("%s of %s holds %q", what, name, bad)
				}
			}
		}
		if len(list) > 0 && (!strings.Contains(page.String(), "always yes") || !strings.Contains(page.String(), "mean r_exit")) {
			t.Errorf("%s", page.String())
		}
	}
}

// BenchmarkFold: a stream as long as a year's.
func BenchmarkFold(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("%d-steps", n), func(b *testing.B) {
			var w world
			for p := range n / 20 {
				w.part(p, strings.Repeat("cccco", 4), false)
				w.says(p, memory.LabelHuman, "ada", strings.Repeat("nnnny", 4))
			}
			b.ReportAllocs()
			for b.Loop() {
				if s := w.fold(report.Options{Points: 600}).Close(nil, nil); s.Figures.Steps != n {
					b.Fatal(s.Figures.Steps)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
