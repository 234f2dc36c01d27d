package eventlog

import (
	"context"
	"errors"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// putOnce writes an object whose key proves its content. Where one stands, it
// must prove the same; a damaged one is set aside and replaced, as the right
// bytes are known.
func (l *Log) putOnce(ctx context.Context, key string, data []byte, maxBytes int64, proves func([]byte) error) error {
	_, err := l.b.Create(ctx, key, data)
	if !errors.Is(err, objstore.ErrPrecondition) {
		return err
	}
	old, err := l.readLimited(ctx, key, maxBytes)
	if err != nil {
		return err
	}
	why := proves(old.data)
	if why == nil {
		return nil
	}
	if err := l.setAside(ctx, key, old.data, why); err != nil {
		return err
	}
	_, err = l.b.Replace(ctx, key, data, old.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return fault.New(fault.Conflict, "%s changed while its damaged form was replaced", key)
	}
	return err
}
