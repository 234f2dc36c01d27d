package signature

import (
	"strings"
	"unicode"
)

// Normalise is the identity of a message: what changes from run to run is
// masked, what names the failure stays. Versions are masked too, so that the
// same failure of the next release is of the same class.
//
//	/home/ci/b-8f21c/src/a.js:7:8: Cannot find 'x' (took 20 ms)
//	<p>/a.js:<l>: cannot find 'x' (took <t>)
func Normalise(s string) string { return normalise(s, false) }

// NormaliseDetail is Normalise, with versions kept: they tell instances apart.
func NormaliseDetail(s string) string { return normalise(s, true) }

func normalise(s string, versions bool) string {
	if len(s) > maxLine {
		s = cutRune(s, maxLine)
	}
	s = strings.ToLower(stripANSI(s))
	s = spell(s)
	for i := range masks {
		m := &masks[i]
		if m.versions && versions || !m.when(s) {
			continue
		}
		s = m.apply(s)
	}
	return strings.Join(strings.Fields(s), " ")
}

// spell brings spellings of one thing together: npm's old name of an error,
// typographic quotes, rules and bullets.
func spell(s string) string {
	s = strings.ReplaceAll(s, "npm err!", "npm error")
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '‘', '’', '‚', '‛', '′':
			return '\''
		case '“', '”', '„', '«', '»', '″':
			return '"'
		case '–', '—', '‐', '‑', '−':
			return '-'
		case '•', '●', '○', '◯', '▪', '►', '▶', '➤', '➜', '❯', '›', '→', '·', '✕', '✖', '✗', '✘', '×', '❌', '🚨', '⨯', '↳', '⎯', '…', '\ufffd':
			return ' '
		}
		if r >= 0x2500 && r <= 0x25ff || r == 0xfe0f || r == 0x200b || r == 0xfeff { // rules, blocks, geometric shapes; marks without width
			return ' '
		}
		if r >= 0x80 && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
