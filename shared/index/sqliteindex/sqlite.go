// Package sqliteindex is the embedded graph: nodes, edges, occurrences and
// vectors in one SQLite file, with the dense leg scanned in memory.
//
// Invariant: a batch and its position are one transaction. A crash leaves the
// file as after some earlier batch, never between two.
//
// Format: one SQLite database in WAL mode, tables as in schema.sql, its version
// in `PRAGMA user_version`. The file is a projection; a version that this
// program does not know is refused and `mem rebuild` cures it.
//
// The dense leg holds all vectors of a space that was searched in memory, 4
// bytes a dimension and one bit more (about 1.1 KB a passage at 256
// dimensions), loaded by the first search, so that opening stays fast.
package sqliteindex

import (
	"context"
	"database/sql"
	_ "embed" // schema.sql
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite", pure Go

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

// SchemaVersion is the `user_version` of the file.
//
// History: 1 — first.
const SchemaVersion = 1

//go:embed schema.sql
var schema string

// Index is an open file. It implements index.Graph.
type Index struct {
	path string

	file  sync.RWMutex // held for reading by every call; a switch to another file writes
	read  *sql.DB
	write *sql.DB // one connection: SQLite has one writer

	mu     sync.Mutex // guards spaces
	spaces map[spaceKey]*dense
	apply  sync.Mutex // serialises writers, so that memory follows the file

	cache rowCache
}

var _ index.Graph = (*Index)(nil)

type spaceKey struct{ tenant, name string }

// readers bounds the pool of read connections: walks and row reads are short,
// and each connection holds its own page cache of 2 MB.
const readers = 4

// Open opens or creates the file at path; its folder must exist. No vector is
// read. A schema version that is not SchemaVersion is fault.Corrupt with the
// command that cures it.
func Open(ctx context.Context, path string) (ix *Index, err error) {
	defer fault.Wrap(&err, "sqliteindex.Open(%s)", filepath.Base(path))
	write, err := connect(path, 1)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			write.Close()
		}
	}()
	if err := migrate(ctx, write, path); err != nil {
		return nil, err
	}
	read, err := connect(path, readers)
	if err != nil {
		return nil, err
	}
	return &Index{path: path, read: read, write: write, spaces: map[spaceKey]*dense{}}, nil
}

// connect opens a pool. NORMAL syncs at checkpoints alone: after a power cut
// the file may be some batches behind, and its positions say which.
func connect(path string, conns int) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)", "secure_delete(1)"}, "_txlock": {"immediate"}}
	if conns > 1 {
		q = url.Values{"_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	}
	dsn := (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

func migrate(ctx context.Context, db *sql.DB, path string) error {
	var version, tables int
	err := db.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)`).Scan(&version, &tables)
	if err != nil {
		return refuse(path, err)
	}
	if version == SchemaVersion {
		return nil
	}
	if version != 0 || tables > 0 {
		return fault.At(fault.Corrupt, path, "run `mem rebuild`: the index is rebuilt from the log, without a model call",
			"index schema version %d, this program knows %d", version, SchemaVersion)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("\nPRAGMA user_version = %d;", SchemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// refuse tells a file that is no database from a passing trouble.
func refuse(path string, err error) error {
	head := make([]byte, 16)
	f, ferr := os.Open(path)
	if ferr != nil {
		return fault.As(fault.Unavailable, err)
	}
	defer f.Close()
	n, _ := f.Read(head)
	if n > 0 && string(head[:n]) != "SQLite format 3\x00"[:n] {
		return fault.At(fault.Corrupt, path, "move the file away and run `mem rebuild`", "not an SQLite database")
	}
	return fault.As(fault.Unavailable, err)
}

// Close closes the file. Searches under way end with an error.
func (ix *Index) Close() error {
	defer ix.using()()
	rerr := ix.read.Close()
	werr := ix.write.Close() // last, so that the WAL is checkpointed
	if rerr != nil {
		return rerr
	}
	return werr
}
