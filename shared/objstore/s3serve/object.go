package s3serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// The headers that a client may send with an object and gets back with it.
const (
	headerEncoding    = "content-encoding"
	headerDisposition = "content-disposition"
	headerLanguage    = "content-language"
	headerCache       = "cache-control"
	headerExpires     = "expires"
)

func attrs(contentType, encoding, disposition, language, cache, expires *string, meta map[string]string) dirstore.Attrs {
	a := dirstore.Attrs{ContentType: deref(contentType)}
	for name, v := range map[string]*string{
		headerEncoding: encoding, headerDisposition: disposition, headerLanguage: language, headerCache: cache, headerExpires: expires,
	} {
		if deref(v) != "" {
			if a.Headers == nil {
				a.Headers = map[string]string{}
			}
			a.Headers[name] = *v
		}
	}
	if a.ContentType == defaultContentType {
		a.ContentType = ""
	}
	for name, v := range meta {
		if a.Meta == nil {
			a.Meta = map[string]string{}
		}
		a.Meta[strings.ToLower(name)] = v
	}
	return a
}

// defaultContentType is what S3 gives an object that came without one.
const defaultContentType = "binary/octet-stream"

func contentType(a dirstore.Attrs) *string {
	if a.ContentType == "" {
		return ptr(defaultContentType)
	}
	return &a.ContentType
}

// condition is the write condition of S3's two headers.
func condition(ifMatch, ifNoneMatch *string) (objstore.Condition, error) {
	// The gateway's own check of what it supports; no object is looked at.
	if err := backend.EvaluateObjectPutPreconditions(deref(ifMatch), ifMatch, ifNoneMatch, ifMatch != nil); err != nil {
		return objstore.Condition{}, err
	}
	return objstore.Condition{Create: ifNoneMatch != nil, IfMatch: deref(ifMatch)}, nil
}

// write stores an object in transcripts under the client's conditions.
func (s *store) write(ctx context.Context, key string, r io.Reader, size int64, ifMatch, ifNoneMatch *string, a dirstore.Attrs) (objstore.Info, error) {
	cond, err := condition(ifMatch, ifNoneMatch)
	if err != nil {
		return objstore.Info{}, err
	}
	// The gateway's strings are views of a buffer that the next request reuses.
	key = strings.Clone(key)
	ctx = unhurried(ctx)
	info, err := s.transcripts.PutAttrs(ctx, key, r, size, cond, a)
	if errors.Is(err, objstore.ErrPrecondition) {
		switch {
		case cond.Create:
			return info, s3err.GetPreconditionFailedErr(s3err.ConditionIfNoneMatch)
		case s.absent(ctx, key):
			return info, s3err.GetAPIError(s3err.ErrNoSuchKey)
		}
		return info, s3err.GetPreconditionFailedErr(s3err.ConditionIfMatch)
	}
	if err != nil {
		return info, asS3(err)
	}
	s.tell(info)
	return info, nil
}

