package transcript

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/memory"
)

// A harness puts text of its own into people's and tools' texts, between tags.
// Such a passage is cut out; the pieces around it keep their source bytes. A
// tag without its end is somebody's words about the tag, and stays.
const (
	reminderOpen  = "<system-reminder>"
	reminderClose = "</system-reminder>"
)

// passage is one tagged run of a text.
type passage struct {
	from, to int
	derived  bool // Mneme's own
}

// lastEnds are the places of the last closing tags. An open tag past them is
// not looked at: a text of open tags alone would be searched to its end for
// each.
type lastEnds struct{ reminder, marker, document int }

func endsOf(s string) lastEnds {
	return lastEnds{strings.LastIndex(s, reminderClose), strings.LastIndex(s, MarkerClose), strings.LastIndex(s, derived.MarkerHint)}
}

// hasTags reports whether s may hold a tagged passage.
func hasTags(s string) bool {
	return strings.Contains(s, reminderOpen) || strings.Contains(s, MarkerOpen) || strings.Contains(s, derived.MarkerHint)
}

// nextPassage finds the first complete tagged run from i on.
func nextPassage(s string, i int, last lastEnds) (passage, bool) {
	for i < len(s) {
		k := strings.IndexByte(s[i:], '<')
		if k < 0 {
			break
		}
		i += k
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, reminderOpen) && i < last.reminder:
			if e := strings.Index(rest, reminderClose); e >= 0 {
				return passage{i, i + e + len(reminderClose), false}, true
			}
		case strings.HasPrefix(rest, MarkerOpen) && len(rest) > len(MarkerOpen) && strings.IndexByte("> \t\n", rest[len(MarkerOpen)]) >= 0 && i < last.marker:
			if e := strings.Index(rest, MarkerClose); e >= 0 {
				return passage{i, i + e + len(MarkerClose), true}, true
			}
		case i < last.document:
			if to, ok := documentAt(s, i); ok {
				return passage{frontBefore(s, i), to, true}, true
			}
		}
		i++
	}
	return passage{}, false
}

// documentAt is the end of the document of Mneme's that begins at s[i:]: with its marker
// on a line by itself, or with its lines filled anew.
func documentAt(s string, i int) (to int, ok bool) {
	if opensDocument(s, i) {
		if e := strings.Index(s[i:], derived.MarkerClose); e >= 0 {
			return i + e + len(derived.MarkerClose), true
		}
	}
	return derived.Refilled(s, i)
}

// opensDocument reports whether the line that begins a document of Mneme's stands at
// s[i:], by itself.
func opensDocument(s string, i int) bool {
	from, _, _, ok := derived.NextMarker(s[:min(len(s), i+maxMarkerLine)], i)
	if !ok || from != i {
		return false
	}
	line := s[strings.LastIndexByte(s[:i], '\n')+1:]
	if e := strings.IndexByte(line, '\n'); e >= 0 {
		line = line[:e]
	}
	return derived.Opens(line)
}

// maxMarkerLine bounds a marker, in bytes.
const maxMarkerLine = 1 << 10

// frontBefore is where the front matter begins that ends right before s[i:]; i where
// there is none. Pasted with its document, it says what the document says.
func frontBefore(s string, i int) int {
	head := strings.TrimRight(s[:strings.LastIndexByte(s[:i], '\n')+1], " \t\r\n>")
	if !strings.HasSuffix(head, "\n---") {
		return refilledFront(s, i)
	}
	head = head[:len(head)-len("\n---")]
	for n := 0; n < maxFrontLines; n++ {
		at := strings.LastIndexByte(head, '\n') + 1
		line := strings.TrimRight(head[at:], " \t\r")
		if strings.Trim(line, " \t>") == "---" {
			return at
		}
		// A field, or what goes on with one: not the text between two rulers.
		if at == 0 || line != "" && !strings.Contains(line, ":") && !strings.ContainsAny(line[:1], " \t#->") {
			break
		}
		head = head[:at-1]
	}
	return i
}

// refilledFront is frontBefore where the lines were filled anew: what stands between
// two rulers and says that Mneme wrote it.
func refilledFront(s string, i int) int {
	head, ok := strings.CutSuffix(strings.TrimRight(s[max(0, i-maxFront):i], " \t\r\n>"), "---")
	k := strings.LastIndex(head, "---")
	if !ok || k < 0 || k > 0 && !strings.ContainsAny(head[k-1:k], " \t\n>") ||
		!strings.Contains(head[k:], "generated_by:") && !strings.Contains(head[k:], derivedFromKey+":") {
		return i
	}
	return max(0, i-maxFront) + k
}

// maxFront bounds front matter whose lines were filled anew, in bytes.
const maxFront = 8 << 10

// maxPassages bounds the passages of one text, as each costs a look at the
// whole; real texts hold a few. What follows them is cut away with them.
const maxPassages = 200

// cut removes tagged passages. own says that one of Mneme's was among
// them. A piece without any is returned as it is.
func cut(p memory.Piece) (kept []memory.Piece, injected, own bool) {
	if !hasTags(p.Text) {
		return []memory.Piece{p}, false, false
	}
	at, last := 0, endsOf(p.Text)
	for n := 0; ; n++ {
		x, ok := nextPassage(p.Text, at, last)
		if !ok {
			break
		}
		if n == maxPassages {
			return kept, injected, own
		}
		if x.derived {
			own = true
		} else {
			injected = true
		}
		x.from = max(x.from, at)
		if q, ok := trimmed(p, at, x.from); ok {
			kept = append(kept, q)
		}
		at = x.to
	}
	if at == 0 {
		return []memory.Piece{p}, false, false
	}
	if q, ok := trimmed(p, at, len(p.Text)); ok {
		kept = append(kept, q)
	}
	return kept, injected, own
}

// cutAll is cut for each piece.
func cutAll(ps []memory.Piece) (kept []memory.Piece, injected, own bool) {
	if !slices.ContainsFunc(ps, func(p memory.Piece) bool { return hasTags(p.Text) }) {
		return ps, false, false
	}
	for _, p := range ps {
		k, i, d := cut(p)
		kept, injected, own = append(kept, k...), injected || i, own || d
	}
	return kept, injected, own
}

func blank(ps []memory.Piece) bool {
	for i := range ps {
		if strings.TrimSpace(ps[i].Text) != "" {
			return false
		}
	}
	return true
}

// tagged is the text between <name> and </name>, as a place in s.
func tagged(s, name string) (from, to int, ok bool) {
	i := strings.Index(s, "<"+name+">")
	if i < 0 {
		return 0, 0, false
	}
	i += len(name) + 2
	j := strings.Index(s[i:], "</"+name+">")
	if j < 0 {
		return 0, 0, false
	}
	return i, i + j, true
}
