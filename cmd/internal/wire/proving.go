package wire

import (
	"context"
	"net/http"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/serve"
)

// routed is a function with routes of its own.
type routed interface {
	serve.Function
	serve.Routes
}

// proving is a function that appends: it works only on a store that honours
// conditional writes. The proof, some sixty requests, runs beside the start, so
// that readiness does not wait for it; events and requests do. A store that
// fails it ends the process.
type proving struct {
	routed
	log    *objstore.Bucket
	stop   context.CancelCauseFunc
	proved chan struct{} // closed when the proof has ended
	err    *error        // of the proof, once proved is closed
}

func newProving(f routed, log *objstore.Bucket, stop context.CancelCauseFunc) proving {
	return proving{routed: f, log: log, stop: stop, proved: make(chan struct{}), err: new(error)}
}

// Start is serve.Starter.
func (f proving) Start(ctx context.Context, _ map[string]string) error {
	go func() {
		defer close(f.proved)
		if *f.err = f.log.Prove(context.WithoutCancel(ctx)); *f.err != nil {
			f.stop(*f.err)
		}
	}()
	return nil
}

// wait returns once the store is proved.
func (f proving) wait(ctx context.Context) error {
	select {
	case <-f.proved:
		return *f.err
	case <-ctx.Done():
		return fault.As(fault.Unavailable, ctx.Err())
	}
}

// Handle waits for the proof.
func (f proving) Handle(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	if err := f.wait(ctx); err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	return f.routed.Handle(ctx, e)
}

// Routes waits for the proof before each route.
func (f proving) Routes(mux *http.ServeMux) {
	inner := http.NewServeMux()
	f.routed.Routes(inner)
	mux.HandleFunc("/memory/", func(w http.ResponseWriter, r *http.Request) {
		if err := f.wait(r.Context()); err != nil {
			serve.WriteError(w, fault.As(fault.Unavailable, err))
			return
		}
		inner.ServeHTTP(w, r)
	})
}
