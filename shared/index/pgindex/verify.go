package pgindex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// snapshot runs fn over the tables as they are at one moment.
func (ix *Index) snapshot(ctx context.Context, fn func(tx pgx.Tx) error) error {
	tx, err := ix.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	return stored(fn(tx))
}

// Hash implements index.Graph: rows stream by in order of their id.
func (ix *Index) Hash(ctx context.Context, tenant string) (sum memory.SHA, c index.Counts, err error) {
	defer fault.Wrap(&err, "pgindex.Hash(%s)", tenant)
	h := sha256.New()
	err = ix.snapshot(ctx, func(tx pgx.Tx) error {
		err := eachNode(ctx, tx, tenant, func(n *index.Node) error {
			index.AddRow(h, n)
			return nil
		})
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM memory_node WHERE tenant = $1),
			(SELECT count(*) FROM memory_passage p JOIN memory_node n ON n.sha256 = p.node WHERE n.tenant = $1),
			(SELECT count(*) FROM memory_occurrence o JOIN memory_node n ON n.sha256 = o.node WHERE n.tenant = $1),
			(SELECT count(*) FROM memory_edge WHERE tenant = $1)`, tenant).Scan(&c.Nodes, &c.Passages, &c.Occurrences, &c.Edges)
		if err != nil {
			return err
		}
		spaces, err := spacesOf(ctx, tx, tenant)
		if err != nil {
			return err
		}
		for _, s := range spaces {
			var n int64
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM `+s.table()).Scan(&n); err != nil {
				return err
			}
			c.Vectors += n
		}
		return nil
	})
	if err != nil {
		return "", index.Counts{}, err
	}
	return memory.SHA(hex.EncodeToString(h.Sum(nil))), c, nil
}

// eachNode gives what the hash covers of each node, in ascending order of id.
func eachNode(ctx context.Context, tx pgx.Tx, tenant string, fn func(*index.Node) error) error {
	rows, err := tx.Query(ctx, `SELECT n.sha256, n.project, n.stream, n.level, n.text_sha256,
			(SELECT array_agg(o.span) FROM memory_occurrence o WHERE o.node = n.sha256 AND o.span <> ''),
			(SELECT array_agg(e.parent_sha) FROM memory_edge e WHERE e.child_sha = n.sha256 AND e.kind = 0),
			(SELECT array_agg(e.parent_sha) FROM memory_edge e WHERE e.child_sha = n.sha256 AND e.kind = 1),
			(SELECT array_agg(p.sha256 ORDER BY p.n) FROM memory_passage p WHERE p.node = n.sha256)
		FROM memory_node n WHERE n.tenant = $1 ORDER BY n.sha256`, tenant)
	if err != nil {
		return err
	}
	var id, textSHA []byte
	var spans []string
	var parents, replaced, passages [][]byte
	n := index.Node{Tenant: tenant}
	_, err = pgx.ForEachRow(rows, []any{&id, &n.Project, &n.Stream, &n.Level, &textSHA, &spans, &parents, &replaced, &passages}, func() error {
		n.ID, n.TextSHA, n.Parents, n.Supersedes = sha(id), sha(textSHA), shas(parents), shas(replaced)
		n.Passages, n.Occurrences = n.Passages[:0], n.Occurrences[:0]
		for _, p := range passages {
			n.Passages = append(n.Passages, index.Passage{ID: sha(p)})
		}
		for _, s := range spans {
			var o index.Occurrence
			if err := json.Unmarshal([]byte(s), &o.Span); err != nil {
				return err
			}
			n.Occurrences = append(n.Occurrences, o)
		}
		return fn(&n)
	})
	return err
}

// rules find what breaks one rule each.
var rules = []struct{ query, format string }{
	{`SELECT encode(e.child_sha, 'hex'), encode(e.parent_sha, 'hex') FROM memory_edge e JOIN memory_node c ON c.sha256 = e.child_sha
		WHERE e.tenant = $1 AND e.kind = 0 AND NOT EXISTS (SELECT 1 FROM memory_node p WHERE p.sha256 = e.parent_sha AND p.tenant = e.tenant)`,
		"node %s: parent %s is not in the index"},
	{`SELECT encode(e.child_sha, 'hex'), encode(e.parent_sha, 'hex') FROM memory_edge e
		WHERE e.tenant = $1 AND NOT EXISTS (SELECT 1 FROM memory_node c WHERE c.sha256 = e.child_sha AND c.tenant = e.tenant)`,
		"node %s is not in the index and has an edge to %s"},
	{`SELECT encode(e.child_sha, 'hex'), encode(e.parent_sha, 'hex') FROM memory_edge e JOIN memory_node c ON c.sha256 = e.child_sha
		WHERE e.tenant = $1 AND e.kind = 1 AND NOT EXISTS (SELECT 1 FROM memory_node p WHERE p.sha256 = e.parent_sha AND p.tenant = e.tenant)`,
		"node %s replaces %s, which is not in the index"},
	{`SELECT encode(n.sha256, 'hex'), '' FROM memory_node n WHERE n.tenant = $1 AND n.level = 'L1' AND NOT EXISTS
		(SELECT 1 FROM memory_edge e JOIN memory_node p ON p.sha256 = e.parent_sha WHERE e.child_sha = n.sha256 AND e.kind = 0 AND p.level = 'L0')`,
		"memory %s has no evidence (L0) below it%s"},
	{`SELECT encode(n.sha256, 'hex'), '' FROM memory_node n WHERE n.tenant = $1 AND n.level = 'L2' AND NOT EXISTS
		(SELECT 1 FROM memory_edge e JOIN memory_node p ON p.sha256 = e.parent_sha WHERE e.child_sha = n.sha256 AND e.kind = 0 AND p.level = 'L1')`,
		"synthesis %s has no memory (L1) below it%s"},
	{`SELECT encode(n.sha256, 'hex'), n.level FROM memory_node n WHERE n.tenant = $1 AND n.level IN ('L0', 'raw') AND NOT EXISTS
		(SELECT 1 FROM memory_occurrence o WHERE o.node = n.sha256 AND o.span <> '')`,
		"node %s (%s) has no span"},
}

