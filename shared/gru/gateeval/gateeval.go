// Package gateeval measures the extractive policy on labelled data: recall and
// false-open of the update gate with exact intervals, and R@1 of what it keeps.
package gateeval

import (
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
)

// Report is the result of Run; its JSON names are fixed, scripts read them.
type Report struct {
	Open          int        `json:"open"`   // items labelled open
	Closed        int        `json:"closed"` // items labelled closed; null labels are in neither
	Recall        float64    `json:"recall"` // [0,1], share of Open that opened; 0 when Open is 0
	RecallLow     float64    `json:"recall_low"`
	RecallHigh    float64    `json:"recall_high"`
	FalseOpen     float64    `json:"false_open"` // [0,1], share of Closed that opened
	FalseOpenLow  float64    `json:"false_open_low"`
	FalseOpenHigh float64    `json:"false_open_high"`
	Retrieval     *Retrieval `json:"retrieval,omitempty"` // with tasks.jsonl only
}

// Retrieval is R@1 over the tasks of a folder.
type Retrieval struct {
	Plain   Rate `json:"plain"`   // tasks without stale chats
	Amended Rate `json:"amended"` // tasks where an older chat must not win
}

// Rate is a share of N with its exact 95 % binomial interval.
type Rate struct {
	N    int     `json:"n"`
	Hits int     `json:"hits"`
	R1   float64 `json:"r_at_1"` // [0,1]
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Run evaluates the default policy on path: a folder with decisions.jsonl and
// decoys.jsonl, or a JSONL file, or a folder of such files. A line that cannot
// be read is a fault.Invalid that names file and line.
func Run(path string) (Report, error) { return RunWith(extractive.New(extractive.Options{}), path) }

// RunWith is Run with another policy.
func RunWith(p *extractive.Policy, path string) (rep Report, err error) {
	defer fault.Wrap(&err, "gateeval(%s)", path)
	d, err := load(path)
	if err != nil {
		return Report{}, err
	}
	opened, shut := 0, 0
	for i := range d.items {
		it := &d.items[i]
		if it.Open == nil {
			continue
		}
		open := p.Score(it.Messages).Open
		switch {
		case *it.Open:
			rep.Open++
			if open {
				opened++
			}
		default:
			rep.Closed++
			if open {
				shut++
			}
		}
	}
	r, f := rate(opened, rep.Open), rate(shut, rep.Closed)
	rep.Recall, rep.RecallLow, rep.RecallHigh = r.R1, r.Low, r.High
	rep.FalseOpen, rep.FalseOpenLow, rep.FalseOpenHigh = f.R1, f.Low, f.High
	if len(d.tasks) > 0 {
		rep.Retrieval = retrieval(p, d)
	}
	return rep, nil
}

func rate(hits, n int) Rate {
	r := Rate{N: n, Hits: hits}
	if n > 0 {
		r.R1 = float64(hits) / float64(n)
	}
	r.Low, r.High = Interval(hits, n)
	return r
}
