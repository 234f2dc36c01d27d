package bleveindex

import (
	"context"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2/index/scorch/mergeplan"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

var _ index.Purger = (*Index)(nil)

// Purge implements index.Purger: the segments of each index that hold deleted passages
// are merged into one, and the index is closed, which takes the old ones off the disk.
// One that was wiped is a new folder, and needs nothing.
func (ix *Index) Purge(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "bleveindex.Purge")
	tenants, err := os.ReadDir(ix.root)
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	for _, t := range tenants {
		if !t.IsDir() {
			continue
		}
		projects, err := os.ReadDir(filepath.Join(ix.root, t.Name()))
		if err != nil {
			return fault.As(fault.Unavailable, err)
		}
		for _, p := range projects {
			for _, raw := range []bool{false, true} {
				if err := ix.purge(ctx, shardKey{t.Name(), p.Name(), raw}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// purges bounds how often an index is merged: what is in memory alone is not merged, and
// stands in a file once the index was closed.
const purges = 4

func (ix *Index) purge(ctx context.Context, k shardKey) error {
	for range purges {
		again, err := ix.purgeOnce(ctx, k)
		if err != nil || !again {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the index of %s/%s still holds what was deleted", k.tenant, k.project)
}

// purgeOnce merges an index that holds deleted passages and opens it anew; false where
// there was none.
func (ix *Index) purgeOnce(ctx context.Context, k shardKey) (bool, error) {
	ix.mu.RLock()
	s, err := ix.shard(k, false)
	if err == nil && s != nil {
		var deleted bool
		if deleted, err = s.deleted(); err == nil && deleted {
			s.mu.Lock()
			err = fault.As(fault.Unavailable, s.idx.ForceMerge(ctx, &mergeplan.SingleSegmentMergePlanOptions))
			s.mu.Unlock()
		} else {
			s = nil
		}
	}
	ix.mu.RUnlock()
	if err != nil || s == nil {
		return false, err
	}
	ix.mu.Lock() // after the searches under way
	defer ix.mu.Unlock()
	if ix.closed || ix.shards[k] != s {
		return !ix.closed, nil
	}
	delete(ix.shards, k)
	if err := s.close(); err != nil {
		return false, err
	}
	// Opening removes the files that the index no longer names.
	again, err := openShard(ix.dir(k), ix.queue)
	if err == nil {
		ix.shards[k] = again
	}
	return true, err
}

// deleted reports whether a segment holds a passage that was deleted.
func (s *shard) deleted() (bool, error) {
	snap, err := s.snapshot()
	if err != nil {
		return false, err
	}
	defer snap.Close()
	for _, seg := range snap.Segments() {
		if d := seg.Deleted(); d != nil && !d.IsEmpty() {
			return true, nil
		}
	}
	return false, nil
}
