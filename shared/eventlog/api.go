package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// store is what the log needs of an object store; *objstore.Bucket gives it.
type store interface {
	ReadAll(ctx context.Context, key string, maxBytes int64) ([]byte, objstore.Info, error)
	Create(ctx context.Context, key string, b []byte) (objstore.Info, error)
	Replace(ctx context.Context, key string, b []byte, etag string) (objstore.Info, error)
	Put(ctx context.Context, key string, b []byte) (objstore.Info, error)
	ListAfter(ctx context.Context, prefix, after string) iter.Seq2[objstore.Info, error]
	Now(ctx context.Context) (time.Time, error)
}

// Log is one tenant's log. It is safe for concurrent use.
type Log struct {
	b      store
	tenant string
	writer string
	folder string
}

// Option changes how a Log behaves.
type Option func(*Log)

// WithFolder names the data folder that this process owns by an OS lock. A
// lease written under the same folder name by another writer is that of an
// earlier process, which is dead, and is taken over at once.
func WithFolder(folder string) Option { return func(l *Log) { l.folder = folder } }

// Open gives the log of tenant in b. writer is unique to a process start; it
// stands in segment headers and leases, and tells an own lost answer from
// another's write.
func Open(b store, tenant, writer string, opts ...Option) *Log {
	l := &Log{b: b, tenant: tenant, writer: writer}
	for _, o := range opts {
		o(l)
	}
	return l
}

// Head is the end of a stream: the last segment's number and hash. The zero
// Head stands before the first segment.
type Head struct {
	Seq  int64      `json:"seq"`
	Hash memory.SHA `json:"hash"`
}

// Record is one of *memory.Admit, *memory.Run, *memory.Gate, *memory.Evidence,
// *memory.Memory, *memory.RunEnd, or *Opaque.
type Record interface{ RecordType() string }

// Opaque is a record of a type that this program does not know, byte for byte.
type Opaque struct {
	Type string
	Line []byte // without the line feed
}

// RecordType is the record's `type` field.
func (o *Opaque) RecordType() string { return o.Type }

// Header is a segment's first line.
type Header struct {
	V       int          `json:"v"`
	Type    string       `json:"type"` // "header"
	Level   memory.Level `json:"level"`
	Tenant  string       `json:"tenant"`
	Project string       `json:"project"`
	Stream  string       `json:"stream"`
	Seq     int64        `json:"seq"`
	Prev    memory.SHA   `json:"prev"` // hash of segment seq-1; empty at seq 1
	Run     memory.SHA   `json:"run"`  // run of the first record that has one
	Writer  string       `json:"writer"`
	Count   int          `json:"count"` // records between header and footer
}

// Footer is a segment's last line.
type Footer struct {
	V      int          `json:"v"`
	Type   string       `json:"type"` // "footer"
	Level  memory.Level `json:"level"`
	SHA256 memory.SHA   `json:"sha256"` // over the sealed header and records
}

// Segment is one verified segment. Lines[i] holds Records[i] as it is stored,
// unknown fields included.
type Segment struct {
	Header   Header
	Records  []Record
	Lines    [][]byte
	Footer   Footer
	Hash     memory.SHA // Footer.SHA256, verified
	StoredAt time.Time  // the store's clock
}

// Append writes recs as segment prev.Seq+1 and returns the new head. A lost
// race gives fault.Conflict: read the stream again and redo. An own earlier
// attempt whose answer was lost counts as success.
func (l *Log) Append(ctx context.Context, project, stream string, prev Head, recs []Record) (Head, error) {
	return Head{}, errPending
}

// Segment reads and verifies one segment: fault.NotFound, fault.Corrupt.
func (l *Log) Segment(ctx context.Context, project, stream string, seq int64) (Segment, error) {
	return Segment{}, errPending
}

// Segments walks from after+1 until a segment is absent.
func (l *Log) Segments(ctx context.Context, project, stream string, after int64) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) { yield(Segment{}, errPending) }
}

// Head finds the end of the stream; the zero Head when it has no segment.
func (l *Log) Head(ctx context.Context, project, stream string) (Head, error) {
	return Head{}, errPending
}

