// Package dirstore is the objstore.Driver over a folder: the store of `mem up`.
//
// An object is a plain file whose path is its key, with the exceptions that
// type names lists. What cannot be read off the file (the ETag of a multipart
// upload, S3 metadata, the modification time after a copy) stands in a sidecar.
//
//	<root>/p/a.jsonl                      the object p/a.jsonl
//	<root>/.mneme-store/format            "1\n"
//	<root>/.mneme-store/meta/p/a.jsonl    its sidecar, JSON
//	<root>/.mneme-store/names/<sha256>    a key part longer than a file name
//	<root>/.mneme-store/tmp/              files being written, never listed
//	<root>/.mneme-store/lock/             locks, empty
//
// Invariants: a Put is seen whole or not at all, and when it returned, the
// file's bytes, its entry and every new folder above it are on the disk
// (fsync). Writers of a key are ordered across processes. No extended
// attribute is used: a plain copy of the folder is a back-up, and a file put
// into it by hand is an object.
//
// It does not keep versions, and it needs a file system with flock(2) and, to
// tell "A" from "a", one that does not fold case: there a second key that
// differs only in case is refused.
package dirstore

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Format is the version of the folder's layout.
//
//	1: files by key part, sidecars under meta/
const Format = "1\n"

const (
	sysPrefix = ".mneme" // no file name made from a key begins so
	sysDir    = ".mneme-store"
)

// Store is a folder as an object store. It is safe for concurrent use, also by
// several Stores and processes on one folder.
type Store struct {
	root, metaDir, tmpDir string
	names                 names
	locks                 *keyLocks
	listed                *folderCache
	described             *describedCache
}

var _ objstore.Driver = (*Store)(nil)

// Open opens the store in the folder root, which it creates (0700) if need be,
// and removes what dead writers left. A folder of another format is refused as
// fault.Corrupt.
func Open(root string) (_ *Store, err error) {
	defer fault.Wrap(&err, "open(%s)", root)
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	sys := filepath.Join(root, sysDir)
	s := &Store{
		root:    root,
		metaDir: filepath.Join(sys, "meta"),
		tmpDir:  filepath.Join(sys, "tmp"),
		names:   names{filepath.Join(sys, "names")},
		locks:   newKeyLocks(filepath.Join(sys, "lock")),
		listed:  newFolderCache(),

		described: newDescribedCache(),
	}
	for _, dir := range []string{s.metaDir, s.tmpDir, s.names.dir, s.locks.dir} {
		if err := mkdirSync(dir); err != nil {
			return nil, ioFault(root, err)
		}
	}
	if err := s.checkFormat(filepath.Join(sys, "format")); err != nil {
		return nil, err
	}
	return s, ioFault(root, sweepTemps(s.tmpDir))
}

func (s *Store) checkFormat(path string) error {
	got, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ioFault(path, s.writeFile(path, []byte(Format), true))
	case err != nil:
		return ioFault(path, err)
	case string(got) != Format:
		return fault.At(fault.Corrupt, path, "use the release of mem that wrote this folder, or a newer one", "the folder has format %q, not %q", got, Format)
	}
	return nil
}

// Close releases the lock files. No call may follow.
func (s *Store) Close() { s.locks.close() }

// Root is the store's folder.
func (s *Store) Root() string { return s.root }

// Get implements objstore.Driver.
func (s *Store) Get(ctx context.Context, key string, from, n int64) (io.ReadCloser, objstore.Info, error) {
	f, sc, err := s.open(ctx, key)
	if err != nil {
		return nil, objstore.Info{}, err
	}
	if from > 0 {
		if _, err := f.Seek(min(from, sc.Size), io.SeekStart); err != nil {
			f.Close()
			return nil, objstore.Info{}, ioFault(key, err)
		}
	}
	if n < 0 {
		n = sc.Size // also bounds a file that grows while it is read
	}
	n = min(n, max(sc.Size-from, 0))
	return &section{ctx, io.LimitedReader{R: f, N: n}, f}, sc.info(), nil
}

// section reads a part of a file until ctx ends.
type section struct {
	ctx context.Context
	io.LimitedReader
	file *os.File
}

func (r *section) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.LimitedReader.Read(p)
}

func (r *section) Close() error { return r.file.Close() }

// Head implements objstore.Driver.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	info, _, err := s.Stat(ctx, key)
	return info, err
}

// Stat is Head with the object's Attrs.
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, Attrs, error) {
	sc, err := s.describe(ctx, key)
	if err != nil {
		return objstore.Info{}, Attrs{}, err
	}
	return sc.info(), sc.Attrs, nil
}

// Now implements objstore.Driver: the clock that ModTime is taken from.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	return time.Now().UTC(), ctx.Err()
}

