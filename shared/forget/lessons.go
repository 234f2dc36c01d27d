package forget

import (
	"context"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// lessons erases those that were mined from what is forgotten, or hold words of it; of a
// whole project all of them.
func (f *forgetter) lessons(ctx context.Context, t *memory.Tombstone) error {
	for key, err := range f.Log.RecordKeys(ctx, f.project, eventlog.Lessons) {
		if err != nil {
			return err
		}
		recs, err := f.Log.Records(ctx, f.project, eventlog.Lessons, key)
		if err != nil {
			if fault.Is(err, fault.Unavailable) {
				return err
			}
			continue // mem verify names it
		}
		for _, r := range recs {
			l, erased, ok, err := eventlog.AsLesson(r)
			if err != nil || !ok || erased || !f.rests(l, t) {
				continue
			}
			if err := f.Log.EraseRecords(ctx, f.project, eventlog.Lessons, key, f.tombstone); err != nil {
				return err
			}
			f.report.Removed.Lessons = append(f.report.Removed.Lessons, key)
			break
		}
	}
	slices.Sort(f.report.Removed.Lessons)
	return nil
}

// rests reports whether a lesson rests on what is forgotten.
func (f *forgetter) rests(l *lesson.Lesson, t *memory.Tombstone) bool {
	if t.Target != nil && t.Target.Project {
		return true
	}
	for _, s := range l.Spans {
		if slices.Contains(f.report.Objects, name(s.Object)) {
			return true
		}
	}
	return slices.ContainsFunc(l.Texts(), f.words.in)
}
