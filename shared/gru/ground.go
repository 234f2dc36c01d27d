package gru

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file checks what a model wrote against what it read. A model that
// rewrites a memory may invent, forget or obey; the checks are of form alone, and
// a memory that passes may still be wrong in words that name nothing.
//
//   - grounded: a new sentence whose names (but for its first word, which every
//     sentence writes large), numbers and identifiers stand neither
//     in the section nor in the old memory is dropped.
//   - forgotten: an old sentence must leave its numbers and most of its names in
//     the new memory, unless a new sentence that stands in the section says
//     something else about the same thing, or an edit takes its line out and the
//     section takes it back.
//   - leaked: a memory that holds a run of the prompt's own words is refused.

// fact is what can be checked of a sentence: the words in it that name
// something, in lower case.
type fact struct {
	text     string
	marks    []string
	from, to int // its place in the text it was cut from
}

var (
	// mark matches what may name something: what stands between backticks, figures
	// with commas ("1,500"), and words with the signs inside that figures and
	// identifiers have.
	mark = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("`[^`\n]+`" + `|\d+(?:,\d+)+(?:\.\d+)?\p{L}*|[\p{L}\p{N}_]+(?:[._/:@#+-][\p{L}\p{N}_]+)*`)
	})
	// sentenceEnd ends a sentence: a line end, or a full stop before a blank.
	sentenceEnd = lazy.MustCompile(`[\n]+|[.!?]["')\]]*\s+`)
	idMark      = lazy.MustCompile(`\[[0-9a-f]{8}\]`)
	listSign    = lazy.MustCompile(`^(?:[-*+•]|\d+[.)])\s+`)
)

// factsOf cuts a text into sentences with their marks.
func factsOf(text string) []fact {
	var out []fact
	at := 0
	add := func(to int) {
		s := strings.TrimSpace(text[at:to])
		from := at + strings.Index(text[at:to], s)
		at = to
		if s == "" {
			return
		}
		f := fact{text: s, from: from, to: from + len(s)}
		if len(out) > 0 && sourceIDs.MatchString(s) { // they belong to the sentence before
			f.from = out[len(out)-1].from
			f.text = text[f.from:f.to]
			out = out[:len(out)-1]
		}
		f.marks = marksOf(f.text)
		out = append(out, f)
	}
	for _, e := range sentenceEnd.FindAllStringIndex(text, -1) {
		add(e[1])
	}
	add(len(text))
	return out
}

// sourceIDs matches the ids that stand behind a statement.
var sourceIDs = lazy.MustCompile(`^(?:\[[0-9a-f]{8}\]\s*)+$`)

// marksOf are the words of a sentence that name something.
func marksOf(s string) (out []string) {
	s = listSign.ReplaceAllString(strings.TrimSpace(idMark.ReplaceAllString(s, " ")), "")
	first := true
	for _, w := range mark().FindAllString(s, -1) {
		plain := strings.Trim(w, "`")
		if names(plain, first && w == plain) && !slices.Contains(out, strings.ToLower(plain)) {
			out = append(out, strings.ToLower(plain))
		}
		first = false
	}
	return out
}

// names reports whether a word names something: it holds a digit, a sign inside,
// a capital letter past its first, or begins with one and does not begin the
// sentence.
func names(w string, first bool) bool {
	if strings.ContainsFunc(w, unicode.IsDigit) {
		return true
	}
	if strings.ContainsAny(w, "_/@#:.") {
		return true
	}
	r, n := utf8.DecodeRuneInString(w)
	if strings.ContainsFunc(w[n:], unicode.IsUpper) {
		return true
	}
	return !first && unicode.IsUpper(r) && len(w) > 1
}

// lexicon holds the words of texts, to look marks up in.
type lexicon struct {
	words map[string]bool
	stems map[string]bool // of words: "retry" for "retries"
	text  string          // in lower case, for marks of several words
}

