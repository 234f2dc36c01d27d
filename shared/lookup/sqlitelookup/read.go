package sqlitelookup

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Find implements lookup.Index.
func (ix *Index) Find(ctx context.Context, s lookup.Scope, k lookup.Kind, hashes []memory.SHA, limit int) (out []lookup.Match, total int, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Find(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil {
		return nil, 0, err
	}
	type ref struct {
		back int64
		key  []byte
	}
	var refs []ref
	for _, h := range hashes {
		if !h.Valid() {
			return nil, 0, fault.New(fault.Invalid, "a hash is a sha256")
		}
		rows, err := ix.names.QueryContext(ctx, s.Tenant, s.Project, k, lookup.Bytes(h), lookup.MaxTotal)
		if err != nil {
			return nil, 0, unavailable(err)
		}
		for rows.Next() {
			var r ref
			if err := rows.Scan(&r.back, &r.key); err != nil {
				rows.Close()
				return nil, 0, unavailable(err)
			}
			refs = append(refs, r)
		}
		if err := rows.Err(); err != nil {
			return nil, 0, unavailable(err)
		}
		rows.Close()
	}
	slices.SortFunc(refs, func(a, b ref) int { return cmp.Or(cmp.Compare(a.back, b.back), bytes.Compare(a.key, b.key)) })
	refs = slices.CompactFunc(refs, func(a, b ref) bool { return bytes.Equal(a.key, b.key) })
	for _, r := range refs[:min(limit, len(refs))] {
		m, ok, err := ix.get(ctx, s, r.key)
		if err != nil {
			return nil, 0, err
		}
		if ok { // it may have been forgotten in between
			out = append(out, m)
		}
	}
	return out, min(len(refs), lookup.MaxTotal), nil
}

// Get implements lookup.Index.
func (ix *Index) Get(ctx context.Context, s lookup.Scope, key memory.SHA) (_ lookup.Match, _ bool, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Get(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil || !key.Valid() {
		return lookup.Match{}, false, err
	}
	return ix.get(ctx, s, lookup.Bytes(key))
}

func (ix *Index) get(ctx context.Context, s lookup.Scope, key []byte) (m lookup.Match, ok bool, err error) {
	var at int64
	var packed []byte
	err = ix.body.QueryRowContext(ctx, s.Tenant, s.Project, key).Scan(&at, &packed, &m.Body, &m.Told, &m.Worked)
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	m.Key, m.At, m.Hashes = lookup.SHA(key), time.UnixMilli(at).UTC(), lookup.Unpack(packed)
	return m, err == nil, unavailable(err)
}

// Known implements lookup.Index.
func (ix *Index) Known(ctx context.Context, s lookup.Scope) (_ map[memory.SHA]bool, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Known(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil {
		return nil, err
	}
	out := map[memory.SHA]bool{}
	err = ix.each(ctx, `SELECT r.key FROM records r JOIN scopes s ON s.id = r.scope WHERE s.tenant = ? AND s.project = ?`, []any{s.Tenant, s.Project}, func(rows *sql.Rows) error {
		var key []byte
		err := rows.Scan(&key)
		out[lookup.SHA(key)] = true
		return err
	})
	return out, err
}

// Has implements lookup.Index.
func (ix *Index) Has(ctx context.Context, s lookup.Scope, key memory.SHA) (ok bool, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Has(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil || !key.Valid() {
		return false, err
	}
	err = ix.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM records r JOIN scopes s ON s.id = r.scope WHERE s.tenant = ? AND s.project = ? AND r.key = ?)`,
		s.Tenant, s.Project, lookup.Bytes(key)).Scan(&ok)
	return ok, unavailable(err)
}

// Projects implements lookup.Index.
func (ix *Index) Projects(ctx context.Context, tenant string) (out []string, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Projects(%s)", tenant)
	err = ix.each(ctx, `SELECT project FROM scopes s WHERE tenant = ? AND EXISTS (SELECT 1 FROM records r WHERE r.scope = s.id) ORDER BY project`, []any{tenant}, func(rows *sql.Rows) error {
		var p string
		err := rows.Scan(&p)
		out = append(out, p)
		return err
	})
	return out, err
}

// Hash implements lookup.Index.
func (ix *Index) Hash(ctx context.Context, tenant string) (_ memory.SHA, n int64, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Hash(%s)", tenant)
	var h lookup.Hasher
	err = ix.each(ctx, `SELECT s.project, l.key, l.at, l.hashes, l.body FROM lessons l JOIN scopes s ON s.id = l.scope WHERE s.tenant = ? ORDER BY s.project, l.key`, []any{tenant}, func(rows *sql.Rows) error {
		var project string
		var key, packed, body []byte
		var at int64
		if err := rows.Scan(&project, &key, &at, &packed, &body); err != nil {
			return err
		}
		h.Row(project, lookup.Row{Key: lookup.SHA(key), At: time.UnixMilli(at), Hashes: lookup.Unpack(packed), Body: body})
		return nil
	})
	if err != nil {
		return "", 0, err
	}
	err = ix.each(ctx, `SELECT s.project, o.lesson, o.use, o.worked, o.record FROM outcomes o JOIN scopes s ON s.id = o.scope WHERE s.tenant = ? ORDER BY s.project, o.record`, []any{tenant}, func(rows *sql.Rows) error {
		var project string
		var l, record []byte
		var o lookup.Outcome
		if err := rows.Scan(&project, &l, &o.Use, &o.Worked, &record); err != nil {
			return err
		}
		o.Lesson, o.Record = lookup.SHA(l), lookup.SHA(record)
		h.Outcome(project, o)
		return nil
	})
	sum, n := h.Sum()
	return sum, n, err
}

// Holding implements lookup.Index.
func (ix *Index) Holding(ctx context.Context, s lookup.Scope, holds func(string) bool) (searched, found int64, err error) {
	defer fault.Wrap(&err, "sqlitelookup.Holding(%s/%s)", s.Tenant, s.Project)
	if err := s.Check(); err != nil {
		return 0, 0, err
	}
	err = ix.each(ctx, `SELECT l.body FROM lessons l JOIN scopes s ON s.id = l.scope WHERE s.tenant = ? AND s.project = ?`, []any{s.Tenant, s.Project}, func(rows *sql.Rows) error {
		var body string
		if err := rows.Scan(&body); err != nil {
			return err
		}
		searched++
		if holds(body) {
			found++
		}
		return nil
	})
	return searched, found, err
}

func (ix *Index) each(ctx context.Context, q string, args []any, do func(*sql.Rows) error) error {
	rows, err := ix.db.QueryContext(ctx, q, args...)
	if err != nil {
		return unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows); err != nil {
			return unavailable(err)
		}
	}
	return unavailable(rows.Err())
}
