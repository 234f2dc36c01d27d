package transcript

import (
	"slices"
	"strings"

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
type lastEnds struct{ reminder, marker int }

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
		}
		i++
	}
	return passage{}, false
}

// maxPassages bounds the passages of one text, as each costs a look at the
// whole; real texts hold a few. What follows them is cut away with them.
const maxPassages = 200

// cut removes tagged passages. derived says that one of Mneme's own was among
// them. A piece without any is returned as it is.
func cut(p memory.Piece) (kept []memory.Piece, injected, derived bool) {
	if !strings.Contains(p.Text, reminderOpen) && !strings.Contains(p.Text, MarkerOpen) {
		return []memory.Piece{p}, false, false
	}
	at, last := 0, lastEnds{strings.LastIndex(p.Text, reminderClose), strings.LastIndex(p.Text, MarkerClose)}
	for n := 0; ; n++ {
		x, ok := nextPassage(p.Text, at, last)
		if !ok {
			break
		}
		if n == maxPassages {
			return kept, injected, derived
		}
		if x.derived {
			derived = true
		} else {
			injected = true
		}
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
	return kept, injected, derived
}

// cutAll is cut for each piece.
func cutAll(ps []memory.Piece) (kept []memory.Piece, injected, derived bool) {
	if !slices.ContainsFunc(ps, func(p memory.Piece) bool {
		return strings.Contains(p.Text, reminderOpen) || strings.Contains(p.Text, MarkerOpen)
	}) {
		return ps, false, false
	}
	for _, p := range ps {
		k, i, d := cut(p)
		kept, injected, derived = append(kept, k...), injected || i, derived || d
	}
	return kept, injected, derived
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
