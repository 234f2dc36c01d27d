package query_test

import (
	"context"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/static"
)

// slowSpace is a graph whose first search in one space waits until it is released.
type slowSpace struct {
	index.Graph
	space string
	free  chan struct{}
}

func (g slowSpace) SearchDense(ctx context.Context, space string, vec []float32, f index.Filter, k int) ([]index.Hit, error) {
	if space == g.space {
		select {
		case <-g.free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return g.Graph.SearchDense(ctx, space, vec, f, k)
}

// TestSpaceIsWarmed: while the index reads the vectors of a space that came to serve,
// questions are answered in the former one; then in the new one.
func TestSpaceIsWarmed(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	whole, err := static.Cut(256)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := static.Cut(128)
	if err != nil {
		t.Fatal(err)
	}
	serving := llm.Embedder(whole)
	g := slowSpace{w.Graph, cut.Space().ID, make(chan struct{})}
	f, err := query.New(query.Config{Tenant: functest.Tenant, Log: w.Log, Catalog: w.Catalog, Graph: g, Lexical: w.Lexical,
		Serving: func(context.Context) (llm.Embedder, error) { return serving, nil }})
	if err != nil {
		t.Fatal(err)
	}
	space := func() string {
		t.Helper()
		a, err := f.Ask(t.Context(), query.Request{Query: "how often do we retry?", Projects: []string{"shop"}})
		if err != nil || len(a.Degraded) != 0 {
			t.Fatalf("%+v, %v", a, err)
		}
		return a.Space
	}
	if got := space(); got != whole.Space().ID {
		t.Fatalf("space %s", got)
	}
	serving = cut
	for range 3 {
		if got := space(); got != whole.Space().ID {
			t.Fatalf("space %s answers before its vectors are read", got)
		}
	}
	close(g.free)
	for end := time.Now().Add(5 * time.Second); space() != cut.Space().ID; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new space never answers")
		}
	}
	serving = whole // and back, without a wait for what is read already
	for end := time.Now().Add(5 * time.Second); space() != whole.Space().ID; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the former space never answers again")
		}
	}
}
