package serve

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Dead is an event that will not be delivered again by itself: a dead letter.
// Its JSON form is what is stored; Event is as it was first sent, so that it
// can be sent again.
type Dead struct {
	Event      ce.Event  `json:"event"`
	Subscriber string    `json:"subscriber"`     // the function that refused it
	Attempts   int       `json:"attempts"`       // deliveries made; 0 when not known
	Code       int       `json:"code"`           // last HTTP status; 0 when there was no answer
	Data       []byte    `json:"data,omitempty"` // last answer, at most MaxDeadData bytes: a Problem, base64 in JSON
	Time       time.Time `json:"time"`           // of the last attempt, UTC
}

// MaxDeadData is how much of the refusing answer is kept, as Knative keeps it.
const MaxDeadData = 1024

// Extensions that Knative sets on an event it sends to a dead letter sink.
const (
	extErrorDest = "knativeerrordest"
	extErrorCode = "knativeerrorcode"
	extErrorData = "knativeerrordata"
)

// Problem is the refusal for people: the Problem in Data, or what can be said
// without one.
func (d Dead) Problem() Problem {
	var p Problem
	if json.Unmarshal(d.Data, &p) == nil && p.Message != "" {
		return p
	}
	if d.Code == 0 {
		return Problem{Code: fault.Unavailable.String(), Message: "no answer: " + string(d.Data)}
	}
	return Problem{Code: "status " + strconv.Itoa(d.Code), Message: strings.TrimSpace(string(d.Data))}
}

// Mark is the event as Knative sends it to a dead letter sink.
func (d Dead) Mark() ce.Event {
	e := d.Event.Clone()
	e.SetExtension(extErrorDest, d.Subscriber)
	e.SetExtension(extErrorCode, strconv.Itoa(d.Code))
	e.SetExtension(extErrorData, base64.StdEncoding.EncodeToString(d.Data))
	return e
}

// DeadFrom reads an event that a dead letter sink received: from Knative,
// whose destination is a URL, or from Mark. An event without the extensions is
// Invalid. at is the time of receipt.
func DeadFrom(e ce.Event, at time.Time) (Dead, error) {
	d := Dead{Event: e.Clone(), Time: at.UTC()}
	dest := extension(e, extErrorDest)
	if dest == "" {
		return Dead{}, fault.At(fault.Invalid, "extension "+extErrorDest, "only a broker sends dead letters", "event is not a dead letter")
	}
	d.Subscriber = dest
	if u, err := url.Parse(dest); err == nil && u.Host != "" {
		d.Subscriber, _, _ = strings.Cut(u.Hostname(), ".")
	}
	if s := extension(e, extErrorCode); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return Dead{}, fault.At(fault.Invalid, "extension "+extErrorCode, "", "%q is not a number", s)
		}
		d.Code = max(n, 0) // Knative says -1 for no answer
	}
	data := extension(e, extErrorData)
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		b = []byte(data) // older brokers send it as it is (eventing #5427)
	}
	if len(b) > 0 {
		d.Data = b[:min(len(b), MaxDeadData)]
	}
	for _, ext := range [...]string{extErrorDest, extErrorCode, extErrorData} {
		d.Event.SetExtension(ext, nil)
	}
	return d, nil
}
