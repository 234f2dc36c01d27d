package bleveindex

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"

	"github.com/mneme-ai/mneme/shared/index"
)

// The analysis is its own, as code is not prose: a path, an identifier and an
// image tag are found whole and by their parts, and an error code is exact.
//
//	getUserById       getuserbyid get user by id
//	get_user_by_id    getuserbyid get user by id
//	src/app.ts        src/app.ts app.ts src app ts
//	node:20-alpine    node:20-alpine 20alpine node 20 alpine
//	TS2322            ts2322, and the code TS2322
//	C++               c++
//	retries           retri (Porter2), as retry
//	東京都            東京 京都

const (
	// maxWhole is the longest whole token that is indexed, in bytes: longer
	// than a sha256 in hex, shorter than a minified line.
	maxWhole = 128
	// maxParts of one token are indexed. A token of more is minified code or
	// data, not a name.
	maxParts = 64
	// maxPart is the longest part: a sha256 in hex fits, a base64 blob does not.
	maxPart = 64
)

// word is one word of a text with the terms it is found by.
type word struct {
	st     *stemmer
	parts  []string // each a word of its own
	wholes []string // the word as one, where that is not the only part
	code   string   // error code or constant as written; "" for others
	stop   bool     // a function word: says nothing about what is asked
}

// words calls fn for each word of text, in order. The word is fn's only until
// it returns.
func (st *stemmer) words(text string, fn func(w *word)) {
	w := word{st: st}
	start := -1    // of the running token
	var cjk []rune // the running run of CJK characters
	flush := func(end int) {
		if start >= 0 {
			if w.fill(text[start:end]) {
				fn(&w)
			}
			start = -1
		}
		if len(cjk) > 0 {
			w.reset()
			w.parts = bigrams(w.parts, cjk)
			cjk = cjk[:0]
			fn(&w)
		}
	}
	for i, r := range text {
		switch {
		case ideograph(r):
			if start >= 0 {
				flush(i)
			}
			cjk = append(cjk, r)
		case tokenRune(r):
			if len(cjk) > 0 {
				flush(i)
			}
			if start < 0 {
				start = i
			}
		default:
			flush(i)
		}
	}
	flush(len(text))
}

func ideograph(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// tokenRune reports whether r may stand inside a token. Anything else ends it:
// space, quotes, brackets, operators.
func tokenRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(inner, r)
	}
	return r == '’' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// inner joins what people write as one: paths, versions, tags, flags, C++.
const inner = "_-./:@+#\\'"

func bigrams(dst []string, run []rune) []string {
	if len(run) == 1 {
		return append(dst, string(run))
	}
	for i := range len(run) - 1 {
		dst = append(dst, string(run[i:i+2]))
	}
	return dst
}

func (w *word) reset() {
	w.parts, w.wholes = w.parts[:0], w.wholes[:0]
	w.code, w.stop = "", false
}

// fill analyses one token and reports whether anything is left of it.
func (w *word) fill(tok string) bool {
	w.reset()
	lead := strings.TrimLeft(tok, inner)
	prefix := tok[:len(tok)-len(lead)]
	core := strings.TrimRight(lead, inner)
	if core == "" {
		return false
	}
	suffix := lead[len(core):]
	core = fold(core)

	if name := operatorName(core, suffix); name != "" { // C++, C#, F#
		w.parts = append(w.parts, name)
		return true
	}
	if plain(core) && prefix == "" { // most words of a text
		w.part(core)
		w.stop = len(w.parts) > 0 && stopWords[w.parts[0]]
		w.code = index.Code(core)
		return len(w.parts) > 0
	}
	w.code = index.Code(core)
	core = apostrophes(core)
	if marked := prefix != "" && strings.ContainsRune("#@.", rune(prefix[len(prefix)-1])); marked && !strings.ContainsAny(core, "/\\") {
		w.whole(prefix[len(prefix)-1:] + strings.ToLower(core)) // #tag, @name, .env
	}
	w.path(core)
	w.stop = len(w.parts) == 1 && len(w.wholes) == 0 && stopWords[strings.ToLower(core)]
	return len(w.parts) > 0 || len(w.wholes) > 0
}

func (w *word) whole(s string) {
	if s == "" || len(s) > maxWhole || len(w.wholes) == maxParts {
		return
	}
	for _, x := range w.wholes {
		if x == s {
			return
		}
	}
	for _, x := range w.parts {
		if x == s {
			return
		}
	}
	w.wholes = append(w.wholes, s)
}

