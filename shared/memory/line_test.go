package memory_test

import (
	"slices"
	"testing"

	"github.com/mneme-ai/mneme/shared/memory"
)

func TestLinesOfAMemory(t *testing.T) {
	text := "- Retries stop after 5 attempts. [1a2b3c4d] [9c0d1e2f]\r\n\n  \n2) Ada owns\tthe deploy. [1a2b3c4d] [1a2b3c4d]\nno id, [not one] [1A2B3C4D] [1a2b3c4]"
	lines := memory.Lines(text)
	if len(lines) != 3 || lines[0] != "- Retries stop after 5 attempts. [1a2b3c4d] [9c0d1e2f]" {
		t.Fatalf("%q", lines)
	}
	for i, want := range []struct {
		fact string
		ids  []string
	}{
		{"Retries stop after 5 attempts.", []string{"1a2b3c4d", "9c0d1e2f"}},
		{"Ada owns the deploy.", []string{"1a2b3c4d"}},
		{"no id, [not one] [1A2B3C4D] [1a2b3c4]", nil},
	} {
		if got := memory.Fact(lines[i]); got != want.fact {
			t.Errorf("fact of line %d: %q, want %q", i, got, want.fact)
		}
		if got := memory.SourceIDs(lines[i]); !slices.Equal(got, want.ids) {
			t.Errorf("ids of line %d: %q, want %q", i, got, want.ids)
		}
	}
	if memory.Lines("\n \n") != nil {
		t.Error("a blank memory has lines")
	}
}
