package extractive_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/gru/extractive"
)

// folds of the cross-validation: a fifth is held out at a time.
const folds = 5

// setting is what the cross-validation may choose.
type setting struct {
	scores    []float64 // of every item, under the setting's weights
	threshold float64
}

// Weights and threshold are chosen on four fifths of the real exchanges and
// the talk lists and scored on the last: the figure that the hand-set weights
// are worth on exchanges which did not choose them. Run with -v it prints the
// figures of docs/EXTRACTIVE.md.
func TestCrossValidation(t *testing.T) {
	t.Parallel()
	real := exchanges(readShared(t, "eval/real-exchanges.jsonl"), nil)
	items := real
	for _, name := range []string{"talk.txt", "talk2.txt", "talk3.txt", "talk4.txt"} {
		items = append(items, readTalk(t, name)...)
	}
	fold := make([]int, len(items)) // within each label in turn
	var seen [2]int
	for i, e := range items {
		k := 0
		if e.open {
			k = 1
		}
		fold[i] = seen[k] % folds
		seen[k]++
	}
	var settings []setting
	for _, should := range []float64{1, 1.25, 1.5} {
		for _, rule := range []float64{0.25, 0.5, 0.75} {
			for _, choice := range []float64{0.25, 0.5, 0.75} {
				for _, step := range []float64{-0.5, -0.75, -1} {
					p := extractive.Reweighed(1, map[string]float64{"should": should, "rule": rule, "choice": choice, "step": step})
					scores := make([]float64, len(items))
					for i, e := range items {
						scores[i] = p.Score(e.msgs).Score
					}
					for _, threshold := range []float64{0.75, 0.875, 1, 1.125, 1.25, 1.5} {
						settings = append(settings, setting{scores, threshold})
					}
				}
			}
		}
	}
	// figures counts over the items of a fold, or over all others.
	figures := func(s setting, f int, held bool, from, to int) (hits, open, wrong, closed int) {
		for i := from; i < to; i++ {
			if (fold[i] == f) != held {
				continue
			}
			opened := s.scores[i] >= s.threshold
			switch {
			case items[i].open:
				open++
				if opened {
					hits++
				}
			default:
				closed++
				if opened {
					wrong++
				}
			}
		}
		return hits, open, wrong, closed
	}
	var all, onReal [4]int
	for f := range folds {
		best, bestValue := 0, -1.0
		for k, s := range settings {
			hits, open, wrong, closed := figures(s, f, false, 0, len(items))
			// Recall, and each point of false-open above 0.05 costs three.
			value := float64(hits)/float64(open) - 3*max(0, float64(wrong)/float64(closed)-0.05)
			if value > bestValue {
				best, bestValue = k, value
			}
		}
		add := func(sum *[4]int, from, to int) {
			hits, open, wrong, closed := figures(settings[best], f, true, from, to)
			sum[0], sum[1], sum[2], sum[3] = sum[0]+hits, sum[1]+open, sum[2]+wrong, sum[3]+closed
		}
		add(&all, 0, len(items))
		add(&onReal, 0, len(real))
		t.Logf("fold %d: threshold %.3f", f, settings[best].threshold)
	}
	logFigure(t, "held-out folds, all", all[0], all[1], all[2], all[3])
	logFigure(t, "held-out folds, real exchanges", onReal[0], onReal[1], onReal[2], onReal[3])
	if float64(all[0]) < 0.80*float64(all[1]) || float64(all[2]) > 0.10*float64(all[3]) {
		t.Errorf("held-out folds: opened %d of %d and wrongly %d of %d, want at least .80 and at most .10", all[0], all[1], all[2], all[3])
	}
}
