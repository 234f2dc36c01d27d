package serve

import (
	"math/rand/v2"
	"slices"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
)

// Chaos makes a Broker as unkind as a real one may be, for tests: what must be
// equal without it must be equal under it. It touches each (event, subscriber)
// when it is taken in, not redeliveries.
type Chaos struct {
	// Seed of the random numbers; equal seeds draw equal numbers.
	Seed uint64
	// Duplicate delivers every event this many times; 0 and 1 mean once.
	Duplicate int
	// Shuffle makes every delivery wait a random time in [0, Shuffle), so that
	// events closer together than that come in any order. 0 keeps the order.
	Shuffle time.Duration
	// Drop loses one of every Drop events of a subscriber, all copies of it. Its
	// place among the Drop is drawn anew each time, so that no rhythm of the
	// senders loses the same event for ever. 0 drops none.
	Drop int
	// Spare lists types that are left alone. Default: object.created, as the
	// order of admission is what an upload's order decides.
	Spare []event.Type
	// Dropped, when set, is told of every event dropped. It must not call the
	// Broker.
	Dropped func(subscriber string, e ce.Event)
}

// chaos is a Chaos at work; the Broker's mutex guards it.
type chaos struct {
	Chaos
	rng    *rand.Rand
	blocks map[string]*block // by subscriber
}

// block is the present run of Drop events, of which the one at `lose` is lost.
type block struct{ seen, lose int }

func newChaos(c *Chaos) *chaos {
	if c == nil {
		return nil
	}
	x := &chaos{Chaos: *c, rng: rand.New(rand.NewPCG(c.Seed, c.Seed)), blocks: map[string]*block{}}
	if x.Spare == nil {
		x.Spare = []event.Type{event.ObjectCreated}
	}
	return x
}

// touches reports whether events of type t are fair game.
func (c *chaos) touches(t event.Type) bool { return c != nil && !slices.Contains(c.Spare, t) }

// drops counts one event of subscriber and reports whether it is lost.
func (c *chaos) drops(subscriber string) bool {
	if c.Drop <= 0 {
		return false
	}
	b := c.blocks[subscriber]
	if b == nil || b.seen == c.Drop {
		b = &block{lose: c.rng.IntN(c.Drop)}
		c.blocks[subscriber] = b
	}
	b.seen++
	return b.seen-1 == b.lose
}

func (c *chaos) copies() int { return max(1, c.Duplicate) }

func (c *chaos) delay() time.Duration {
	if c.Shuffle <= 0 {
		return 0
	}
	return time.Duration(c.rng.Int64N(int64(c.Shuffle)))
}
