// Package pgindex is the graph in PostgreSQL: nodes, edges, occurrences and, by
// pgvector, the dense leg.
//
// Invariant: a batch and its position are one transaction. Whatever ends in between,
// the process, the connection or the server, leaves the tables as after some earlier
// batch; several processes may apply side by side.
//
// Format: the tables of schema.sql in one schema of the database (`mneme` by default),
// its version in schema_version. memory_vector_<n> holds the vectors of one space:
//
//	passage bytea, node bytea, project text, level text, v vector(256)
//
// of length 1, as halfvec over 2,000 dimensions and without an HNSW index over 4,000
// (pgvector's bounds of an index). The tables are a projection; a version that this
// program does not know is refused, and `mem rebuild` cures it.
//
// A scope of at most ExactScope passages is scanned exactly: that is faster than a walk
// of the graph that drops what the filter refuses, and misses nothing. Above, HNSW is
// walked until enough rows passed the filter (pgvector's iterative scan).
//
// The package needs PostgreSQL 15 and pgvector 0.8.
package pgindex

import (
	"context"
	_ "embed" // schema.sql
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxvector "github.com/pgvector/pgvector-go/pgx"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

// SchemaVersion is what schema_version holds.
//
// History: 1 — first.
const SchemaVersion = 1

// ExactScope is the number of passages up to which a scope is scanned exactly.
const ExactScope = 20_000

// Config says which tables.
type Config struct {
	// URL as libpq takes it: postgres://user:password@host:5432/database. Its pool_*
	// parameters are those of pgxpool.
	URL string
	// Schema holds the tables; where empty the URL's search_path, and `mneme` where that
	// says nothing. It is made where it is missing.
	Schema string
}

//go:embed schema.sql
var schema string

// Index is an open pool. It implements index.Graph.
type Index struct {
	pool   *pgxpool.Pool
	conn   *pgx.ConnConfig // for migrate
	url    string          // for Stage
	schema string
	exact  int64
}

var (
	_ index.Graph      = (*Index)(nil)
	_ index.Maintainer = (*Index)(nil)
)

// Open connects and makes the tables where there are none. A version that is not
// SchemaVersion is fault.Corrupt with the command that cures it.
func Open(ctx context.Context, c Config) (_ *Index, err error) {
	defer fault.Wrap(&err, "pgindex.Open")
	return openPool(ctx, c, false)
}

// openPool opens; staged tables need not survive a crash of the server to the last batch,
// as their position goes with it.
func openPool(ctx context.Context, c Config, staged bool) (*Index, error) {
	pc, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		// pgx masks a password that it found; one that it did not find must not be shown.
		return nil, fault.At(fault.Invalid, "the database URL", "postgres://USER:PASSWORD@HOST:5432/DATABASE", "it cannot be read")
	}
	if c.Schema == "" {
		if c.Schema = pc.ConnConfig.RuntimeParams["search_path"]; c.Schema == "" {
			c.Schema = "mneme"
		}
	}
	delete(pc.ConnConfig.RuntimeParams, "search_path")
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "mneme"
	}
	if staged {
		pc.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}
	if err := migrate(ctx, pc.ConnConfig, c.Schema); err != nil {
		return nil, stored(err)
	}
	pc.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// The extension may stand in a schema of its own.
		_, err := conn.Exec(ctx, `SELECT set_config('search_path', concat_ws(',', quote_ident($1), (SELECT quote_ident(s.nspname)
			FROM pg_extension e JOIN pg_namespace s ON s.oid = e.extnamespace WHERE e.extname = 'vector')), false)`, c.Schema)
		if err != nil {
			return err
		}
		return pgxvector.RegisterTypes(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, stored(err)
	}
	return &Index{pool: pool, conn: pc.ConnConfig.Copy(), url: c.URL, schema: c.Schema, exact: ExactScope}, nil
}

// migrations is the advisory lock under which tables and spaces are made.
const migrations = 0x6d6e656d65 // "mneme"

