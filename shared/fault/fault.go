// Package fault is the one taxonomy of errors and the one table from error kind
// to behaviour.
//
// A kind says what must happen next, not what went wrong; the message says what
// went wrong, where, and what to do. Knative retries 5xx, 404, 408, 409 and
// 429, so an event handler never answers 404 or 409.
//
// The package does not log and knows no transport beyond HTTP status numbers.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Kind is what an error means for whoever must act on it.
type Kind uint8

const (
	Internal    Kind = iota // a bug; retried within the broker's bound, then a dead letter
	Invalid                 // event, request or file breaks its schema; the sender fixes it
	Malformed               // a model reply is unparseable after its retry; a gate record, the run goes on
	Corrupt                 // bytes do not match their hash or version; nothing is overwritten
	Exhausted               // a limit is reached, load is shed; retried later
	Unavailable             // a dependency is down, slow or not yet visible; retried
	Conflict                // a conditional write was lost; reload and redo, bounded, then Unavailable
	NotFound                // nothing stands there; a handler never lets it out to the broker
	Denied                  // no credential, or one without the right
)

var kindNames = [...]string{"internal", "invalid", "malformed", "corrupt", "exhausted", "unavailable", "conflict", "not_found", "denied"}

// String is the kind's code in API answers.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "internal"
}

// Error carries a kind, and for people a hint that cures and a place.
type Error struct {
	Kind       Kind
	Msg        string        // what is wrong; lower case, no secret, no transcript text
	Where      string        // file:line, field or key
	Hint       string        // what to do
	RetryAfter time.Duration // for Exhausted and Unavailable
	Err        error
}

func (e *Error) Error() string {
	s := e.Msg
	switch {
	case e.Where != "" && s != "":
		s = e.Where + ": " + s
	case e.Where != "":
		s = e.Where
	}
	if _, ok := e.Err.(hidden); e.Err != nil && !ok {
		if s != "" {
			s += ": "
		}
		s += e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, fault.Invalid.Sentinel()) work by kind.
func (e *Error) Is(target error) bool {
	s, ok := target.(sentinel)
	return ok && Kind(s) == e.Kind
}

type sentinel Kind

func (s sentinel) Error() string { return Kind(s).String() }

// Sentinel is an error that errors.Is matches against every error of kind k.
func (k Kind) Sentinel() error { return sentinel(k) }

// New makes an error of kind k.
func New(k Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Msg: err.Error(), Err: nilIfPlain(err)}
}

// nilIfPlain keeps what err wraps reachable without printing it twice.
func nilIfPlain(err error) error {
	if errors.Unwrap(err) == nil {
		if _, ok := err.(interface{ Unwrap() []error }); !ok {
			return nil
		}
	}
	return hidden{err}
}

// hidden wraps an error whose text is already in the message.
type hidden struct{ err error }

func (h hidden) Error() string { return "" }
func (h hidden) Unwrap() error { return h.err }

// At is New with the place and a hint that cures.
func At(k Kind, where, hint, format string, args ...any) error {
	return &Error{Kind: k, Where: where, Hint: hint, Msg: fmt.Sprintf(format, args...)}
}

// As gives err kind k, keeping its chain. A nil err stays nil.
func As(k Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, Err: err}
}

// KindOf is the kind of the first Error in err's chain; Internal when none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether err's kind is k. A nil error has no kind.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

// HintOf is the first hint in err's chain.
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// RetryAfterOf is how long the caller should wait, 0 when unsaid.
func RetryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Wrap prefixes *errp with the failing call, once, keeping its kind:
//
//	defer fault.Wrap(&err, "append(%s, %d)", stream, seq)
func Wrap(errp *error, format string, args ...any) {
	if *errp != nil {
		*errp = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *errp)
	}
}

// BrokerStatus is what an event handler answers: the left table of STYLE
// section 5. A nil error is 204.
func BrokerStatus(err error) int {
	if err == nil {
		return http.StatusNoContent
	}
	switch KindOf(err) {
	case Invalid, Malformed:
		return http.StatusBadRequest
	case Corrupt:
		return http.StatusUnprocessableEntity
	case Exhausted:
		return http.StatusTooManyRequests
	case Unavailable, Conflict, NotFound:
		return http.StatusServiceUnavailable
	case Denied:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// APIStatus is what the API for people answers.
func APIStatus(err error) int {
	if err == nil {
		return http.StatusOK
	}
	switch KindOf(err) {
	case Invalid, Malformed:
		return http.StatusBadRequest
	case Corrupt:
		return http.StatusUnprocessableEntity
	case Exhausted:
		return http.StatusTooManyRequests
	case Unavailable:
		return http.StatusServiceUnavailable
	case Conflict:
		return http.StatusConflict
	case NotFound:
		return http.StatusNotFound
	case Denied:
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}
