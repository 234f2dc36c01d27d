package originals

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// bury puts a stub in the place of an original.
func (s *Store) bury(ctx context.Context, key string) error {
	s.forget(key)
	line, err := json.Marshal(struct {
		V    int       `json:"v"`
		Gone time.Time `json:"gone"`
	}{version, s.now()})
	if err != nil {
		return fault.As(fault.Internal, err)
	}
	if _, err := s.cfg.Bucket.Put(ctx, key+gone, append(line, '\n')); err != nil {
		return err
	}
	return s.cfg.Bucket.Delete(ctx, key)
}

// trim pushes out what a project has over MaxEntries, and removes old stubs. It
// counts from time to time: the bound is met within listEvery puts.
func (s *Store) trim(ctx context.Context, project string) error {
	s.mu.Lock()
	n, known := s.count[project]
	s.count[project] = n + 1
	due := !known || n+1 >= listEvery || s.alive[project]+n+1 > s.cfg.MaxEntries
	if due {
		s.count[project] = 0
	}
	s.mu.Unlock()
	if !due {
		return nil
	}
	var alive []objstore.Info
	now := s.cfg.Now()
	for info, err := range s.cfg.Bucket.List(ctx, s.prefix(project)) {
		if err != nil {
			return err
		}
		age := now.Sub(info.ModTime) // of the last touch, by the store's clock
		switch {
		case !strings.HasSuffix(info.Key, gone) && age <= 2*s.cfg.TTL:
			alive = append(alive, info)
			continue
		case !strings.HasSuffix(info.Key, gone):
			err = s.bury(ctx, info.Key)
		case age > stubAge:
			err = s.cfg.Bucket.Delete(ctx, info.Key)
		}
		if err != nil {
			return err
		}
	}
	over := len(alive) - s.cfg.MaxEntries
	if over > 0 {
		slices.SortFunc(alive, func(a, b objstore.Info) int {
			return cmp.Or(a.ModTime.Compare(b.ModTime), cmp.Compare(a.Key, b.Key))
		})
		for _, info := range alive[:over] {
			if err := s.bury(ctx, info.Key); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	s.alive[project] = len(alive) - max(over, 0)
	s.mu.Unlock()
	return nil
}

// Wipe removes every original of a project, and what is kept of them here.
func (s *Store) Wipe(ctx context.Context, project string) (err error) {
	defer fault.Wrap(&err, "wipe originals(%s)", project)
	if !memory.ValidName(project) {
		return fault.New(fault.Invalid, "%q is not a project name", project)
	}
	for info, err := range s.cfg.Bucket.List(ctx, s.prefix(project)) {
		if err != nil {
			return err
		}
		if err := s.cfg.Bucket.Delete(ctx, info.Key); err != nil {
			return err
		}
		s.forget(info.Key)
	}
	return nil
}
