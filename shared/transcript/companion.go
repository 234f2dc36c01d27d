package transcript

import (
	"path"
	"strings"
)

// Companion tells the files that Claude Code writes beside its transcripts and
// that hold nothing to remember (formats.md 1.1); what says which. Only the key
// counts. A tool's output in a file of its own is none of them as long as the
// key names its session (see Spilled); without, it would pass for a note.
func Companion(key string) (what string, ok bool) {
	if _, _, ok := Spilled(key); ok {
		return "", false
	}
	dir, name := path.Split(key)
	base := baseOf(name)
	switch {
	case path.Base(dir) == spillFolder && (strings.HasSuffix(base, ".txt") || strings.HasSuffix(base, ".json")):
		return "the output of a tool call, whose session no folder names", true
	case strings.HasSuffix(base, ".meta.json") && strings.HasPrefix(base, "agent-"):
		return "the description of a sub-agent", true
	case base == "journal.jsonl" && strings.Contains(dir, "/workflows/"):
		return "the journal of a workflow", true
	case base == "sessions-index.json":
		return "an index of sessions", true
	}
	return "", false
}
