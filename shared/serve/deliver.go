package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
)

// subscriber is one function's queue; the Broker's mutex guards it.
type subscriber struct {
	name      string
	types     map[event.Type]bool
	transport http.RoundTripper

	ready   sync.Cond                 // signalled when queue grows or the Broker ends
	queue   []*delivery               // first come, first served
	waiting map[string]*delivery      // by key: all that is not started, in queue or delayed
	delayed map[*delivery]*time.Timer // of those, the ones whose time has not come
	bytes   int64                     // of bodies in waiting
	active  map[string]bool           // by key: being delivered
}

// delivery is one event on its way to one subscriber.
type delivery struct {
	event    ce.Event
	body     []byte // structured form; shared between subscribers, never changed
	key      string
	attempts int
	backoff  *backoff.ExponentialBackOff
}

func (s *subscriber) push(d *delivery) {
	s.queue = append(s.queue, d)
	s.ready.Signal()
}

// pop takes out of the queue the first delivery whose like is not running, and
// nil if there is none. Two of one key never run at a time: the second would do
// the same work, and the count of a poison event would be kept twice. As keys
// in the queue differ, it passes over no more than run.
func (s *subscriber) pop() *delivery {
	for i, d := range s.queue {
		if s.active[d.key] {
			continue
		}
		copy(s.queue[1:i+1], s.queue[:i])
		s.queue[0] = nil // append moves to a new array in time and frees the old one
		s.queue = s.queue[1:]
		delete(s.waiting, d.key)
		s.bytes -= int64(len(d.body))
		s.active[d.key] = true
		return d
	}
	return nil
}

// later queues d, which is in waiting, after wait; b.mu is held.
func (b *Broker) later(s *subscriber, d *delivery, wait time.Duration) {
	s.delayed[d] = time.AfterFunc(wait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ok := s.delayed[d]; !ok {
			return // the Broker has ended
		}
		delete(s.delayed, d)
		s.push(d)
	})
}

// Run delivers until ctx ends or Close is called. Deliveries in flight then
// have DrainTimeout to end before their context does; what waits is abandoned
// and counted. A Broker runs once.
func (b *Broker) Run(ctx context.Context) error {
	b.mu.Lock()
	if b.running {
		b.mu.Unlock()
		return fault.New(fault.Internal, "broker: Run called twice")
	}
	b.running = true
	b.mu.Unlock()
	defer context.AfterFunc(ctx, b.end)()
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	var workers sync.WaitGroup
	for _, s := range b.subs {
		for range b.cfg.concurrency(s.name) {
			workers.Go(func() { b.work(base, s) })
		}
	}
	<-b.ended
	defer time.AfterFunc(b.cfg.DrainTimeout, func() {
		cut(fault.New(fault.Unavailable, "the process is stopping"))
	}).Stop()
	workers.Wait()
	if n := b.Stats().Abandoned; n > 0 {
		b.cfg.Logger.InfoContext(ctx, "events left for the sweep", KeyCount, n)
	}
	return nil
}

// Close waits until the Broker is idle, or ctx ends, and ends it. Events taken
// in meanwhile are delivered too. An error says that events were abandoned.
func (b *Broker) Close(ctx context.Context) error {
	err := b.WaitIdle(ctx)
	b.end()
	return err
}

// end stops intake and delivery, once.
func (b *Broker) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	close(b.ended)
	for _, s := range b.subs {
		b.stats.Abandoned += int64(len(s.waiting))
		for d, t := range s.delayed {
			t.Stop()
			delete(s.delayed, d)
		}
		clear(s.waiting)
		s.queue, s.bytes = nil, 0
		s.ready.Broadcast()
	}
}

// work delivers to s, one after the other, until the Broker ends.
func (b *Broker) work(base context.Context, s *subscriber) {
	for {
		b.mu.Lock()
		d := s.pop()
		for d == nil && !b.closed {
			s.ready.Wait()
			d = s.pop()
		}
		b.mu.Unlock()
		if d == nil {
			return
		}
		b.deliver(base, s, d)
	}
}

