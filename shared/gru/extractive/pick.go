package extractive

import (
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
	cands := make([]candidate, 0, len(ss))
	recap, inMessage := false, -1
	for i := range ss {
		s := &ss[i]
		if s.Message != inMessage {
			recap, inMessage = false, s.Message
		}
		text := msgs[s.Message].Text[s.Start:s.End]
		c := candidate{i: i, words: contentWords(plainApostrophes(text))}
		c.p = s.Score - 0.5 + 0.1*float64(min(10, len(c.words)))
		if recap {
			c.p += 1.5
		}
		if masks[i].has(cRecap) {
			recap = true
			if !masks[i].has(cLead) {
				c.p++
			}
		}
		if s.Message >= last {
			c.p += 0.25
		}
		cands = append(cands, c)
	}
	slices.SortStableFunc(cands, func(a, b candidate) int {
		switch {
		case a.p != b.p:
			if a.p > b.p {
				return -1
			}
			return 1
		case ss[a.i].Message != ss[b.i].Message:
			return ss[b.i].Message - ss[a.i].Message
		}
		return a.i - b.i
	})
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
	out := make([]int, len(picked))
	for k, c := range picked {
		out[k] = c.i
	}
	slices.Sort(out)
	return out
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
