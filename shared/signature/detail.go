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
		if d.orNext {
			return t.detailOf(detail{how: next}, nil, i)
		}
	case below:
		for j := i + 1; j < len(t.lines)-1 && j <= i+n; j++ {
			if re().MatchString(t.lines[j].text) {
				return strings.TrimSpace(t.lines[j+1].text)
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

// paragraph is the first sentence of a message's body, which its tool wraps at
// the terminal's width: joined again, it is the same at every width. Places and
// source lines in it are left out. Without a full stop it ends where the body
// does: at a blank line, at the end of its frame, where end matches, or before
// the next message.
func (t *text) paragraph(i, n int, end string, re func() *regexp.Regexp) string {
	var out []string
	for j := i + 1; j < len(t.lines) && j <= i+n && len(out) < 12; j++ {
		s := strings.TrimSpace(t.lines[j].text)
		if t.lines[j].mark != plain || s == "" && len(out) > 0 && !strings.HasSuffix(out[len(out)-1], ":") {
			break
		}
		if s == "" || place(s) {
			continue
		}
		if messageStart(s) || end != "" && re().MatchString(t.lines[j].text) {
			break
		}
		k := sentence(s)
		if out = append(out, s[:k]); k < len(s) || s[k-1] == '.' {
			break
		}
	}
	return strings.Join(out, " ")
}

// sentence is the end of the first sentence of s: behind a full stop that a
// capital or a quote follows; all of s where there is none.
func sentence(s string) int {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '.' && s[i+1] == ' ' && (s[i+2] >= 'A' && s[i+2] <= 'Z' || s[i+2] == '"' || s[i+2] == ' ') {
			return i + 1
		}
	}
	return len(s)
}

func messageStart(s string) bool {
	return strings.HasPrefix(s, "Error:") || strings.HasPrefix(s, "Warning:") || strings.HasPrefix(s, "CMake ") || strings.HasPrefix(s, "-- ") || strings.HasPrefix(s, "##[")
}

var placeLine = lazy(`^(?:with [\w.\["'/\]-]+,?$|on .+ line \d+(?:,.*)?:?$|\d+: |\(?source code not available|├|while calling|Call Stack|[\w/.-]+:\d+ \()`)

// place reports whether a line of a message says where, not what.
func place(s string) bool { return placeLine().MatchString(s) }
