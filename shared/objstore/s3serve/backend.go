package s3serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// store is the gateway's backend: S3's operations over two directory stores.
// What it does not implement answers NotImplemented.
type store struct {
	backend.BackendUnsupported
	config      Config
	transcripts *dirstore.Store
	mneme       *dirstore.Store
	parts       *dirstore.Store // of unfinished uploads: <upload id>/<part, 5 digits> and <upload id>/upload.json
	created     time.Time
}

var _ backend.Backend = (*store)(nil)

func openStore(ctx context.Context, c Config) (_ *store, err error) {
	s := &store{config: c}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.transcripts, err = OpenTranscripts(c.DataDir); err != nil {
		return nil, err
	}
	if s.mneme, err = dirstore.Open(c.MnemeDir); err != nil {
		return nil, err
	}
	if s.parts, err = dirstore.Open(filepath.Join(c.DataDir, "uploads")); err != nil {
		return nil, err
	}
	st, err := os.Stat(s.transcripts.Root())
	if err != nil {
		return nil, err
	}
	s.created = st.ModTime()
	return s, s.dropStaleUploads(ctx)
}

// Close closes the stores that are open.
func (s *store) Close() {
	for _, d := range []*dirstore.Store{s.transcripts, s.mneme, s.parts} {
		if d != nil {
			d.Close()
		}
	}
}

// String implements backend.Backend.
func (*store) String() string { return "mneme" }

// bucket is the store of a bucket.
func (s *store) bucket(name *string) (*dirstore.Store, error) {
	switch deref(name) {
	case BucketTranscripts:
		return s.transcripts, nil
	case BucketMneme:
		return s.mneme, nil
	}
	return nil, s3err.GetBucketErr(s3err.ErrNoSuchBucket, deref(name))
}

// writable is the store of a bucket that S3 clients may write: transcripts.
func (s *store) writable(name *string) (*dirstore.Store, error) {
	d, err := s.bucket(name)
	if err == nil && d == s.mneme {
		return nil, denied()
	}
	return d, err
}

func denied() error { return s3err.GetAPIError(s3err.ErrAccessDenied) }

// created tells OnEvent of a new object.
func (s *store) tell(info objstore.Info) {
	if s.config.OnEvent != nil {
		s.config.OnEvent(BucketTranscripts, info.Key, info.ETag, info.SizeBytes)
	}
}

// ListBuckets implements backend.Backend.
func (s *store) ListBuckets(_ context.Context, in s3response.ListBucketsInput) (s3response.ListAllMyBucketsResult, error) {
	out := s3response.ListAllMyBucketsResult{Owner: s3response.CanonicalUser{ID: in.Owner}, Prefix: in.Prefix}
	for _, name := range []string{BucketMneme, BucketTranscripts} {
		if name == BucketMneme && !in.IsAdmin {
			continue
		}
		out.Buckets.Bucket = append(out.Buckets.Bucket, s3response.ListAllMyBucketsEntry{Name: name, BucketRegion: Region, CreationDate: s.created})
	}
	return out, nil
}

// HeadBucket implements backend.Backend.
func (s *store) HeadBucket(_ context.Context, in *s3.HeadBucketInput) (*s3.HeadBucketOutput, error) {
	_, err := s.bucket(in.Bucket)
	return &s3.HeadBucketOutput{}, err
}

// GetBucketAcl implements backend.Backend; the gateway asks before every call.
func (s *store) GetBucketAcl(_ context.Context, in *s3.GetBucketAclInput) ([]byte, error) {
	if _, err := s.bucket(in.Bucket); err != nil {
		return nil, err
	}
	return s.aclOf(*in.Bucket)
}

// CreateBucket implements backend.Backend.
func (*store) CreateBucket(context.Context, *s3.CreateBucketInput, []byte) error { return denied() }

// DeleteBucket implements backend.Backend.
func (*store) DeleteBucket(context.Context, string) error { return denied() }

