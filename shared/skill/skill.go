// Package skill renders what a memory holds as a skill: the SKILL.md that agents
// load (Agent Skills specification, agentskills.io), and reads and checks one.
//
//	---
//	name: shop-decisions
//	description: 'Recalls what is known in project shop about the question: What was decided, and why? Use when …'
//	when_to_use: 'When a task in project shop raises the question: What was decided, and why?'
//	generated_from: 9c41d0e5…64 hex digits
//	metadata:
//	  generated_by: mneme
//	  mneme_format: s1
//	  mneme_from: shop/decisions
//	  mneme_level: L1
//	---
//
//	<!-- mneme:derived kind=skill -->
//
//	# shop: decisions
//
//	- Retries stop after 5 attempts. [1f0a77c2]
//
//	<!-- /mneme:derived -->
//
// Invariants: a rendered skill passes Lint; what a transcript says can neither
// leave its line nor its front matter field, name a tag, run a command or take in a
// file when the skill is loaded (escape.go); and Parse of Render gives the same Doc.
//
// Draft, Render, Parse and Lint are pure; Reader alone reads the log, and nothing here
// reads a disk or writes. Who promotes a skill, where and when, is the callers' matter.
package skill

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// Format is the version of what Draft writes.
//
// History: s1 — first.
const Format = "s1"

// FileName is the name of the file that loaders look for.
const FileName = "SKILL.md"

// DraftsDir is the folder of drafts beside the promoted skills. It is no name of
// a skill, so that no loader that reads <name>/SKILL.md finds one there.
const DraftsDir = "_drafts"

// Limits, in characters (runes) unless said otherwise: those of the Agent Skills
// specification where it has one.
const (
	MaxName          = 64
	MaxDescription   = 1024
	MaxCompatibility = 500
	// MaxWhenToUse with the description stays within the 1,536 characters of both
	// that Claude Code lists.
	MaxWhenToUse = 512
	// MaxBodyLines: "keep your main SKILL.md under 500 lines".
	MaxBodyLines = 500
	// MaxBytes bounds a file that is read; 500 lines of 128 bytes.
	MaxBytes = 64 << 10
	maxList  = 100 // entries of a list or mapping
)

// Keys under metadata.
const (
	keyGeneratedBy = "generated_by"
	keyFormat      = "mneme_format"
	keyFrom        = "mneme_from"
	keyLevel       = "mneme_level"
	keyToolOutput  = "mneme_tool_output"
)

// generatedBy is the value of generated_by: with it transcript knows the file again
// (transcript.DerivedFrontMatter).
const generatedBy = "mneme"

// Doc is a skill.
type Doc struct {
	Name          string
	Description   string
	WhenToUse     string
	GeneratedFrom memory.SHA // node of the memory; empty where no memory made it
	License       string
	Compatibility string
	AllowedTools  []string
	Metadata      map[string]string // without what Portable moved there
	// Portable keeps when_to_use and generated_from under metadata, for loaders that
	// refuse fields which the specification does not name.
	Portable bool
	Body     string // without empty lines at its ends
}

// From is the project and the question that the skill says it was made of; false
// where it says nothing readable.
func (d *Doc) From() (project, question string, ok bool) {
	project, question, ok = strings.Cut(d.Metadata[keyFrom], "/")
	return project, question, ok && memory.ValidName(project) && validQuestion(question)
}

// IncludesToolOutput reports whether facts of low trust were drafted in.
func (d *Doc) IncludesToolOutput() bool { return d.Metadata[keyToolOutput] != "" }

