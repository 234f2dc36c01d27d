package s3serve

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"github.com/mneme-ai/mneme/shared/objstore"
)

// page is one page of a listing.
type page struct {
	objects   []s3response.Object
	prefixes  []types.CommonPrefix
	last      string // the last key or common prefix of the page
	truncated bool
}

// pastPrefix is greater than every key that begins with p, and no key itself:
// 0xff is in no UTF-8 text.
func pastPrefix(p string) string { return p + "\xff" }

// list reads up to limit keys and common prefixes after `after`.
func (s *store) list(ctx context.Context, bucket *string, prefix, delimiter, after string, limit int) (page, error) {
	d, err := s.bucket(bucket)
	if err != nil {
		return page{}, err
	}
	var p page
	if limit == 0 {
		return p, nil
	}
	if delimiter != "" && after != "" {
		// A page that ended with a common prefix goes on behind it.
		if rest, inside := strings.CutPrefix(after, prefix); inside {
			if i := strings.Index(rest, delimiter); i >= 0 {
				after = pastPrefix(prefix + rest[:i+len(delimiter)])
			}
		}
	}
	// With a delimiter most of what a long read gives is skipped: begin short.
	chunk := limit + 1
	if delimiter != "" {
		chunk = 1
	}
	for ; ; chunk = min(2*chunk, limit+1) {
		// One more than fits tells whether there is a next page.
		want := min(chunk, limit+1-len(p.objects)-len(p.prefixes))
		found, err := d.List(ctx, prefix, after, want)
		if err != nil {
			return page{}, asS3(err)
		}
		skipped := false
		for _, info := range found {
			if len(p.objects)+len(p.prefixes) == limit {
				p.truncated = true
				return p, nil
			}
			rest := info.Key[len(prefix):]
			if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
				common := prefix + rest[:i+len(delimiter)]
				p.prefixes = append(p.prefixes, types.CommonPrefix{Prefix: &common})
				p.last, after, skipped = common, pastPrefix(common), true
				chunk = 1
				break
			}
			p.objects = append(p.objects, object(info))
			p.last, after = info.Key, info.Key
		}
		if !skipped && len(found) < want {
			return p, nil
		}
	}
}

func object(info objstore.Info) s3response.Object {
	return s3response.Object{
		Key:          &info.Key,
		ETag:         ptr(quoted(info.ETag)),
		Size:         &info.SizeBytes,
		LastModified: &info.ModTime,
		StorageClass: types.ObjectStorageClassStandard,
	}
}

// ListObjectsV2 implements backend.Backend. The continuation token is the last
// key or common prefix of the page before, in base64: it may hold any character.
func (s *store) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (out s3response.ListObjectsV2Result, err error) {
	after := deref(in.StartAfter)
	if token := deref(in.ContinuationToken); token != "" {
		last, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return out, s3err.GetAPIError(s3err.ErrInvalidRequest)
		}
		after = max(after, string(last))
	}
	p, err := s.list(ctx, in.Bucket, deref(in.Prefix), deref(in.Delimiter), after, int(deref(in.MaxKeys)))
	if err != nil {
		return out, err
	}
	out = s3response.ListObjectsV2Result{
		Name: in.Bucket, Prefix: in.Prefix, MaxKeys: in.MaxKeys,
		Delimiter: orNil(deref(in.Delimiter)), StartAfter: orNil(deref(in.StartAfter)), ContinuationToken: orNil(deref(in.ContinuationToken)),
		Contents: p.objects, CommonPrefixes: p.prefixes,
		KeyCount: ptr(int32(len(p.objects) + len(p.prefixes))), IsTruncated: &p.truncated,
	}
	if p.truncated {
		out.NextContinuationToken = ptr(base64.URLEncoding.EncodeToString([]byte(p.last)))
	}
	return out, nil
}

// ListObjects implements backend.Backend.
func (s *store) ListObjects(ctx context.Context, in *s3.ListObjectsInput) (out s3response.ListObjectsResult, err error) {
	p, err := s.list(ctx, in.Bucket, deref(in.Prefix), deref(in.Delimiter), deref(in.Marker), int(deref(in.MaxKeys)))
	if err != nil {
		return out, err
	}
	out = s3response.ListObjectsResult{
		Name: in.Bucket, Prefix: in.Prefix, Marker: in.Marker, MaxKeys: in.MaxKeys, Delimiter: orNil(deref(in.Delimiter)),
		Contents: p.objects, CommonPrefixes: p.prefixes, IsTruncated: &p.truncated,
	}
	if p.truncated {
		out.NextMarker = &p.last
	}
	return out, nil
}