// unfilled finds passages without a vector in a space that has caught up with the
// others in their stream: one that is behind is being filled.
const unfilled = `SELECT encode(p.sha256, 'hex'), s.name FROM memory_space s JOIN memory_node n ON n.tenant = s.tenant AND n.level <> 'raw' JOIN memory_passage p ON p.node = n.sha256
	JOIN applied_seq a ON a.tenant = n.tenant AND a.project = n.project AND a.stream = n.stream AND a.space = s.name
	WHERE s.tenant = $1 AND s.id = $2 AND a.seq >= (SELECT max(b.seq) FROM applied_seq b WHERE b.tenant = a.tenant AND b.project = a.project AND b.stream = a.stream)
	AND NOT EXISTS (SELECT 1 FROM %s v WHERE v.passage = p.sha256)
	AND NOT (n.level IN ('L1', 'L2') AND EXISTS (SELECT 1 FROM memory_edge e WHERE e.parent_sha = n.sha256 AND e.kind = 1))`

// Check implements index.Graph.
func (ix *Index) Check(ctx context.Context, tenant string) (problems []string, err error) {
	defer fault.Wrap(&err, "pgindex.Check(%s)", tenant)
	err = ix.snapshot(ctx, func(tx pgx.Tx) error {
		find := func(format, query string, args ...any) error {
			rows, err := tx.Query(ctx, query, args...)
			if err != nil {
				return err
			}
			var a, b string
			_, err = pgx.ForEachRow(rows, []any{&a, &b}, func() error {
				problems = append(problems, fmt.Sprintf(format, a, b))
				return nil
			})
			return err
		}
		for _, r := range rules {
			if err := find(r.format, r.query, tenant); err != nil {
				return err
			}
		}
		spaces, err := spacesOf(ctx, tx, tenant)
		if err != nil {
			return err
		}
		for _, s := range spaces {
			if err := find("passage %s has no vector in space %s", fmt.Sprintf(unfilled, s.table()), tenant, s.id); err != nil {
				return err
			}
		}
		more, err := checkRows(ctx, tx, tenant)
		problems = append(problems, more...)
		return err
	})
	slices.Sort(problems)
	return problems, err
}

// checkRows computes anew what is derived: text hash, node id, passage ids.
func checkRows(ctx context.Context, tx pgx.Tx, tenant string) (problems []string, err error) {
	rows, err := tx.Query(ctx, `SELECT n.sha256, n.project, n.stream, n.level, n.text, n.text_raw, n.text_sha256, n.role, n.source_time,
			(SELECT array_agg(p.sha256 ORDER BY p.n) FROM memory_passage p WHERE p.node = n.sha256)
		FROM memory_node n WHERE n.tenant = $1 ORDER BY n.sha256`, tenant)
	if err != nil {
		return nil, err
	}
	var n index.Node
	var id, raw, textSHA []byte
	var source *string
	var passages [][]byte
	_, err = pgx.ForEachRow(rows, []any{&id, &n.Project, &n.Stream, &n.Level, &n.Text, &raw, &textSHA, &n.Role, &source, &passages}, func() error {
		n.ID, n.TextSHA, n.SourceTime = sha(id), sha(textSHA), nil
		if raw != nil {
			n.Text = string(raw)
		}
		if source != nil {
			if t, err := time.Parse(time.RFC3339Nano, *source); err == nil {
				n.SourceTime = &t
			}
		}
		if memory.SumString(n.Text) != n.TextSHA {
			problems = append(problems, fmt.Sprintf("node %s: text does not match its hash", n.ID))
		}
		if memory.NodeID(tenant, n.Project, n.Level, n.Stream, n.TextSHA) != n.ID {
			problems = append(problems, fmt.Sprintf("node %s: id is not that of its content", n.ID))
		}
		var want []string
		for _, p := range index.PassagesOf(&n) {
			want = append(want, string(p.ID))
		}
		var have []string
		for _, p := range shas(passages) {
			have = append(have, string(p))
		}
		if strings.Join(want, " ") != strings.Join(have, " ") {
			problems = append(problems, fmt.Sprintf("node %s: passages are not those of its text", n.ID))
		}
		return nil
	})
	return problems, err
}
