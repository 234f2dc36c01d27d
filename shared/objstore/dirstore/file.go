package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// temp is a file that nobody sees until it is moved or linked to its place. Its
// writer holds a flock on it, by which others know it from a dead one's.
type temp struct {
	*os.File
	moved bool
}

func (s *Store) newTemp() (*temp, error) {
	f, err := os.CreateTemp(s.tmpDir, "")
	if err != nil {
		return nil, err
	}
	t := &temp{File: f}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

// moveTo puts the file in the place of whatever stands at path.
func (t *temp) moveTo(path string) error {
	err := os.Rename(t.Name(), path)
	t.moved = t.moved || err == nil
	return err
}

// linkTo puts the file at path where nothing stands, else fs.ErrExist. The
// caller holds the key's lock, on which it falls back where the file system
// has no hard links; the link protects where it has no locks (NFS).
func (t *temp) linkTo(path string) error {
	err := os.Link(t.Name(), path)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EOPNOTSUPP) {
		if _, e := os.Lstat(path); e == nil {
			return fs.ErrExist
		}
		return t.moveTo(path)
	}
	return err
}

func (t *temp) discard() {
	if !t.moved {
		os.Remove(t.Name())
	}
	t.Close()
}

// staleAfter is how long a temporary file must have lain before it may be taken
// for a dead writer's: between its creation and its flock it looks like one.
const staleAfter = time.Minute

// sweepTemps removes the temporary files of writers that died.
func sweepTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		st, err := os.Lstat(path)
		if err != nil || time.Since(st.ModTime()) < staleAfter {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue // its writer was faster
		}
		if flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.Remove(path)
		}
		f.Close()
	}
	return nil
}

// mkdirTries bounds the race with a Delete that prunes the folder just made.
const mkdirTries = 100

// retryMkdir runs place, which puts a file at path, and makes path's folder,
// durably, whenever place finds it missing.
func retryMkdir(path string, place func() error) error {
	var err error
	for range mkdirTries {
		if err = place(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err = mkdirSync(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// mkdirSync makes the folder and its parents, each on the disk before the next.
func mkdirSync(dir string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		return syncDir(filepath.Dir(dir))
	case errors.Is(err, fs.ErrExist):
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := mkdirSync(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// syncDir puts a folder's entries on the disk. Renames and links of files that
// were synced before are then durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems have no fsync of folders
		return err
	}
	return nil
}

// ioFault says what an error of the operating system means for the caller.
func ioFault(where string, err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	e := &fault.Error{Kind: fault.Unavailable, Where: where, Err: err}
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		e.Msg, e.Hint = "disk full", "free some space; what was stored before is whole, and the write can be repeated"
		e.Err = fmt.Errorf("%w: %w", objstore.ErrFull, err)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		e.Msg, e.Hint = "the folder cannot be written or read", "look at its owner, its permissions and how its disk is mounted"
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Kind, e.Msg, e.Hint = fault.Invalid, "the path is too long for this file system", "use a data folder nearer the root, or a shorter key"
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		e.Msg, e.Hint = "too many open files", "raise the limit (ulimit -n)"
	}
	return e
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
