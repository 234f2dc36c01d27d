package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	fhttp "knative.dev/func-go/http"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Service is a function behind HTTP.
type Service struct {
	f   Function
	cfg Config
	svc *fhttp.Service
	mux http.Handler

	started  atomic.Bool
	draining atomic.Bool
}

// quiet turns off the debug lines that func-go writes to standard error by a
// logger of its own, once for the process.
var quiet = sync.OnceFunc(func() { fhttp.SetLogLevel(fhttp.LogDisabled) })

// New makes a Service of f; cfg must be valid. Nothing runs until Open, Serve
// or ListenAndServe.
func New(f Function, cfg Config) *Service {
	quiet()
	s := &Service{f: f, cfg: cfg.withDefaults()}
	s.svc = fhttp.New(contract{s})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/readiness", s.svc.Ready)
	mux.HandleFunc("GET /health/liveness", s.svc.Alive)
	mux.HandleFunc("POST /{$}", s.svc.Handle)
	s.Mount(mux)
	s.mux = s.gate(Conditional(mux))
	s.svc.Handler = s.mux
	harden(&s.svc.Server, s.cfg.HandlerTimeout)
	return s
}

// Name is the function's name.
func (s *Service) Name() string { return s.f.Name() }

// Handler is the whole surface: events on POST /, health, the function's routes.
func (s *Service) Handler() http.Handler { return s.mux }

// Mount adds the function's own routes, without events and health, to a mux
// that several functions share: the front of `mem up`.
func (s *Service) Mount(mux *http.ServeMux) {
	if r, ok := s.f.(Routes); ok {
		r.Routes(mux)
	}
}

// Open runs the Start hook; events are accepted once it has returned. Serve
// does this itself; a process that holds several functions calls it for each.
func (s *Service) Open(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "start %s", s.f.Name())
	if st, ok := s.f.(Starter); ok {
		if err := st.Start(ctx, s.cfg.Env); err != nil {
			return err
		}
	}
	s.started.Store(true)
	return nil
}

// Close refuses new events and runs the Stop hook. Calls in flight must have
// ended.
func (s *Service) Close(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "stop %s", s.f.Name())
	s.draining.Store(true)
	if st, ok := s.f.(Stopper); ok {
		return st.Stop(ctx)
	}
	return nil
}

// ListenAndServe serves on addr until ctx ends or SIGINT or SIGTERM comes, then
// drains. func-go's own Start is not used: it takes its address from the
// environment alone, gives calls in flight 30 s whatever their deadline, and
// never stops listening to every signal of the process.
func (s *Service) ListenAndServe(ctx context.Context, addr string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fault.New(fault.Unavailable, "listen on %s: %v", addr, err)
	}
	return s.Serve(ctx, l)
}

// Serve serves on l, running the Start hook beside it, until ctx ends; then no
// connection is accepted, calls in flight end (bounded by Config.DrainTimeout)
// and the Stop hook runs. A Start hook that fails ends it with its error.
func (s *Service) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opened := make(chan error, 1)
	go func() {
		err := s.Open(ctx)
		if err != nil {
			cancel(err)
		}
		opened <- err
	}()
	err := run(ctx, &s.svc.Server, l, s.cfg.DrainTimeout, func() { s.draining.Store(true) })
	cancel(nil)
	if openErr := <-opened; openErr != nil && !errors.Is(openErr, context.Canceled) {
		err = errors.Join(openErr, err)
	}
	stopCtx, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer done()
	return errors.Join(err, s.Close(stopCtx))
}

// stopTimeout bounds the Stop hook, as func-go's InstanceStopTimeout does.
const stopTimeout = 30 * time.Second

// gate refuses everything but health checks until Start has returned.
func (s *Service) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.started.Load() && r.URL.Path != "/health/readiness" && r.URL.Path != "/health/liveness" {
			answerBroker(w, fault.New(fault.Unavailable, "%s is starting", s.f.Name()))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// handle answers one event of the broker.
func (s *Service) handle(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	e, err := receive(w, r, s.cfg.MaxEventBytes)
	ctx := r.Context()
	if err == nil {
		e, err = fromPing(e)
	}
	if err == nil {
		ctx = WithEvent(ctx, e)
		err = s.process(ctx, e)
	}
	if err != nil {
		level := slog.LevelWarn
		if fault.Is(err, fault.Unavailable) && fault.RetryAfterOf(err) > 0 {
			level = slog.LevelInfo // it comes again by appointment: no news to who watches
		}
		s.cfg.Logger.Log(ctx, level, "event failed", KeyHint, fault.HintOf(err), KeyFunction, s.f.Name(), KeyKind, fault.KindOf(err).String(), KeyStatus, fault.BrokerStatus(err), KeyError, err.Error(), KeyTook, time.Since(began))
	}
	answerBroker(w, err)
}

// process calls the function and sends on what it returned.
func (s *Service) process(ctx context.Context, e ce.Event) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.HandlerTimeout, fault.New(fault.Unavailable, "%s took over %v", s.f.Name(), s.cfg.HandlerTimeout))
	defer cancel()
	out, err := s.call(ctx, e)
	if err == nil {
		err = s.send(ctx, e, out)
	}
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); !ok && ctx.Err() != nil {
		// Out of time or the caller is gone: that is no bug, so it is tried again.
		return fault.As(fault.Unavailable, errors.Join(err, context.Cause(ctx)))
	}
	return err
}

// call turns a panic into an Internal error. Neither the panic's value nor the
// event is logged, as both may hold text of a transcript.
func (s *Service) call(ctx context.Context, e ce.Event) (out []ce.Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			what := "panic"
			if re, ok := p.(runtime.Error); ok {
				what = re.Error()
			}
			s.cfg.Logger.ErrorContext(ctx, "handler panicked", KeyFunction, s.f.Name(), KeyError, what, KeyStack, string(debug.Stack()))
			out, err = nil, fault.New(fault.Internal, "%s panicked on this event: %s", s.f.Name(), what)
		}
	}()
	return s.f.Handle(ctx, e)
}

// contract is the Service as func-go sees a function instance.
type contract struct{ s *Service }

// Handle receives an event.
func (c contract) Handle(w http.ResponseWriter, r *http.Request) { c.s.handle(w, r) }

// Ready is false until Start has returned and again once draining.
func (c contract) Ready(ctx context.Context) (bool, error) {
	if !c.s.started.Load() || c.s.draining.Load() {
		return false, nil
	}
	if r, ok := c.s.f.(Ready); ok {
		return r.Ready(ctx)
	}
	return true, nil
}

// Alive is true unless the function says otherwise.
func (c contract) Alive(ctx context.Context) (bool, error) {
	if a, ok := c.s.f.(Alive); ok {
		return a.Alive(ctx)
	}
	return true, nil
}
