package serve

import (
	"context"
	"net/http"

	ce "github.com/cloudevents/sdk-go/v2/event"
)

// Function is what each package under functions/ gives.
type Function interface {
	// Name is the name under which event.Handlers lists the function.
	Name() string
	// Handle does the work that e asks for and returns the events to send on.
	// It is called concurrently, more than once for one event and in any order.
	// ctx ends with the request or at Config.HandlerTimeout. The kind of an
	// error (shared/fault) decides what the broker does; nil, nil is done.
	Handle(ctx context.Context, e ce.Event) ([]ce.Event, error)
}

// Routes is a Function that answers people too: it adds its patterns, with
// their methods, to mux. "POST /{$}" and "/health/" are taken.
type Routes interface {
	Routes(mux *http.ServeMux)
}

// Starter is a Function with work to do before its first event. env is the
// process environment. Events are refused with 503 until Start has returned.
type Starter interface {
	Start(ctx context.Context, env map[string]string) error
}

// Stopper is a Function with something to close after its last event.
type Stopper interface {
	Stop(ctx context.Context) error
}

// Ready is a Function that can say for itself whether it may get events. It
// must not dial a dependency: an outage there would stop scaling up, and
// answering Unavailable is the better way.
type Ready interface {
	Ready(ctx context.Context) (bool, error)
}

// Alive is a Function that can say for itself whether it must be restarted.
type Alive interface {
	Alive(ctx context.Context) (bool, error)
}
