package eventlog

import (
	"context"
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// maxFold bounds a cached fold, in bytes.
const maxFold = 64 << 20

// foldCache is a cached fold as it is stored.
type foldCache struct {
	V      int             `json:"v"`
	Type   string          `json:"type"` // "fold"
	Level  memory.Level    `json:"level"`
	Stream string          `json:"stream"` // tenant/project/stream
	Seq    int64           `json:"seq"`
	Hash   memory.SHA      `json:"hash"`  // of segment seq
	Check  memory.SHA      `json:"check"` // sha256 of value
	Value  json.RawMessage `json:"value"`
}

const typeFold = "fold"

// FoldCache reads the cached fold of a stream into `into` and the head up to
// which it is folded. It is false when there is none, when it is damaged, or
// when the log does not hold that head: a cache is never believed, only used.
// Then `into` may hold a part of a value: start from a new one.
func (l *Log) FoldCache(ctx context.Context, project, stream string, into any) (_ Head, _ bool, err error) {
	defer fault.Wrap(&err, "fold cache(%s/%s)", project, stream)
	if err := l.checkStream(project, stream); err != nil {
		return Head{}, false, err
	}
	raw, err := l.readLimited(ctx, l.foldKey(project, stream), maxFold)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Corrupt) {
		return Head{}, false, nil
	}
	if err != nil {
		return Head{}, false, err
	}
	var c foldCache
	if json.Unmarshal(raw.data, &c) != nil || c.V != memory.Version || c.Type != typeFold ||
		c.Stream != l.tenant+"/"+project+"/"+stream || c.Check != memory.Sum(c.Value) {
		return Head{}, false, nil
	}
	head := Head{c.Seq, c.Hash}
	if known, ok := l.recall(project, stream); !ok || known != head {
		seg, err := l.Segment(ctx, project, stream, c.Seq)
		switch {
		case fault.Is(err, fault.NotFound), fault.Is(err, fault.Corrupt), fault.Is(err, fault.Invalid):
			return Head{}, false, nil
		case err != nil:
			return Head{}, false, err
		case seg.Hash != c.Hash:
			return Head{}, false, nil
		}
		l.learn(project, stream, head)
	}
	if json.Unmarshal(c.Value, into) != nil {
		return Head{}, false, nil
	}
	return head, true, nil
}

// PutFoldCache caches the fold of a stream up to h, which must be a head that
// the log gave. Losing it, or an older one written over it, costs a longer
// fold and nothing else.
func (l *Log) PutFoldCache(ctx context.Context, project, stream string, h Head, v any) (err error) {
	defer fault.Wrap(&err, "put fold cache(%s/%s)", project, stream)
	if err := l.checkStream(project, stream); err != nil {
		return err
	}
	if h.Seq < 1 || !h.Hash.Valid() {
		return fault.New(fault.Invalid, "nothing to cache before the first segment")
	}
	value, err := marshal(v)
	if err != nil {
		return err
	}
	line, err := marshal(foldCache{
		V: memory.Version, Type: typeFold, Level: memory.LevelNone,
		Stream: l.tenant + "/" + project + "/" + stream, Seq: h.Seq, Hash: h.Hash,
		Check: memory.Sum(value), Value: value,
	})
	if err != nil {
		return err
	}
	if len(line) > maxFold {
		return fault.New(fault.Invalid, "a fold of %d bytes; at most %d", len(line), maxFold)
	}
	_, err = l.b.Put(ctx, l.foldKey(project, stream), append(line, '\n'))
	return err
}
