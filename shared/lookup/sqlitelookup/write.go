package sqlitelookup

import (
	"context"
	"database/sql"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lookup"
)

// Apply implements lookup.Index.
func (ix *Index) Apply(ctx context.Context, s lookup.Scope, b lookup.Batch) (err error) {
	defer fault.Wrap(&err, "sqlitelookup.Apply(%s/%s)", s.Tenant, s.Project)
	return ix.write(ctx, s, b, false)
}

// Replace implements lookup.Index.
func (ix *Index) Replace(ctx context.Context, s lookup.Scope, b lookup.Batch) (err error) {
	defer fault.Wrap(&err, "sqlitelookup.Replace(%s/%s)", s.Tenant, s.Project)
	return ix.write(ctx, s, b, true)
}

func (ix *Index) write(ctx context.Context, s lookup.Scope, b lookup.Batch, anew bool) error {
	if err := lookup.CheckBatch(s, &b); err != nil {
		return err
	}
	ix.apply.Lock()
	defer ix.apply.Unlock()
	tx, err := ix.db.BeginTx(ctx, nil)
	if err != nil {
		return unavailable(err)
	}
	defer tx.Rollback()
	w := writer{ctx: ctx, tx: tx}
	w.scope(s)
	if anew {
		for _, t := range []string{"records", "lessons", "names", "outcomes"} {
			w.do("DELETE FROM "+t+" WHERE scope = ?", w.id)
		}
	}
	for _, k := range b.Gone {
		w.do(`INSERT INTO records(scope, key, gone) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET gone = 1`, w.id, lookup.Bytes(k))
		w.remove(lookup.Bytes(k))
	}
	for i := range b.Rows {
		w.row(&b.Rows[i])
	}
	for _, o := range b.Outcomes {
		if w.known(lookup.Bytes(o.Record)) {
			continue
		}
		w.do(`INSERT INTO outcomes(scope, lesson, use, worked, record) VALUES (?, ?, ?, ?, ?)`, w.id, lookup.Bytes(o.Lesson), o.Use, o.Worked, lookup.Bytes(o.Record))
	}
	if w.err != nil {
		return unavailable(w.err)
	}
	return unavailable(tx.Commit())
}

// writer is one transaction; after an error it does nothing.
type writer struct {
	ctx   context.Context
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
	id    int64
	err   error
}

func (w *writer) stmt(q string) *sql.Stmt {
	if w.err != nil {
		return nil
	}
	if s := w.stmts[q]; s != nil {
		return s
	}
	s, err := w.tx.PrepareContext(w.ctx, q) // closed with the transaction
	if err != nil {
		w.err = err
		return nil
	}
	if w.stmts == nil {
		w.stmts = map[string]*sql.Stmt{}
	}
	w.stmts[q] = s
	return s
}

func (w *writer) do(q string, args ...any) (changed bool) {
	s := w.stmt(q)
	if s == nil {
		return false
	}
	res, err := s.ExecContext(w.ctx, args...)
	if err != nil {
		w.err = err
		return false
	}
	n, err := res.RowsAffected()
	w.err = err
	return n > 0
}

func (w *writer) scope(s lookup.Scope) {
	w.do(`INSERT INTO scopes(tenant, project) VALUES (?, ?) ON CONFLICT DO NOTHING`, s.Tenant, s.Project)
	if w.err == nil {
		w.err = w.tx.QueryRowContext(w.ctx, `SELECT id FROM scopes WHERE tenant = ? AND project = ?`, s.Tenant, s.Project).Scan(&w.id)
	}
}

// known notes a record, and reports whether it was noted before.
func (w *writer) known(key []byte) bool {
	return !w.do(`INSERT INTO records(scope, key, gone) VALUES (?, ?, 0) ON CONFLICT DO NOTHING`, w.id, key)
}

func (w *writer) row(r *lookup.Row) {
	key := lookup.Bytes(r.Key)
	if w.known(key) {
		return // the record is named by its content: the row stands, or is gone
	}
	at := r.At.UnixMilli()
	w.do(`INSERT INTO lessons(scope, key, at, hashes, body) VALUES (?, ?, ?, ?, ?)`, w.id, key, at, lookup.Pack(r.Hashes), r.Body)
	for _, h := range r.Hashes {
		w.do(`INSERT INTO names(scope, kind, hash, back, key) VALUES (?, ?, ?, ?, ?)`, w.id, h.Kind, lookup.Bytes(h.SHA), -at, key)
	}
}

// remove takes out a row with its names, or an outcome.
func (w *writer) remove(key []byte) {
	s := w.stmt(`SELECT at, hashes FROM lessons WHERE scope = ? AND key = ?`)
	if s == nil {
		return
	}
	var at int64
	var packed []byte
	err := s.QueryRowContext(w.ctx, w.id, key).Scan(&at, &packed)
	if err != nil && err != sql.ErrNoRows {
		w.err = err
		return
	}
	for _, h := range lookup.Unpack(packed) {
		w.do(`DELETE FROM names WHERE scope = ? AND kind = ? AND hash = ? AND back = ? AND key = ?`, w.id, h.Kind, lookup.Bytes(h.SHA), -at, key)
	}
	w.do(`DELETE FROM lessons WHERE scope = ? AND key = ?`, w.id, key)
	w.do(`DELETE FROM outcomes WHERE scope = ? AND record = ?`, w.id, key)
}
