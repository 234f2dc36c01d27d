package query

import (
	"maps"
	"net/http"
	"slices"

	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// StreamReport is what one question stream did and cost (brief P17).
type StreamReport struct {
	Project string      `json:"project"`
	QueryID string      `json:"query_id"`
	Stream  string      `json:"stream"`
	Serving bool        `json:"serving"`
	Models  []string    `json:"models"` // that decided; empty: a policy without one
	Figures cost.Report `json:"figures"`
}

// Reports is the answer of GET /memory/report.
type Reports struct {
	Streams []StreamReport `json:"streams"`
}

// report folds the gate records of the streams asked for: ?project=, ?query= for a
// question id or a stream. It reads the log, segment after segment.
func (f *Function) report(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	projects, err := f.asked(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	only := r.URL.Query().Get("query")
	out := Reports{Streams: []StreamReport{}}
	for _, p := range projects {
		streams, err := f.cfg.Log.Streams(ctx, p)
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		serving, err := f.servingOf(ctx, p)
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		for _, s := range streams {
			if only != "" && only != s && only != memory.QueryID(s) {
				continue
			}
			var figures cost.Figures
			models := map[string]bool{}
			for seg, err := range f.cfg.Log.Segments(ctx, p, s, 0) {
				if err != nil {
					serve.WriteError(w, err)
					return
				}
				for _, rec := range seg.Records {
					if g, ok := rec.(*memory.Gate); ok {
						figures.Add(g)
						if g.Model != "" {
							models[g.Model] = true
						}
					}
				}
			}
			out.Streams = append(out.Streams, StreamReport{
				Project: p, QueryID: memory.QueryID(s), Stream: s, Serving: slices.Contains(serving.streams, s),
				Models: append([]string{}, slices.Sorted(maps.Keys(models))...), Figures: figures.Report(),
			})
		}
	}
	serve.WriteJSON(w, http.StatusOK, out)
}
