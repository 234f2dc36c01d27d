package rank

// Judged is a question's ranking beside what is right.
type Judged struct {
	Ranked   []string        // documents, best first, each once
	Relevant map[string]bool // that answer the question
	// Stale documents hold what an answer replaced: one that stands before the first
	// relevant one is an answer that is no longer true.
	Stale []string
}

// Quality is how good rankings are, each a mean over questions in [0,1].
type Quality struct {
	Questions   int     `json:"questions"`
	MRR         float64 `json:"mrr"` // mean reciprocal rank of the first relevant document
	NDCG10      float64 `json:"ndcg_at_10"`
	Precision1  float64 `json:"precision_at_1"`
	Precision10 float64 `json:"precision_at_10"`
	Recall1     float64 `json:"recall_at_1"`
	Recall5     float64 `json:"recall_at_5"`
	Recall10    float64 `json:"recall_at_10"`
	// StaleFirst counts questions with a stale document before every relevant one.
	StaleFirst int `json:"stale_first"`
	Unanswered int `json:"unanswered"` // nothing was found
}

// Evaluate measures rankings.
func Evaluate(js []Judged) Quality {
	q := Quality{Questions: len(js)}
	mean := func(into *float64, f func(*Judged) float64) {
		xs := make([]float64, len(js))
		for i := range js {
			xs[i] = f(&js[i])
		}
		*into = Mean(xs)
	}
	mean(&q.MRR, func(j *Judged) float64 { return ReciprocalRank(j.Ranked, j.Relevant) })
	mean(&q.NDCG10, func(j *Judged) float64 {
		gain := map[string]float64{}
		for id, ok := range j.Relevant {
			if ok {
				gain[id] = 1
			}
		}
		return NDCGAt(j.Ranked, gain, 10)
	})
	mean(&q.Precision1, func(j *Judged) float64 { return PrecisionAt(j.Ranked, j.Relevant, 1) })
	mean(&q.Precision10, func(j *Judged) float64 { return PrecisionAt(j.Ranked, j.Relevant, 10) })
	mean(&q.Recall1, func(j *Judged) float64 { return RecallAt(j.Ranked, j.Relevant, 1) })
	mean(&q.Recall5, func(j *Judged) float64 { return RecallAt(j.Ranked, j.Relevant, 5) })
	mean(&q.Recall10, func(j *Judged) float64 { return RecallAt(j.Ranked, j.Relevant, 10) })
	for i := range js {
		if len(js[i].Ranked) == 0 {
			q.Unanswered++
		}
		if js[i].staleFirst() {
			q.StaleFirst++
		}
	}
	return q
}

func (j *Judged) staleFirst() bool {
	stale := map[string]bool{}
	for _, s := range j.Stale {
		stale[s] = true
	}
	for _, id := range j.Ranked {
		switch {
		case j.Relevant[id]:
			return false
		case stale[id]:
			return true
		}
	}
	return false
}
