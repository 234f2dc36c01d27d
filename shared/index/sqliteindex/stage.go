package sqliteindex

import (
	"context"

	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

// This file builds a graph beside the one that serves: a file of the same format,
// <path>.stage-<tenant>, with no row of another tenant. Switch renames it over the
// serving file, so that whatever ends the process leaves one of the two whole: the write
// logs of both are folded into their files and removed before, as SQLite would play the
// log of one into the other.

var (
	_ index.GraphStager = (*Index)(nil)
	_ index.Named       = (*Index)(nil)
	_ index.Rower       = (*Index)(nil)
	_ index.Searchable  = (*Index)(nil)
)

// Name implements index.Named.
func (ix *Index) Name() string { return "sqlite" }

// using keeps the file from being replaced until the returned function is called.
func (ix *Index) using() func() {
	ix.file.RLock()
	return ix.file.RUnlock
}

type staged struct {
	*Index
	of     *Index
	tenant string
	gone   bool // switched or dropped
}

// Stage implements index.GraphStager.
func (ix *Index) Stage(ctx context.Context, tenant string) (_ index.StagedGraph, err error) {
	defer fault.Wrap(&err, "sqliteindex.Stage(%s)", tenant)
	if tenant == "" || filepath.Base(tenant) != tenant {
		return nil, fault.New(fault.Invalid, "%q is not a tenant", tenant)
	}
	path := ix.path + ".stage-" + tenant
	beside, err := Open(ctx, path)
	if err == nil {
		var n int
		err = beside.read.QueryRowContext(ctx, `SELECT count(*) FROM applied`).Scan(&n)
		if err != nil {
			beside.Close()
		}
	}
	if err != nil && ctx.Err() == nil { // what cannot be read is begun anew
		if err := remove(path); err != nil {
			return nil, err
		}
		beside, err = Open(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	return &staged{Index: beside, of: ix, tenant: tenant}, nil
}

// remove removes a database with what SQLite puts beside it.
func remove(path string) error {
	for _, p := range []string{path + "-wal", path + "-shm", path} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.As(fault.Unavailable, err)
		}
	}
	return nil
}

// Close implements index.Graph.
func (s *staged) Close() error {
	if s.gone {
		return nil
	}
	return s.Index.Close()
}

// Drop implements index.Staged.
func (s *staged) Drop(context.Context) error {
	if s.gone {
		return nil
	}
	s.gone = true
	return errors.Join(s.Index.Close(), remove(s.path))
}

// Switch implements index.Staged. Searches wait for as long as it takes to rename a file,
// and to copy the rows of other tenants where there are any.
func (s *staged) Switch(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "sqliteindex.Switch(%s)", s.tenant)
	if s.gone {
		return fault.New(fault.Internal, "switched or dropped already")
	}
	ix := s.of
	ix.file.Lock()
	defer ix.file.Unlock()
	if err := s.copyOthers(ctx); err != nil {
		return stored(err)
	}
	if err := s.fold(ctx); err != nil {
		return err
	}
	if err := ix.fold(ctx); err != nil {
		return errors.Join(err, ix.reopen(context.WithoutCancel(ctx)))
	}
	dir := filepath.Dir(ix.path)
	err = fsync(s.path)
	if err == nil {
		err = fsync(dir) // that no log stands beside the file any more, before another takes its name
	}
	if err == nil {
		err = os.Rename(s.path, ix.path)
	}
	if err == nil {
		s.gone = true
		err = fsync(dir)
	}
	ix.mu.Lock()
	clear(ix.spaces) // they are rows of the old file
	ix.mu.Unlock()
	ix.cache.changed() // likewise
	return errors.Join(fault.As(fault.Unavailable, err), ix.reopen(context.WithoutCancel(ctx)))
}

// fold writes the log of writes into the file and closes it, which removes the log.
func (ix *Index) fold(ctx context.Context) error {
	if err := ix.read.Close(); err != nil {
		return stored(err)
	}
	var busy, pages, moved int
	err := ix.write.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved)
	if cerr := ix.write.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return stored(err)
	}
	if st, err := os.Stat(ix.path + "-wal"); err == nil && st.Size() > 0 {
		return fault.At(fault.Unavailable, ix.path, "stop the other program that uses this folder", "it is open elsewhere")
	}
	for _, p := range []string{ix.path + "-wal", ix.path + "-shm"} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.As(fault.Unavailable, err)
		}
	}
	return nil
}

