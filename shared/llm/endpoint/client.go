package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Class is a kind of call; each has its deadline.
type Class uint8

const (
	Chat Class = iota
	Embed
	Load
	Probe
)

// Client sends requests to one endpoint. It is safe for concurrent use.
type Client struct {
	c     Config
	base  *url.URL
	slots chan struct{} // one for each call in flight
	trip  http.RoundTripper
	check func(netip.Addr) error
}

// Open makes the client. It sends nothing.
func Open(c Config) (*Client, error) {
	c, base, err := c.resolved()
	if err != nil {
		return nil, err
	}
	cl := &Client{c: c, base: base, slots: make(chan struct{}, c.InFlight), check: refused}
	if c.Loopback {
		cl.check = elsewhere
	}
	cl.trip = newTransport(func(a netip.Addr) error { return cl.check(a) }, c.InFlight)
	return cl, nil
}

// Name is the endpoint's name.
func (c *Client) Name() string { return c.c.Name }

// Kind is the form that it speaks.
func (c *Client) Kind() Kind { return c.c.Kind }

// Base is the base URL, with a closing slash. It holds no key.
func (c *Client) Base() string { return c.base.String() }

// HTTP is the client as an *http.Client for calls of one class, for a library
// that wants one. What it answers is always 2xx and read whole; everything else
// is an error, see Fault.
func (c *Client) HTTP(class Class) *http.Client {
	return &http.Client{
		Transport:     tripper{c, class},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type tripper struct {
	c     *Client
	class Class
}

func (t tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	a, err := t.c.send(req.Context(), t.class, req.Method, req.URL, body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}, nil
}

// Post sends in as JSON to a path below the base URL and gives the answer's body.
func (c *Client) Post(ctx context.Context, class Class, path string, in any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // a prompt is full of <tags>
	if err := enc.Encode(in); err != nil {
		return nil, fault.New(fault.Internal, "the request to %s cannot be written as JSON", path)
	}
	a, err := c.send(ctx, class, http.MethodPost, c.base.JoinPath(path), buf.Bytes())
	return a.body, err
}

// Get gives the body of a path below the base URL.
func (c *Client) Get(ctx context.Context, class Class, path string) ([]byte, error) {
	a, err := c.send(ctx, class, http.MethodGet, c.base.JoinPath(path), nil)
	return a.body, err
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (c *Client) timeout(class Class) time.Duration {
	switch class {
	case Embed:
		return c.c.Embed
	case Load:
		return c.c.Load
	case Probe:
		return c.c.Probe
	}
	return c.c.Chat
}

// same reports whether u is at the endpoint: scheme, host and port.
func (c *Client) same(u *url.URL) bool {
	return u.Scheme == c.base.Scheme && strings.EqualFold(u.Host, c.base.Host) && u.User == nil
}

var (
	errDeadline = errors.New("deadline of the attempt")
	errStall    = errors.New("silence inside an answer")
)

// attempt is one request and its whole answer; again says that the same request
// may be sent once more. An error that is notRun came before the model was.
func (c *Client) attempt(ctx context.Context, class Class, method string, u *url.URL, body []byte) (_ answer, again bool, _ error) {
	if err := ctx.Err(); err != nil {
		return answer{}, false, notRun{c.gaveUp(ctx)}
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return answer{}, false, notRun{c.gaveUp(ctx)}
	}
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(c.timeout(class), func() { cancel(errDeadline) }).Stop()

	req, err := http.NewRequestWithContext(own, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, false, fault.New(fault.Internal, "the request to %s cannot be made", c.c.Name)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mneme")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	switch c.c.Auth {
	case Bearer:
		req.Header.Set("Authorization", "Bearer "+c.c.Key.value)
	case APIKey:
		req.Header.Set("apikey", c.c.Key.value)
	}
	resp, err := c.trip.RoundTrip(req)
	if err != nil {
		if e := c.ended(ctx, own, class); e != nil {
			return answer{}, false, e
		}
		e, again := c.unreached(err)
		return answer{}, again, e
	}
	defer resp.Body.Close()
	data, err := c.read(resp.Body, c.most(class), cancel)
	if err != nil {
		if e := c.ended(ctx, own, class); e != nil {
			return answer{}, false, e
		}
		return answer{}, false, err
	}
	if resp.StatusCode/100 != 2 {
		e, again := c.judge(resp.StatusCode, resp.Header, data, modelOf(body))
		return answer{}, again, notRun{marked(e)}
	}
	return answer{resp.StatusCode, resp.Header, data}, false, nil
}

// chatBytes bounds the answer of a chat: replies are of 2,048 tokens at the most, each
// with ten alternatives of some 130 bytes where log-probabilities are asked for, which
// is 3 MiB; a thought of as many again fits too. A server that ignores the bound of a
// reply must not fill the memory.
const chatBytes = 8 << 20

// most is how many bytes an answer may have.
func (c *Client) most(class Class) int64 {
	if class == Chat {
		return min(c.c.MaxBodyBytes, chatBytes)
	}
	return c.c.MaxBodyBytes
}

// read takes the body whole, up to most, and ends the attempt when it falls
// silent. Until its first byte the server thinks, also one that has sent headers.
func (c *Client) read(r io.Reader, most int64, cancel context.CancelCauseFunc) ([]byte, error) {
	silence := time.AfterFunc(math.MaxInt64, func() { cancel(errStall) })
	defer silence.Stop()
	var out bytes.Buffer
	buf := make([]byte, 32<<10) // io.Copy's
	for {
		n, err := r.Read(buf)
		if n > 0 {
			silence.Reset(c.c.Stall)
			out.Write(buf[:n])
		}
		switch {
		case int64(out.Len()) > most:
			return nil, fault.At(fault.Unavailable, c.c.Name, "", "the answer has more than %d bytes", most)
		case err == io.EOF:
			return out.Bytes(), nil
		case err != nil:
			return nil, fault.At(fault.Unavailable, c.c.Name, "", "the answer broke off after %d bytes", out.Len())
		}
	}
}

// ended is the error of an attempt that its caller, its deadline or a silence
// has ended; nil when none has.
func (c *Client) ended(ctx, own context.Context, class Class) error {
	switch cause := context.Cause(own); {
	case ctx.Err() != nil:
		return c.gaveUp(ctx)
	case errors.Is(cause, errDeadline):
		return fault.At(fault.Unavailable, c.c.Name, "a model that is still loading needs a longer first call; a slow one a longer timeout or a smaller prompt",
			"no whole answer within %s", c.timeout(class))
	case errors.Is(cause, errStall):
		return fault.At(fault.Unavailable, c.c.Name, "look at the server's log", "the answer fell silent for %s", c.c.Stall)
	}
	return nil
}

// gaveUp is the error of a caller whose context has ended: errors.Is finds the
// context's error and its cause.
func (c *Client) gaveUp(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &fault.Error{Kind: fault.Unavailable, Where: c.c.Name, Msg: "given up", Err: err}
}

// modelOf is the model that a request names; empty when none.
func modelOf(body []byte) string {
	var named struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(body, &named) != nil {
		return ""
	}
	return named.Model
}