func validQuestion(q string) bool {
	return q != "" && len(q) <= 200 && !strings.ContainsFunc(q, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// Render is the file.
func Render(d Doc) string {
	var b strings.Builder
	b.WriteString("---\n")
	field := func(indent, name, value string) {
		if value != "" {
			b.WriteString(indent + name + ": " + scalar(value) + "\n")
		}
	}
	field("", "name", d.Name)
	field("", "description", d.Description)
	if !d.Portable {
		field("", "when_to_use", d.WhenToUse)
	}
	field("", "license", d.License)
	field("", "compatibility", d.Compatibility)
	if len(d.AllowedTools) > 0 {
		b.WriteString("allowed-tools:\n")
		for _, t := range d.AllowedTools {
			b.WriteString("  - " + scalar(t) + "\n")
		}
	}
	meta := map[string]string{}
	for k, v := range d.Metadata {
		meta[k] = v
	}
	if d.Portable {
		meta["when_to_use"], meta["generated_from"] = d.WhenToUse, string(d.GeneratedFrom)
	} else {
		field("", "generated_from", string(d.GeneratedFrom))
	}
	var keys []string
	for k, v := range meta {
		if v != "" {
			keys = append(keys, k)
		}
	}
	if len(keys) > 0 {
		slices.Sort(keys)
		b.WriteString("metadata:\n")
		for _, k := range keys {
			field("  ", scalar(k), meta[k])
		}
	}
	b.WriteString("---\n")
	if d.Body != "" {
		b.WriteString("\n" + d.Body + "\n")
	}
	return b.String()
}

// scalar is a text as a YAML scalar of one line: plain where no reader can take it
// for anything else, else between single quotes, in which nothing but the quote
// itself has a meaning.
func scalar(s string) string {
	if plain(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// yamlWords are what YAML 1.1 readers take for something else than text.
var yamlWords = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true}

// plain reports whether s is a word of small letters, digits, - and _ that is a text
// in YAML 1.1 and 1.2: it holds a letter that stands in no number.
func plain(s string) bool {
	letter := false
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z':
			// Those of 1e5, 0b1, 0o7 and 0x1f are not enough; x makes what follows hex.
			letter = letter || c != 'e' && c != 'b' && c != 'o' && c != 'x'
		case c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return letter && s[0] != '-' && !strings.HasPrefix(s, "0x") && !yamlWords[s]
}

// Parse reads a skill. file names it in errors, which are fault.Invalid with a line
// and a cure. Fields that are unknown are passed over: Lint speaks of them.
func Parse(file string, data []byte) (Doc, error) {
	d, _, err := parse(file, data)
	return d, err
}

// other is a field that Doc does not hold.
type other struct {
	name string
	line int
}

// parsed is what Lint needs beside the Doc: where fields stand, and others.
type parsed struct {
	lines  map[string]int
	others []other
	body   int // line on which the body begins
}

func parse(file string, data []byte) (d Doc, p parsed, err error) {
	if len(data) > MaxBytes {
		return d, p, fault.At(fault.Invalid, file, "move details into files that the skill refers to", "the skill has %d bytes, at most %d are read", len(data), MaxBytes)
	}
	if !utf8.Valid(data) {
		return d, p, fault.At(fault.Invalid, file, "save it as UTF-8", "the skill is not UTF-8")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	front, body, ok := parts(text)
	if !ok {
		return d, p, fault.At(fault.Invalid, file+":1", "begin the file with ---, name and description, and a second ---", "the skill has no front matter")
	}
	p.lines, p.body = map[string]int{}, strings.Count(front, "\n")+3
	f := strictyaml.File{Name: file, Noun: "front matter", MaxBytes: MaxBytes}
	root, err := f.Root([]byte("\n" + front)) // the line of --- counts
	if err != nil {
		return d, p, err
	}
	text1 := func(into *string, what string) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) {
			*into, err = f.Text(n, what)
			return err
		}
	}
	var generated string
	known := strictyaml.Fields{
		"name": text1(&d.Name, "name"), "description": text1(&d.Description, "description"), "when_to_use": text1(&d.WhenToUse, "when_to_use"),
		"license": text1(&d.License, "license"), "compatibility": text1(&d.Compatibility, "compatibility"),
		"generated_from": text1(&generated, "generated_from"),
		"allowed-tools": func(n *strictyaml.Node) error {
			if n.Kind == strictyaml.Scalar {
				s, err := f.Text(n, "allowed-tools")
				d.AllowedTools = []string{s}
				return err
			}
			return f.Sequence(n, "allowed-tools", maxList, func(n *strictyaml.Node) error {
				s, err := f.Text(n, "a tool")
				d.AllowedTools = append(d.AllowedTools, s)
				return err
			})
		},
		"metadata": func(n *strictyaml.Node) error {
			return f.Each(n, "metadata", "a mapping of texts", func(k, v *strictyaml.Node) error {
				s, err := f.Text(v, "metadata."+k.Value)
				if d.Metadata == nil {
					d.Metadata = map[string]string{}
				}
				d.Metadata[k.Value] = s
				return err
			})
		},
	}
	err = f.Each(root, "the front matter", "a mapping of fields", func(k, v *strictyaml.Node) error {
		p.lines[k.Value] = k.Line
		if read, ok := known[k.Value]; ok {
			return read(v)
		}
		p.others = append(p.others, other{k.Value, k.Line})
		return nil
	})
	if err != nil {
		return Doc{}, p, err
	}
	if d.GeneratedFrom, err = nodeOf(file, p.lines["generated_from"], generated); err != nil {
		return Doc{}, p, err
	}
	if d.WhenToUse == "" && generated == "" {
		if err := d.unpack(file, p.lines["metadata"]); err != nil {
			return Doc{}, p, err
		}
	}
	d.Body = strings.Trim(body, "\n")
	if strings.TrimSpace(d.Body) == "" {
		d.Body = ""
	}
	return d, p, nil
}

// unpack takes what Portable keeps under metadata out of there.
func (d *Doc) unpack(file string, line int) (err error) {
	use, from := d.Metadata["when_to_use"], d.Metadata["generated_from"]
	if use == "" && from == "" {
		return nil
	}
	if d.GeneratedFrom, err = nodeOf(file, line, from); err != nil {
		return err
	}
	d.Portable, d.WhenToUse = true, use
	delete(d.Metadata, "when_to_use")
	delete(d.Metadata, "generated_from")
	if len(d.Metadata) == 0 {
		d.Metadata = nil
	}
	return nil
}

func nodeOf(file string, line int, s string) (memory.SHA, error) {
	if sha := memory.SHA(s); s == "" || sha.Valid() {
		return sha, nil
	}
	return "", fault.At(fault.Invalid, at(file, line), "it is the sha256 of a memory, 64 hex digits; leave it out of a skill that no memory made", "generated_from is no sha256")
}

// parts cuts the text at its front matter.
func parts(text string) (front, body string, ok bool) {
	first, rest, found := strings.Cut(text, "\n")
	if !found || strings.TrimRight(first, " \t") != "---" {
		return "", "", false
	}
	for i := 0; i < len(rest); {
		line, next := rest[i:], len(rest)
		if k := strings.IndexByte(line, '\n'); k >= 0 {
			line, next = line[:k], i+k+1
		}
		if strings.TrimRight(line, " \t") == "---" {
			return rest[:i], rest[next:], true
		}
		i = next
	}
	return "", "", false
}
