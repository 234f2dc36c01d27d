package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// pageKeys is how many keys one List call asks for: the most S3 gives.
const pageKeys = 1000

// Bucket is one bucket of a store. It is safe for concurrent use.
type Bucket struct {
	name   string
	driver Driver
	retry  retryPolicy
	page   int
}

// Option changes a Bucket's limits.
type Option func(*Bucket)

// WithRetry bounds how often a call is tried in all and how long the first
// pause is; each later pause is about twice the one before. Default: 5 tries,
// 50 ms.
func WithRetry(tries uint, firstPause time.Duration) Option {
	return func(b *Bucket) { b.retry.tries, b.retry.firstPause = max(tries, 1), firstPause }
}

// WithTimeout is the deadline of one attempt of a call that moves a bounded
// body. Default: 30 s. Streams have no deadline but the caller's.
func WithTimeout(d time.Duration) Option {
	return func(b *Bucket) { b.retry.timeout = d }
}

// WithPage is how many keys one List call of the driver is asked for. Default:
// 1,000, the most S3 gives.
func WithPage(keys int) Option {
	return func(b *Bucket) { b.page = max(keys, 1) }
}

// NewBucket is the bucket called name, kept by d.
func NewBucket(name string, d Driver, opts ...Option) *Bucket {
	b := &Bucket{name: name, driver: d, retry: defaultRetry, page: pageKeys}
	for _, o := range opts {
		o(b)
	}
	return b
}

// Name is the bucket's name, as it stands in events and spans.
func (b *Bucket) Name() string { return b.name }

// Get opens the whole object. The caller closes the reader.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	return b.GetRange(ctx, key, 0, -1)
}

// GetRange opens bytes [from, from+n), or from `from` to the end when n < 0. A
// range past the end gives 0 bytes. The caller closes the reader.
func (b *Bucket) GetRange(ctx context.Context, key string, from, n int64) (_ io.ReadCloser, _ Info, err error) {
	defer fault.Wrap(&err, "get(%s/%s)", b.name, key)
	if err := ValidKey(key); err != nil {
		return nil, Info{}, err
	}
	if from < 0 {
		return nil, Info{}, fault.New(fault.Invalid, "a range starts at %d", from)
	}
	o, err := try(ctx, b.retry.streaming(), func(ctx context.Context) (opened, error) {
		r, info, err := b.driver.Get(ctx, key, from, n)
		return opened{r, info}, err
	})
	return o.ReadCloser, o.info, err
}

type opened struct {
	io.ReadCloser
	info Info
}

// ReadAll gives the object's bytes; an object of more than maxBytes is
// fault.Invalid and is not read.
func (b *Bucket) ReadAll(ctx context.Context, key string, maxBytes int64) (_ []byte, _ Info, err error) {
	defer fault.Wrap(&err, "read(%s/%s)", b.name, key)
	if err := ValidKey(key); err != nil {
		return nil, Info{}, err
	}
	type whole struct {
		data []byte
		info Info
	}
	w, err := try(ctx, b.retry, func(ctx context.Context) (whole, error) {
		r, info, err := b.driver.Get(ctx, key, 0, -1)
		if err != nil {
			return whole{}, err
		}
		defer r.Close()
		if info.SizeBytes > maxBytes {
			return whole{}, fault.New(fault.Invalid, "the object has %d bytes, more than %d", info.SizeBytes, maxBytes)
		}
		buf := bytes.NewBuffer(make([]byte, 0, info.SizeBytes+bytes.MinRead))
		if _, err := buf.ReadFrom(io.LimitReader(r, maxBytes+1)); err != nil {
			return whole{}, fault.As(fault.Unavailable, fmt.Errorf("the object's bytes broke off: %w", err))
		}
		if int64(buf.Len()) != info.SizeBytes {
			return whole{}, fault.New(fault.Unavailable, "the store sent %d of %d bytes", buf.Len(), info.SizeBytes)
		}
		return whole{buf.Bytes(), info}, nil
	})
	return w.data, w.info, err
}

// Head is the object's Info, or ErrNotFound.
func (b *Bucket) Head(ctx context.Context, key string) (_ Info, err error) {
	defer fault.Wrap(&err, "head(%s/%s)", b.name, key)
	if err := ValidKey(key); err != nil {
		return Info{}, err
	}
	return try(ctx, b.retry, func(ctx context.Context) (Info, error) { return b.driver.Head(ctx, key) })
}

// Put stores data under key whatever stands there.
func (b *Bucket) Put(ctx context.Context, key string, data []byte) (_ Info, err error) {
	defer fault.Wrap(&err, "put(%s/%s)", b.name, key)
	return b.write(ctx, b.retry, key, bytes.NewReader(data), int64(len(data)), Condition{})
}

// PutReader is Put of size bytes from r (size < 0: to its end). Only a reader
// that can seek is tried again.
func (b *Bucket) PutReader(ctx context.Context, key string, r io.Reader, size int64) (_ Info, err error) {
	defer fault.Wrap(&err, "put(%s/%s)", b.name, key)
	return b.write(ctx, b.retry.streaming(), key, r, size, Condition{})
}

// Create stores data under a key where nothing stands: the commit and the
// fence. Where something stands it is ErrPrecondition. When an earlier attempt
// of this very call went without an answer and the object holds data, that
// attempt had succeeded, and so does Create.
func (b *Bucket) Create(ctx context.Context, key string, data []byte) (_ Info, err error) {
	defer fault.Wrap(&err, "create(%s/%s)", b.name, key)
	return b.write(ctx, b.retry, key, bytes.NewReader(data), int64(len(data)), Condition{Create: true})
}

