// Package memstore is the in-memory objstore.Driver, with hooks that make it
// fail: it is the fake that every test of the log and the functions runs on.
//
// ETags are the MD5 of the content in hex, as S3 and dirstore have them, so
// that a test can swap drivers. Nothing survives the process.
package memstore

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"io"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Op names a call of the driver.
type Op string

// The calls a hook sees. OpGet covers ranges too.
const (
	OpGet    Op = "get"
	OpHead   Op = "head"
	OpPut    Op = "put"
	OpList   Op = "list"
	OpDelete Op = "delete"
	OpNow    Op = "now"

	OpDeleteVersions Op = "delete versions"
)

// Call is one call of the driver as a hook sees it. Key is the prefix of an
// OpList and empty for OpNow.
type Call struct {
	Op   Op
	Key  string
	Cond objstore.Condition
}

// Hooks make the store misbehave. A nil field does nothing. Hooks may be called
// at the same time from several goroutines, never under the store's lock.
type Hooks struct {
	// Before runs before the effect; its error is returned instead of it. It
	// may also wait: that is a slow store.
	Before func(ctx context.Context, c Call) error
	// After runs after the effect; its error is returned although the effect
	// stands: a lost answer.
	After func(ctx context.Context, c Call) error
	// IgnoreConditions makes every conditional write unconditional, as some
	// servers do.
	IgnoreConditions bool
	// Versioned keeps what a Put or Delete replaces, as a bucket with versions
	// does, until DeleteVersions. Kept counts it.
	Versioned bool
	// Now is the store's clock; nil: time.Now.
	Now func() time.Time
}

// Store is an objstore.Driver in memory.
type Store struct {
	hooks Hooks

	mu      sync.RWMutex
	objects map[string]object
	kept    map[string]int // Versioned: earlier versions and delete markers by key
}

type object struct {
	data []byte
	info objstore.Info
}

var _ objstore.Driver = (*Store)(nil)

// New is an empty store.
func New() *Store { return NewWith(Hooks{}) }

// NewWith is an empty store that misbehaves as hooks say.
func NewWith(h Hooks) *Store {
	return &Store{hooks: h, objects: map[string]object{}, kept: map[string]int{}}
}

// Get implements objstore.Driver.
func (s *Store) Get(ctx context.Context, key string, from, n int64) (io.ReadCloser, objstore.Info, error) {
	o, err := hooked(ctx, s, Call{Op: OpGet, Key: key}, func() (object, error) { return s.find(key) })
	if err != nil {
		return nil, objstore.Info{}, err
	}
	data := o.data[min(from, int64(len(o.data))):]
	if n >= 0 {
		data = data[:min(n, int64(len(data)))]
	}
	return io.NopCloser(bytes.NewReader(data)), o.info, nil
}

// Head implements objstore.Driver.
func (s *Store) Head(ctx context.Context, key string) (objstore.Info, error) {
	o, err := hooked(ctx, s, Call{Op: OpHead, Key: key}, func() (object, error) { return s.find(key) })
	return o.info, err
}

func (s *Store) find(key string) (object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[key]
	if !ok {
		return object{}, fault.As(fault.NotFound, objstore.ErrNotFound)
	}
	return o, nil
}

// Put implements objstore.Driver.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64, cond objstore.Condition) (objstore.Info, error) {
	return hooked(ctx, s, Call{Op: OpPut, Key: key, Cond: cond}, func() (objstore.Info, error) {
		data, err := io.ReadAll(r)
		if err != nil {
			return objstore.Info{}, err
		}
		if size >= 0 && int64(len(data)) != size {
			return objstore.Info{}, fault.New(fault.Invalid, "the body has %d bytes, not %d", len(data), size)
		}
		if s.hooks.IgnoreConditions {
			cond = objstore.Condition{}
		}
		sum := md5.Sum(data)
		info := objstore.Info{Key: key, ETag: hex.EncodeToString(sum[:]), SizeBytes: int64(len(data)), ModTime: s.now()}
		s.mu.Lock()
		defer s.mu.Unlock()
		old, exists := s.objects[key]
		if cond.Create && exists || cond.IfMatch != "" && (!exists || old.info.ETag != cond.IfMatch) {
			return objstore.Info{}, fault.As(fault.Conflict, objstore.ErrPrecondition)
		}
		if exists && s.hooks.Versioned {
			s.kept[key]++
		}
		s.objects[key] = object{data, info}
		return info, nil
	})
}

// List implements objstore.Driver.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objstore.Info, error) {
	return hooked(ctx, s, Call{Op: OpList, Key: prefix}, func() ([]objstore.Info, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		var keys []string
		for k := range s.objects {
			if strings.HasPrefix(k, prefix) && k > after {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		infos := make([]objstore.Info, 0, min(limit, len(keys)))
		for _, k := range keys[:min(limit, len(keys))] {
			infos = append(infos, s.objects[k].info)
		}
		return infos, nil
	})
}

// Delete implements objstore.Driver.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := hooked(ctx, s, Call{Op: OpDelete, Key: key}, func() (struct{}, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, exists := s.objects[key]; exists && s.hooks.Versioned {
			s.kept[key] += 2 // the version and its delete marker
		}
		delete(s.objects, key)
		return struct{}{}, nil
	})
	return err
}

// DeleteVersions implements objstore.Driver.
func (s *Store) DeleteVersions(ctx context.Context, key string) (int, error) {
	return hooked(ctx, s, Call{Op: OpDeleteVersions, Key: key}, func() (int, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := s.kept[key]
		if _, exists := s.objects[key]; exists {
			n++
		}
		delete(s.objects, key)
		delete(s.kept, key)
		return n, nil
	})
}

// Kept is how many earlier versions and delete markers stand under key.
func (s *Store) Kept(key string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kept[key]
}

// Now implements objstore.Driver.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	return hooked(ctx, s, Call{Op: OpNow}, func() (time.Time, error) { return s.now(), nil })
}

func (s *Store) now() time.Time {
	if s.hooks.Now != nil {
		return s.hooks.Now().UTC()
	}
	return time.Now().UTC()
}

// hooked runs effect between the hooks.
func hooked[T any](ctx context.Context, s *Store, c Call, effect func() (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, fault.As(fault.Unavailable, context.Cause(ctx))
	}
	if s.hooks.Before != nil {
		if err := s.hooks.Before(ctx, c); err != nil {
			return zero, err
		}
	}
	res, err := effect()
	if err == nil && s.hooks.After != nil {
		if err := s.hooks.After(ctx, c); err != nil {
			return zero, err
		}
	}
	return res, err
}
