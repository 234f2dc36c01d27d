package extractpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/memory"
)

// SynthesisName is the name and version of the built-in policy one level up.
//
// History: s1 — first.
const SynthesisName = "extractive-synthesis/s1"

// Synthesis is the built-in policy of L2: the memory is whole lines of the memories
// below, byte for byte. Each question's memory has a fair share of the budget (see shares); the lines with the greatest score come in
// first, of equal ones the newest, and stand in the order in which their own memory
// has them. What an earlier question's line says already is passed over, and of two
// lines that contradict each other the newer one stands.
//
// So a line that is amended below changes the line that rests on it; another one moves
// only where the share is full and the new words are longer.
type Synthesis struct{}

var _ gru.Policy = Synthesis{}

// Name is SynthesisName.
func (Synthesis) Name() string { return SynthesisName }

// PromptVersion is "-": there is no prompt.
func (Synthesis) PromptVersion() string { return "-" }

// upLine is a line that stands in the synthesis, or that may come in.
type upLine struct {
	gru.LowerLine
	print extractive.Fingerprint
	input int
}

// Decide reads one memory.
func (Synthesis) Decide(in gru.PolicyInput) gru.Decision {
	cfg, i := in.Config, in.Chunk.I
	d := gru.Decision{FormatOK: true}
	if i >= len(cfg.Lower) {
		d.ReasonCode, d.Reason = gru.ReasonClosed, "no memory stands there"
		return d
	}
	stands := standing(cfg.Lower[:i], in.State.MemoryText)
	room := 0
	for _, n := range shares(cfg)[:i+1] {
		room += n
	}
	size := cfg.Count(text(stands))
	var cands []upLine
	known := 0
	for _, l := range cfg.Lower[i].Lines {
		if l.Text == "" {
			continue
		}
		n := upLine{l, extractive.FingerprintOf(l.Text), i}
		if slices.ContainsFunc(stands, func(o upLine) bool { return saysAlready(&o, &n) }) {
			known++
			continue
		}
		cands = append(cands, n)
	}
	order := make([]int, len(cands))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(cands[b].Score, cands[a].Score), cands[b].Place.Compare(cands[a].Place))
	})
	take, replaced, full := make([]bool, len(cands)), 0, 0
	for _, k := range order {
		n := &cands[k]
		without := slices.DeleteFunc(slices.Clone(stands), func(o upLine) bool { return o.input < i && contradicts(n, &o) })
		if now := cfg.Count(text(without)) + chosen(cands, take, cfg.Count) + cfg.Count(n.Whole); now > room && now > size {
			full++
			continue
		}
		take[k] = true
		replaced += len(stands) - len(without)
		stands = without
	}
	for k := range cands {
		if take[k] {
			stands = append(stands, cands[k])
		}
	}
	candidate := text(stands)
	in0 := len(cands) - full
	d.Reason = fmt.Sprintf("%d of %d lines taken, %d known, %d over the share, %d outdated ones left", in0, len(cfg.Lower[i].Lines), known, full, replaced)
	if candidate == in.State.MemoryText {
		d.ReasonCode = reasonNothingNew
		return d
	}
	d.Update, d.ReasonCode, d.Candidate = true, gru.ReasonKept, candidate
	return d
}

// shares divides the budget among the inputs, each at most what its lines take that no
// input before it has: who needs less than an equal share leaves the rest to those that
// need more (max-min fairness).
func shares(cfg *gru.Config) []int {
	needs, out := make([]int, len(cfg.Lower)), make([]int, len(cfg.Lower))
	seen := map[string]bool{}
	for i := range cfg.Lower {
		for _, l := range cfg.Lower[i].Lines {
			if !seen[l.Text] {
				seen[l.Text] = true
				needs[i] += cfg.Count(l.Whole)
			}
		}
	}
	order := make([]int, len(needs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(needs[a], needs[b]) })
	left := cfg.BudgetTokens
	for k, i := range order {
		out[i] = min(needs[i], left/(len(order)-k))
		left -= out[i]
	}
	return out
}

func chosen(cands []upLine, take []bool, count func(string) int) (n int) {
	for k := range cands {
		if take[k] {
			n += count(cands[k].Whole)
		}
	}
	return n
}

func text(lines []upLine) string {
	var b strings.Builder
	for i := range lines {
		b.WriteString(lines[i].Whole)
	}
	return b.String()
}

// standing finds the lines of the memory so far in the inputs that were read.
func standing(read []gru.Lower, mem string) (out []upLine) {
	from := map[string]upLine{}
	for i := len(read) - 1; i >= 0; i-- { // the first question that has a line gave it
		for _, l := range read[i].Lines {
			from[l.Whole] = upLine{l, extractive.Fingerprint{}, i}
		}
	}
	for whole := range strings.Lines(mem) {
		if l, ok := from[whole]; ok {
			l.print = extractive.FingerprintOf(l.Text)
			out = append(out, l)
		}
	}
	return out
}

// saysAlready reports whether the line that stands says what n says, or something
// newer about the same.
func saysAlready(stands, n *upLine) bool {
	return stands.Text == n.Text || extractive.Relate(n.print, stands.print, false) == extractive.Repeat || contradicts(stands, n)
}

// contradicts reports whether a is the newer of two lines that say unlike things about
// the same. Lines of one question stand side by side on purpose, and so do those of one
// document ("staging has two replicas", "production has four").
func contradicts(a, b *upLine) bool {
	if a.input == b.input || a.Role == memory.RoleNote && b.Role == memory.RoleNote && a.Place.Admit == b.Place.Admit {
		return false
	}
	return a.Place.Compare(b.Place) > 0 && extractive.Relate(a.print, b.print, false) == extractive.Supersedes
}
