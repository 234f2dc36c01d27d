package skill

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
)

// Finding is one thing that Lint has to say.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // 0: the file as a whole
	Field   string `json:"field"`          // front matter field, "body" or "file"
	Msg     string `json:"message"`        // with the limit
	Cure    string `json:"cure"`
	Warning bool   `json:"warning,omitempty"` // loaders differ about it; no reason to refuse the skill
}

// String is "file:line: field: message (cure)".
func (f Finding) String() string {
	kind := ""
	if f.Warning {
		kind = "warning: "
	}
	return fmt.Sprintf("%s: %s%s: %s (%s)", at(f.File, f.Line), kind, f.Field, f.Msg, f.Cure)
}

// Err is the first finding that refuses the skill, as fault.Invalid; nil where there
// is none.
func Err(fs []Finding) error {
	for _, f := range fs {
		if !f.Warning {
			return fault.At(fault.Invalid, at(f.File, f.Line), f.Cure, "%s: %s", f.Field, f.Msg)
		}
	}
	return nil
}

func at(file string, line int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

var (
	nameRule = lazy.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	xmlTag   = lazy.MustCompile(`<[/!?]?[A-Za-z][^>]*>|<!--`)
	// person is a description that does not speak in the third person. It is put
	// into a system prompt, where "I" and "you" are somebody else.
	person = lazy.MustCompile(`(?i)^(i|i'm|i'll|we|you|your|my|our)\b`)
	// command is a command that Claude Code runs when it loads the skill, and puts
	// its output in the place of.
	command = lazy.MustCompile("(^|[^`])!`[^`]")
)

// reserved words may not stand in a name (Anthropic's rules for skills).
var reserved = []string{"anthropic", "claude"}

// Fields of the specification, and those that one loader reads beside them.
var (
	specified = map[string]bool{"name": true, "description": true, "license": true, "compatibility": true, "metadata": true, "allowed-tools": true}
	// claudeCode: when_to_use is among them.
	claudeCode = map[string]bool{
		"when_to_use": true, "argument-hint": true, "arguments": true, "disable-model-invocation": true, "user-invocable": true,
		"model": true, "effort": true, "context": true, "agent": true, "hooks": true, "paths": true, "shell": true,
	}
)

// ValidName reports whether s may be a skill's name.
func ValidName(s string) bool {
	if len(s) > MaxName || !nameRule.MatchString(s) {
		return false
	}
	for _, w := range reserved {
		if strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// Lint checks a SKILL.md: file names it in findings, dir is the name of the folder
// that it stands in, "" where it stands in none yet.
func Lint(file, dir string, data []byte) []Finding {
	d, p, err := parse(file, data)
	if err != nil {
		f := Finding{File: file, Field: "file", Msg: err.Error(), Cure: fault.HintOf(err)}
		if f.Cure == "" {
			f.Cure = "see docs/SKILLS.md for a file that is right"
		}
		f.Msg = strings.TrimPrefix(f.Msg, file+": ")
		return []Finding{f}
	}
	l := linter{file: file, p: &p}
	l.name(d.Name, dir)
	l.description(d.Description)
	if n := utf8.RuneCountInString(d.WhenToUse); n > MaxWhenToUse {
		l.say("when_to_use", "shorten it: loaders cut what is over it", "%d characters, at most %d are allowed", n, MaxWhenToUse)
	}
	if xmlTag.MatchString(d.WhenToUse) {
		l.say("when_to_use", "write it without < and >", "holds an XML tag")
	}
	if n := utf8.RuneCountInString(d.Compatibility); n > MaxCompatibility {
		l.say("compatibility", "shorten it", "%d characters, at most %d are allowed", n, MaxCompatibility)
	}
	for _, o := range p.others {
		switch {
		case claudeCode[o.name]:
			l.add(Finding{Line: o.line, Field: o.name, Msg: "only Claude Code reads this field", Cure: "leave it out where other loaders are to take the skill", Warning: true})
		default:
			l.add(Finding{Line: o.line, Field: o.name, Msg: "no loader knows this field", Cure: "put it under metadata; the fields are name, description, license, compatibility, metadata, allowed-tools, when_to_use and generated_from"})
		}
	}
	for _, name := range []string{"when_to_use", "generated_from"} {
		if line, ok := p.lines[name]; ok && !specified[name] {
			l.add(Finding{Line: line, Field: name, Msg: "is beyond the Agent Skills specification: Claude Code reads when_to_use and passes over generated_from, strict validators refuse both", Cure: "draft with --portable to keep them under metadata", Warning: true})
		}
	}
	l.body(d.Body)
	return l.out
}

type linter struct {
	file string
	p    *parsed
	out  []Finding
}

func (l *linter) add(f Finding) {
	f.File = l.file
	l.out = append(l.out, f)
}

func (l *linter) say(field, cure, format string, args ...any) {
	l.add(Finding{Line: l.p.lines[field], Field: field, Msg: fmt.Sprintf(format, args...), Cure: cure})
}

func (l *linter) name(name, dir string) {
	if name == "" {
		l.say("name", "give it the name of its folder", "is missing; 1 to %d characters are needed", MaxName)
		return
	}
	if n := utf8.RuneCountInString(name); n > MaxName {
		l.say("name", "shorten it", "%d characters, at most %d are allowed", n, MaxName)
	}
	if !nameRule.MatchString(name) {
		l.say("name", "write it like shop-decisions", "%q is not of small letters, digits and single hyphens between them", clip(name))
	}
	for _, w := range reserved {
		if strings.Contains(strings.ToLower(name), w) {
			l.say("name", "choose a name without it", "holds the reserved word %q", w)
		}
	}
	if dir != "" && dir != name {
		l.say("name", "give the folder and the skill one name", "the folder is %q and the name is %q", clip(dir), clip(name))
	}
}

func (l *linter) description(s string) {
	n := utf8.RuneCountInString(s)
	switch {
	case n == 0:
		l.say("description", "say what the skill does and when to use it", "is missing; 1 to %d characters are needed", MaxDescription)
	case n > MaxDescription:
		l.say("description", "shorten it", "%d characters, at most %d are allowed", n, MaxDescription)
	}
	if xmlTag.MatchString(s) {
		l.say("description", "write it without < and >", "holds an XML tag")
	}
	if w := person.FindString(s); w != "" {
		l.say("description", "begin with what the skill does: \"Recalls …\", not \"I can recall …\"", "speaks in the first or second person (%q)", w)
	}
}

func (l *linter) body(body string) {
	if body == "" {
		l.add(Finding{Line: l.p.body, Field: "body", Msg: "is empty", Cure: "say what an agent is to do", Warning: true})
		return
	}
	n := strings.Count(body, "\n") + 1
	if n >= MaxBodyLines {
		l.add(Finding{Line: l.p.body, Field: "body", Msg: fmt.Sprintf("%d lines, under %d are allowed", n, MaxBodyLines), Cure: "move details into files beside it and refer to them"})
	}
	if command.MatchString(body) || strings.Contains(body, "```!") {
		l.add(Finding{Line: l.p.body, Field: "body", Msg: "holds a command that Claude Code runs when it loads the skill", Cure: "read it before you promote the skill", Warning: true})
	}
}

// clip shortens what stands in a message.
func clip(s string) string {
	if utf8.RuneCountInString(s) > 80 {
		return string([]rune(s)[:80]) + "…"
	}
	return s
}
