package pglookup

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Apply implements lookup.Index.
func (ix *Index) Apply(ctx context.Context, s lookup.Scope, b lookup.Batch) (err error) {
	defer fault.Wrap(&err, "pglookup.Apply(%s/%s)", s.Tenant, s.Project)
	return ix.write(ctx, s, b, false)
}

// Replace implements lookup.Index.
func (ix *Index) Replace(ctx context.Context, s lookup.Scope, b lookup.Batch) (err error) {
	defer fault.Wrap(&err, "pglookup.Replace(%s/%s)", s.Tenant, s.Project)
	return ix.write(ctx, s, b, true)
}

func (ix *Index) write(ctx context.Context, s lookup.Scope, b lookup.Batch, anew bool) error {
	if err := lookup.CheckBatch(s, &b); err != nil {
		return err
	}
	return unavailable(pgx.BeginFunc(ctx, ix.pool, func(tx pgx.Tx) error {
		w := writer{ctx, tx, s}
		if err := w.do(`SELECT pg_advisory_xact_lock(hashtextextended('mneme lessons ' || $1 || '/' || $2, 0))`); err != nil {
			return err
		}
		if anew {
			for _, t := range []string{"lesson_record", "lesson", "lesson_name", "lesson_outcome"} {
				if err := w.do(`DELETE FROM ` + t + ` WHERE tenant = $1 AND project = $2`); err != nil {
					return err
				}
			}
		}
		if err := w.gone(b.Gone); err != nil {
			return err
		}
		if err := w.rows(b.Rows); err != nil {
			return err
		}
		return w.outcomes(b.Outcomes)
	}))
}

// writer is one transaction of one scope.
type writer struct {
	ctx context.Context
	tx  pgx.Tx
	s   lookup.Scope
}

func (w writer) do(q string, args ...any) error {
	_, err := w.tx.Exec(w.ctx, q, append([]any{w.s.Tenant, w.s.Project}, args...)...)
	return err
}

// fresh notes records, and gives those that were not noted before.
func (w writer) fresh(keys [][]byte) (map[memory.SHA]bool, error) {
	rows, err := w.tx.Query(w.ctx, `INSERT INTO lesson_record SELECT $1, $2, k, false FROM unnest($3::bytea[]) AS k ON CONFLICT DO NOTHING RETURNING key`, w.s.Tenant, w.s.Project, keys)
	if err != nil {
		return nil, err
	}
	out := map[memory.SHA]bool{}
	var key []byte
	_, err = pgx.ForEachRow(rows, []any{&key}, func() error { out[lookup.SHA(key)] = true; return nil })
	return out, err
}

func (w writer) gone(keys []memory.SHA) error {
	if len(keys) == 0 {
		return nil
	}
	seen := map[memory.SHA]bool{}
	var bs [][]byte
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			bs = append(bs, lookup.Bytes(k))
		}
	}
	for _, q := range []string{
		`INSERT INTO lesson_record SELECT $1, $2, k, true FROM unnest($3::bytea[]) AS k ON CONFLICT (tenant, project, key) DO UPDATE SET gone = true`,
		`DELETE FROM lesson_name WHERE tenant = $1 AND project = $2 AND key = ANY($3::bytea[])`,
		`DELETE FROM lesson WHERE tenant = $1 AND project = $2 AND key = ANY($3::bytea[])`,
		`DELETE FROM lesson_outcome WHERE tenant = $1 AND project = $2 AND record = ANY($3::bytea[])`,
	} {
		if err := w.do(q, bs); err != nil {
			return err
		}
	}
	return nil
}

func (w writer) rows(rs []lookup.Row) error {
	if len(rs) == 0 {
		return nil
	}
	keys := make([][]byte, len(rs))
	for i := range rs {
		keys[i] = lookup.Bytes(rs[i].Key)
	}
	fresh, err := w.fresh(keys)
	if err != nil {
		return err
	}
	var ids, hashes, bodies, names, named [][]byte
	var ats, backs []int64
	var kinds []int16
	for i := range rs {
		r := &rs[i]
		if !fresh[r.Key] {
			continue // the record is named by its content: the row stands, or is gone
		}
		delete(fresh, r.Key)
		at := r.At.UnixMilli()
		ids, ats, hashes, bodies = append(ids, keys[i]), append(ats, at), append(hashes, lookup.Pack(r.Hashes)), append(bodies, r.Body)
		for _, h := range r.Hashes {
			kinds, names, backs, named = append(kinds, int16(h.Kind)), append(names, lookup.Bytes(h.SHA)), append(backs, -at), append(named, keys[i])
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := w.do(`INSERT INTO lesson SELECT $1, $2, * FROM unnest($3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[])`, ids, ats, hashes, bodies); err != nil {
		return err
	}
	return w.do(`INSERT INTO lesson_name SELECT $1, $2, * FROM unnest($3::smallint[], $4::bytea[], $5::bigint[], $6::bytea[])`, kinds, names, backs, named)
}

func (w writer) outcomes(os []lookup.Outcome) error {
	if len(os) == 0 {
		return nil
	}
	keys := make([][]byte, len(os))
	for i := range os {
		keys[i] = lookup.Bytes(os[i].Record)
	}
	fresh, err := w.fresh(keys)
	if err != nil {
		return err
	}
	for i := range os {
		o := &os[i]
		if !fresh[o.Record] {
			continue
		}
		delete(fresh, o.Record)
		if err := w.do(`INSERT INTO lesson_outcome VALUES ($1, $2, $3, $4, $5, $6)`, keys[i], lookup.Bytes(o.Lesson), o.Use, o.Worked); err != nil {
			return err
		}
	}
	return nil
}
