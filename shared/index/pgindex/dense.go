package pgindex

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Settings of a walk over HNSW; the numbers are of docs/ARCHITECTURE.md.
const (
	// efSearch is how many candidates a walk keeps; pgvector's own 40 would end most
	// walks before 50 rows. At most 1,000.
	efSearch, maxEF = 100, 1000
	// maxScan is how many rows one walk visits before it gives up, where a filter
	// refuses most of them; those that it refuses nearly all of are scanned exactly.
	maxScan = 40_000
	// passagesPer is how many passages are asked for each node wanted, as a node has
	// several, and rounds how often the number is doubled where it was too few.
	passagesPer, rounds = 2, 3
)

// SearchDense implements index.Graph.
func (ix *Index) SearchDense(ctx context.Context, name string, vec []float32, f index.Filter, k int) (hits []index.Hit, err error) {
	defer fault.Wrap(&err, "pgindex.SearchDense(%s, %s)", f.Tenant, name)
	if k <= 0 || f.Tenant == "" || len(f.Projects) == 0 || !slices.ContainsFunc(vec, func(x float32) bool { return x != 0 }) {
		return nil, nil
	}
	tx, err := ix.pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, stored(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	s, err := findSpace(ctx, tx, f.Tenant, name)
	if err != nil || s.dims == 0 {
		return nil, stored(err)
	}
	if len(vec) != s.dims {
		return nil, fault.New(fault.Invalid, "a question of %d dimensions, the space has %d", len(vec), s.dims)
	}
	var walk bool
	if s.dims <= maxHalfvec {
		if walk, err = ix.large(ctx, tx, s, &f); err != nil {
			return nil, stored(err)
		}
	}
	q := &search{s: s, vec: s.value(index.Unit(vec)), f: &f, k: k, iterative: "relaxed_order"}
	if walk {
		hits, err = q.walk(ctx, tx)
	} else {
		hits, err = q.exact(ctx, tx)
	}
	return hits, stored(err)
}

// large reports whether the scope is over what is scanned exactly. It counts no
// further than that.
func (ix *Index) large(ctx context.Context, tx pgx.Tx, s space, f *index.Filter) (bool, error) {
	var n int64
	err := tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 FROM `+s.table()+` WHERE project = ANY($1) AND level = ANY($2) LIMIT $3) x`,
		f.Projects, levels(f), ix.exact+1).Scan(&n)
	return n > ix.exact, err
}

type search struct {
	s   space
	vec any
	f   *index.Filter
	k   int
	// iterative goes on with a walk until enough rows passed the filter.
	iterative string
	giveUp    bool // for tests: what a walk does not find is not looked for
}

// where is the filter over a row v of the space's table; its arguments follow $1, the
// question.
func (q *search) where() (string, []any) {
	sql, args := `v.project = ANY($2) AND v.level = ANY($3)`, []any{q.vec, q.f.Projects, levels(q.f)}
	if q.f.Timed() || len(q.f.Sources) > 0 {
		from, to := q.f.Range()
		sql += ` AND EXISTS (SELECT 1 FROM memory_occurrence o WHERE o.node = v.node AND o.at >= $4 AND o.at < $5`
		args = append(args, from, to)
		if len(q.f.Sources) > 0 {
			sql += ` AND EXISTS (SELECT 1 FROM unnest($6::text[]) s WHERE starts_with(o.span, s))`
			args = append(args, spansOf(q.f.Sources))
		}
		sql += `)`
	}
	return sql, args
}

// spansOf are what the stored spans of objects begin with: a span is JSON, and its first
// field is the object.
func spansOf(sources []string) (out []string) {
	for _, s := range sources {
		out = append(out, `{"object":`+strings.TrimSuffix(encode(s), `"`))
	}
	return out
}

// exact scans the scope. The + 0 keeps the planner off the index.
func (q *search) exact(ctx context.Context, tx pgx.Tx) ([]index.Hit, error) {
	where, args := q.where()
	args = append(args, q.k)
	rows, err := tx.Query(ctx, `SELECT passage, node, d FROM (
			SELECT DISTINCT ON (v.node) v.passage, v.node, (v.v <=> $1) + 0 AS d FROM `+q.s.table()+` v WHERE `+where+` ORDER BY v.node, d, v.passage) x
		ORDER BY d, node LIMIT $`+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, err
	}
	return collect(rows)
}

