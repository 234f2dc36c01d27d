package cost

import (
	"math"
	"slices"

	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Figures fold the gate records of one stream, or of several, into what people ask
// of a run (brief P17). The zero value is ready.
type Figures struct {
	Steps     int            `json:"steps"`
	Open      int            `json:"open"`       // update gates that opened
	Exits     int            `json:"exits"`      // exit gates that opened
	FirstExit int            `json:"first_exit"` // step of the first; 0 for none
	BadFormat int            `json:"format_failures"`
	Pending   int            `json:"pending"`   // of them, not asked again yet
	Cut       int            `json:"truncated"` // prompts that a server cut
	Regated   int            `json:"regated"`
	Retried   int            `json:"retried"` // steps that took a second attempt
	ByReason  map[string]int `json:"by_reason"`

	PromptTokens     int64   `json:"prompt_tokens"`     // as the servers count
	PromptTokensOwn  int64   `json:"prompt_tokens_own"` // by the own count
	CompletionTokens int64   `json:"completion_tokens"`
	USD              float64 `json:"usd"`

	memory, latency, completion, prompt []float64
	ts                                  []float64
	pending                             map[int]bool
	kept                                map[memory.SHA]bool
}

// Add folds the next gate record of the stream.
func (f *Figures) Add(g *memory.Gate) {
	if f.ByReason == nil {
		f.ByReason, f.pending, f.kept = map[string]int{}, map[int]bool{}, map[memory.SHA]bool{}
	}
	f.Steps++
	f.ByReason[g.ReasonCode]++
	if g.Update {
		f.Open++
		f.kept[g.MemorySHA] = true
	}
	if g.Exit {
		if f.Exits++; f.FirstExit == 0 {
			f.FirstExit = g.T
		}
	}
	if !g.FormatOK {
		f.BadFormat++
	}
	if g.TruncatedByServer {
		f.Cut++
	}
	if g.RegateOf > 0 {
		f.Regated++
		delete(f.pending, g.RegateOf)
	}
	if g.Pending {
		f.pending[g.T] = true
	}
	f.Pending = len(f.pending)
	if g.Attempt > 1 {
		f.Retried++
	}
	f.PromptTokens += int64(g.PromptTokens)
	f.PromptTokensOwn += int64(g.PromptTokensOwn)
	f.CompletionTokens += int64(g.CompletionTokens)
	f.USD += g.CostUSD
	f.ts = append(f.ts, float64(g.T))
	f.memory = append(f.memory, float64(g.MemoryTokens))
	f.latency = append(f.latency, g.LatencyMS)
	if g.PromptTokens > 0 {
		f.prompt = append(f.prompt, float64(g.PromptTokens))
		f.completion = append(f.completion, float64(g.CompletionTokens))
	}
}

// Report is Figures as they are printed.
type Report struct {
	Figures
	UpdateRate float64    `json:"update_rate"`    // open / steps
	UpdateCI   [2]float64 `json:"update_rate_ci"` // Wilson, 95 %
	FormatRate float64    `json:"format_failure_rate"`
	// Memory tokens over the steps, and by how many they grow a step (least squares):
	// flat and far below the budget is right, a climb to the budget within some ten
	// steps is the sign of a gate that does not discriminate (GRU-Mem, figure 6).
	MemoryP50   float64 `json:"memory_tokens_p50"`
	MemoryP95   float64 `json:"memory_tokens_p95"`
	MemoryMax   float64 `json:"memory_tokens_max"`
	MemorySlope float64 `json:"memory_tokens_slope"`
	LatencyP50  float64 `json:"latency_ms_p50"` // of a step
	LatencyP95  float64 `json:"latency_ms_p95"`
	// USDPerKept is what a kept memory cost: all calls, closed gates included, over
	// the memories that they left.
	Kept          int     `json:"memories_kept"`
	USDPerKept    float64 `json:"usd_per_kept"`
	TokensPerKept float64 `json:"tokens_per_kept"`
}

// Report gives the figures.
func (f *Figures) Report() Report {
	r := Report{Figures: *f, Kept: len(f.kept)}
	if r.ByReason == nil {
		r.ByReason = map[string]int{}
	}
	if f.Steps == 0 {
		return r
	}
	n := float64(f.Steps)
	r.UpdateRate, r.FormatRate = float64(f.Open)/n, float64(f.BadFormat)/n
	r.UpdateCI = agree.Wilson(f.Open, f.Steps)
	r.MemoryP50, r.MemoryP95, r.MemoryMax = Quantile(f.memory, .5), Quantile(f.memory, .95), slices.Max(f.memory)
	r.MemorySlope = slope(f.ts, f.memory)
	r.LatencyP50, r.LatencyP95 = Quantile(f.latency, .5), Quantile(f.latency, .95)
	if r.Kept > 0 {
		r.USDPerKept = f.USD / float64(r.Kept)
		r.TokensPerKept = float64(f.PromptTokens+f.CompletionTokens) / float64(r.Kept)
	}
	return r
}

// Quantile is the q-quantile of xs, in [0,1], by the nearest rank; 0 of none.
func Quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Clone(xs)
	slices.Sort(s)
	return s[min(max(int(math.Ceil(q*float64(len(s))))-1, 0), len(s)-1)]
}

// slope is that of the line of least squares; 0 of fewer than two points.
func slope(xs, ys []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	var sx, sy, sxx, sxy float64
	for i := range xs {
		sx += xs[i]
		sy += ys[i]
		sxx += xs[i] * xs[i]
		sxy += xs[i] * ys[i]
	}
	n := float64(len(xs))
	d := n*sxx - sx*sx
	if d == 0 {
		return 0
	}
	return (n*sxy - sx*sy) / d
}
