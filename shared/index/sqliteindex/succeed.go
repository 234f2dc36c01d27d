package sqliteindex

import (
	"context"
	"database/sql"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Succession implements index.Graph.
func (ix *Index) Succession(ctx context.Context, tenant string, ids []memory.SHA, steps int) (nodes []index.Node, err error) {
	defer fault.Wrap(&err, "sqliteindex.Succession(%s, %d)", tenant, len(ids))
	tx, err := ix.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, stored(err)
	}
	defer tx.Rollback()
	var all []memory.SHA
	err = each(ctx, tx, `WITH RECURSIVE later(id, n) AS (
			SELECT unhex(value), 0 FROM json_each(?2)
			UNION
			SELECT e.child, later.n + 1 FROM later JOIN edge e ON e.parent = later.id AND e.kind = 1 WHERE later.n < ?3 AND +e.tenant = ?1)
		SELECT DISTINCT id FROM later ORDER BY id`, []any{tenant, idSet(ids), steps}, func(rows *sql.Rows) error {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return err
		}
		all = append(all, sha(id))
		return nil
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return nodesIn(ctx, tx, tenant, all)
}

// Below implements index.Graph.
func (ix *Index) Below(ctx context.Context, tenant string, ids []memory.SHA) (walk map[memory.SHA][]memory.SHA, nodes []index.Node, err error) {
	defer fault.Wrap(&err, "sqliteindex.Below(%s, %d)", tenant, len(ids))
	tx, err := ix.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, nil, stored(err)
	}
	defer tx.Rollback()
	if walk, err = walkIn(ctx, tx, tenant, ids); err != nil {
		return nil, nil, err
	}
	var all []memory.SHA
	for _, found := range walk {
		all = append(all, found...)
	}
	err = each(ctx, tx, `SELECT parent FROM edge WHERE +tenant = ? AND kind = 0 AND child IN (SELECT unhex(value) FROM json_each(?))`, []any{tenant, idSet(ids)}, func(rows *sql.Rows) error {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return err
		}
		all = append(all, sha(id))
		return nil
	})
	if err != nil || len(all) == 0 {
		return walk, nil, err
	}
	slices.Sort(all)
	nodes, err = nodesIn(ctx, tx, tenant, slices.Compact(all))
	return walk, nodes, err
}
