package labels

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

// The outcomes by which GRU-Mem rewards an exit (arXiv 2602.10560, Eq. 9).
const (
	NotKnown   Outcome = iota // a piece that may be the last evidence has no label
	NoEvidence                // no piece holds any: there is nothing to be early for
	Early                     // before the last evidence
	Exact                     // at it
	Late                      // after it
)

// Reward is r_exit of Eq. 9: -0.75, 0 or -0.5; false where it is not defined.
func (o Outcome) Reward() (float64, bool) {
	switch o {
	case Early:
		return -0.75, true
	case Exact:
		return 0, true
	case Late:
		return -0.5, true
	}
	return 0, false
}

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
