package report

// Evidence is what is known of a piece of a chunk.
type Evidence int8

// What a label may say, and what no label says.
const (
	Unknown Evidence = iota
	Has
	HasNot
)

// Outcome is where a part's exit gate opened, measured by its last evidence.
type Outcome int8

// The outcomes, with r_exit of GRU-Mem (arXiv 2602.10560, Eq. 9).
const (
	NotKnown   Outcome = iota // a piece that may be the last evidence has no label
	NoEvidence                // no piece holds any: there is nothing to be early for
	Early                     // -0.75: before the last evidence
	Exact                     // 0: at it
	Late                      // -0.5: after it
)

// Rewards of Eq. 9.
const (
	rewardEarly = -0.75
	rewardLate  = -0.5
)

// ExitOf judges an exit at step exit of a part whose pieces are read, in order, and
// then unread, where the exit gate was acted on. An exit gate that never opened counts
// as one at the last step: the paper's runs without it end there.
func ExitOf(exit int, read, unread []Evidence) Outcome {
	at := func(t int) Evidence {
		if t < len(read) {
			return read[t]
		}
		return unread[t-len(read)]
	}
	for t := len(read) + len(unread) - 1; t >= 0; t-- {
		switch at(t) {
		case Unknown:
			return NotKnown
		case Has:
			switch {
			case exit < t:
				return Early
			case exit > t:
				return Late
			}
			return Exact
		}
	}
	return NoEvidence
}

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

func (e *Exits) add(o Outcome, opened bool) {
	switch o {
	case Early:
		e.Early++
	case Exact:
		e.Exact++
	case Late:
		e.Late++
	case NoEvidence:
		e.NoEvidence++
	default:
		e.NotKnown++
	}
	if o >= Early && !opened {
		e.Never++
	}
}

// Known is how many parts have an outcome that r_exit is defined of.
func (e *Exits) Known() int { return e.Early + e.Exact + e.Late }

func (e *Exits) close() {
	if n := e.Known(); n > 0 {
		r := (rewardEarly*float64(e.Early) + rewardLate*float64(e.Late)) / float64(n)
		e.Reward = &r
	}
}