func migrate(ctx context.Context, cfg *pgx.ConnConfig, name string) error {
	conn, err := pgx.ConnectConfig(ctx, cfg.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrations)); err != nil {
		return err
	}
	var version, has string
	err = tx.QueryRow(ctx, `SELECT current_setting('server_version_num'), coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '')`).Scan(&version, &has)
	if err != nil {
		return err
	}
	if len(version) < 6 || version < "150000" {
		return fault.At(fault.Invalid, "PostgreSQL", "use version 15 or later", "the server is of version number %s", version)
	}
	if has == "" {
		if _, err := tx.Exec(ctx, `CREATE EXTENSION vector`); err != nil {
			return fault.At(fault.Invalid, "PostgreSQL", "install pgvector 0.8 or later on the server, and run CREATE EXTENSION vector as a superuser", "the database has no extension vector: %v", err)
		}
		if err := tx.QueryRow(ctx, `SELECT extversion FROM pg_extension WHERE extname = 'vector'`).Scan(&has); err != nil {
			return err
		}
	}
	if older(has, 0, 8) {
		return fault.At(fault.Invalid, "PostgreSQL", "install pgvector 0.8 or later on the server, and run ALTER EXTENSION vector UPDATE", "pgvector is of version %s: filtered searches would miss rows", has)
	}
	ident := pgx.Identifier{name}.Sanitize()
	var tables int
	err = tx.QueryRow(ctx, `SELECT count(*) FROM pg_tables WHERE schemaname = $1`, name).Scan(&tables)
	if err != nil {
		return err
	}
	if tables == 0 {
		_, err = tx.Exec(ctx, fmt.Sprintf("CREATE SCHEMA IF NOT EXISTS %s; SET LOCAL search_path = %s;\n%s\nCREATE TABLE schema_version AS SELECT %d AS version;", ident, ident, schema, SchemaVersion))
		if err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
	var is int
	err = tx.QueryRow(ctx, `SELECT version FROM `+ident+`.schema_version`).Scan(&is)
	if pe, ok := errors.AsType[*pgconn.PgError](err); err != nil && !errors.Is(err, pgx.ErrNoRows) && !(ok && strings.HasPrefix(pe.Code, "42")) {
		return err // the connection ended: nothing is known of the tables
	}
	if err != nil || is != SchemaVersion {
		return fault.At(fault.Corrupt, "schema "+name, "drop the schema and run `mem rebuild`: the tables are filled from the log, without a model call",
			"tables of version %d, this program knows %d", is, SchemaVersion)
	}
	return nil
}

// older reports whether a version is before major.minor.
func older(version string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(version, "%d.%d", &a, &b); err != nil {
		return true
	}
	return a < major || a == major && b < minor
}

// Close closes the pool; it waits for queries under way.
func (ix *Index) Close() error {
	ix.pool.Close()
	return nil
}

// stored gives a database error its kind. Errors that carry a kind keep it.
func stored(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return fault.As(fault.Unavailable, err)
	}
	switch class := pe.Code[:min(2, len(pe.Code))]; {
	case pe.Code == "53100":
		return fault.At(fault.Unavailable, "PostgreSQL", "free space on its disk; nothing is lost, the log holds everything", "its disk is full: %s", pe.Message)
	case pe.Code == "25006":
		return fault.At(fault.Unavailable, "PostgreSQL", "connect to the primary", "it is read-only: %s", pe.Message)
	case pe.Code == "42P01" || pe.Code == "42703" || pe.Code == "3F000":
		return fault.At(fault.Corrupt, "PostgreSQL", "run `mem rebuild`: the tables are filled from the log, without a model call", "%s", pe.Message)
	case class == "28" || pe.Code == "42501":
		return fault.At(fault.Denied, "PostgreSQL", "look at the user and its rights", "%s", pe.Message)
	case class == "22":
		return fault.At(fault.Internal, "PostgreSQL", "", "%s (%s)", pe.Message, pe.Code)
	case strings.HasPrefix(pe.Code, "40"):
		return fault.As(fault.Unavailable, err) // another transaction was first
	}
	return fault.As(fault.Unavailable, err)
}
