package sqliteindex

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// rowCache keeps rows that were read, decoded, with who names each as replaced: a hot
// memory answers without reading the file again. It is emptied by every change.
type rowCache struct {
	mu   sync.Mutex
	gen  uint64 // changes so far
	rows map[memory.SHA]cachedRow
}

// maxRows bounds the cache: at some 2 KB a node about 20 MB.
const maxRows = 10_000

// cachedRow is a node and who replaces it directly; node is nil where there is none.
type cachedRow struct {
	node *index.Node
	by   []memory.SHA
}

// changed empties the cache; what is being read was read before the change.
func (c *rowCache) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	c.rows = nil
}

// get gives the rows that are kept, those that are missing, and the state for put.
func (c *rowCache) get(tenant string, ids []memory.SHA, into map[memory.SHA]cachedRow) (missing []memory.SHA, gen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		r, ok := c.rows[id]
		if !ok || r.node != nil && r.node.Tenant != tenant || r.node == nil {
			missing = append(missing, id)
			continue
		}
		into[id] = r
	}
	return missing, c.gen
}

func (c *rowCache) put(gen uint64, rows map[memory.SHA]cachedRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gen != c.gen {
		return
	}
	if c.rows == nil || len(c.rows)+len(rows) > maxRows {
		c.rows = map[memory.SHA]cachedRow{}
	}
	maps.Copy(c.rows, rows)
}

// Succession implements index.Graph. The nodes are shared between callers, who change
// nothing of them.
func (ix *Index) Succession(ctx context.Context, tenant string, ids []memory.SHA, steps int) (nodes []index.Node, err error) {
	defer fault.Wrap(&err, "sqliteindex.Succession(%s, %d)", tenant, len(ids))
	defer ix.using()()
	found := make(map[memory.SHA]cachedRow, 2*len(ids))
	next := slices.Compact(slices.Sorted(slices.Values(ids)))
	for step := 0; len(next) > 0; step++ {
		if err := ix.rowsOf(ctx, tenant, next, steps-step, found); err != nil {
			return nil, err
		}
		if step == steps {
			break
		}
		var later []memory.SHA
		for _, id := range next {
			for _, by := range found[id].by {
				if _, ok := found[by]; !ok {
					later = append(later, by)
				}
			}
		}
		slices.Sort(later)
		next = slices.Compact(later)
	}
	nodes = make([]index.Node, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if n := found[id].node; n != nil {
			nodes = append(nodes, *n)
		}
	}
	return nodes, nil
}

// Prepare implements index.Preparer.
func (ix *Index) Prepare(ctx context.Context, tenant string, ids []memory.SHA) {
	defer ix.using()()
	_ = ix.rowsOf(ctx, tenant, ids, 1, make(map[memory.SHA]cachedRow, len(ids))) // Succession reports what it cannot read
}

// rowsOf reads ids into found, and what replaces those that are not kept, over so many steps.
func (ix *Index) rowsOf(ctx context.Context, tenant string, ids []memory.SHA, steps int, found map[memory.SHA]cachedRow) error {
	missing, gen := ix.cache.get(tenant, ids, found)
	if len(missing) == 0 {
		return nil
	}
	tx, err := ix.read.BeginTx(ctx, nil)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback()
	read := map[memory.SHA]cachedRow{}
	for _, id := range missing {
		read[id] = cachedRow{}
	}
	err = each(ctx, tx, `WITH RECURSIVE later(id, n) AS (
			SELECT unhex(value), 0 FROM json_each(?2)
			UNION
			SELECT e.child, n + 1 FROM later JOIN edge e ON e.parent = later.id AND e.kind = 1 WHERE +e.tenant = ?1 AND n < ?3)
		SELECT DISTINCT later.id, e.child FROM later LEFT JOIN edge e ON e.parent = later.id AND e.kind = 1 AND +e.tenant = ?1 ORDER BY later.id, e.child`,
		[]any{tenant, idSet(missing), steps}, func(rows *sql.Rows) error {
			var of, by []byte
			if err := rows.Scan(&of, &by); err != nil {
				return err
			}
			r := read[sha(of)]
			if by != nil {
				r.by = append(r.by, sha(by))
			}
			read[sha(of)] = r
			return nil
		})
	if err != nil {
		return err
	}
	nodes, err := nodesIn(ctx, tx, tenant, slices.Sorted(maps.Keys(read)))
	if err != nil {
		return err
	}
	for i := range nodes {
		n := nodes[i]
		r := read[n.ID]
		r.node = &n
		read[n.ID] = r
	}
	ix.cache.put(gen, read)
	maps.Copy(found, read)
	return nil
}

// Below implements index.Graph.
func (ix *Index) Below(ctx context.Context, tenant string, ids []memory.SHA) (walk map[memory.SHA][]memory.SHA, nodes []index.Node, err error) {
	defer fault.Wrap(&err, "sqliteindex.Below(%s, %d)", tenant, len(ids))
	defer ix.using()()
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
