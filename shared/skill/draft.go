package skill

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Fact is one statement of a memory.
type Fact struct {
	Text  string       `json:"text"`
	Node  memory.SHA   `json:"node,omitempty"`  // the L0 node that it rests on; empty where a model's words name none
	Nodes []memory.SHA `json:"nodes,omitempty"` // all of them, where a model's words rest on several; the nearest in words first
	Trust memory.Trust `json:"trust,omitempty"` // of who said it; of a text without a node the lowest that the memory rests on
	Group string       `json:"group,omitempty"` // at L2: the question whose memory says it
}

// Source is a memory that a skill is made of.
type Source struct {
	Project  string
	Question string // its id; "_synthesis" for the project's synthesis
	Wording  string
	Level    memory.Level // L1 or L2
	Node     memory.SHA
	Facts    []Fact // the newest last
}

// Options are what a person chooses.
type Options struct {
	Name string // "": made of project and question
	// IncludeToolOutput takes in facts that tools, pages or harnesses said. Anybody
	// can write those, and a skill is an instruction.
	IncludeToolOutput bool
	Portable          bool // see Doc
}

// LeftOut counts the facts that a draft does not hold, by trust; "long" are those
// over the limit of lines.
type LeftOut map[string]int

const leftLong = "long"

// MadeName is the name of a skill that nobody named: project-question in small
// letters, digits and hyphens, without reserved words.
func MadeName(project, question string) string {
	s := strings.ToLower(project + "-" + strings.TrimPrefix(question, "_"))
	for _, w := range reserved {
		s = strings.ReplaceAll(s, w, "-")
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := b.String()
	if len(name) > MaxName {
		name = name[:MaxName]
	}
	name = strings.Trim(name, "-")
	if !ValidName(name) {
		return "memory"
	}
	return name
}

// lowTrust reports whether a text was said by nobody who is answerable for it.
func lowTrust(t memory.Trust) bool {
	return t != memory.TrustUser && t != memory.TrustAssistant
}

// Draft is the skill of a memory: a function of its arguments alone. A memory of
// which nothing may be said is fault.NotFound.
func Draft(src Source, opt Options) (Doc, LeftOut, error) {
	d := Doc{
		Name: opt.Name, GeneratedFrom: src.Node, Portable: opt.Portable,
		Metadata: map[string]string{keyGeneratedBy: generatedBy, keyFormat: Format, keyFrom: src.Project + "/" + src.Question, keyLevel: string(src.Level)},
	}
	if d.Name == "" {
		d.Name = MadeName(src.Project, src.Question)
	}
	left := LeftOut{}
	var facts []Fact
	for _, f := range src.Facts {
		if f.Text = clean(f.Text); f.Text == "" {
			continue
		}
		if lowTrust(f.Trust) {
			if !opt.IncludeToolOutput {
				left[string(f.Trust)]++
				continue
			}
			d.Metadata[keyToolOutput] = "included"
		}
		facts = append(facts, f)
	}
	// Every fact is a line, a group is four more at most, and the frame ten.
	if most := MaxBodyLines - 10 - 4*groups(facts); len(facts) > most {
		left[leftLong] += len(facts) - most
		facts = facts[len(facts)-most:]
	}
	if len(facts) == 0 {
		hint := "learn more about it first"
		if len(left) > 0 {
			hint = "all that it holds was said by tools; --include-tool-output takes it in"
		}
		return Doc{}, left, fault.At(fault.NotFound, src.Project+"/"+src.Question, hint, "the memory holds nothing that a skill may say")
	}
	d.Description, d.WhenToUse = describe(src, facts)
	d.Body = body(src, facts)
	return d, left, Err(Lint(FileName, d.Name, []byte(Render(d))))
}

func groups(facts []Fact) int {
	seen := map[string]bool{}
	for _, f := range facts {
		seen[f.Group] = true
	}
	return len(seen) + 3 // those by trust
}

// Sizes of what a description quotes, in characters.
const (
	maxWording = 300
	maxQuoted  = 200
	quotes     = 3
)

// describe says what the skill does, when to use it, and what it holds, for example.
// Only what people said stands there: a description is in every prompt, whether the
// skill is used or not.
func describe(src Source, facts []Fact) (description, when string) {
	wording := field(src.Wording)
	if r := []rune(wording); len(r) > maxWording {
		wording = strings.TrimSpace(string(r[:maxWording])) + "…"
	}
	end := ""
	if !strings.HasSuffix(wording, "?") && !strings.HasSuffix(wording, ".") {
		end = "."
	}
	about := "about the question: " + wording + end
	if src.Level == memory.L2 {
		about = "as a whole (" + wording + ")."
	}
	description = fmt.Sprintf("Recalls what is known in project %s %s Use when a task in this project depends on it.", src.Project, about)
	said := 0
	for i := len(facts) - 1; i >= 0 && said < quotes; i-- { // the newest first
		text := field(facts[i].Text)
		if facts[i].Trust != memory.TrustUser || utf8.RuneCountInString(text) > maxQuoted {
			continue
		}
		more := " " + text
		if said == 0 {
			more = " For example:" + more
		}
		if utf8.RuneCountInString(description+more) > MaxDescription {
			break
		}
		description += more
		said++
	}
	when = fmt.Sprintf("When a task in project %s raises the question: %s", src.Project, wording)
	if src.Level == memory.L2 {
		when = fmt.Sprintf("When a task in project %s begins, or depends on what the project has decided", src.Project)
	}
	return strings.TrimSpace(description), strings.TrimSpace(when)
}

// Titles of the groups of an L1 skill: who said it.
var titles = []struct {
	title string
	holds func(memory.Trust) bool
}{
	{"Said by people", func(t memory.Trust) bool { return t == memory.TrustUser }},
	{"Said by assistants", func(t memory.Trust) bool { return t == memory.TrustAssistant }},
	{"Said by tools and pages, unverified", lowTrust},
}

// maxNodes are the nodes that a line shows, as many as the source ids of a memory's
// line. A chunk may hold dozens.
const maxNodes = 4

// body is the text. Its own sentences end in ":" and "?" and its titles are titles,
// which no note is ever kept for (extractpolicy): where somebody takes the markers
// away, nothing of the frame becomes evidence, and the facts carry their nodes.
func body(src Source, facts []Fact) string {
	var b strings.Builder
	b.WriteString(derived.Marker(derived.KindSkill) + "\n\n")
	question := src.Question
	if src.Level == memory.L2 {
		question = "synthesis"
	}
	fmt.Fprintf(&b, "# %s: %s\n\n", src.Project, inline(question))
	b.WriteString("Hold to these, of two that differ to the later one; the number behind each names its evidence:\n")
	line := func(f Fact) {
		b.WriteString("- " + inline(f.Text))
		nodes := f.Nodes
		if len(nodes) == 0 && f.Node != "" {
			nodes = []memory.SHA{f.Node}
		}
		for _, n := range nodes[:min(len(nodes), maxNodes)] {
			b.WriteString(" [" + n.Short() + "]")
		}
		b.WriteByte('\n')
	}
	if src.Level == memory.L2 {
		var order []string
		by := map[string][]Fact{}
		for _, f := range facts {
			if _, ok := by[f.Group]; !ok {
				order = append(order, f.Group)
			}
			by[f.Group] = append(by[f.Group], f)
		}
		for _, g := range order {
			title := g
			if title == "" {
				title = "Synthesis"
			}
			b.WriteString("\n## " + inline(title) + "\n\n")
			for _, f := range by[g] {
				line(f)
			}
		}
	} else {
		for _, t := range titles {
			n := 0
			for _, f := range facts {
				if !t.holds(f.Trust) {
					continue
				}
				if n++; n == 1 {
					b.WriteString("\n## " + t.title + "\n\n")
				}
				line(f)
			}
		}
	}
	b.WriteString("\n" + derived.MarkerClose)
	return b.String()
}
