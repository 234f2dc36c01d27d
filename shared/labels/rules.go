package labels

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// Rules label chunks by their words:
//
//	rules:
//	  - id: a-limit-with-its-unit
//	    question: limits              # its id, or a stream
//	    all:                          # every one of these
//	      - words: rate limit         # these words in this order, in any case
//	    any:                          # and one of these
//	      - regex: '\d+ (requests|calls) (a|per) (second|minute)'
//	    evidence: yes
//	    confidence: 0.9               # that it is evidence, [0,1]; may be left out
//
// The first rule of a question that matches a piece labels it; a piece that none
// matches has no label. Expressions are RE2: they take time linear in the text.
type Rules struct {
	name string // of their file
	list []Rule
}

// Rule is one of them.
type Rule struct {
	ID         string
	Question   string // id of a question, or a stream
	Evidence   bool
	Confidence *float64

	line     int // of the file
	all, any []*regexp.Regexp
}

// Bounds of a rules file, larger than any that a person writes.
const (
	MaxRulesBytes = 256 << 10
	maxRules      = 1000
	maxConditions = 100
	maxPattern    = 4 << 10 // bytes
)

// ParseRules reads a rules file; name stands in errors, with the line.
func ParseRules(name string, data []byte) (Rules, error) {
	f := strictyaml.File{Name: name, Noun: "rules file", MaxBytes: MaxRulesBytes}
	root, err := f.Root(data)
	if err != nil {
		return Rules{}, err
	}
	out := Rules{name: name}
	seen := map[string]bool{}
	err = f.Mapping(root, "a rules file", strictyaml.Fields{
		"rules": func(n *strictyaml.Node) error {
			return f.Sequence(n, "rules", maxRules, func(n *strictyaml.Node) error {
				r, err := parseRule(f, n)
				if err != nil {
					return err
				}
				if seen[r.ID] {
					return f.Fault(n, "give each rule an id of its own", "a second rule %q", r.ID)
				}
				seen[r.ID] = true
				out.list = append(out.list, r)
				return nil
			})
		},
	})
	if err != nil {
		return Rules{}, err
	}
	if len(out.list) == 0 {
		return Rules{}, f.Fault(root, "rules: [{id, question, any, evidence}]", "no rules")
	}
	return out, nil
}

func parseRule(f strictyaml.File, n *strictyaml.Node) (r Rule, err error) {
	said := false
	r.line = n.Line
	text := func(what string, into *string) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) { *into, err = f.Text(n, what); return err }
	}
	list := func(what string, into *[]*regexp.Regexp) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) error {
			return f.Sequence(n, what, maxConditions, func(n *strictyaml.Node) error {
				re, err := parseCondition(f, n)
				if err == nil {
					*into = append(*into, re)
				}
				return err
			})
		}
	}
	err = f.Mapping(n, "a rule", strictyaml.Fields{
		"id":       text("id", &r.ID),
		"question": text("question", &r.Question),
		"all":      list("all", &r.all),
		"any":      list("any", &r.any),
		"evidence": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "evidence")
			if err != nil {
				return err
			}
			said = true
			if bad := truth("evidence", v, &r.Evidence); bad != nil {
				return f.Fault(n, "yes or no", "evidence: %s", bad.Problem)
			}
			return nil
		},
		"confidence": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "confidence")
			if err != nil {
				return err
			}
			c, err := strconv.ParseFloat(v, 64)
			if err != nil || !(c >= 0 && c <= 1) {
				return f.Fault(n, "that it is evidence: a number from 0 to 1", "confidence: %q", clip(v))
			}
			r.Confidence = &c
			return nil
		},
	})
	switch {
	case err != nil:
		return r, err
	case r.ID == "" || r.Question == "" || !said:
		return r, f.Fault(n, "", "a rule has id, question and evidence")
	case !ruleID.MatchString(r.ID):
		return r, f.Fault(n, "letters, digits, . _ -", "%q is not an id of a rule", clip(r.ID))
	case len(r.all)+len(r.any) == 0:
		return r, f.Fault(n, "say when it holds: any, all", "rule %q has no condition", r.ID)
	}
	return r, nil
}

var ruleID = lazy.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// parseCondition reads {words: …}, {regex: …} or words alone.
func parseCondition(f strictyaml.File, n *strictyaml.Node) (re *regexp.Regexp, err error) {
	if n.Kind == strictyaml.Scalar {
		return words(f, n)
	}
	err = f.Mapping(n, "a condition", strictyaml.Fields{
		"words": func(n *strictyaml.Node) (err error) { re, err = words(f, n); return err },
		"regex": func(n *strictyaml.Node) error {
			v, err := f.String(n, "regex")
			if err != nil {
				return err
			}
			if len(v) > maxPattern {
				return f.Fault(n, "", "an expression of %d bytes, at most %d", len(v), maxPattern)
			}
			if re, err = regexp.Compile(v); err != nil {
				return f.Fault(n, "expressions are RE2 (https://github.com/google/re2/wiki/Syntax)", "%v", err)
			}
			return nil
		},
	})
	if err == nil && (re == nil || len(n.Content) != 2) {
		err = f.Fault(n, "", "a condition is either words or regex")
	}
	return re, err
}

func words(f strictyaml.File, n *strictyaml.Node) (*regexp.Regexp, error) {
	v, err := f.Text(n, "words")
	if err != nil {
		return nil, err
	}
	if len(v) > maxPattern {
		return nil, f.Fault(n, "", "words of %d bytes, at most %d", len(v), maxPattern)
	}
	list := strings.Fields(v)
	for i := range list {
		list[i] = regexp.QuoteMeta(list[i])
	}
	re, err := regexp.Compile(`(?i)(?:^|[^\pL\pN_])` + strings.Join(list, `\s+`) + `(?:$|[^\pL\pN_])`)
	if err != nil {
		return nil, f.Fault(n, "", "%v", err)
	}
	return re, nil
}

// N is how many rules there are.
func (r Rules) N() int { return len(r.list) }

// Questions are what the rules are about, each once: ids of questions, and streams.
func (r Rules) Questions() []string {
	var out []string
	for _, x := range r.list {
		if !slices.Contains(out, x.Question) {
			out = append(out, x.Question)
		}
	}
	return out
}

// About reports whether any rule is about the stream's question.
func (r Rules) About(stream string) bool {
	return slices.ContainsFunc(r.list, func(x Rule) bool { return x.about(stream) })
}

// about reports whether the rule is about the stream's question.
func (r *Rule) about(stream string) bool {
	return r.Question == memory.QueryID(stream) || Wording(r.Question) == Wording(stream)
}

// Match is the rule that labels text as an answer to the stream's question.
func (r Rules) Match(stream, text string) (Rule, bool) {
	for _, x := range r.list {
		if x.about(stream) && x.holds(text) {
			return x, true
		}
	}
	return Rule{}, false
}

func (r *Rule) holds(text string) bool {
	for _, re := range r.all {
		if !re.MatchString(text) {
			return false
		}
	}
	return len(r.any) == 0 || slices.ContainsFunc(r.any, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}

// Fault says which rule is about a question that a project does not have.
func (r Rules) Fault(question string) error {
	for _, x := range r.list {
		if x.Question == question {
			return fault.At(fault.Invalid, fmt.Sprintf("%s:%d", r.name, x.line), "mem question list shows them", "rule %s: the project has no question %q", x.ID, clip(question))
		}
	}
	return nil
}
