// Package objstore is Mneme's port to object storage: a Bucket over a small
// Driver interface.
//
// The log stands on two promises of a store: a write with Condition.Create is
// won by exactly one writer, and a write with Condition.IfMatch is lost when
// the object changed since it was read. Prove tests both before anything is
// trusted to a store.
//
// Bucket adds what every driver needs alike: checked keys, one deadline an
// attempt, bounded retry of fault.Unavailable, and the cure for a lost answer
// (a create-only write that reports a loss to its own earlier attempt). A
// driver therefore never retries by itself.
//
// Where a bucket keeps versions, Delete only hides an object; DeleteVersions is
// what erasure needs.
//
// The package holds no state beyond its options and keeps no copies of objects.
package objstore

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrNotFound is returned (wrapped, with fault kind NotFound) when no object
// stands under a key.
var ErrNotFound = errors.New("object not found")

// ErrFull is in the chain of an error of kind Unavailable when the store has no
// room left. Waiting a second does not cure it, so Bucket does not retry it.
var ErrFull = errors.New("no space left in the store")

// ErrPrecondition is returned (wrapped, with fault kind Conflict) when a
// conditional write lost: the object exists (create-only) or has another ETag.
var ErrPrecondition = errors.New("precondition failed")

// Info describes a stored object.
type Info struct {
	Key       string
	ETag      string // without quotes
	SizeBytes int64
	ModTime   time.Time // the store's clock
}

// Condition makes a write conditional. The zero value is an unconditional write.
type Condition struct {
	Create  bool   // If-None-Match: *
	IfMatch string // If-Match: etag, without quotes
}

// Driver is what a store must give. Keys are "/"-separated, never empty, never
// with a leading slash, without "." or ".." parts. All methods are safe for
// concurrent use and honour ctx.
type Driver interface {
	// Get opens bytes [from, from+n) of the object, or from `from` to the end
	// when n < 0. Not found: ErrNotFound. A range past the end gives 0 bytes.
	Get(ctx context.Context, key string, from, n int64) (io.ReadCloser, Info, error)
	// Head is Get without the bytes.
	Head(ctx context.Context, key string) (Info, error)
	// Put stores size bytes (size < 0: unknown). The object is seen whole or
	// not at all, and survives a power cut once Put returned. A lost condition
	// is ErrPrecondition, also for IfMatch where no object stands. A reader
	// that ends before size bytes stores nothing.
	Put(ctx context.Context, key string, r io.Reader, size int64, cond Condition) (Info, error)
	// List gives up to max objects whose keys begin with prefix and are
	// greater than after, in byte order of the key.
	List(ctx context.Context, prefix, after string, max int) ([]Info, error)
	// Delete removes the object; deleting nothing is no error.
	Delete(ctx context.Context, key string) error
	// DeleteVersions removes the object with every earlier version, delete
	// marker and unfinished upload of this very key that the store keeps, and
	// says how many of these there were. In a store without versions it is
	// Delete, and 0 or 1. A version that may not be removed (a retention, a
	// missing right) is an error; what was removed before it stays so.
	DeleteVersions(ctx context.Context, key string) (int, error)
	// Now is the store's clock (an S3 server's Date header).
	Now(ctx context.Context) (time.Time, error)
}
