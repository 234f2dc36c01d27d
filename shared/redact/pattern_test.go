package redact_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/redact"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	ps, err := redact.ParsePatterns("redact.yaml", []byte("patterns:\n  - name: account\n    regexp: 'ACME-[0-9]{6}'\n    keyword: ACME-\n  - name: codename\n    regexp: 'project (\\w+)'\n"))
	if err != nil {
		t.Fatal(err)
	}
	red := redact.NewWith(key, redact.Options{Patterns: ps})
	out, marks := red.Redact("ACME-123456 of project bluebird, ACME-12; DB_PASSWORD=hunter2x")
	if d := cmp.Diff("[REDACTED:user_account] of project [REDACTED:user_codename], ACME-12; DB_PASSWORD=[REDACTED:password]", fingerprint.ReplaceAllString(out, "]")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if len(marks) != 3 {
		t.Errorf("%d marks", len(marks))
	}
	if again, _ := red.Redact(out); again != out {
		t.Errorf("not idempotent: %s", again)
	}
	// A mark right behind what matches, to the end of the text.
	behind := "ACME-123456[REDACTED:user_account:0a1b2c]"
	if out, _ := red.Redact(behind); fingerprint.ReplaceAllString(out, "]") != "[REDACTED:user_account][REDACTED:user_account]" {
		t.Errorf("beside a mark: %s", out)
	}
	if v := red.Version(); !strings.HasPrefix(v, redact.RulesVersion+"+") || redact.New(key).Version() != redact.RulesVersion {
		t.Errorf("versions %q, %q", v, redact.New(key).Version())
	}
}

func TestPatternErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"unknown field", "patterns:\n  - name: a\n    regexp: 'b1'\n    regex: c\n", "redact.yaml:4"},
		{"field twice", "patterns:\n  - name: a\n    regexp: 'b1'\n    regexp: c\n", "redact.yaml:4"},
		{"name twice", "patterns:\n  - {name: a, regexp: x}\n  - {name: a, regexp: y}\n", "redact.yaml:3"},
		{"bad name", "patterns:\n  - {name: A b, regexp: x}\n", "redact.yaml:2"},
		{"bad expression", "patterns:\n  - {name: a, regexp: '(x'}\n", "redact.yaml:2"},
		{"look-ahead", "patterns:\n  - {name: a, regexp: 'x(?=y)'}\n", "redact.yaml:2"},
		{"empty match", "patterns:\n  - {name: a, regexp: 'x*'}\n", "redact.yaml:2"},
		{"no expression", "patterns:\n  - {name: a}\n", "redact.yaml:2"},
		{"a number", "patterns:\n  - {name: a, regexp: 12}\n", "redact.yaml:2"},
		{"no list", "patterns: a\n", "redact.yaml:1"},
		{"another root", "rules: []\n", "redact.yaml:1"},
		{"list missing", "\npatterns:\n", "redact.yaml:2"},
		{"second document", "patterns: []\n---\npatterns:\n  - {name: a, regexp: x}\n", "redact.yaml:2"},
		{"alias", "patterns:\n  - &p {name: a, regexp: x}\n  - *p\n", "redact.yaml:2"},
		{"too many", "patterns: [" + strings.Repeat("x, ", 101) + "]\n", "redact.yaml:1: patterns has 101 entries"},
		{"no YAML", "patterns:\n\t- x", "redact.yaml:2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := redact.ParsePatterns("redact.yaml", []byte(tt.in))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	for _, in := range []string{"", "# nothing\n", "patterns: []\n"} {
		if ps, err := redact.ParsePatterns("redact.yaml", []byte(in)); err != nil || len(ps) != 0 {
			t.Errorf("%q: %v, %v", in, ps, err)
		}
	}
}

// Whatever a pattern file holds: it is refused with its line, or its patterns
// mask.
func FuzzPatterns(f *testing.F) {
	f.Add("patterns:\n  - name: a\n    regexp: 'A[0-9]+'\n", "xA12 y")
	f.Add("patterns:\n  - {name: a, regexp: 'R.'}\n", "[REDACTED:jwt:000000]")
	f.Fuzz(func(t *testing.T, file, text string) {
		ps, err := redact.ParsePatterns("f", []byte(file))
		if err != nil {
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "f:") {
				t.Fatalf("%q: %v", file, err)
			}
			return
		}
		out, _ := redact.NewWith(key, redact.Options{Patterns: ps}).Redact(text)
		if len(ps) == 0 {
			if again, _ := redact.New(key).Redact(text); again != out {
				t.Fatalf("no pattern, but %q is not %q", out, again)
			}
		}
	})
}
