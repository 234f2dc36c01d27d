package report

import "github.com/mneme-ai/mneme/shared/labels"

// Exits counts the parts of a stream by the outcome of their exit.
type Exits struct {
	Early      int `json:"early"`
	Exact      int `json:"exact"`
	Late       int `json:"late"`
	NoEvidence int `json:"no_evidence"`
	NotKnown   int `json:"not_known"`
	Never      int `json:"never_opened"` // of early, exact and late: the exit gate stayed shut
	// Reward is the mean of r_exit over early, exact and late; null of none.
	Reward *float64 `json:"r_exit"`
}

func (e *Exits) add(o labels.Outcome, opened bool) {
	switch o {
	case labels.Early:
		e.Early++
	case labels.Exact:
		e.Exact++
	case labels.Late:
		e.Late++
	case labels.NoEvidence:
		e.NoEvidence++
	default:
		e.NotKnown++
	}
	if o >= labels.Early && !opened {
		e.Never++
	}
}

// Known is how many parts have an outcome that r_exit is defined of.
func (e *Exits) Known() int { return e.Early + e.Exact + e.Late }

func (e *Exits) close() {
	if n := e.Known(); n > 0 {
		early, _ := labels.Early.Reward()
		late, _ := labels.Late.Reward()
		r := (early*float64(e.Early) + late*float64(e.Late)) / float64(n)
		if r == 0 {
			r = 0 // and not -0, which no early and no late part make
		}
		e.Reward = &r
	}
}
