package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// TypeDead is the `type` of a dead letter.
const TypeDead = "dead"

// maxDead bounds a dead letter, in bytes: a torn segment in base64 and room.
const maxDead = maxSegment/3*4 + maxSmall

// Dead is a dead letter: an event that no retry helps, or the bytes of a
// damaged object that was replaced. Dead letters are kept.
type Dead struct {
	V         int             `json:"v"`
	Type      string          `json:"type"` // "dead"
	Level     memory.Level    `json:"level"`
	ID        memory.SHA      `json:"id"`       // set by PutDead
	Function  string          `json:"function"` // which gave up
	EventType string          `json:"event_type,omitempty"`
	EventID   string          `json:"event_id,omitempty"`
	Subject   string          `json:"subject,omitempty"`
	Event     json.RawMessage `json:"event,omitempty"` // as received, when it is JSON; events carry no transcript text
	Key       string          `json:"key,omitempty"`   // the object it is about
	Body      []byte          `json:"body,omitempty"`  // base64 in JSON: the object's bytes, or an event that is not JSON
	Kind      string          `json:"kind"`            // fault kind
	Error     string          `json:"error"`           // no transcript text
	Hint      string          `json:"hint,omitempty"`
	Attempts  int             `json:"attempts"`         // deliveries before it was given up
	At        time.Time       `json:"at"`               // UTC; the store's clock when zero
	Erased    memory.SHA      `json:"erased,omitempty"` // the tombstone that erased its body; the id stays that of the letter with it
}

// DeadID is the identity of a letter: sha256 over the RFC 8785 form of
// [function, event_type, event_id, subject, key, sha256 of body, kind]. The
// same event that dies twice is one letter.
func (d *Dead) DeadID() (memory.SHA, error) {
	b, err := marshalLoose([]string{d.Function, d.EventType, d.EventID, d.Subject, d.Key, string(memory.Sum(d.Body)), d.Kind})
	if err != nil {
		return "", err
	}
	if b, err = canonical(nil, b); err != nil {
		return "", fault.As(fault.Invalid, err)
	}
	return memory.Sum(b), nil
}

// PutDead keeps a dead letter. The first of equal ones stays.
func (l *Log) PutDead(ctx context.Context, d Dead) (err error) {
	defer fault.Wrap(&err, "put dead(%s %s)", d.Function, d.EventType)
	if err := stamp(&d.V, &d.Type, &d.Level, TypeDead, memory.LevelNone); err != nil {
		return err
	}
	if d.ID, err = d.DeadID(); err != nil {
		return err
	}
	key, err := l.opsKey("dead", string(d.ID))
	if err != nil {
		return err
	}
	if d.At.IsZero() {
		if d.At, err = l.b.Now(ctx); err != nil {
			return err
		}
	}
	d.At = d.At.UTC()
	line, err := marshalLoose(&d)
	if err != nil {
		return err
	}
	if len(line) >= maxDead {
		return fault.New(fault.Invalid, "a dead letter of %d bytes; at most %d", len(line), maxDead)
	}
	_, err = l.b.Create(ctx, key, append(line, '\n'))
	if errors.Is(err, objstore.ErrPrecondition) {
		return nil
	}
	return err
}

// EraseDead takes the body out of a dead letter. One that has none is left alone.
func (l *Log) EraseDead(ctx context.Context, id, tombstone memory.SHA) (err error) {
	defer fault.Wrap(&err, "erase dead(%s)", id.Short())
	key, err := l.opsKey("dead", string(id))
	if err != nil {
		return err
	}
	raw, err := l.readLimited(ctx, key, maxDead)
	if err != nil {
		return err
	}
	var d Dead
	if err := decodeStrictType(raw.data, TypeDead, &d, func() int { return d.V }); err != nil {
		return corrupt(key, 0, err)
	}
	if len(d.Body) == 0 {
		return nil
	}
	d.Body, d.Erased = nil, tombstone
	line, err := marshalLoose(&d)
	if err != nil {
		return err
	}
	_, err = l.b.Replace(ctx, key, append(line, '\n'), raw.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return fault.New(fault.Conflict, "the letter changed in between")
	}
	return err
}

// DeadLetters gives the tenant's dead letters in key order. A letter that does
// not decode is yielded as an error and the sequence goes on; a store that does
// not answer ends it.
func (l *Log) DeadLetters(ctx context.Context) iter.Seq2[Dead, error] {
	return func(yield func(Dead, error) bool) {
		if !memory.ValidName(l.tenant) {
			yield(Dead{}, fault.New(fault.Invalid, "tenant %q is not a name", clip([]byte(l.tenant))))
			return
		}
		for info, err := range l.b.ListAfter(ctx, "ops/dead/"+l.tenant+"/", "") {
			if err != nil {
				yield(Dead{}, err)
				return
			}
			raw, err := l.readLimited(ctx, info.Key, maxDead)
			if err != nil && !fault.Is(err, fault.Corrupt) {
				yield(Dead{}, err)
				return
			}
			var d Dead
			if err == nil {
				err = decodeStrictType(raw.data, TypeDead, &d, func() int { return d.V })
			}
			if err != nil {
				err = corrupt(info.Key, 0, err)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
