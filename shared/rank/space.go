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
// Floor, the share of questions that pass, over the same chats as passages and
// as sentences: of 600 questions of invented words and keyboard noise at most
// 0.005; of 63 real ones (whole, first 10 words, 5 words) at least 0.95; of 20
// plain questions off topic 0.15 to 0.20, 0 over 10 chats. At an idf share of
// 0.30 off-topic ones reach 0.35; at a cosine of 0.50 real ones fall to 0.81.
func Defaults() Options {
	return Options{DenseWeight: 0.4, LexicalWeight: 0.6, FloorCosine: 0.45, FloorIDF: 0.40}
}

// ForSpace are the options of an embedding space: weights and cosine floor are
// the space's own, as they depend on how its cosines lie. The idf floor belongs
// to the lexical leg and is that of Defaults.
func ForSpace(s memory.Space) Options {
	o := Defaults()
	o.DenseWeight, o.LexicalWeight, o.FloorCosine = s.DenseWeight, 1-s.DenseWeight, s.Floor
	return o
}