// path takes a token apart at slashes, then its segments.
func (w *word) path(tok string) {
	if !strings.ContainsAny(tok, "/\\") {
		w.segment(tok)
		return
	}
	w.whole(strings.ToLower(strings.ReplaceAll(tok, "\\", "/")))
	for seg := range strings.FieldsFuncSeq(tok, func(r rune) bool { return r == '/' || r == '\\' }) {
		w.segment(strings.Trim(seg, inner))
	}
}

// segment takes a name with dots, colons and the like apart, then its names.
func (w *word) segment(seg string) {
	const joints = ".:@+#"
	if !strings.ContainsAny(seg, joints) {
		w.name(seg)
		return
	}
	w.whole(strings.ToLower(seg))
	for name := range strings.FieldsFuncSeq(seg, func(r rune) bool { return strings.ContainsRune(joints, r) }) {
		w.name(name)
	}
}

// name takes an identifier apart: snake, kebab and camel case. As one word all
// three are spelt alike, so that getUserById is get_user_by_id.
func (w *word) name(name string) {
	from := 0
	humps := 0
	one := index.Code(name) != "" // E0308 is one
	var prev rune
	cutAt := func(end int) {
		if end > from {
			w.part(name[from:end])
			humps++
		}
		from = end
	}
	for i, r := range name {
		switch {
		case r == '_' || r == '-':
			cutAt(i)
			from = i + 1
		case unicode.IsUpper(r) && prev != 0 && (unicode.IsLower(prev) || unicode.IsDigit(prev) || unicode.IsUpper(prev) && nextLower(name[i:])):
			if !one {
				cutAt(i)
			}
		}
		prev = r
	}
	cutAt(len(name))
	if humps > 1 {
		if joined := joiners.Replace(name); len(joined) <= maxWhole {
			w.whole(w.st.term(joined))
		}
	}
}

// nextLower reports whether the rune after the first of s is lower case, as in
// HTTP|Server.
func nextLower(s string) bool {
	_, n := utf8.DecodeRuneInString(s)
	r, _ := utf8.DecodeRuneInString(s[n:])
	return unicode.IsLower(r)
}

func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i == 0 && c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return true
}

func (w *word) part(s string) {
	if s != "" && len(s) <= maxPart && len(w.parts) < maxParts { // an accent alone folds to nothing
		w.parts = append(w.parts, w.st.term(s))
	}
}

var (
	joiners = strings.NewReplacer("_", "", "-", "")
	quotes  = strings.NewReplacer("'", "", "’", "")
)

// apostrophes drops them: don't is dont, user's is users and so user.
func apostrophes(s string) string {
	if strings.ContainsAny(s, "'’") {
		return quotes.Replace(s)
	}
	return s
}

// fold drops accents and width variants: café is cafe, ＡＢＣ is ABC.
func fold(s string) string {
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			continue
		}
		var b strings.Builder
		for _, r := range norm.NFKD.String(s) {
			if !unicode.Is(unicode.Mn, r) {
				b.WriteRune(r)
			}
		}
		return norm.NFC.String(b.String())
	}
	return s
}

// operatorName is the lower-case name of a language that ends in operators:
// one or two letters and ++ or #.
func operatorName(core, suffix string) string {
	if len(core) > 2 {
		return ""
	}
	for i := range len(core) {
		if c := core[i] | 0x20; c < 'a' || c > 'z' {
			return ""
		}
	}
	switch {
	case strings.HasPrefix(suffix, "++"):
		return strings.ToLower(core) + "++"
	case strings.HasPrefix(suffix, "#"):
		return strings.ToLower(core) + "#"
	}
	return ""
}

// stemmer is Porter2 with a cache, as it takes about 1 µs a word and the words
// of texts repeat. It is safe for concurrent use.
type stemmer struct {
	mu sync.RWMutex
	m  map[string]string
}

// maxStems entries are about 4 MB; the cache starts again when full.
const maxStems = 1 << 16

func newStemmer() *stemmer { return &stemmer{m: map[string]string{}} }

func (st *stemmer) stem(s string) string {
	if len(s) < 3 {
		return s
	}
	st.mu.RLock()
	out, ok := st.m[s]
	st.mu.RUnlock()
	if ok {
		return out
	}
	out = porter(s)
	st.mu.Lock()
	if len(st.m) >= maxStems {
		clear(st.m)
	}
	st.m[strings.Clone(s)] = out
	st.mu.Unlock()
	return out
}

func porter(s string) string {
	env := snowballstem.NewEnv(s)
	english.Stem(env)
	return strings.Clone(env.Current())
}

// term is s in lower case, stemmed when it is letters alone.
func (st *stemmer) term(s string) string {
	s = strings.ToLower(s)
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return s
		}
	}
	return st.stem(s)
}

// stopWords are index.FunctionWords, and their stems.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range index.FunctionWords() {
		m[porter(w)] = true
		m[w] = true
	}
	return m
}()
