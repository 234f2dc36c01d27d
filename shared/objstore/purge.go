package objstore

import (
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Purger is a Driver of a store that can keep the old versions of objects.
type Purger interface {
	// PurgeVersions removes for good the versions of objects whose keys begin with prefix
	// that are not the present ones, and the marks of deletion. With exact, prefix is the
	// key of one object. It gives how many it removed; a bucket that keeps no versions has
	// none.
	PurgeVersions(ctx context.Context, prefix string, exact bool) (removed int, err error)
}

// PurgeVersions removes old versions for good; see Purger. A store that keeps none has
// none to remove.
func (b *Bucket) PurgeVersions(ctx context.Context, prefix string, exact bool) (removed int, err error) {
	p, ok := b.driver.(Purger)
	if !ok {
		return 0, nil
	}
	defer fault.Wrap(&err, "purge versions(%s)", prefix)
	if err := validPrefix(prefix); err != nil {
		return 0, err
	}
	return p.PurgeVersions(ctx, prefix, exact)
}
