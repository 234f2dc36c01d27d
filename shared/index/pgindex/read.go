package pgindex

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// wholeRows selects nodes n with what belongs to them, as scanNode reads it.
const wholeRows = `SELECT n.sha256, n.project, n.stream, n.level, n.query_id, n.text, n.text_raw, n.text_sha256, n.t, n.role, n.trust, n.place, n.source_time,
			o.t, o.span, o.place, o.quote, o.raw, o.role, o.turn, e.parents, e.replaced
		FROM memory_node n
		LEFT JOIN LATERAL (SELECT array_agg(t) t, array_agg(span) span, array_agg(place) place, array_agg(quote) quote, array_agg(quote_raw) raw, array_agg(role) AS role, array_agg(turn_id) turn
			FROM memory_occurrence WHERE node = n.sha256) o ON true
		LEFT JOIN LATERAL (SELECT array_agg(parent_sha) FILTER (WHERE kind = 0) parents, array_agg(parent_sha) FILTER (WHERE kind = 1) replaced
			FROM memory_edge WHERE child_sha = n.sha256) e ON true`

// Nodes implements index.Graph: one statement, so that all tables are seen at one
// moment.
func (ix *Index) Nodes(ctx context.Context, tenant string, ids []memory.SHA) (nodes []index.Node, err error) {
	defer fault.Wrap(&err, "pgindex.Nodes(%s, %d)", tenant, len(ids))
	set := idSet(ids)
	if len(set) == 0 {
		return nil, nil
	}
	rows, err := ix.pool.Query(ctx, wholeRows+`
		WHERE n.tenant = $1 AND n.sha256 = ANY($2::bytea[])`, tenant, set)
	if err != nil {
		return nil, stored(err)
	}
	byID := map[memory.SHA]*index.Node{}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*index.Node, error) { return scanNode(r, tenant) })
	if err != nil {
		return nil, stored(err)
	}
	for _, n := range found {
		byID[n.ID] = n
	}
	for _, id := range ids {
		n := byID[id]
		if n == nil {
			continue
		}
		delete(byID, id) // an id asked for twice is answered once
		n.Passages = index.PassagesOf(n)
		nodes = append(nodes, index.Sorted(*n))
	}
	return nodes, nil
}

func scanNode(r pgx.CollectableRow, tenant string) (*index.Node, error) {
	n := &index.Node{Tenant: tenant}
	var id, raw, textSHA []byte
	var place string
	var source *string
	var t []int
	var span, places, quote, role, turn []string
	var raws, parents, replaced [][]byte
	err := r.Scan(&id, &n.Project, &n.Stream, &n.Level, &n.QueryID, &n.Text, &raw, &textSHA, &n.T, &n.Role, &n.Trust, &place, &source,
		&t, &span, &places, &quote, &raws, &role, &turn, &parents, &replaced)
	if err != nil {
		return nil, err
	}
	n.ID, n.TextSHA = sha(id), sha(textSHA)
	if raw != nil {
		n.Text = string(raw)
	}
	if err := json.Unmarshal([]byte(place), &n.Place); err != nil {
		return nil, err
	}
	if source != nil {
		at, err := time.Parse(time.RFC3339Nano, *source)
		if err != nil {
			return nil, err
		}
		n.SourceTime = &at
	}
	for i := range t {
		o := index.Occurrence{T: t[i], Quote: quote[i], Role: memory.Role(role[i])}
		if raws[i] != nil {
			o.Quote = string(raws[i])
		}
		if err := json.Unmarshal([]byte(places[i]), &o.Place); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(turn[i]), &o.TurnID); err != nil {
			return nil, err
		}
		if span[i] != "" {
			if err := json.Unmarshal([]byte(span[i]), &o.Span); err != nil {
				return nil, err
			}
		}
		n.Occurrences = append(n.Occurrences, o)
	}
	n.Parents, n.Supersedes = shas(parents), shas(replaced)
	return n, nil
}

// Walk implements index.Graph. The union drops what was seen, so that it ends on any
// graph.
func (ix *Index) Walk(ctx context.Context, tenant string, ids []memory.SHA) (out map[memory.SHA][]memory.SHA, err error) {
	defer fault.Wrap(&err, "pgindex.Walk(%s, %d)", tenant, len(ids))
	out = map[memory.SHA][]memory.SHA{}
	set := idSet(ids)
	if len(set) == 0 {
		return out, nil
	}
	rows, err := ix.pool.Query(ctx, walkRows, tenant, set)
	if err != nil {
		return nil, stored(err)
	}
	if err := collectWalk(rows, out); err != nil {
		return nil, stored(err)
	}
	return out, nil
}

// walkRows gives for each of $2 itself and the evidence that it rests on.
const walkRows = `WITH RECURSIVE up(root, sha) AS (
			SELECT sha256, sha256 FROM memory_node WHERE tenant = $1 AND sha256 = ANY($2::bytea[])
			UNION
			SELECT up.root, e.parent_sha FROM up JOIN memory_edge e ON e.child_sha = up.sha AND e.kind = 0 AND e.tenant = $1)
		SELECT up.root, n.sha256 FROM up LEFT JOIN memory_node n ON n.sha256 = up.sha AND n.tenant = $1 AND n.level IN ('L0', 'raw')
		ORDER BY up.root, n.sha256`

func collectWalk(rows pgx.Rows, out map[memory.SHA][]memory.SHA) error {
	var root, id []byte
	_, err := pgx.ForEachRow(rows, []any{&root, &id}, func() error {
		r := sha(root)
		if _, ok := out[r]; !ok {
			out[r] = []memory.SHA{}
		}
		if id != nil {
			out[r] = append(out[r], sha(id))
		}
		return nil
	})
	return err
}

// Superseded implements index.Graph.
func (ix *Index) Superseded(ctx context.Context, tenant string, ids []memory.SHA) (out map[memory.SHA][]memory.SHA, err error) {
	defer fault.Wrap(&err, "pgindex.Superseded(%s, %d)", tenant, len(ids))
	out = map[memory.SHA][]memory.SHA{}
	set := idSet(ids)
	if len(set) == 0 {
		return out, nil
	}
	rows, err := ix.pool.Query(ctx, `SELECT child_sha, parent_sha FROM memory_edge WHERE tenant = $1 AND kind = 1 AND parent_sha = ANY($2::bytea[])
		ORDER BY parent_sha, child_sha`, tenant, set)
	if err != nil {
		return nil, stored(err)
	}
	var pairs []index.Replacement
	var names []memory.SHA
	var by, of []byte
	_, err = pgx.ForEachRow(rows, []any{&by, &of}, func() error {
		p := index.Replacement{By: sha(by), Of: sha(of)}
		pairs = append(pairs, p)
		names = append(names, p.By, p.Of)
		return nil
	})
	if err != nil || len(pairs) == 0 {
		return out, stored(err)
	}
	nodes, err := ix.Nodes(ctx, tenant, names)
	if err != nil {
		return nil, err
	}
	return index.Current(pairs, nodes), nil
}

// idSet is ids as an array; what is no id is left out.
func idSet(ids []memory.SHA) (out [][]byte) {
	for _, s := range ids {
		if s.Valid() {
			out = append(out, bytesOf(s))
		}
	}
	return out
}

func shas(in [][]byte) (out []memory.SHA) {
	for _, b := range in {
		out = append(out, sha(b))
	}
	return out
}
