package pgindex

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file builds a tenant's tables beside those that serve, in a schema of their own,
// <schema>_stage_<8 hex of the sha256 of schema/tenant>. Switch drops the serving tables and moves
// the staged ones into their place, in one transaction. Numbers of spaces come from the
// serving schema, so that no table has to be renamed.

var (
	_ index.GraphStager = (*Index)(nil)
	_ index.Named       = (*Index)(nil)
	_ index.Rower       = (*Index)(nil)
	_ index.Searchable  = (*Index)(nil)
)

// Name implements index.Named.
func (ix *Index) Name() string { return "pg" }

// moved are the tables that a switch replaces whole; memory_space and applied_seq hold
// nothing of the memory, and their rows are replaced.
var moved = []string{"memory_node", "memory_occurrence", "memory_edge", "memory_passage"}

type staged struct {
	*Index
	of     *Index
	tenant string
	gone   bool // switched or dropped
}

func stageSchema(schema, tenant string) string {
	return schema[:min(len(schema), 48)] + "_stage_" + string(memory.SumString(schema + "/" + tenant)[:8]) // a name has at most 63 bytes
}

// Stage implements index.GraphStager.
func (ix *Index) Stage(ctx context.Context, tenant string) (_ index.StagedGraph, err error) {
	defer fault.Wrap(&err, "pgindex.Stage(%s)", tenant)
	if tenant == "" {
		return nil, fault.New(fault.Invalid, "a tenant is needed")
	}
	if err := migrate(ctx, ix.conn, ix.schema); err != nil { // the schema may have been dropped
		return nil, stored(err)
	}
	name := stageSchema(ix.schema, tenant)
	s, err := ix.stage(ctx, tenant, name)
	if fault.Is(err, fault.Corrupt) { // of another version, or of serving tables that are gone
		if _, err := ix.pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{name}.Sanitize()+` CASCADE`); err != nil {
			return nil, stored(err)
		}
		s, err = ix.stage(ctx, tenant, name)
	}
	if fault.Is(err, fault.Denied) {
		return nil, fault.At(fault.Denied, "PostgreSQL", "GRANT CREATE ON DATABASE to the user: tables are built in a schema beside the serving one", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (ix *Index) stage(ctx context.Context, tenant, name string) (*staged, error) {
	beside, err := openPool(ctx, Config{URL: ix.url, Schema: name}, true)
	if err != nil {
		return nil, err
	}
	beside.exact = ix.exact
	s := &staged{Index: beside, of: ix, tenant: tenant}
	if err := s.number(ctx); err != nil {
		s.Close()
		return nil, stored(err)
	}
	return s, nil
}

// number makes new spaces take their number from the serving schema. Where staged ones
// took it from one that is gone, the numbers may be given again: fault.Corrupt.
func (s *staged) number(ctx context.Context) error {
	sequence := pgx.Identifier{s.of.schema, "memory_space_id_seq"}.Sanitize()
	var identity, mine, some bool
	err := s.pool.QueryRow(ctx, `SELECT a.attidentity <> '', EXISTS (SELECT 1 FROM pg_attrdef d JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
				AND p.refobjid = to_regclass($2) WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum), EXISTS (SELECT 1 FROM memory_space)
			FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attname = 'id'`,
		pgx.Identifier{s.schema, "memory_space"}.Sanitize(), sequence).Scan(&identity, &mine, &some)
	switch {
	case err != nil || mine:
		return err
	case some || !identity:
		return fault.New(fault.Corrupt, "the staged tables were begun beside others")
	}
	_, err = s.pool.Exec(ctx, `ALTER TABLE memory_space ALTER COLUMN id DROP IDENTITY;
		ALTER TABLE memory_space ALTER COLUMN id SET DEFAULT nextval(`+quote(sequence)+`)`)
	return err
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Close implements index.Graph.
func (s *staged) Close() error {
	if s.gone {
		return nil
	}
	return s.Index.Close()
}

// Drop implements index.Staged.
func (s *staged) Drop(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "pgindex.Drop(%s)", s.tenant)
	if s.gone {
		return nil
	}
	s.gone = true
	s.Index.Close()
	_, err = s.of.pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{s.schema}.Sanitize()+` CASCADE`)
	return stored(err)
}

// Switch implements index.Staged. Rows of other tenants in the same tables are copied
// first, while their writers wait and searches go on.
func (s *staged) Switch(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "pgindex.Switch(%s)", s.tenant)
	if s.gone {
		return fault.New(fault.Internal, "switched or dropped already")
	}
	if _, err := s.pool.Exec(ctx, `ANALYZE `+strings.Join(moved, ", ")); err != nil {
		return stored(err)
	}
	tx, err := s.of.pool.Begin(ctx)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	// No space is made and no batch of the tenant is half-way meanwhile.
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0)), pg_advisory_xact_lock($2)`, s.tenant, int64(migrations)); err != nil {
		return stored(err)
	}
	if err := s.copyOthers(ctx, tx); err != nil {
		return stored(err)
	}
	old, err := spacesOf(ctx, tx, s.tenant)
	if err != nil {
		return stored(err)
	}
	next, err := spacesOf(ctx, s.pool, s.tenant)
	if err != nil {
		return stored(err)
	}
	var replaced, added []string
	for _, x := range old {
		replaced = append(replaced, s.serving(x.table()))
	}
	for _, t := range moved {
		replaced, added = append(replaced, s.serving(t)), append(added, s.staged(t))
	}
	for _, x := range next {
		added = append(added, s.staged(x.table()))
	}
	// memory_space first: who read there which table to ask holds it until it has asked.
	if err := lock(ctx, tx, append([]string{s.serving("memory_space")}, replaced...)); err != nil {
		return stored(err)
	}
	var batch pgx.Batch
	batch.Queue(`DROP TABLE ` + strings.Join(replaced, ", "))
	for _, t := range added {
		batch.Queue(`ALTER TABLE ` + t + ` SET SCHEMA ` + pgx.Identifier{s.of.schema}.Sanitize())
	}
	for _, t := range []string{"memory_space", "applied_seq"} {
		batch.Queue(`DELETE FROM `+s.serving(t)+` WHERE tenant = $1`, s.tenant)
	}
	batch.Queue(`INSERT INTO `+s.serving("memory_space")+` (id, tenant, name, dims) OVERRIDING SYSTEM VALUE SELECT id, tenant, name, dims FROM `+s.staged("memory_space")+` WHERE tenant = $1`, s.tenant)
	batch.Queue(`INSERT INTO `+s.serving("applied_seq")+` (tenant, project, stream, space, seq) SELECT tenant, project, stream, space, seq FROM `+s.staged("applied_seq")+` WHERE tenant = $1`, s.tenant)
	batch.Queue(`DROP SCHEMA ` + pgx.Identifier{s.schema}.Sanitize() + ` CASCADE`)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return stored(err)
	}
	if err := tx.Commit(ctx); err != nil {
		return stored(err)
	}
	s.gone = true
	return s.Index.Close()
}

func (s *staged) serving(table string) string {
	return pgx.Identifier{s.of.schema, table}.Sanitize()
}
func (s *staged) staged(table string) string { return pgx.Identifier{s.schema, table}.Sanitize() }

// copyOthers brings the rows of other tenants into the staged tables.
func (s *staged) copyOthers(ctx context.Context, tx pgx.Tx) error {
	var others bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM memory_node WHERE tenant <> $1) OR EXISTS (SELECT 1 FROM applied_seq WHERE tenant <> $1)`, s.tenant).Scan(&others)
	if err != nil || !others {
		return err
	}
	var names []string
	for _, t := range moved {
		names = append(names, s.serving(t))
	}
	if _, err := tx.Exec(ctx, `LOCK TABLE `+strings.Join(names, ", ")+` IN EXCLUSIVE MODE`); err != nil {
		return err
	}
	const node = "sha256, tenant, project, level, stream, query_id, t, role, trust, source, text, text_raw, text_sha256, place, source_time, created_at"
	var batch pgx.Batch
	batch.Queue(`INSERT INTO `+s.staged("memory_node")+` (`+node+`) SELECT `+node+` FROM `+s.serving("memory_node")+` WHERE tenant <> $1 ORDER BY id`, s.tenant)
	batch.Queue(`INSERT INTO `+s.staged("memory_edge")+` SELECT * FROM `+s.serving("memory_edge")+` WHERE tenant <> $1`, s.tenant)
	for _, t := range []string{"memory_occurrence", "memory_passage"} {
		batch.Queue(`INSERT INTO `+s.staged(t)+` SELECT x.* FROM `+s.serving(t)+` x JOIN `+s.serving("memory_node")+` n ON n.sha256 = x.node WHERE n.tenant <> $1`, s.tenant)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// Waiting for a lock holds up the searches that come after, and searches that hold what
// is waited for may wait for what is held: giving up in less than the server's
// deadlock_timeout (1 s) lets them go on.
const (
	lockWait  = 250 * time.Millisecond
	lockPause = 50 * time.Millisecond
	lockTries = 200
)

// lock takes the tables from everybody.
func lock(ctx context.Context, tx pgx.Tx, tables []string) error {
	for try := 0; ; try++ {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = inner.Exec(ctx, `SET LOCAL lock_timeout = `+strconv.FormatInt(lockWait.Milliseconds(), 10)+`; LOCK TABLE `+strings.Join(tables, ", ")+` IN ACCESS EXCLUSIVE MODE; SET LOCAL lock_timeout = 0`)
		if err == nil {
			return inner.Commit(ctx)
		}
		if rerr := inner.Rollback(ctx); rerr != nil {
			return errors.Join(err, rerr)
		}
		pe, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pe.Code != "55P03" || try == lockTries { // lock_not_available
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

// Rows implements index.Rower.
func (ix *Index) Rows(ctx context.Context, tenant string) iter.Seq2[index.Row, error] {
	return func(yield func(index.Row, error) bool) {
		err := ix.snapshot(ctx, func(tx pgx.Tx) error {
			return eachNode(ctx, tx, tenant, func(n *index.Node) error {
				if !yield(index.Row{Project: n.Project, Stream: n.Stream, Level: n.Level, ID: n.ID, Hash: index.RowHash(n)}, nil) {
					return errEnough
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(index.Row{}, fmt.Errorf("pgindex.Rows(%s): %w", tenant, err))
		}
	}
}

var errEnough = errors.New("no more rows are wanted")

// Searchable implements index.Searchable.
func (ix *Index) Searchable(ctx context.Context, tenant, space string) (n int64, err error) {
	defer fault.Wrap(&err, "pgindex.Searchable(%s)", tenant)
	err = ix.snapshot(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM memory_passage p JOIN memory_node n ON n.sha256 = p.node WHERE n.tenant = $1 AND n.level = 'raw'`, tenant).Scan(&n); err != nil {
			return err
		}
		s, err := findSpace(ctx, tx, tenant, space)
		if err != nil || s.dims == 0 {
			return err
		}
		var v int64
		err = tx.QueryRow(ctx, `SELECT count(*) FROM `+s.table()).Scan(&v)
		n += v
		return err
	})
	return n, err
}
