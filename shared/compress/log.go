package compress

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// What of a log stays, in this order:
//
//	the lines that Options.Evidence and Options.Query name, with lines around them
//	the first 3 and the last 8 lines
//	how the run came out: exit status, counts of tests
//	failures, and what stands under them: 3 lines, and frames of their stack
//	lines that failures are told with; warnings
//	lines whose beginning no other line has
//
// Each has a number of lines and not a share of the log, so that a result is
// chosen from as the log was. Of failures that differ in numbers and ids alone the
// first 6 and the last 2 stay, of other lines the first. budgetBytes bounds all
// but the first three, and failures at failureFactor times it.
const (
	headLines     = 3
	tailLines     = 8
	tailLeast     = 3 // whatever their length; more while all are within tailBytes
	tailBytes     = 600
	aroundLines   = 3
	beforeFailure = 1
	beforeTraced  = 4
	afterFailure  = 2
	framesShown   = 4
	sameFailures  = 6
	lastFailures  = 2
	failuresShown = 32
	detailsShown  = 2
	doubtsShown   = 3
	warningsShown = 3
	rareShown     = 10 // of a log without failures
	rareBeside    = 0  // of one with
	failureFactor = 2
	budgetBytes   = 6 << 10
)

// maxLine is the longest line that stays whole, in bytes. Of a longer one its
// beginning, its end and the neighbourhood of its first failure stay. Of a line
// that tells of no failure less does: commands with all their arguments stand
// around most failures.
const (
	maxLine   = 2048
	lineHead  = 900
	lineTail  = 400
	lineFocus = 250 // to each side

	maxAside  = 400
	asideHead = 240
	asideTail = 100
)

// maxRounds bounds how often a result is shortened again until nothing changes.
const maxRounds = 6

func (o *Options) compressLog(text, hash string) (draft, bool) {
	lines := splitLines(text)
	units := make([]unit, 0, min(len(lines), 4096))
	// The first round reads the original's lines; later ones the few that are left.
	keep := o.choose(lines, text)
	units = shorten(lines, keep, func(i int) unit { return unit{text: lines[i], from: o.Line + i, to: o.Line + i + 1} }, units)
	if !changed(units) {
		return draft{text: text}, true
	}
	total := len(lines)
	units = finish(units, total, hash)
	out := join(units, "\n", size(units))
	for range maxRounds {
		ls := make([]string, len(units))
		for i := range units {
			ls[i] = units[i].text
		}
		fates := o.choose(ls, out)
		// Whether there is another round is asked of the text as anybody would read
		// it, in which our marks are lines; what the round comes to counts by the
		// original.
		fresh := shorten(ls, fates, func(i int) unit { return unit{text: ls[i], from: i, to: i + 1} }, nil)
		if !changed(fresh) {
			break
		}
		fresh = finish(fresh, len(ls), hash)
		if !worth(out, join(fresh, "\n", size(fresh))) {
			break
		}
		units = finish(shorten(ls, fates, func(i int) unit { return units[i] }, nil), total, hash)
		out = join(units, "\n", size(units))
	}
	return draft{text: out, omissions: omissionsOf(units)}, true
}

// splitLines splits at line feeds; what follows the last one is a line, empty
// in most logs.
func splitLines(text string) []string {
	return strings.Split(text, "\n")
}

func changed(units []unit) bool {
	for i := range units {
		if units[i].kind != whole {
			return true
		}
	}
	return false
}

// finish makes the last unit name the original, where a hash is asked for. A log
// that ends in a line feed still does.
func finish(units []unit, total int, hash string) []unit {
	if hash == "" {
		return units
	}
	units = slices.DeleteFunc(units, func(u unit) bool { return u.kind == footer })
	omitted := 0
	for i := range units {
		omitted += units[i].omitted
	}
	line := footerLine(omitted, total, "lines", hash)
	if omitted == 0 {
		line = fmt.Sprintf("[... parts of lines omitted; original %s]", shown(hash))
	}
	f := unit{text: line, from: total, to: total, kind: footer}
	if n := len(units); n > 0 && units[n-1].text == "" && units[n-1].kind == whole {
		return slices.Insert(units, n-1, f)
	}
	return append(units, f)
}

func omissionsOf(units []unit) []Omission {
	var out []Omission
	for i := range units {
		u := &units[i]
		switch {
		case u.kind == gap || u.kind == gapLike:
			out = append(out, Omission{From: u.from + 1, To: u.to, Count: u.omitted, Unit: "lines"})
		case u.kind == cut && u.frames > 0:
			out = append(out, Omission{From: u.from + 1, To: u.to, Count: u.frames, Unit: "frames"})
		}
		if u.kind == cut && u.bytes > 0 {
			out = append(out, Omission{From: u.from + 1, To: u.to, Count: u.bytes, Unit: "bytes"})
		}
	}
	return out
}

