package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/fault"
)

// send posts every event to the broker, in order, and returns at the first that
// was not accepted. Those before it stay sent: the handler runs again, and its
// events have the same ids.
func (s *Service) send(ctx context.Context, cause ce.Event, out []ce.Event) (err error) {
	for i := range out {
		e := out[i].Clone() // a plain copy shares its extensions with the handler's own
		carry(&e, cause)
		for k, v := range s.cfg.Extensions {
			e.SetExtension(k, v)
		}
		if err := s.post(ctx, e); err != nil {
			return fmt.Errorf("send %s (%d of %d): %w", e.Type(), i+1, len(out), err)
		}
	}
	return nil
}

// post sends e structured: in binary mode a subject (an object key) would stand
// in a header, which cannot hold every key.
func (s *Service) post(ctx context.Context, e ce.Event) error {
	if err := e.Validate(); err != nil {
		return fault.New(fault.Internal, "event returned by %s: %v", s.f.Name(), err)
	}
	if s.cfg.Sink == "" {
		return fault.New(fault.Internal, "no sink for the event that %s returned", s.f.Name())
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fault.New(fault.Internal, "encode event: %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.SinkTimeout, fault.New(fault.Unavailable, "broker gave no answer in %v", s.cfg.SinkTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.Sink, bytes.NewReader(body))
	if err != nil {
		return fault.New(fault.Internal, "sink: %v", err)
	}
	req.Header.Set("Content-Type", ce.ApplicationCloudEventsJSON)
	resp, err := s.cfg.Client.Do(req)
	if err != nil {
		return fault.New(fault.Unavailable, "broker: %v", or(context.Cause(ctx), err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection is used again
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests:
		return &fault.Error{Kind: fault.Exhausted, Msg: "broker sheds load", RetryAfter: parseRetryAfter(resp.Header.Get("Retry-After"))}
	default:
		// A refusal is no fault of the event being handled: it is tried again,
		// and becomes a dead letter when the bound is reached.
		return fault.New(fault.Unavailable, "broker answered %d", resp.StatusCode)
	}
}

// parseRetryAfter reads seconds or an HTTP date; 0 when there is neither.
func parseRetryAfter(s string) time.Duration {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return max(0, time.Duration(n)*time.Second)
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}
