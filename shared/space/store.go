package space

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Fresh is how old a state may be that a process acts on: after a switch every process
// follows within it.
const Fresh = time.Second

const pointerName = "space"

// pointers is what Store needs of the log; *eventlog.Log gives it.
type pointerLog interface {
	Pointer(ctx context.Context, name string, into any) (etag string, err error)
	SetPointer(ctx context.Context, name string, value any, etag string) error
}

// Store reads and moves the pointer. It is safe for concurrent use.
type Store struct {
	log   pointerLog
	first func(ctx context.Context) (Entry, error)
	now   func() time.Time

	turn sync.Mutex // one reads the pointer; the others wait, or take what is fresh enough

	mu    sync.Mutex // guards what follows
	state State
	read  time.Time
}

// NewStore is the store of a log. first gives the space that serves where no pointer
// stands; now is time.Now where nil.
func NewStore(log pointerLog, first func(ctx context.Context) (Entry, error), now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{log: log, first: first, now: now}
}

// State is the state as it was at most Fresh ago. While a store is down, it is the last
// that was read: what serves does not depend on it.
func (s *Store) State(ctx context.Context) (State, error) {
	if st, ok := s.recent(Fresh); ok {
		return st, nil
	}
	if !s.turn.TryLock() {
		if st, ok := s.recent(2 * Fresh); ok { // another reads it just now
			return st, nil
		}
		s.turn.Lock()
	}
	defer s.turn.Unlock()
	if st, ok := s.recent(Fresh); ok {
		return st, nil
	}
	st, _, err := s.load(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.read.IsZero() {
			return s.state, nil
		}
	}
	return st, err
}

func (s *Store) recent(age time.Duration) (State, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, !s.read.IsZero() && time.Since(s.read) < age
}

func (s *Store) load(ctx context.Context) (st State, etag string, err error) {
	etag, err = s.log.Pointer(ctx, pointerName, &st)
	if err == nil && etag == "" {
		var e Entry
		if e, err = s.first(ctx); err == nil {
			st = First(e, s.now())
		}
	}
	if err != nil {
		return st, etag, err
	}
	s.keep(st)
	return st, etag, nil
}

func (s *Store) keep(st State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.read = st, time.Now()
}

// updates bounds how often Update starts again when another moved first.
const updates = 8

// Update moves the pointer from what stands to what change makes of it, and writes it
// where none stands. Moved by another in between, change is asked again.
func (s *Store) Update(ctx context.Context, change func(State) (State, error)) (State, error) {
	for range updates {
		was, etag, err := s.load(ctx)
		if err != nil {
			return was, err
		}
		next, err := change(was)
		if err != nil || etag != "" && reflect.DeepEqual(was, next) {
			return was, err
		}
		err = s.log.SetPointer(ctx, pointerName, next, etag)
		if fault.Is(err, fault.Conflict) {
			continue
		}
		if err != nil {
			return was, err
		}
		s.keep(next)
		return next, nil
	}
	return State{}, fault.New(fault.Unavailable, "the pointer of the embedding spaces is moved by others all the time")
}
