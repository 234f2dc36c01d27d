package forget

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minWord is the least length of a word that is looked for, in characters: shorter
	// ones stand in ids and codes by chance.
	minWord = 5
	// maxWord bounds it: a longer run of letters is a hash or a base64 text.
	maxWord = 40
)

// tokens gives the words of a text in lower case: runs of letters and digits. Of JSON,
// whose escapes would join the letter behind them to a word, an escape is no part of one.
func tokens(text string, json bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1
		end := func(at int) bool {
			if start < 0 {
				return true
			}
			w := text[start:at]
			start = -1
			return yield(strings.ToLower(w))
		}
		for i := 0; i < len(text); {
			r, n := rune(text[i]), 1
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRuneInString(text[i:])
			}
			if json && r == '\\' {
				if !end(i) {
					return
				}
				if i+1 < len(text) && text[i+1] == 'u' {
					n = min(6, len(text)-i)
				} else {
					n = min(2, len(text)-i)
				}
			} else if unicode.IsLetter(r) || unicode.IsDigit(r) {
				if start < 0 {
					start = i
				}
			} else if !end(i) {
				return
			}
			i += n
		}
		end(len(text))
	}
}

// telling reports whether a word may tell a text from others: neither short nor a hash,
// and by count not a word of every day, which is one token of the vocabulary.
func telling(w string, count func(string) int) bool {
	if n := utf8.RuneCountInString(w); n < minWord || n > maxWord {
		return false
	}
	hex, digit, letter := true, false, false
	for _, r := range w {
		d := r >= '0' && r <= '9'
		digit = digit || d
		letter = letter || unicode.IsLetter(r)
		hex = hex && (d || r >= 'a' && r <= 'f')
	}
	if !letter || hex && (digit || len(w) == 8) {
		return false
	}
	return count(" "+w) > 1
}

// wordSet is words that stand in what is forgotten and nowhere else.
type wordSet map[string]bool

// add adds the telling words of a text.
func (s wordSet) add(text string, count func(string) int) {
	for w := range tokens(text, false) {
		if !s[w] && telling(w, count) {
			s[w] = true
		}
	}
}

// without takes the words of a text out.
func (s wordSet) without(text string) {
	if len(s) == 0 {
		return
	}
	for w := range tokens(text, false) {
		delete(s, w)
	}
}

// in reports whether one of the words stands in a text.
func (s wordSet) in(text string) bool { return s.find(text, false) }

func (s wordSet) find(text string, json bool) bool {
	if len(s) == 0 {
		return false
	}
	for w := range tokens(text, json) {
		if s[w] {
			return true
		}
	}
	return false
}

// some are at most n of the words, the longest first: they tell most.
func (s wordSet) some(n int) []string {
	all := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return all[:min(n, len(all))]
}
