package transcript_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/transcript"
)

func TestCompanion(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"shop/-w/5f0c/tool-results/toolu_01.txt":              false,
		"shop/-w/5f0c/tool-results/toolu_01.txt.gz":           false,
		"tool-results/b12.json":                               true,
		"/tool-results/b12.txt":                               true,
		"shop/-w/5f0c/tool-results/agent-1.jsonl":             false,
		"shop/docs/tool-results.txt":                          false,
		"shop/-w/5f0c/subagents/agent-1.meta.json":            true,
		"shop/-w/5f0c/subagents/agent-1.jsonl":                false,
		"shop/-w/5f0c/subagents/workflows/wf_1/journal.jsonl": true,
		"shop/-w/5f0c/subagents/workflows/wf_1/agent-2.jsonl": false,
		"shop/journal.jsonl":                                  false,
		"shop/notes.meta.json":                                false,
		"shop/-w/sessions-index.json":                         true,
		"shop/-w/memory/rules.md":                             false,
		"":                                                    false,
	} {
		if what, ok := transcript.Companion(key); ok != want || ok == (what == "") {
			t.Errorf("Companion(%q) = %q, %t", key, what, ok)
		}
	}
}
