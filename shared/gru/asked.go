package gru

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Asked is what the gate of one recorded step was asked, or would be asked: all that
// its prompt is made of, taken from the log. It is for exports; the loop itself
// renders by the same code.
type Asked struct {
	Version      string // of the wording, see PromptVersions and TagVersion
	Kind         CallKind
	Question     string
	Memory       string // as it was before the step; "" for none
	Chunk        *memory.Chunk
	From, To     int // chunk text [From,To), as in the gate record
	BudgetTokens int // of the memory
	// Mask changes question, memory and section before they are put together; nil
	// changes nothing. Each is a text of its own: no secret stands across two of them.
	Mask func(string) string
}

// Prompt renders it as the loop does for a first attempt. A version that the program
// does not know is fault.Invalid.
func (a *Asked) Prompt() (Prompt, error) {
	w := wordings()[a.Version]
	if w == nil {
		return Prompt{}, fault.New(fault.Invalid, "prompt version %q is not known", a.Version)
	}
	mask := a.Mask
	if mask == nil {
		mask = func(s string) string { return s }
	}
	cfg := Config{Question: mask(a.Question), BudgetTokens: a.BudgetTokens, Model: &Model{Prompt: a.Version, JSON: w.json}}
	return cfg.render(a.Kind, mask(a.Memory), mask(a.Section()), SourceID(a.Chunk.SHA256), ""), nil
}

// Section is what the prompt shows of the chunk text: "" where nothing of it may be
// evidence, so that a model is not asked at all.
func (a *Asked) Section() string {
	from, to := max(a.From, 0), min(a.To, len(a.Chunk.Text))
	if from >= to {
		return ""
	}
	s := shown(a.Chunk, from, to)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return s
}

// TagVersion is the wording in tags that says the same as version: itself, its twin
// where it asks for JSON, the newest where nobody was asked (version "-" of a policy
// without a model). An adapter is trained on tags, and is asked in tags. false where the
// program does not know the version.
func TagVersion(version string) (string, bool) {
	switch w := wordings()[version]; {
	case version == "-" || version == "":
		return PromptVersion, true
	case w == nil:
		return "", false
	case !w.json:
		return version, true
	}
	twin := "t" + version[1:]
	return twin, wordings()[twin] != nil
}

// Opened reports whether a step's update gate was open, whatever became of the memory:
// a candidate over the budget, say, is an open gate without an update.
func Opened(g *memory.Gate) bool {
	switch g.ReasonCode {
	case ReasonBudget, ReasonUngrounded, "no_citation":
		return true
	}
	return g.Update
}
