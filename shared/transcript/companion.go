package transcript

import (
	"path"
	"strings"
)

// Companion tells the files that Claude Code writes beside its transcripts and
// that are no conversation (formats.md 1.1); what says which. Only the key
// counts: by its content an output that a tool spilled into a file of its own
// is a text like any person's, and would become evidence. The transcript holds
// the beginning of that output, with the tool's trust.
func Companion(key string) (what string, ok bool) {
	dir, name := path.Split(key)
	base := baseOf(name)
	switch {
	case path.Base(dir) == "tool-results" && (strings.HasSuffix(base, ".txt") || strings.HasSuffix(base, ".json")):
		return "the output of a tool call", true
	case strings.HasSuffix(base, ".meta.json") && strings.HasPrefix(base, "agent-"):
		return "the description of a sub-agent", true
	case base == "journal.jsonl" && strings.Contains(dir, "/workflows/"):
		return "the journal of a workflow", true
	case base == "sessions-index.json":
		return "an index of sessions", true
	}
	return "", false
}
