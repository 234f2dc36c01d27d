package dirstore

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Put implements objstore.Driver.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64, cond objstore.Condition) (objstore.Info, error) {
	return s.PutAttrs(ctx, key, r, size, cond, Attrs{})
}

// PutAttrs is Put with what S3 clients send beside the bytes.
func (s *Store) PutAttrs(ctx context.Context, key string, r io.Reader, size int64, cond objstore.Condition, attrs Attrs) (objstore.Info, error) {
	if err := objstore.ValidKey(key); err != nil {
		return objstore.Info{}, err
	}
	tmp, err := s.newTemp()
	if err != nil {
		return objstore.Info{}, ioFault(key, err)
	}
	defer tmp.discard()
	sc, err := s.fill(ctx, tmp, r, size)
	if err != nil {
		return objstore.Info{}, err
	}
	sc.Key, sc.Attrs = key, attrs
	if sc.ETag = attrs.ETag; sc.ETag == "" {
		sc.ETag = sc.MD5
	}
	for _, part := range s.names.longParts(key) {
		sum := filepath.Join(s.names.dir, strings.TrimSuffix(strings.TrimPrefix(s.names.encode(part, false), longMark), otherMark))
		if err := s.writeFile(sum, []byte(part), true); err != nil {
			return objstore.Info{}, ioFault(key, err)
		}
	}
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return objstore.Info{}, ioFault(key, err)
	}
	defer unlock()
	if err := s.commit(ctx, tmp, sc, cond); err != nil {
		return objstore.Info{}, err
	}
	return sc.info(), nil
}

// fill writes r to tmp, on the disk when it returns, and measures it.
func (s *Store) fill(ctx context.Context, tmp *temp, r io.Reader, size int64) (*sidecar, error) {
	sum := md5.New()
	var readErr error
	n, err := copyBytes(ctx, io.MultiWriter(tmp, sum), r, &readErr)
	switch {
	case readErr != nil:
		return nil, readErr
	case err != nil:
		return nil, ioFault(tmp.Name(), err)
	case size >= 0 && n != size:
		return nil, fault.New(fault.Invalid, "the body has %d bytes, not %d", n, size)
	}
	if err := os.Chtimes(tmp.Name(), time.Time{}, time.Now()); err != nil {
		return nil, ioFault(tmp.Name(), err)
	}
	if err := tmp.Sync(); err != nil {
		return nil, ioFault(tmp.Name(), err)
	}
	st, err := tmp.Stat() // the time as this file system keeps it
	if err != nil {
		return nil, ioFault(tmp.Name(), err)
	}
	return &sidecar{MD5: hex.EncodeToString(sum.Sum(nil)), Size: n, ModTime: st.ModTime().UTC()}, nil
}

// commit puts tmp in its place if cond holds, under the key's lock.
//
// A new object's sidecar comes before its file, so that no reader meets the
// file alone. A replaced object's comes after: a crash in between leaves a
// sidecar that does not fit, and loses at most the ETag of a multipart upload
// that was never answered.
func (s *Store) commit(ctx context.Context, tmp *temp, sc *sidecar, cond objstore.Condition) error {
	path := filepath.Join(s.root, s.names.path(sc.Key))
	_, err := os.Lstat(path)
	exists := err == nil
	if err := s.check(ctx, sc.Key, exists, cond); err != nil {
		return err
	}
	putSidecar := func() error { return s.writeSidecar(s.metaPath(sc.Key), sc, !sc.Attrs.plain()) }
	putFile := func() error {
		return retryMkdir(path, func() error {
			if exists {
				return tmp.moveTo(path)
			}
			return tmp.linkTo(path)
		})
	}
	first, second := putSidecar, putFile
	if exists {
		first, second = putFile, putSidecar
	}
	if err := first(); err != nil {
		return ioFault(sc.Key, err)
	}
	err = second()
	if errors.Is(err, fs.ErrExist) && !exists {
		// Someone without our lock was faster: a file put here by hand.
		return fault.As(fault.Conflict, objstore.ErrPrecondition)
	}
	if err != nil {
		return ioFault(sc.Key, err)
	}
	return ioFault(sc.Key, syncDir(filepath.Dir(path)))
}

// check refuses a write whose condition does not hold.
func (s *Store) check(ctx context.Context, key string, exists bool, cond objstore.Condition) error {
	lost := fault.As(fault.Conflict, objstore.ErrPrecondition)
	if !exists {
		if cond.IfMatch != "" {
			return lost
		}
		return nil
	}
	if cond.Create {
		// The loser goes on from what it lost to: that must be on the disk too,
		// also when its writer was killed before it had synced the folder.
		if err := syncDir(filepath.Dir(filepath.Join(s.root, s.names.path(key)))); err != nil {
			return ioFault(key, err)
		}
		return lost
	}
	if sc, err := readSidecar(s.metaPath(key)); err == nil && sc != nil && sc.Key != key && strings.EqualFold(sc.Key, key) {
		return fault.At(fault.Invalid, key, "rename one of them, or keep the folder on a file system that tells case apart",
			"this file system holds %q in the same file", sc.Key)
	}
	if cond.IfMatch == "" {
		return nil
	}
	f, sc, err := s.openLocked(ctx, key)
	if err != nil {
		if errors.Is(err, objstore.ErrNotFound) {
			return lost
		}
		return err
	}
	f.Close()
	if sc.ETag != cond.IfMatch {
		return lost
	}
	return nil
}

// Delete implements objstore.Driver. Folders that it empties go too.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.remove(ctx, key)
	return err
}

// DeleteVersions implements objstore.Driver: a folder keeps no versions.
func (s *Store) DeleteVersions(ctx context.Context, key string) (int, error) {
	return s.remove(ctx, key)
}

// remove is Delete, and gives how many objects it removed, 0 or 1.
func (s *Store) remove(ctx context.Context, key string) (int, error) {
	if err := objstore.ValidKey(key); err != nil {
		return 0, err
	}
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return 0, ioFault(key, err)
	}
	defer unlock()
	path := filepath.Join(s.root, s.names.path(key))
	st, err := os.Lstat(path)
	if err == nil && !st.Mode().IsRegular() {
		return 0, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return 0, nil
	}
	if err != nil {
		return 0, ioFault(key, err)
	}
	s.described.drop(key)
	if err := syncDir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, ioFault(key, err)
	}
	meta := s.metaPath(key)
	if err := os.Remove(meta); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotDir(err) {
		return 0, ioFault(key, err)
	}
	prune(filepath.Dir(path), s.root)
	prune(filepath.Dir(meta), s.metaDir)
	return 1, nil
}

// prune removes dir and the folders above it, below top, while they are empty.
func prune(dir, top string) {
	for dir != top && os.Remove(dir) == nil {
		dir = filepath.Dir(dir)
	}
}
