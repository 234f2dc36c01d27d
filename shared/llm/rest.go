package llm

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// DefaultRest is how long a server that did not answer is left alone by whoever
// can do without it: a question waits for it once in that time, not each time.
const DefaultRest = 5 * time.Second

// rest remembers that a server did not answer.
type rest struct {
	pause time.Duration

	mu    sync.Mutex
	until time.Time
	err   error
}

// try calls f, unless a call failed a moment ago; then its error is given at once.
// What counts is that the server is down, full or late, not that the caller left.
func (r *rest) try(f func() error) error {
	r.mu.Lock()
	err := r.err
	resting := time.Now().Before(r.until)
	r.mu.Unlock()
	if resting {
		return err
	}
	err = f()
	if (fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Exhausted)) && !errors.Is(err, context.Canceled) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.until, r.err = time.Now().Add(max(r.pause, fault.RetryAfterOf(err))), err
	}
	return err
}

type restingEmbedder struct {
	Embedder
	rest
}

// Resting is e for a caller that can do without it: after a call that found the
// server down, full or late, calls fail at once for pause, or as long as the server
// asks.
func Resting(e Embedder, pause time.Duration) Embedder {
	return &restingEmbedder{e, rest{pause: pause}}
}

func (e *restingEmbedder) Embed(ctx context.Context, texts []string) (out [][]float32, err error) {
	err = e.try(func() (err error) { out, err = e.Embedder.Embed(ctx, texts); return err })
	return out, err
}

type restingReranker struct {
	Reranker
	rest
}

// RestingReranker is Resting of a reranker.
func RestingReranker(r Reranker, pause time.Duration) Reranker {
	return &restingReranker{r, rest{pause: pause}}
}

func (r *restingReranker) Rerank(ctx context.Context, model, query string, documents []string) (out []float64, err error) {
	err = r.try(func() (err error) { out, err = r.Reranker.Rerank(ctx, model, query, documents); return err })
	return out, err
}