// leastGap is the least gap in bytes, about two marks: a mark in the place of one
// short line tells less than the line, and a mark never replaces a mark. It does
// not hang on how long the mark is, so that it is the same in every round.
const leastGap = 90

// fate is what becomes of a line.
type fate uint8

const (
	dropped fate = iota
	like         // dropped, and of the form of the line shown last
	aside        // kept up to maxAside
	kept
)

// shorten puts marks where lines were dropped. A gap that is no longer than its
// mark stays as it stood.
func shorten(lines []string, fates []fate, of func(int) unit, into []unit) []unit {
	for i := 0; i < len(lines); {
		if fates[i] >= aside {
			u := of(i)
			if u.kind == whole {
				u = trim(u, fates[i])
			}
			into = append(into, u)
			i++
			continue
		}
		j, bytes, allLike := i, 0, true
		g := unit{kind: gap}
		for j < len(lines) && fates[j] < aside {
			u := of(j)
			if j == i {
				g.from = u.from
			}
			g.to = u.to
			bytes += len(u.text) + 1
			allLike = allLike && fates[j] == like && u.kind == whole
			j++
		}
		if allLike && j-i > 1 {
			g.kind = gapLike
		}
		g.omitted = g.to - g.from
		g.text = lineMark(g)
		if g.omitted == 0 || bytes < leastGap {
			for ; i < j; i++ {
				u := of(i)
				if u.kind == whole {
					u = trim(u, aside)
				}
				into = append(into, u)
			}
			continue
		}
		into = append(into, g)
		i = j
	}
	return into
}

// trim shows of a progress bar its last frame, and of a long line its ends.
func trim(u unit, f fate) unit {
	s := strings.TrimSuffix(u.text, "\r")
	if n := strings.Count(s, "\r"); n > 1 {
		last := strings.LastIndexByte(strings.TrimRight(s, "\r \t"), '\r')
		if last >= 0 {
			frames := strings.Count(s[:last+1], "\r")
			s = strings.TrimRight(s[last+1:], "\r")
			u.kind, u.frames, u.omitted = cut, frames, 0
			s += fmt.Sprintf(" [... %d frames omitted]", frames)
			u.text = s
		}
	}
	switch {
	case f == aside && len(u.text) > maxAside:
		return trimLong(u, asideHead, asideTail, false)
	case len(u.text) > maxLine:
		return trimLong(u, lineHead, lineTail, true)
	}
	return u
}

func trimLong(u unit, headBytes, tailBytes int, focus bool) unit {
	s := u.text
	head := runeEnd(s, headBytes)
	tail := runeStart(s, len(s)-tailBytes)
	from, to := 0, 0
	if at, _ := firstFailure(s[head:tail]); focus && at >= 0 {
		from = runeStart(s, max(head, head+at-lineFocus))
		to = runeEnd(s, min(tail, head+at+lineFocus))
	}
	var b strings.Builder
	b.WriteString(s[:head])
	if to > from {
		if from > head {
			fmt.Fprintf(&b, " [... %d bytes omitted] ", from-head)
		}
		b.WriteString(s[from:to])
		head = to
	}
	fmt.Fprintf(&b, " [... %d bytes omitted] ", tail-head)
	b.WriteString(s[tail:])
	if b.Len() >= len(s) {
		return u
	}
	u.bytes += tail - head
	if to > from {
		u.bytes += from - runeEnd(s, headBytes)
	}
	u.text, u.kind = b.String(), cut
	return u
}

// firstFailure is where in a long line the first word of a failure stands, or -1.
// One that is announced, by a colon or in a field of its own, goes before those
// that programs are full of.
func firstFailure(s string) (at int, announced bool) {
	best := -1
	for _, w := range []string{"rror", "RROR", "atal", "FATAL", "panic", "xception", "FAILED", "ailed"} {
		for i := 0; i < len(s); {
			k := strings.Index(s[i:], w)
			if k < 0 {
				break
			}
			i += k
			end := i + len(w)
			told := end+1 < len(s) && (s[end] == ':' && s[end+1] == ' ' || s[end] == '"' && s[end+1] == ':' && end+3 < len(s) && (s[end+2] == '"' && s[end+3] != '"' || s[end+2] == '{'))
			switch {
			case told && (!announced || i < best):
				best, announced = i, true
			case !announced && (best < 0 || i < best):
				best = i
			}
			if told || announced && i > best {
				break
			}
			i = end
		}
	}
	return best, announced
}

// runeEnd is the greatest border of a rune that is at most i.
func runeEnd(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	for n := 0; i > 0 && n < utf8.UTFMax && !utf8.RuneStart(s[i]); n++ {
		i--
	}
	return max(i, 0)
}

// runeStart is the least border of a rune that is at least i.
func runeStart(s string, i int) int {
	i = max(i, 0)
	for n := 0; i < len(s) && n < utf8.UTFMax && !utf8.RuneStart(s[i]); n++ {
		i++
	}
	return min(i, len(s))
}
