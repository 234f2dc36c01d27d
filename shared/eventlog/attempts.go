package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// attempts counts the deliveries of one event to one function. A broker's own
// count starts anew whenever its pods are rebalanced: one event was seen
// retried 184 times against a limit of 3 (knative-extensions/eventing-kafka-broker issue 3746).
type attempts struct {
	V        int          `json:"v"`
	Type     string       `json:"type"` // "attempts"
	Level    memory.Level `json:"level"`
	Function string       `json:"function"`
	EventID  string       `json:"event_id"`
	Count    int          `json:"count"`
	At       time.Time    `json:"at"` // of the last one, store's clock, UTC
}

const typeAttempts = "attempts"

// countTries bounds how often a count is tried against others that count the
// same event at the same time.
const countTries = 10

// CountAttempt counts one more delivery of an event to a function and returns
// how many there were, this one included.
func (l *Log) CountAttempt(ctx context.Context, function, eventID string) (_ int, err error) {
	defer fault.Wrap(&err, "count attempt(%s)", function)
	id, err := marshalLoose([]string{function, eventID})
	if err != nil {
		return 0, err
	}
	if id, err = canonical(nil, id); err != nil {
		return 0, fault.As(fault.Invalid, err)
	}
	key, err := l.opsKey("attempts", string(memory.Sum(id)))
	if err != nil {
		return 0, err
	}
	for range countTries {
		now, err := l.b.Now(ctx)
		if err != nil {
			return 0, err
		}
		raw, err := l.readLimited(ctx, key, maxSmall)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return 0, err
		}
		a := attempts{V: memory.Version, Type: typeAttempts, Level: memory.LevelNone, Function: function, EventID: eventID}
		var old attempts
		if json.Unmarshal(raw.data, &old) == nil {
			a.Count = old.Count
		}
		a.Count, a.At = a.Count+1, now.UTC()
		line, err := marshalLoose(&a)
		if err != nil {
			return 0, err
		}
		if raw.etag == "" {
			_, err = l.b.Create(ctx, key, append(line, '\n'))
		} else {
			_, err = l.b.Replace(ctx, key, append(line, '\n'), raw.etag)
		}
		if !errors.Is(err, objstore.ErrPrecondition) {
			return a.Count, err
		}
	}
	return 0, fault.New(fault.Unavailable, "another counts the same event")
}
