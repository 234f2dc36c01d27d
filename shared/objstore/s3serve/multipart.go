package s3serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// upload is an unfinished multipart upload, as it stands in upload.json.
type upload struct {
	ID        string                  `json:"id"`
	Key       string                  `json:"key"`
	Started   time.Time               `json:"started"`
	Attrs     dirstore.Attrs          `json:"attrs"`
	Algorithm types.ChecksumAlgorithm `json:"checksum_algorithm,omitempty"`
	Type      types.ChecksumType      `json:"checksum_type,omitempty"`
}

const (
	uploadFile = "/upload.json"
	// maxUploadBytes bounds upload.json: a key, S3's 8 KiB of metadata, escapes.
	maxUploadBytes = 64 << 10
	// staleUpload is how long an upload that nobody completes keeps its parts:
	// longer than any client retries, shorter than people forget a full disk.
	staleUpload = 7 * 24 * time.Hour
	listPage    = 1000
)

func partKey(id string, number int32) string { return fmt.Sprintf("%s/%05d", id, number) }

// getUpload reads an upload's record; key, unless empty, must be its key.
func (s *store) getUpload(ctx context.Context, id, key string) (upload, error) {
	var u upload
	if _, err := uuid.Parse(id); err != nil {
		return u, s3err.GetNoSuchUploadErr(id)
	}
	r, _, err := s.parts.Get(ctx, id+uploadFile, 0, maxUploadBytes)
	if errors.Is(err, objstore.ErrNotFound) {
		return u, s3err.GetNoSuchUploadErr(id)
	}
	if err != nil {
		return u, asS3(err)
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(&u); err != nil {
		return u, asS3(fault.As(fault.Corrupt, err))
	}
	if key != "" && u.Key != key {
		return u, s3err.GetNoSuchUploadErr(id)
	}
	return u, nil
}

// dropUpload removes the record first, so that no part of half an upload can
// be completed, then the parts.
func (s *store) dropUpload(ctx context.Context, id string) error {
	if err := s.parts.Delete(ctx, id+uploadFile); err != nil {
		return asS3(err)
	}
	for {
		infos, err := s.parts.List(ctx, id+"/", "", listPage)
		if err != nil || len(infos) == 0 {
			return asS3(err)
		}
		for _, info := range infos {
			if err := s.parts.Delete(ctx, info.Key); err != nil {
				return asS3(err)
			}
		}
	}
}

// dropStaleUploads removes what clients left unfinished, and parts whose record
// is gone.
func (s *store) dropStaleUploads(ctx context.Context) error {
	for after := ""; ; {
		infos, err := s.parts.List(ctx, "", after, 1)
		if err != nil || len(infos) == 0 {
			return err
		}
		id, _, _ := strings.Cut(infos[0].Key, "/")
		after = pastPrefix(id + "/")
		head, err := s.parts.Head(ctx, id+uploadFile)
		if err == nil && time.Since(head.ModTime) < staleUpload {
			continue
		}
		if err != nil && !errors.Is(err, objstore.ErrNotFound) {
			return err
		}
		if err := s.dropUpload(ctx, id); err != nil {
			return err
		}
	}
}

// CreateMultipartUpload implements backend.Backend.
func (s *store) CreateMultipartUpload(ctx context.Context, in s3response.CreateMultipartUploadInput) (out s3response.InitiateMultipartUploadResult, err error) {
	ctx = unhurried(ctx)
	if _, err := s.writable(in.Bucket); err != nil {
		return out, err
	}
	if err := objstore.ValidKey(deref(in.Key)); err != nil {
		return out, asS3(err)
	}
	if deref(in.Tagging) != "" {
		return out, s3err.GetAPIError(s3err.ErrNotImplemented)
	}
	u := upload{
		ID: uuid.NewString(), Key: *in.Key, Started: time.Now().UTC(), Algorithm: in.ChecksumAlgorithm, Type: in.ChecksumType,
		Attrs: attrs(in.ContentType, in.ContentEncoding, in.ContentDisposition, in.ContentLanguage, in.CacheControl, in.Expires, in.Metadata),
	}
	data, err := json.Marshal(u)
	if err != nil {
		return out, asS3(err)
	}
	if _, err := s.parts.Put(ctx, u.ID+uploadFile, bytes.NewReader(data), int64(len(data)), objstore.Condition{Create: true}); err != nil {
		return out, asS3(err)
	}
	return s3response.InitiateMultipartUploadResult{Bucket: *in.Bucket, Key: u.Key, UploadId: u.ID}, nil
}

// UploadPart implements backend.Backend.
func (s *store) UploadPart(ctx context.Context, in *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	ctx = unhurried(ctx)
	if _, err := s.writable(in.Bucket); err != nil {
		return nil, err
	}
	u, err := s.getUpload(ctx, deref(in.UploadId), deref(in.Key))
	if err != nil {
		return nil, err
	}
	body, err := checked(in.Body, sums{
		types.ChecksumAlgorithmCrc32: in.ChecksumCRC32, types.ChecksumAlgorithmCrc32c: in.ChecksumCRC32C,
		types.ChecksumAlgorithmCrc64nvme: in.ChecksumCRC64NVME, types.ChecksumAlgorithmSha1: in.ChecksumSHA1,
		types.ChecksumAlgorithmSha256: in.ChecksumSHA256,
	}, u.Algorithm)
	if err != nil {
		return nil, asS3(err)
	}
	info, err := s.parts.Put(ctx, partKey(u.ID, deref(in.PartNumber)), body, deref(in.ContentLength), objstore.Condition{})
	if err != nil {
		return nil, asS3(err)
	}
	out := &s3.UploadPartOutput{ETag: ptr(quoted(info.ETag))}
	body.answer(answers{
		types.ChecksumAlgorithmCrc32: &out.ChecksumCRC32, types.ChecksumAlgorithmCrc32c: &out.ChecksumCRC32C,
		types.ChecksumAlgorithmCrc64nvme: &out.ChecksumCRC64NVME, types.ChecksumAlgorithmSha1: &out.ChecksumSHA1,
		types.ChecksumAlgorithmSha256: &out.ChecksumSHA256,
	})
	return out, nil
}

// UploadPartCopy implements backend.Backend.
func (s *store) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput) (out s3response.CopyPartResult, err error) {
	ctx = unhurried(ctx)
	if _, err := s.writable(in.Bucket); err != nil {
		return out, err
	}
	u, err := s.getUpload(ctx, deref(in.UploadId), deref(in.Key))
	if err != nil {
		return out, err
	}
	body, f, err := s.openSource(ctx, in.CopySource, deref(in.CopySourceRange), backend.PreConditions{
		IfMatch: in.CopySourceIfMatch, IfNoneMatch: in.CopySourceIfNoneMatch, IfModSince: in.CopySourceIfModifiedSince, IfUnmodeSince: in.CopySourceIfUnmodifiedSince})
	if err != nil {
		return out, err
	}
	defer body.Close()
	info, err := s.parts.Put(ctx, partKey(u.ID, deref(in.PartNumber)), body, f.n, objstore.Condition{})
	if err != nil {
		return out, asS3(err)
	}
	return s3response.CopyPartResult{ETag: ptr(quoted(info.ETag)), LastModified: info.ModTime}, nil
}

