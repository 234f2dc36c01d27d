// Package cures keeps the index of lessons in step with the log, and finds in it what
// cured a failure.
//
// Invariant: rows follow from the records of the shelf `lessons` alone: any record applied
// twice, late or out of order, and a rebuild, come to the same rows (lookup.Index.Hash). A
// record whose words were erased is no row, however late it comes. What is asked for one
// project of one tenant sees no other's.
//
//	log/local/shop/lessons/9c41….jsonl ──> row 9c41…, found by detail_sha, then sig_sha, then sym_sha
//
// The package writes no record: functions/sig does.
package cures

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Cures are the lessons of a tenant.
type Cures struct {
	Tenant string
	Log    *eventlog.Log
	Index  lookup.Index
	// Damaged, when not nil, is told of a record that can not be read: it is passed over,
	// and read again by the next rebuild.
	Damaged func(project string, key memory.SHA, err error)
}

func (c *Cures) scope(project string) lookup.Scope {
	return lookup.Scope{Tenant: c.Tenant, Project: project}
}

// batchSize bounds one transaction.
const batchSize = 500

// RowOf is the row of a lesson's record.
func RowOf(key memory.SHA, l *lesson.Lesson) (lookup.Row, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return lookup.Row{}, err
	}
	r := lookup.Row{Key: key, At: l.At(), Body: body}
	add := func(k lookup.Kind, shas ...string) {
		for _, s := range shas {
			if memory.SHA(s).Valid() {
				r.Hashes = append(r.Hashes, lookup.Hash{Kind: k, SHA: memory.SHA(s)})
			}
		}
	}
	add(lookup.Detail, l.DetailSHA, l.InnerDetail)
	add(lookup.Class, l.SigSHA, l.InnerSig)
	add(lookup.Symptom, l.SymSHAs...)
	return r, nil
}

// read adds to a batch what one object of the shelf says. One of a type that this program
// does not know is passed over, and known from then on.
func (c *Cures) read(ctx context.Context, project string, key memory.SHA, b *lookup.Batch) error {
	err := c.add(ctx, project, key, b)
	if !fault.Is(err, fault.Corrupt) {
		return err
	}
	if c.Damaged != nil {
		c.Damaged(project, key, err)
	}
	b.Gone = append(b.Gone, key)
	return nil
}

func (c *Cures) add(ctx context.Context, project string, key memory.SHA, b *lookup.Batch) error {
	recs, err := c.Log.Records(ctx, project, eventlog.Lessons, key)
	if err != nil {
		return err
	}
	for _, r := range recs {
		l, erased, ok, err := eventlog.AsLesson(r)
		switch {
		case err != nil:
			return err
		case erased:
			b.Gone = append(b.Gone, key)
			continue
		case ok:
			row, err := RowOf(key, l)
			if err != nil {
				return err
			}
			if len(row.Hashes) > 0 {
				b.Rows = append(b.Rows, row)
			} else {
				b.Gone = append(b.Gone, key)
			}
			continue
		}
		o, ok, err := eventlog.AsOutcome(r)
		if err != nil {
			return err
		}
		if !ok {
			b.Gone = append(b.Gone, key)
			continue
		}
		b.Outcomes = append(b.Outcomes, lookup.Outcome{Record: key, Lesson: o.Lesson, Use: o.Use, Worked: o.Worked})
	}
	return nil
}

// Apply brings records into the index.
func (c *Cures) Apply(ctx context.Context, project string, keys []memory.SHA) (err error) {
	defer fault.Wrap(&err, "apply lessons of %s", project)
	for part := range slices.Chunk(keys, batchSize) {
		var b lookup.Batch
		for _, k := range part {
			if err := c.read(ctx, project, k, &b); err != nil {
				return err
			}
		}
		if err := c.Index.Apply(ctx, c.scope(project), b); err != nil {
			return err
		}
	}
	return nil
}

// Missing lists the records of a project that the index does not know.
func (c *Cures) Missing(ctx context.Context, project string) (out []memory.SHA, err error) {
	defer fault.Wrap(&err, "lessons of %s that no index has", project)
	known, err := c.Index.Known(ctx, c.scope(project))
	if err != nil {
		return nil, err
	}
	for key, err := range c.Log.RecordKeys(ctx, project, eventlog.Lessons) {
		if err != nil {
			return nil, err
		}
		if !known[key] {
			out = append(out, key)
		}
	}
	return out, nil
}

// CatchUp applies what no event announced, and says how many records that were.
func (c *Cures) CatchUp(ctx context.Context, project string) (n int, err error) {
	keys, err := c.Missing(ctx, project)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	return len(keys), c.Apply(ctx, project, keys)
}

// Rebuild puts what the log says in the place of all rows of a project, in one
// transaction.
func (c *Cures) Rebuild(ctx context.Context, project string) (err error) {
	defer fault.Wrap(&err, "rebuild lessons of %s", project)
	var b lookup.Batch
	for key, err := range c.Log.RecordKeys(ctx, project, eventlog.Lessons) {
		if err != nil {
			return err
		}
		if err := c.read(ctx, project, key, &b); err != nil {
			return err
		}
	}
	return c.Index.Replace(ctx, c.scope(project), b)
}

// RebuildAll is Rebuild of every project of the tenant, those of which the log has nothing
// any more among them.
func (c *Cures) RebuildAll(ctx context.Context) error {
	projects, err := c.Log.Projects(ctx)
	if err != nil {
		return err
	}
	had, err := c.Index.Projects(ctx, c.Tenant)
	if err != nil {
		return err
	}
	projects = append(projects, had...)
	slices.Sort(projects)
	for _, p := range slices.Compact(projects) {
		if err := c.Rebuild(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
