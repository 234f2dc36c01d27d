package serve_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
)

// pipes is a listener without sockets, so that a server runs under synctest.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (p *pipes) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		select {
		case p.conns <- a:
			return b, nil
		case <-p.done:
			return nil, net.ErrClosed
		}
	}}}
}

func post(t *testing.T, c *http.Client, e ce.Event) (int, string) {
	t.Helper()
	r := structured(t, e)
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", "function.test"
	resp, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// func-go's own write timeout of 30 s gives the client EOF after 32 s of work
// that is done all the same. Here the handler's deadline alone decides.
func TestLongHandlers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		work time.Duration
		cfg  serve.Config
		want int
	}{
		{"32 s", 32 * time.Second, serve.Config{}, 204},
		{"just in time", 279 * time.Second, serve.Config{}, 204},
		{"out of time", time.Hour, serve.Config{}, 503},
		{"out of its own time", time.Hour, serve.Config{HandlerTimeout: 20 * time.Minute}, 503},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fn{handle: func(ctx context.Context, _ ce.Event) ([]ce.Event, error) {
					select {
					case <-time.After(tc.work):
						return nil, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}}
				l := newPipes()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- serve.New(f, tc.cfg).Serve(ctx, l) }()
				synctest.Wait()
				began := time.Now()
				got, body := post(t, l.client(), part(1))
				if got != tc.want {
					t.Errorf("status %d after %v: %s", got, time.Since(began), body)
				}
				if limit := tc.cfg.HandlerTimeout; got == 503 && limit > 0 && time.Since(began) != limit {
					t.Errorf("answered after %v, want %v", time.Since(began), limit)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The end of serving: no new connection, calls in flight end, then Stop runs.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		work    time.Duration
		want    int
		wantErr bool
	}{
		{"in flight ends", 40 * time.Second, 204, false},
		{"in flight is cut at the limit", time.Hour, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &hooked{gate: make(chan struct{}), stopped: make(chan struct{})}
				close(f.gate)
				inHandler := make(chan struct{})
				f.handle = func(ctx context.Context, _ ce.Event) ([]ce.Event, error) {
					close(inHandler)
					select {
					case <-time.After(tc.work):
						return nil, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				l := newPipes()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- serve.New(f, serve.Config{DrainTimeout: time.Minute}).Serve(ctx, l) }()
				synctest.Wait()
				status := make(chan int, 1)
				go func() { s, _ := post(t, l.client(), part(1)); status <- s }()
				<-inHandler
				stop()
				synctest.Wait()
				if s, _ := post(t, l.client(), part(2)); s != 0 {
					t.Errorf("a new connection was answered %d", s)
				}
				select {
				case <-f.stopped:
					t.Error("Stop ran while a call was in flight")
				default:
				}
				if got := <-status; got != tc.want {
					t.Errorf("call in flight: %d, want %d", got, tc.want)
				}
				if err := <-ended; (err != nil) != tc.wantErr {
					t.Errorf("error %v", err)
				}
				<-f.stopped
			})
		})
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &hooked{gate: make(chan struct{}), stopped: make(chan struct{}), err: fault.New(fault.Corrupt, "the log is broken")}
		close(f.gate)
		if err := serve.New(f, serve.Config{}).Serve(t.Context(), newPipes()); !fault.Is(err, fault.Corrupt) {
			t.Errorf("error %v", err)
		}
	})
}