// ListBucketsAndOwners implements backend.Backend.
func (s *store) ListBucketsAndOwners(context.Context) ([]s3response.Bucket, error) {
	return []s3response.Bucket{{Name: BucketMneme, Owner: s.config.OperatorAccessKey}, {Name: BucketTranscripts, Owner: s.config.AccessKey}}, nil
}

// What a bucket does not have, the gateway must hear by its own name.

// GetBucketPolicy implements backend.Backend.
func (*store) GetBucketPolicy(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchBucketPolicy)
}

// GetBucketCors implements backend.Backend: no web page may read a memory.
func (*store) GetBucketCors(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchCORSConfiguration)
}

// GetBucketVersioning implements backend.Backend.
func (*store) GetBucketVersioning(context.Context, string) (s3response.GetBucketVersioningOutput, error) {
	return s3response.GetBucketVersioningOutput{}, nil
}

// GetBucketOwnershipControls implements backend.Backend.
func (*store) GetBucketOwnershipControls(context.Context, string) (types.ObjectOwnership, error) {
	return types.ObjectOwnershipBucketOwnerEnforced, nil
}

// GetBucketTagging implements backend.Backend.
func (*store) GetBucketTagging(context.Context, string) (map[string]string, error) {
	return nil, s3err.GetAPIError(s3err.ErrBucketTaggingNotFound)
}

// GetBucketWebsite implements backend.Backend.
func (*store) GetBucketWebsite(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchWebsiteConfiguration)
}

// GetObjectLockConfiguration implements backend.Backend.
func (*store) GetObjectLockConfiguration(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrObjectLockConfigurationNotFound)
}

// GetObjectTagging implements backend.Backend.
func (s *store) GetObjectTagging(ctx context.Context, bucket, key, _ string) (map[string]string, error) {
	d, err := s.bucket(&bucket)
	if err == nil {
		_, err = d.Head(ctx, key)
	}
	return map[string]string{}, asS3(err)
}

// GetObjectAcl implements backend.Backend: the bucket's.
func (s *store) GetObjectAcl(_ context.Context, in *s3.GetObjectAclInput) (*s3.GetObjectAclOutput, error) {
	data, err := s.GetBucketAcl(context.Background(), &s3.GetBucketAclInput{Bucket: in.Bucket})
	if err != nil {
		return nil, err
	}
	var acl auth.ACL
	if err := json.Unmarshal(data, &acl); err != nil {
		return nil, asS3(err)
	}
	owner := &types.Owner{ID: &acl.Owner}
	return &s3.GetObjectAclOutput{Owner: owner, Grants: []types.Grant{{
		Grantee: &types.Grantee{ID: &acl.Owner, Type: types.TypeCanonicalUser}, Permission: types.PermissionFullControl,
	}}}, nil
}

// asS3 is err as the client is told it; the message of a fault goes with it, so
// that "disk full" reaches who uploads.
func asS3(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[s3err.S3Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return s3err.GetAPIError(s3err.ErrNoSuchKey)
	case errors.Is(err, objstore.ErrFull):
		return s3err.APIError{Code: "InsufficientStorage", Description: err.Error(), HTTPStatusCode: http.StatusInsufficientStorage}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return s3err.GetAPIError(s3err.ErrIncompleteBody)
	}
	switch fault.KindOf(err) {
	case fault.Invalid:
		return s3err.APIError{Code: "InvalidRequest", Description: explain(err), HTTPStatusCode: http.StatusBadRequest}
	case fault.Unavailable, fault.Exhausted, fault.Conflict:
		return s3err.APIError{Code: "ServiceUnavailable", Description: explain(err), HTTPStatusCode: http.StatusServiceUnavailable}
	}
	return s3err.APIError{Code: "InternalError", Description: explain(err), HTTPStatusCode: http.StatusInternalServerError}
}

func explain(err error) string {
	if hint := fault.HintOf(err); hint != "" {
		return fmt.Sprintf("%v (%s)", err, hint)
	}
	return err.Error()
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func ptr[T any](v T) *T { return &v }

// orNil is v, or nil where v says nothing: an empty header is not sent.
func orNil(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

func quoted(etag string) string { return `"` + etag + `"` }