// deliver makes one attempt and settles what follows from it.
func (b *Broker) deliver(base context.Context, s *subscriber, d *delivery) {
	ctx := WithEvent(base, d.event)
	d.attempts++
	o := b.attempt(ctx, s, d)
	dead := o.verdict == refused || (o.verdict == again && d.attempts >= b.cfg.Attempts)
	kept := true
	if dead {
		kept = b.bury(ctx, Dead{Event: d.event, Subscriber: s.name, Attempts: d.attempts, Code: o.status, Data: o.data, Time: time.Now().UTC()})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(s.active, d.key)
	if s.waiting[d.key] != nil {
		s.ready.Signal() // an identical one may have been passed over
	}
	switch {
	case o.verdict == done:
		b.stats.Delivered++
	case dead:
		b.stats.Dead++
		if !kept {
			b.stats.DeadLost++
		}
	case b.closed:
		b.stats.Abandoned++
	default:
		b.stats.Retried++
		b.again(ctx, s, d, o)
	}
	b.settled()
}

// again puts d back to wait; b.mu is held. An identical event that came in
// meanwhile takes its place and its count, so that a poison event which is
// sent anew by every sweep still ends as a dead letter.
func (b *Broker) again(ctx context.Context, s *subscriber, d *delivery, o outcome) {
	if w := s.waiting[d.key]; w != nil {
		w.attempts = max(w.attempts, d.attempts)
		return
	}
	if d.backoff == nil {
		d.backoff = b.cfg.backoff()
	}
	wait := max(d.backoff.NextBackOff(), min(o.after, b.cfg.RetryAfterMax))
	b.cfg.Logger.DebugContext(ctx, "event will be delivered again", KeySubscriber, s.name, KeyAttempt, d.attempts, KeyStatus, o.status, KeyWait, wait)
	s.waiting[d.key] = d
	s.bytes += int64(len(d.body))
	b.later(s, d, wait)
}

// bury hands d to the dead letter callback until it has it.
func (b *Broker) bury(ctx context.Context, d Dead) bool {
	b.cfg.Logger.ErrorContext(ctx, "dead letter", KeySubscriber, d.Subscriber, KeyAttempt, d.Attempts, KeyStatus, d.Code, KeyError, d.Problem().Message, KeyHint, d.Problem().Hint)
	if b.cfg.DeadLetter == nil {
		return true
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, b.cfg.DeadLetter(ctx, d) },
		backoff.WithBackOff(b.cfg.backoff()), backoff.WithMaxTries(uint(b.cfg.Attempts)))
	if err != nil {
		b.cfg.Logger.ErrorContext(ctx, "dead letter is lost", KeySubscriber, d.Subscriber, KeyError, err.Error())
	}
	return err == nil
}

// verdict is what an answer means.
type verdict uint8

const (
	done    verdict = iota
	again           // deliver once more
	refused         // a dead letter at once
)

// outcome is what came of one attempt.
type outcome struct {
	verdict verdict
	status  int           // 0: no answer
	after   time.Duration // Retry-After; 0 when unsaid
	data    []byte        // of the answer
}

// attempt posts d to s and reads the answer as Knative's dispatcher does
// (eventing v0.50, pkg/kncloudevents).
func (b *Broker) attempt(ctx context.Context, s *subscriber, d *delivery) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.AttemptTimeout, fault.New(fault.Unavailable, "no answer in %v", b.cfg.AttemptTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.name+".mneme.internal/", bytes.NewReader(d.body))
	if err != nil {
		return outcome{verdict: refused, data: []byte(err.Error())} // the name is no host
	}
	req.Header.Set("Content-Type", ce.ApplicationCloudEventsJSON)
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return outcome{verdict: again, data: head([]byte(errors.Join(err, context.Cause(ctx)).Error()))}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxDeadData))
	if err != nil {
		return outcome{verdict: again, status: resp.StatusCode, data: head([]byte(err.Error()))}
	}
	o := outcome{status: resp.StatusCode, data: data}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300 && len(data) == 0:
	case code >= 200 && code < 300:
		o.verdict, o.status = again, http.StatusBadGateway
	case code >= 500, code == http.StatusNotFound, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests:
		o.verdict, o.after = again, parseRetryAfter(resp.Header.Get("Retry-After"))
	default:
		o.verdict = refused
	}
	return o
}

func head(b []byte) []byte { return b[:min(len(b), MaxDeadData)] }
