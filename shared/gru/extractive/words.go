package extractive

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stopWords carry no content: grammar, and the words people open with.
var stopWords = set(wStop)

// contentWords appends to dst the hashes of the distinct content words of s,
// ascending. A token is a run of letters and digits that may hold _ . % $ & -
// inside; words of grammar are left out and one of the endings ing, ed, es, s
// is cut where more than 3 letters stay. A script written without spaces
// gives a word for each character.
func contentWords(dst []uint64, s string) []uint64 { return words(dst, s, false) }

// subjectWordsOf are the content words that hold no digit and frame nothing:
// what a sentence is about, apart from the values that it gives.
func subjectWordsOf(s string) []uint64 { return words(nil, s, true) }

// framing are words by which a statement is made, not what it is about: they
// differ between a rule and its amendment ("we decided that", "from now on",
// "capped at", "limited to") as much as between two rules.
var framing = stems(`now new old current today yesterday tomorrow earlier final rule policy decision decide decided agree agreed
	settle settled amend amended update updated change changed must shall should may might can cannot could need needs have has had
	always never only just still again already please note noted confirm confirmed correct correction understood keep kept keeps
	use used uses using set sets make made let want prefer instead longer anymore run runs running listen listens listening serve
	serves go goes went get gets take takes stay stays stayed stand stands start starts stop stops begin end ends happen happens
	apply applies hold holds cap capped limit limited allow allowed become becomes remain remains put puts raise raised lower
	lowered increase increased decrease decreased reduce reduced move moved moves switch switched bump bumped team everyone`)

func stems(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[string(stem([]byte(w)))] = true
	}
	return out
}

func words(dst []uint64, s string, noDigits bool) []uint64 {
	first := len(dst)
	var buf [64]byte
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		if !wordStart(r) {
			i += n
			continue
		}
		if spaceless(r) {
			dst = append(dst, hashString(s[i:i+n]))
			i += n
			continue
		}
		from, end := i, i+n // end: behind the last letter or digit
		for i += n; i < len(s); i += n {
			r, n = rune(s[i]), 1
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRuneInString(s[i:])
			}
			if wordStart(r) && !spaceless(r) {
				end = i + n
			} else if r != '_' && r != '.' && r != '%' && r != '$' && r != '&' && r != '-' {
				break
			}
		}
		i = end
		word := lower(buf[:0], s[from:end])
		if len(word) <= longestStop && stopWords[string(word)] {
			continue
		}
		if noDigits && (bytes.ContainsAny(word, "0123456789") || framing[string(stem(word))]) {
			continue
		}
		dst = append(dst, hash(stem(word)))
	}
	own := dst[first:]
	slices.Sort(own)
	return dst[:first+len(slices.Compact(own))]
}

// longestStop is the length of the longest stop word, in bytes.
var longestStop = func() int {
	n := 0
	for w := range stopWords {
		n = max(n, len(w))
	}
	return n
}()

func wordStart(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// spaceless reports whether r belongs to a script without spaces.
func spaceless(r rune) bool {
	return r >= 0x3040 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

func lower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return append(dst[:0], strings.ToLower(s)...)
		}
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

var endings = [...]string{"ing", "ed", "es", "s"}

func stem(w []byte) []byte {
	for _, e := range endings {
		if len(w)-len(e) > 3 && string(w[len(w)-len(e):]) == e {
			return w[:len(w)-len(e)]
		}
	}
	return w
}

// FNV-1a, 64 bits: sets are compared by hash, as the chance that two words of
// one stream share one is under 1e-12.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hash(b []byte) uint64 {
	h := uint64(fnvOffset)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

func hashString(s string) uint64 {
	h := uint64(fnvOffset)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// common counts what two ascending sets share.
func common(a, b []uint64) int {
	n := 0
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}
