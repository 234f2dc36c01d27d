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

// trim pushes out what a project has over MaxEntries and MaxTotal, and removes old
// stubs, after packed bytes were put. It counts from time to time: the bounds are met
// within listEvery puts.
func (s *Store) trim(ctx context.Context, project string, packed int64) error {
	s.mu.Lock()
	n := s.puts[project]
	n.since++
	n.bytes += packed
	due := n.since == 1 && n.alive == 0 || n.since >= listEvery || n.alive+n.since > s.cfg.MaxEntries || n.bytes > s.cfg.MaxTotal
	s.puts[project] = n
	s.mu.Unlock()
	if !due {
		return nil
	}
	var alive, rest []objstore.Info
	var now time.Time // by the store's clock, which need not be ours: of what was put last
	for info, err := range s.cfg.Bucket.List(ctx, s.prefix(project)) {
		if err != nil {
			return err
		}
		if info.ModTime.After(now) {
			now = info.ModTime
		}
		if strings.HasSuffix(info.Key, gone) {
			rest = append(rest, info)
		} else {
			alive = append(alive, info)
		}
	}
	for _, info := range rest {
		if now.Sub(info.ModTime) > stubAge {
			if err := s.cfg.Bucket.Delete(ctx, info.Key); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(alive, func(a, b objstore.Info) int {
		return cmp.Or(b.ModTime.Compare(a.ModTime), cmp.Compare(a.Key, b.Key))
	})
	held, bytes := 0, int64(0)
	for i, info := range alive { // those touched last stay, the newest whatever its size
		over := held == s.cfg.MaxEntries || i > 0 && bytes+info.SizeBytes > s.cfg.MaxTotal
		if over || now.Sub(info.ModTime) > 2*s.cfg.TTL {
			if err := s.bury(ctx, info.Key); err != nil {
				return err
			}
			continue
		}
		held++
		bytes += info.SizeBytes
	}
	s.mu.Lock()
	s.puts[project] = putCount{alive: held, bytes: bytes}
	s.mu.Unlock()
	return nil
}

// putCount is what a project was found to have, and what was put since.
type putCount struct {
	alive, since int
	bytes        int64 // packed
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
