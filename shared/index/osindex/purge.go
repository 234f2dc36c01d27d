package osindex

import (
	"context"
	"net/http"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

var _ index.Purger = (*Index)(nil)

const (
	// purgeTries is how often segments are merged: a shard keeps deleted documents until
	// its own retention lease has moved past them, which it does every 30 s by default.
	purgeTries = 20
	purgePause = 3 * time.Second
)

// Purge implements index.Purger: segments are merged until none holds a deleted document,
// and the translog is begun anew.
func (ix *Index) Purge(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "osindex.Purge")
	for _, alias := range []string{ix.passages, ix.nodes, ix.positions} {
		for try := 0; ; try++ {
			for _, do := range []string{"/_refresh", "/_flush?force=true&wait_if_ongoing=true", "/_forcemerge?max_num_segments=1&flush=true", "/_flush?force=true&wait_if_ongoing=true", "/_refresh"} {
				if err := ix.call(ctx, http.MethodPost, "/"+alias+do, nil, nil); err != nil {
					return err
				}
			}
			var stats struct {
				All struct {
					Primaries struct {
						Docs struct {
							Deleted int64 `json:"deleted"`
						} `json:"docs"`
					} `json:"primaries"`
				} `json:"_all"`
			}
			if err := ix.call(ctx, http.MethodGet, "/"+alias+"/_stats/docs", nil, &stats); err != nil {
				return err
			}
			left := stats.All.Primaries.Docs.Deleted
			if left == 0 {
				break
			}
			if try == purgeTries {
				return fault.At(fault.Unavailable, "OpenSearch", "call it again: a replica that is being copied holds them", "%d deleted documents are still in its segments", left)
			}
			select {
			case <-ctx.Done():
				return fault.As(fault.Unavailable, context.Cause(ctx))
			case <-time.After(purgePause):
			}
		}
	}
	return nil
}
