package cost

import (
	"math"

	"github.com/mneme-ai/mneme/shared/agree"
)

// Work is what is to be estimated: chunks that a stream will read.
type Work struct {
	Chunks []int // tokens of each, by the own count
	// Room is the tokens of a chunk that one call can look at, beside the memory as it
	// stands and beside a full one; 0: all of it.
	Room [2]int
	// Frame is what stands around a chunk in a gate prompt (instructions, question),
	// by the own count, and Template what the server's chat template adds.
	Frame, Template int
	MemoryNow       int // tokens of the memory as it stands
	MemoryBudget    int
	Factor          [2]float64 // the server's count over the own one: equal ends where it was measured
	ReplyTokens     int        // the longest reply
	Split           bool       // a rewrite model is asked for open gates
	RewriteFrame    int
	Seen            *Figures // of the same model and project; nil or empty: nothing is known
	// Prices of a token, in US dollars.
	PromptUSD, CompletionUSD, RewritePromptUSD, RewriteCompletionUSD float64
}

// Range is an estimate from low to high.
type Range struct {
	Low   Bound `json:"low"`
	High  Bound `json:"high"`
	Steps int   `json:"basis_steps"` // steps of the same model that it rests on; 0: bounds alone
}

// Bound is one end.
type Bound struct {
	Calls            int     `json:"calls"`
	PromptTokens     int64   `json:"prompt_tokens"`
	CompletionTokens int64   `json:"completion_tokens"`
	USD              float64 `json:"usd"`
	Seconds          float64 `json:"seconds"` // 0: nothing is known of the model's speed
}

// Plus adds ends.
func (b Bound) Plus(c Bound) Bound {
	return Bound{b.Calls + c.Calls, b.PromptTokens + c.PromptTokens, b.CompletionTokens + c.CompletionTokens, b.USD + c.USD, b.Seconds + c.Seconds}
}

// Plus adds estimates; the basis is the smaller.
func (r Range) Plus(s Range) Range {
	return Range{r.Low.Plus(s.Low), r.High.Plus(s.High), min(r.Steps, s.Steps)}
}

const (
	// leastSteps is how many steps of a model make its past a better guide than the
	// bounds: the 95 % interval of a rate is then about ten points wide.
	leastSteps = 50
	// shortReply is the shortest reply that can be read: check and next in their tags,
	// or the JSON of both.
	shortReply = 12
)

// calls is how often a chunk of n tokens is looked at, at the least and at the most. It
// is cut where a message or a line ends, so that a piece may be short; but a piece and
// the next one together are more than the room, or they would be one.
func (w *Work) calls(n int) (least, most int) {
	in := func(room int) int {
		if room <= 0 {
			return 1
		}
		return max(1, (n+room-1)/room)
	}
	return in(w.Room[0]), 2*in(w.Room[1]) - 1
}

// Estimate gives the range. Low: every gate is closed, the memory stays as it is,
// replies are the shortest. High: every gate is open, each call is made twice, the
// memory is full, so that long chunks are read in the most pieces, and replies are
// the longest. Where enough steps of the same model
// are known, its own rates take their place: the ends of the 95 % interval of its
// update rate, and its replies' 5th and 95th percentile.
func Estimate(w Work) Range {
	var r Range
	if len(w.Chunks) == 0 {
		return r
	}
	text, pieces := 0, [2]int{}
	for _, t := range w.Chunks {
		text += t
		least, most := w.calls(t)
		pieces[0], pieces[1] = pieces[0]+least, pieces[1]+most
	}
	open := [2]float64{0, 1}
	reply := [2]float64{shortReply, float64(w.ReplyTokens)}
	again := [2]float64{0, 1} // calls that are repeated, of all
	mem := [2]float64{float64(min(w.MemoryNow, w.MemoryBudget)), float64(w.MemoryBudget)}
	if s := w.Seen; s != nil && len(s.completion) >= leastSteps {
		r.Steps = len(s.completion)
		open = agree.Wilson(s.Open, s.Steps)
		again = agree.Wilson(s.Retried, s.Steps)
		reply = [2]float64{Quantile(s.completion, .05), Quantile(s.completion, .95)}
		mem = [2]float64{min(Quantile(s.memory, .05), mem[0]), max(Quantile(s.memory, .95), mem[0])}
	}
	ends := [2]Bound{}
	for i := range ends {
		b, n := &ends[i], float64(pieces[i])
		calls := n * (1 + again[i])
		prompt := (float64(text) + n*(float64(w.Frame)+mem[i])) * (1 + again[i]) * w.Factor[i]
		prompt += calls * float64(w.Template)
		completion := calls * reply[i]
		b.USD = prompt*w.PromptUSD + completion*w.CompletionUSD
		if w.Split {
			opens := n * open[i] * (1 + again[i])
			p := opens * ((float64(w.RewriteFrame)+mem[i]+float64(text)/n)*w.Factor[i] + float64(w.Template))
			c := opens * reply[i]
			calls += opens
			prompt += p
			completion += c
			b.USD += p*w.RewritePromptUSD + c*w.RewriteCompletionUSD
		}
		b.Calls = int(math.Ceil(calls))
		b.PromptTokens, b.CompletionTokens = int64(math.Ceil(prompt)), int64(math.Ceil(completion))
		if r.Steps > 0 {
			q := [2]float64{.05, .95}[i]
			b.Seconds = n * Quantile(w.Seen.latency, q) / 1000
		}
	}
	r.Low, r.High = ends[0], ends[1]
	return r
}
