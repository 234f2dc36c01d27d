// Package pglookup is the index of lessons in PostgreSQL, which several functions of a
// cluster share.
//
// Invariant: a batch is one transaction, under a lock of its project. Whatever ends in
// between leaves the tables as after some earlier batch, and the sweep applies the records
// that they do not know.
//
// Format: the tables of schema.sql in one schema of the database (`mneme` by default),
// beside those of the graph; their version in lesson_schema. They are a projection; a
// version that this program does not know is refused.
package pglookup

import (
	"context"
	_ "embed" // schema.sql
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// SchemaVersion is what lesson_schema holds.
//
// History: 1 — first.
const SchemaVersion = 1

// Config says which tables.
type Config struct {
	URL    string // as libpq takes it
	Schema string // holds the tables; where empty the URL's search_path, else mneme
}

//go:embed schema.sql
var schema string

// Index is an open pool. It implements lookup.Index.
type Index struct {
	pool   *pgxpool.Pool
	schema string
}

var _ lookup.Index = (*Index)(nil)

// Open connects and makes the tables where there are none.
func Open(ctx context.Context, c Config) (_ *Index, err error) {
	defer fault.Wrap(&err, "pglookup.Open")
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
	pc.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{c.Schema}.Sanitize()
	if pc.ConnConfig.RuntimeParams["application_name"] == "" {
		pc.ConnConfig.RuntimeParams["application_name"] = "mneme"
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, unavailable(err)
	}
	ix := &Index{pool, c.Schema}
	if err := ix.migrate(ctx, c.Schema); err != nil {
		pool.Close()
		return nil, unavailable(err)
	}
	return ix, nil
}

// migrations is the advisory lock under which tables are made; pgindex takes the same.
const migrations = 0x6d6e656d65 // "mneme"

func (ix *Index) migrate(ctx context.Context, name string) error {
	return pgx.BeginFunc(ctx, ix.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrations)); err != nil {
			return err
		}
		// Who may not make a schema may use one that stands.
		var stands, tables bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1), to_regclass(quote_ident($1) || '.lesson_schema') IS NOT NULL`, name).Scan(&stands, &tables); err != nil {
			return err
		}
		if !stands {
			if _, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{name}.Sanitize()); err != nil {
				return err
			}
		}
		if !tables {
			if _, err := tx.Exec(ctx, schema); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO lesson_schema VALUES ($1)`, SchemaVersion)
			return err
		}
		var version int
		if err := tx.QueryRow(ctx, `SELECT max(version) FROM lesson_schema`).Scan(&version); err != nil {
			return err
		}
		if version != SchemaVersion {
			return fault.At(fault.Corrupt, "schema "+name, "drop its tables lesson and lesson_*: they are filled again from the log", "lessons' schema version %d, this program knows %d", version, SchemaVersion)
		}
		return nil
	})
}

// unavailable gives an error of the database its kind.
func unavailable(err error) error {
	switch {
	case err == nil || fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Invalid):
		return err
	case dropped(err):
		return &fault.Error{Kind: fault.Unavailable, Msg: "the tables of lessons are gone", Hint: "run `mem rebuild`: they are filled again from the log", Err: err}
	}
	return fault.As(fault.Unavailable, err)
}

// dropped tells that somebody removed the tables, or their schema, while they were in use.
func dropped(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pe.Code == "42P01" || pe.Code == "3F000") // undefined_table, invalid_schema_name
}

// Find implements lookup.Index.
func (ix *Index) Find(ctx context.Context, s lookup.Scope, k lookup.Kind, hashes []memory.SHA, limit int) (out []lookup.Match, total int, err error) {
	defer fault.Wrap(&err, "pglookup.Find(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil {
		return nil, 0, err
	}
	asked := [][]byte{}
	for _, h := range hashes {
		if !h.Valid() {
			return nil, 0, fault.New(fault.Invalid, "a hash is a sha256")
		}
		asked = append(asked, lookup.Bytes(h))
	}
	if len(asked) == 0 {
		return nil, 0, nil
	}
	// Each hash gives its newest by the index alone; then they are merged.
	rows, err := ix.pool.Query(ctx, `WITH hit AS (
			SELECT DISTINCT n.back, n.key FROM unnest($4::bytea[]) AS h(hash), LATERAL (
				SELECT back, key FROM lesson_name WHERE tenant = $1 AND project = $2 AND kind = $3 AND hash = h.hash ORDER BY back, key LIMIT $6) n
		), first AS (SELECT back, key, (SELECT count(*) FROM hit) AS total FROM hit ORDER BY back, key LIMIT $5)
		SELECT f.total, f.key, l.at, l.hashes, l.body, `+uses+`
		FROM first f LEFT JOIN lesson l ON l.tenant = $1 AND l.project = $2 AND l.key = f.key ORDER BY f.back, f.key`,
		s.Tenant, s.Project, int16(k), asked, limit, lookup.MaxTotal)
	if err != nil {
		return nil, 0, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, packed, body []byte
		var at *int64
		var m lookup.Match
		if err := rows.Scan(&total, &key, &at, &packed, &body, &m.Told, &m.Worked); err != nil {
			return nil, 0, unavailable(err)
		}
		if at == nil {
			continue
		}
		m.Key, m.At, m.Hashes, m.Body = lookup.SHA(key), time.UnixMilli(*at).UTC(), lookup.Unpack(packed), body
		out = append(out, m)
	}
	return out, min(total, lookup.MaxTotal), unavailable(rows.Err())
}

