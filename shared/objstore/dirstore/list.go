package dirstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// List implements objstore.Driver. It reads only the folders that lie under
// prefix and are not wholly before after.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objstore.Info, error) {
	l := &lister{s: s, prefix: prefix, after: after, limit: limit}
	top := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if err := l.walk(ctx, top, filepath.Join(s.root, s.names.folder(top))); err != nil {
		return nil, err
	}
	return l.found, nil
}

type lister struct {
	s             *Store
	prefix, after string
	limit         int
	found         []objstore.Info
}

// walk adds what lies in the folder at path, whose keys begin with dirKey.
func (l *lister) walk(ctx context.Context, dirKey, path string) error {
	items, err := l.s.listed.read(path, l.s.names)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return nil
	}
	if err != nil {
		return ioFault(dirKey, err)
	}
	start := 0
	if rest, inside := strings.CutPrefix(l.after, dirKey); inside {
		// The last item that may hold keys beyond after: the folder after lies in.
		start = max(sort.Search(len(items), func(i int) bool { return items[i].name > rest })-1, 0)
	}
	for _, it := range items[start:] {
		if len(l.found) >= l.limit {
			return nil
		}
		if ctx.Err() != nil {
			return fault.As(fault.Unavailable, context.Cause(ctx))
		}
		key := dirKey + it.name
		if it.isDir() {
			if !strings.HasPrefix(key, l.prefix) && !strings.HasPrefix(l.prefix, key) {
				continue
			}
			if l.after >= key && !strings.HasPrefix(l.after, key) {
				continue
			}
			if err := l.walk(ctx, key, filepath.Join(path, l.s.names.encode(strings.TrimSuffix(it.name, "/"), true))); err != nil {
				return err
			}
			continue
		}
		if key <= l.after || !strings.HasPrefix(key, l.prefix) {
			if key > l.after && key > l.prefix {
				return nil // sorted: nothing more can have the prefix
			}
			continue
		}
		sc, err := l.s.describe(ctx, key)
		if errors.Is(err, objstore.ErrNotFound) || fault.Is(err, fault.Invalid) {
			continue // deleted meanwhile, or a file by hand whose name is no key
		}
		if err != nil {
			return err
		}
		l.found = append(l.found, sc.info())
	}
	return nil
}

// item is one entry of a folder: a part of a key, a folder's with "/" at its
// end, so that byte order of items is byte order of the keys below them.
type item struct{ name string }

func (it item) isDir() bool { return strings.HasSuffix(it.name, "/") }

// folderCache keeps the sorted items of the folders read last: listing a folder
// of n objects in pages would otherwise sort it once a page.
type folderCache struct {
	mu      sync.Mutex
	folders map[string]folder
}

type folder struct {
	modTime time.Time
	items   []item
}

const (
	// A folder changed less than this before it was read may change again
	// without a new modification time (the kernel's clock ticks at 4 to 10 ms,
	// some file systems keep 2 s).
	settled = 2 * time.Second
	// maxFolders and minItems bound the cache to what is worth it.
	maxFolders = 16
	minItems   = 1000
)

func newFolderCache() *folderCache { return &folderCache{folders: map[string]folder{}} }

// read gives the folder's items in order.
func (c *folderCache) read(path string, n names) ([]item, error) {
	now := time.Now()
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	kept, ok := c.folders[path]
	c.mu.Unlock()
	if ok && kept.modTime.Equal(st.ModTime()) {
		return kept.items, nil
	}
	items, err := readItems(path, n)
	if err != nil {
		return nil, err
	}
	if len(items) >= minItems && now.Sub(st.ModTime()) > settled {
		c.mu.Lock()
		if len(c.folders) >= maxFolders {
			clear(c.folders)
		}
		c.folders[path] = folder{st.ModTime(), items}
		c.mu.Unlock()
	}
	return items, nil
}

func readItems(path string, n names) ([]item, error) {
	entries, err := readDir(path)
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(entries))
	for _, e := range entries {
		isDir := e.IsDir()
		if !isDir && !e.Type().IsRegular() || strings.HasPrefix(e.Name(), sysPrefix) {
			continue
		}
		part, ok := n.decode(e.Name(), isDir)
		if !ok {
			continue
		}
		if isDir {
			part += "/"
		}
		items = append(items, item{part})
	}
	sort.Slice(items, func(i, j int) bool { return items[i].name < items[j].name })
	return items, nil
}

// readDir is os.ReadDir without its sort: the order wanted is that of the keys.
func readDir(path string) ([]fs.DirEntry, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}
