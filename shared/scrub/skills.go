package scrub

import (
	"context"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
)

// eachSkill gives every record of a promoted skill whose text stands, with its key.
// One that can not be read is named and holds up no other.
func (s *scrubber) eachSkill(ctx context.Context, do func(key memory.SHA, sk *memory.Skill) error) error {
	for key, err := range s.Log.RecordKeys(ctx, s.project, eventlog.Skills) {
		if err != nil {
			return err
		}
		recs, err := s.Log.Records(ctx, s.project, eventlog.Skills, key)
		if err != nil {
			if err := s.unreadable(err); err != nil {
				return err
			}
			continue
		}
		for _, r := range recs {
			if sk, ok, err := eventlog.AsSkill(r); err == nil && ok && sk.Text != "" {
				if err := do(key, sk); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// skillSecrets counts what the rules find in promoted skills, and reports whether
// there is any.
func (s *scrubber) skillSecrets(ctx context.Context) (found bool, err error) {
	err = s.eachSkill(ctx, func(_ memory.SHA, sk *memory.Skill) error {
		out, marks := s.Rules.Redact.Redact(sk.Text)
		found = found || out != sk.Text
		for _, m := range marks {
			s.report.Secrets[m.Kind]++
		}
		return nil
	})
	return found, err
}

// skills erases the texts of skills that hold a secret. They are not stated anew in a
// masked form: what agents load is a file on a person's disk, which only the person can
// mend and promote again. values are the secrets that were masked elsewhere.
func (s *scrubber) skills(ctx context.Context, tombstone memory.SHA, values *strings.Replacer) error {
	return s.eachSkill(ctx, func(key memory.SHA, sk *memory.Skill) error {
		if text := values.Replace(sk.Text); text == sk.Text && !s.masks(text) {
			return nil
		}
		s.report.Skills++
		return s.Log.EraseRecords(ctx, s.project, eventlog.Skills, key, tombstone)
	})
}
