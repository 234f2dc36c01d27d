package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Pattern is a rule of the user's own, such as an employer's account numbers.
// ParsePatterns makes it.
type Pattern struct {
	Name    string // [a-z][a-z0-9_]{0,39}; marks have the kind user_<name>
	Regexp  string // RE2; its first group, where there is one, is the secret
	Keyword string // optional: the text must hold it, in this letter case
	re      *regexp.Regexp
}

// MaxPatternFile bounds a pattern file in bytes: a hundred patterns of the
// longest expressions, and comments.
const MaxPatternFile = 1 << 20

const (
	maxPatterns     = 100  // in one file: each reads the whole text
	maxPatternBytes = 1000 // of one expression
)

var patternName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// ParsePatterns reads a file of user-chosen patterns:
//
//	patterns:
//	  - name: ticket
//	    regexp: 'ACME-[0-9]{6}'
//	    keyword: ACME-
//
// It is strict: an unknown or repeated field, a name twice, an expression that
// RE2 refuses or that matches nothing at all are errors of kind Invalid with
// the file's name and line. An empty file is no pattern.
func ParsePatterns(name string, data []byte) (out []Pattern, err error) {
	bad := func(line int, format string, args ...any) error {
		return fault.At(fault.Invalid, fmt.Sprintf("%s:%d", name, max(line, 1)), "see docs/FORMATS.md, redact.yaml", format, args...)
	}
	if len(data) > MaxPatternFile {
		return nil, bad(1, "the file has %d bytes, at most %d are read", len(data), MaxPatternFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, bad(yamlLine(err), "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode || len(root.Content) != 2 || root.Content[0].Value != "patterns" {
		return nil, bad(root.Line, "want the one field patterns")
	}
	list := root.Content[1]
	if list.Kind != yaml.SequenceNode {
		return nil, bad(list.Line, "patterns is no list")
	}
	if len(list.Content) > maxPatterns {
		return nil, bad(list.Line, "%d patterns, at most %d are allowed", len(list.Content), maxPatterns)
	}
	names := map[string]bool{}
	for _, n := range list.Content {
		p, line, msg := parsePattern(n)
		if msg == "" && names[p.Name] {
			line, msg = n.Line, fmt.Sprintf("name %q stands twice", p.Name)
		}
		if msg != "" {
			return nil, bad(line, "%s", msg)
		}
		names[p.Name] = true
		out = append(out, p)
	}
	return out, nil
}

// parsePattern reads one entry; msg says what is wrong in line.
func parsePattern(n *yaml.Node) (p Pattern, line int, msg string) {
	if n.Kind != yaml.MappingNode {
		return p, n.Line, "a pattern is a mapping of name, regexp and keyword"
	}
	fields := map[string]*string{"name": &p.Name, "regexp": &p.Regexp, "keyword": &p.Keyword}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		to := fields[k.Value]
		switch {
		case to == nil:
			return p, k.Line, fmt.Sprintf("field %q is unknown or stands twice; known are name, regexp, keyword", k.Value)
		case v.Kind != yaml.ScalarNode || v.Tag != "!!str" || v.Value == "":
			return p, v.Line, fmt.Sprintf("%s is no text", k.Value)
		}
		*to = v.Value
		fields[k.Value] = nil
	}
	switch {
	case !patternName.MatchString(p.Name):
		return p, n.Line, fmt.Sprintf("name %q: want small letters, digits and _, at most 40", p.Name)
	case p.Regexp == "":
		return p, n.Line, "regexp is missing"
	case len(p.Regexp) > maxPatternBytes:
		return p, n.Line, fmt.Sprintf("regexp has %d bytes, at most %d are allowed", len(p.Regexp), maxPatternBytes)
	}
	re, err := regexp.Compile(p.Regexp)
	if err != nil {
		return p, n.Line, "regexp: " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	if re.MatchString("") {
		return p, n.Line, "regexp matches the empty text"
	}
	p.re = re
	return p, 0, ""
}

// yamlLine is the line that an error of the YAML parser names, or 1.
func yamlLine(err error) int {
	line := 1
	if _, rest, ok := strings.Cut(err.Error(), "line "); ok {
		if _, e := fmt.Sscanf(rest, "%d", &line); e != nil {
			return 1
		}
	}
	return line
}

// userFinds matches the user's patterns, the first in the file before the
// others.
func userFinds(text string, patterns []Pattern) []found {
	var out []found
	for _, p := range patterns {
		if p.re == nil || p.Keyword != "" && !strings.Contains(text, p.Keyword) {
			continue
		}
		var finds []found
		for _, m := range p.re.FindAllStringSubmatchIndex(text, -1) {
			s, e := m[0], m[1]
			if len(m) > 3 && m[2] >= 0 {
				s, e = m[2], m[3]
			}
			if s < e && !touchesMark(text, s, e) {
				finds = append(finds, found{start: s, end: e, kind: "user_" + p.Name})
			}
		}
		out = merge(out, finds)
	}
	return out
}

// touchesMark says that [s,e) overlaps a mark.
func touchesMark(text string, s, e int) bool {
	end := min(len(text), e+len(markOpen))
	for at := max(0, s-maxMark); at < end; {
		k := strings.Index(text[at:end], markOpen)
		if k < 0 {
			return false
		}
		at += k
		n := markLen(text[at:])
		if n > 0 && at < e && at+n > s {
			return true
		}
		at += max(n, 1)
	}
	return false
}

// maxMark is the length of the longest mark: a user's kind of 45 bytes.
const maxMark = len(markOpen) + 64

// versionOf is RulesVersion, with a hash of the patterns when there are any.
func versionOf(patterns []Pattern) string {
	if len(patterns) == 0 {
		return RulesVersion
	}
	h := sha256.New()
	for _, p := range patterns {
		fmt.Fprintf(h, "%q %q %q\n", p.Name, p.Regexp, p.Keyword)
	}
	return RulesVersion + "+" + hex.EncodeToString(h.Sum(nil)[:4])
}