// unhurried is a request's context without its end, which the gateway sets when
// it begins to shut down: what is under way then is finished first. It does not
// end with the client either, whose body breaks off instead.
func unhurried(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (s *store) absent(ctx context.Context, key string) bool {
	_, err := s.transcripts.Head(ctx, key)
	return errors.Is(err, objstore.ErrNotFound)
}

// PutObject implements backend.Backend.
func (s *store) PutObject(ctx context.Context, in s3response.PutObjectInput) (out s3response.PutObjectOutput, err error) {
	if _, err := s.writable(in.Bucket); err != nil {
		return out, err
	}
	if deref(in.Tagging) != "" {
		return out, s3err.GetAPIError(s3err.ErrNotImplemented)
	}
	body, err := checked(in.Body, sums{
		types.ChecksumAlgorithmCrc32: in.ChecksumCRC32, types.ChecksumAlgorithmCrc32c: in.ChecksumCRC32C,
		types.ChecksumAlgorithmCrc64nvme: in.ChecksumCRC64NVME, types.ChecksumAlgorithmSha1: in.ChecksumSHA1,
		types.ChecksumAlgorithmSha256: in.ChecksumSHA256, types.ChecksumAlgorithmSha512: in.ChecksumSHA512,
		types.ChecksumAlgorithmMd5: in.ChecksumMD5,
	}, "")
	if err != nil {
		return out, asS3(err)
	}
	info, err := s.write(ctx, deref(in.Key), body, deref(in.ContentLength), in.IfMatch, in.IfNoneMatch,
		attrs(in.ContentType, in.ContentEncoding, in.ContentDisposition, in.ContentLanguage, in.CacheControl, in.Expires, in.Metadata))
	if err != nil {
		return out, err
	}
	out = s3response.PutObjectOutput{ETag: quoted(info.ETag), Size: &info.SizeBytes}
	body.answer(answers{
		types.ChecksumAlgorithmCrc32: &out.ChecksumCRC32, types.ChecksumAlgorithmCrc32c: &out.ChecksumCRC32C,
		types.ChecksumAlgorithmCrc64nvme: &out.ChecksumCRC64NVME, types.ChecksumAlgorithmSha1: &out.ChecksumSHA1,
		types.ChecksumAlgorithmSha256: &out.ChecksumSHA256, types.ChecksumAlgorithmSha512: &out.ChecksumSHA512,
		types.ChecksumAlgorithmMd5: &out.ChecksumMD5,
	})
	if body.algorithm != "" {
		out.ChecksumType = types.ChecksumTypeFullObject
	}
	return out, nil
}

// found is an object that a read asks for, its conditions met.
type found struct {
	info         objstore.Info
	attrs        dirstore.Attrs
	from, n      int64
	contentRange *string
}

func (s *store) find(ctx context.Context, bucket, key, version, byteRange *string, part *int32, pre backend.PreConditions) (*dirstore.Store, found, error) {
	d, err := s.bucket(bucket)
	if err != nil {
		return nil, found{}, err
	}
	if v := deref(version); v != "" && v != "null" {
		return nil, found{}, s3err.GetInvalidArgumentErr(s3err.InvalidArgVersionId, v)
	}
	info, a, err := d.Stat(ctx, strings.Clone(deref(key)))
	if err != nil {
		if fault.Is(err, fault.Invalid) {
			err = objstore.ErrNotFound // no object can have this key
		}
		return nil, found{}, asS3(err)
	}
	if err := backend.EvaluatePreconditions(info.ETag, info.ModTime, pre); err != nil {
		return nil, found{}, err
	}
	if deref(part) > 1 {
		// The borders of parts are not kept; part 1 is the whole object.
		return nil, found{}, s3err.GetInvalidPartNumberRangeErr(1, *part)
	}
	from, n, partial, err := backend.ParseObjectRange(info.SizeBytes, deref(byteRange))
	if err != nil {
		return nil, found{}, err
	}
	f := found{info: info, attrs: a, from: from, n: n}
	if partial {
		f.contentRange = ptr(fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, info.SizeBytes))
	}
	return d, f, nil
}

// HeadObject implements backend.Backend.
func (s *store) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	_, f, err := s.find(ctx, in.Bucket, in.Key, in.VersionId, in.Range, in.PartNumber,
		backend.PreConditions{IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch, IfModSince: in.IfModifiedSince, IfUnmodeSince: in.IfUnmodifiedSince})
	if err != nil {
		return nil, err
	}
	return &s3.HeadObjectOutput{
		AcceptRanges:       ptr("bytes"),
		ContentLength:      &f.n,
		ContentRange:       f.contentRange,
		ContentType:        contentType(f.attrs),
		ContentEncoding:    orNil(f.attrs.Headers[headerEncoding]),
		ContentDisposition: orNil(f.attrs.Headers[headerDisposition]),
		ContentLanguage:    orNil(f.attrs.Headers[headerLanguage]),
		CacheControl:       orNil(f.attrs.Headers[headerCache]),
		ExpiresString:      orNil(f.attrs.Headers[headerExpires]),
		ETag:               ptr(quoted(f.info.ETag)),
		LastModified:       &f.info.ModTime,
		Metadata:           f.attrs.Meta,
		StorageClass:       types.StorageClassStandard,
	}, nil
}

// readTries bounds the race of a read with writers of the same key.
const readTries = 10

// GetObject implements backend.Backend.
func (s *store) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	// The body is read after this call, when the gateway may reuse ctx.
	ctx = unhurried(ctx)
	for range readTries {
		d, f, err := s.find(ctx, in.Bucket, in.Key, in.VersionId, in.Range, in.PartNumber,
			backend.PreConditions{IfMatch: in.IfMatch, IfNoneMatch: in.IfNoneMatch, IfModSince: in.IfModifiedSince, IfUnmodeSince: in.IfUnmodifiedSince})
		if err != nil {
			return nil, err
		}
		body, info, err := d.Get(ctx, f.info.Key, f.from, f.n)
		if err != nil {
			return nil, asS3(err)
		}
		if info != f.info { // replaced in between: the range was another object's
			body.Close()
			continue
		}
		return &s3.GetObjectOutput{
			AcceptRanges:       ptr("bytes"),
			Body:               body,
			ContentLength:      &f.n,
			ContentRange:       f.contentRange,
			ContentType:        contentType(f.attrs),
			ContentEncoding:    orNil(f.attrs.Headers[headerEncoding]),
			ContentDisposition: orNil(f.attrs.Headers[headerDisposition]),
			ContentLanguage:    orNil(f.attrs.Headers[headerLanguage]),
			CacheControl:       orNil(f.attrs.Headers[headerCache]),
			ExpiresString:      orNil(f.attrs.Headers[headerExpires]),
			ETag:               ptr(quoted(info.ETag)),
			LastModified:       &info.ModTime,
			Metadata:           f.attrs.Meta,
			StorageClass:       types.StorageClassStandard,
		}, nil
	}
	return nil, asS3(fault.New(fault.Unavailable, "the object changes faster than it can be read"))
}

