// Package derived finds text that a memory itself gave out in what comes back
// to it, so that no memory becomes its own evidence.
//
// What a memory gives out is made of its statements, one after the other:
//
//   - Deploys wait for the migration since v2.3. [1f0a77c2]
//   - The cache keeps entries for five minutes. [9c41d0e5]
//
// A passage is such text where it holds, without a word between them, whole
// statements of at least MinWords words together, in any order (a memory's
// statements come and go, so that every memory there ever was, and every list of
// results, is a row of them), or MinWords consecutive words of one statement. At
// either end of a paragraph a row goes on into a part of a statement, as an
// excerpt begins and ends anywhere. A single statement that is broken over
// lines is a passage too, and one with a node suffix right behind it, which nobody
// types. Case, punctuation, list marks, quote marks, strokes, emphasis, line
// breaks, line names and node suffixes do not count, so that wrapping, indenting or
// decorating anew hides nothing.
//
// A log that keeps no text of a statement keeps its Shingle, by which it is
// known as a whole.
//
// Inside a row only whole statements count: a new statement that is put
// together from parts of old ones ("the limit is", "7 jobs") is none.
//
// Invariant: the passages are a function of the text and of the statements
// added before, whose order does not matter. The package keeps no text, reads
// no log and does not know who says a text: a person who restates a rule gives
// evidence, and it is for the caller not to ask.
package derived

import "strings"

// MinWords is how many consecutive words make a passage: people quote a sentence
// or two of what they know, some thirty words, and mean it; forty words in a row
// are a copy.
const MinWords = 40

const (
	// minTokens is the least size of a statement: what is shorter ("Yes.") says
	// nothing, and stands in every text.
	minTokens = 3
	// lineWords is the least size of a single statement that is a passage for
	// being broken over lines: titles and phrases of eight words are rare.
	lineWords = 8
	// A statement of MinWords words or more is indexed by every anchorStep-th
	// run of anchorTokens tokens, so that 16 tokens of it in a row, and
	// MinWords are more, hold one.
	anchorTokens = 8
	anchorStep   = 8
	// sharedAnchors bounds the places of one anchor: what so many statements
	// have in common tells none of them.
	sharedAnchors = 16
)

// Index holds the statements of one stream. The zero value is empty. It is not
// safe for concurrent use.
type Index struct {
	statements []statement
	whole      map[uint64]int32   // hash of a whole statement -> the first such
	others     map[uint64]other   // the same of the shingles
	shingles   int                // how many were added
	starts     map[uint32][]int32 // hash of its first minTokens tokens -> the lengths that occur
	anchors    map[uint64][]place // of long statements
	longest    int                // tokens

	// Working memory of one look at a text.
	text []word
	open bool // a node suffix stands behind the last one
	sums []uint64
	best []int32
	next []int32
}

type statement struct {
	tokens []hash
	words  int32
}

// other is a statement of which only the shingle is known.
type other struct{ id, tokens, words int32 }

type place struct{ statement, at int32 }

// Len is how many statements were added.
func (x *Index) Len() int { return len(x.statements) }

// Add adds a statement.
func (x *Index) Add(text string) {
	x.init()
	ws, _ := words(x.text[:0], text)
	x.text = ws
	id := int32(len(x.statements))
	s := statement{tokens: make([]hash, len(ws))}
	for i := range ws {
		s.tokens[i] = ws[i].hash
	}
	s.words = count(s.tokens)
	x.statements = append(x.statements, s)
	if len(ws) < minTokens {
		return
	}
	full := sum(s.tokens)
	if _, ok := x.whole[full]; ok {
		return // its anchors are the first one's
	}
	x.whole[full] = id
	x.longest = max(x.longest, len(ws))
	x.start(uint32(sum(s.tokens[:minTokens])), int32(len(ws)))
	if s.words < MinWords {
		return
	}
	for at := 0; at+anchorTokens <= len(s.tokens); at += anchorStep {
		a := sum(s.tokens[at : at+anchorTokens])
		if len(x.anchors[a]) < sharedAnchors {
			x.anchors[a] = append(x.anchors[a], place{id, int32(at)})
		}
	}
}

func (x *Index) init() {
	if x.whole == nil {
		x.whole, x.others = map[uint64]int32{}, map[uint64]other{}
		x.starts, x.anchors = map[uint32][]int32{}, map[uint64][]place{}
	}
}

func (x *Index) start(h uint32, tokens int32) {
	if !has(x.starts[h], tokens) {
		x.starts[h] = append(x.starts[h], tokens)
	}
}

func has(list []int32, n int32) bool {
	for _, v := range list {
		if v == n {
			return true
		}
	}
	return false
}

// count is how many words begin in tokens; the first always begins one.
func count(tokens []hash) int32 {
	n := int32(0)
	for i, t := range tokens {
		if i == 0 || t&wordBit != 0 {
			n++
		}
	}
	return n
}

// A run's hash is a polynomial over its tokens, modulo 2^64: the hash of any
// part of a text follows from two sums.
const base = 0x9e3779b97f4a7c15

func step(h uint64, t hash) uint64 { return h*base + uint64(t>>1) + 1 }

func sum(tokens []hash) uint64 {
	h := uint64(0)
	for _, t := range tokens {
		h = step(h, t)
	}
	return h
}

// gap is the text between the token before i and token i.
func (x *Index) gap(text string, i int) string {
	from, to := 0, len(text)
	if i > 0 {
		from = x.text[i-1].to
	}
	if i < len(x.text) {
		to = x.text[i].from
	}
	return text[from:to]
}

// paragraph reports whether a paragraph ends before token i.
func (x *Index) paragraph(text string, i int) bool {
	return i == 0 || i == len(x.text) || blankLine(x.gap(text, i))
}

// border reports whether a sentence may begin or end before token i.
func (x *Index) border(text string, i int) bool {
	return i == 0 || i == len(x.text) || strings.TrimSpace(x.gap(text, i)) != "" || blankLine(x.gap(text, i))
}

// blankLine reports whether s holds a line without anything but a quote mark.
func blankLine(s string) bool {
	_, s, ok := strings.Cut(s, "\n")
	for ok {
		var line string
		if line, s, ok = strings.Cut(s, "\n"); ok && strings.Trim(line, " \t\r>") == "" {
			return true
		}
	}
	return false
}
