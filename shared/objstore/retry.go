package objstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mneme-ai/mneme/shared/fault"
)

// retryPolicy bounds the attempts of one call.
type retryPolicy struct {
	tries      uint
	firstPause time.Duration
	timeout    time.Duration // of one attempt; 0: the caller's alone
}

// defaultRetry rides out a server that restarts or sheds load for about a
// second (pauses of about 50, 100, 200 and 400 ms, each off by up to half) and
// leaves longer outages to the broker, which retries the whole event.
var defaultRetry = retryPolicy{tries: 5, firstPause: 50 * time.Millisecond, timeout: 30 * time.Second}

// maxPause bounds one pause, a server's Retry-After included: beyond it the
// broker's own retry is the better waiter.
const maxPause = 5 * time.Second

// streaming is p without the deadline of one attempt: a body may take as long
// as its caller allows.
func (p retryPolicy) streaming() retryPolicy {
	p.timeout = 0
	return p
}

// errAttempt is the cause of an attempt's own deadline.
var errAttempt = errors.New("the store did not answer in time")

// try calls op until it succeeds, fails for good, or p is used up. Only
// fault.Unavailable is tried again, and not a full store.
func try[T any](ctx context.Context, p retryPolicy, op func(context.Context) (T, error)) (T, error) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.Multiplier, pauses.MaxInterval = p.firstPause, 2, maxPause
	var last error // of the last attempt, without what it tells backoff
	res, err := backoff.Retry(ctx, func() (T, error) {
		var res T
		res, last = attempt(ctx, p.timeout, op)
		switch wait := fault.RetryAfterOf(last); {
		case last == nil:
			return res, nil
		case !fault.Is(last, fault.Unavailable) || errors.Is(last, ErrFull) || ctx.Err() != nil:
			return res, backoff.Permanent(last)
		case wait > 0:
			return res, &backoff.RetryAfterError{Duration: min(wait, maxPause)}
		}
		return res, last
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(p.tries), backoff.WithMaxElapsedTime(0))
	if err == nil {
		return res, nil
	}
	var zero T
	if ctx.Err() != nil && !errors.Is(last, context.Cause(ctx)) {
		last = fmt.Errorf("%w: %w", context.Cause(ctx), last)
	}
	if ctx.Err() != nil {
		last = fault.As(fault.Unavailable, last)
	}
	return zero, last
}

// attempt is one call of op under its own deadline.
func attempt[T any](ctx context.Context, timeout time.Duration, op func(context.Context) (T, error)) (T, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errAttempt)
		defer cancel()
	}
	res, err := op(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errAttempt) {
		err = fault.As(fault.Unavailable, fmt.Errorf("%w (%s): %w", errAttempt, timeout, err))
	}
	return res, err
}