// DeleteObject implements backend.Backend.
func (s *store) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	d, err := s.writable(in.Bucket)
	if err != nil {
		return nil, err
	}
	if in.IfMatch != nil || in.IfMatchLastModifiedTime != nil || in.IfMatchSize != nil {
		info, err := d.Head(ctx, deref(in.Key))
		if err != nil {
			return nil, asS3(err)
		}
		err = backend.EvaluateObjectDeletePreconditions(info.ETag, info.ModTime, info.SizeBytes, backend.ObjectDeletePreconditions{
			IfMatch: in.IfMatch, IfMatchLastModTime: in.IfMatchLastModifiedTime, IfMatchSize: in.IfMatchSize})
		if err != nil {
			return nil, err
		}
	}
	if err := d.Delete(ctx, deref(in.Key)); err != nil && !fault.Is(err, fault.Invalid) { // no object can have an invalid key
		return nil, asS3(err)
	}
	return &s3.DeleteObjectOutput{}, nil
}

// DeleteObjects implements backend.Backend.
func (s *store) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (out s3response.DeleteResult, err error) {
	if _, err := s.writable(in.Bucket); err != nil {
		return out, err
	}
	for _, o := range in.Delete.Objects {
		if _, err := s.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: in.Bucket, Key: o.Key}); err != nil {
			out.Error = append(out.Error, s3err.ObjectDeleteError(o.Key, o.VersionId, err))
			continue
		}
		out.Deleted = append(out.Deleted, types.DeletedObject{Key: o.Key})
	}
	return out, nil
}

// CopyObject implements backend.Backend.
func (s *store) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (out s3response.CopyObjectOutput, err error) {
	if _, err := s.writable(in.Bucket); err != nil {
		return out, err
	}
	body, f, err := s.openSource(unhurried(ctx), in.CopySource, "", backend.PreConditions{
		IfMatch: in.CopySourceIfMatch, IfNoneMatch: in.CopySourceIfNoneMatch, IfModSince: in.CopySourceIfModifiedSince, IfUnmodeSince: in.CopySourceIfUnmodifiedSince})
	if err != nil {
		return out, err
	}
	defer body.Close()
	a := f.attrs
	if in.MetadataDirective == types.MetadataDirectiveReplace {
		a = attrs(in.ContentType, in.ContentEncoding, in.ContentDisposition, in.ContentLanguage, in.CacheControl, in.Expires, in.Metadata)
	}
	info, err := s.write(ctx, deref(in.Key), body, f.n, nil, nil, a)
	if err != nil {
		return out, err
	}
	out.CopyObjectResult = &s3response.CopyObjectResult{ETag: ptr(quoted(info.ETag)), LastModified: &info.ModTime}
	return out, nil
}

// openSource opens what an x-amz-copy-source header names. The gateway has
// checked that the client may read that bucket.
func (s *store) openSource(ctx context.Context, source *string, byteRange string, pre backend.PreConditions) (io.ReadCloser, found, error) {
	bucket, key, version, err := backend.ParseCopySource(deref(source))
	if err != nil {
		return nil, found{}, err
	}
	d, f, err := s.find(ctx, &bucket, &key, &version, nil, nil, pre)
	if err != nil {
		return nil, found{}, err
	}
	if byteRange != "" {
		if f.from, f.n, err = backend.ParseCopySourceRange(f.info.SizeBytes, byteRange); err != nil {
			return nil, found{}, err
		}
		f.n = min(f.n, f.info.SizeBytes-f.from)
	}
	body, info, err := d.Get(ctx, key, f.from, f.n)
	if err != nil {
		return nil, found{}, asS3(err)
	}
	if info != f.info {
		body.Close()
		return nil, found{}, asS3(fault.New(fault.Unavailable, "the source changed while it was opened"))
	}
	return body, f, nil
}
