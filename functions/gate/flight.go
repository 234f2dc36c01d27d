package gate

import (
	"context"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
)

// flights are the calls of models under way. A call may take longer than the event
// that asks for it is given, some minutes on a machine without a graphics card: it goes
// on when the event ends, and the next delivery finds it, or its answer. Else such a
// call would be begun again and again, and never end.
type flights struct {
	stop context.CancelFunc
	ctx  context.Context // of the process: the only context that outlives a call here
	all  sync.WaitGroup

	mu  sync.Mutex
	now map[heldKey]*flight
}

// flight is one call.
type flight struct {
	done chan struct{} // closed when a and err are there
	a    answer
	err  error
}

func newFlights() *flights {
	f := &flights{now: map[heldKey]*flight{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// stillFlying is how soon an event whose time is over is to come again.
const stillFlying = time.Second

// fly makes a call, or joins the one that is under way, and waits for it as long as ctx
// lasts.
func (f *Function) fly(ctx context.Context, w *writer, m *Models, c *gru.Call, key heldKey) (answer, error) {
	fs := f.flights
	fs.mu.Lock()
	fl, ok := fs.now[key]
	if !ok {
		fl = &flight{done: make(chan struct{})}
		fs.now[key] = fl
		ledger := w.ledger
		fs.all.Go(func() {
			fl.a, fl.err = f.call(fs.ctx, ledger, m, c)
			if fl.err == nil && fl.a.kept() {
				f.answered.Add(key, fl.a)
			}
			fs.mu.Lock()
			delete(fs.now, key)
			fs.mu.Unlock()
			close(fl.done)
		})
	}
	fs.mu.Unlock()
	select {
	case <-fl.done:
		return fl.a, fl.err
	case <-ctx.Done():
		return answer{}, &fault.Error{Kind: fault.Unavailable, Where: "model " + c.Model, Msg: "it has not answered yet; the call goes on", RetryAfter: stillFlying, Err: context.Cause(ctx)}
	}
}

// Close gives up the calls under way and waits for their ends.
func (f *Function) Close() error {
	f.flights.stop()
	f.flights.all.Wait()
	return nil
}