func lexiconOf(texts ...string) lexicon {
	l := lexicon{words: map[string]bool{}, stems: map[string]bool{}}
	var b strings.Builder
	for _, t := range texts {
		t = strings.ToLower(t)
		b.WriteString(t)
		b.WriteByte('\n')
		for _, w := range mark().FindAllString(t, -1) {
			w = strings.Trim(w, "`")
			l.words[w], l.words[plainNumber(w)] = true, true
			for _, part := range signParts(w) {
				l.words[plainNumber(part)] = true
				if p := wordParts(part); len(p) == 2 { // "60s" tells 60; a hash tells no figures
					l.words[plainNumber(p[0])], l.words[plainNumber(p[1])] = true, true
				}
			}
			if m := twoNumbers.FindStringSubmatch(w); m != nil {
				l.words[m[1]], l.words[m[2]] = true, true
			}
		}
	}
	for w := range l.words {
		l.stems[stem(w)] = true
	}
	l.text = b.String()
	return l
}

// stem is a word without an English plural's ending.
func stem(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

// about reports whether the texts hold a word, in the singular or the plural.
func (l *lexicon) about(w string) bool { return l.stems[stem(w)] || l.has(w) }

// has reports whether the texts hold a mark: as a word, its parts each as a word
// ("60s" of "60 s", "retry-go" of "retry.go"), or as it stands. A figure is one
// thing with the signs in it: 3.5 is not made of a 3 and a 5.
func (l *lexicon) has(m string) bool {
	if l.words[m] || l.words[plainNumber(m)] {
		return true
	}
	if strings.ContainsFunc(m, func(r rune) bool { return !letterOrDigit(r) }) && l.contains(m) {
		return true
	}
	parts := wordParts(m)
	if len(parts) < 2 {
		return false
	}
	for _, p := range parts {
		if !l.words[plainNumber(p)] {
			return false
		}
	}
	return true
}

// contains reports whether the text holds m as a whole: not as the end of a longer
// word, nor as a part of a longer figure.
func (l *lexicon) contains(m string) bool {
	figure := !strings.ContainsFunc(m, unicode.IsLetter)
	// joins reports whether the runes beside m, the nearer first, belong to it.
	joins := func(edge, near, far rune) bool {
		switch {
		case !letterOrDigit(edge):
			return false
		case !figure:
			return letterOrDigit(near)
		}
		return unicode.IsDigit(near) || strings.ContainsRune(numberSigns, near) && unicode.IsDigit(far)
	}
	first, _ := utf8.DecodeRuneInString(m)
	last, _ := utf8.DecodeLastRuneInString(m)
	for at := 0; ; {
		i := strings.Index(l.text[at:], m)
		if i < 0 || m == "" {
			return false
		}
		i += at
		before, after := l.text[:i], l.text[i+len(m):]
		b1, n := utf8.DecodeLastRuneInString(before)
		b2, _ := utf8.DecodeLastRuneInString(before[:len(before)-n])
		a1, n := utf8.DecodeRuneInString(after)
		a2, _ := utf8.DecodeRuneInString(after[n:])
		if !joins(first, b1, b2) && !joins(last, a1, a2) {
			return true
		}
		at = i + 1
	}
}

// numberSigns stand between the digits of one figure: 3.5, 1,500, 02:30, 2026-11-30.
const numberSigns = "._,/:@#+-"

func letterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

var (
	thousands = lazy.MustCompile(`^\d{1,3}(?:,\d{3})+(?:\.\d+)?`)
	decimals  = lazy.MustCompile(`^(\d+)\.(\d*?)0+(\p{L}*)$`)
	// twoNumbers matches a range or a ratio, which tells two figures.
	twoNumbers = lazy.MustCompile(`^(\d+)[-/](\d+)$`)
)

// plainNumber is a figure without the commas between its thousands and the zeros
// behind its decimals: 1,500 and 1500, 3.0 and 3 are the same. Other words stay.
func plainNumber(w string) string {
	if w == "" || w[0] < '0' || w[0] > '9' {
		return w
	}
	if t := thousands.FindString(w); t != "" {
		w = strings.ReplaceAll(t, ",", "") + w[len(t):]
	}
	if m := decimals.FindStringSubmatch(w); m != nil {
		if w = m[1]; m[2] != "" {
			w += "." + m[2]
		}
		w += m[3]
	}
	return w
}

// wordParts cuts a mark at its signs and between digits and letters; a figure stays
// whole.
func wordParts(m string) []string { return cutMark(m, true) }

// signParts cuts a mark at its signs alone; a figure stays whole.
func signParts(m string) []string { return cutMark(m, false) }

func cutMark(m string, letters bool) (out []string) {
	runes := []rune(m)
	from := 0
	flush := func(i int) {
		if i > from {
			out = append(out, string(runes[from:i]))
		}
		from = i
	}
	for i, r := range runes {
		switch {
		case letterOrDigit(r):
			if letters && i > from && letterOrDigit(runes[i-1]) && unicode.IsDigit(r) != unicode.IsDigit(runes[i-1]) {
				flush(i)
			}
		case i > 0 && i+1 < len(runes) && unicode.IsDigit(runes[i-1]) && unicode.IsDigit(runes[i+1]) && strings.ContainsRune(numberSigns, r):
		default:
			flush(i)
			from = i + 1
		}
	}
	flush(len(runes))
	return out
}

// Ground is a candidate without the sentences that name what neither the section
// nor the old memory holds, and how many those are. Sentences that stand in the
// old memory are never looked at. Where such a sentence says an old one in other
// words, and nothing else in the candidate does, the old one stands in its place,
// byte for byte: an invention that is added to a fact does not take the fact away.
func Ground(candidate, section, old string) (text string, dropped int) {
	known := lexiconOf(section, old)
	before := factsOf(old)
	kept := map[string]bool{}
	for _, f := range before {
		kept[f.text] = true
	}
	var bad []fact
	var rest strings.Builder // what stays of the candidate
	for _, f := range factsOf(candidate) {
		if !kept[f.text] && slices.ContainsFunc(append(memory.SourceIDs(f.text), f.marks...), func(m string) bool { return !known.has(m) }) {
			bad = append(bad, f)
			continue
		}
		rest.WriteString(f.text + "\n")
	}
	if len(bad) == 0 {
		return strings.TrimSpace(candidate), 0
	}
	now := lexiconOf(rest.String())
	back := map[int]bool{} // old sentences that stand again
	var b strings.Builder
	at := 0
	for _, f := range bad {
		from, to := f.from, f.to
		b.WriteString(candidate[at:from])
		said := lexiconOf(f.text)
		var again []string
		for i, o := range before {
			if !back[i] && rewords(o, &said) && !stands(o, &now) {
				back[i] = true
				again = append(again, o.text)
			}
		}
		if b.WriteString(strings.Join(again, "\n")); again == nil {
			for to < len(candidate) && candidate[to] == ' ' {
				to++
			}
			if (from == 0 || candidate[from-1] == '\n') && to < len(candidate) && candidate[to] == '\n' {
				to++ // it was alone in its line
			}
		}
		at = to
	}
	b.WriteString(candidate[at:])
	return strings.TrimSpace(b.String()), len(bad)
}

// rewords reports whether the words of one sentence, as a lexicon, say an old
// sentence: they hold most of what it names and of its words.
func rewords(o fact, said *lexicon) bool { return 2*shared(o, said) > len(wordsOf(o)) }

// stands reports whether a text, as a lexicon, holds all words of a sentence.
func stands(o fact, now *lexicon) bool { return shared(o, now) == len(wordsOf(o)) }

// wordsOf are the marks and the content words of a sentence, each once.
func wordsOf(f fact) []string {
	out := slices.Clone(f.marks)
	for _, w := range contentWords(f.text) {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// shared is how many of a sentence's words a lexicon holds.
func shared(f fact, l *lexicon) (n int) {
	for _, w := range wordsOf(f) {
		if l.has(w) {
			n++
		}
	}
	return n
}

// A new sentence is about the same thing as an old one where it shares half of what
// that is about, and two words of it at least: "retries stop after 3 attempts" and
// "cap retries at 5 attempts". An edit says itself which line it means, so that a
// quarter is enough there. It must say something else, too: name what the old one
// does not, or, where it shares three quarters, use another word for it.
const (
	aboutWords   = 2
	aboutShare   = 0.5
	editShare    = 0.25
	rewordsShare = 0.75
)

// takesBack matches the words by which a statement is taken back.
var takesBack = lazy.MustCompile(`(?i)\b(?:no longer|any ?more|removed|dropped|cancell?ed|revoked|obsolete|replaced|instead|` +
	`nicht mehr|entfällt|statt(?:dessen)?|ersetzt|gestrichen)\b`)

// Forgotten is the first sentence of the old memory that the candidate lost; ""
// where every one lives on, is superseded by a new sentence of the candidate, or
// stands in a line that one of the edits changes for a reason that the section
// gives. A new sentence stands for one old line: facts about like things are not
// all lost to one more of them. edits are those that made the candidate; none where
// it was written anew.
func Forgotten(candidate, section, old string, edits ...Edit) string {
	now, read, known := lexiconOf(candidate), lexiconOf(section), lexiconOf(section, old)
	was := map[string]bool{}
	for _, f := range factsOf(old) {
		was[memory.Fact(f.text)] = true
	}
	is := map[string]bool{}
	fresh := func(text string) (out []fact) { // new sentences that name nothing unread
		for _, g := range factsOf(text) {
			if !was[memory.Fact(g.text)] && !slices.ContainsFunc(g.marks, func(m string) bool { return !known.has(m) }) {
				out = append(out, g)
			}
		}
		return out
	}
	for _, g := range factsOf(candidate) {
		is[memory.Fact(g.text)] = true
	}
	news := fresh(candidate)
	stands := make([]int, len(news)) // the old line, from 1, that a new sentence stands for
	for i, line := range memory.Lines(old) {
		for _, f := range factsOf(line) {
			if is[memory.Fact(f.text)] || lives(f, &now) {
				continue
			}
			back := takenBack(f, section, &read)
			if slices.ContainsFunc(edits, func(e Edit) bool {
				return e.Line == i+1 && (back || slices.ContainsFunc(fresh(e.Text), func(g fact) bool { return supersedes(g, f, editShare, back, &read) > 0 }))
			}) {
				continue
			}
			best, at := 0.0, -1
			for k, g := range news {
				if stands[k] != 0 && stands[k] != i+1 {
					continue
				}
				if part := supersedes(g, f, aboutShare, back, &read); part > best {
					best, at = part, k
				}
			}
			if at < 0 {
				return f.text
			}
			stands[at] = i + 1
		}
	}
	return ""
}

// number reports whether a mark is a figure, with or without a unit.
func number(m string) bool { return m[0] >= '0' && m[0] <= '9' }

// lives reports whether a text, as a lexicon, holds all numbers of a sentence and
// half of its names; half of its words where it names nothing, and one where it
// holds figures alone, which may stand anywhere.
func lives(f fact, now *lexicon) bool {
	names, held := 0, 0
	for _, m := range f.marks {
		switch has := now.has(m); {
		case number(m) && !has:
			return false
		case !number(m):
			names++
			held += b2i(has)
		}
	}
	if names > 0 {
		return 2*held >= names
	}
	words := contentWords(f.text)
	n := 0
	for _, w := range words {
		n += b2i(now.about(w))
	}
	if len(f.marks) > 0 {
		return n >= min(1, len(words))
	}
	return 2*n >= len(words)
}

// mostly reports whether a lexicon holds half of what a sentence names, or of its
// words where it names nothing.
func mostly(f fact, l *lexicon) bool {
	marks := f.marks
	if len(marks) == 0 {
		marks = contentWords(f.text)
	}
	n := 0
	for _, m := range marks {
		n += b2i(l.has(m))
	}
	return 2*n >= len(marks)
}

// supersedes is the share of what an old sentence is about that a new one speaks of,
// where that says something else about it and the section said it; else 0. back: the
// section takes the old one back, so that a sentence that does so too need not name
// anything.
func supersedes(g, f fact, share float64, back bool, read *lexicon) float64 {
	about := topics(f)
	said, was := lexiconOf(g.text), lexiconOf(f.text)
	n := 0
	for _, w := range about {
		n += b2i(said.about(w))
	}
	if n == 0 {
		return 0
	}
	part := float64(n) / float64(len(about))
	brings := func(w string) bool { return !was.about(w) && read.has(w) }
	least := min(aboutWords, len(about))
	if share < aboutShare {
		least = 1
	}
	switch {
	case back && takesBack.MatchString(g.text):
		return part
	case n < least || part < share:
		return 0
	case slices.ContainsFunc(g.marks, brings), part >= rewordsShare && slices.ContainsFunc(plainWords(g.text, 3), brings):
		return part
	}
	return 0
}

// takenBack reports whether a section takes a sentence back: it holds half of what
// that is about and most of what it names, and a word of taking back in a line that
// speaks of it.
func takenBack(f fact, section string, read *lexicon) bool {
	about := topics(f)
	if len(about) == 0 {
		return false
	}
	n, held := 0, 0
	for _, w := range about {
		n += b2i(read.about(w))
	}
	for _, m := range f.marks {
		held += b2i(read.has(m))
	}
	if 2*n < len(about) || 2*held < len(f.marks)+min(1, len(f.marks)) {
		return false
	}
	for line := range strings.Lines(section) {
		if !takesBack.MatchString(line) {
			continue
		}
		if l := lexiconOf(line); slices.ContainsFunc(about, l.about) {
			return true
		}
	}
	return false
}

// topics are what a sentence is about: its names and words, without figures. Where
// it has no long words the short ones count: "the ban is 60 s".
func topics(f fact) (out []string) {
	for _, m := range f.marks {
		if !number(m) {
			out = append(out, m)
		}
	}
	words := contentWords(f.text)
	if len(words) == 0 {
		words = plainWords(f.text, 3)
	}
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// contentWords are the words of a sentence of four letters and more, in lower
// case: shorter ones are mostly the grammar's.
func contentWords(s string) []string { return plainWords(s, 4) }

// plainWords are the words of a sentence of so many letters and more, in lower
// case, each once, without the grammar's and source ids.
func plainWords(s string, letters int) (out []string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(memory.WithoutSourceIDs(s)), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if utf8.RuneCountInString(w) >= letters && !grammar[w] && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// grammar are words of three letters and more that stand in any sentence.
var grammar = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`about after again also because been before being both could does doing down during each
		every from have having here into itself just made make more most must need never only other over same should since some
		such than that their them then there these they this those through under until upon very want were what when where which
		while will with within without would your
		all and any are but can for had has her his its may new nor not now off one our out per she the too was who you`) {
		m[w] = true
	}
	return m
}()

// leakWords is how many words in a row of the prompt make a leak: the longest
// phrase that it shares with ordinary notes is far shorter.
const leakWords = 8

// Leaked reports whether a text holds a run of the instructions' words.
func Leaked(text string, instructions ...string) bool {
	own := strings.Fields(strings.ToLower(text))
	if len(own) < leakWords {
		return false
	}
	body := " " + strings.Join(own, " ") + " "
	for _, in := range instructions {
		words := strings.Fields(strings.ToLower(in))
		for i := 0; i+leakWords <= len(words); i++ {
			if strings.Contains(body, " "+strings.Join(words[i:i+leakWords], " ")+" ") {
				return true
			}
		}
	}
	return false
}
