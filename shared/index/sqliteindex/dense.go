package sqliteindex

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// denseRow is one vector on its way into memory.
type denseRow struct {
	passage, node [32]byte
	nodeRow       int64
	project       string
	level         memory.Level
	v             []float32
}

// denseStated is one occurrence, for filters.
type denseStated struct {
	nodeRow int64
	stated
}

// stated is when and where a node was said.
type stated struct {
	at     int64  // effective time, in nanoseconds since 1970
	object string // bucket/key; "" for memories
}

// SearchDense implements index.Graph.
func (ix *Index) SearchDense(ctx context.Context, space string, vec []float32, f index.Filter, k int) (hits []index.Hit, err error) {
	defer fault.Wrap(&err, "sqliteindex.SearchDense(%s, %s)", f.Tenant, space)
	if k <= 0 || f.Tenant == "" || len(f.Projects) == 0 || zero(vec) {
		return nil, nil
	}
	defer ix.using()()
	d, err := ix.load(ctx, f.Tenant, space)
	if err != nil || d == nil {
		return nil, err
	}
	if f.Timed() || len(f.Sources) > 0 {
		if err := ix.loadStated(ctx, f.Tenant, d); err != nil {
			return nil, err
		}
	}
	return d.search(ctx, index.Unit(vec), &f, k)
}

func zero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// load gives the space's vectors, read from the file the first time. A space
// that the file does not hold is nil.
func (ix *Index) load(ctx context.Context, tenant, space string) (*dense, error) {
	key := spaceKey{tenant, space}
	ix.mu.Lock()
	d := ix.spaces[key]
	ix.mu.Unlock()
	if d != nil {
		return d, nil
	}
	ix.apply.Lock() // no batch may fall between the file's rows and its own
	defer ix.apply.Unlock()
	ix.mu.Lock()
	d = ix.spaces[key]
	ix.mu.Unlock()
	if d != nil {
		return d, nil
	}
	d, err := ix.readSpace(ctx, tenant, space)
	if err != nil || d == nil {
		return nil, err
	}
	ix.mu.Lock()
	ix.spaces[key] = d
	ix.mu.Unlock()
	return d, nil
}

func (ix *Index) readSpace(ctx context.Context, tenant, space string) (*dense, error) {
	var row int64
	var dims int
	err := ix.read.QueryRowContext(ctx, `SELECT row, dims FROM space WHERE tenant = ? AND name = ?`, tenant, space).Scan(&row, &dims)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, stored(err)
	}
	tx, err := ix.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, stored(err)
	}
	defer tx.Rollback()
	nodes := map[int64]denseRow{}
	err = each(ctx, tx, `SELECT row, id, project, level FROM node WHERE tenant = ? AND level <> 'raw'`, []any{tenant}, func(rows *sql.Rows) error {
		var r denseRow
		var id sql.RawBytes
		if err := rows.Scan(&r.nodeRow, &id, &r.project, &r.level); err != nil {
			return err
		}
		copy(r.node[:], id)
		nodes[r.nodeRow] = r
		return nil
	})
	if err != nil {
		return nil, err
	}
	d := newDense(dims)
	unit := make([]float32, dims)
	err = each(ctx, tx, `SELECT p.id, p.node, v.v FROM vector v JOIN passage p ON p.row = v.passage WHERE v.space = ? ORDER BY v.rowid`, []any{row}, func(rows *sql.Rows) error {
		var passage, vec sql.RawBytes
		var node int64
		if err := rows.Scan(&passage, &node, &vec); err != nil {
			return err
		}
		r, ok := nodes[node]
		if !ok || len(vec) != 4*dims {
			return fault.At(fault.Corrupt, ix.path, "run `mem rebuild`", "a vector of %d bytes in a space of %d dimensions, of node row %d", len(vec), dims, node)
		}
		copy(r.passage[:], passage)
		for i := range unit {
			unit[i] = math.Float32frombits(binary.LittleEndian.Uint32(vec[4*i:]))
		}
		r.v = unit
		d.add(&r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.encode()
	return d, nil
}

// loadStated reads when and where all occurrences stand, for the first search that
// filters by it.
func (ix *Index) loadStated(ctx context.Context, tenant string, d *dense) error {
	d.mu.RLock()
	have := d.stated != nil
	d.mu.RUnlock()
	if have {
		return nil
	}
	ix.apply.Lock()
	defer ix.apply.Unlock()
	names := map[string]string{} // one string an object, whatever the number of its statements
	all := map[int64][]stated{}
	err := each(ctx, ix.read, `SELECT o.node, o.at, CASE o.span WHEN '' THEN '' ELSE o.span ->> '$.object' END FROM occurrence o JOIN node n ON n.row = o.node
		WHERE n.tenant = ? AND n.level <> 'raw'`, []any{tenant}, func(rows *sql.Rows) error {
		var s denseStated
		var object sql.RawBytes
		if err := rows.Scan(&s.nodeRow, &s.at, &object); err != nil {
			return err
		}
		name, ok := names[string(object)]
		if !ok {
			name = string(object)
			names[name] = name
		}
		s.object = name
		all[s.nodeRow] = append(all[s.nodeRow], s.stated)
		return nil
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.stated = all
	d.mu.Unlock()
	return nil
}

// loaded brings a committed batch into the spaces that are in memory. Statements go
// to every space of the tenant, as a node's vectors may stand in each.
func (ix *Index) loaded(tenant, space string, w *writer) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for key, d := range ix.spaces {
		if key.tenant != tenant {
			continue
		}
		d.mu.Lock()
		for _, row := range w.removed {
			d.retire(row)
			delete(d.stated, row)
		}
		if key.name == space {
			for _, row := range w.retired {
				d.retire(row)
			}
			for i := range w.rows {
				d.add(&w.rows[i])
			}
			d.encode()
		}
		if d.stated != nil {
			for _, s := range w.stated {
				if !slices.Contains(d.stated[s.nodeRow], s.stated) {
					d.stated[s.nodeRow] = append(d.stated[s.nodeRow], s.stated)
				}
			}
		}
		d.mu.Unlock()
	}
}

// forget drops a tenant's vectors, and the rows that were read, from memory; the next
// search reads the file. Whoever changes the file beside Apply calls it.
func (ix *Index) forget(tenant string) {
	ix.cache.changed()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for key := range ix.spaces {
		if key.tenant == tenant {
			delete(ix.spaces, key)
		}
	}
}

func shaOf(a *[32]byte) memory.SHA { return memory.SHA(hex.EncodeToString(a[:])) }
