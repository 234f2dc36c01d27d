package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// flaky is both ports; err is what the next calls give.
type flaky struct {
	err   error
	calls int
}

func (f *flaky) Space() memory.Space { return memory.Space{ID: "s"} }

func (f *flaky) Embed(context.Context, []string) ([][]float32, error) {
	f.calls++
	return [][]float32{{1}}, f.err
}

func (f *flaky) Rerank(context.Context, string, string, []string) ([]float64, error) {
	f.calls++
	return []float64{1}, f.err
}

func TestResting(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.Unavailable, "down")
	for name, tc := range map[string]struct {
		err   error
		pause time.Duration // in which nothing is asked
	}{
		"down":            {down, 5 * time.Second},
		"late":            {fault.As(fault.Unavailable, context.DeadlineExceeded), 5 * time.Second},
		"full":            {&fault.Error{Kind: fault.Exhausted, RetryAfter: 20 * time.Second}, 20 * time.Second},
		"the caller left": {fault.As(fault.Unavailable, context.Canceled), 0},
		"a bad text":      {fault.New(fault.Invalid, "NaN"), 0},
		"the key":         {fault.New(fault.Denied, "401"), 0},
		"well":            {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for _, port := range []string{"embed", "rerank"} {
					f := &flaky{err: tc.err}
					e, r := llm.Resting(f, 5*time.Second), llm.RestingReranker(f, 5*time.Second)
					call := func() (int, error) {
						if port == "rerank" {
							v, err := r.Rerank(t.Context(), "m", "q", nil)
							return len(v), err
						}
						v, err := e.Embed(t.Context(), nil)
						return len(v), err
					}
					if _, err := call(); !errors.Is(err, tc.err) {
						t.Errorf("%s: %v", port, err)
					}
					f.err = nil
					n, err := call()
					if rests := tc.pause > 0; (f.calls == 1) != rests || (n == 0) != rests || rests && !errors.Is(err, tc.err) {
						t.Errorf("%s: %d calls, %d answers, %v", port, f.calls, n, err)
					}
					time.Sleep(max(tc.pause-time.Second, 0)) // of synctest's clock
					if _, err := call(); (err != nil) != (tc.pause > 0) {
						t.Errorf("%s: a second before its time: %v", port, err)
					}
					time.Sleep(time.Second)
					if n, err := call(); n != 1 || err != nil {
						t.Errorf("%s: after it: %d %v", port, n, err)
					}
				}
			})
		})
	}
	if llm.Resting(&flaky{}, 1).Space().ID != "s" {
		t.Error("another space")
	}
}
