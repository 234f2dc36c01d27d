package cures

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Verify holds every record of a project's lessons against its key, and the index's rows
// against the records. A record that is not applied yet is no problem: the sweep finds it.
func (c *Cures) Verify(ctx context.Context, project string) (lessons int, problems []string, err error) {
	defer fault.Wrap(&err, "verify lessons of %s", project)
	known, err := c.Index.Known(ctx, c.scope(project))
	if err != nil {
		return 0, nil, err
	}
	say := func(key memory.SHA, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("lesson %s of %s: ", key.Short(), project)+fmt.Sprintf(format, args...))
	}
	for key, err := range c.Log.RecordKeys(ctx, project, eventlog.Lessons) {
		if err != nil {
			return lessons, problems, err
		}
		var b lookup.Batch
		if err := c.add(ctx, project, key, &b); fault.Is(err, fault.Corrupt) {
			say(key, "%v", err)
			continue
		} else if err != nil {
			return lessons, problems, err
		}
		if !known[key] {
			continue
		}
		delete(known, key)
		m, stands, err := c.Index.Get(ctx, c.scope(project), key)
		if err != nil {
			return lessons, problems, err
		}
		switch {
		case len(b.Rows) == 0 && stands:
			say(key, "it was erased, and is still found: mem rebuild --only lessons")
		case len(b.Rows) > 0:
			lessons++
			if err := lookup.CheckBatch(c.scope(project), &b); err != nil {
				return lessons, problems, err
			}
			if r := b.Rows[0]; !stands || !bytes.Equal(r.Body, m.Body) || !r.At.Equal(m.At) || !slices.Equal(r.Hashes, m.Hashes) {
				say(key, "its row is not what the record says: mem rebuild --only lessons")
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		say(key, "the index has it, and the log does not: mem rebuild --only lessons")
	}
	return lessons, problems, nil
}
