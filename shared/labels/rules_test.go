package labels_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
)

const someRules = `rules:
  - id: a-number-of-requests
    question: limits
    all: [rate limit]
    any:
      - regex: '\d+ (requests|calls)'
      - words: "unlimited"
    evidence: yes
    confidence: 0.9
  - id: greeting
    question: limits@01234567
    any: [{regex: '(?i)^(hello|hi)\b'}]
    evidence: no
`

func TestRules(t *testing.T) {
	t.Parallel()
	r, err := labels.ParseRules("r.yaml", []byte(someRules))
	if err != nil || r.N() != 2 || len(r.Questions()) != 2 {
		t.Fatal(r, err)
	}
	for text, want := range map[string]string{
		"The Rate\n  LIMIT is 5 requests a second.": "a-number-of-requests",
		"(rate limit): unlimited":                   "a-number-of-requests",
		"The rate limit is high.":                   "",
		"the rate limits: 5 requests":               "", // other words
		"5 requests":                                "",
		"hi there":                                  "greeting",
		"hi, the rate limit is 5 requests":          "a-number-of-requests", // the first one
		"this is high":                              "",
		"":                                          "",
	} {
		got, ok := r.Match("limits@01234567.3", text)
		if got.ID != want || ok != (want != "") || ok && got.Evidence != (want != "greeting") {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got, ok := r.Match("other@01234567", "rate limit 5 requests"); ok {
		t.Errorf("of another question: %+v", got)
	}
	if _, ok := r.Match("limits@89abcdef", "hi"); ok {
		t.Error("of another wording")
	}
	if err := r.Fault("limits"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "a-number-of-requests") {
		t.Errorf("%v", err)
	}
}

// TestBadRules: what is wrong with a file is said with its line.
func TestBadRules(t *testing.T) {
	t.Parallel()
	rule := func(s string) string { return "rules:\n  - id: a\n    question: q\n    " + s + "\n" }
	for name, tc := range map[string]struct{ file, line, say string }{
		"empty":           {"", "r.yaml:1", "empty"},
		"none":            {"rules: []\n", "r.yaml:1", "no rules"},
		"another field":   {"rule: []\n", "r.yaml:1", "unknown field"},
		"no condition":    {rule("evidence: yes"), "r.yaml:2", "no condition"},
		"no evidence":     {rule("any: [x]"), "r.yaml:2", "evidence"},
		"evidence maybe":  {rule("evidence: maybe"), "r.yaml:4", "maybe"},
		"confidence":      {rule("confidence: 1.2"), "r.yaml:4", "1.2"},
		"a look-ahead":    {rule("any: [{regex: '(?=x)'}]"), "r.yaml:4", "Perl"},
		"a number":        {rule("any: [{regex: 12}]"), "r.yaml:4", "text"},
		"both":            {rule("any: [{regex: 'x', words: y}]"), "r.yaml:4", "either"},
		"neither":         {rule("any: [{}]"), "r.yaml:4", "either"},
		"a typo in it":    {rule("any: [{regexp: 'x'}]"), "r.yaml:4", "unknown field"},
		"the same id":     {"rules:\n- {id: a, question: q, any: [x], evidence: yes}\n- {id: a, question: q, any: [y], evidence: no}\n", "r.yaml:3", "second"},
		"a strange id":    {"rules:\n- {id: a b, question: q, any: [x], evidence: yes}\n", "r.yaml:2", "not an id"},
		"an alias":        {"rules: &x\n- *x\n", "r.yaml:1", "aliases"},
		"a large pattern": {rule("any: [{regex: '" + strings.Repeat("x", 5000) + "'}]"), "r.yaml:4", "4096"},
	} {
		_, err := labels.ParseRules("r.yaml", []byte(tc.file))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.line) || !strings.Contains(err.Error(), tc.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
