package gru

import (
	"encoding/json"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Model says which models decide and what they can hold.
type Model struct {
	Policy  string // frozen in the run record, e.g. "model/full"
	Name    string // gate model; the only one where Rewrite is empty
	Rewrite string // rewrite model, asked for open gates alone; empty: Name answers all four tags
	Adapter string
	// RewriteAdapter is the rewrite model's: the one of the gate is not known there.
	RewriteAdapter string
	Sampling       memory.Sampling
	// WindowTokens is the context window of the smaller model, prompt and
	// reply together, by the own count.
	WindowTokens int
	ReplyTokens  int // room for the reply; the paper's setting is 2,048
	// TemplateTokens is what the server's chat template adds to a prompt.
	TemplateTokens int
	// TokenFactor is the server's prompt count divided by the own one, as the
	// preflight measured it, for the kind of text of which it makes the fewest tokens;
	// 1 for Qwen2.5. 0 turns off the check for prompts that the server cut. DigitFactor
	// is that of figures, of which Qwen2.5 makes a token each and others one of three; 0:
	// TokenFactor's. ForeignFactor is that of scripts other than Latin; 0: TokenFactor's.
	// MostFactor is that of the kind of Latin text of which it makes the most.
	TokenFactor, DigitFactor, ForeignFactor, MostFactor float64
	// RewriteFactors are the rewrite model's; nil: the same.
	RewriteFactors *Factors
	// JSON asks for a JSON object that follows Call.Schema in the place of tags. It
	// is for servers that enforce it, and not for adapters, which know the tags.
	JSON bool
	// Parallel is how many gates are asked side by side; below 2 none. It needs a
	// Rewrite model, which may be Name. See parallel.go.
	Parallel int
	// Prompt is the version of the wording, for an adapter that was trained on
	// another than the newest; "" for that.
	Prompt string
	// Checks holds a new memory against what was read: see Ground, Forgotten and
	// Leaked. Without it a model is believed, as in the paper.
	Checks bool
}

// truncationSlack is how far the server's count may lie below the expected one
// before the prompt counts as cut. The factor is measured on other texts: words,
// code and figures take a tokenizer's tokens in shares that differ by some percent. A
// server that cuts takes half.
const truncationSlack = 0.1

// Factors are a server's tokens for one of ours, by the kind of text; see Model.
type Factors struct{ Token, Digit, Foreign float64 }

// factors are those of the model that a call goes to.
func (m *Model) factors(k CallKind) Factors {
	if m.RewriteFactors != nil && m.Rewrite != "" && (k == CallRewrite || k == CallCompress) {
		return *m.RewriteFactors
	}
	return Factors{m.TokenFactor, m.DigitFactor, m.ForeignFactor}
}

// expected is the least that the server can count of a call's whole prompt; 0 where
// nothing is known of how it counts.
func (cfg *Config) expected(c *Call) float64 {
	f := cfg.Model.factors(c.Kind)
	if f.Token == 0 {
		return 0
	}
	digits, foreign := 0, strings.Builder{}
	for _, text := range []string{c.Prompt.System, c.Prompt.User} {
		for _, r := range text {
			switch {
			case '0' <= r && r <= '9':
				digits++ // a token each
			case r > lastLatin:
				foreign.WriteRune(r)
			}
		}
	}
	other := 0
	if f.Foreign > 0 && foreign.Len() > 0 {
		other = cfg.Count(foreign.String())
	}
	if f.Digit == 0 {
		digits = 0
	}
	plain := max(c.PromptTokens-digits-other, 0)
	return f.Token*float64(plain) + min(f.Digit, f.Token)*float64(digits) + f.Foreign*float64(other)
}

// lastLatin is the last letter of the Latin blocks of Unicode (Latin Extended-B).
const lastLatin = 0x24F

// MaxQuestionTokens is the longest question (GRU-Mem's and MemAgent's budget).
const MaxQuestionTokens = 1024

// minSectionTokens is the smallest room for a section that is worth a call.
const minSectionTokens = 256

// Check says whether the configuration can decide at all. Where the parts of a
// prompt cannot fit, the error names the sum.
func (cfg *Config) Check() error {
	switch {
	case cfg.Count == nil || cfg.BudgetTokens <= 0:
		return fault.New(fault.Internal, "gru: a configuration needs a counter and a memory budget")
	case (cfg.Policy == nil) == (cfg.Model == nil):
		return fault.New(fault.Internal, "gru: a configuration needs a policy or a model, and not both")
	}
	if n := cfg.Count(cfg.Question); n > MaxQuestionTokens {
		return fault.At(fault.Invalid, "question "+cfg.QueryID, "shorten the question", "it has %d tokens, at most %d", n, MaxQuestionTokens)
	}
	if cfg.Model == nil {
		return nil
	}
	m := cfg.Model
	if err := m.checkPrompt(); err != nil {
		return err
	}
	if room := cfg.sectionRoom(cfg.BudgetTokens); room < minSectionTokens {
		frame := cfg.frameTokens()
		return fault.At(fault.Invalid, "model "+m.Name, "use a model with a larger window, or a smaller memory budget",
			"instructions %d + question %d + memory %d + section at least %d + reply %d = %d tokens, and the window has %d",
			frame+m.TemplateTokens, cfg.Count(cfg.Question), cfg.BudgetTokens, minSectionTokens, m.ReplyTokens,
			frame+m.TemplateTokens+cfg.Count(cfg.Question)+cfg.BudgetTokens+minSectionTokens+m.ReplyTokens, m.WindowTokens)
	}
	return nil
}

// frameTokens is the prompt's own wording: the longest of the call kinds, with
// room for the complaint of a second attempt.
func (cfg *Config) frameTokens() int {
	const complaint = 64
	empty := *cfg
	empty.Question = ""
	return empty.render(CallDecide, noMemory, "", "00000000", "").tokens(cfg.Count) + complaint
}

// PromptTokens is the own count of a call's prompt with neither memory nor section.
func (cfg *Config) PromptTokens(kind CallKind) int {
	return cfg.render(kind, "", "", "00000000", "").tokens(cfg.Count)
}

// sectionRoom is the tokens left for a section beside a memory of that size.
func (cfg *Config) sectionRoom(memoryTokens int) int {
	m := cfg.Model
	return m.WindowTokens - m.ReplyTokens - m.TemplateTokens - cfg.frameTokens() - cfg.Count(cfg.Question) - memoryTokens
}

// CallKind is what a model is asked for.
type CallKind uint8

const (
	CallDecide   CallKind = iota // all four tags
	CallGate                     // check and next
	CallRewrite                  // the memory, after an open gate
	CallCompress                 // a shorter memory, after a candidate over the budget
)

var kindNames = [...]string{"decide", "gate", "rewrite", "compress"}

func (k CallKind) String() string { return kindNames[k] }

// shape is the form of the reply to a call.
func (m *Model) shape(k CallKind) Shape {
	switch {
	case k == CallDecide:
		return ShapeFull
	case k == CallGate:
		return ShapeGate
	case k == CallRewrite && m.wording().edits:
		return ShapeEdit
	}
	return ShapeRewrite
}

// parse reads a reply by the form that was asked for.
func (m *Model) parse(shape Shape, r Reply) (Verdict, error) {
	if m.JSON {
		return ParseJSON(shape, r.Content, r.Reasoning, r.FinishReason)
	}
	return ParseReply(shape, r.Content, r.Reasoning, r.FinishReason)
}

// Call is a model call to make: an effect.
type Call struct {
	Kind         CallKind
	Model        string
	Adapter      string
	Sampling     memory.Sampling
	Prompt       Prompt
	Schema       json.RawMessage // that the reply must follow; nil for tags
	PromptTokens int             // own count, chat template left out
	Attempt      int             // from 1; the second differs in seed and says what was wrong

	in       ChunkInput
	from, to int      // chunk text [from,to) is the section
	sofar    tally    // of the calls this step has made before
	gate     Verdict  // of the gate call, or the decision whose candidate is too long
	score    *float64 // of the same
	tooLong  string   // the candidate over the budget
	asked    *Call    // the gate call that this rewrite follows
	ahead    bool     // asked before its turn, with the memory before the batch
	frozen   memory.SHA
}

// Reply is what a server answered: an input.
type Reply struct {
	Content          string
	Reasoning        string // the server's own field for the thought
	FinishReason     string
	PromptTokens     int // the server's count; 0 when it gives none
	CompletionTokens int
	LatencyMS        float64
	CostUSD          float64
	Blob             memory.SHA // where the raw reply stands
	Score            *float64   // of its check; see Score. nil where it cannot be told
}

// tally adds up what a step's calls cost.
type tally struct {
	prompt, own, completion int
	latency, cost           float64
}

func (t tally) add(c *Call, r Reply) tally {
	t.prompt += r.PromptTokens
	t.own += c.PromptTokens
	t.completion += r.CompletionTokens
	t.latency += r.LatencyMS
	t.cost += r.CostUSD
	return t
}