// AppendAdmit appends one admit line; it sets Seq and StoredAt (store's clock).
func (l *Log) AppendAdmit(ctx context.Context, project string, prev Head, a memory.Admit) (memory.Admit, Head, error) {
	return a, Head{}, errPending
}

// Admits gives the admit lines after seq `after`, in order.
func (l *Log) Admits(ctx context.Context, project string, after int64) iter.Seq2[memory.Admit, error] {
	return func(yield func(memory.Admit, error) bool) { yield(memory.Admit{}, errPending) }
}

// PutSource writes a source record with its chunk records and returns its key.
func (l *Log) PutSource(ctx context.Context, project string, s memory.Source, chunks []memory.Chunk) (memory.SHA, error) {
	return "", errPending
}

// Source reads and verifies a source record. Chunk texts are not loaded.
func (l *Log) Source(ctx context.Context, project string, key memory.SHA) (memory.Source, []memory.Chunk, error) {
	return memory.Source{}, nil, errPending
}

// PutBlob stores data and returns the sha256 of the plain bytes.
func (l *Log) PutBlob(ctx context.Context, project string, data []byte) (memory.SHA, error) {
	return "", errPending
}

// Blob reads and verifies a blob.
func (l *Log) Blob(ctx context.Context, project string, sha memory.SHA) ([]byte, error) {
	return nil, errPending
}

// Projects lists the tenant's projects, sorted.
func (l *Log) Projects(ctx context.Context) ([]string, error) { return nil, errPending }

// Streams lists the project's question streams, sorted; never the admit stream.
func (l *Log) Streams(ctx context.Context, project string) ([]string, error) {
	return nil, errPending
}

// Receipt is what became of one uploaded object version.
type Receipt struct {
	V       int            `json:"v"`
	Type    string         `json:"type"` // "receipt"
	Level   memory.Level   `json:"level"`
	Bucket  string         `json:"bucket"`
	Key     string         `json:"key"`
	ETag    string         `json:"etag"`
	Outcome string         `json:"outcome"` // admitted | duplicate | refused | empty | unsupported
	Parts   []ReceiptPart  `json:"parts,omitempty"`
	Reason  string         `json:"reason,omitempty"` // for people; no transcript text
	Counts  *memory.Counts `json:"counts,omitempty"`
	At      time.Time      `json:"at"` // UTC
}

// ReceiptPart is one admitted (or already known) part.
type ReceiptPart struct {
	Project   string     `json:"project"`
	Seq       int64      `json:"seq"` // of the admit line
	Source    memory.SHA `json:"source"`
	RawSHA256 memory.SHA `json:"raw_sha256"`
	Chunks    int        `json:"chunks"`
}

// Receipt reads the receipt of an object version; false when there is none.
func (l *Log) Receipt(ctx context.Context, bucket, key, etag string) (Receipt, bool, error) {
	return Receipt{}, false, errPending
}

// PutReceipt writes a receipt. The first answer stays; only one that admitted
// nothing (refused, empty, unsupported) gives way to a later one.
func (l *Log) PutReceipt(ctx context.Context, r Receipt) error { return errPending }

// ErrHeld is returned (wrapped, fault kind Exhausted, RetryAfter set) when
// another holds the lease.
var ErrHeld = errors.New("lease is held by another")

// Lease is a held lease. It saves double work; correctness never rests on it.
type Lease struct{}

// Acquire takes the lease `name` (key parts joined by "/") for ttl.
func (l *Log) Acquire(ctx context.Context, name string, ttl time.Duration) (*Lease, error) {
	return nil, errPending
}

// Until is when the lease ends, by the store's clock.
func (x *Lease) Until() time.Time { return time.Time{} }

// Renew makes the lease last its ttl from now: ErrHeld when it was taken over.
func (x *Lease) Renew(ctx context.Context) error { return errPending }

// Release frees the lease; one that was taken over is left alone.
func (x *Lease) Release(ctx context.Context) error { return errPending }

// Vectors are the vectors of one segment's new passages in one space.
type Vectors struct {
	Dims     int
	Passages []memory.SHA // passage of each row
	Rows     []float32    // len(Passages)*Dims, row after row
}

