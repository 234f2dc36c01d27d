package serve

import (
	"errors"
	"fmt"
	"net/http"

	ce "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Extensions of an event, by the names of DESIGN section 2.
const (
	extTenant      = "mnemetenant"
	extProject     = "mnemeproject"
	extJob         = "mnemejob" // of a ping: the job that is due
	extTraceparent = "traceparent"
)

// MaxEventBytes is the largest event that is accepted: events point at objects,
// and 1 MiB is what a JobSink's secret and Kafka's default message hold.
const MaxEventBytes = 1 << 20

// extension is e's extension name as a string, "" when absent.
func extension(e ce.Event, name string) string {
	switch v := e.Extensions()[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// errTooLarge marks a body over the limit: 413 and not the table's 400, as
// there is nothing to fix in its text.
var errTooLarge = errors.New("body over the limit")

// receive reads the CloudEvent, structured or binary, that r carries. A batch
// is Invalid: brokers do not send one.
func receive(w http.ResponseWriter, r *http.Request, limit int64) (e ce.Event, err error) {
	defer func() {
		// The SDK indexes past the end of a header named "Ce-".
		if p := recover(); p != nil {
			e, err = ce.Event{}, fault.New(fault.Invalid, "event cannot be read: a header is broken")
		}
	}()
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	got, err := cehttp.NewEventFromHTTPRequest(r)
	if err == nil {
		err = got.Validate()
	}
	if err == nil {
		return *got, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return ce.Event{}, &fault.Error{Kind: fault.Invalid, Hint: "an event points at objects and carries no text", Msg: fmt.Sprintf("event over %d bytes", limit), Err: errTooLarge}
	}
	return ce.Event{}, fault.At(fault.Invalid, "event", "send one CloudEvent 1.0, structured or binary", "%v", err)
}

// answerBroker answers err by the broker's table; nil is 204 without a body.
func answerBroker(w http.ResponseWriter, err error) {
	status := fault.BrokerStatus(err)
	if err == nil {
		w.WriteHeader(status)
		return
	}
	if errors.Is(err, errTooLarge) {
		status = http.StatusRequestEntityTooLarge
	}
	writeProblem(w, status, fault.RetryAfterOf(err), ProblemOf(err))
}
