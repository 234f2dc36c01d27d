package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
)

// BrokerConfig is how a Broker delivers. The zero value is usable.
type BrokerConfig struct {
	// Attempts is how often one event is delivered to one subscriber before it
	// is a dead letter. Default 11: Knative's shipped retry of 10, and the first.
	Attempts int
	// BackoffBase is the wait before the second attempt, doubled before each
	// later one up to BackoffMax; each wait is then varied by ±50 %. Defaults
	// 200 ms (Knative's PT0.2S) and 30 s, together about 110 s of patience.
	BackoffBase, BackoffMax time.Duration
	// RetryAfterMax caps what a Retry-After may ask for. Default 1 min, so that
	// one wrong answer cannot park an event.
	RetryAfterMax time.Duration
	// AttemptTimeout bounds one delivery. Default 290 s: over the handler's own
	// 280 s, under Knative's 300 s.
	AttemptTimeout time.Duration
	// Background names subscribers whose events nobody waits for: the Broker is idle
	// while they work.
	Background map[string]bool
	// Concurrency is how many deliveries to one subscriber run at a time, by
	// name, and under "" for every other. Default 4: two cores, and handlers
	// that wait for a disk or a model half of their time.
	Concurrency map[string]int
	// QueueEvents and QueueBytes bound what waits for one subscriber; past
	// either, Publish is Exhausted. Defaults 65,536 events and 64 MiB.
	QueueEvents int
	QueueBytes  int64
	// DeadLetter keeps what cannot be delivered. It is called again, with the
	// same waits, until it succeeds or Attempts is reached. nil: logged only.
	DeadLetter func(ctx context.Context, d Dead) error
	// DrainTimeout bounds the wait for deliveries in flight when Run ends.
	// Default 10 s: longer than a slice of work should take to be abandoned.
	DrainTimeout time.Duration
	// Chaos, in tests, loses, repeats and reorders events.
	Chaos *Chaos
	// Logger gets a line for each dead letter, and at debug level for each
	// redelivery. Default: none.
	Logger *slog.Logger
}

func (c BrokerConfig) withDefaults() BrokerConfig {
	c.Attempts = or(c.Attempts, 11)
	c.BackoffBase = or(c.BackoffBase, 200*time.Millisecond)
	c.BackoffMax = or(c.BackoffMax, 30*time.Second)
	c.RetryAfterMax = or(c.RetryAfterMax, time.Minute)
	c.AttemptTimeout = or(c.AttemptTimeout, 290*time.Second)
	c.QueueEvents = or(c.QueueEvents, 1<<16)
	c.QueueBytes = or(c.QueueBytes, 64<<20)
	c.DrainTimeout = or(c.DrainTimeout, 10*time.Second)
	c.Logger = orDiscard(c.Logger)
	return c
}

func (c *BrokerConfig) concurrency(name string) int {
	for _, k := range [...]string{name, ""} {
		if n := c.Concurrency[k]; n > 0 {
			return n
		}
	}
	return 4
}

func (c *BrokerConfig) backoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: c.BackoffBase, MaxInterval: c.BackoffMax, Multiplier: 2, RandomizationFactor: backoff.DefaultRandomizationFactor}
}

// Broker delivers events in this process over the HTTP handlers of the
// functions, by type, each event to each subscriber at least once. What waits
// is in memory alone: a process that ends forgets it, and the sweep finds the
// work again from the log.
type Broker struct {
	cfg BrokerConfig

	mu      sync.Mutex
	subs    []*subscriber
	chaos   *chaos
	running bool            // Run has been called
	closed  bool            // nothing is taken in or started any more
	ended   chan struct{}   // closed with `closed`
	idlers  []chan struct{} // closed when nothing waits or runs
	stats   Stats
}

// Stats counts what a Broker did since it was made.
type Stats struct {
	Published int64 // taken in
	Unrouted  int64 // taken in, of a type that nobody handles
	Coalesced int64 // (event, subscriber) that an identical waiting one took in
	Refused   int64 // not taken in, as a queue was full
	Delivered int64 // deliveries answered 2xx
	Retried   int64 // deliveries that will be repeated
	Dead      int64 // dead letters
	DeadLost  int64 // dead letters that could not be kept either
	Dropped   int64 // (event, subscriber) lost by Chaos
	Abandoned int64 // (event, subscriber) that waited when the Broker ended
	Waiting   int64 // now: queued, or waiting to be repeated
	Running   int64 // now: being delivered
}

// NewBroker makes a Broker; events wait until Run.
func NewBroker(cfg BrokerConfig) *Broker {
	return &Broker{cfg: cfg.withDefaults(), chaos: newChaos(cfg.Chaos), ended: make(chan struct{})}
}

// Subscribe delivers events of types to h under name; without types, those that
// event.Handlers gives name. It panics after Run or on a second use of a name:
// who handles what is fixed when the program is put together.
func (b *Broker) Subscribe(name string, h http.Handler, types ...event.Type) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running {
		panic("serve: Subscribe after Run")
	}
	s := &subscriber{name: name, transport: Local(h), waiting: map[string]*delivery{}, delayed: map[*delivery]*time.Timer{}, active: map[string]bool{}, types: map[event.Type]bool{}}
	s.ready.L = &b.mu
	for _, other := range b.subs {
		if other.name == name {
			panic("serve: two subscribers named " + strconv.Quote(name))
		}
	}
	if len(types) == 0 {
		types = handledBy(name)
	}
	for _, t := range types {
		s.types[t] = true
	}
	b.subs = append(b.subs, s)
}

