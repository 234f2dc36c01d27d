package dirstore

import (
	"io/fs"
	"sync"
)

// maxDescribed bounds the sidecars kept in memory: about 400 bytes each.
const maxDescribed = 50_000

// describedCache keeps sidecars that were read, so that listing a folder again
// costs one lstat an object. A sidecar kept is used only while it describes the
// file that stands there now.
type describedCache struct {
	mu   sync.Mutex
	kept map[string]*sidecar
}

func newDescribedCache() *describedCache { return &describedCache{kept: map[string]*sidecar{}} }

func (c *describedCache) get(key string, st fs.FileInfo) *sidecar {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sc := c.kept[key]; sc.describes(key, st) {
		return sc
	}
	return nil
}

func (c *describedCache) put(sc *sidecar) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxDescribed {
		clear(c.kept)
	}
	c.kept[sc.Key] = sc
}

func (c *describedCache) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, key)
}
