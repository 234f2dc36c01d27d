package sqliteindex

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	edgeParent     = 0
	edgeSupersedes = 1
)

// Apply implements index.Graph.
func (ix *Index) Apply(ctx context.Context, b index.Batch) (err error) {
	defer fault.Wrap(&err, "sqliteindex.Apply(%s/%s/%s, %d)", b.Tenant, b.Project, b.Stream, b.Seq)
	defer ix.using()()
	ix.apply.Lock()
	defer ix.apply.Unlock()
	tx, err := ix.write.BeginTx(ctx, nil)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback()

	seq, err := applied(ctx, tx, b.Tenant, b.Project, b.Stream, b.Space)
	if err != nil {
		return stored(err)
	}
	if b.Seq >= 1 && b.Seq <= seq {
		return nil
	}
	sp, err := spaceOf(ctx, tx, &b)
	if err != nil {
		return err
	}
	if err := index.Validate(&b, sp.dims); err != nil {
		return err
	}
	if b.Seq != seq+1 {
		return fault.New(fault.Unavailable, "seq %d is not next: %d is applied", b.Seq, seq)
	}
	w := &writer{ctx: ctx, tx: tx, b: &b, space: sp}
	if b.Replace {
		w.replace()
	}
	for i := range b.Nodes {
		if err := w.node(index.Normal(b.Nodes[i])); err != nil {
			return err
		}
	}
	w.exec(`INSERT INTO applied VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE SET seq = excluded.seq`,
		b.Tenant, b.Project, b.Stream, b.Space, b.Seq)
	if w.err != nil {
		return stored(w.err)
	}
	err = tx.Commit()
	ix.cache.changed() // after an error too: it may have been committed
	if err != nil {
		return stored(err)
	}
	ix.loaded(b.Tenant, b.Space, w)
	return nil
}

