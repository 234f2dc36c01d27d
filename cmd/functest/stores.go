package functest

import (
	"context"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// Call is one call of either store as a hook sees it.
type Call struct {
	Bucket string
	memstore.Call
}

// Write reports whether the call changes the store.
func (c Call) Write() bool {
	return c.Op == memstore.OpPut || c.Op == memstore.OpDelete || c.Op == memstore.OpDeleteVersions
}

// Stores are the inbox and the log bucket, with hooks over both.
type Stores struct {
	inbox, log *memstore.Store

	mu     sync.Mutex
	now    time.Time
	calls  []Call
	before func(Call) error
	after  func(Call) error
}

func newStores() *Stores {
	s := &Stores{now: Epoch}
	hooks := func(bucket string) memstore.Hooks {
		return memstore.Hooks{
			Before: func(_ context.Context, c memstore.Call) error { return s.saw(Call{bucket, c}) },
			After: func(_ context.Context, c memstore.Call) error {
				s.mu.Lock()
				f := s.after
				s.mu.Unlock()
				if f == nil {
					return nil
				}
				return f(Call{bucket, c})
			},
			Now: s.tick,
		}
	}
	s.inbox, s.log = memstore.NewWith(hooks(Inbox)), memstore.NewWith(hooks(Store))
	return s
}

func (s *Stores) tick() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(time.Millisecond)
	return s.now
}

// Skip puts the stores' clock on.
func (s *Stores) Skip(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *Stores) saw(c Call) error {
	s.mu.Lock()
	s.calls = append(s.calls, c)
	f := s.before
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(c)
}

// Calls takes the calls since the last time.
func (s *Stores) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.calls
	s.calls = nil
	return out
}

// Fail sets what runs before and after each call's effect; nil does nothing.
func (s *Stores) Fail(before, after func(Call) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// DieAt makes the store fail for good from call n on, counted from 0: a process
// that lost its store, or was killed, in the middle of its work. With
// effect, call n still takes effect and only its answer is lost. It returns
// whether the call was reached.
func (s *Stores) DieAt(n int, effect bool, err error) (reached func() bool) {
	var mu sync.Mutex
	seen, dead := 0, false
	s.Fail(func(Call) error {
		mu.Lock()
		defer mu.Unlock()
		if dead {
			return err
		}
		seen++
		if seen > n && !effect {
			dead = true
			return err
		}
		return nil
	}, func(Call) error {
		mu.Lock()
		defer mu.Unlock()
		if seen > n {
			dead = true
			return err
		}
		return nil
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return dead
	}
}

// FailOnce makes call n alone fail, counted from 0; see DieAt. With effect it is
// the first call from n on that has an effect to answer.
func (s *Stores) FailOnce(n int, effect bool, err error) (reached func() bool) {
	var mu sync.Mutex
	seen, done := 0, false
	fail := func() error {
		if seen > n && !done {
			done = true
			return err
		}
		return nil
	}
	s.Fail(func(Call) error {
		mu.Lock()
		defer mu.Unlock()
		seen++
		if effect {
			return nil
		}
		return fail()
	}, func(Call) error {
		mu.Lock()
		defer mu.Unlock()
		if !effect {
			return nil
		}
		return fail()
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
}
