// Package sqlitelookup is the embedded index of lessons: one SQLite file.
//
// Invariant: a batch is one transaction. A crash leaves the file as after some earlier
// batch, and the sweep applies the records that it does not know.
//
// Format: one SQLite database in WAL mode, tables as in schema.sql, its version in
// `PRAGMA user_version`. The file is a projection; one of another version is refused as
// fault.Corrupt, and whoever opens it may drop it: it is filled again from the log.
package sqlitelookup

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
	"github.com/mneme-ai/mneme/shared/lookup"
)

// SchemaVersion is the `user_version` of the file.
//
// History: 1 — first.
const SchemaVersion = 1

//go:embed schema.sql
var schema string

// Index is an open file. It implements lookup.Index.
type Index struct {
	db *sql.DB

	names, body *sql.Stmt  // Find's two questions, compiled once
	apply       sync.Mutex // one writer
}

var _ lookup.Index = (*Index)(nil)

// conns: one writer and readers beside it.
const conns = 4

// Open opens or creates the file at path; its folder must exist.
func Open(ctx context.Context, path string) (ix *Index, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Open(%s)", filepath.Base(path))
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// NORMAL syncs at checkpoints alone: what a power cut takes the sweep applies again.
	q := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)", "secure_delete(1)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	ix = &Index{db: db}
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	if err := migrate(ctx, db, path); err != nil {
		return nil, err
	}
	if ix.names, err = db.PrepareContext(ctx, `SELECT n.back, n.key FROM names n JOIN scopes s ON s.id = n.scope
		WHERE s.tenant = ? AND s.project = ? AND n.kind = ? AND n.hash = ? ORDER BY n.back, n.key LIMIT ?`); err != nil {
		return nil, unavailable(err)
	}
	ix.body, err = db.PrepareContext(ctx, `SELECT l.at, l.hashes, l.body,
		(SELECT count(DISTINCT o.use) FROM outcomes o WHERE o.scope = l.scope AND o.lesson = l.key),
		(SELECT coalesce(sum(worked), 0) FROM (SELECT o.worked, min(o.record) FROM outcomes o WHERE o.scope = l.scope AND o.lesson = l.key GROUP BY o.use))
		FROM lessons l JOIN scopes s ON s.id = l.scope WHERE s.tenant = ? AND s.project = ? AND l.key = ?`)
	return ix, unavailable(err)
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
		return fault.At(fault.Corrupt, path, "remove the file: it is filled again from the log",
			"lessons' schema version %d, this program knows %d", version, SchemaVersion)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return unavailable(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("\nPRAGMA user_version = %d;", SchemaVersion)); err != nil {
		return unavailable(err)
	}
	return unavailable(tx.Commit())
}

// refuse tells a file that is no database from a passing trouble.
func refuse(path string, err error) error {
	f, ferr := os.Open(path)
	if ferr != nil {
		return unavailable(err)
	}
	defer f.Close()
	head := make([]byte, 16)
	n, _ := f.Read(head)
	if n > 0 && string(head[:n]) != "SQLite format 3\x00"[:n] {
		return fault.At(fault.Corrupt, path, "remove the file: lessons are looked up again when it is filled from the log", "not an SQLite database")
	}
	return unavailable(err)
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fault.As(fault.Unavailable, err)
}

// Purge implements lookup.Index: the file is written anew, and the WAL emptied before and
// after. Deleted rows are zeros before it already (secure_delete).
func (ix *Index) Purge(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "sqlitelookup.Purge")
	ix.apply.Lock()
	defer ix.apply.Unlock()
	for _, q := range []string{"PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := ix.db.ExecContext(ctx, q); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// Close implements lookup.Index.
func (ix *Index) Close() error { return ix.db.Close() }
