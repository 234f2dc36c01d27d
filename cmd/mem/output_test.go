package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	main "github.com/mneme-ai/mneme/cmd/mem"
)

// TestVisible: what a transcript holds can not steer the terminal it is shown on.
func TestVisible(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"plain":          {"caf\u00e9\t\u6f22\u5b57\n", "caf\u00e9\t\u6f22\u5b57\n"},
		"colour":         {"\x1b[31mred", "\uFFFD[31mred"},
		"window title":   {"\x1b]0;x\x07", "\uFFFD]0;x\uFFFD"},
		"C1 introducer":  {"\u009b31m", "\uFFFD31m"},
		"overwrite":      {"safe\rrm -rf\x08\x7f", "safe\uFFFDrm -rf\uFFFD\uFFFD"},
		"no UTF-8":       {"a\xffb", "a\uFFFDb"},
		"a C1 byte only": {"a\x9bb", "a\uFFFDb"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(main.Visible([]byte(tc.in))); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTyped: keys are answers, and the bytes of other keys are none.
func TestTyped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"keys":              {"yNsQ", "ynsq"},
		"arrows":            {"\x1b[A\x1b[By", "y"},
		"F1 and F5":         {"\x1bOPn\x1b[15~y", "ny"},
		"a keypad's y":      {"\x1bOyn", "n"},
		"Alt-y":             {"\x1byn", "n"},
		"Ctrl-C":            {"\x03", "q"},
		"Ctrl-D":            {"y\x04", "yq"},
		"escape alone":      {"\x1b", ""},
		"half a sequence":   {"\x1b[1;", ""},
		"another word":      {"maybe", "maybe"},
		"nothing":           {"", ""},
		"not UTF-8, and on": {"\xffy", "\xffy"},
	} {
		if got := string(main.Typed([]byte(tc.in))); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestShown: a chunk under review can not move the cursor, hide words or turn them.
func TestShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n":  "plain\ttext\n",
		"\x1b[2Jgone":    "\u241b[2Jgone",
		"over\rwritten":  "over\u240dwritten",
		"\u202eteg":      "<U+202E>teg",
		"\u2066in\u2069": "<U+2066>in<U+2069>",
		"\u009b31m":      "<U+009B>31m",
		"\x7f":           "\u2421",
		"\u6f22\u5b57":   "\u6f22\u5b57",
	} {
		if got := main.Shown(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestShownToAPipe: an answer that a program or a pager reads turns no words either;
// its JSON has every character.
func TestShownToAPipe(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "s.jsonl")
	said := "We decided that retries \u202estop after exactly 5 attempts\x1b, because the upstream bans us for more."
	if err := os.WriteFile(file, echoSession(t, "s1", time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC), said, "Understood."), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("-p", "shop", "learn", "--wait", file)
	s.must("wait")
	for _, args := range [][]string{
		{"-p", "shop", "query", "how many retries are allowed?"}, {"-p", "shop", "query", "--level", "L2", "how many retries are allowed?"}, {"-p", "shop", "synthesis"},
	} {
		if out := s.must(args...); strings.ContainsAny(out, "\u202e\x1b") || !strings.Contains(out, "<U+202E>stop after exactly 5 attempts\u241b") {
			t.Errorf("%v: %q", args, out)
		}
		if out := s.must(append([]string{"--json"}, args...)...); strings.Contains(out, "<U+202E>") || !strings.Contains(out, "\u202e") && !strings.Contains(out, `\u202e`) {
			t.Errorf("%v: %q", args, out)
		}
	}
}