// walk asks HNSW for the nearest passages, and again for more where they are of too
// few nodes.
func (q *search) walk(ctx context.Context, tx pgx.Tx) ([]index.Hit, error) {
	limit := max(passagesPer*q.k, efSearch)
	_, err := tx.Exec(ctx, `SELECT set_config('hnsw.ef_search', $1, true), set_config('hnsw.iterative_scan', $3, true), set_config('hnsw.max_scan_tuples', $2, true),
		set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)`, strconv.Itoa(min(limit, maxEF)), strconv.Itoa(maxScan), q.iterative)
	if err != nil {
		return nil, err
	}
	where, args := q.where()
	for round := 1; ; round++ {
		rows, err := tx.Query(ctx, `WITH near AS MATERIALIZED (SELECT v.passage, v.node, v.v <=> $1 AS d FROM `+q.s.table()+` v WHERE `+where+`
				ORDER BY v.v <=> $1 LIMIT $`+strconv.Itoa(len(args)+1)+`)
			SELECT passage, node, d FROM near ORDER BY d, node, passage`, append(slices.Clone(args), limit)...)
		if err != nil {
			return nil, err
		}
		all, err := collect(rows)
		if err != nil {
			return nil, err
		}
		seen := map[memory.SHA]bool{}
		hits := slices.DeleteFunc(slices.Clone(all), func(h index.Hit) bool {
			again := seen[h.Node]
			seen[h.Node] = true
			return again
		})
		switch {
		case len(hits) >= q.k || q.giveUp:
			return hits[:min(q.k, len(hits))], nil
		case len(all) < limit || round == rounds:
			// The walk gave up: what is left is found by looking at each row of the scope.
			return q.exact(ctx, tx)
		}
		limit *= 4
	}
}

// collect reads passage, node and distance. The zero vector has no direction: it is
// near nothing.
func collect(rows pgx.Rows) ([]index.Hit, error) {
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (index.Hit, error) {
		var passage, node []byte
		var d float64
		if err := r.Scan(&passage, &node, &d); err != nil {
			return index.Hit{}, err
		}
		if d != d {
			d = 1
		}
		return index.Hit{Passage: sha(passage), Node: sha(node), Score: 1 - d}, nil
	})
}

func levels(f *index.Filter) (out []string) {
	for _, l := range f.Scope() {
		out = append(out, string(l))
	}
	return out
}

// Maintain makes the HNSW index of each space of the tenant that is large enough to be
// walked and has none, and makes anew one whose making was interrupted. It is called
// when rows came in: at the end of a rebuild, so that the index is built over what is
// there, which is several times faster than row by row. Meanwhile searches read on, and
// find the same more slowly.
func (ix *Index) Maintain(ctx context.Context, tenant string) (err error) {
	defer fault.Wrap(&err, "pgindex.Maintain(%s)", tenant)
	spaces, err := spacesOf(ctx, ix.pool, tenant)
	if err != nil {
		return stored(err)
	}
	for _, s := range spaces {
		if s.dims > maxHalfvec {
			continue
		}
		if err := ix.indexSpace(ctx, s); err != nil {
			return stored(err)
		}
	}
	return nil
}

func (ix *Index) indexSpace(ctx context.Context, s space) error {
	conn, err := ix.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	name := s.table() + "_hnsw"
	// One at a time; who comes second finds it made.
	var mine bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended($1, 2))`, ix.schema+"."+name).Scan(&mine); err != nil || !mine {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(hashtextextended($1, 2))`, ix.schema+"."+name)
	var many bool
	var valid *bool
	err = conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM (SELECT 1 FROM `+s.table()+` LIMIT $1) x) = $1,
		(SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass($2))`, ix.exact+1, pgx.Identifier{ix.schema, name}.Sanitize()).Scan(&many, &valid)
	if err != nil || !many || valid != nil && *valid {
		return err
	}
	if valid != nil { // a making that was interrupted leaves it invalid
		if _, err := conn.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+name); err != nil {
			return err
		}
	}
	if _, err = conn.Exec(ctx, `CREATE INDEX CONCURRENTLY `+name+` ON `+s.table()+` USING hnsw (v `+s.kind()+`_cosine_ops)`); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `ANALYZE `+s.table())
	return err
}