func (sc *sidecar) info() objstore.Info {
	return objstore.Info{Key: sc.Key, ETag: sc.ETag, SizeBytes: sc.Size, ModTime: sc.ModTime.UTC()}
}

func errNotFound() error { return fault.As(fault.NotFound, objstore.ErrNotFound) }

// openFile opens the object's file for reading; folders, links and devices are
// no objects.
func (s *Store) openFile(key string) (*os.File, fs.FileInfo, error) {
	if err := objstore.ValidKey(key); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.root, s.names.path(key)), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, s.openFault(key, err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		f.Close()
		return nil, nil, s.openFault(key, err)
	}
	return f, st, nil
}

func (s *Store) openFault(key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) || errors.Is(err, syscall.ELOOP) {
		return errNotFound()
	}
	return ioFault(key, err)
}

// open gives the object's file with the sidecar that belongs to it.
func (s *Store) open(ctx context.Context, key string) (*os.File, *sidecar, error) {
	if ctx.Err() != nil {
		return nil, nil, fault.As(fault.Unavailable, context.Cause(ctx))
	}
	f, st, err := s.openFile(key)
	if err != nil {
		return nil, nil, err
	}
	sc, err := readSidecar(s.metaPath(key))
	if err == nil && sc.describes(key, st) {
		return f, sc, nil
	}
	f.Close()
	// A writer is between its two renames, or the sidecar is lost or old.
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return nil, nil, ioFault(key, err)
	}
	defer unlock()
	return s.openLocked(ctx, key)
}

// openLocked is open under the key's lock, where a sidecar that does not fit
// is mended.
func (s *Store) openLocked(ctx context.Context, key string) (_ *os.File, _ *sidecar, err error) {
	f, st, err := s.openFile(key)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	sc, err := readSidecar(s.metaPath(key))
	if err != nil {
		return nil, nil, ioFault(key, err)
	}
	if sc.describes(key, st) {
		return f, sc, nil
	}
	if sc != nil && sc.Key != key && strings.EqualFold(sc.Key, key) && sc.Size == st.Size() {
		return nil, nil, errNotFound() // the file system folds case: this is the other key's file
	}
	sum := md5.New()
	if _, err := copyBytes(ctx, sum, f, nil); err != nil {
		return nil, nil, ioFault(key, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, ioFault(key, err)
	}
	return f, s.mend(key, st, sc, hex.EncodeToString(sum.Sum(nil))), nil
}

// mend gives the sidecar of a file with this MD5, and makes the folder agree
// so that the next reader need not compute it. A folder that cannot be written
// is served all the same, each time anew.
func (s *Store) mend(key string, st fs.FileInfo, old *sidecar, sum string) *sidecar {
	if old != nil && old.Key == key && old.Size == st.Size() && old.MD5 == sum {
		// The same bytes under another time: a copy of the folder.
		_ = os.Chtimes(filepath.Join(s.root, s.names.path(key)), time.Time{}, old.ModTime)
		return old
	}
	sc := &sidecar{Key: key, ETag: sum, MD5: sum, Size: st.Size(), ModTime: st.ModTime().UTC()}
	_ = s.writeSidecar(s.metaPath(key), sc, false)
	return sc
}

// describe is open without the file.
func (s *Store) describe(ctx context.Context, key string) (*sidecar, error) {
	if err := objstore.ValidKey(key); err != nil {
		return nil, err
	}
	st, err := os.Lstat(filepath.Join(s.root, s.names.path(key)))
	if err != nil {
		return nil, s.openFault(key, err)
	}
	if sc := s.described.get(key, st); sc != nil {
		return sc, nil
	}
	sc, err := readSidecar(s.metaPath(key))
	if err != nil || !sc.describes(key, st) {
		var f *os.File
		if f, sc, err = s.open(ctx, key); err != nil {
			return nil, err
		}
		f.Close()
	}
	s.described.put(sc)
	return sc, nil
}

func (s *Store) metaPath(key string) string { return filepath.Join(s.metaDir, s.names.path(key)) }

// blockBytes is what one read of a body holds: few system calls, little memory
// an upload.
const blockBytes = 128 << 10

var blocks = sync.Pool{New: func() any { return new([blockBytes]byte) }}

// copyBytes copies r to w until its end or ctx's. A failure of r is handed to
// *readErr where that is wanted, so that it is not taken for one of the disk.
func copyBytes(ctx context.Context, w io.Writer, r io.Reader, readErr *error) (int64, error) {
	block := blocks.Get().(*[blockBytes]byte)
	defer blocks.Put(block)
	buf := block[:]
	var total int64
	for {
		if ctx.Err() != nil {
			return total, fault.As(fault.Unavailable, context.Cause(ctx))
		}
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			err = fmt.Errorf("read the body: %w", err)
			if readErr != nil {
				*readErr = err
			}
			return total, err
		}
	}
}
