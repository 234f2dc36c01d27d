package bleveindex

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file builds a tenant's index beside the one that serves, under <root>/.stage, which
// no tenant can be called. Switch moves the tenant's folder to <root>/.old and the staged
// one into its place. A process that is killed between the two leaves the old one without
// a successor, and Open ends what was begun.

const (
	stageDir = ".stage" // an index of the same format, <root>/.stage/version and so on
	oldDir   = ".old"   // <root>/.old/<tenant>: what is replaced, until it is removed
)

var (
	_ index.LexicalStager = (*Index)(nil)
	_ index.Named         = (*Index)(nil)
)

// Name implements index.Named.
func (ix *Index) Name() string { return "bleve" }

type staged struct {
	*Index
	of     *Index
	tenant string
	gone   bool // switched or dropped
}

// Stage implements index.LexicalStager.
func (ix *Index) Stage(ctx context.Context, tenant string) (_ index.StagedLexical, err error) {
	defer fault.Wrap(&err, "bleveindex.Stage(%s)", tenant)
	if !memory.ValidName(tenant) {
		return nil, fault.New(fault.Invalid, "%q is not a tenant", tenant)
	}
	dir := filepath.Join(ix.root, stageDir, tenant)
	beside, err := Open(ctx, dir)
	if fault.Is(err, fault.Corrupt) { // of another version: it is begun anew
		if err := os.RemoveAll(dir); err != nil {
			return nil, fault.As(fault.Unavailable, err)
		}
		beside, err = Open(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	return &staged{Index: beside, of: ix, tenant: tenant}, nil
}

// Close implements index.Lexical.
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
	return errors.Join(s.Index.Close(), fault.As(fault.Unavailable, os.RemoveAll(s.root)))
}

// Switch implements index.Staged. Searches wait for as long as it takes to rename two
// folders.
func (s *staged) Switch(context.Context) (err error) {
	defer fault.Wrap(&err, "bleveindex.Switch(%s)", s.tenant)
	if s.gone {
		return fault.New(fault.Internal, "switched or dropped already")
	}
	if err := s.Index.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.root, s.tenant), 0o700); err != nil { // a tenant without a passage
		return fault.As(fault.Unavailable, err)
	}
	ix := s.of
	if err := s.replace(ix); err != nil {
		return fault.As(fault.Unavailable, err)
	}
	s.gone = true
	return fault.As(fault.Unavailable, errors.Join(os.RemoveAll(filepath.Join(ix.root, oldDir, s.tenant)), os.RemoveAll(s.root)))
}

func (s *staged) replace(ix *Index) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return fault.New(fault.Unavailable, "the lexical index is closed")
	}
	for k, shard := range ix.shards {
		if k.tenant == s.tenant {
			if err := shard.close(); err != nil {
				return err
			}
			delete(ix.shards, k)
		}
	}
	return swap(ix.root, s.tenant)
}

// swap puts the staged folder of a tenant into the place of the serving one. It may be
// called again after any part of it.
func swap(root, tenant string) error {
	serving, next, old := filepath.Join(root, tenant), filepath.Join(root, stageDir, tenant, tenant), filepath.Join(root, oldDir, tenant)
	if err := os.MkdirAll(filepath.Join(root, oldDir), 0o700); err != nil {
		return err
	}
	if err := fsync(filepath.Dir(next)); err != nil {
		return err
	}
	if _, err := os.Stat(serving); err == nil {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
		if err := os.Rename(serving, old); err != nil {
			return err
		}
	}
	if err := os.Rename(next, serving); err != nil {
		return err
	}
	return errors.Join(fsync(filepath.Join(root, oldDir)), fsync(root))
}

// settle ends switches that a killed process began, and removes what they replaced.
func settle(root string) error {
	tenants, err := os.ReadDir(filepath.Join(root, oldDir))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, t := range tenants {
		old := filepath.Join(root, oldDir, t.Name())
		_, err := os.Stat(filepath.Join(root, t.Name()))
		if os.IsNotExist(err) {
			// The staged one was whole when the old one was moved away.
			if _, serr := os.Stat(filepath.Join(root, stageDir, t.Name(), t.Name())); serr == nil {
				err = swap(root, t.Name())
			} else {
				err = os.Rename(old, filepath.Join(root, t.Name()))
			}
		}
		if err == nil {
			err = os.RemoveAll(old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func fsync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