// SIGTERM drains like the end of the context does. Not parallel: the signal is
// the process's.
func TestSIGTERM(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	release, inHandler := make(chan struct{}), make(chan struct{})
	f := &fn{handle: func(context.Context, ce.Event) ([]ce.Event, error) {
		close(inHandler)
		<-release
		return nil, nil
	}}
	ended := make(chan error)
	go func() { ended <- serve.New(f, serve.Config{}).ListenAndServe(t.Context(), addr) }()
	waitReady(t, addr)
	status := make(chan int)
	go func() {
		b, err := http.DefaultClient.Do(toAddr(t, addr, part(1)))
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		status <- b.StatusCode
	}()
	<-inHandler
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			break // the listener has closed: draining
		}
		_ = c.Close()
	}
	close(release)
	if got := <-status; got != 204 {
		t.Errorf("call in flight: %d", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func toAddr(t testing.TB, addr string, e ce.Event) *http.Request {
	r := structured(t, e)
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", addr
	return r
}

func waitReady(t testing.TB, addr string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		resp, err := http.Get("http://" + addr + "/health/readiness")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	t.Fatal("not ready in 10 s")
}

// The SDK's receiver strands requests after clients cancel (sdk-go #1224,
// #1332): 3 stalls in 9 such rounds. Here a lone request is always answered.
func TestCancelStorm(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	f := &fn{handle: func(context.Context, ce.Event) ([]ce.Event, error) { calls.Add(1); return nil, nil }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serve.New(f, serve.Config{}).Serve(ctx, l) }()
	addr := l.Addr().String()
	waitReady(t, addr)
	stalls, cancelled := 0, atomic.Int64{}
	for range 10 {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, time.Duration(200+40*i)*time.Microsecond)
				defer cancel()
				resp, err := http.DefaultClient.Do(toAddr(t, addr, part(int64(i+1))).WithContext(ctx))
				if err != nil {
					cancelled.Add(1)
					return
				}
				_ = resp.Body.Close()
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		resp, err := http.DefaultClient.Do(toAddr(t, addr, part(99)).WithContext(ctx))
		if err != nil || resp.StatusCode != 204 {
			stalls++
		} else {
			_ = resp.Body.Close()
		}
		cancel()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if stalls > 0 || cancelled.Load() == 0 {
		t.Errorf("%d of 10 lone requests stalled; %d cancelled, %d handled", stalls, cancelled.Load(), calls.Load())
	}
}

// The front reads a body for as long as a request may take: a large upload
// through a slow disk is not cut at the 60 s of an event.
func TestServeHTTP(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		takes time.Duration
		want  int
	}{{"slow body", 10 * time.Minute, 200}, {"too slow", 2 * time.Hour, 0}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- serve.ServeHTTP(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if _, err := io.Copy(io.Discard, r.Body); err != nil {
							panic(http.ErrAbortHandler)
						}
					}), time.Hour, time.Second)
				}()
				body, in := io.Pipe()
				go func() {
					time.Sleep(tc.takes)
					_, _ = in.Write([]byte("x"))
					_ = in.Close()
				}()
				resp, err := l.client().Post("http://front.test/", "application/json", body)
				got := 0
				if err == nil {
					got = resp.StatusCode
					_ = resp.Body.Close()
				}
				if got != tc.want {
					t.Errorf("status %d, %v; want %d", got, err, tc.want)
				}
				_ = body.Close()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// HTTP/2 without TLS, as Knative speaks it to a port named h2c.
func TestH2C(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serve.New(&fn{}, serve.Config{}).Serve(ctx, l) }()
	waitReady(t, l.Addr().String())
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	c := &http.Client{Transport: &http.Transport{Protocols: p}}
	resp, err := c.Do(toAddr(t, l.Addr().String(), part(1)))
	if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != 204 {
		t.Errorf("%v, %v", resp, err)
	}
	c.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("x")
		case "/silent":
		case "/late":
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("X-Late", "1")
			w.WriteHeader(http.StatusOK)
		case "/gone":
			<-r.Context().Done()
		case "/echo":
			_, _ = io.Copy(w, r.Body)
		}
	})
	c := &http.Client{Transport: serve.Local(h)}
	for _, tc := range []struct {
		path, body string
		want       int // 0: an error
	}{{"/panic", "", 0}, {"/silent", "", 200}, {"/late", "", 418}, {"/gone", "", 0}, {"/echo", "hello", 200}} {
		t.Run(tc.path, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if tc.path != "/gone" {
				ctx = t.Context()
			}
			req, err := http.NewRequestWithContext(ctx, "POST", "http://x"+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if tc.want == 0 {
				if err == nil || (tc.path == "/gone" && !errors.Is(err, context.DeadlineExceeded)) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var body bytes.Buffer
			_, _ = body.ReadFrom(resp.Body)
			if resp.StatusCode != tc.want || body.String() != tc.body || resp.Header.Get("X-Late") != "" {
				t.Errorf("%d %q %v", resp.StatusCode, body.String(), resp.Header)
			}
		})
	}
}