// uses are the uses told of a lesson l, and those that worked: of two records of one use
// that with the smaller key.
const uses = `(SELECT count(DISTINCT o.use) FROM lesson_outcome o WHERE o.tenant = $1 AND o.project = $2 AND o.lesson = l.key),
	(SELECT count(*) FILTER (WHERE worked) FROM (SELECT DISTINCT ON (o.use) o.worked FROM lesson_outcome o
		WHERE o.tenant = $1 AND o.project = $2 AND o.lesson = l.key ORDER BY o.use, o.record) u)`

// Get implements lookup.Index.
func (ix *Index) Get(ctx context.Context, s lookup.Scope, key memory.SHA) (m lookup.Match, ok bool, err error) {
	defer fault.Wrap(&err, "pglookup.Get(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil || !key.Valid() {
		return m, false, err
	}
	var at int64
	var packed []byte
	err = ix.pool.QueryRow(ctx, `SELECT l.at, l.hashes, l.body, `+uses+` FROM lesson l WHERE l.tenant = $1 AND l.project = $2 AND l.key = $3`,
		s.Tenant, s.Project, lookup.Bytes(key)).Scan(&at, &packed, &m.Body, &m.Told, &m.Worked)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, false, nil
	}
	m.Key, m.At, m.Hashes = key, time.UnixMilli(at).UTC(), lookup.Unpack(packed)
	return m, err == nil, unavailable(err)
}

// Has implements lookup.Index.
func (ix *Index) Has(ctx context.Context, s lookup.Scope, key memory.SHA) (ok bool, err error) {
	defer fault.Wrap(&err, "pglookup.Has(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil || !key.Valid() {
		return false, err
	}
	err = ix.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM lesson_record WHERE tenant = $1 AND project = $2 AND key = $3)`, s.Tenant, s.Project, lookup.Bytes(key)).Scan(&ok)
	return ok, unavailable(err)
}

// Known implements lookup.Index.
func (ix *Index) Known(ctx context.Context, s lookup.Scope) (out map[memory.SHA]bool, err error) {
	defer fault.Wrap(&err, "pglookup.Known(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil {
		return nil, err
	}
	out = map[memory.SHA]bool{}
	var key []byte
	rows, err := ix.pool.Query(ctx, `SELECT key FROM lesson_record WHERE tenant = $1 AND project = $2`, s.Tenant, s.Project)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&key}, func() error { out[lookup.SHA(key)] = true; return nil })
	}
	return out, unavailable(err)
}

// Projects implements lookup.Index. A rebuild begins with it: tables that were dropped
// are made anew.
func (ix *Index) Projects(ctx context.Context, tenant string) (out []string, err error) {
	defer fault.Wrap(&err, "pglookup.Projects(%s)", tenant)
	if out, err = ix.projects(ctx, tenant); dropped(err) {
		if err := ix.migrate(ctx, ix.schema); err != nil {
			return nil, unavailable(err)
		}
		out, err = ix.projects(ctx, tenant)
	}
	return out, unavailable(err)
}

func (ix *Index) projects(ctx context.Context, tenant string) (out []string, err error) {
	rows, err := ix.pool.Query(ctx, `SELECT DISTINCT project FROM lesson_record WHERE tenant = $1`, tenant)
	if err == nil {
		out, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	slices.Sort(out)
	return out, err
}

// Hash implements lookup.Index.
func (ix *Index) Hash(ctx context.Context, tenant string) (_ memory.SHA, n int64, err error) {
	defer fault.Wrap(&err, "pglookup.Hash(%s)", tenant)
	var h lookup.Hasher
	var project string
	var key, packed, body, lesson []byte
	var at int64
	var o lookup.Outcome
	rows, err := ix.pool.Query(ctx, `SELECT project, key, at, hashes, body FROM lesson WHERE tenant = $1 ORDER BY project, key`, tenant)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&project, &key, &at, &packed, &body}, func() error {
			h.Row(project, lookup.Row{Key: lookup.SHA(key), At: time.UnixMilli(at), Hashes: lookup.Unpack(packed), Body: body})
			return nil
		})
	}
	if err == nil {
		rows, err = ix.pool.Query(ctx, `SELECT project, lesson, use, worked, record FROM lesson_outcome WHERE tenant = $1 ORDER BY project, record`, tenant)
	}
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&project, &lesson, &o.Use, &o.Worked, &key}, func() error {
			o.Lesson, o.Record = lookup.SHA(lesson), lookup.SHA(key)
			h.Outcome(project, o)
			return nil
		})
	}
	sum, n := h.Sum()
	return sum, n, unavailable(err)
}

// Holding implements lookup.Index.
func (ix *Index) Holding(ctx context.Context, s lookup.Scope, holds func(string) bool) (searched, found int64, err error) {
	defer fault.Wrap(&err, "pglookup.Holding(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil {
		return 0, 0, err
	}
	var body []byte
	rows, err := ix.pool.Query(ctx, `SELECT body FROM lesson WHERE tenant = $1 AND project = $2`, s.Tenant, s.Project)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&body}, func() error {
			searched++
			if holds(string(body)) {
				found++
			}
			return nil
		})
	}
	return searched, found, unavailable(err)
}

// Purge implements lookup.Index: what VACUUM gives back within the tables. The files'
// older pages and the WAL are an administrator's (docs/FORGET.md).
func (ix *Index) Purge(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "pglookup.Purge")
	for _, t := range []string{"lesson", "lesson_name", "lesson_outcome"} {
		if _, err := ix.pool.Exec(ctx, "VACUUM "+t); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// Close implements lookup.Index.
func (ix *Index) Close() error {
	ix.pool.Close()
	return nil
}
