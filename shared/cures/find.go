package cures

import (
	"context"
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// By says what a lesson was found by.
type By string

const (
	ByDetail  By = "detail_sha" // this very failure
	ByClass   By = "sig_sha"    // a failure of its class
	BySymptom By = "sym_sha"    // what a person said of it
)

// Answer is what is known of a failure.
type Answer struct {
	By        By
	Count     int // lessons that were found, at most lookup.MaxTotal counted
	Solutions []lesson.Solution
}

// maxRead bounds the lessons that an answer is made of: the newest of a class say what
// there is to say.
const maxRead = 64

// MaxSolutions bounds an answer.
const MaxSolutions = 20

// Find looks lessons up by the instance of a failure, then its class, then symptoms: the
// first that finds something answers. limit bounds the solutions, MaxSolutions when 0.
func (c *Cures) Find(ctx context.Context, project string, ask lesson.Ask, limit int) (a Answer, err error) {
	defer fault.Wrap(&err, "find lessons of %s", project)
	if limit <= 0 || limit > MaxSolutions {
		limit = MaxSolutions
	}
	for _, tier := range []struct {
		by   By
		kind lookup.Kind
		shas []memory.SHA
	}{{ByDetail, lookup.Detail, ask.Details}, {ByClass, lookup.Class, ask.Sigs}, {BySymptom, lookup.Symptom, ask.Symptoms}} {
		if len(tier.shas) == 0 {
			continue
		}
		ms, total, err := c.Index.Find(ctx, c.scope(project), tier.kind, tier.shas, maxRead)
		if err != nil {
			return a, err
		}
		if len(ms) == 0 {
			continue
		}
		found := make([]lesson.Found, len(ms))
		for i, m := range ms {
			if found[i], err = foundOf(m); err != nil {
				return a, err
			}
		}
		a.By, a.Count = tier.by, total
		a.Solutions = lesson.Solutions(found)
		a.Solutions = a.Solutions[:min(limit, len(a.Solutions))]
		return a, nil
	}
	return a, nil
}

func foundOf(m lookup.Match) (lesson.Found, error) {
	f := lesson.Found{Key: m.Key, Told: m.Told, Worked: m.Worked}
	if err := json.Unmarshal(m.Body, &f.Lesson); err != nil {
		return f, fault.New(fault.Corrupt, "lesson %s does not decode in the index: mem rebuild", m.Key.Short())
	}
	return f, nil
}

// Get gives one lesson; false where the project has none of this key.
func (c *Cures) Get(ctx context.Context, project string, key memory.SHA) (lesson.Found, bool, error) {
	m, ok, err := c.Index.Get(ctx, c.scope(project), key)
	if err != nil || !ok {
		return lesson.Found{}, false, err
	}
	f, err := foundOf(m)
	return f, err == nil, err
}

// Same finds a lesson that says the same of the same happening: nil where there is none.
func (c *Cures) Same(ctx context.Context, project string, l *lesson.Lesson) (*lesson.Found, error) {
	ms, _, err := c.Index.Find(ctx, c.scope(project), lookup.Detail, []memory.SHA{memory.SHA(l.DetailSHA)}, lookup.MaxTotal)
	if err != nil {
		return nil, err
	}
	want := l.Identity()
	for _, m := range ms {
		f, err := foundOf(m)
		if err != nil {
			return nil, err
		}
		if f.Lesson.Identity() == want {
			return &f, nil
		}
	}
	return nil, nil
}
