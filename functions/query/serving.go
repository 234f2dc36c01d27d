package query

import (
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
)

// servingSet is which streams of a project answer. It is read for each query:
// a question that was just added, or has just caught up, answers the next one.
type servingSet struct {
	streams []string
	bad     string // why the question file cannot be read; then all streams answer
}

func (f *Function) servingOf(ctx context.Context, project string) (s servingSet, err error) {
	streams, synthesis, err := f.cfg.Catalog.Answering(ctx, project)
	if fault.Is(err, fault.Invalid) {
		s.bad = err.Error()
		s.streams, err = f.cfg.Log.Streams(ctx, project)
		return s, err
	}
	for _, st := range streams {
		s.streams = append(s.streams, st.Name)
	}
	if synthesis != nil {
		s.streams = append(s.streams, synthesis.Name)
	}
	return s, err
}
