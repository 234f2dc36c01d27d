package project

import (
	"context"

	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/lookup"
)

// This file keeps the index of lessons (shared/cures) in step with the log.

// lessonsBehind counts the projects of which records of lessons are not applied.
func (f *Function) lessonsBehind(ctx context.Context) (n int, err error) {
	err = f.eachLessons(ctx, func(project string) error {
		keys, err := f.cures.Missing(ctx, project)
		if len(keys) > 0 {
			n++
		}
		return err
	})
	return n, err
}

// sweepLessons applies what no event announced.
func (f *Function) sweepLessons(ctx context.Context) error {
	var first error
	err := f.eachLessons(ctx, func(project string) error {
		if _, err := f.cures.CatchUp(ctx, project); err != nil && first == nil {
			first = err
		}
		return ctx.Err()
	})
	if first != nil {
		return first
	}
	return err
}

func (f *Function) eachLessons(ctx context.Context, do func(project string) error) error {
	if f.cures == nil {
		return nil
	}
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return err
	}
	for _, p := range projects {
		if err := do(p); err != nil {
			return err
		}
	}
	return nil
}

// rebuildLessons puts the log's lessons in the place of the index's rows: of the projects,
// of all where projects is nil.
func (f *Function) rebuildLessons(ctx context.Context, projects []string) error {
	if f.cures == nil {
		return nil
	}
	if projects == nil {
		return f.cures.RebuildAll(ctx)
	}
	for _, p := range projects {
		if err := f.cures.Rebuild(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// searchLessons looks the lessons of a project through for words.
func (f *Function) searchLessons(ctx context.Context, project string, holds func(string) bool) ([]forget.Searched, error) {
	if f.cures == nil {
		return nil, nil
	}
	out := forget.Searched{Where: "lessons"}
	var err error
	out.Searched, out.Found, err = f.cfg.Lessons.Holding(ctx, lookup.Scope{Tenant: f.cfg.Tenant, Project: project}, holds)
	return []forget.Searched{out}, err
}
