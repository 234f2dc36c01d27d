package extractive

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
)

// Relation is how a newer sentence stands to an older one.
type Relation int

const (
	None       Relation = iota // about something else
	Repeat                     // says nothing new; not added
	Related                    // same subject, nothing contradicts
	Supersedes                 // same subject, and the newer one replaces the older
)

// String is the relation's name.
func (r Relation) String() string {
	return [...]string{"none", "repeat", "related", "supersedes"}[r]
}

// Fingerprint is what Relate compares: content words, literal values and the
// parity of negations. It is built once and compared many times; comparing is
// linear in the words and allocates nothing.
type Fingerprint struct {
	words []uint64 // hashes of distinct content words, ascending
	about []uint64 // those without a digit
	vals  []uint64 // hashes of distinct literal values, ascending
	text  uint64   // hash of the whole text, for sentences without words
	neg   bool     // an odd number of negations
}

// FingerprintOf builds the fingerprint of a sentence. Any bytes are accepted.
func FingerprintOf(sentence string) Fingerprint {
	s := plainApostrophes(sentence)
	f := Fingerprint{words: contentWords(nil, s), about: subjectWordsOf(s), text: hashString(strings.TrimSpace(s))}
	if strings.ContainsAny(s, "`'\"“‘0123456789") {
		for _, v := range valPattern.FindAllString(s, -1) {
			f.vals = append(f.vals, hashString(v))
		}
		slices.Sort(f.vals)
		f.vals = slices.Compact(f.vals)
	}
	f.neg = len(negPattern.FindAllStringIndex(s, -1))%2 == 1
	return f
}

var (
	valPattern = lazy.MustCompile(wVal)
	negPattern = lazy.MustCompile("(?i)" + loose(wNeg))
)

// Shares and counts of relation (extractive.md section 5).
const (
	repeatShare  = 0.8 // of the newer sentence's words, to say nothing new
	subjectShare = 0.4 // of the shorter sentence's words, to be about the same
	subjectWords = 4   // that both share, to be about the same
	fewWords     = 3   // under this many only an equal sentence is a repeat

	// parallelShare of the longer sentence's words, and each with a word of its
	// own that is no value: the same form of words about two things, as in "the
	// cart service listens on 6543" and "the profile service listens on 7007".
	// Neither repeats nor replaces the other. An amendment in other words shares
	// less, one in the same words differs in its values alone.
	parallelShare = 0.6
)

// parallel reports whether two sentences of n common words say the same of two
// different things.
func parallel(a, b Fingerprint, n int) bool {
	if float64(n) < parallelShare*float64(max(len(a.words), len(b.words))) {
		return false
	}
	same := common(a.about, b.about)
	return same < len(a.about) && same < len(b.about)
}

// Relate says how newer stands to older, where newer is the later in effective
// time. newerMessageSupersedes is HasSupersede of the whole newer message. The
// older sentence of a Supersedes is only outranked, never to be dropped: an
// amendment of one point also marks a long sentence whose others still hold.
func Relate(newer, older Fingerprint, newerMessageSupersedes bool) Relation {
	a, b := len(newer.words), len(older.words)
	sameVals := slices.Equal(newer.vals, older.vals)
	if a < fewWords || b < fewWords {
		if slices.Equal(newer.words, older.words) && sameVals && newer.neg == older.neg && (a > 0 || newer.text == older.text) {
			return Repeat
		}
		return None
	}
	n := common(newer.words, older.words)
	if parallel(newer, older, n) && !newerMessageSupersedes {
		if n < subjectWords {
			return None
		}
		return Related
	}
	if float64(n) >= repeatShare*float64(a) && newer.neg == older.neg && common(newer.vals, older.vals) == len(newer.vals) {
		return Repeat
	}
	if n < subjectWords || float64(n) < subjectShare*float64(min(a, b)) {
		return None
	}
	if newerMessageSupersedes || !sameVals || newer.neg != older.neg {
		return Supersedes
	}
	return Related
}

// HasSupersede reports whether the message speaks of replacing something said
// before: "from now on", "no longer", "old limit".
func HasSupersede(message string) bool { return supersedePattern.match(plainApostrophes(message)) }

var supersedePattern = fold(wSupersede)

// plainApostrophes replaces the typographic apostrophe, which phones and word
// processors write, by the plain one of the patterns.
func plainApostrophes(s string) string {
	if !strings.Contains(s, "’") {
		return s
	}
	return strings.ReplaceAll(s, "’", "'")
}
