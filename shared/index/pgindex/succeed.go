package pgindex

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Succession implements index.Graph.
func (ix *Index) Succession(ctx context.Context, tenant string, ids []memory.SHA, steps int) (nodes []index.Node, err error) {
	defer fault.Wrap(&err, "pgindex.Succession(%s, %d)", tenant, len(ids))
	set := idSet(ids)
	if len(set) == 0 {
		return nil, nil
	}
	rows, err := ix.pool.Query(ctx, `WITH RECURSIVE later(sha, n) AS (
			SELECT sha, 0 FROM unnest($2::bytea[]) AS u(sha)
			UNION
			SELECT e.child_sha, later.n + 1 FROM later JOIN memory_edge e ON e.parent_sha = later.sha AND e.kind = 1 WHERE later.n < $3 AND e.tenant = $1)
		`+wholeRows+` WHERE n.tenant = $1 AND n.sha256 = ANY(ARRAY(SELECT sha FROM later))`, tenant, set, steps)
	if err != nil {
		return nil, stored(err)
	}
	return whole(rows, tenant)
}

// Below implements index.Graph: two statements in one round trip, and in one snapshot.
func (ix *Index) Below(ctx context.Context, tenant string, ids []memory.SHA) (walk map[memory.SHA][]memory.SHA, nodes []index.Node, err error) {
	defer fault.Wrap(&err, "pgindex.Below(%s, %d)", tenant, len(ids))
	walk = map[memory.SHA][]memory.SHA{}
	set := idSet(ids)
	if len(set) == 0 {
		return walk, nil, nil
	}
	var batch pgx.Batch
	batch.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	batch.Queue(walkRows, tenant, set)
	batch.Queue(`WITH RECURSIVE up(sha) AS (
			SELECT u.sha FROM unnest($2::bytea[]) AS u(sha)
			UNION
			SELECT e.parent_sha FROM up JOIN memory_edge e ON e.child_sha = up.sha AND e.kind = 0 AND e.tenant = $1)
		`+wholeRows+` WHERE n.tenant = $1 AND (n.sha256 = ANY(ARRAY(SELECT sha FROM up)) AND n.level IN ('L0', 'raw')
			OR n.sha256 = ANY(ARRAY(SELECT parent_sha FROM memory_edge WHERE child_sha = ANY($2::bytea[]) AND kind = 0 AND tenant = $1)))`, tenant, set)
	batch.Queue(`COMMIT`)
	res := ix.pool.SendBatch(ctx, &batch)
	defer func() {
		if e := res.Close(); err == nil {
			err = stored(e)
		}
	}()
	if _, err := res.Exec(); err != nil {
		return nil, nil, stored(err)
	}
	rows, err := res.Query()
	if err != nil {
		return nil, nil, stored(err)
	}
	if err := collectWalk(rows, walk); err != nil {
		return nil, nil, stored(err)
	}
	if rows, err = res.Query(); err != nil {
		return nil, nil, stored(err)
	}
	if nodes, err = whole(rows, tenant); err != nil {
		return nil, nil, err
	}
	_, err = res.Exec()
	return walk, nodes, stored(err)
}

// whole reads the rows of wholeRows, sorted by id, without passages.
func whole(rows pgx.Rows, tenant string) ([]index.Node, error) {
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*index.Node, error) { return scanNode(r, tenant) })
	if err != nil {
		return nil, stored(err)
	}
	out := make([]index.Node, len(found))
	for i, n := range found {
		out[i] = index.Sorted(*n)
	}
	slices.SortFunc(out, func(a, b index.Node) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}
