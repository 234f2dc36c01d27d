package endpoint

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mneme-ai/mneme/shared/fault"
)

// send is attempts until one succeeds, one fails for good, or they are used up.
func (c *Client) send(ctx context.Context, class Class, method string, u *url.URL, body []byte) (answer, error) {
	if !c.same(u) {
		return answer{}, fault.At(fault.Internal, c.c.Name, "", "a request to another place than the endpoint's own was stopped")
	}
	pauses := backoff.NewExponentialBackOff() // each pause is off by up to half
	pauses.InitialInterval, pauses.Multiplier, pauses.MaxInterval = c.c.FirstPause, 2, c.c.MaxPause
	var last error
	ran := false // by one of the attempts
	a, err := backoff.Retry(ctx, func() (answer, error) {
		a, again, err := c.attempt(ctx, class, method, u, body)
		if last = err; err == nil {
			return a, nil
		}
		ran = ran || !NotRun(err)
		wait := fault.RetryAfterOf(err)
		switch {
		case !again || wait > c.c.MaxPause:
			return a, backoff.Permanent(err)
		case wait > 0:
			return a, &backoff.RetryAfterError{Duration: wait}
		}
		return a, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(uint(c.c.MaxRetries)+1), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil:
		last = c.gaveUp(ctx)
	}
	if e, ok := errors.AsType[notRun](last); ok && ran {
		last = e.error
	} else if !ok && !ran {
		last = notRun{last} // given up between two attempts
	}
	return answer{}, last
}

// retryAfter is how long a server asks to wait: seconds or a date (RFC 9110
// 10.2.3), 0 when it does not say or the moment has passed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	const longest = 24 * time.Hour // a limit by the day; more is a mistake
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if !(s > 0) {
			return 0
		}
		return time.Duration(min(s, longest.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), longest)
}
