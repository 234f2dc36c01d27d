package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/strictyaml"
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

var patternName = lazy.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// ParsePatterns reads a file of user-chosen patterns:
//
//	patterns:
//	  - name: ticket
//	    regexp: 'ACME-[0-9]{6}'
//	    keyword: ACME-
//
// It is strict: what shared/strictyaml refuses, a name twice, an expression that
// RE2 refuses or that matches nothing at all are errors of kind Invalid with
// the file's name and line. An empty file is no pattern.
func ParsePatterns(name string, data []byte) (out []Pattern, err error) {
	f := strictyaml.File{Name: name, Noun: "file", MaxBytes: MaxPatternFile}
	root, err := f.Document(data)
	if err != nil || root == nil || root.ShortTag() == "!!null" {
		return nil, err
	}
	found := false
	err = f.Mapping(root, "a pattern file", strictyaml.Fields{"patterns": func(n *strictyaml.Node) error {
		found = true
		if err := f.Plain(n, "patterns", strictyaml.List, "a list"); err != nil {
			return err // with nothing after it, a list was to come
		}
		names := map[string]bool{}
		return f.Sequence(n, "patterns", maxPatterns, func(n *strictyaml.Node) error {
			p, err := parsePattern(f, n)
			if err == nil && names[p.Name] {
				err = f.Fault(n, "give each pattern its own name", "name %q stands twice", p.Name)
			}
			names[p.Name] = true
			out = append(out, p)
			return err
		})
	}})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, f.Fault(root, patternHint, "the file has no patterns")
	}
	return out, nil
}

// patternHint is the way to the page that describes the file.
const patternHint = "see docs/FORMATS.md, redact.yaml"

func parsePattern(f strictyaml.File, n *strictyaml.Node) (p Pattern, err error) {
	name, expr := n, n
	text := func(field string, to *string, at **strictyaml.Node) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) {
			if at != nil {
				*at = n
			}
			*to, err = f.String(n, field)
			return err
		}
	}
	err = f.Mapping(n, "a pattern", strictyaml.Fields{
		"name": text("name", &p.Name, &name), "regexp": text("regexp", &p.Regexp, &expr), "keyword": text("keyword", &p.Keyword, nil),
	})
	switch {
	case err != nil:
		return p, err
	case !patternName.MatchString(p.Name):
		return p, f.Fault(name, patternHint, "name %q: want small letters, digits and _, at most 40", p.Name)
	case p.Regexp == "":
		return p, f.Fault(n, patternHint, "regexp is missing")
	case len(p.Regexp) > maxPatternBytes:
		return p, f.Fault(expr, patternHint, "regexp has %d bytes, at most %d are allowed", len(p.Regexp), maxPatternBytes)
	}
	if p.re, err = regexp.Compile(p.Regexp); err != nil {
		return p, f.Fault(expr, patternHint, "regexp: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if p.re.MatchString("") {
		return p, f.Fault(expr, patternHint, "regexp matches the empty text")
	}
	return p, nil
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
