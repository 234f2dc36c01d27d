package scrub

import (
	"context"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// eachLesson gives every lesson whose words stand, with its key. One that can not be read
// is named and holds up no other.
func (s *scrubber) eachLesson(ctx context.Context, do func(key memory.SHA, l *lesson.Lesson) error) error {
	for key, err := range s.Log.RecordKeys(ctx, s.project, eventlog.Lessons) {
		if err != nil {
			return err
		}
		recs, err := s.Log.Records(ctx, s.project, eventlog.Lessons, key)
		if err != nil {
			if err := s.unreadable(err); err != nil {
				return err
			}
			continue
		}
		for _, r := range recs {
			if l, erased, ok, err := eventlog.AsLesson(r); err == nil && ok && !erased {
				if err := do(key, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lessonSecrets counts what the rules find in lessons, and reports whether there is any.
func (s *scrubber) lessonSecrets(ctx context.Context) (found bool, err error) {
	err = s.eachLesson(ctx, func(_ memory.SHA, l *lesson.Lesson) error {
		for _, text := range l.Texts() {
			out, marks := s.Rules.Redact.Redact(text)
			found = found || out != text
			for _, m := range marks {
				s.report.Secrets[m.Kind]++
			}
		}
		return nil
	})
	return found, err
}

// lessons erases those that hold a secret, each after it is stated anew in its masked form.
// Its hashes stay what they were: a failure is looked up as before.
func (s *scrubber) lessons(ctx context.Context, tombstone memory.SHA, values *strings.Replacer) error {
	return s.eachLesson(ctx, func(key memory.SHA, l *lesson.Lesson) error {
		changed := false
		next := l.Map(func(text string) string {
			out, _ := s.Rules.Redact.Redact(values.Replace(text))
			changed = changed || out != text
			return out
		})
		if !changed {
			return nil
		}
		rec, err := eventlog.LessonRecord(s.Tenant, s.project, &next)
		if err != nil {
			return err
		}
		if _, err := s.Log.PutRecords(ctx, s.project, eventlog.Lessons, []eventlog.Record{rec}); err != nil {
			return err
		}
		s.report.Lessons++
		return s.Log.EraseRecords(ctx, s.project, eventlog.Lessons, key, tombstone)
	})
}
