package bleveindex

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch/mergeplan"
	bleve "github.com/blevesearch/bleve_index_api"

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

// purges bounds how often an index is merged: segments that come to stand in a file
// meanwhile are merged by the next round.
const purges = 4

func (ix *Index) purge(ctx context.Context, k shardKey) error {
	for range purges {
		again, err := ix.purgeOnce(ctx, k)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// purgeOnce merges an index that holds deleted passages and opens it anew; again says that
// it is to be looked at once more.
func (ix *Index) purgeOnce(ctx context.Context, k shardKey) (again bool, err error) {
	ix.mu.RLock()
	s, err := ix.shard(k, false)
	if err == nil && s != nil {
		var deleted bool
		var segments int
		if deleted, segments, err = s.deleted(); err == nil && deleted {
			s.mu.Lock()
			again = segments > 1
			err = fault.As(fault.Unavailable, s.merge(ctx, segments))
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
	opened, err := openShard(ix.dir(k), ix.queue)
	if err == nil {
		ix.shards[k] = opened
	}
	return again, err
}

// blank is the id of a document without a field: what no search finds.
const blank = "\x00blank"

// merge makes one segment of all. One alone is never merged: a blank document gives it a
// second one, and is all that is deleted in the outcome.
func (s *shard) merge(ctx context.Context, segments int) error {
	if segments > 1 {
		return s.idx.ForceMerge(ctx, &mergeplan.SingleSegmentMergePlanOptions)
	}
	add, remove := bleve.NewBatch(), bleve.NewBatch()
	add.Update(document.NewDocument(blank))
	remove.Delete(blank)
	if err := s.idx.Batch(add); err != nil {
		return err
	}
	err := s.idx.ForceMerge(ctx, &mergeplan.SingleSegmentMergePlanOptions)
	return errors.Join(err, s.idx.Batch(remove))
}

// deleted reports whether a segment holds a passage that was deleted, and how many
// segments there are.
func (s *shard) deleted() (bool, int, error) {
	snap, err := s.snapshot()
	if err != nil {
		return false, 0, err
	}
	defer snap.Close()
	segments := snap.Segments()
	for _, seg := range segments {
		if d := seg.Deleted(); d != nil && !d.IsEmpty() {
			return true, len(segments), nil
		}
	}
	return false, len(segments), nil
}
