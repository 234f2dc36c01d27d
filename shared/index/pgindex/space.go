package pgindex

import (
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

var _ index.SpaceDropper = (*Index)(nil)

// DropSpace implements index.SpaceDropper: the space's table goes with its row.
func (ix *Index) DropSpace(ctx context.Context, tenant, space string) (err error) {
	defer fault.Wrap(&err, "pgindex.DropSpace(%s, %s)", tenant, space)
	if tenant == "" || space == "" {
		return fault.New(fault.Invalid, "a tenant and a space are needed")
	}
	tx, err := ix.pool.Begin(ctx)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	// No batch of the tenant is half-way meanwhile.
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, tenant); err != nil {
		return stored(err)
	}
	s, err := findSpace(ctx, tx, tenant, space)
	if err != nil {
		return stored(err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM applied_seq WHERE tenant = $1 AND space = $2`, tenant, space); err != nil {
		return stored(err)
	}
	if s.id != 0 {
		if _, err := tx.Exec(ctx, `DELETE FROM memory_space WHERE id = $1`, s.id); err != nil {
			return stored(err)
		}
		if _, err := tx.Exec(ctx, `DROP TABLE IF EXISTS `+s.table()); err != nil {
			return stored(err)
		}
	}
	return stored(tx.Commit(ctx))
}
