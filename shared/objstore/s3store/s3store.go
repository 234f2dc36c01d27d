// Package s3store is the objstore.Driver over S3, by minio-go.
//
// It sends one request a call and never retries: objstore.Bucket does, because
// only it can tell a lost answer from a lost race. A write with a condition
// goes as one PUT, or, when its size is unknown and large, as a multipart
// upload whose completion carries the condition: minio-go's own multipart
// upload drops it.
//
// An object "a" and an object "a/b" together: versitygw over a folder refuses the
// second, and MinIO takes it but leaves it out of listings (its documented limit
// "conflicting objects as parent"), so that a sweep of the inbox does not see it.
//
// Errors: 412 (and 404 under If-Match) is objstore.ErrPrecondition, 409
// ConditionalRequestConflict and every 5xx, 429 and network error is
// fault.Unavailable, 507 also objstore.ErrFull, 403 is fault.Denied.
package s3store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Config says where the bucket is.
type Config struct {
	Endpoint  string // URL, http or https, without a path
	Bucket    string // must exist
	AccessKey string
	SecretKey string
	Region    string // default us-east-1, which MinIO and versitygw answer to
	// Prefix is put before every key, so that several stores can share a
	// bucket. Empty, or ending with "/".
	Prefix string
}

// Validate names every wrong field.
func (c Config) Validate() error {
	var bad []string
	if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		bad = append(bad, "Endpoint (want http://host:port)")
	}
	if err := s3utils.CheckValidBucketNameStrict(c.Bucket); err != nil {
		bad = append(bad, fmt.Sprintf("Bucket (%v)", err))
	}
	if c.AccessKey == "" {
		bad = append(bad, "AccessKey (empty)")
	}
	if c.SecretKey == "" {
		bad = append(bad, "SecretKey (empty)")
	}
	if c.Prefix != "" && (!strings.HasSuffix(c.Prefix, "/") || objstore.ValidKey(strings.TrimSuffix(c.Prefix, "/")) != nil) {
		bad = append(bad, `Prefix (want key parts, each followed by "/")`)
	}
	if bad != nil {
		return fault.New(fault.Invalid, "wrong S3 settings: %s", strings.Join(bad, ", "))
	}
	return nil
}

// Store is one bucket of an S3 server, or what lies under a prefix of it.
type Store struct {
	core           minio.Core
	bucket, prefix string
	minio          *atomic.Bool // the server called itself MinIO
}

var _ objstore.Driver = (*Store)(nil)

// answerTimeout is how long a server may take from the end of a request to the
// first byte of its answer: a completion of a large multipart upload copies it.
const answerTimeout = 2 * time.Minute

// Open makes the driver. It sends nothing: a server that is down is found by
// the first call.
func Open(c Config) (_ *Store, err error) {
	defer fault.Wrap(&err, "open(%s)", c.Bucket)
	if err := c.Validate(); err != nil {
		return nil, err
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	region := c.Region
	if region == "" {
		region = "us-east-1"
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = answerTimeout
	isMinIO := new(atomic.Bool)
	client, err := minio.New(u.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(c.AccessKey, c.SecretKey, ""),
		Secure:       u.Scheme == "https",
		Transport:    dated{transport, isMinIO},
		Region:       region, // spares the look-up of the bucket's
		BucketLookup: minio.BucketLookupPath,
		MaxRetries:   1,
	})
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	return &Store{core: minio.Core{Client: client}, bucket: c.Bucket, prefix: c.Prefix, minio: isMinIO}, nil
}

// dated notes the Date header of the last answer of a call, S3's only clock, and
// whether the server is MinIO.
type dated struct {
	next  http.RoundTripper
	minio *atomic.Bool
}

type dateKey struct{}

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(resp.Header.Get("Server"), "MinIO") {
		d.minio.Store(true)
	}
	if to, ok := r.Context().Value(dateKey{}).(*time.Time); ok {
		if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			*to = t.UTC()
		}
	}
	return resp, nil
}

func withDate(ctx context.Context) (context.Context, *time.Time) {
	date := new(time.Time)
	return context.WithValue(ctx, dateKey{}, date), date
}