// Row is the vector of Passages[i].
func (v *Vectors) Row(i int) []float32 { return v.Rows[i*v.Dims : (i+1)*v.Dims] }

// PutVectors writes the vectors of one segment, once.
func (l *Log) PutVectors(ctx context.Context, project, space, stream string, seq int64, v Vectors) error {
	return errPending
}

// Vectors reads them back, verified; false when there are none yet.
func (l *Log) Vectors(ctx context.Context, project, space, stream string, seq int64) (Vectors, bool, error) {
	return Vectors{}, false, errPending
}

// Pointer reads ops/pointer/<tenant>/<name> into `into`. An absent pointer
// gives etag "" and no error, and leaves `into` alone.
func (l *Log) Pointer(ctx context.Context, name string, into any) (etag string, err error) {
	return "", errPending
}

// SetPointer writes it: etag "" creates, else the ETag must match. A lost race
// gives fault.Conflict.
func (l *Log) SetPointer(ctx context.Context, name string, value any, etag string) error {
	return errPending
}

// Dead is a dead letter: an event that no retry helps, or an object that was
// set aside.
type Dead struct {
	V         int             `json:"v"`
	Type      string          `json:"type"` // "dead"
	Level     memory.Level    `json:"level"`
	ID        memory.SHA      `json:"id"`       // set by PutDead
	Function  string          `json:"function"` // which gave up
	EventType string          `json:"event_type,omitempty"`
	EventID   string          `json:"event_id,omitempty"`
	Subject   string          `json:"subject,omitempty"`
	Event     json.RawMessage `json:"event,omitempty"` // the event as received, when it is JSON
	Key       string          `json:"key,omitempty"`   // the object it is about
	Body      []byte          `json:"body,omitempty"`  // base64: the object's bytes, or an event that is not JSON
	Kind      string          `json:"kind"`            // fault kind
	Error     string          `json:"error"`           // no transcript text
	Hint      string          `json:"hint,omitempty"`
	Attempts  int             `json:"attempts"`
	At        time.Time       `json:"at"` // UTC; set by PutDead from the store's clock when zero
}

// PutDead keeps a dead letter. The same letter twice is one object.
func (l *Log) PutDead(ctx context.Context, d Dead) error { return errPending }

// DeadLetters gives the tenant's dead letters in key order.
func (l *Log) DeadLetters(ctx context.Context) iter.Seq2[Dead, error] {
	return func(yield func(Dead, error) bool) { yield(Dead{}, errPending) }
}

// FoldCache reads the cached fold of a stream into `into`. It is false when
// there is none, it is damaged, or the log does not hold its head.
func (l *Log) FoldCache(ctx context.Context, project, stream string, into any) (Head, bool, error) {
	return Head{}, false, errPending
}

// PutFoldCache caches the fold of a stream up to h. Losing it loses nothing.
func (l *Log) PutFoldCache(ctx context.Context, project, stream string, h Head, v any) error {
	return errPending
}

// StreamHash is a question stream's part of LogHash.
func (l *Log) StreamHash(ctx context.Context, project, stream string) (memory.SHA, error) {
	return "", errPending
}

// LogHash is the hash over all question streams, and each stream's own, named
// "project/stream".
func (l *Log) LogHash(ctx context.Context) (memory.SHA, map[string]memory.SHA, error) {
	return "", nil, errPending
}

// Problem is one thing that Verify found.
type Problem struct {
	Key  string `json:"key"`
	Line int    `json:"line,omitempty"` // from 1; 0 for the whole object
	Msg  string `json:"msg"`
}

// Report is what Verify found and counted.
type Report struct {
	OK       bool                  `json:"ok"`
	LogHash  memory.SHA            `json:"log_hash"`
	Streams  map[string]memory.SHA `json:"streams"`
	Problems []Problem             `json:"problems"`
	Counts   map[string]int        `json:"counts"` // segments, admits, sources, chunks, gates, …
}

// Verify reads the whole log and checks it. progress, when not nil, is called
// with the number of objects done.
func (l *Log) Verify(ctx context.Context, progress func(done int)) (Report, error) {
	return Report{}, errPending
}

var errPending = errors.New("eventlog: under construction")
