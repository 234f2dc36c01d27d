package sqliteindex

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Hash implements index.Graph: rows stream by in order of their id.
func (ix *Index) Hash(ctx context.Context, tenant string) (sum memory.SHA, c index.Counts, err error) {
	defer fault.Wrap(&err, "sqliteindex.Hash(%s)", tenant)
	defer ix.using()()
	tx, err := ix.read.BeginTx(ctx, nil)
	if err != nil {
		return "", c, stored(err)
	}
	defer tx.Rollback()
	h := sha256.New()
	err = eachNode(ctx, tx, tenant, func(n *index.Node) error {
		index.AddRow(h, n)
		return nil
	})
	if err != nil {
		return "", c, err
	}
	const rowsOf = `(SELECT row FROM node WHERE tenant = ?1)`
	err = tx.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM node WHERE tenant = ?1),
		(SELECT count(*) FROM passage WHERE node IN `+rowsOf+`),
		(SELECT count(*) FROM occurrence WHERE node IN `+rowsOf+`),
		(SELECT count(*) FROM edge WHERE tenant = ?1),
		(SELECT count(*) FROM vector WHERE space IN (SELECT row FROM space WHERE tenant = ?1))`, tenant).
		Scan(&c.Nodes, &c.Passages, &c.Occurrences, &c.Edges, &c.Vectors)
	if err != nil {
		return "", c, stored(err)
	}
	return memory.SHA(hex.EncodeToString(h.Sum(nil))), c, nil
}

// eachNode gives what the hash covers of each node, in ascending order of id.
func eachNode(ctx context.Context, tx *sql.Tx, tenant string, fn func(*index.Node) error) error {
	return each(ctx, tx, `SELECT n.id, n.project, n.stream, n.level, n.text_sha,
			(SELECT group_concat(o.span, char(10)) FROM occurrence o WHERE o.node = n.row AND o.span <> ''),
			(SELECT group_concat(lower(hex(e.parent)), ' ') FROM edge e WHERE e.child = n.id AND e.kind = 0),
			(SELECT group_concat(lower(hex(e.parent)), ' ') FROM edge e WHERE e.child = n.id AND e.kind = 1),
			(SELECT group_concat(x.id, ' ') FROM (SELECT lower(hex(p.id)) AS id FROM passage p WHERE p.node = n.row ORDER BY p.n) x)
		FROM node n WHERE n.tenant = ? ORDER BY n.id`, []any{tenant}, func(rows *sql.Rows) error {
		n := index.Node{Tenant: tenant}
		var id, textSHA []byte
		var spans, parents, supersedes, passages sql.NullString
		if err := rows.Scan(&id, &n.Project, &n.Stream, &n.Level, &textSHA, &spans, &parents, &supersedes, &passages); err != nil {
			return err
		}
		n.ID, n.TextSHA = sha(id), sha(textSHA)
		n.Parents, n.Supersedes = shas(parents.String), shas(supersedes.String)
		for _, p := range shas(passages.String) {
			n.Passages = append(n.Passages, index.Passage{ID: p})
		}
		for line := range strings.Lines(spans.String) {
			var o index.Occurrence
			if err := json.Unmarshal([]byte(line), &o.Span); err != nil {
				return err
			}
			n.Occurrences = append(n.Occurrences, o)
		}
		return fn(&n)
	})
}

func shas(s string) []memory.SHA {
	var out []memory.SHA
	for f := range strings.FieldsSeq(s) {
		out = append(out, memory.SHA(f))
	}
	return out
}

// Check implements index.Graph.
func (ix *Index) Check(ctx context.Context, tenant string) (problems []string, err error) {
	defer fault.Wrap(&err, "sqliteindex.Check(%s)", tenant)
	defer ix.using()()
	tx, err := ix.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, stored(err)
	}
	defer tx.Rollback()
	// Each finds nodes or edges that break one rule. A space that is behind
	// another in a stream is being filled: its vectors are yet to come.
	rules := []struct{ query, format string }{
		{`SELECT lower(hex(e.child)), lower(hex(e.parent)) FROM edge e JOIN node c ON c.id = e.child
			WHERE e.tenant = ? AND e.kind = 0 AND NOT EXISTS (SELECT 1 FROM node p WHERE p.id = e.parent AND p.tenant = e.tenant)`,
			"node %s: parent %s is not in the index"},
		{`SELECT lower(hex(e.child)), lower(hex(e.parent)) FROM edge e
			WHERE e.tenant = ? AND NOT EXISTS (SELECT 1 FROM node c WHERE c.id = e.child AND c.tenant = e.tenant)`,
			"node %s is not in the index and has an edge to %s"},
		{`SELECT lower(hex(e.child)), lower(hex(e.parent)) FROM edge e JOIN node c ON c.id = e.child
			WHERE e.tenant = ? AND e.kind = 1 AND NOT EXISTS (SELECT 1 FROM node p WHERE p.id = e.parent AND p.tenant = e.tenant)`,
			"node %s replaces %s, which is not in the index"},
		{`SELECT lower(hex(n.id)), '' FROM node n WHERE n.tenant = ? AND n.level = 'L1' AND NOT EXISTS
			(SELECT 1 FROM edge e JOIN node p ON p.id = e.parent WHERE e.child = n.id AND e.kind = 0 AND p.level = 'L0')`,
			"memory %s has no evidence (L0) below it%s"},
		{`SELECT lower(hex(n.id)), '' FROM node n WHERE n.tenant = ? AND n.level = 'L2' AND NOT EXISTS
			(SELECT 1 FROM edge e JOIN node p ON p.id = e.parent WHERE e.child = n.id AND e.kind = 0 AND p.level = 'L1')`,
			"synthesis %s has no memory (L1) below it%s"},
		{`SELECT lower(hex(n.id)), n.level FROM node n WHERE n.tenant = ? AND n.level IN ('L0', 'raw') AND NOT EXISTS
			(SELECT 1 FROM occurrence o WHERE o.node = n.row AND o.span <> '')`,
			"node %s (%s) has no span"},
		{`SELECT lower(hex(p.id)), s.name FROM space s JOIN node n ON n.tenant = s.tenant AND n.level <> 'raw' JOIN passage p ON p.node = n.row
			JOIN applied a ON a.tenant = n.tenant AND a.project = n.project AND a.stream = n.stream AND a.space = s.name
			WHERE s.tenant = ? AND a.seq >= (SELECT max(b.seq) FROM applied b WHERE b.tenant = a.tenant AND b.project = a.project AND b.stream = a.stream)
			AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.space = s.row AND v.passage = p.row)
			AND NOT (n.level IN ('L1', 'L2') AND EXISTS (SELECT 1 FROM edge e WHERE e.parent = n.id AND e.kind = 1))`,
			"passage %s has no vector in space %s"},
	}
	for _, r := range rules {
		err := each(ctx, tx, r.query, []any{tenant}, func(rows *sql.Rows) error {
			var a, b string
			if err := rows.Scan(&a, &b); err != nil {
				return err
			}
			problems = append(problems, fmt.Sprintf(r.format, a, b))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	more, err := checkRows(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	problems = append(problems, more...)
	slices.Sort(problems)
	return problems, nil
}

// checkRows recomputes what is derived: text hash, node id, passage ids.
func checkRows(ctx context.Context, tx *sql.Tx, tenant string) (problems []string, err error) {
	err = each(ctx, tx, `SELECT n.id, n.project, n.stream, n.level, n.text, n.text_sha, n.role, n.source_time,
			(SELECT group_concat(x.id, ' ') FROM (SELECT lower(hex(p.id)) AS id FROM passage p WHERE p.node = n.row ORDER BY p.n) x)
		FROM node n WHERE n.tenant = ? ORDER BY n.id`, []any{tenant}, func(rows *sql.Rows) error {
		var n index.Node
		var id, textSHA []byte
		var source, passages sql.NullString
		if err := rows.Scan(&id, &n.Project, &n.Stream, &n.Level, &n.Text, &textSHA, &n.Role, &source, &passages); err != nil {
			return err
		}
		n.ID, n.TextSHA = sha(id), sha(textSHA)
		if t, err := time.Parse(time.RFC3339Nano, source.String); err == nil {
			n.SourceTime = &t
		}
		if memory.SumString(n.Text) != n.TextSHA {
			problems = append(problems, fmt.Sprintf("node %s: text does not match its hash", n.ID))
		}
		if memory.NodeID(tenant, n.Project, n.Level, n.Stream, n.TextSHA) != n.ID {
			problems = append(problems, fmt.Sprintf("node %s: id is not that of its content", n.ID))
		}
		var want []memory.SHA
		for _, p := range index.PassagesOf(&n) {
			want = append(want, p.ID)
		}
		if !slices.Equal(want, shas(passages.String)) {
			problems = append(problems, fmt.Sprintf("node %s: passages are not those of its text", n.ID))
		}
		return nil
	})
	return problems, err
}
