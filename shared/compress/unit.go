package compress

import (
	"fmt"
	"strings"
)

// unit is a line, or a sentence, of a text that is being shortened: what stands
// there now, and which of the original's it stands for.
type unit struct {
	text     string
	from, to int // of the original, from 0, to excluded
	kind     unitKind
	omitted  int // units of the original that are not shown
	frames   int // frames of a progress bar that were drawn over
	bytes    int // cut out of a long line
}

type unitKind uint8

const (
	whole   unitKind = iota // as it stood
	cut                     // a line of which a part is left out
	gap                     // a mark in the place of units
	gapLike                 // the same, of units that are like the one above
	footer
)

// lineMark is the mark of a gap between lines.
func lineMark(u unit) string {
	if u.omitted == 1 {
		return fmt.Sprintf("[... 1 line omitted: %d]", u.from+1)
	}
	if u.kind == gapLike {
		return fmt.Sprintf("[... %d lines like the one above omitted: %d-%d]", u.omitted, u.from+1, u.to)
	}
	return fmt.Sprintf("[... %d lines omitted: %d-%d]", u.omitted, u.from+1, u.to)
}

// join puts units back together. Where hash is set a last line names the
// original.
func join(units []unit, sep string, size int) string {
	var b strings.Builder
	b.Grow(size)
	for i, u := range units {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(u.text)
	}
	return b.String()
}

func size(units []unit) int {
	n := 0
	for i := range units {
		n += len(units[i].text) + 1
	}
	return n
}

// footerLine names the original. It is the last line of a result.
func footerLine(omitted, of int, unit, hash string) string {
	return fmt.Sprintf("[... %d of %d %s omitted; original %s]", omitted, of, unit, shown(hash))
}
