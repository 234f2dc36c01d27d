package eventlog

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// store is what the log needs of an object store; *objstore.Bucket gives it.
type store interface {
	ReadAll(ctx context.Context, key string, maxBytes int64) ([]byte, objstore.Info, error)
	Head(ctx context.Context, key string) (objstore.Info, error)
	Create(ctx context.Context, key string, b []byte) (objstore.Info, error)
	Replace(ctx context.Context, key string, b []byte, etag string) (objstore.Info, error)
	Put(ctx context.Context, key string, b []byte) (objstore.Info, error)
	Delete(ctx context.Context, key string) error
	ListAfter(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error]
	Now(ctx context.Context) (time.Time, error)
}

// Log is one tenant's log in one bucket. It is safe for concurrent use.
type Log struct {
	// replaced holds of each tombstone, by project and key, which source records
	// stand for which: it never changes, and each part of a scrubbed project asks.
	replaced sync.Map
	dims     sync.Map // of the spaces that PutSpace noted, by id
	b        store
	tenant   string
	writer   string
	folder   string

	zenc func() (*zstd.Encoder, error)
	zdec func() (*zstd.Decoder, error)

	mu    sync.Mutex
	known map[streamRef]Head // the furthest verified segment of each stream
}

type streamRef struct{ project, stream string }

// Option changes how a Log behaves.
type Option func(*Log)

// WithFolder names the data folder that this process owns by an OS lock. A
// lease written under the same folder name by another writer is that of an
// earlier process, which is dead, and is taken over at once.
func WithFolder(folder string) Option { return func(l *Log) { l.folder = folder } }

// Open gives the log of tenant in b, a *objstore.Bucket. writer is unique to a
// process start; it stands in segment headers and leases, and tells an own
// attempt whose answer was lost from another's write. Nothing is read.
func Open(b store, tenant, writer string, opts ...Option) *Log {
	l := &Log{b: b, tenant: tenant, writer: writer, known: map[streamRef]Head{}}
	l.zenc, l.zdec = lazyZstd()
	for _, o := range opts {
		o(l)
	}
	return l
}

// Tenant is the tenant whose log this is.
func (l *Log) Tenant() string { return l.tenant }

// Writer is the name under which this process writes.
func (l *Log) Writer() string { return l.writer }

// maxKnown bounds the table of known heads, about 200 bytes each. A tenant
// with more streams in use pays one LIST more for some of them.
const maxKnown = 10_000

// learn remembers a verified head.
func (l *Log) learn(project, stream string, h Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ref := streamRef{project, stream}
	if old, ok := l.known[ref]; ok && old.Seq > h.Seq {
		return
	}
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[ref] = h
}

// recall gives the furthest verified head.
func (l *Log) recall(project, stream string) (Head, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.known[streamRef{project, stream}]
	return h, ok
}

// Head is the end of a stream: the last segment's number and hash. The zero
// Head stands before the first segment.
type Head struct {
	Seq  int64      `json:"seq"`
	Hash memory.SHA `json:"hash"`
}
