package derived

import (
	"regexp"
	"strings"
)

// Every document that Mneme writes for people or agents holds what it says
// between two lines:
//
//	<!-- mneme:derived kind=skill -->
//	…
//	<!-- /mneme:derived -->
//
// The first stands near the top, behind the front matter where there is one, each
// on a line of its own. What stands between them is no evidence, whoever brings it
// back; what people write below the second is theirs. In a file whose second line
// is missing all that follows the first is Mneme's; in a message, where a line may
// be somebody's words about it, both must stand.
const (
	markerOpen = "<!-- mneme:derived"
	markerEnd  = "-->"
	// MarkerClose is the line that ends what Marker began.
	MarkerClose = "<!-- /mneme:derived -->"
)

// Kinds of documents.
const (
	KindSkill = "skill" // SKILL.md, drafted or promoted
	KindVault = "vault" // a note of the vault
)

// Marker is the line that begins what Mneme says in a document; kind is
// [a-z][a-z0-9_-]*.
func Marker(kind string) string { return markerOpen + " kind=" + kind + " " + markerEnd }

// Marked reports whether a line of text is a Marker, and of which kind ("" where
// it names none).
func Marked(text string) (kind string, ok bool) {
	for at := 0; ; {
		from, to, kind, ok := NextMarker(text, at)
		if !ok {
			return "", false
		}
		if Opens(text[lineStart(text, from):lineEnd(text, to)]) {
			return kind, true
		}
		at = to
	}
}

// Opens reports whether a line is a Marker, quote marks, list marks and those of a
// diff before it aside.
func Opens(line string) bool {
	line = bare(line)
	if !strings.HasPrefix(line, markerOpen) {
		return false
	}
	_, to, _, ok := NextMarker(line, 0)
	return ok && to == len(line)
}

// Closes reports whether a line is MarkerClose, marks before it aside.
func Closes(line string) bool { return bare(line) == MarkerClose }

// bare is a line without what editors, quotes, lists and diffs put around it.
func bare(line string) string {
	return strings.TrimRight(strings.TrimLeft(line, " \t>+-*|"), " \t\r|")
}

// NextMarker finds the first Marker of text from at on, wherever on its line it
// stands: text [from,to).
func NextMarker(text string, at int) (from, to int, kind string, ok bool) {
	for at < len(text) {
		k := strings.Index(text[at:], markerOpen)
		if k < 0 {
			break
		}
		from = at + k
		rest := text[from+len(markerOpen):]
		e := strings.Index(rest, markerEnd)
		if e < 0 {
			break
		}
		attrs := rest[:e]
		to = from + len(markerOpen) + e + len(markerEnd)
		if attrs == "" || strings.IndexByte(" \t", attrs[0]) < 0 || strings.ContainsAny(attrs, "\n<>") || len(attrs) > maxAttrs {
			at = from + len(markerOpen)
			continue
		}
		for f := range strings.FieldsSeq(attrs) {
			if v, found := strings.CutPrefix(f, "kind="); found {
				kind = v
			}
		}
		return from, to, kind, true
	}
	return 0, 0, "", false
}

// maxAttrs bounds what a marker says beside its name, in bytes.
const maxAttrs = 512

// MarkerHint is in every text that holds MarkerClose, its line filled anew or not.
const MarkerHint = "/mneme:derived"

// A marker between whose words lines broke, with the quote marks of these lines.
var (
	refilledOpen  = regexp.MustCompile(`^<!--[\s>]*mneme:derived(?:[\s>]+[a-z]+=[^\s<>]+)+[\s>]*-->`)
	refilledClose = regexp.MustCompile(`<!--[\s>]*/mneme:derived[\s>]*-->`)
)

// Refilled is the end of the document that begins at text[from:] and whose lines were
// filled anew, so that its marker need not stand on a line by itself: MinWords words or
// more stand between both marks. Fewer are somebody's words about the marks, and so is a
// mark behind a backtick.
func Refilled(text string, from int) (to int, ok bool) {
	if !strings.HasPrefix(text[from:], "<!--") || from > 0 && text[from-1] == '`' {
		return 0, false
	}
	open := refilledOpen.FindStringIndex(text[from:min(len(text), from+maxAttrs)])
	if open == nil {
		return 0, false
	}
	at := from + open[1]
	end := refilledClose.FindStringIndex(text[at:])
	if end == nil || len(strings.Fields(text[at:at+end[0]])) < MinWords {
		return 0, false
	}
	return at + end[1], true
}

func lineStart(s string, i int) int { return strings.LastIndexByte(s[:i], '\n') + 1 }

func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}
