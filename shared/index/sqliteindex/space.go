package sqliteindex

import (
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

var _ index.SpaceDropper = (*Index)(nil)

// DropSpace implements index.SpaceDropper.
func (ix *Index) DropSpace(ctx context.Context, tenant, space string) (err error) {
	defer fault.Wrap(&err, "sqliteindex.DropSpace(%s, %s)", tenant, space)
	defer ix.using()()
	if tenant == "" || space == "" {
		return fault.New(fault.Invalid, "a tenant and a space are needed")
	}
	ix.apply.Lock()
	defer ix.apply.Unlock()
	tx, err := ix.write.BeginTx(ctx, nil)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback()
	for _, q := range []string{
		`DELETE FROM vector WHERE space IN (SELECT row FROM space WHERE tenant = ? AND name = ?)`,
		`DELETE FROM space WHERE tenant = ? AND name = ?`,
		`DELETE FROM applied WHERE tenant = ? AND space = ?`,
	} {
		if _, err := tx.ExecContext(ctx, q, tenant, space); err != nil {
			return stored(err)
		}
	}
	if err := tx.Commit(); err != nil {
		return stored(err)
	}
	ix.mu.Lock()
	delete(ix.spaces, spaceKey{tenant, space})
	ix.mu.Unlock()
	_, err = ix.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`) // as Wipe does
	return stored(err)
}