// reopen opens the file that stands at path.
func (ix *Index) reopen(ctx context.Context) error {
	next, err := Open(ctx, ix.path)
	if err != nil {
		return err
	}
	ix.read, ix.write = next.read, next.write
	return nil
}

func fsync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyOthers brings the rows of other tenants from the serving file.
func (s *staged) copyOthers(ctx context.Context) (err error) {
	var others bool
	err = s.of.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM applied WHERE tenant <> ?1) OR EXISTS (SELECT 1 FROM node WHERE tenant <> ?1)`, s.tenant).Scan(&others)
	if err != nil || !others {
		return err
	}
	conn, err := s.write.Conn(ctx) // a database is attached to one connection
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `ATTACH DATABASE ? AS old`, s.of.path); err != nil {
		return err
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `DETACH DATABASE old`)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, q := range []string{
		// A former Switch that did not come to its end may have brought them.
		`DELETE FROM vector WHERE space IN (SELECT row FROM space WHERE tenant <> ?1)`,
		`DELETE FROM passage WHERE node IN (SELECT row FROM node WHERE tenant <> ?1)`,
		`DELETE FROM occurrence WHERE node IN (SELECT row FROM node WHERE tenant <> ?1)`,
		`DELETE FROM edge WHERE tenant <> ?1`,
		`DELETE FROM node WHERE tenant <> ?1`,
		`DELETE FROM space WHERE tenant <> ?1`,
		`DELETE FROM applied WHERE tenant <> ?1`,
		`INSERT INTO node (id, tenant, project, stream, level, query_id, text, text_sha, t, role, trust, place, source_time)
			SELECT id, tenant, project, stream, level, query_id, text, text_sha, t, role, trust, place, source_time FROM old.node WHERE tenant <> ?1 ORDER BY row`,
		`INSERT INTO occurrence SELECT n.row, o.t, o.span, o.place, o.at, o.quote, o.role, o.turn_id FROM old.occurrence o
			JOIN old.node x ON x.row = o.node JOIN main.node n ON n.id = x.id WHERE x.tenant <> ?1`,
		`INSERT INTO edge SELECT * FROM old.edge WHERE tenant <> ?1`,
		`INSERT INTO passage (id, node, n, start, stop) SELECT p.id, n.row, p.n, p.start, p.stop FROM old.passage p
			JOIN old.node x ON x.row = p.node JOIN main.node n ON n.id = x.id WHERE x.tenant <> ?1 ORDER BY p.row`,
		`INSERT INTO space (tenant, name, dims) SELECT tenant, name, dims FROM old.space WHERE tenant <> ?1 ORDER BY row`,
		`INSERT INTO vector (space, passage, v) SELECT s.row, p.row, v.v FROM old.vector v JOIN old.space y ON y.row = v.space JOIN old.passage q ON q.row = v.passage
			JOIN main.space s ON s.tenant = y.tenant AND s.name = y.name JOIN main.passage p ON p.id = q.id WHERE y.tenant <> ?1 ORDER BY v.rowid`,
		`INSERT INTO applied SELECT * FROM old.applied WHERE tenant <> ?1`,
	} {
		if _, err := tx.ExecContext(ctx, q, s.tenant); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Rows implements index.Rower.
func (ix *Index) Rows(ctx context.Context, tenant string) iter.Seq2[index.Row, error] {
	return func(yield func(index.Row, error) bool) {
		defer ix.using()()
		tx, err := ix.read.BeginTx(ctx, nil)
		if err != nil {
			yield(index.Row{}, stored(err))
			return
		}
		defer tx.Rollback()
		err = eachNode(ctx, tx, tenant, func(n *index.Node) error {
			if !yield(index.Row{Project: n.Project, Stream: n.Stream, Level: n.Level, ID: n.ID, Hash: index.RowHash(n)}, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(index.Row{}, err)
		}
	}
}

var errEnough = errors.New("no more rows are wanted")

// Searchable implements index.Searchable.
func (ix *Index) Searchable(ctx context.Context, tenant, space string) (n int64, err error) {
	defer fault.Wrap(&err, "sqliteindex.Searchable(%s)", tenant)
	defer ix.using()()
	err = ix.read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM node n JOIN passage p ON p.node = n.row WHERE n.tenant = ?1 AND n.level = 'raw')
		+ (SELECT count(*) FROM space s JOIN vector v ON v.space = s.row WHERE s.tenant = ?1 AND s.name = ?2)`, tenant, space).Scan(&n)
	return n, stored(err)
}
