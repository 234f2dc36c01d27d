// Package agree measures how far two judges of the same things agree: two models over
// the same chunks, or a model and a person.
//
// Invariant: every figure of agreement comes with its 95 % interval, and chance is
// told from agreement (Cohen, 1960: two judges that say no to 96 of 100 things agree
// on most of them whatever they look at).
//
// The package knows no record and no model.
package agree

import "math"

// Table counts what two judges said of the same things, yes or no.
type Table struct {
	Both    int `json:"both"`
	Neither int `json:"neither"`
	OnlyA   int `json:"only_first"`
	OnlyB   int `json:"only_second"`
}

// Add counts one thing.
func (t *Table) Add(a, b bool) {
	switch {
	case a && b:
		t.Both++
	case a:
		t.OnlyA++
	case b:
		t.OnlyB++
	default:
		t.Neither++
	}
}

// N is how many things were judged.
func (t Table) N() int { return t.Both + t.Neither + t.OnlyA + t.OnlyB }

// Agreement is the share on which both said the same, and its interval; 0 and [0,1]
// of nothing.
func (t Table) Agreement() (float64, [2]float64) {
	k := t.Both + t.Neither
	return share(k, t.N()), Wilson(k, t.N())
}

// Precision is the share of the second's yes that is the first's too, and its
// interval: the first is taken for right.
func (t Table) Precision() (float64, [2]float64) {
	return share(t.Both, t.Both+t.OnlyB), Wilson(t.Both, t.Both+t.OnlyB)
}

// Recall is the share of the first's yes that the second found.
func (t Table) Recall() (float64, [2]float64) {
	return share(t.Both, t.Both+t.OnlyA), Wilson(t.Both, t.Both+t.OnlyA)
}

// F1 is the harmonic mean of precision and recall; NaN where neither said yes.
func (t Table) F1() float64 {
	n := 2*t.Both + t.OnlyA + t.OnlyB
	if n == 0 {
		return math.NaN()
	}
	return float64(2*t.Both) / float64(n)
}

// MCC is Matthews' correlation coefficient (1975), in [-1,1]: unlike the share on which
// both agree it is no better for a judge that says no to all things when few are yes.
// NaN where one of the two always says the same.
func (t Table) MCC() float64 {
	a, b, c, d := float64(t.Both), float64(t.OnlyA), float64(t.OnlyB), float64(t.Neither)
	under := (a + b) * (a + c) * (d + b) * (d + c)
	if under == 0 {
		return math.NaN()
	}
	return (a*d - b*c) / math.Sqrt(under)
}

// Kappa is Cohen's kappa and its 95 % interval: that of the share on which both agree
// (Wilson), with what chance gives taken as known, as Cohen's own standard error
// (1960) takes it, which says of a perfect agreement that it is certain. It is 1 of
// perfect agreement, 0 of what chance gives, and NaN where it is not defined: of
// nothing, and where both always say the same one thing.
func (t Table) Kappa() (float64, [2]float64) {
	n := float64(t.N())
	if n == 0 {
		return math.NaN(), [2]float64{-1, 1}
	}
	a, b := float64(t.Both+t.OnlyA)/n, float64(t.Both+t.OnlyB)/n
	pe := a*b + (1-a)*(1-b)
	if pe == 1 {
		return math.NaN(), [2]float64{-1, 1}
	}
	kappa := func(po float64) float64 { return (po - pe) / (1 - pe) }
	po, ci := t.Agreement()
	return kappa(po), [2]float64{max(kappa(ci[0]), -1), min(kappa(ci[1]), 1)}
}

func share(k, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(k) / float64(n)
}

const z = 1.959964 // of 95 %

// Wilson is the 95 % interval of a share k/n (Wilson, 1927); [0,1] of none.
func Wilson(k, n int) [2]float64 {
	if n == 0 {
		return [2]float64{0, 1}
	}
	p, m := float64(k)/float64(n), float64(n)
	mid := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	ci := [2]float64{max(0, (mid-half)/(1+z*z/m)), min(1, (mid+half)/(1+z*z/m))}
	if k == n { // where rounding would leave a little less
		ci[1] = 1
	}
	if k == 0 {
		ci[0] = 0
	}
	return ci
}
