// Package extractive is the built-in policy of the gated loop: it decides
// without a model whether a chunk holds something worth keeping, and which
// sentences.
//
// The method is a fixed linear score over cues of how people phrase decisions,
// rules, corrections, causes, preferences and values. There is no weights file
// and no network, and every decision names the cues that made it.
//
// Invariants: the same messages give the same result on every machine; any
// bytes are accepted; a sentence is a verbatim byte range of its message on
// one line; time and memory are linear in the input. Text of tools, of the
// harness and of summaries is never evidence.
//
// The package does not read transcripts, keeps no state between calls and
// writes no memory: it scores, picks and compares sentences. docs/EXTRACTIVE.md
// holds the measured figures.
package extractive

import (
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Version names the method in run and gate records.
//
// History:
// x0 — the method as first written and measured; Variant AsWritten.
// x1 — apostrophes of any kind or left out, questions without their mark,
// choices, rules, scope and steps; questions weigh nothing in small chunks;
// praise, agreement, prediction and an assistant's description no longer
// count as rules.
const Version = "x1"

// DefaultThreshold is the chunk score from which the gate opens. Five-fold
// cross-validation over all talk at hand chose 0.75 or 0.875 in every fold
// (docs/EXTRACTIVE.md); the higher of the two, as the weights stand on a grid
// of 0.25 and at 0.75 a single cue of the commonest kind would open it.
const DefaultThreshold = 0.875

// writtenThreshold is that of the method as first written.
const writtenThreshold = 1.0

// Variant chooses between the method as first written and the improved one.
type Variant uint8

const (
	Default   Variant = iota // Version
	AsWritten                // x0, kept so that its published figures stay checkable
)

// Options configures a Policy. The zero value is the default policy.
type Options struct {
	Threshold float64 // chunk score from which the gate opens; 0 means DefaultThreshold, or 1 for AsWritten
	Variant   Variant
}

// Message is one turn of the chunk, in conversation order.
type Message struct {
	Role    memory.Role
	Text    string
	Context bool      // stands before the chunk: known, never scored
	Time    time.Time // effective time; not used by the score
	First   bool      // first of the conversation, and more messages follow
}

// Sentence is a scored sentence.
type Sentence struct {
	Message    int // index of its message
	Start, End int // byte range in Message.Text, verbatim, on one line
	Score      float64
	Cues       []string // names of the cues that hold, in the order of the weight table; shared, not to be changed
}

// Result is the decision on one chunk.
type Result struct {
	Open   bool
	Score  float64
	Reason string // score, threshold and the cues of the three best sentences; never transcript text
	// Sentences holds every scored sentence in text order.
	Sentences []Sentence
	// Picks are indices into Sentences in text order, at most 6 sentences and
	// 4,000 characters; nil when the gate is closed.
	Picks []int
}

// Policy scores chunks. It is immutable and safe for concurrent use.
type Policy struct {
	threshold float64
	rules     func() *rules // built by the first call, in about 20 ms
}

// New returns the policy that o describes.
func New(o Options) *Policy {
	if o.Threshold == 0 {
		o.Threshold = DefaultThreshold
		if o.Variant == AsWritten {
			o.Threshold = writtenThreshold
		}
	}
	r := improvedRules
	if o.Variant == AsWritten {
		r = writtenRules
	}
	return &Policy{threshold: o.Threshold, rules: r}
}
