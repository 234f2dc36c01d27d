package main_test

import (
	"testing"

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
