package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/mneme-ai/mneme/shared/fault"
)

// The table of STYLE section 5: Knative retries 5xx, 404, 408, 409 and 429, so
// an event handler never answers 404 or 409.
func TestTable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind        fault.Kind
		broker, api int
	}{
		{fault.Invalid, 400, 400}, {fault.Corrupt, 422, 422}, {fault.Exhausted, 429, 429}, {fault.Unavailable, 503, 503},
		{fault.Conflict, 503, 409}, {fault.NotFound, 503, 404}, {fault.Denied, 403, 403}, {fault.Internal, 500, 500}, {fault.Malformed, 400, 400},
	}
	for _, tt := range tests {
		err := fmt.Errorf("outer: %w", fault.New(tt.kind, "inner"))
		if got := fault.BrokerStatus(err); got != tt.broker {
			t.Errorf("%s to the broker: %d, want %d", tt.kind, got, tt.broker)
		}
		if got := fault.APIStatus(err); got != tt.api {
			t.Errorf("%s to people: %d, want %d", tt.kind, got, tt.api)
		}
		if s := fault.BrokerStatus(err); s == 404 || s == 409 {
			t.Errorf("%s answers %d to the broker", tt.kind, s)
		}
	}
	if fault.BrokerStatus(nil) != 204 || fault.APIStatus(nil) != 200 || fault.BrokerStatus(io.EOF) != 500 {
		t.Error("no error, or an error without a kind, has the wrong status")
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	err := fault.New(fault.Unavailable, "read %s: %w", "key", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if got, want := err.Error(), "read key: unexpected EOF"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	f := func() (err error) {
		defer fault.Wrap(&err, "append(%s, %d)", "s", 3)
		return fault.At(fault.Invalid, "questions.yaml:4", "remove the field", "unknown field %q", "quer")
	}
	err = f()
	if got, want := err.Error(), `append(s, 3): questions.yaml:4: unknown field "quer"`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if fault.HintOf(err) != "remove the field" || !fault.Is(err, fault.Invalid) || !errors.Is(err, fault.Invalid.Sentinel()) || errors.Is(err, fault.Corrupt.Sentinel()) {
		t.Errorf("hint %q, kind %s", fault.HintOf(err), fault.KindOf(err))
	}
	if fault.As(fault.Invalid, nil) != nil || fault.Is(nil, fault.Internal) {
		t.Error("no error became one")
	}
	if got := fault.HintOf(fault.As(fault.Unavailable, err)); got != "remove the field" {
		t.Errorf("hint under a second kind: %q", got)
	}
}

// TestPlaceWithoutMessage: an error of the system at a place has no empty part.
func TestPlaceWithoutMessage(t *testing.T) {
	t.Parallel()
	err := &fault.Error{Kind: fault.Unavailable, Where: "/data", Err: errors.New("not a directory")}
	if got, want := err.Error(), "/data: not a directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
