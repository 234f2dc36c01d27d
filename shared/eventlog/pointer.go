package eventlog

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// pointer is a pointer as it is stored: one mutable value, moved by If-Match.
type pointer struct {
	V      int             `json:"v"`
	Type   string          `json:"type"` // "pointer"
	Level  memory.Level    `json:"level"`
	Writer string          `json:"writer"`
	Value  json.RawMessage `json:"value"`
}

const typePointer = "pointer"

// Pointer reads ops/pointer/<tenant>/<name>.json into `into`; name is key parts
// joined by "/", such as "<project>/questions". An absent pointer gives etag ""
// and no error, and leaves `into` alone.
func (l *Log) Pointer(ctx context.Context, name string, into any) (etag string, err error) {
	defer fault.Wrap(&err, "pointer(%s)", name)
	key, err := l.opsKey("pointer", name)
	if err != nil {
		return "", err
	}
	p, etag, err := l.pointer(ctx, key)
	if err != nil || etag == "" {
		return "", err
	}
	if err := json.Unmarshal(p.Value, into); err != nil {
		return "", corrupt(key, 0, fault.New(fault.Corrupt, "the value does not decode: %s", jsonFault(err)))
	}
	return etag, nil
}

func (l *Log) pointer(ctx context.Context, key string) (p pointer, etag string, err error) {
	raw, err := l.readLimited(ctx, key, maxSmall)
	if fault.Is(err, fault.NotFound) {
		return p, "", nil
	}
	if err != nil {
		return p, "", err
	}
	if err := decodeStrictType(raw.data, typePointer, &p, func() int { return p.V }); err != nil {
		return p, "", corrupt(key, 0, err)
	}
	if p.Type != typePointer {
		return p, "", corrupt(key, 0, errors.New("the object is no pointer"))
	}
	return p, raw.etag, nil
}

// SetPointer writes the pointer: with etag "" where none stands, else over the
// one with this ETag. Moved by another in between: fault.Conflict; read it
// again. An own earlier attempt whose answer was lost is success.
func (l *Log) SetPointer(ctx context.Context, name string, value any, etag string) (err error) {
	defer fault.Wrap(&err, "set pointer(%s)", name)
	key, err := l.opsKey("pointer", name)
	if err != nil {
		return err
	}
	v, err := marshal(value)
	if err != nil {
		return err
	}
	line, err := marshal(pointer{V: memory.Version, Type: typePointer, Level: memory.LevelNone, Writer: l.writer, Value: v})
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if len(line) > maxSmall {
		return fault.New(fault.Invalid, "a pointer of %d bytes; at most %d", len(line), maxSmall)
	}
	if etag == "" {
		_, err = l.b.Create(ctx, key, line)
	} else {
		_, err = l.b.Replace(ctx, key, line, etag)
	}
	if !errors.Is(err, objstore.ErrPrecondition) {
		return err
	}
	now, _, err := l.pointer(ctx, key)
	if err != nil {
		return err
	}
	if now.Writer == l.writer && string(now.Value) == string(v) {
		return nil
	}
	return fault.New(fault.Conflict, "the pointer was moved by another")
}
