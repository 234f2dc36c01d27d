package gru

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// The wordings stand under prompts/<version>/<call>.txt: the system message, a
// line of four dashes, and the reminder that ends the user message. Every change
// of a byte is a new version, as old decisions were made under the old; the old
// ones stay, for adapters that were trained on them and for exports.
//
// History: t1, j1 — first. t2, j2 — source ids; a rewrite says what changes in the
// place of the whole memory.
const (
	PromptVersion     = "t2" // tags
	PromptVersionJSON = "j2" // JSON, see json.go
)

//go:embed prompts
var promptFiles embed.FS

// wording is one prompt version.
type wording struct {
	version string
	json    bool
	ids     bool // the section's source id is shown
	edits   bool // a rewrite answers with edits
	calls   [len(kindNames)]struct{ system, remind string }
}

// wordings are all versions by name, read once.
var wordings = sync.OnceValue(func() map[string]*wording {
	out := map[string]*wording{}
	for _, w := range []*wording{
		{version: "t1"}, {version: "j1", json: true},
		{version: "t2", ids: true, edits: true}, {version: "j2", json: true, ids: true, edits: true},
	} {
		for k, name := range kindNames {
			b, err := promptFiles.ReadFile(path.Join("prompts", w.version, name+".txt"))
			system, remind, ok := strings.Cut(string(b), "\n----\n")
			if err != nil || !ok {
				panic("gru: prompt " + w.version + "/" + name + " is not in the program") // the build is broken
			}
			w.calls[k].system, w.calls[k].remind = system+"\n", strings.TrimSuffix(remind, "\n")
		}
		out[w.version] = w
	}
	return out
})

// PromptVersions lists the wordings of a form, the newest last.
func PromptVersions(json bool) (out []string) {
	for v, w := range wordings() {
		if w.json == json {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// Prompt is one request: a system and a user message, no history.
type Prompt struct {
	System string
	User   string
}

// noMemory stands for an empty memory.
const noMemory = "none"

// updateShare is how much of the budget a model is told: it counts badly, and
// a candidate over the budget costs a second call.
const updateShare = 0.8

// Version names the wording that the model is asked in.
func (m *Model) Version() string {
	switch {
	case m.Prompt != "":
		return m.Prompt
	case m.JSON:
		return PromptVersionJSON
	}
	return PromptVersion
}

func (m *Model) wording() *wording { return wordings()[m.Version()] }

// checkPrompt refuses a wording that there is not, or of the other form.
func (m *Model) checkPrompt() error {
	if w := m.wording(); w == nil || w.json != m.JSON {
		return fault.At(fault.Invalid, "model "+m.Name, "one of "+strings.Join(PromptVersions(m.JSON), ", "), "prompt version %q is not one of the form that the server is asked for", m.Version())
	}
	return nil
}

// render writes the prompt of a call. Text from outside is neutralised.
//
// The order inside the user message is fixed: what stays the same comes first
// (a server's prefix cache), the reminder last (it survives a cut at the head,
// and small models follow what they read last).
func (cfg *Config) render(kind CallKind, mem, section, id, complaint string) Prompt {
	w := cfg.Model.wording()
	asked := int(updateShare * float64(cfg.BudgetTokens))
	p := Prompt{System: strings.Replace(w.calls[kind].system, "{tokens}", fmt.Sprint(asked), 1)}
	var b strings.Builder
	put := func(tag, text string) { fmt.Fprintf(&b, "<%s>\n%s\n</%s>\n\n", tag, text, tag) }
	put("question", Neutralise(strings.TrimSpace(cfg.Question)))
	switch {
	case strings.TrimSpace(mem) == "":
		mem = noMemory
	case kind == CallRewrite && w.edits:
		mem = numbered(mem)
	}
	put("memory", Neutralise(mem))
	if kind != CallCompress {
		if w.ids && id != "" {
			fmt.Fprintf(&b, "The section's source id is [%s].\n", id)
		}
		put("section", Neutralise(section))
	}
	if complaint != "" {
		fmt.Fprintf(&b, "An earlier answer could not be read: %s.\n", complaint)
	}
	b.WriteString(w.calls[kind].remind)
	p.User = b.String()
	return p
}

// tokens is the own count of a prompt, chat template left out.
func (p Prompt) tokens(count func(string) int) int { return count(p.System) + count(p.User) }

// neutralised reports whether rendering changed the section or the memory.
func neutralised(texts ...string) bool {
	for _, t := range texts {
		if Neutralise(t) != t {
			return true
		}
	}
	return false
}

// eligible reports whether a turn may be evidence at all: not what a harness
// or Mneme itself put in, no second copy, nothing off the active path.
func eligible(t *memory.ChunkTurn) bool {
	switch t.Role {
	case memory.RoleInjected, memory.RoleSystem, memory.RoleSummary:
		return false
	}
	return !t.Derived && !t.Abandoned && t.Trust != memory.TrustInjected
}
