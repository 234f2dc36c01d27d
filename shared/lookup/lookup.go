// Package lookup is the port through which lessons are found by hash: by the instance of
// a failure, by its class, by a symptom.
//
// Invariant: an index is a projection of the lessons' shelf of the log. Dropped and filled
// again it has the same rows and the same hash. A row belongs to one tenant and one
// project, and no call sees another's.
//
//	scope    local/shop
//	row      key 9c41… (the record), hashes [detail 77aa…, class d449…, symptom f026…, …], body {lesson as JSON}
//	outcome  lesson 9c41…, use "ci-4711", worked
//
// The package decides nothing: what a lesson's hashes are, and which of several is the
// better solution, is shared/lesson's.
package lookup

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Scope is whose rows are meant.
type Scope struct{ Tenant, Project string }

// Check refuses a scope without names: an empty scope sees nothing.
func (s Scope) Check() error {
	if !memory.ValidName(s.Tenant) || !memory.ValidName(s.Project) {
		return fault.New(fault.Invalid, "a scope is a tenant and a project")
	}
	return nil
}

// Kind is what a hash is of.
type Kind uint8

const (
	Detail  Kind = 1 // this very failure
	Class   Kind = 2 // failures like it
	Symptom Kind = 3 // what people say of it
)

// Hash is one of the names under which a row is found.
type Hash struct {
	Kind Kind
	SHA  memory.SHA
}

// Row is one lesson.
type Row struct {
	Key    memory.SHA // of its record
	At     time.Time  // UTC, to the millisecond
	Hashes []Hash
	Body   []byte
}

// Outcome is one use that somebody told of.
type Outcome struct {
	Record memory.SHA // key of its own record
	Lesson memory.SHA
	Use    string
	Worked bool
}

// Batch is what records of the shelf come to. Gone are records that were erased.
type Batch struct {
	Rows     []Row
	Outcomes []Outcome
	Gone     []memory.SHA
}

// Match is a row that was found, with the uses that were told of it.
type Match struct {
	Row
	Told, Worked int
}

// Index is implemented by each driver.
type Index interface {
	// Apply adds rows and outcomes, and takes out what is gone, in one transaction. The
	// same again changes nothing; a row or outcome that is gone stays gone, in whatever
	// order batches come. Two outcomes of one lesson with one use are the one whose record
	// has the smaller key.
	Apply(ctx context.Context, s Scope, b Batch) error
	// Replace is Apply in the place of all that the scope holds.
	Replace(ctx context.Context, s Scope, b Batch) error
	// Find gives the rows that have any of the hashes of one kind, the newest first and of
	// one time the smaller key first, at most limit; total counts them up to MaxTotal.
	Find(ctx context.Context, s Scope, k Kind, hashes []memory.SHA, limit int) (rows []Match, total int, err error)
	// Get gives one row; false where there is none.
	Get(ctx context.Context, s Scope, key memory.SHA) (Match, bool, error)
	// Known gives the keys of all records that were applied, gone ones among them.
	Known(ctx context.Context, s Scope) (map[memory.SHA]bool, error)
	// Has reports whether Known has a key.
	Has(ctx context.Context, s Scope, key memory.SHA) (bool, error)
	// Projects lists the projects of a tenant of which any record was applied, sorted.
	Projects(ctx context.Context, tenant string) ([]string, error)
	// Hash is over all rows of a tenant, and how many there are.
	Hash(ctx context.Context, tenant string) (memory.SHA, int64, error)
	// Holding counts the rows whose body holds what is asked for.
	Holding(ctx context.Context, s Scope, holds func(text string) bool) (searched, found int64, err error)
	// Purge takes out of the files what was deleted.
	Purge(ctx context.Context) error
	Close() error
}

// MaxTotal bounds what Find counts: of a class with more lessons than that the number says
// nothing more.
const MaxTotal = 1000

// CheckBatch refuses what no driver may store, and sorts hashes so that equal rows are
// equal bytes.
func CheckBatch(s Scope, b *Batch) error {
	if err := s.Check(); err != nil {
		return err
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		if !r.Key.Valid() || len(r.Hashes) == 0 || len(r.Body) == 0 {
			return fault.New(fault.Invalid, "a row has a key, hashes and a body")
		}
		r.At = r.At.UTC().Truncate(time.Millisecond)
		r.Hashes = slices.Clone(r.Hashes)
		slices.SortFunc(r.Hashes, func(a, b Hash) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.SHA, b.SHA)) })
		r.Hashes = slices.Compact(r.Hashes)
		for _, h := range r.Hashes {
			if !h.SHA.Valid() || h.Kind < Detail || h.Kind > Symptom {
				return fault.New(fault.Invalid, "a hash is a sha256 of a detail, a class or a symptom")
			}
		}
	}
	for _, o := range b.Outcomes {
		if !o.Lesson.Valid() || !o.Record.Valid() || o.Use == "" {
			return fault.New(fault.Invalid, "an outcome names its record, its lesson and its use")
		}
	}
	for _, k := range b.Gone {
		if !k.Valid() {
			return fault.New(fault.Invalid, "a record is named by its sha256")
		}
	}
	return nil
}