// CreateReader is Create of size bytes from r (size < 0: to its end). Only a
// reader that can seek is tried again.
func (b *Bucket) CreateReader(ctx context.Context, key string, r io.Reader, size int64) (_ Info, err error) {
	defer fault.Wrap(&err, "create(%s/%s)", b.name, key)
	return b.write(ctx, b.retry.streaming(), key, r, size, Condition{Create: true})
}

// Replace stores data where an object with this ETag stands; anything else,
// and nothing at all, is ErrPrecondition. A lost answer is cured as in Create.
func (b *Bucket) Replace(ctx context.Context, key string, data []byte, etag string) (_ Info, err error) {
	defer fault.Wrap(&err, "replace(%s/%s)", b.name, key)
	if etag == "" {
		return Info{}, fault.New(fault.Invalid, "the ETag to replace is empty")
	}
	return b.write(ctx, b.retry, key, bytes.NewReader(data), int64(len(data)), Condition{IfMatch: etag})
}

// write is every kind of Put.
func (b *Bucket) write(ctx context.Context, p retryPolicy, key string, r io.Reader, size int64, cond Condition) (Info, error) {
	if err := ValidKey(key); err != nil {
		return Info{}, err
	}
	seeker, again := r.(io.Seeker)
	var start int64
	if again {
		var err error
		if start, err = seeker.Seek(0, io.SeekCurrent); err != nil {
			again = false
		}
	}
	if !again {
		p.tries = 1
	}
	unanswered := false // an earlier attempt may have taken effect
	return try(ctx, p, func(ctx context.Context) (Info, error) {
		if unanswered {
			if _, err := seeker.Seek(start, io.SeekStart); err != nil {
				return Info{}, err
			}
		}
		info, err := b.driver.Put(ctx, key, r, size, cond)
		switch {
		case err == nil:
			return info, nil
		case errors.Is(err, ErrPrecondition) && unanswered:
			if _, e := seeker.Seek(start, io.SeekStart); e != nil {
				return Info{}, err
			}
			return b.mine(ctx, key, r, size, err)
		}
		unanswered = unanswered || fault.Is(err, fault.Unavailable)
		return info, err
	})
}

// mine answers for a conditional write whose first attempt had no answer: its
// Info when the object holds exactly r's bytes, else lost.
func (b *Bucket) mine(ctx context.Context, key string, r io.Reader, size int64, lost error) (Info, error) {
	got, info, err := b.driver.Get(ctx, key, 0, -1)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return Info{}, lost
		}
		return Info{}, err
	}
	defer got.Close()
	if size >= 0 {
		if info.SizeBytes != size {
			return Info{}, lost
		}
		r = io.LimitReader(r, size)
	}
	same, err := sameBytes(got, r)
	if err != nil {
		return Info{}, fault.As(fault.Unavailable, err)
	}
	if !same {
		return Info{}, lost
	}
	return info, nil
}

// sameBytes reports whether two readers give the same bytes to their ends.
func sameBytes(a, b io.Reader) (bool, error) {
	const block = 32 << 10 // io.Copy's buffer
	bufA, bufB := make([]byte, block), make([]byte, block)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		endA, endB := atEnd(errA), atEnd(errB)
		if errA != nil && !endA {
			return false, errA
		}
		if errB != nil && !endB {
			return false, errB
		}
		if endA || endB {
			return endA == endB, nil
		}
	}
}

func atEnd(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// List gives every object whose key begins with prefix, in byte order of the
// key, page by page. An error ends the sequence.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return b.ListAfter(ctx, prefix, "")
}

// ListAfter is List of the keys greater than after.
func (b *Bucket) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		after := after
		for {
			page, err := b.listPage(ctx, prefix, after)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
			}
			if len(page) < b.page {
				return
			}
			after = page[len(page)-1].Key
		}
	}
}

func (b *Bucket) listPage(ctx context.Context, prefix, after string) (_ []Info, err error) {
	defer fault.Wrap(&err, "list(%s/%s)", b.name, prefix)
	if err := validPrefix(prefix); err != nil {
		return nil, err
	}
	return try(ctx, b.retry, func(ctx context.Context) ([]Info, error) {
		return b.driver.List(ctx, prefix, after, b.page)
	})
}

// Delete removes the object; deleting nothing is no error.
func (b *Bucket) Delete(ctx context.Context, key string) (err error) {
	defer fault.Wrap(&err, "delete(%s/%s)", b.name, key)
	if err := ValidKey(key); err != nil {
		return err
	}
	_, err = try(ctx, b.retry, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.driver.Delete(ctx, key)
	})
	return err
}

// DeleteVersions erases the object: also its earlier versions, delete markers
// and unfinished uploads, where the store keeps such. It gives how many of these
// were removed, also beside an error; nothing there is 0 and no error. Repeating
// it is safe.
func (b *Bucket) DeleteVersions(ctx context.Context, key string) (removed int, err error) {
	defer fault.Wrap(&err, "delete versions(%s/%s)", b.name, key)
	if err := ValidKey(key); err != nil {
		return 0, err
	}
	_, err = try(ctx, b.retry, func(ctx context.Context) (struct{}, error) {
		n, err := b.driver.DeleteVersions(ctx, key)
		removed += n
		return struct{}{}, err
	})
	return removed, err
}

// Now is the store's clock, in UTC.
func (b *Bucket) Now(ctx context.Context) (_ time.Time, err error) {
	defer fault.Wrap(&err, "now(%s)", b.name)
	return try(ctx, b.retry, b.driver.Now)
}
