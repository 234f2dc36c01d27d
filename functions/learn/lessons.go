package learn

import (
	"context"
	"log/slog"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Lessons are mined here, where a tool's result is whole: its chunk holds 400
// tokens of it. They are written before the admit line, as blobs are, so that
// what is admitted has its lessons, and a repeat writes the same records.

// maxLessons bounds the lessons of one object; the latest are kept.
const maxLessons = 4096

// mine looks for lessons. Turns admitted before are looked at too, as a command
// that passes now may have failed in them; what was forgotten is not.
func (p *part) mine(ctx context.Context, in *intake, t *memory.Turn, known bool) error {
	if known {
		gone, ok := p.gone[t.Session]
		if !ok {
			var err error
			if gone, err = in.f.admits.gone(ctx, p.project, t.Session); err != nil {
				return err
			}
			p.gone[t.Session] = gone
		}
		if gone[t.ID] {
			return nil
		}
	}
	if p.miner == nil {
		if t.Kind != memory.KindToolCall && t.Kind != memory.KindCommand {
			return nil
		}
		p.miner = lesson.NewMiner(lesson.MinerOptions{
			Object: in.f.cfg.Inbox.Name() + "/" + in.info.Key, ETag: in.info.ETag, Time: in.info.ModTime,
			TenantKey: in.f.cfg.TenantKey, Redactor: in.f.redact,
		})
	}
	p.miner.Add(t, known)
	if ls := p.miner.Lessons(); len(ls) > 0 {
		p.keepLessons(ls)
	}
	return nil
}

func (p *part) keepLessons(ls []lesson.Lesson) {
	p.lessons = append(p.lessons, ls...)
	p.lessons = p.lessons[max(0, len(p.lessons)-maxLessons):]
}

// putLessons writes the part's lessons, an object each, and gives their keys.
func (p *part) putLessons(ctx context.Context, f *Function) ([]memory.SHA, error) {
	if p.miner == nil {
		return nil, nil
	}
	p.keepLessons(p.miner.Flush())
	var keys []memory.SHA
	for i := range p.lessons {
		rec, err := eventlog.LessonRecord(f.cfg.Tenant, p.project, &p.lessons[i])
		if fault.Is(err, fault.Invalid) {
			f.cfg.Logger.WarnContext(ctx, "lesson left out", slog.String("project", p.project), slog.Any("err", err))
			continue // the session is admitted without it
		}
		if err != nil {
			return keys, err
		}
		key, err := f.cfg.Log.PutRecords(ctx, p.project, eventlog.Lessons, []eventlog.Record{rec})
		if err != nil {
			return keys, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
