package gru

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/memory"
)

// pieceEnd is the end of the piece of chunk text that begins at from and fits
// into room tokens: at the last message border that fits, else at the last
// line end, else between two characters. It is greater than from.
func pieceEnd(c *memory.Chunk, from, room int, count func(string) int) int {
	text := c.Text
	fits := func(to int) bool { return count(Neutralise(text[from:to])) <= room }
	if fits(len(text)) {
		return len(text)
	}
	var borders []int
	for i := 1; i < len(c.Turns); i++ {
		// A message's header line stands before its text: the border is behind
		// the text of the message before.
		if b := c.Turns[i-1].End; b > from && b < len(text) {
			borders = append(borders, b)
		}
	}
	if to := lastThat(borders, fits); to > 0 {
		return skipBlank(text, to)
	}
	var lines []int
	for at := from; ; {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
		lines = append(lines, at)
	}
	if to := lastThat(lines, fits); to > 0 {
		return to
	}
	lo, hi := from, len(text)
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	for lo > from && !utf8.RuneStart(text[lo]) {
		lo--
	}
	if lo == from { // not even one character: take it, the budget's slack holds it
		_, n := utf8.DecodeRuneInString(text[from:])
		lo = from + n
	}
	return lo
}

// shown is chunk text [from,to) without the turns that are no evidence, header lines
// included: what Mneme or a harness put in is never read by a model, or it would come
// back as a memory (DESIGN invariant 7). It is a view: the offsets of what a step
// looked at stay those of the chunk text.
func shown(c *memory.Chunk, from, to int) string {
	text := c.Text[from:to]
	if !slices.ContainsFunc(c.Turns, func(t memory.ChunkTurn) bool { return !eligible(&t) }) {
		return text
	}
	var b strings.Builder
	at := from
	for ti := range c.Turns {
		end := min(c.Turns[ti].End, to)
		if ti == len(c.Turns)-1 {
			end = to // what stands behind the last turn goes with it
		}
		if end <= at {
			continue
		}
		if eligible(&c.Turns[ti]) {
			part := c.Text[at:end]
			if b.Len() == 0 {
				part = part[skipBlank(part, 0):]
			}
			b.WriteString(part)
		}
		at = end
	}
	return b.String()
}

// lead is where in chunk text from on something that is shown begins; from where
// nothing is left out, or nothing shown. What is left out takes no room.
func lead(c *memory.Chunk, from int) int {
	at := from
	for ti := range c.Turns {
		t := &c.Turns[ti]
		switch {
		case t.End <= from:
		case eligible(t):
			return at
		default:
			at = skipBlank(c.Text, min(t.End, len(c.Text)))
		}
	}
	if at == from {
		return from
	}
	return len(c.Text) // only what is left out
}

// skipBlank moves a border over the line ends behind it, so that no piece is
// made of white space alone.
func skipBlank(text string, to int) int {
	for to < len(text) && (text[to] == '\n' || text[to] == '\r') {
		to++
	}
	return to
}

// lastThat is the greatest of the ascending ends that fits; 0 when none does.
func lastThat(ends []int, fits func(int) bool) int {
	lo, hi := 0, len(ends) // ends[:lo] fit
	for lo < hi {
		if mid := lo + (hi-lo)/2; fits(ends[mid]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0
	}
	return ends[lo-1]
}
