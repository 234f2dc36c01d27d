package agree_test

import (
	"math"
	"testing"

	"github.com/mneme-ai/mneme/shared/agree"
)

func near(a, b float64) bool { return math.Abs(a-b) < 5e-4 }

func TestKappa(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		t     agree.Table
		kappa float64
	}{
		// Cohen's own kind of example: 20 and 15 agreed, 5 and 10 not, of 50.
		"half by chance": {agree.Table{Both: 20, OnlyA: 5, OnlyB: 10, Neither: 15}, .4},
		"perfect":        {agree.Table{Both: 3, Neither: 7}, 1},
		"chance":         {agree.Table{Both: 25, OnlyA: 25, OnlyB: 25, Neither: 25}, 0},
		"worse":          {agree.Table{OnlyA: 5, OnlyB: 5}, -1},
		"a rare yes":     {agree.Table{Both: 2, OnlyA: 2, OnlyB: 2, Neither: 94}, .4792},
	} {
		k, ci := tc.t.Kappa()
		if !near(k, tc.kappa) || ci[0] > k || ci[1] < k {
			t.Errorf("%s: %.4f in %v, want %.4f", name, k, ci, tc.kappa)
		}
	}
	// Perfect agreement on 24 things is not certain: Wilson's interval of 24 in 24 begins
	// at 0.862, and chance gives a half.
	if _, ci := (agree.Table{Both: 12, Neither: 12}).Kappa(); !near(ci[0], .7240) || ci[1] != 1 {
		t.Errorf("of perfect agreement: %v", ci)
	}
	for _, none := range []agree.Table{{}, {Neither: 9}, {Both: 9}} {
		if k, ci := none.Kappa(); !math.IsNaN(k) || ci != [2]float64{-1, 1} {
			t.Errorf("%+v: %f %v", none, k, ci)
		}
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	var tab agree.Table
	for i := range 100 {
		tab.Add(i < 10, i >= 4 && i < 12)
	}
	if tab != (agree.Table{Both: 6, OnlyA: 4, OnlyB: 2, Neither: 88}) || tab.N() != 100 {
		t.Fatalf("%+v", tab)
	}
	a, _ := tab.Agreement()
	p, _ := tab.Precision()
	r, ci := tab.Recall()
	if !near(a, .94) || !near(p, .75) || !near(r, .6) || !near(ci[0], .3127) || !near(ci[1], .8318) {
		t.Errorf("%f %f %f %v", a, p, r, ci)
	}
	if p, ci := (agree.Table{}).Precision(); p != 0 || ci != [2]float64{0, 1} {
		t.Errorf("of nothing: %f %v", p, ci)
	}
}

// TestWilson: of 17 in 412, by the formula.
func TestWilson(t *testing.T) {
	t.Parallel()
	if got := agree.Wilson(17, 412); !near(got[0], .0259) || !near(got[1], .0651) {
		t.Errorf("%v", got)
	}
	if got := agree.Wilson(0, 10); got[0] != 0 || !near(got[1], .2775) {
		t.Errorf("%v", got)
	}
}

// TestF1AndMCC: the first by hand; MCC of a balanced table is its phi coefficient.
func TestF1AndMCC(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		t       agree.Table
		f1, mcc float64
	}{
		"perfect":     {agree.Table{Both: 3, Neither: 7}, 1, 1},
		"reversed":    {agree.Table{OnlyA: 5, OnlyB: 5}, 0, -1},
		"mixed":       {agree.Table{Both: 6, OnlyA: 4, OnlyB: 2, Neither: 88}, 12. / 18, .6389},
		"always yes":  {agree.Table{Both: 4, OnlyB: 96}, 8. / 104, math.NaN()},
		"always no":   {agree.Table{OnlyA: 4, Neither: 96}, 0, math.NaN()},
		"nobody said": {agree.Table{Neither: 9}, math.NaN(), math.NaN()},
	} {
		same := func(a, b float64) bool { return near(a, b) || math.IsNaN(a) && math.IsNaN(b) }
		if f1, mcc := tc.t.F1(), tc.t.MCC(); !same(f1, tc.f1) || !same(mcc, tc.mcc) {
			t.Errorf("%s: %f %f, want %f %f", name, f1, mcc, tc.f1, tc.mcc)
		}
	}
}
