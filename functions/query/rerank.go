package query

import (
	"context"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/rank"
)

const (
	// excerptBytes of a text go to the cross-encoder at a time: bge-reranker-base
	// reads 512 tokens of question and text together, and code has a token for some
	// three bytes. What is longer goes in several excerpts; the best one counts, as
	// that of a memory of 1,024 tokens holds the answer in one sentence.
	excerptBytes = 1200
	// maxExcerpts of a text: a memory of 1,024 tokens has about four.
	maxExcerpts = 8
)

// rerank orders the first candidates by the cross-encoder. One that is down or
// late leaves the order as it is, and the answer says so. A single candidate
// needs no order.
func (r *asking) rerank(ctx context.Context, keep []rank.Fused, nodes map[memory.SHA]*index.Node, same map[memory.SHA]memory.SHA) ([]rank.Fused, error) {
	n := min(len(keep), r.cfg.RerankTop)
	if n < 2 {
		return keep, nil
	}
	var documents []string
	var of []int // candidate of each
	for i, h := range keep[:n] {
		for _, e := range excerpts(nodes[h.ID].Text) {
			documents, of = append(documents, e), append(of, i)
		}
	}
	own, cancel := context.WithTimeout(ctx, r.cfg.RerankTimeout)
	defer cancel()
	got, err := r.cfg.Reranker.Rerank(own, r.cfg.RerankModel, r.text, documents)
	if err := ctx.Err(); err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	var scores []float64
	if err == nil {
		scores, err = best(got, of, n)
	}
	if err != nil {
		r.degrade(ctx, "rerank", err)
		return keep, nil
	}
	return rank.Rerank(keep, scores, same), nil
}

// best is the best score of each of n candidates' excerpts.
func best(scores []float64, of []int, n int) ([]float64, error) {
	if len(scores) != len(of) {
		return nil, fault.New(fault.Unavailable, "%d scores for %d texts", len(scores), len(of))
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Inf(-1)
	}
	for i, s := range scores {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return nil, fault.New(fault.Unavailable, "a score is no number")
		}
		out[of[i]] = max(out[of[i]], s)
	}
	return out, nil
}

// excerpts cuts a text at white space into pieces of at most excerptBytes, the
// first maxExcerpts of them; at least one, so that each text has a score.
func excerpts(text string) []string {
	var out []string
	text = strings.TrimSpace(text)
	for len(text) > excerptBytes && len(out) < maxExcerpts {
		at := strings.LastIndexAny(text[:excerptBytes], " \n\t")
		if at <= excerptBytes/2 { // one long word
			for at = excerptBytes; !utf8.RuneStart(text[at]); at-- {
			}
		}
		out = append(out, strings.TrimSpace(text[:at]))
		text = strings.TrimSpace(text[at:])
	}
	if len(out) < maxExcerpts {
		out = append(out, text)
	}
	return out
}
