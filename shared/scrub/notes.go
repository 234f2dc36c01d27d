package scrub

import (
	"context"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
)

// noteSecrets counts what the rules find in the notes that people keep, and
// reports whether there is any.
func (s *scrubber) noteSecrets(ctx context.Context) (found bool, err error) {
	for n, err := range s.Log.Notes(ctx, s.project) {
		if err != nil {
			if err := s.unreadable(err); err != nil {
				return false, err
			}
			return found, nil // the sequence has ended
		}
		if n.Note.Erased != "" {
			continue
		}
		out, marks := s.Rules.Redact.Redact(n.Note.Text)
		if out == n.Note.Text {
			continue
		}
		found = true
		for _, m := range marks {
			s.report.Secrets[m.Kind]++
		}
	}
	return found, nil
}

// notes erases the notes that hold a secret. A present one is stated anew first,
// in its redacted form, which replaces it; an earlier try that ended in between
// has made it an old one.
func (s *scrubber) notes(ctx context.Context, tombstone memory.SHA, values *strings.Replacer) error {
	var all []*eventlog.KeptNote
	replaced := map[memory.SHA]bool{}
	for n, err := range s.Log.Notes(ctx, s.project) {
		if err != nil {
			if damaged(err) {
				break // named by look
			}
			return err
		}
		all = append(all, n)
		for _, p := range n.Note.Prev {
			replaced[p] = true
		}
	}
	for _, n := range all {
		if n.Note.Erased != "" {
			continue
		}
		text, _ := s.Rules.Redact.Redact(values.Replace(n.Note.Text))
		if text == n.Note.Text {
			continue
		}
		if !replaced[n.Key] {
			next := *n.Note // its own time stays, so that a second try writes the same record
			next.Text, next.Prev, next.Origin = text, []memory.SHA{n.Key}, "scrub"
			if _, err := s.Log.PutNote(ctx, &next); err != nil {
				return err
			}
		}
		if err := s.Log.EraseRecords(ctx, s.project, eventlog.Notes, n.Key, tombstone); err != nil {
			return err
		}
		s.report.Notes++
	}
	return nil
}
