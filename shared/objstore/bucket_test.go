package objstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// first makes a hook that fails its first n calls of op.
func first(n int, op memstore.Op, err error) (func(context.Context, memstore.Call) error, *atomic.Int32) {
	var calls atomic.Int32
	return func(_ context.Context, c memstore.Call) error {
		if c.Op == op && int(calls.Add(1)) <= n {
			return err
		}
		return nil
	}, &calls
}

var down = fault.New(fault.Unavailable, "the store is down")

func quick(h memstore.Hooks) *objstore.Bucket {
	return objstore.NewBucket("b", memstore.NewWith(h), objstore.WithRetry(5, time.Microsecond))
}

func TestRetry(t *testing.T) {
	t.Parallel()
	full := fault.As(fault.Unavailable, fmt.Errorf("disk full: %w", objstore.ErrFull))
	for _, c := range []struct {
		name  string
		fails int
		err   error
		calls int32
		kind  fault.Kind // Internal: none
	}{
		{"up", 0, nil, 1, fault.Internal},
		{"down once", 1, down, 2, fault.Internal},
		{"down four times", 4, down, 5, fault.Internal},
		{"down for good", 99, down, 5, fault.Unavailable},
		{"full", 99, full, 1, fault.Unavailable},
		{"refused", 99, fault.New(fault.Denied, "wrong key"), 1, fault.Denied},
		{"a bug", 99, errors.New("nil map"), 1, fault.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hook, calls := first(c.fails, memstore.OpPut, c.err)
			b := quick(memstore.Hooks{Before: hook})
			_, err := b.Put(t.Context(), "k", []byte("v"))
			if (err == nil) != (c.fails < int(c.calls)) || err != nil && (fault.KindOf(err) != c.kind || !errors.Is(err, c.err)) {
				t.Errorf("error %v of kind %v, want %v of kind %v", err, fault.KindOf(err), c.err, c.kind)
			}
			if calls.Load() != c.calls {
				t.Errorf("%d attempts, want %d", calls.Load(), c.calls)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "put(b/k): ") {
				t.Errorf("the error does not name the call: %v", err)
			}
		})
	}
}

// TestPauses: the waits between attempts grow, heed Retry-After, and end with
// the caller's context.
func TestPauses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		err      error
		timeout  time.Duration
		min, max time.Duration
	}{
		{"default", down, time.Hour, 375 * time.Millisecond, 1125 * time.Millisecond}, // 50+100+200+400 ms, each off by up to half
		{"retry after 2 s", &fault.Error{Kind: fault.Unavailable, Msg: "busy", RetryAfter: 2 * time.Second}, time.Hour, 8 * time.Second, 8 * time.Second},
		{"retry after an hour", &fault.Error{Kind: fault.Unavailable, Msg: "busy", RetryAfter: time.Hour}, 24 * time.Hour, 20 * time.Second, 20 * time.Second},
		{"caller gives up", down, 60 * time.Millisecond, 60 * time.Millisecond, 60 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hook, _ := first(99, memstore.OpHead, c.err)
				b := objstore.NewBucket("b", memstore.NewWith(memstore.Hooks{Before: hook}))
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				began := time.Now()
				_, err := b.Head(ctx, "k")
				if took := time.Since(began); took < c.min || took > c.max {
					t.Errorf("took %v, want %v to %v", took, c.min, c.max)
				}
				if !fault.Is(err, fault.Unavailable) || !errors.Is(err, c.err) {
					t.Errorf("error %v of kind %v", err, fault.KindOf(err))
				}
			})
		})
	}
}

// TestSlowStore: an attempt that is not answered in time is tried again.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		b := objstore.NewBucket("b", memstore.NewWith(memstore.Hooks{Before: func(ctx context.Context, c memstore.Call) error {
			if calls.Add(1) > 2 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}), objstore.WithTimeout(time.Second))
		if _, err := b.Create(t.Context(), "k", []byte("v")); err != nil || calls.Load() != 3 {
			t.Errorf("%d attempts, error %v", calls.Load(), err)
		}
	})
}

