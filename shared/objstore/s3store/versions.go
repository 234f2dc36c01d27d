package s3store

import (
	"context"
	"errors"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/mneme-ai/mneme/shared/fault"
)

// purgeRounds is how often DeleteVersions looks again: a writer may add a
// version between the listing and the deletes.
const purgeRounds = 4

// DeleteVersions implements objstore.Driver. A server that lists no versions
// keeps none.
func (s *Store) DeleteVersions(ctx context.Context, key string) (int, error) {
	removed, err := s.abortUploads(ctx, key)
	if err != nil {
		return removed, err
	}
	for range purgeRounds {
		found, err := s.versions(ctx, key)
		if versionless(err) {
			return s.deleteOnly(ctx, key, removed)
		}
		if err != nil {
			return removed, err
		}
		if len(found) == 0 {
			return removed, nil
		}
		for _, o := range found {
			err := s.core.RemoveObject(ctx, s.bucket, o.Key, minio.RemoveObjectOptions{VersionID: o.VersionID})
			if code := minio.ToErrorResponse(err).StatusCode; err != nil && code != http.StatusNotFound {
				return removed, asVersionFault(err)
			}
			removed++
		}
	}
	return removed, fault.New(fault.Unavailable, "versions of the object appear while they are removed")
}

// versions are the versions and delete markers of exactly this key.
func (s *Store) versions(ctx context.Context, key string) ([]minio.ObjectInfo, error) {
	ctx, cancel := context.WithCancel(ctx) // the iterator reads ahead
	defer cancel()
	var found []minio.ObjectInfo
	for o := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + key, Recursive: true, WithVersions: true}) {
		if o.Err != nil {
			return nil, asFault(o.Err)
		}
		if o.Key > s.prefix+key { // keys come in byte order, and this one before all that it begins
			break
		}
		if o.Key == s.prefix+key {
			found = append(found, o)
		}
	}
	if ctx.Err() != nil {
		return nil, fault.As(fault.Unavailable, context.Cause(ctx))
	}
	return found, nil
}

// abortUploads removes the parts of uploads of this key that nobody completed.
func (s *Store) abortUploads(ctx context.Context, key string) (int, error) {
	var ids []string
	var fail error
	for u := range s.core.ListIncompleteUploads(ctx, s.bucket, s.prefix+key, true) { // read to its end, as its sender waits for that
		if u.Err != nil {
			fail = asFault(u.Err)
		} else if u.Key == s.prefix+key {
			ids = append(ids, u.UploadID)
		}
	}
	if fail != nil && !versionless(fail) {
		return 0, fail
	}
	for i, id := range ids {
		if err := s.core.AbortMultipartUpload(ctx, s.bucket, s.prefix+key, id); err != nil && minio.ToErrorResponse(err).StatusCode != http.StatusNotFound {
			return i, asFault(err)
		}
	}
	return len(ids), nil
}

// deleteOnly is DeleteVersions where the server keeps no versions.
func (s *Store) deleteOnly(ctx context.Context, key string, removed int) (int, error) {
	switch _, err := s.Head(ctx, key); {
	case fault.Is(err, fault.NotFound):
		return removed, nil
	case err != nil:
		return removed, err
	}
	if err := s.Delete(ctx, key); err != nil {
		return removed, err
	}
	return removed + 1, nil
}

// versionless is a server's answer that it has no such call.
func versionless(err error) bool {
	resp, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && (resp.StatusCode == http.StatusNotImplemented || resp.StatusCode == http.StatusMethodNotAllowed)
}

// asVersionFault names the usual reason for a refusal.
func asVersionFault(err error) error {
	err = asFault(err)
	if fault.Is(err, fault.Denied) {
		return fault.At(fault.Denied, "version", "end its retention or legal hold, or grant the key s3:DeleteObjectVersion, and repeat", "the store refuses to remove a version: %v", err)
	}
	return err
}

// Versioning makes the bucket that c names keep versions.
func Versioning(ctx context.Context, c Config) (err error) {
	defer fault.Wrap(&err, "versioning(%s)", c.Bucket)
	s, err := Open(c)
	if err != nil {
		return err
	}
	return asFault(s.core.EnableVersioning(ctx, s.bucket))
}
