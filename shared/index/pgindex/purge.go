package pgindex

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

var (
	_ index.Purger = (*Index)(nil)
	_ index.Holder = (*Index)(nil)
)

// insufficientPrivilege is SQLSTATE 42501.
const insufficientPrivilege = "42501"

// Purge implements index.Purger: every table of the schema is written anew, its indexes
// and its TOAST table with it. A checkpoint follows where the role may make one; the WAL
// is the administrator's (docs/FORGET.md).
func (ix *Index) Purge(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "pgindex.Purge")
	rows, err := ix.pool.Query(ctx, `SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1`, ix.schema)
	if err != nil {
		return stored(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return stored(err)
	}
	for _, t := range tables {
		if _, err := ix.pool.Exec(ctx, `VACUUM (FULL, ANALYZE) `+pgx.Identifier{ix.schema, t}.Sanitize()); err != nil {
			if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == undefinedTable {
				continue // a rebuild dropped it meanwhile
			}
			return stored(err)
		}
	}
	_, err = ix.pool.Exec(ctx, `CHECKPOINT`)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == insufficientPrivilege {
		return nil
	}
	return stored(err)
}

// undefinedTable is SQLSTATE 42P01.
const undefinedTable = "42P01"

// Holding implements index.Holder.
func (ix *Index) Holding(ctx context.Context, tenant, project string, holds func(string) bool) (searched, found int64, err error) {
	defer fault.Wrap(&err, "pgindex.Holding(%s/%s)", tenant, project)
	rows, err := ix.pool.Query(ctx, `SELECT text, text_raw FROM memory_node WHERE tenant = $1 AND project = $2
		UNION ALL SELECT o.quote, o.quote_raw FROM memory_occurrence o JOIN memory_node n ON n.sha256 = o.node WHERE n.tenant = $1 AND n.project = $2 AND o.quote <> ''`, tenant, project)
	if err != nil {
		return 0, 0, stored(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var raw []byte
		if err := rows.Scan(&text, &raw); err != nil {
			return searched, found, stored(err)
		}
		searched++
		if holds(text) || raw != nil && holds(string(raw)) {
			found++
		}
	}
	return searched, found, stored(rows.Err())
}
