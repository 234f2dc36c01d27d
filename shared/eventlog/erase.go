package eventlog

import (
	"context"
	"errors"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Erase takes the texts out of the records of one segment that pick chooses:
// each becomes its sealed form plus `erased`, the sha256 of the tombstone that
// bars them. The segment's hash, and so the chain, stays what it is. It returns
// how many records it erased; those erased before are left alone. With Forget it is
// the only thing that rewrites a segment of the log. A segment that changed in
// between is fault.Conflict.
func (l *Log) Erase(ctx context.Context, project, stream string, seq int64, tombstone memory.SHA, pick func(Record) bool) (n int, err error) {
	return l.eraseBy(ctx, project, stream, seq, tombstone, pick, Erase)
}

func (l *Log) eraseBy(ctx context.Context, project, stream string, seq int64, tombstone memory.SHA, pick func(Record) bool, erase func([]byte, memory.SHA) ([]byte, error)) (n int, err error) {
	defer fault.Wrap(&err, "erase(%s/%s, %d)", project, stream, seq)
	if err := l.checkStream(project, stream); err != nil {
		return 0, err
	}
	if !tombstone.Valid() {
		return 0, fault.New(fault.Invalid, "a tombstone is named by its sha256")
	}
	seg, raw, err := l.read(ctx, project, stream, seq)
	if err != nil {
		return 0, err
	}
	key := l.segmentKey(project, stream, seq)
	lines, _, err := splitSegment(raw.data)
	if err != nil {
		return 0, corrupt(key, 0, err)
	}
	out := append(append(make([]byte, 0, len(raw.data)), lines[0]...), '\n')
	for i, line := range lines[1:] {
		if pick(seg.Records[i]) {
			gone, err := erase(line, tombstone)
			if err != nil {
				return 0, corrupt(key, i+2, err)
			}
			if string(gone) != string(line) {
				n++
			}
			line = gone
		}
		out = append(append(out, line...), '\n')
	}
	if n == 0 {
		return 0, nil
	}
	foot, err := marshal(seg.Footer)
	if err != nil {
		return 0, err
	}
	out = append(append(out, foot...), '\n')
	if again, err := parseSegment(out, key, seg.Header); err != nil || again.Hash != seg.Hash {
		return 0, fault.New(fault.Internal, "erasing would break the chain: %v", err)
	}
	_, err = l.b.Replace(ctx, key, out, raw.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return 0, fault.New(fault.Conflict, "the segment changed in between")
	}
	return n, err
}