// CompleteMultipartUpload implements backend.Backend. A repeat after a lost
// answer finds the upload gone and the object there, and succeeds.
func (s *store) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (out s3response.CompleteMultipartUploadResult, _ string, err error) {
	ctx = unhurried(ctx)
	if _, err := s.writable(in.Bucket); err != nil {
		return out, "", err
	}
	if in.MultipartUpload == nil || len(in.MultipartUpload.Parts) == 0 {
		return out, "", s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	parts := in.MultipartUpload.Parts
	etag, err := backend.ComputeMultipartETagFromPartETags(parts)
	if err != nil {
		return out, "", err
	}
	done := s3response.CompleteMultipartUploadResult{Bucket: in.Bucket, Key: in.Key, ETag: &etag}
	u, err := s.getUpload(ctx, deref(in.UploadId), deref(in.Key))
	if err != nil {
		if info, e := s.transcripts.Head(ctx, deref(in.Key)); e == nil && quoted(info.ETag) == etag {
			return done, "", nil
		}
		return out, "", err
	}
	body, err := s.joined(ctx, u.ID, parts)
	if err != nil {
		return out, "", err
	}
	defer body.Close()
	if in.MpuObjectSize != nil && *in.MpuObjectSize != body.size {
		return out, "", s3err.GetIncorrectMpObjectSizeErr(body.size, *in.MpuObjectSize)
	}
	given := sums{}
	for algorithm, sum := range (sums{
		types.ChecksumAlgorithmCrc32: in.ChecksumCRC32, types.ChecksumAlgorithmCrc32c: in.ChecksumCRC32C,
		types.ChecksumAlgorithmCrc64nvme: in.ChecksumCRC64NVME,
	}) {
		if sum != nil && !strings.Contains(*sum, "-") { // a sum of the parts' sums says no more than their ETags
			given[algorithm] = sum
		}
	}
	whole, err := checked(body, given, "")
	if err != nil {
		return out, "", asS3(err)
	}
	u.Attrs.ETag = strings.Trim(etag, `"`)
	if _, err := s.write(ctx, u.Key, whole, body.size, in.IfMatch, in.IfNoneMatch, u.Attrs); err != nil {
		return out, "", err
	}
	whole.answer(answers{
		types.ChecksumAlgorithmCrc32: &done.ChecksumCRC32, types.ChecksumAlgorithmCrc32c: &done.ChecksumCRC32C,
		types.ChecksumAlgorithmCrc64nvme: &done.ChecksumCRC64NVME,
	})
	if whole.algorithm != "" {
		done.ChecksumType = ptr(types.ChecksumTypeFullObject)
	}
	return done, "", s.dropUpload(ctx, u.ID)
}

// joinedParts reads parts one after the other, one file open at a time.
type joinedParts struct {
	ctx  context.Context
	s    *store
	keys []string
	open io.ReadCloser
	size int64
}

// joined checks the parts that a client names, and joins them.
func (s *store) joined(ctx context.Context, id string, parts []types.CompletedPart) (*joinedParts, error) {
	j := &joinedParts{ctx: ctx, s: s}
	for i, p := range parts { // neither field is nil: the joined ETag was made of them
		if i > 0 && *p.PartNumber <= *parts[i-1].PartNumber {
			return nil, s3err.GetAPIError(s3err.ErrInvalidPartOrder)
		}
	}
	for i, p := range parts {
		number := *p.PartNumber
		info, err := s.parts.Head(ctx, partKey(id, number))
		if errors.Is(err, objstore.ErrNotFound) || err == nil && !backend.AreEtagsSame(info.ETag, *p.ETag) {
			return nil, s3err.GetInvalidPartErr(id, number, *p.ETag)
		}
		if err != nil {
			return nil, asS3(err)
		}
		if i < len(parts)-1 && info.SizeBytes < backend.MinPartSize {
			return nil, s3err.GetEntityTooSmallErr(info.SizeBytes, backend.MinPartSize)
		}
		j.keys = append(j.keys, info.Key)
		j.size += info.SizeBytes
	}
	return j, nil
}

func (j *joinedParts) Read(p []byte) (int, error) {
	for {
		if j.open == nil {
			if len(j.keys) == 0 {
				return 0, io.EOF
			}
			r, _, err := j.s.parts.Get(j.ctx, j.keys[0], 0, -1)
			if err != nil {
				return 0, fault.As(fault.Unavailable, err)
			}
			j.open, j.keys = r, j.keys[1:]
		}
		n, err := j.open.Read(p)
		if err == io.EOF {
			j.open.Close()
			j.open, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Close closes the part being read.
func (j *joinedParts) Close() error {
	if j.open == nil {
		return nil
	}
	return j.open.Close()
}

// AbortMultipartUpload implements backend.Backend.
func (s *store) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput) error {
	ctx = unhurried(ctx)
	if _, err := s.writable(in.Bucket); err != nil {
		return err
	}
	u, err := s.getUpload(ctx, deref(in.UploadId), deref(in.Key))
	if err != nil {
		return err
	}
	return s.dropUpload(ctx, u.ID)
}

// ListMultipartUploads implements backend.Backend.
func (s *store) ListMultipartUploads(ctx context.Context, in *s3.ListMultipartUploadsInput) (out s3response.ListMultipartUploadsResult, err error) {
	if _, err := s.writable(in.Bucket); err != nil {
		return out, err
	}
	var uploads []s3response.Upload
	for after := ""; ; {
		infos, err := s.parts.List(ctx, "", after, 1)
		if err != nil {
			return out, asS3(err)
		}
		if len(infos) == 0 {
			break
		}
		id, _, _ := strings.Cut(infos[0].Key, "/")
		after = pastPrefix(id + "/")
		u, err := s.getUpload(ctx, id, "")
		if err != nil {
			continue // completed or aborted meanwhile
		}
		if !strings.HasPrefix(u.Key, deref(in.Prefix)) || deref(in.KeyMarker) != "" && u.Key <= *in.KeyMarker {
			continue
		}
		uploads = append(uploads, s3response.Upload{
			Key: u.Key, UploadID: u.ID, Initiated: u.Started, StorageClass: types.StorageClassStandard, ChecksumAlgorithm: u.Algorithm, ChecksumType: u.Type})
	}
	sort.SliceStable(uploads, func(i, j int) bool {
		if uploads[i].Key != uploads[j].Key {
			return uploads[i].Key < uploads[j].Key
		}
		return uploads[i].Initiated.Before(uploads[j].Initiated)
	})
	p, err := backend.ListMultipartUploads(uploads, deref(in.Prefix), deref(in.Delimiter), deref(in.KeyMarker), deref(in.UploadIdMarker), int(deref(in.MaxUploads)))
	if err != nil {
		return out, err
	}
	return s3response.ListMultipartUploadsResult{
		Bucket: *in.Bucket, Prefix: deref(in.Prefix), Delimiter: deref(in.Delimiter), MaxUploads: int(deref(in.MaxUploads)),
		KeyMarker: deref(in.KeyMarker), UploadIDMarker: deref(in.UploadIdMarker),
		NextKeyMarker: p.NextKeyMarker, NextUploadIDMarker: p.NextUploadIDMarker,
		IsTruncated: p.IsTruncated, Uploads: p.Uploads, CommonPrefixes: p.CommonPrefixes,
	}, nil
}

// ListParts implements backend.Backend.
func (s *store) ListParts(ctx context.Context, in *s3.ListPartsInput) (out s3response.ListPartsResult, err error) {
	if _, err := s.writable(in.Bucket); err != nil {
		return out, err
	}
	u, err := s.getUpload(ctx, deref(in.UploadId), deref(in.Key))
	if err != nil {
		return out, err
	}
	marker := 0
	if m := deref(in.PartNumberMarker); m != "" {
		if marker, err = strconv.Atoi(m); err != nil || marker < 0 || marker > math.MaxInt32 {
			return out, s3err.GetInvalidArgMaxLimiter("part-number-marker", m)
		}
	}
	limit := int(deref(in.MaxParts))
	infos, err := s.parts.List(ctx, u.ID+"/", partKey(u.ID, int32(marker)), limit+2) // one more, and upload.json
	if err != nil {
		return out, asS3(err)
	}
	out = s3response.ListPartsResult{Bucket: *in.Bucket, Key: u.Key, UploadID: u.ID, MaxParts: limit, PartNumberMarker: marker, StorageClass: types.StorageClassStandard,
		ChecksumAlgorithm: u.Algorithm, ChecksumType: u.Type}
	for _, info := range infos {
		number, err := strconv.Atoi(strings.TrimPrefix(info.Key, u.ID+"/"))
		if err != nil {
			continue // upload.json
		}
		if len(out.Parts) == limit {
			out.IsTruncated = true
			break
		}
		out.Parts = append(out.Parts, s3response.Part{PartNumber: number, ETag: quoted(info.ETag), Size: info.SizeBytes, LastModified: info.ModTime})
		out.NextPartNumberMarker = number
	}
	return out, nil
}
