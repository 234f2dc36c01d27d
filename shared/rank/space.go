package rank

import "github.com/mneme-ai/mneme/shared/memory"

// Defaults are the options of the static table's space.
//
// Weights: on SDE-bench (18 plain tasks against 90 decoys and the task's own
// chats, both legs normalised by their bounds) R@1 is 1.000 at every dense
// weight from 0 to 0.5, 0.944 at 0.6 and 0.889 from 0.7 on; by RRF it is 0.944.
// LoCoMo is best at 0.4 (models/static), so 0.4 stays. The 3 amended tasks have
// R@1 0 at each of them, and 1.000 where succession is known. Figures:
// indextest.TestFusion.
//
// Floor: a cosine of 0.45, or 0.34 of the idf of the question's subject words,
// which is one such word in three. Over chats of SDE-bench, as passages and as
// sentences: of 200 questions of invented words and keyboard noise none pass;
// of 63 real ones (whole, first 10 words, 5 words) 59 or 60; of 16 plain
// questions off topic 1 over 5 chats and 5 over 114, where at 0.40 it is 3 or
// 4. The lower share is for short questions of a small memory ("what is our
// caching policy?" of one sentence about a cache), where missing what is kept
// is worse than showing, with its score, what is near.
func Defaults() Options {
	return Options{DenseWeight: 0.4, LexicalWeight: 0.6, FloorCosine: 0.45, FloorIDF: 0.34}
}

// ForSpace are the options of an embedding space: weights and cosine floor are
// the space's own, as they depend on how its cosines lie. The idf floor belongs
// to the lexical leg and is that of Defaults.
func ForSpace(s memory.Space) Options {
	o := Defaults()
	o.DenseWeight, o.LexicalWeight, o.FloorCosine = s.DenseWeight, 1-s.DenseWeight, s.Floor
	return o
}
