package skill

import (
	"bytes"
	"maps"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mneme-ai/mneme/shared/derived"
)

// Diff is the unified difference between two texts; "" where they are equal.
func Diff(oldName, old, newName, new string) string {
	d := diff.Diff(oldName, []byte(old), newName, []byte(new))
	// The first line, "diff old new", is the library's own.
	if bytes.HasPrefix(d, []byte("diff ")) {
		_, d, _ = bytes.Cut(d, []byte("\n"))
	}
	return string(d)
}

// Own is what people wrote below what Mneme says in a body, "" where there is nothing.
func Own(body string) string {
	i := strings.LastIndex(body, derived.MarkerClose)
	if i < 0 {
		return ""
	}
	return strings.Trim(body[i+len(derived.MarkerClose):], "\n")
}

// Keep is the draft with what people added to an earlier version: the text below what
// Mneme says, license, compatibility, allowed tools, and metadata of their own.
func Keep(draft, earlier Doc) Doc {
	if own := Own(earlier.Body); own != "" {
		draft.Body += "\n\n" + own
	}
	draft.License, draft.Compatibility, draft.AllowedTools = earlier.License, earlier.Compatibility, earlier.AllowedTools
	meta := maps.Clone(draft.Metadata)
	for k, v := range earlier.Metadata {
		if k == keyGeneratedBy || strings.HasPrefix(k, "mneme_") {
			continue
		}
		if meta == nil {
			meta = map[string]string{}
		}
		meta[k] = v
	}
	draft.Metadata = meta
	return draft
}
