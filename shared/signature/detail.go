package signature

import (
	"regexp"
	"strings"
)

// defaults of how far a detail is looked for, in lines.
const (
	nearLines = 12
	paraLines = 24
)

// detailOf finds a rule's detail for the root line at i.
func (t *text) detailOf(d detail, re func() *regexp.Regexp, i int) string {
	n := d.lines
	switch d.how {
	case next:
		if n == 0 {
			n = 3
		}
		for j := i + 1; j < len(t.lines) && j <= i+n; j++ {
			if s := strings.TrimSpace(t.lines[j].text); s != "" {
				return s
			}
		}
	case after:
		if n == 0 {
			n = nearLines
		}
		for j := i + 1; j < len(t.lines) && j <= i+n; j++ {
			if s, ok := group1(re(), t.lines[j].text); ok {
				return s
			}
		}
	case before:
		if n == 0 {
			n = nearLines
		}
		for j := i - 1; j >= 0 && j >= i-n; j-- {
			if s, ok := group1(re(), t.lines[j].text); ok {
				return s
			}
		}
	case within:
		// Near the root first, then anywhere.
		for j := i; j < len(t.lines) && j <= i+200; j++ {
			if s, ok := group1(re(), t.lines[j].text); ok {
				return s
			}
		}
		for j := i - 1; j >= 0 && j >= i-200; j-- {
			if s, ok := group1(re(), t.lines[j].text); ok {
				return s
			}
		}
	case para:
		if n == 0 {
			n = paraLines
		}
		return t.paragraph(i, n, d.re, re)
	}
	return ""
}

// paragraph is the body of a message that its tool wraps at the terminal's
// width: joined again, it is the same at every width. Places and source lines
// in it are left out, and it ends where d.re matches, at the end of its frame,
// or before the next message.
func (t *text) paragraph(i, n int, end string, re func() *regexp.Regexp) string {
	var out []string
	blank := 0
	for j := i + 1; j < len(t.lines) && j <= i+n; j++ {
		s := strings.TrimSpace(t.lines[j].text)
		if s == "" {
			blank++
			if blank == 2 && len(out) > 0 {
				break
			}
			continue
		}
		if messageStart(s) || t.lines[j].mark == isError || end != "" && re().MatchString(t.lines[j].text) {
			break
		}
		if place(s) {
			blank = 0
			continue
		}
		blank = 0
		out = append(out, s)
		if len(out) == 12 {
			break
		}
	}
	return strings.Join(out, " ")
}

func messageStart(s string) bool {
	return strings.HasPrefix(s, "Error:") || strings.HasPrefix(s, "Warning:") || strings.HasPrefix(s, "CMake ") || strings.HasPrefix(s, "-- ") || strings.HasPrefix(s, "##[")
}

var placeLine = lazy(`^(?:with [\w.\["'/\]-]+,?$|on .+ line \d+(?:,.*)?:?$|\d+: |\(?source code not available|├|while calling|Call Stack|[\w/.-]+:\d+ \()`)

// place reports whether a line of a message says where, not what.
func place(s string) bool { return placeLine().MatchString(s) }