// Get implements objstore.Driver.
func (s *Store) Get(ctx context.Context, key string, from, n int64) (io.ReadCloser, objstore.Info, error) {
	var opts minio.GetObjectOptions
	switch {
	case n == 0:
		return s.getNothing(ctx, key)
	case n > 0:
		opts.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(from+n-1, 10))
	case from > 0:
		opts.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
	}
	body, info, header, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, opts)
	if err != nil {
		if minio.ToErrorResponse(err).StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return s.getNothing(ctx, key)
		}
		return nil, objstore.Info{}, asFault(err)
	}
	got := s.info(info)
	got.Key = key
	if _, whole, ok := strings.Cut(header.Get("Content-Range"), "/"); ok {
		if size, err := strconv.ParseInt(whole, 10, 64); err == nil {
			got.SizeBytes = size
		}
	}
	return faultReader{body}, got, nil
}

// getNothing is a range without bytes, which S3 has no way to ask for.
func (s *Store) getNothing(ctx context.Context, key string) (io.ReadCloser, objstore.Info, error) {
	info, err := s.Head(ctx, key)
	return http.NoBody, info, err
}

// faultReader gives a body that breaks off its kind.
type faultReader struct{ io.ReadCloser }

func (r faultReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = fault.As(fault.Unavailable, err)
	}
	return n, err
}

// Head implements objstore.Driver.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, err := s.core.StatObject(ctx, s.bucket, s.prefix+key, minio.StatObjectOptions{})
	if err != nil {
		return objstore.Info{}, asFault(err)
	}
	got := s.info(info)
	got.Key = key
	return got, nil
}

func (s *Store) info(o minio.ObjectInfo) objstore.Info {
	return objstore.Info{
		Key:       strings.TrimPrefix(o.Key, s.prefix),
		ETag:      strings.Trim(o.ETag, `"`),
		SizeBytes: o.Size,
		ModTime:   o.LastModified.UTC(),
	}
}

// List implements objstore.Driver.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objstore.Info, error) {
	found, err := s.list(ctx, prefix, after, after, limit)
	// MinIO (to its last release) counts towards a page what it then leaves out
	// as not past `after`: the keys of "a-b/" for an `after` inside "a/". Where
	// these fill the page, it says that the listing has ended. From the start it
	// counts right.
	if err == nil && len(found) < limit && s.minio.Load() && strings.Contains(strings.TrimPrefix(after, prefix), "/") {
		return s.list(ctx, prefix, "", after, limit)
	}
	return found, err
}

// list gives what is greater than after, and asks the server for what follows from.
func (s *Store) list(ctx context.Context, prefix, from, after string, limit int) ([]objstore.Info, error) {
	// The iterator reads ahead a page; it ends with this call.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, MaxKeys: limit}
	if from != "" {
		opts.StartAfter = s.prefix + from
	} else if after != "" {
		opts.MaxKeys = 0 // the most that a page holds
	}
	var found []objstore.Info
	for o := range s.core.ListObjectsIter(ctx, s.bucket, opts) {
		if o.Err != nil {
			return nil, asFault(o.Err)
		}
		if info := s.info(o); info.Key > after {
			if found = append(found, info); len(found) >= limit {
				break
			}
		}
	}
	if ctx.Err() != nil {
		return nil, fault.As(fault.Unavailable, context.Cause(ctx))
	}
	return found, nil
}

// Delete implements objstore.Driver.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.core.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).StatusCode == http.StatusNotFound && minio.ToErrorResponse(err).Code != minio.NoSuchBucket {
		return nil
	}
	return asFault(err)
}

// Now implements objstore.Driver. S3's Date has whole seconds.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	ctx, date := withDate(ctx)
	if _, err := s.core.BucketExists(ctx, s.bucket); err != nil && date.IsZero() {
		return time.Time{}, asFault(err)
	}
	if date.IsZero() {
		return time.Time{}, fault.New(fault.Unavailable, "the store's answer has no Date header")
	}
	return *date, nil
}

// MakeBucket makes the bucket that c names, unless it is there.
func MakeBucket(ctx context.Context, c Config) (err error) {
	defer fault.Wrap(&err, "make bucket(%s)", c.Bucket)
	s, err := Open(c)
	if err != nil {
		return err
	}
	there, err := s.core.BucketExists(ctx, s.bucket)
	if err != nil || there {
		return asFault(err)
	}
	return asFault(s.core.MakeBucket(ctx, s.bucket, minio.MakeBucketOptions{Region: c.Region}))
}
