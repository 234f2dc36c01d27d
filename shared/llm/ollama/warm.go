package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
)

// Warm loads a model with a window, in tokens (0: the model's own), and waits
// for it. When ctx ends first its error is given and the load goes on, so that
// the next call finds it done.
func (c *Client) Warm(ctx context.Context, model string, window int) (err error) {
	defer fault.Wrap(&err, "warm(%s, %s)", c.ep.Name(), model)
	return c.wait(ctx, loadKey{"api/chat", model, window})
}

// ready is Warm where the model was not used of late.
func (c *Client) ready(ctx context.Context, key loadKey) error {
	c.mu.Lock()
	last, known := c.fresh[key.model]
	c.mu.Unlock()
	// A quarter of the time is kept for the call itself. A model that the server
	// has dropped before its time is loaded by the call, under that one's deadline.
	if known && last.key == key && (c.c.KeepAlive < 0 || time.Since(last.at) < c.c.KeepAlive-c.c.KeepAlive/4) {
		return nil
	}
	return c.wait(ctx, key)
}

func (c *Client) wait(ctx context.Context, key loadKey) error {
	c.mu.Lock()
	l := c.running[key]
	if l == nil {
		if c.closed {
			c.mu.Unlock()
			return fault.At(fault.Unavailable, c.ep.Name(), "", "the client is closed")
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		l = &load{cancel: cancel, done: make(chan struct{})}
		c.running[key] = l
		c.loads.Go(func() { c.load(own, key, l) })
	}
	c.mu.Unlock()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		err := ctx.Err()
		if cause := context.Cause(ctx); !errors.Is(cause, err) {
			err = errors.Join(err, cause)
		}
		return &fault.Error{Kind: fault.Unavailable, Where: c.ep.Name(), Msg: "given up while the model loads", Hint: "the load goes on; try again", Err: err}
	}
}

// load asks for nothing but the model in memory.
func (c *Client) load(ctx context.Context, key loadKey, l *load) {
	defer l.cancel()
	var err error
	var body []byte
	if key.path == "api/embed" {
		body, err = c.ep.Post(ctx, endpoint.Load, key.path, embedRequest{Model: key.model, Input: []string{}, KeepAlive: c.keepAlive(), Options: windowOption{key.window}})
	} else {
		body, err = c.ep.Post(ctx, endpoint.Load, key.path, chatRequest{Model: key.model, Messages: []message{}, KeepAlive: c.keepAlive(), Options: windowOption{key.window}})
	}
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	switch {
	case err != nil:
	case json.Unmarshal(body, &said) != nil: // a proxy's page
		err = c.ep.Unreadable("it is not the JSON of /" + key.path)
	case len(said.Error) > 0 && string(said.Error) != "null":
		err = c.ep.InBand(body, key.model)
	default:
		c.used(key)
	}
	c.mu.Lock()
	delete(c.running, key)
	c.mu.Unlock()
	l.err = err
	close(l.done)
}

func (c *Client) used(key loadKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh[key.model] = use{key, time.Now()}
}

// forget makes the next call load again after a failure that a server gives that
// was started anew, or is loading.
func (c *Client) forget(key loadKey, err error) {
	if fault.Is(err, fault.Unavailable) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.fresh, key.model)
	}
}