// handledBy lists the types that must reach the function called name.
func handledBy(name string) []event.Type {
	var ts []event.Type
	for _, t := range event.Types() {
		for _, h := range event.Handlers(t) {
			if h == name {
				ts = append(ts, t)
			}
		}
	}
	return ts
}

// ServeHTTP is the ingress: it takes in one CloudEvent, structured or binary,
// and answers 202 when it waits for every subscriber.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeProblem(w, http.StatusMethodNotAllowed, 0, Problem{Code: fault.Invalid.String(), Message: "events are sent by POST"})
		return
	}
	e, err := receive(w, r, MaxEventBytes)
	if err == nil {
		err = b.Publish(r.Context(), e)
	}
	if err != nil {
		answerBroker(w, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// Publish takes e in for every subscriber of its type, or for none. It is
// Exhausted when a queue is full and Unavailable when the Broker has ended. It
// never waits for a delivery. e must not be changed afterwards.
func (b *Broker) Publish(_ context.Context, e ce.Event) error { return b.publish(e, "") }

// Redeliver sends a dead letter again to the one subscriber that refused it.
func (b *Broker) Redeliver(_ context.Context, d Dead) error { return b.publish(d.Event, d.Subscriber) }

func (b *Broker) publish(e ce.Event, only string) error {
	if err := e.Validate(); err != nil {
		return fault.At(fault.Invalid, "event", "", "%v", err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fault.At(fault.Invalid, "event", "", "%v", err)
	}
	t := event.Type(e.Type())
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fault.New(fault.Unavailable, "the broker has ended")
	}
	var to []*subscriber
	for _, s := range b.subs {
		if only == s.name || (only == "" && s.types[t]) {
			to = append(to, s)
		}
	}
	if only != "" && len(to) == 0 {
		return fault.New(fault.Invalid, "no function named %q", only)
	}
	copies := 1
	if b.chaos.touches(t) {
		copies = b.chaos.copies()
	}
	for _, s := range to {
		if s.waiting[keyOf(e)] == nil && (len(s.waiting)+copies > b.cfg.QueueEvents || s.bytes+int64(copies*len(body)) > b.cfg.QueueBytes) {
			b.stats.Refused++
			return &fault.Error{Kind: fault.Exhausted, Msg: "the queue of " + s.name + " is full", RetryAfter: defaultRetryAfter}
		}
	}
	b.stats.Published++
	if len(to) == 0 {
		b.stats.Unrouted++
	}
	for _, s := range to {
		b.admit(s, e, body, copies)
	}
	return nil
}

// admit puts e into the queue of s, as Chaos wants it.
func (b *Broker) admit(s *subscriber, e ce.Event, body []byte, copies int) {
	key := keyOf(e)
	if s.waiting[key] != nil {
		b.stats.Coalesced++
		return
	}
	touched := b.chaos.touches(event.Type(e.Type()))
	if touched && b.chaos.drops(s.name) {
		b.stats.Dropped++
		if b.chaos.Dropped != nil {
			b.chaos.Dropped(s.name, e)
		}
		return
	}
	for i := range copies {
		d := &delivery{event: e, body: body, key: key}
		if i > 0 {
			d.key += "#" + strconv.Itoa(i)
			if s.waiting[d.key] != nil {
				continue
			}
		}
		s.waiting[d.key] = d
		s.bytes += int64(len(body))
		if wait := b.delay(touched); wait > 0 {
			b.later(s, d, wait)
		} else {
			s.push(d)
		}
	}
}

func (b *Broker) delay(touched bool) time.Duration {
	if !touched {
		return 0
	}
	return b.chaos.delay()
}

// keyOf is what makes two waiting events one. A sweep that waits will see all
// that a later one could, so sweeps of a tenant are one whatever their time.
func keyOf(e ce.Event) string {
	id := e.ID()
	if event.Type(e.Type()) == event.SweepRequested {
		id = e.Subject()
	}
	return e.Type() + "\x00" + e.Source() + "\x00" + id
}

// Stats counts.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.stats
	for _, s := range b.subs {
		st.Waiting += int64(len(s.waiting))
		st.Running += int64(len(s.active))
	}
	return st
}

// Idle reports whether no event waits, for its turn or to be repeated, and none
// is being delivered.
func (b *Broker) Idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.idle()
}

func (b *Broker) idle() bool {
	for _, s := range b.subs {
		if len(s.waiting)+len(s.active) > 0 && !b.cfg.Background[s.name] {
			return false
		}
	}
	return true
}

// WaitIdle returns when the Broker is idle or has ended.
func (b *Broker) WaitIdle(ctx context.Context) error {
	b.mu.Lock()
	if b.idle() || b.closed {
		b.mu.Unlock()
		return nil
	}
	c := make(chan struct{})
	b.idlers = append(b.idlers, c)
	b.mu.Unlock()
	select {
	case <-c:
		return nil
	case <-b.ended:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "events are still in flight: %v", context.Cause(ctx))
	}
}

// settled wakes who waits for idleness; b.mu is held.
func (b *Broker) settled() {
	if len(b.idlers) == 0 || !b.idle() {
		return
	}
	for _, c := range b.idlers {
		close(c)
	}
	b.idlers = nil
}
