package chunk

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/memory"
)

// item is a stretch of a turn's redacted text, or words of our own.
type item struct {
	from, to int
	lit      string
}

// bytesPerToken is the guess with which a cut is first tried; counting
// corrects it.
const bytesPerToken = 4

// maxTokenBytes is how many bytes of a text one token can stand for: the
// longest of Qwen2.5 has 128, of text in form NFC, which a text shrinks to by
// at most a third of its size (three Hangul letters, one syllable).
const maxTokenBytes = 3 * 128

// surelyOver tells, without counting, that a text of n bytes is longer than a
// chunk. Counting takes time and memory with the longest word: one word of 64
// MiB costs a minute and 2 GB.
func (c *Chunker) surelyOver(n int) bool { return n > maxTokenBytes*c.opt.Tokens }

// size is how many bytes of the turn's text the items hold.
func size(items []item) (n int) {
	for _, it := range items {
		n += it.to - it.from
	}
	return n
}

// markTokens is set aside for the line that marks a cut.
const markTokens = 24

// excerpt gives a tool's text by policy c1.
func (c *Chunker) excerpt(v *view) []item {
	budget, red := c.opt.ToolTokens, v.red
	// A text of over 16 bytes a token on average is not counted whole: tool
	// output may be megabytes.
	if len(red) <= 16*budget && strings.Count(red, "\n") < 2*ToolLines && (len(red) <= budget || c.opt.Count(red) <= budget) {
		return []item{{from: 0, to: len(red)}}
	}
	budget = max(budget-markTokens, 2)
	head, used := 0, 0
	for n := 0; n < ToolLines && head < len(red); n++ {
		end := lineEnd(red, head)
		if k := c.fit(v, head, end, budget/2-used); k < end {
			if n == 0 {
				head = k
				used = c.opt.Count(red[:k])
			}
			break
		}
		used += c.opt.Count(red[head:end])
		head = end
	}
	tail, left := len(red), budget-used
	for n := 0; n < ToolLines && tail > head; n++ {
		start := max(head, lineStart(red, tail))
		if k := c.fitTail(v, start, tail, left); k > start {
			if n == 0 {
				tail = k
			}
			break
		}
		left -= c.opt.Count(red[start:tail])
		tail = start
	}
	if tail <= head {
		return []item{{from: 0, to: len(red)}}
	}
	gone := red[head:tail]
	lines := strings.Count(gone, "\n")
	mark := fmt.Sprintf("[... %d lines, %d characters left out ...]", lines, utf8.RuneCountInString(gone))
	if head > 0 && red[head-1] != '\n' {
		mark = "\n" + mark
	}
	out := []item{{from: 0, to: head}, {lit: mark + "\n"}}
	if tail == len(red) {
		out[1].lit = mark
		return out
	}
	return append(out, item{from: tail, to: len(red)})
}

// lineEnd is past the newline of the line that holds i.
func lineEnd(s string, i int) int {
	if k := strings.IndexByte(s[i:], '\n'); k >= 0 {
		return i + k + 1
	}
	return len(s)
}

// lineStart is where the line begins that ends at i, its newline before i.
func lineStart(s string, i int) int {
	if i == 0 {
		return 0
	}
	return strings.LastIndexByte(s[:i-1], '\n') + 1
}

// fit is the greatest cut of red[from:to) whose front has at most budget
// tokens, found within a tenth; to when all fits,
// from when nothing does.
func (c *Chunker) fit(v *view, from, to, budget int) int {
	if budget <= 0 {
		return from
	}
	n := to - from
	if n > budget {
		n = min(n, budget*bytesPerToken)
		for {
			want := n
			if n = v.border(from+n, from, to) - from; n <= 0 {
				return from
			}
			got := c.opt.Count(v.red[from : from+n])
			if got <= budget {
				break
			}
			if n > want { // a mark stands first and does not fit
				return from
			}
			n = min(n-1, n*budget/got*9/10)
		}
	}
	return from + n
}