// Applied implements index.Graph.
func (ix *Index) Applied(ctx context.Context, tenant, project, stream, space string) (seq int64, err error) {
	defer fault.Wrap(&err, "sqliteindex.Applied(%s/%s/%s)", tenant, project, stream)
	defer ix.using()()
	seq, err = applied(ctx, ix.read, tenant, project, stream, space)
	return seq, stored(err)
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func applied(ctx context.Context, q queryer, tenant, project, stream, space string) (int64, error) {
	var seq int64
	err := q.QueryRowContext(ctx, `SELECT seq FROM applied WHERE tenant = ? AND project = ? AND stream = ? AND space = ?`,
		tenant, project, stream, space).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}

type spaceRow struct {
	row  int64
	dims int
}

// spaceOf finds the batch's space, and creates it with its first vector.
func spaceOf(ctx context.Context, tx *sql.Tx, b *index.Batch) (spaceRow, error) {
	var s spaceRow
	if b.Space == "" {
		return s, nil
	}
	err := tx.QueryRowContext(ctx, `SELECT row, dims FROM space WHERE tenant = ? AND name = ?`, b.Tenant, b.Space).Scan(&s.row, &s.dims)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return s, stored(err)
	}
	for _, v := range b.Vectors {
		s.dims = len(v)
		break
	}
	if s.dims == 0 {
		return s, nil
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO space (tenant, name, dims) VALUES (?,?,?) RETURNING row`, b.Tenant, b.Space, s.dims).Scan(&s.row)
	return s, stored(err)
}

// writer writes one batch and gathers what the dense leg in memory must learn.
// The first error sticks.
type writer struct {
	ctx   context.Context
	tx    *sql.Tx
	b     *index.Batch
	space spaceRow
	stmts map[string]*sql.Stmt
	err   error

	rows    []denseRow
	stated  []denseStated
	retired []int64 // node.row of memories that the batch replaces
	removed []int64 // node.row of nodes that are gone: the numbers may be used again
}

// replace takes the stream's nodes out before those of the batch come in; see
// index.Batch. The batch keeps no node where another space is past it.
func (w *writer) replace() {
	b := w.b
	ahead := w.row(`SELECT coalesce(max(seq), 0) FROM applied WHERE tenant = ? AND project = ? AND stream = ? AND space <> ?`, b.Tenant, b.Project, b.Stream, b.Space)
	switch {
	case w.err != nil || ahead == b.Seq:
		return // the rows that stand are these
	case ahead > b.Seq:
		b.Nodes = nil
		return
	}
	rows, err := w.tx.QueryContext(w.ctx, `SELECT row FROM node WHERE tenant = ? AND project = ? AND level = 'L2' AND stream = ?`, b.Tenant, b.Project, b.Stream)
	if err != nil {
		w.err = err
		return
	}
	defer rows.Close()
	for rows.Next() {
		var row int64
		if w.err = rows.Scan(&row); w.err != nil {
			return
		}
		w.removed = append(w.removed, row)
	}
	if w.err = rows.Err(); w.err != nil {
		return
	}
	rows.Close()
	for _, row := range w.removed {
		w.exec(`DELETE FROM vector WHERE passage IN (SELECT row FROM passage WHERE node = ?)`, row)
		w.exec(`DELETE FROM passage WHERE node = ?`, row)
		w.exec(`DELETE FROM occurrence WHERE node = ?`, row)
		w.exec(`DELETE FROM edge WHERE child = (SELECT id FROM node WHERE row = ?)`, row)
		w.exec(`DELETE FROM node WHERE row = ?`, row)
	}
}

func (w *writer) stmt(query string) *sql.Stmt {
	if s := w.stmts[query]; s != nil {
		return s
	}
	s, err := w.tx.PrepareContext(w.ctx, query) // closed with the transaction
	if err != nil {
		w.err = err
		return nil
	}
	if w.stmts == nil {
		w.stmts = map[string]*sql.Stmt{}
	}
	w.stmts[query] = s
	return s
}

func (w *writer) exec(query string, args ...any) {
	if w.err != nil {
		return
	}
	if s := w.stmt(query); s != nil {
		_, w.err = s.ExecContext(w.ctx, args...)
	}
}

// row runs a query of one integer; 0 when there is none.
func (w *writer) row(query string, args ...any) int64 {
	var id int64
	if w.err != nil {
		return 0
	}
	if s := w.stmt(query); s != nil {
		if err := s.QueryRowContext(w.ctx, args...).Scan(&id); err != nil && !errors.Is(err, sql.ErrNoRows) {
			w.err = err
		}
	}
	return id
}

func (w *writer) node(n index.Node) error {
	id := blob(n.ID)
	row := w.row(`SELECT row FROM node WHERE id = ?`, id)
	if row == 0 && w.err == nil {
		var source any
		if n.SourceTime != nil {
			source = n.SourceTime.UTC().Format(time.RFC3339Nano)
		}
		row = w.row(`INSERT INTO node (id, tenant, project, stream, level, query_id, text, text_sha, t, role, trust, place, source_time)
			VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) RETURNING row`,
			id, n.Tenant, n.Project, n.Stream, string(n.Level), n.QueryID, n.Text, blob(n.TextSHA),
			n.T, string(n.Role), string(n.Trust), encode(n.Place), source)
		for _, p := range n.Passages {
			w.exec(`INSERT INTO passage (id, node, n, start, stop) VALUES (?,?,?,?,?)`, blob(p.ID), row, p.N, p.Start, p.End)
		}
	}
	for _, o := range n.Occurrences {
		span := ""
		if o.Span.Object != "" {
			span = encode(o.Span)
		}
		at := index.Nano(o.Place.Time)
		w.exec(`INSERT INTO occurrence (node, t, span, place, at, quote, role, turn_id) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`,
			row, o.T, span, encode(o.Place), at, o.Quote, string(o.Role), o.TurnID)
		w.stated = append(w.stated, denseStated{row, stated{at, o.Span.Object}})
	}
	for _, p := range n.Parents {
		w.edge(n.ID, edgeParent, p)
	}
	for _, p := range n.Supersedes {
		w.edge(n.ID, edgeSupersedes, p)
		if n.Level == memory.L1 || n.Level == memory.L2 {
			w.retire(p)
		}
	}
	for _, p := range n.SupersededBy {
		w.edge(p, edgeSupersedes, n.ID)
	}
	for _, p := range n.Passages {
		v, ok := w.b.Vectors[p.ID]
		if !ok || w.err != nil {
			continue
		}
		prow := w.row(`SELECT row FROM passage WHERE id = ? AND node = ?`, blob(p.ID), row)
		if prow == 0 || w.row(`SELECT 1 FROM vector WHERE space = ? AND passage = ?`, w.space.row, prow) != 0 {
			continue
		}
		unit := index.Unit(v)
		w.exec(`INSERT INTO vector (space, passage, v) VALUES (?,?,?)`, w.space.row, prow, packVector(unit))
		w.rows = append(w.rows, denseRow{
			passage: array(p.ID), node: array(n.ID), nodeRow: row,
			project: n.Project, level: n.Level, v: unit,
		})
	}
	return stored(w.err)
}

// retire takes a replaced memory out of the dense leg (index.Succession).
func (w *writer) retire(id memory.SHA) {
	row := w.row(`SELECT row FROM node WHERE id = ? AND level IN ('L1', 'L2')`, blob(id))
	if row == 0 {
		return
	}
	w.exec(`DELETE FROM vector WHERE space = ? AND passage IN (SELECT row FROM passage WHERE node = ?)`, w.space.row, row)
	w.rows = slices.DeleteFunc(w.rows, func(r denseRow) bool { return r.nodeRow == row })
	w.retired = append(w.retired, row)
}

func (w *writer) edge(child memory.SHA, kind int, parent memory.SHA) {
	w.exec(`INSERT INTO edge (child, kind, parent, tenant, project) VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING`,
		blob(child), kind, blob(parent), w.b.Tenant, w.b.Project)
}

// Wipe implements index.Graph.
func (ix *Index) Wipe(ctx context.Context, tenant, project string) (err error) {
	defer fault.Wrap(&err, "sqliteindex.Wipe(%s/%s)", tenant, project)
	if tenant == "" {
		return fault.New(fault.Invalid, "a tenant is needed")
	}
	defer ix.using()()
	ix.apply.Lock()
	defer ix.apply.Unlock()
	tx, err := ix.write.BeginTx(ctx, nil)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback()
	const scope = `tenant = ?1 AND (?2 = '' OR project = ?2)`
	const nodes = `SELECT row FROM node WHERE ` + scope
	for _, q := range []string{
		`DELETE FROM vector WHERE passage IN (SELECT row FROM passage WHERE node IN (` + nodes + `))`,
		`DELETE FROM passage WHERE node IN (` + nodes + `)`,
		`DELETE FROM occurrence WHERE node IN (` + nodes + `)`,
		`DELETE FROM edge WHERE ` + scope,
		`DELETE FROM node WHERE ` + scope,
		`DELETE FROM applied WHERE ` + scope,
		`DELETE FROM space WHERE tenant = ?1 AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.space = space.row)`,
	} {
		if _, err := tx.ExecContext(ctx, q, tenant, project); err != nil {
			return stored(err)
		}
	}
	err = tx.Commit()
	ix.cache.changed() // after an error too: it may have been committed
	if err != nil {
		return stored(err)
	}
	ix.forget(tenant)
	// What was deleted is overwritten in the file (secure_delete); the log of
	// writes would still hold it. A reader that is in the way leaves that to the
	// next checkpoint.
	_, err = ix.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return stored(err)
}

// stored gives a database error its kind: the file is busy, full or gone.
// Errors that carry a kind keep it.
func stored(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.As(fault.Unavailable, err)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sqliteindex: encode: " + err.Error()) // plain values always encode
	}
	return string(b)
}

func blob(s memory.SHA) []byte {
	b := array(s)
	return b[:]
}

func array(s memory.SHA) (a [32]byte) {
	hex.Decode(a[:], []byte(s)) // ids are validated before they come here
	return a
}

func sha(b []byte) memory.SHA { return memory.SHA(hex.EncodeToString(b)) }

func packVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