// TestLostAnswer: a write whose answer is lost stands, and the writer learns
// whether it is its own.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(context.Context, *objstore.Bucket) (objstore.Info, error){
		"create": func(ctx context.Context, b *objstore.Bucket) (objstore.Info, error) {
			return b.Create(ctx, "k", []byte("mine"))
		},
		"create from a seeker": func(ctx context.Context, b *objstore.Bucket) (objstore.Info, error) {
			r := strings.NewReader("not mine")
			if _, err := r.Seek(4, io.SeekStart); err != nil {
				return objstore.Info{}, err
			}
			return b.CreateReader(ctx, "k", r, -1)
		},
		"replace": func(ctx context.Context, b *objstore.Bucket) (objstore.Info, error) {
			old, err := b.Put(ctx, "k", []byte("old"))
			if err != nil {
				return old, err
			}
			return b.Replace(ctx, "k", []byte("mine"), old.ETag)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lose, _ := first(2, memstore.OpPut, down)
			b := quick(memstore.Hooks{After: func(ctx context.Context, c memstore.Call) error {
				if !c.Cond.Create && c.Cond.IfMatch == "" {
					return nil
				}
				return lose(ctx, c)
			}})
			info, err := write(t.Context(), b)
			if err != nil {
				t.Fatalf("its own earlier attempt is taken for another's: %v", err)
			}
			got, head, err := b.ReadAll(t.Context(), "k", 100)
			if err != nil || string(got) != "mine" || head != info {
				t.Errorf("holds %q, %+v, %v; answered %+v", got, head, err, info)
			}
		})
	}
}

// TestLostRace: another's bytes are a lost race, also after a lost answer; and
// equal bytes that were there before are one too.
func TestLostRace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		theirs string
		fails  int
	}{"other bytes": {"theirs", 1}, "longer": {"mine and more", 1}, "equal bytes, answered at once": {"mine", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook, _ := first(c.fails, memstore.OpPut, down)
			d := memstore.NewWith(memstore.Hooks{Before: func(ctx context.Context, call memstore.Call) error {
				if !call.Cond.Create {
					return nil
				}
				return hook(ctx, call)
			}})
			b := objstore.NewBucket("b", d, objstore.WithRetry(5, time.Microsecond))
			if _, err := b.Put(t.Context(), "k", []byte(c.theirs)); err != nil {
				t.Fatal(err)
			}
			_, err := b.Create(t.Context(), "k", []byte("mine"))
			if !errors.Is(err, objstore.ErrPrecondition) || !fault.Is(err, fault.Conflict) {
				t.Errorf("error %v of kind %v", err, fault.KindOf(err))
			}
			if got, _, err := b.ReadAll(t.Context(), "k", 100); err != nil || string(got) != c.theirs {
				t.Errorf("holds %q, %v", got, err)
			}
		})
	}
}

// TestStreamIsTriedOnce: a reader that cannot seek cannot be sent again.
func TestStreamIsTriedOnce(t *testing.T) {
	t.Parallel()
	hook, calls := first(1, memstore.OpPut, down)
	b := quick(memstore.Hooks{Before: hook})
	if _, err := b.PutReader(t.Context(), "k", io.MultiReader(strings.NewReader("v")), 1); !fault.Is(err, fault.Unavailable) || calls.Load() != 1 {
		t.Errorf("%d attempts, error %v", calls.Load(), err)
	}
}

