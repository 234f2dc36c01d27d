package extractive

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// Limits and weights of the pick (extractive.md section 5).
const (
	pickSentences  = 6
	pickCharacters = 4000
	pickFloor      = 0.75 // once one is picked
	pickOverlap    = 0.8  // of a sentence's words in one already picked
)

// What a sentence has besides its score (extractive.md section 5).
const (
	pickCost   = 0.5
	isRecap    = 1.0  // it sums up
	afterRecap = 1.5  // it stands behind such a sentence in its message
	atEnd      = 0.25 // it stands in the last two messages
	perWord    = 0.1  // content word
	mostWords  = 10
)

// candidate is a sentence that may be picked.
type candidate struct {
	i     int // in Result.Sentences
	p     float64
	words []uint64
}

// pick chooses the sentences to keep: the best first, the later message before
// the earlier and the earlier sentence before the later where they are equal.
// masks are the cues of ss; last is the index of the second-last message that
// was scored.
func pick(msgs []Message, ss []Sentence, masks []mask, last int) []int {
	// Words are counted where they can lift a sentence over the floor, and
	// everywhere only where none comes so far.
	cands := candidates(msgs, ss, masks, last, pickFloor)
	picked := greedy(msgs, ss, cands)
	if len(picked) == 0 || cands[0].p < pickFloor {
		picked = greedy(msgs, ss, candidates(msgs, ss, masks, last, math.Inf(-1)))
	}
	out := make([]int, len(picked))
	for k, c := range picked {
		out[k] = c.i
	}
	slices.Sort(out)
	return out
}

// candidates are the sentences that can reach floor, the best first.
func candidates(msgs []Message, ss []Sentence, masks []mask, last int, floor float64) []candidate {
	var cands []candidate
	var words []uint64 // of all candidates
	recap, inMessage := false, -1
	for i := range ss {
		s := &ss[i]
		if s.Message != inMessage {
			recap, inMessage = false, s.Message
		}
		c := candidate{i: i, p: s.Score - pickCost}
		if recap {
			c.p += afterRecap
		}
		if masks[i].has(cRecap) {
			recap = true
			if !masks[i].has(cLead) {
				c.p += isRecap
			}
		}
		if s.Message >= last {
			c.p += atEnd
		}
		if c.p+perWord*mostWords < floor {
			continue
		}
		at := len(words)
		words = contentWords(words, plainApostrophes(msgs[s.Message].Text[s.Start:s.End]))
		c.words = words[at:len(words):len(words)]
		c.p += perWord * float64(min(mostWords, len(c.words)))
		cands = append(cands, c)
	}
	slices.SortFunc(cands, func(a, b candidate) int {
		switch {
		case a.p != b.p:
			return cmp.Compare(b.p, a.p)
		case ss[a.i].Message != ss[b.i].Message:
			return ss[b.i].Message - ss[a.i].Message
		}
		return a.i - b.i
	})
	return cands
}

// greedy takes candidates while they are good enough, say something new and
// fit.
func greedy(msgs []Message, ss []Sentence, cands []candidate) []candidate {
	var picked []candidate
	left := pickCharacters
	for _, c := range cands {
		if len(picked) == pickSentences || len(picked) > 0 && c.p < pickFloor {
			break
		}
		s := &ss[c.i]
		n := utf8.RuneCountInString(msgs[s.Message].Text[s.Start:s.End])
		if n > left || covered(c, picked) {
			continue
		}
		left -= n
		picked = append(picked, c)
	}
	return picked
}

// covered reports whether the words of c stand to 80 % in a picked sentence.
func covered(c candidate, picked []candidate) bool {
	for _, p := range picked {
		if len(c.words) > 0 && float64(common(c.words, p.words)) >= pickOverlap*float64(len(c.words)) {
			return true
		}
	}
	return false
}