// fitTail is fit from the end: the least start of red[from:to).
func (c *Chunker) fitTail(v *view, from, to, budget int) int {
	if budget <= 0 {
		return to
	}
	n := to - from
	if n > budget {
		n = min(n, budget*bytesPerToken)
		for {
			k := to - n
			for k < to && !utf8.RuneStart(v.red[k]) {
				k++
			}
			if m, ok := v.inMark(k); ok {
				k = m.OutEnd
			}
			if n = to - k; n <= 0 {
				return to
			}
			got := c.opt.Count(v.red[k:to])
			if got <= budget {
				break
			}
			n = min(n-1, n*budget/got*9/10)
		}
	}
	return to - n
}

// border moves a cut back to the end of a word near it, off runes and marks.
func (v *view) border(k, from, to int) int {
	if k >= to {
		return to
	}
	const near = 80 // bytes to look back for a space
	if s := strings.LastIndexAny(v.red[max(from, k-near):k], " \t"); s >= 0 {
		if w := max(from, k-near) + s + 1; w > from {
			k = w
		}
	}
	for k > from && !utf8.RuneStart(v.red[k]) {
		k--
	}
	if m, ok := v.inMark(k); ok {
		if k = m.OutStart; k <= from {
			k = m.OutEnd
		}
	}
	return k
}

// lines cuts red[from:to) into parts of at most a chunk, at line ends where
// they allow it.
func (c *Chunker) lines(v *view, from, to int) []item {
	budget := max(c.opt.Tokens-c.opt.Count(c.header(v.t, 999))-2, 16)
	var out []item
	start, used := from, 0
	flush := func(end int) {
		if end > start {
			out = append(out, item{from: start, to: end})
		}
		start, used = end, 0
	}
	for at := from; at < to; {
		end := min(lineEnd(v.red, at), to)
		n := budget + 1
		if end-at <= budget*16 {
			n = c.opt.Count(v.red[at:end])
		}
		if used+n <= budget {
			used += n
			at = end
			continue
		}
		if n <= budget {
			flush(at)
			continue
		}
		flush(at) // the line alone is longer than a chunk
		for end > at {
			k := c.fit(v, at, end, budget)
			if k <= at {
				k = c.step(v, at, end)
			}
			if k == end {
				break
			}
			at = k
			flush(k)
		}
		used, at = c.opt.Count(v.red[at:end]), end
	}
	flush(to)
	return out
}

// step goes on by one rune or mark where not even that fits the budget.
func (c *Chunker) step(v *view, at, end int) int {
	_, n := utf8.DecodeRuneInString(v.red[at:])
	k := at + n
	if m, ok := v.inMark(k); ok {
		k = m.OutEnd
	}
	return min(k, end)
}

// paragraphs gives a note's parts of at most NoteChars characters: runs of
// paragraphs, fences and tables, none of which is cut.
func (c *Chunker) paragraphs(v *view) []item {
	red := v.red
	if v.t.Role != memory.RoleNote || utf8.RuneCountInString(red) <= c.opt.NoteChars {
		return []item{{from: 0, to: len(red)}}
	}
	var out []item
	start, done := 0, 0 // the part is red[start:done)
	fence := ""
	add := func(end int) {
		if done > start && utf8.RuneCountInString(strings.TrimSpace(red[start:end])) > c.opt.NoteChars {
			out = append(out, trimItem(red, start, done))
			start = done
		}
		done = end
	}
	for at := 0; at < len(red); {
		end := lineEnd(red, at)
		s := strings.TrimSpace(red[at:end])
		switch {
		case fence != "":
			if strings.HasPrefix(s, fence) && strings.Trim(s, fence[:1]) == "" {
				fence = ""
			}
		case strings.HasPrefix(s, "```"), strings.HasPrefix(s, "~~~"):
			fence = s[:len(s)-len(strings.TrimLeft(s, s[:1]))]
		case s == "":
			add(end)
		}
		at = end
	}
	add(len(red))
	return append(out, trimItem(red, start, done))
}

func trimItem(s string, from, to int) item {
	for from < to && (s[from] == '\n' || s[from] == '\r') {
		from++
	}
	return item{from: from, to: from + len(strings.TrimRight(s[from:to], " \t\r\n"))}
}
