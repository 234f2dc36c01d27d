package s3store

import (
	"context"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/mneme-ai/mneme/shared/objstore"
)

var _ objstore.Purger = (*Store)(nil)

// PurgeVersions implements objstore.Purger. A bucket that never kept versions is not
// listed: not every store has the call.
func (s *Store) PurgeVersions(ctx context.Context, prefix string, exact bool) (removed int, err error) {
	v, err := s.core.GetBucketVersioning(ctx, s.bucket)
	if versionless(err) {
		return 0, nil
	}
	if err != nil {
		return 0, asFault(err)
	}
	if v.Status == "" {
		return 0, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing where a removal failed
	for o := range s.core.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, WithVersions: true}) {
		if o.Err != nil {
			return removed, asFault(o.Err)
		}
		if exact && strings.TrimPrefix(o.Key, s.prefix) != prefix || o.IsLatest && !o.IsDeleteMarker {
			continue
		}
		if err := s.core.RemoveObject(ctx, s.bucket, o.Key, minio.RemoveObjectOptions{VersionID: o.VersionID}); err != nil {
			return removed, asVersionFault(err)
		}
		removed++
	}
	return removed, nil
}
