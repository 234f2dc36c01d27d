package labels

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Judge is whose labels are held against people's: a model's, by its name, or those
// of all rules.
type Judge struct {
	Kind  string `json:"kind"`            // memory.LabelModel or LabelRule
	Model string `json:"model,omitempty"` // of a model
}

// Name is the judge as people name it.
func (j Judge) Name() string {
	if j.Kind == memory.LabelModel {
		return "model " + j.Model
	}
	return "rules"
}

// Bound is what a judge must reach before its labels are trusted.
type Bound struct {
	Kappa float64 `json:"min_kappa"` // [-1,1]
	Pairs int     `json:"min_pairs"` // pieces that a person and the judge both labelled
}

// DefaultBound: a kappa over 0.6 is called substantial (Landis and Koch, 1977); with
// 20 pieces its 95 % interval is still some ±0.35 wide at that point, and with fewer
// it says next to nothing.
var DefaultBound = Bound{Kappa: 0.6, Pairs: 20}

// Agreement says how far a judge agrees with the people, over the pieces that both
// labelled. Intervals are of 95 %: Wilson's (1927) of shares; of Cohen's kappa (1960)
// see agree.Table.Kappa.
type Agreement struct {
	Judge
	N           int         `json:"n"`
	Table       agree.Table `json:"table"` // first the people, second the judge
	Share       float64     `json:"agreement"`
	ShareCI     [2]float64  `json:"agreement_ci"`
	Kappa       *float64    `json:"kappa"` // null where it is not defined: of nothing, or where both always say one thing
	KappaCI     [2]float64  `json:"kappa_ci"`
	Precision   float64     `json:"precision"`
	PrecisionCI [2]float64  `json:"precision_ci"`
	Recall      float64     `json:"recall"`
	RecallCI    [2]float64  `json:"recall_ci"`
	Labels      int         `json:"labels"`      // pieces that the judge labelled, with a person or without
	Unreadable  int         `json:"unreadable"`  // pieces of which the judge gave no readable answer
	WithMemory  int         `json:"with_memory"` // of N, decided with a memory in view (see Verdict.Memory)
	Bound       Bound       `json:"bound"`
	Trusted     bool        `json:"trusted"`
	Why         string      `json:"why,omitempty"` // it is not
}

// Refusal is why the judge's labels are not to be used, as an error for people; nil
// where they are trusted.
func (a *Agreement) Refusal() error {
	if a.Trusted {
		return nil
	}
	return fault.At(fault.Denied, a.Judge.Name(), "label more of the same pieces by hand (mem label review), or use a better judge; mem label agreement shows where it stands", "its labels are not trusted: %s", a.Why)
}

// Trusted measures the model's labels against those of people and says whether they
// may stand for them: whether Cohen's kappa reaches bound.Kappa over at least
// bound.Pairs pieces. Which label of a piece counts is what Compare says: of the
// model, one that saw the chunk alone before one that saw a memory, then the latest.
// The set must hold people's labels as well as the model's.
func Trusted(s *Set, model string, bound Bound) (Agreement, bool) {
	a := s.Agreement(Judge{Kind: memory.LabelModel, Model: model}, bound)
	return a, a.Trusted
}

// Agreement measures one judge against the people.
func (s *Set) Agreement(j Judge, bound Bound) Agreement {
	a := Agreement{Judge: j, Bound: bound}
	for _, all := range s.by {
		for _, v := range latest(all, j) {
			if !v.FormatOK {
				a.Unreadable++
				continue
			}
			a.Labels++
			person, ok := human(all, v.Start, v.End)
			if !ok {
				continue
			}
			a.Table.Add(person.Evidence, v.Evidence)
			if v.Memory {
				a.WithMemory++
			}
		}
	}
	a.N = a.Table.N()
	a.Share, a.ShareCI = a.Table.Agreement()
	a.Precision, a.PrecisionCI = a.Table.Precision()
	a.Recall, a.RecallCI = a.Table.Recall()
	k, ci := a.Table.Kappa()
	a.KappaCI = ci
	if k == k { // not NaN
		a.Kappa = &k
	}
	switch {
	case a.N < bound.Pairs:
		a.Why = fmt.Sprintf("%d pieces were labelled by it and by a person, at least %d are needed", a.N, bound.Pairs)
	case a.Kappa == nil:
		a.Why = "kappa is not defined: all labels say the same"
	case k < bound.Kappa:
		a.Why = fmt.Sprintf("kappa %.2f [%.2f, %.2f] is below %.2f", k, ci[0], ci[1], bound.Kappa)
	default:
		a.Trusted = true
	}
	return a
}

// latest are the judge's opinions about one chunk, that which counts of each piece;
// an unreadable one only where there is no other.
func latest(all []Verdict, j Judge) []Verdict {
	var out []Verdict
	for _, v := range all {
		if v.Kind == j.Kind && (j.Kind != memory.LabelModel || v.Model == j.Model) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), unread(a)-unread(b), Compare(a, b))
	})
	return slices.CompactFunc(out, func(a, b Verdict) bool { return a.Start == b.Start && a.End == b.End })
}

func unread(v Verdict) int {
	if v.FormatOK {
		return 0
	}
	return 1
}

// human is the person's verdict that counts over chunk text [start,end).
func human(all []Verdict, start, end int) (best Verdict, ok bool) {
	for _, v := range all {
		if v.Kind == memory.LabelHuman && v.covers(start, end) && (!ok || Compare(v, best) < 0) {
			best, ok = v, true
		}
	}
	return best, ok
}

// Judges are those whose labels the set holds, people aside: models by name, then
// the rules.
func (s *Set) Judges() []Judge {
	seen := map[Judge]bool{}
	var out []Judge
	for _, all := range s.by {
		for _, v := range all {
			j := Judge{Kind: v.Kind}
			if v.Kind == memory.LabelModel {
				j.Model = v.Model
			}
			if v.Kind != memory.LabelHuman && !seen[j] {
				seen[j] = true
				out = append(out, j)
			}
		}
	}
	slices.SortFunc(out, func(a, b Judge) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Model, b.Model)) })
	return out
}
