package sqliteindex

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// A + before tenant keeps the planner off the indexes that begin with it:
// without statistics it takes one tenant to be rarer than a list of ids, and
// reads all of the tenant's rows for each of them.

// Nodes implements index.Graph.
func (ix *Index) Nodes(ctx context.Context, tenant string, ids []memory.SHA) (nodes []index.Node, err error) {
	defer fault.Wrap(&err, "sqliteindex.Nodes(%s, %d)", tenant, len(ids))
	if len(ids) == 0 {
		return nil, nil
	}
	defer ix.using()()
	tx, err := ix.read.BeginTx(ctx, nil) // one snapshot for all tables
	if err != nil {
		return nil, stored(err)
	}
	defer tx.Rollback()
	nodes, err = nodesIn(ctx, tx, tenant, ids)
	for i := range nodes {
		nodes[i].Passages = index.PassagesOf(&nodes[i])
	}
	return nodes, err
}

// nodesIn is Nodes without the passages.

func nodesIn(ctx context.Context, tx *sql.Tx, tenant string, ids []memory.SHA) (nodes []index.Node, err error) {
	set := idSet(ids)
	byID := map[memory.SHA]*index.Node{}
	byRow := map[int64]*index.Node{}
	err = each(ctx, tx, `SELECT row, id, project, stream, level, query_id, text, text_sha, t, role, trust, place, source_time
		FROM node WHERE +tenant = ? AND id IN (SELECT unhex(value) FROM json_each(?))`, []any{tenant, set}, func(rows *sql.Rows) error {
		n := &index.Node{Tenant: tenant}
		var row int64
		var id, textSHA []byte
		var place string
		var source sql.NullString
		if err := rows.Scan(&row, &id, &n.Project, &n.Stream, &n.Level, &n.QueryID, &n.Text, &textSHA, &n.T, &n.Role, &n.Trust, &place, &source); err != nil {
			return err
		}
		n.ID, n.TextSHA = sha(id), sha(textSHA)
		if err := json.Unmarshal([]byte(place), &n.Place); err != nil {
			return err
		}
		if source.Valid {
			t, err := time.Parse(time.RFC3339Nano, source.String)
			if err != nil {
				return err
			}
			n.SourceTime = &t
		}
		byID[n.ID], byRow[row] = n, n
		return nil
	})
	if err != nil {
		return nil, err
	}
	const rowsOf = `SELECT row FROM node WHERE +tenant = ? AND id IN (SELECT unhex(value) FROM json_each(?))`
	err = each(ctx, tx, `SELECT node, t, span, place, quote, role, turn_id FROM occurrence WHERE node IN (`+rowsOf+`)`, []any{tenant, set}, func(rows *sql.Rows) error {
		var row int64
		var o index.Occurrence
		var span, place string
		if err := rows.Scan(&row, &o.T, &span, &place, &o.Quote, &o.Role, &o.TurnID); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(place), &o.Place); err != nil {
			return err
		}
		if span != "" {
			if err := json.Unmarshal([]byte(span), &o.Span); err != nil {
				return err
			}
		}
		n := byRow[row]
		n.Occurrences = append(n.Occurrences, o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, `SELECT child, kind, parent FROM edge WHERE +tenant = ? AND child IN (SELECT unhex(value) FROM json_each(?)) ORDER BY parent`, []any{tenant, set}, func(rows *sql.Rows) error {
		var child, parent []byte
		var kind int
		if err := rows.Scan(&child, &kind, &parent); err != nil {
			return err
		}
		n := byID[sha(child)]
		if n == nil {
			return nil // the edge of a node that another stream has yet to bring
		}
		if kind == edgeParent {
			n.Parents = append(n.Parents, sha(parent))
		} else {
			n.Supersedes = append(n.Supersedes, sha(parent))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		n := byID[id]
		if n == nil {
			continue
		}
		delete(byID, id) // an id asked for twice is answered once
		*n = index.Sorted(*n)
		nodes = append(nodes, *n)
	}
	return nodes, nil
}

// Walk implements index.Graph. The union drops what was seen, so that it ends
// on any graph.
func (ix *Index) Walk(ctx context.Context, tenant string, ids []memory.SHA) (out map[memory.SHA][]memory.SHA, err error) {
	defer fault.Wrap(&err, "sqliteindex.Walk(%s, %d)", tenant, len(ids))
	defer ix.using()()
	return walkIn(ctx, ix.read, tenant, ids)
}

func walkIn(ctx context.Context, q rowQueryer, tenant string, ids []memory.SHA) (out map[memory.SHA][]memory.SHA, err error) {
	out = map[memory.SHA][]memory.SHA{}
	err = each(ctx, q, `WITH RECURSIVE up(root, id) AS (
			SELECT id, id FROM node WHERE +tenant = ?1 AND id IN (SELECT unhex(value) FROM json_each(?2))
			UNION
			SELECT up.root, e.parent FROM up JOIN edge e ON e.child = up.id AND e.kind = 0 WHERE +e.tenant = ?1)
		SELECT up.root, n.id FROM up LEFT JOIN node n ON n.id = up.id AND +n.tenant = ?1 AND n.level IN ('L0', 'raw')
		ORDER BY up.root, n.id`, []any{tenant, idSet(ids)}, func(rows *sql.Rows) error {
		var root, id []byte
		if err := rows.Scan(&root, &id); err != nil {
			return err
		}
		r := sha(root)
		if _, ok := out[r]; !ok {
			out[r] = []memory.SHA{}
		}
		if id != nil {
			out[r] = append(out[r], sha(id))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Superseded implements index.Graph.
func (ix *Index) Superseded(ctx context.Context, tenant string, ids []memory.SHA) (out map[memory.SHA][]memory.SHA, err error) {
	defer fault.Wrap(&err, "sqliteindex.Superseded(%s, %d)", tenant, len(ids))
	var pairs []index.Replacement
	var names []memory.SHA
	done := ix.using() // Nodes takes its own
	err = each(ctx, ix.read, `SELECT e.child, e.parent FROM edge e WHERE +e.tenant = ? AND e.kind = 1 AND e.parent IN (SELECT unhex(value) FROM json_each(?))
		ORDER BY e.parent, e.child`, []any{tenant, idSet(ids)}, func(rows *sql.Rows) error {
		var by, of []byte
		if err := rows.Scan(&by, &of); err != nil {
			return err
		}
		p := index.Replacement{By: sha(by), Of: sha(of)}
		pairs = append(pairs, p)
		names = append(names, p.By, p.Of)
		return nil
	})
	done()
	if err != nil {
		return nil, err
	}
	out = map[memory.SHA][]memory.SHA{}
	if len(pairs) == 0 {
		return out, nil
	}
	nodes, err := ix.Nodes(ctx, tenant, names)
	if err != nil {
		return nil, err
	}
	return index.Current(pairs, nodes), nil
}

// idSet is ids as a JSON array for json_each; what is no id is left out.
func idSet(ids []memory.SHA) string {
	valid := slices.DeleteFunc(slices.Clone(ids), func(s memory.SHA) bool { return !s.Valid() })
	if valid == nil {
		valid = []memory.SHA{}
	}
	return encode(valid)
}

type rowQueryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls fn for every row.
func each(ctx context.Context, q rowQueryer, query string, args []any, fn func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return stored(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return stored(err)
		}
	}
	return stored(rows.Err())
}
