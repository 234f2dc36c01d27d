package gru

import (
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
