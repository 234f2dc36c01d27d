package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// harden gives srv its limits: a body may come slowly, an answer may take as
// long as the handler is allowed, HTTP/2 without TLS is spoken (Knative's
// queue proxy uses it when the port is named h2c).
func harden(srv *http.Server, handlerTimeout time.Duration) {
	srv.ReadHeaderTimeout = readHeaderTimeout
	srv.ReadTimeout = readTimeout
	// Counted from the end of the request's header, so the body's time is in it.
	srv.WriteTimeout = readTimeout + handlerTimeout + defaultSinkTimeout
	srv.IdleTimeout = idleTimeout
	srv.MaxHeaderBytes = maxHeaderBytes
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	srv.Protocols = p
}

// ServeHTTP serves h on l with the limits of a Service until ctx ends, then
// drains for at most drain: the front of `mem up`. handlerTimeout bounds one
// answer, 0 for the default of Config.
func ServeHTTP(ctx context.Context, l net.Listener, h http.Handler, handlerTimeout, drain time.Duration) error {
	srv := &http.Server{Handler: h}
	harden(srv, or(handlerTimeout, defaultHandlerTimeout))
	srv.ReadTimeout = or(handlerTimeout, defaultHandlerTimeout) // a body may be a large upload; Secure has refused strangers before it is read
	return run(ctx, srv, l, drain, func() {})
}

// run serves until ctx ends. Requests keep their own context while draining and
// lose it when the time for that is over.
func run(ctx context.Context, srv *http.Server, l net.Listener, drain time.Duration, ending func()) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		ending()
		return fault.New(fault.Unavailable, "serve: %v", err)
	case <-ctx.Done():
	}
	ending()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := srv.Shutdown(wait)
	if err != nil {
		cut(fault.New(fault.Unavailable, "the process is stopping"))
		err = errors.Join(fault.New(fault.Unavailable, "requests in flight after %v were cut", drain), srv.Close())
	}
	<-served
	return err
}
