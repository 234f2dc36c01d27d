package token

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// nfcVersion is the Unicode version of the Rust crate that Hugging Face
// tokenizers normalises with. Characters that came later neither decompose,
// nor compose, nor are put in order there. What an older version knows is
// stable by Unicode's own promise.
const nfcVersion = "9.0.0"

var known = rangetable.Assigned(nfcVersion)

// nfc is the NFC form of s in Unicode 9.0. norm.NFC alone would not do: it
// knows later characters, and it puts a joiner (U+034F) after 30 combining
// marks, which the reference does not.
func nfc(s string) string {
	n := norm.NFC.QuickSpanString(s)
	if n == len(s) {
		return s // also NFC by the older version: unknown characters only cut runs apart
	}
	out := make([]byte, 0, len(s))
	for {
		for n > 0 && !starts(s[n:]) {
			_, w := utf8.DecodeLastRuneInString(s[:n])
			n -= w
		}
		out = append(out, s[:n]...)
		s = s[n:]
		// One segment: a character and all that may combine with it.
		_, end := utf8.DecodeRuneInString(s)
		for end < len(s) && !starts(s[end:]) {
			_, w := utf8.DecodeRuneInString(s[end:])
			end += w
		}
		out = appendSegment(out, s[:end])
		s = s[end:]
		if n = norm.NFC.QuickSpanString(s); n == len(s) {
			return string(append(out, s...))
		}
	}
}

// starts reports whether the first character of s never combines backwards.
func starts(s string) bool {
	return s[0] < utf8.RuneSelf || norm.NFC.PropertiesString(s).BoundaryBefore()
}

func isKnown(r rune) bool { return r < utf8.RuneSelf || unicode.Is(known, r) }

// mark is a character with its canonical combining class.
type mark struct {
	r   rune
	ccc uint8
}

// appendSegment appends the NFC form of s by the definition (Unicode Standard,
// section 3.11): decompose, order, compose.
func appendSegment(dst []byte, s string) []byte {
	var seq []mark
	for _, r := range s {
		seq = appendDecomposed(seq, r)
	}
	for i := 0; i < len(seq); { // canonical order: stable, between starters
		if seq[i].ccc == 0 {
			i++
			continue
		}
		j := i
		for j < len(seq) && seq[j].ccc != 0 {
			j++
		}
		slices.SortStableFunc(seq[i:j], func(a, b mark) int { return int(a.ccc) - int(b.ccc) })
		i = j
	}
	out := seq[:0]
	starter, last := -1, uint8(0) // last: class of the mark before, since the starter
	for _, m := range seq {
		if starter >= 0 && (len(out) == starter+1 || last < m.ccc) {
			if c, ok := compose(out[starter].r, m.r); ok {
				out[starter].r = c
				continue
			}
		}
		if m.ccc == 0 {
			starter = len(out)
		}
		last = m.ccc
		out = append(out, m)
	}
	for _, m := range out {
		dst = utf8.AppendRune(dst, m.r)
	}
	return dst
}

func appendDecomposed(seq []mark, r rune) []mark {
	if !isKnown(r) {
		return append(seq, mark{r: r})
	}
	for _, d := range string(norm.NFD.Bytes(utf8.AppendRune(nil, r))) {
		m := mark{r: d}
		if isKnown(d) {
			m.ccc = norm.NFD.PropertiesString(string(d)).CCC()
		}
		seq = append(seq, m)
	}
	return seq
}

// compose is the primary composite of two characters, if there is one.
func compose(a, b rune) (rune, bool) {
	if !isKnown(a) || !isKnown(b) {
		return 0, false
	}
	s := norm.NFC.String(string([]rune{a, b}))
	r, n := utf8.DecodeRuneInString(s)
	return r, n == len(s) && isKnown(r)
}
