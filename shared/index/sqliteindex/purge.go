package sqliteindex

import (
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

var (
	_ index.Purger = (*Index)(nil)
	_ index.Holder = (*Index)(nil)
)

// Purge implements index.Purger: the file is written anew, and the WAL emptied before
// and after. Deleted rows are zeros before it already (secure_delete); free pages and
// the WAL's older frames are not.
func (ix *Index) Purge(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "sqliteindex.Purge")
	defer ix.using()()
	ix.apply.Lock()
	defer ix.apply.Unlock()
	for _, q := range []string{"PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := ix.write.ExecContext(ctx, q); err != nil {
			return fault.As(fault.Unavailable, err)
		}
	}
	return nil
}

// Holding implements index.Holder.
func (ix *Index) Holding(ctx context.Context, tenant, project string, holds func(string) bool) (searched, found int64, err error) {
	defer fault.Wrap(&err, "sqliteindex.Holding(%s/%s)", tenant, project)
	defer ix.using()()
	rows, err := ix.read.QueryContext(ctx, `SELECT text FROM node WHERE tenant = ? AND project = ?
		UNION ALL SELECT quote FROM occurrence WHERE quote <> '' AND node IN (SELECT row FROM node WHERE tenant = ? AND project = ?)`, tenant, project, tenant, project)
	if err != nil {
		return 0, 0, fault.As(fault.Unavailable, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return searched, found, fault.As(fault.Unavailable, err)
		}
		searched++
		if holds(text) {
			found++
		}
	}
	return searched, found, fault.As(fault.Unavailable, rows.Err())
}
