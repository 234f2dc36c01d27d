package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

const (
	// maxPutBytes is the largest body of one PUT (AWS "Amazon S3 multipart
	// upload limits": 5 GiB).
	maxPutBytes = 5 << 30
	// partBytes is the size of a part, and what a write of unknown size holds
	// in memory. 10,000 parts, the most S3 takes, make 156 GiB.
	partBytes = 16 << 20
)

// Put implements objstore.Driver.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64, cond objstore.Condition) (objstore.Info, error) {
	ctx, date := withDate(ctx)
	if size < 0 || size > drainedBytes {
		if err := s.foresee(ctx, key, cond); err != nil {
			return objstore.Info{}, err
		}
	}
	src := &source{r: r}
	etag, n, err := s.put(ctx, s.prefix+key, src, size, cond)
	fail := src.takeBack()
	switch {
	case fail != nil:
		return objstore.Info{}, fmt.Errorf("read the body: %w", fail)
	case err != nil:
		return objstore.Info{}, asWriteFault(err, cond)
	}
	info := objstore.Info{Key: key, ETag: etag, SizeBytes: n, ModTime: *date}
	if date.IsZero() {
		info.ModTime = time.Now().UTC()
	}
	return info, nil
}

// drainedBytes is what servers still read of a body that they have already
// refused (net/http's and versitygw's limit). Of a longer body the client sees a
// reset connection instead of the refusal.
const drainedBytes = 256 << 10

// foresee refuses a write whose condition does not hold even now, before its
// body is sent. The server's own check still decides.
func (s *Store) foresee(ctx context.Context, key string, cond objstore.Condition) error {
	if cond == (objstore.Condition{}) {
		return nil
	}
	info, err := s.Head(ctx, key)
	absent := errors.Is(err, objstore.ErrNotFound)
	if err != nil && !absent {
		return err
	}
	if cond.Create && !absent || cond.IfMatch != "" && info.ETag != cond.IfMatch {
		return fault.As(fault.Conflict, objstore.ErrPrecondition)
	}
	return nil
}

// source is a reader that can be taken back: an HTTP transport may read a body
// still after its request was answered, when the caller already sends the same
// reader or buffer again. It also notes the reader's own error, so that it is
// not taken for the store's.
type source struct {
	mu   sync.Mutex
	r    io.Reader // nil once it is taken back
	fail error
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.r == nil {
		return 0, errTakenBack
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.fail = err
	}
	return n, err
}

var errTakenBack = errors.New("the request has ended")

// takeBack ends the use of the reader, and gives its error.
func (s *source) takeBack() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r = nil
	return s.fail
}

// put gives the ETag and the size of what it stored.
func (s *Store) put(ctx context.Context, key string, r io.Reader, size int64, cond objstore.Condition) (string, int64, error) {
	if size >= 0 && size <= maxPutBytes {
		return s.putWhole(ctx, key, r, size, cond)
	}
	first := make([]byte, partBytes)
	n, err := io.ReadFull(r, first)
	if size < 0 && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		return s.putWhole(ctx, key, bytes.NewReader(first[:n]), int64(n), cond)
	}
	if err != nil {
		return "", 0, err
	}
	return s.putParts(ctx, key, first, r, size, cond)
}

func options(cond objstore.Condition) minio.PutObjectOptions {
	opts := minio.PutObjectOptions{DisableMultipart: true}
	if cond.Create {
		opts.SetMatchETagExcept("*")
	}
	if cond.IfMatch != "" {
		opts.SetMatchETag(cond.IfMatch)
	}
	return opts
}

func (s *Store) putWhole(ctx context.Context, key string, r io.Reader, size int64, cond objstore.Condition) (string, int64, error) {
	info, err := s.core.Client.PutObject(ctx, s.bucket, key, r, size, options(cond))
	return info.ETag, size, err
}

// putParts uploads first and then the rest of r, part by part.
func (s *Store) putParts(ctx context.Context, key string, first []byte, r io.Reader, size int64, cond objstore.Condition) (_ string, _ int64, err error) {
	id, err := s.core.NewMultipartUpload(ctx, s.bucket, key, minio.PutObjectOptions{})
	if err != nil {
		return "", 0, err
	}
	defer func() {
		if err == nil {
			return
		}
		// Parts of an upload that nobody completes cost room. Where this fails
		// too, the first error says more, and the server's own clean-up follows.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = s.core.AbortMultipartUpload(ctx, s.bucket, key, id)
	}()
	var parts []minio.CompletePart
	var total int64
	for part, last := first, false; ; {
		body := &source{r: bytes.NewReader(part)}
		p, err := s.core.PutObjectPart(ctx, s.bucket, key, id, len(parts)+1, body, int64(len(part)), minio.PutObjectPartOptions{})
		_ = body.takeBack() // a slice in memory does not fail
		if err != nil {
			return "", 0, err
		}
		parts = append(parts, minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag})
		total += int64(len(part))
		if last {
			break
		}
		n, err := io.ReadFull(r, first) // the part before is taken back
		if err == io.EOF {
			break
		}
		if last = err == io.ErrUnexpectedEOF; err != nil && !last {
			return "", 0, err
		}
		part = first[:n]
	}
	if size >= 0 && total != size {
		return "", 0, fault.New(fault.Invalid, "the body has %d bytes, not %d", total, size)
	}
	info, err := s.core.CompleteMultipartUpload(ctx, s.bucket, key, id, parts, options(cond))
	return info.ETag, total, err
}
