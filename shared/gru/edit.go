package gru

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file is how a rewrite model changes a memory: by edits of its lines, each
// of which ends with the source ids it rests on. What no edit names stays byte for
// byte, so that a model can neither forget nor reword it.
//
//	1. Retries stop after 3 attempts. [1a2b3c4d]      the memory, as it is shown
//	2. Ada owns the deploy. [5e6f7a8b]
//
//	{"edits":[{"line":1,"text":"Retries stop after 5 attempts."},{"line":0,"text":"The ban is 60 s."}]}
//	<replace line="1">Retries stop after 5 attempts.</replace><add>The ban is 60 s.</add>
//
//	Retries stop after 5 attempts. [1a2b3c4d] [9c0d1e2f]
//	Ada owns the deploy. [5e6f7a8b]
//	The ban is 60 s. [9c0d1e2f]

// Edit changes one line of a memory: line 0 adds, any other replaces, and an empty
// text takes the line out.
type Edit struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Bounds of a reply: a memory of 1,024 tokens has some forty lines.
const (
	maxEdits   = 128
	maxLineIDs = 4 // source ids on a line: the newest of what it was merged from
)

// SourceID is the id by which a memory names the section that a fact came from.
func SourceID(chunk memory.SHA) string { return chunk.Short() }

// numbered is a memory as a rewrite model sees it.
func numbered(mem string) string {
	var b strings.Builder
	for i, l := range memory.Lines(mem) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d. %s", i+1, l)
	}
	return b.String()
}

// ApplyEdits is the memory after the edits of a section with that source id.
// Without an edit that changes something it is mem, byte for byte. An edit of a
// line that there is not, or two of one line, are Malformed.
func ApplyEdits(mem string, edits []Edit, id string) (string, error) {
	lines := memory.Lines(mem)
	at := map[int]string{}
	var added []string
	for _, e := range edits {
		text := memory.Fact(e.Text)
		switch {
		case e.Line < 0 || e.Line > len(lines):
			return "", fault.New(fault.Malformed, "the memory has %d lines, and an edit names line %d", len(lines), e.Line)
		case e.Line == 0 && text == "":
			continue
		case e.Line == 0:
			added = append(added, text+" ["+id+"]")
			continue
		}
		if _, twice := at[e.Line]; twice {
			return "", fault.New(fault.Malformed, "two edits of line %d", e.Line)
		}
		old := lines[e.Line-1]
		if text == memory.Fact(old) {
			continue // repeated, not changed
		}
		if text != "" {
			ids := append(slices.DeleteFunc(memory.SourceIDs(old), func(o string) bool { return o == id }), id)
			ids = ids[max(0, len(ids)-maxLineIDs):]
			text += " [" + strings.Join(ids, "] [") + "]"
			if strings.HasPrefix(old, "- ") { // the built-in policy's lines
				text = "- " + text
			}
		}
		at[e.Line] = text
	}
	have := map[string]bool{}
	var out []string
	for i, l := range lines {
		if t, ok := at[i+1]; ok {
			l = t
		}
		if l != "" {
			out = append(out, l)
			have[memory.Fact(l)] = true
		}
	}
	for _, l := range added {
		if !have[memory.Fact(l)] { // what stands there already is not said twice
			have[memory.Fact(l)] = true
			out = append(out, l)
		}
	}
	if slices.Equal(out, lines) {
		return mem, nil
	}
	return strings.Join(out, "\n"), nil
}

// editOpen matches the opening of an edit in the form of tags.
var editOpen = lazy.MustCompile(`<(?:(add)|(replace) line="([0-9]{1,4})")>`)

// readEdits reads the edits of a reply in tags; found is false where it has none.
func readEdits(body string) (edits []Edit, found bool, err error) {
	bad := func(format string, args ...any) ([]Edit, bool, error) {
		return nil, true, fault.New(fault.Malformed, format, args...)
	}
	opens := editOpen.FindAllStringSubmatchIndex(body, -1)
	for i, m := range opens {
		name, line := "add", 0
		if m[4] >= 0 {
			name = "replace"
			line, _ = strconv.Atoi(body[m[6]:m[7]]) // up to four digits
			if line == 0 {
				return bad("<replace> names line 0")
			}
		}
		end := len(body)
		if i+1 < len(opens) {
			end = opens[i+1][0]
		}
		text, _, closed := strings.Cut(body[m[1]:end], "</"+name+">")
		if !closed {
			return bad("<%s> is not closed", name)
		}
		edits = append(edits, Edit{Line: line, Text: Restore(strings.TrimSpace(text))})
	}
	switch closing := strings.Count(body, "</add>") + strings.Count(body, "</replace>"); {
	case closing != len(opens):
		return bad("%d edits are opened and %d closed", len(opens), closing)
	case len(edits) > maxEdits:
		return bad("%d edits, at most %d", len(edits), maxEdits)
	}
	return edits, len(opens) > 0, nil
}
