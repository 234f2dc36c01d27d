package report

import (
	"math"

	"github.com/mneme-ai/mneme/shared/agree"
)

// Who decides in a row of Gates.
const (
	TheGate   = "gate"
	AlwaysYes = "always_yes"
	AlwaysNo  = "always_no"
)

// Gate is one update gate held against the labels: the stream's own, and two that look
// at nothing, which any gate must beat. With few chunks that hold evidence the share of
// right decisions says nothing (a gate that never opens is right on 96 of 100), so
// that precision, recall, F1 and Matthews' coefficient stand here.
type Gate struct {
	Who         string      `json:"who"`
	UpdateRate  float64     `json:"update_rate"` // over all decided steps (Labelled.Decided), [0,1]
	Labelled    agree.Table `json:"labelled"`    // first the labels, second the gate
	Precision   *float64    `json:"precision"`   // null where the gate opened at no labelled step
	PrecisionCI [2]float64  `json:"precision_ci"`
	Recall      *float64    `json:"recall"` // null where no labelled step holds evidence
	RecallCI    [2]float64  `json:"recall_ci"`
	F1          *float64    `json:"f1"`
	MCC         *float64    `json:"mcc"`
	// Reward is the mean of r_update over the labelled steps: 1 where the gate agrees
	// with the label, else -1 (GRU-Mem, Eq. 8); null without labels.
	Reward *float64 `json:"r_update"`
}

// gatesOf gives the three rows from the labelled steps of the stream.
func gatesOf(decided, open int, labelled agree.Table) []Gate {
	rate := 0.0
	if decided > 0 {
		rate = float64(open) / float64(decided)
	}
	has, hasNot := labelled.Both+labelled.OnlyA, labelled.OnlyB+labelled.Neither
	return []Gate{
		gateOf(TheGate, rate, labelled),
		gateOf(AlwaysYes, 1, agree.Table{Both: has, OnlyB: hasNot}),
		gateOf(AlwaysNo, 0, agree.Table{OnlyA: has, Neither: hasNot}),
	}
}

func gateOf(who string, rate float64, t agree.Table) Gate {
	g := Gate{Who: who, UpdateRate: rate, Labelled: t}
	p, pci := t.Precision()
	r, rci := t.Recall()
	g.PrecisionCI, g.RecallCI = pci, rci
	if t.Both+t.OnlyB > 0 {
		g.Precision = &p
	}
	if t.Both+t.OnlyA > 0 {
		g.Recall = &r
	}
	g.F1, g.MCC = defined(t.F1()), defined(t.MCC())
	if n := t.N(); n > 0 {
		reward := float64(t.Both+t.Neither-t.OnlyA-t.OnlyB) / float64(n)
		g.Reward = &reward
	}
	return g
}

func defined(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
