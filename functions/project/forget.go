package project

import (
	"context"
	"errors"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file is what forgetting asks of the indexes (shared/forget).

// Purge takes out of the indexes' files what was deleted.
func (f *Function) Purge(ctx context.Context) error {
	for _, ix := range []any{f.cfg.Graph, f.cfg.Lexical, f.cfg.Lessons} {
		if p, ok := ix.(index.Purger); ok {
			if err := p.Purge(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// purge is Purge while nothing is applied.
func (f *Function) purge(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Purge(ctx)
}

// Cleaned brings indexes, exports and pages of a project to what the log says, and takes
// what was deleted out of the indexes' files. The events ask for the exports anew.
func (f *Function) Cleaned(ctx context.Context, project string) ([]ce.Event, error) {
	return f.Handle(ctx, event.New(event.RebuildRequested, f.Name(), event.Project{Tenant: f.cfg.Tenant, Project: project}))
}

// Rows counts the rows of the tenant in each index.
func (f *Function) Rows(ctx context.Context) (map[string]int64, error) {
	_, c, err := f.cfg.Graph.Hash(ctx, f.cfg.Tenant)
	if err != nil {
		return nil, err
	}
	n, err := f.cfg.Lexical.Passages(ctx, f.cfg.Tenant)
	if err != nil {
		return nil, err
	}
	rows := map[string]int64{"nodes": c.Nodes, "occurrences": c.Occurrences, "edges": c.Edges, "passages": c.Passages, "vectors": c.Vectors, "lexical": n}
	if f.cures != nil {
		if _, rows["lessons"], err = f.cfg.Lessons.Hash(ctx, f.cfg.Tenant); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// searchHits is how many passages a word may give: stems and misspellings that the
// analyser takes for it come with it.
const searchHits = 20

// Search looks the graph through, text by text, and asks the lexical index for each word.
// A passage that is found by another word of the same stem counts only where its text
// holds one of the words, or is no longer in the graph.
func (f *Function) Search(ctx context.Context, project string, words []string, holds func(text string) bool) ([]forget.Searched, error) {
	graph := forget.Searched{Where: "graph"}
	if h, ok := f.cfg.Graph.(index.Holder); ok {
		var err error
		if graph.Searched, graph.Found, err = h.Holding(ctx, f.cfg.Tenant, project, holds); err != nil {
			return nil, err
		}
	} else {
		graph.Skipped = "this index can not be looked through"
	}
	lexical := forget.Searched{Where: "lexical"}
	filter := index.Filter{Tenant: f.cfg.Tenant, Projects: []string{project}, Levels: []memory.Level{memory.L0, memory.L1, memory.L2, memory.LevelRaw}}
	for _, w := range words {
		hits, err := f.cfg.Lexical.Search(ctx, w, filter, searchHits)
		if err != nil {
			return nil, err
		}
		lexical.Searched++
		ids := make([]memory.SHA, len(hits))
		for i := range hits {
			ids[i] = hits[i].Node
		}
		nodes, err := f.cfg.Graph.Nodes(ctx, f.cfg.Tenant, ids)
		if err != nil {
			return nil, err
		}
		found := len(nodes) < len(ids)
		for i := range nodes {
			found = found || holds(nodes[i].Text)
		}
		if found {
			lexical.Found++
		}
	}
	lessons, err := f.searchLessons(ctx, project, holds)
	return append([]forget.Searched{graph, lexical}, lessons...), err
}

// Projections are a Function as forgetting knows it.
type Projections struct {
	*Function
	// Publish sends what a rebuild asks for.
	Publish func(ctx context.Context, es ...ce.Event) error
}

var _ forget.Projections = (*Projections)(nil)

// Rebuild implements forget.Projections.
func (p *Projections) Rebuild(ctx context.Context, project string) error {
	if p.Function == nil {
		return errors.New("the function project is not built")
	}
	es, err := p.Cleaned(ctx, project)
	if err != nil || len(es) == 0 || p.Publish == nil {
		return err
	}
	return p.Publish(ctx, es...)
}
