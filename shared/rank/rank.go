// Package rank fuses what the dense and the lexical leg found into one ranking
// that explains itself, and measures rankings.
//
// Invariant: the same input gives the same order, whatever the order of the
// input; no result is NaN; a score does not depend on which other nodes were
// found. Every score part is kept, so that a reader can check the sum.
//
// The package is pure: no index, no clock, no model. Which spaces exist and
// what their weights are is the caller's to say.
package rank

import "github.com/mneme-ai/mneme/shared/memory"

// Scored is one node as one leg found it, with the leg's raw score.
type Scored struct {
	ID memory.SHA
	// Score is the raw cosine (dense, [-1,1]) or the raw BM25 score (lexical).
	Score float64
	// Max is the upper bound of Score for this query (lexical only): it does
	// not depend on what was found. 0 means unknown; then the leg's greatest
	// score stands in.
	Max float64
	// IDFShare is the share of the query's idf that matched (lexical only), [0,1].
	IDFShare float64
}

// Options says how to fuse. Start from Defaults or from a space's own values.
type Options struct {
	// DenseWeight and LexicalWeight are each >= 0 and sum to 1 (see Validate).
	// Others are scaled to sum to 1; both 0 stand for those of Defaults.
	DenseWeight   float64
	LexicalWeight float64
	// RRF fuses by rank instead of by score.
	RRF bool
	// A leg that failed (timed out, no model): the other has weight 1 and the
	// answer is degraded. A leg that answered with nothing has not failed.
	DenseFailed bool
	// LexicalOnly: the question names things rather than describes them, so that
	// no dense leg was asked (brief U2). Nothing is degraded.
	LexicalOnly   bool
	LexicalFailed bool
	// DenseOnly: only the dense leg was asked, as the caller wished.
	DenseOnly bool
	// The question is known when some hit's cosine is at least FloorCosine or
	// its idf share at least FloorIDF; else nothing is returned. Of a known
	// question, hits that reach half of neither are left out. Both 0 means no
	// floor.
	FloorCosine float64
	FloorIDF    float64
	// Superseded names, for a node that is not current, the nodes that replace
	// it (index.Graph.Superseded). A replacement stands before what it
	// replaces, with at least its score; one that no leg found is added. The
	// caller leaves out those that the asker may not see.
	Superseded map[memory.SHA][]memory.SHA
	// Amended are statements that a newer one may stand before without replacing them.
	Amended []Amendment
	// NoFloor ranks whatever was found, for evaluation; the floors still say what is
	// weak.
	NoFloor bool
	// Limit cuts the ranking; 0 means all.
	Limit int
}

// Amendment says of a statement that another one of its conversation was replaced: what
// the conversation decided is no longer true. A question that the replaced one answers too,
// and whose words the statement hardly holds, is about the decision, not about the
// statement; then the replacement stands first. The statement itself is not replaced.
//
// The caller names such By alone that are newer than Of, so that no ring of them and of
// Options.Superseded exists.
type Amendment struct {
	Of      memory.SHA // the statement
	Through memory.SHA // of the same conversation, replaced by By
	By      memory.SHA
	Whole   bool // Of is the conversation's text itself, which holds Through
}

// Fused is one result with its score parts.
type Fused struct {
	ID memory.SHA
	// Score in [0,1], greater is better. Linear: DenseWeight*Dense +
	// LexicalWeight*Lexical, or that of the node it replaces where that is more.
	// RRF: the sum of 1/(60+rank) over both legs, at most 2/61.
	Score float64
	// Dense and Lexical are the normalised legs, [0,1]; 0 where not found.
	Dense   float64
	Lexical float64
	// Cosine, BM25 and IDFShare are the raw parts that the floor tested.
	Cosine   float64
	BM25     float64
	IDFShare float64
	// DenseRank and LexicalRank count from 1; 0 where not found.
	DenseRank   int
	LexicalRank int
	// Weights that were used, after a failed leg.
	DenseWeight   float64
	LexicalWeight float64
	// SupersededBy is set on a node that is not current.
	SupersededBy []memory.SHA
	// AmendedBy is set on a node that stands behind an amendment of its conversation.
	AmendedBy []memory.SHA
	// Replaces is the node whose match this one takes its score from.
	Replaces memory.SHA
	Amends   bool // it does not replace Replaces, but what its conversation decided
	// Rerank is the cross-encoder's own score, in its own scale, of what was Reranked.
	Rerank   float64
	Reranked bool
	// Reason in words.
	Reason string
}