func TestReadAllIsBounded(t *testing.T) {
	t.Parallel()
	b := quick(memstore.Hooks{})
	if _, err := b.Put(t.Context(), "k", bytes.Repeat([]byte("x"), 100)); err != nil {
		t.Fatal(err)
	}
	if got, _, err := b.ReadAll(t.Context(), "k", 100); err != nil || len(got) != 100 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, _, err := b.ReadAll(t.Context(), "k", 99); !fault.Is(err, fault.Invalid) {
		t.Errorf("99 of 100 bytes: %v", err)
	}
	if _, _, err := b.ReadAll(t.Context(), "none", 99); !errors.Is(err, objstore.ErrNotFound) || !fault.Is(err, fault.NotFound) {
		t.Errorf("nothing: %v", err)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	hook, calls := first(1, memstore.OpList, down)
	b := objstore.NewBucket("b", memstore.NewWith(memstore.Hooks{Before: hook}), objstore.WithPage(3), objstore.WithRetry(5, time.Microsecond))
	var want []string
	for i := range 10 {
		key := fmt.Sprintf("log/%02d", i)
		want = append(want, key)
		if _, err := b.Put(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for info, err := range b.List(t.Context(), "log/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if diff := cmp.Diff(want, got); diff != "" || calls.Load() != 5 {
		t.Errorf("%d calls, (-want +got):\n%s", calls.Load(), diff)
	}
	got = nil
	for info, err := range b.ListAfter(t.Context(), "log/", "log/06") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, info.Key); len(got) == 2 {
			break
		}
	}
	if diff := cmp.Diff([]string{"log/07", "log/08"}, got); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
}

func TestProveRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    objstore.Driver
		kind fault.Kind
	}{
		"ignores all conditions":       {memstore.NewWith(memstore.Hooks{IgnoreConditions: true}), fault.Invalid},
		"ignores If-Match":             {&lax{Driver: memstore.New(), ifMatch: true}, fault.Invalid},
		"checks, then writes":          {&lax{Driver: memstore.New(), racy: true}, fault.Invalid},
		"is down":                      {memstore.NewWith(memstore.Hooks{Before: func(context.Context, memstore.Call) error { return down }}), fault.Unavailable},
		"refuses every write as a 412": {&lax{Driver: memstore.New(), never: true}, fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := objstore.NewBucket("b", c.d, objstore.WithRetry(2, time.Microsecond))
			err := b.Prove(t.Context())
			if !fault.Is(err, c.kind) {
				t.Fatalf("the proof says %v (kind %v), want kind %v", err, fault.KindOf(err), c.kind)
			}
			if c.kind == fault.Invalid && fault.HintOf(err) == "" {
				t.Errorf("no hint: %v", err)
			}
			if c.kind == fault.Invalid {
				for info := range b.List(t.Context(), "") {
					t.Errorf("the proof left %s", info.Key)
				}
			}
		})
	}
}

// lax is a store whose conditions fail in one way.
type lax struct {
	objstore.Driver
	ifMatch, racy, never bool
	mu                   sync.Mutex
	checked              map[string]int // by key
}

func (l *lax) Put(ctx context.Context, key string, r io.Reader, size int64, cond objstore.Condition) (objstore.Info, error) {
	switch {
	case l.never:
		return objstore.Info{}, fault.As(fault.Conflict, objstore.ErrPrecondition)
	case l.ifMatch && cond.IfMatch != "":
		cond = objstore.Condition{}
	case l.racy && cond.Create:
		// Checks first; the write comes when another has checked the same key.
		if _, err := l.Head(ctx, key); err == nil {
			return objstore.Info{}, fault.As(fault.Conflict, objstore.ErrPrecondition)
		}
		l.mu.Lock()
		if l.checked == nil {
			l.checked = map[string]int{}
		}
		l.checked[key]++
		l.mu.Unlock()
		for range 1000 {
			time.Sleep(10 * time.Microsecond)
			l.mu.Lock()
			n := l.checked[key]
			l.mu.Unlock()
			if n >= 2 {
				break
			}
		}
		cond = objstore.Condition{}
	}
	return l.Driver.Put(ctx, key, r, size, cond)
}

func TestValidKey(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{
		"a": true, "a/b.jsonl": true, "日本/é": true, "...": true, ".hidden": true, "a b+c%20": true, strings.Repeat("k", 1024): true,
		"": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/../b": false, "a/./b": false,
		"a\x00": false, "a\nb": false, "a\x7f": false, "\xff": false, "a\ufffeb": false, strings.Repeat("k", 1025): false,
	} {
		err := objstore.ValidKey(key)
		if (err == nil) != ok || err != nil && (!fault.Is(err, fault.Invalid) || fault.HintOf(err) == "") {
			t.Errorf("ValidKey(%.20q) = %v, want valid %t", key, err, ok)
		}
		b := quick(memstore.Hooks{})
		if _, err := b.Put(t.Context(), key, nil); (err == nil) != ok {
			t.Errorf("Put(%.20q) = %v, want valid %t", key, err, ok)
		}
	}
}
