package pgindex

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	edgeParent     = 0
	edgeSupersedes = 1
)

// Bounds of pgvector's HNSW index.
const (
	maxVector  = 2000 // dimensions of a vector
	maxHalfvec = 4000 // and of a halfvec
)

// Apply implements index.Graph. A batch is some statements, whatever its size: each
// brings the rows of a table as arrays.
func (ix *Index) Apply(ctx context.Context, b index.Batch) (err error) {
	defer fault.Wrap(&err, "pgindex.Apply(%s/%s/%s, %d)", b.Tenant, b.Project, b.Stream, b.Seq)
	tx, err := ix.pool.Begin(ctx)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	var seq int64
	err = tx.QueryRow(ctx, `WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0)),
			pg_advisory_xact_lock(hashtextextended($1 || '/' || $2 || '/' || $3, 1)))
		SELECT count(*) FROM l`, b.Tenant, b.Project, b.Stream).Scan(&seq)
	if err != nil {
		return stored(err)
	}
	// After the lock: the statement's own snapshot would be older.
	if seq, err = applied(ctx, tx, b.Tenant, b.Project, b.Stream, b.Space); err != nil {
		return stored(err)
	}
	if b.Seq >= 1 && b.Seq <= seq {
		return nil
	}
	s, err := ix.spaceOf(ctx, tx, &b)
	if err != nil {
		return stored(err)
	}
	if err := index.Validate(&b, s.dims); err != nil {
		return err
	}
	if b.Seq != seq+1 {
		return fault.New(fault.Unavailable, "seq %d is not next: %d is applied", b.Seq, seq)
	}
	if b.Replace {
		if err := replace(ctx, tx, &b); err != nil {
			return stored(err)
		}
	}
	if err := write(ctx, tx, &b, s); err != nil {
		return stored(err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO applied_seq VALUES ($1,$2,$3,$4,$5) ON CONFLICT (tenant, project, stream, space) DO UPDATE SET seq = excluded.seq`,
		b.Tenant, b.Project, b.Stream, b.Space, b.Seq)
	if err != nil {
		return stored(err)
	}
	return stored(tx.Commit(ctx))
}

// Applied implements index.Graph.
func (ix *Index) Applied(ctx context.Context, tenant, project, stream, space string) (seq int64, err error) {
	defer fault.Wrap(&err, "pgindex.Applied(%s/%s/%s)", tenant, project, stream)
	seq, err = applied(ctx, ix.pool, tenant, project, stream, space)
	return seq, stored(err)
}

type queryer interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

func applied(ctx context.Context, q queryer, tenant, project, stream, space string) (seq int64, err error) {
	err = q.QueryRow(ctx, `SELECT seq FROM applied_seq WHERE tenant = $1 AND project = $2 AND stream = $3 AND space = $4`,
		tenant, project, stream, space).Scan(&seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}

// space is a row of memory_space; the zero value is no space.
type space struct{ id, dims int }

func (s space) table() string { return "memory_vector_" + strconv.Itoa(s.id) }

// kind is the type of the table's vectors.
func (s space) kind() string {
	if s.dims > maxVector {
		return "halfvec"
	}
	return "vector"
}

// value is a vector as the table's column takes it.
func (s space) value(v []float32) any {
	if s.dims > maxVector {
		return pgvector.NewHalfVector(v)
	}
	return pgvector.NewVector(v)
}

func findSpace(ctx context.Context, q queryer, tenant, name string) (s space, err error) {
	err = q.QueryRow(ctx, `SELECT id, dims FROM memory_space WHERE tenant = $1 AND name = $2`, tenant, name).Scan(&s.id, &s.dims)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil
	}
	return s, err
}

// spaceOf finds the batch's space, and creates it with its first vector.
func (ix *Index) spaceOf(ctx context.Context, tx pgx.Tx, b *index.Batch) (s space, err error) {
	if b.Space == "" {
		return s, nil
	}
	if s, err = findSpace(ctx, tx, b.Tenant, b.Space); err != nil || s.dims != 0 {
		return s, err
	}
	dims := 0
	for _, v := range b.Vectors {
		dims = len(v)
		break
	}
	if dims == 0 {
		return s, nil
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrations)); err != nil {
		return s, err
	}
	if s, err = findSpace(ctx, tx, b.Tenant, b.Space); err != nil || s.dims != 0 {
		return s, err // another one was first
	}
	s.dims = dims
	if err = tx.QueryRow(ctx, `INSERT INTO memory_space (tenant, name, dims) VALUES ($1,$2,$3) RETURNING id`, b.Tenant, b.Space, dims).Scan(&s.id); err != nil {
		return s, err
	}
	// PLAIN: a vector that is moved out of the row costs a read of its own at each step
	// of a walk.
	_, err = tx.Exec(ctx, `CREATE TABLE `+s.table()+` (passage bytea PRIMARY KEY, node bytea NOT NULL, project text NOT NULL, level text NOT NULL, v `+s.kind()+`(`+strconv.Itoa(dims)+`) NOT NULL);
		CREATE INDEX ON `+s.table()+` (node);
		CREATE INDEX ON `+s.table()+` (project, level)`)
	return s, err
}

// replace takes the stream's nodes out before those of the batch come in; see
// index.Batch. The batch keeps no node where another space is past it.
func replace(ctx context.Context, tx pgx.Tx, b *index.Batch) error {
	var ahead int64
	err := tx.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM applied_seq WHERE tenant = $1 AND project = $2 AND stream = $3 AND space <> $4`,
		b.Tenant, b.Project, b.Stream, b.Space).Scan(&ahead)
	switch {
	case err != nil || ahead == b.Seq:
		return err // the rows that stand are these
	case ahead > b.Seq:
		b.Nodes = nil
		return nil
	}
	return remove(ctx, tx, b.Tenant, `tenant = $1 AND project = $2 AND stream = $3 AND level = 'L2'`, b.Tenant, b.Project, b.Stream)
}

// remove deletes nodes with all that hangs on them.
func remove(ctx context.Context, tx pgx.Tx, tenant, where string, args ...any) error {
	nodes := `SELECT sha256 FROM memory_node WHERE ` + where
	spaces, err := spacesOf(ctx, tx, tenant)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	for _, s := range spaces {
		batch.Queue(`DELETE FROM `+s.table()+` WHERE node IN (`+nodes+`)`, args...)
	}
	batch.Queue(`DELETE FROM memory_passage WHERE node IN (`+nodes+`)`, args...)
	batch.Queue(`DELETE FROM memory_occurrence WHERE node IN (`+nodes+`)`, args...)
	batch.Queue(`DELETE FROM memory_edge WHERE child_sha IN (`+nodes+`)`, args...)
	batch.Queue(`DELETE FROM memory_node WHERE `+where, args...)
	return tx.SendBatch(ctx, &batch).Close()
}

func spacesOf(ctx context.Context, q queryer, tenant string) ([]space, error) {
	rows, err := q.Query(ctx, `SELECT id, dims FROM memory_space WHERE tenant = $1 ORDER BY id`, tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (s space, err error) { return s, r.Scan(&s.id, &s.dims) })
}

// write brings the batch's rows in, one statement a table and one round trip for all.
func write(ctx context.Context, tx pgx.Tx, b *index.Batch, s space) error {
	nodes := index.Distinct(b.Nodes)
	if len(nodes) == 0 {
		return nil
	}
	var n nodeColumns
	var p passageColumns
	var o occurrenceColumns
	var e edgeColumns
	for i := range nodes {
		n.add(&nodes[i])
		p.add(&nodes[i])
		o.add(&nodes[i])
		e.add(&nodes[i])
	}
	var batch pgx.Batch
	// A node that stands keeps its first occurrence, and the passages of that one.
	batch.Queue(`WITH fresh AS (INSERT INTO memory_node (sha256, tenant, project, level, stream, query_id, t, role, trust, source, text, text_raw, text_sha256, place, source_time, created_at)
			SELECT u.sha256, $1, $2, u.level, $3, u.query_id, u.t, u.role, u.trust, u.source, u.text, u.text_raw, u.text_sha256, u.place, u.source_time, u.source_time::timestamptz
			FROM unnest($4::bytea[], $5::text[], $6::text[], $7::int[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bytea[], $13::bytea[], $14::text[], $15::text[])
				AS u(sha256, level, query_id, t, role, trust, source, text, text_raw, text_sha256, place, source_time)
			ON CONFLICT (sha256) DO NOTHING RETURNING sha256)
		INSERT INTO memory_passage (sha256, node, n, start, stop)
			SELECT u.sha256, u.node, u.n, u.start, u.stop FROM unnest($16::bytea[], $17::bytea[], $18::int[], $19::int[], $20::int[]) AS u(sha256, node, n, start, stop)
			JOIN fresh ON fresh.sha256 = u.node ON CONFLICT DO NOTHING`,
		b.Tenant, b.Project, b.Stream, n.sha, n.level, n.query, n.t, n.role, n.trust, n.source, n.text, n.raw, n.textSHA, n.place, n.time,
		p.sha, p.node, p.n, p.start, p.stop)
	batch.Queue(`INSERT INTO memory_occurrence (node, t, span_sha, span, place, at, quote, quote_raw, role, turn_id)
		SELECT * FROM unnest($1::bytea[], $2::int[], $3::bytea[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bytea[], $9::text[], $10::text[]) ON CONFLICT DO NOTHING`,
		o.node, o.t, o.spanSHA, o.span, o.place, o.at, o.quote, o.raw, o.role, o.turn)
	if len(e.child) > 0 {
		batch.Queue(`INSERT INTO memory_edge (child_sha, kind, parent_sha, tenant, project)
			SELECT u.child, u.kind, u.parent, $1, $2 FROM unnest($3::bytea[], $4::smallint[], $5::bytea[]) AS u(child, kind, parent) ON CONFLICT DO NOTHING`,
			b.Tenant, b.Project, e.child, e.kind, e.parent)
	}
	if s.id != 0 {
		queueVectors(&batch, b, nodes, s)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// queueVectors adds the vectors of what is current after the batch, and takes those of
// replaced memories out (index.Succession).
func queueVectors(batch *pgx.Batch, b *index.Batch, nodes []index.Node, s space) {
	current := index.Succession(b.Nodes)
	var gone [][]byte
	for id, is := range current {
		if !is {
			gone = append(gone, bytesOf(id))
		}
	}
	if len(gone) > 0 {
		slices.SortFunc(gone, slices.Compare)
		batch.Queue(`DELETE FROM `+s.table()+` WHERE node = ANY($1::bytea[]) AND level IN ('L1', 'L2')`, gone)
	}
	var passage, node [][]byte
	var vectors []pgvector.Vector
	var halves []pgvector.HalfVector
	for i := range nodes {
		if is, ok := current[nodes[i].ID]; ok && !is {
			continue
		}
		for _, p := range nodes[i].Passages {
			v, ok := b.Vectors[p.ID]
			if !ok {
				continue
			}
			passage, node = append(passage, bytesOf(p.ID)), append(node, bytesOf(nodes[i].ID))
			switch v := s.value(index.Unit(v)).(type) {
			case pgvector.Vector:
				vectors = append(vectors, v)
			case pgvector.HalfVector:
				halves = append(halves, v)
			}
		}
	}
	if len(passage) == 0 {
		return
	}
	var values any = vectors
	if halves != nil {
		values = halves
	}
	batch.Queue(`INSERT INTO `+s.table()+` (passage, node, project, level, v)
		SELECT p.sha256, p.node, n.project, n.level, u.v FROM unnest($1::bytea[], $2::bytea[], $3::`+s.kind()+`[]) AS u(passage, node, v)
		JOIN memory_passage p ON p.sha256 = u.passage AND p.node = u.node JOIN memory_node n ON n.sha256 = p.node ON CONFLICT DO NOTHING`,
		passage, node, values)
}

// The columns of a table, a row an index.
type nodeColumns struct {
	sha, raw, textSHA                              [][]byte
	level, query, role, trust, source, text, place []string
	t                                              []int
	time                                           []*string
}

func (c *nodeColumns) add(n *index.Node) {
	text, raw := plain(n.Text)
	source, _ := plain(n.Occurrences[0].Span.Object)
	var at *string
	if n.SourceTime != nil {
		s := n.SourceTime.UTC().Format(time.RFC3339Nano)
		at = &s
	}
	c.sha, c.raw, c.textSHA = append(c.sha, bytesOf(n.ID)), append(c.raw, raw), append(c.textSHA, bytesOf(n.TextSHA))
	c.level, c.query, c.role = append(c.level, string(n.Level)), append(c.query, n.QueryID), append(c.role, string(n.Role))
	c.trust, c.source, c.text = append(c.trust, string(n.Trust)), append(c.source, source), append(c.text, text)
	c.place, c.t, c.time = append(c.place, encode(n.Place)), append(c.t, n.T), append(c.time, at)
}

type passageColumns struct {
	sha, node      [][]byte
	n, start, stop []int
}

func (c *passageColumns) add(n *index.Node) {
	for _, p := range n.Passages {
		c.sha, c.node = append(c.sha, bytesOf(p.ID)), append(c.node, bytesOf(n.ID))
		c.n, c.start, c.stop = append(c.n, p.N), append(c.start, p.Start), append(c.stop, p.End)
	}
}

type occurrenceColumns struct {
	node, spanSHA, raw             [][]byte
	t                              []int
	at                             []int64
	span, place, quote, role, turn []string
}

func (c *occurrenceColumns) add(n *index.Node) {
	for _, o := range n.Occurrences {
		span := ""
		if o.Span.Object != "" {
			span = encode(o.Span)
		}
		quote, raw := plain(o.Quote)
		c.node, c.spanSHA, c.raw = append(c.node, bytesOf(n.ID)), append(c.spanSHA, bytesOf(memory.SumString(span))), append(c.raw, raw)
		c.t, c.at = append(c.t, o.T), append(c.at, index.Nano(o.Place.Time))
		c.span, c.place, c.quote = append(c.span, span), append(c.place, encode(o.Place)), append(c.quote, quote)
		c.role, c.turn = append(c.role, string(o.Role)), append(c.turn, encode(o.TurnID))
	}
}

type edgeColumns struct {
	child, parent [][]byte
	kind          []int16
}

func (c *edgeColumns) add(n *index.Node) {
	one := func(child memory.SHA, kind int16, parent memory.SHA) {
		c.child, c.kind, c.parent = append(c.child, bytesOf(child)), append(c.kind, kind), append(c.parent, bytesOf(parent))
	}
	for _, p := range n.Parents {
		one(n.ID, edgeParent, p)
	}
	for _, p := range n.Supersedes {
		one(n.ID, edgeSupersedes, p)
	}
	for _, p := range n.SupersededBy {
		one(p, edgeSupersedes, n.ID)
	}
}

// Wipe implements index.Graph.
func (ix *Index) Wipe(ctx context.Context, tenant, project string) (err error) {
	defer fault.Wrap(&err, "pgindex.Wipe(%s/%s)", tenant, project)
	if tenant == "" {
		return fault.New(fault.Invalid, "a tenant is needed")
	}
	if err := migrate(ctx, ix.conn, ix.schema); err != nil { // the schema may have been dropped
		return stored(err)
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
	where := `tenant = $1 AND ($2 = '' OR project = $2)`
	if err := remove(ctx, tx, tenant, where, tenant, project); err != nil {
		return stored(err)
	}
	for _, table := range []string{"memory_edge", "applied_seq"} {
		if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE `+where, tenant, project); err != nil {
			return stored(err)
		}
	}
	if err := dropEmpty(ctx, tx, tenant); err != nil {
		return stored(err)
	}
	return stored(tx.Commit(ctx))
}

// dropEmpty drops the tenant's spaces that hold no vector any more.
func dropEmpty(ctx context.Context, tx pgx.Tx, tenant string) error {
	spaces, err := spacesOf(ctx, tx, tenant)
	if err != nil {
		return err
	}
	for _, s := range spaces {
		var some bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+s.table()+`)`).Scan(&some); err != nil {
			return err
		}
		if some {
			continue
		}
		if _, err := tx.Exec(ctx, `DROP TABLE `+s.table()); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM memory_space WHERE id = $1`, s.id); err != nil {
			return err
		}
	}
	return nil
}

// plain is s as PostgreSQL can hold it, and s itself where that is not the same.
func plain(s string) (string, []byte) {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s, nil
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD"), []byte(s)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("pgindex: encode: " + err.Error()) // plain values always encode
	}
	return string(b)
}

func bytesOf(s memory.SHA) []byte {
	b, _ := hex.DecodeString(string(s)) // ids are validated before they come here
	return b
}

func sha(b []byte) memory.SHA { return memory.SHA(hex.EncodeToString(b)) }
