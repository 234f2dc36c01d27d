package eventlog

import (
	"context"
	"errors"
	"iter"
	"path"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// rawObject is an object's bytes with what is needed to replace them.
type rawObject struct {
	data []byte
	etag string
}

// readLimited is ReadAll for an object of the log: one over its limit is
// Corrupt, as the log writes none such.
func (l *Log) readLimited(ctx context.Context, key string, maxBytes int64) (rawObject, error) {
	data, info, err := l.b.ReadAll(ctx, key, maxBytes)
	if fault.Is(err, fault.Invalid) {
		err = fault.As(fault.Corrupt, err)
	}
	return rawObject{data, info.ETag}, err
}

func (l *Log) read(ctx context.Context, project, stream string, seq int64) (Segment, rawObject, error) {
	key := l.segmentKey(project, stream, seq)
	data, info, err := l.b.ReadAll(ctx, key, maxSegment)
	if fault.Is(err, fault.Invalid) {
		err = fault.As(fault.Corrupt, err)
	}
	raw := rawObject{data, info.ETag}
	if err != nil {
		return Segment{}, raw, err
	}
	seg, err := parseSegment(data, key, Header{Tenant: l.tenant, Project: project, Stream: stream, Seq: seq})
	seg.StoredAt = info.ModTime
	return seg, raw, err
}

// Segment reads one segment and verifies its footer and header. None there:
// fault.NotFound. Bytes that do not verify: fault.Corrupt, naming the key and
// the line.
func (l *Log) Segment(ctx context.Context, project, stream string, seq int64) (_ Segment, err error) {
	defer fault.Wrap(&err, "segment(%s/%s, %d)", project, stream, seq)
	if err := l.checkStream(project, stream); err != nil {
		return Segment{}, err
	}
	if seq < 1 {
		return Segment{}, fault.New(fault.Invalid, "segments count from 1")
	}
	seg, _, err := l.read(ctx, project, stream, seq)
	return seg, err
}

// Segments walks the stream from segment after+1 until one is absent, and
// verifies each and the chain between them (from `after` itself, where this Log
// has verified that segment). A last segment without a footer was never
// committed and ends the walk. An error is yielded once and ends it too.
func (l *Log) Segments(ctx context.Context, project, stream string, after int64) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		if after < 0 {
			yield(Segment{}, fault.New(fault.Invalid, "segments(%s/%s): after %d", project, stream, after))
			return
		}
		prev, checked := Head{}, after == 0
		if h, ok := l.recall(project, stream); ok && h.Seq == after {
			prev, checked = h, true
		}
		for seq := after + 1; ; seq++ {
			seg, err := l.Segment(ctx, project, stream, seq)
			if errors.Is(err, errTorn) {
				last, e := l.isLast(ctx, project, stream, seq)
				if e != nil {
					err = e
				} else if last {
					return
				}
			}
			if fault.Is(err, fault.NotFound) {
				return
			}
			if err == nil && checked && seg.Header.Prev != prev.Hash {
				err = corrupt(l.segmentKey(project, stream, seq), 1, errors.New("`prev` is not the hash of the segment before"))
			}
			if err != nil {
				yield(Segment{}, err)
				return
			}
			prev, checked = Head{seq, seg.Hash}, true
			l.learn(project, stream, prev)
			if !yield(seg, nil) {
				return
			}
		}
	}
}

// Head finds the end of the stream: the zero Head when it has no segment. It
// starts from the furthest segment this Log has verified, else from a LIST, and
// walks n+1 until absent; once known, that is one read of a key that is absent.
func (l *Log) Head(ctx context.Context, project, stream string) (_ Head, err error) {
	defer fault.Wrap(&err, "head(%s/%s)", project, stream)
	if err := l.checkStream(project, stream); err != nil {
		return Head{}, err
	}
	head, ok := l.recall(project, stream)
	if !ok {
		if head, err = l.listedHead(ctx, project, stream); err != nil {
			return Head{}, err
		}
	}
	for seg, err := range l.Segments(ctx, project, stream, head.Seq) {
		if err != nil {
			return Head{}, err
		}
		head = Head{seg.Header.Seq, seg.Hash}
	}
	return head, nil
}

// listedHead is the last whole segment that a LIST shows, which may lag.
func (l *Log) listedHead(ctx context.Context, project, stream string) (Head, error) {
	seq, err := l.lastSeq(ctx, project, stream)
	if err != nil || seq == 0 {
		return Head{}, err
	}
	seg, err := l.Segment(ctx, project, stream, seq)
	if errors.Is(err, errTorn) && seq > 1 {
		seg, err = l.Segment(ctx, project, stream, seq-1)
	}
	switch {
	case errors.Is(err, errTorn), fault.Is(err, fault.NotFound):
		return Head{}, nil // walk from the start
	case err != nil:
		return Head{}, err
	}
	head := Head{seg.Header.Seq, seg.Hash}
	l.learn(project, stream, head)
	return head, nil
}

// listPage is how many keys of a stream are listed before its end is sought by
// doubling: what one LIST call gives.
const listPage = 1000

// lastSeq is the number of the stream's last object, 0 when it has none. Short
// streams take one LIST; of longer ones the end is found by doubling, then
// halving, about 2·log2(n/1000) HEADs instead of n/1000 LISTs.
func (l *Log) lastSeq(ctx context.Context, project, stream string) (int64, error) {
	var last int64
	n := 0
	for info, err := range l.b.ListAfter(ctx, l.streamPrefix(project, stream), "") {
		if err != nil {
			return 0, err
		}
		if seq, ok := seqOf(path.Base(info.Key)); ok {
			last = seq
		}
		if n++; n == listPage {
			break
		}
	}
	if n < listPage {
		return last, nil
	}
	exists := func(seq int64) (bool, error) {
		absent, err := l.isLast(ctx, project, stream, seq-1)
		return !absent, err
	}
	lo, step := last, int64(listPage) // lo exists
	for {
		ok, err := exists(lo + step)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		lo += step
		step *= 2
	}
	for hi := lo + step; hi-lo > 1; { // hi is absent
		mid := lo + (hi-lo)/2
		ok, err := exists(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// Admits gives the project's admit lines after number `after`, in order. An
// error is yielded once and ends the sequence.
func (l *Log) Admits(ctx context.Context, project string, after int64) iter.Seq2[memory.Admit, error] {
	return func(yield func(memory.Admit, error) bool) {
		for seg, err := range l.Segments(ctx, project, memory.AdmitStream, after) {
			var a *memory.Admit
			if err == nil {
				a, err = l.admitOf(project, seg)
			}
			if err != nil {
				yield(memory.Admit{}, err)
				return
			}
			if !yield(*a, nil) {
				return
			}
		}
	}
}

// admitOf is the one admit line of a segment of the admit stream.
func (l *Log) admitOf(project string, seg Segment) (*memory.Admit, error) {
	key := l.segmentKey(project, memory.AdmitStream, seg.Header.Seq)
	var found *memory.Admit
	for i, r := range seg.Records {
		a, ok := r.(*memory.Admit)
		if !ok {
			continue // a record type of a newer mem
		}
		if found != nil {
			return nil, corrupt(key, i+2, errors.New("a second admit line in one segment"))
		}
		if found = a; a.Seq != seg.Header.Seq || a.Tenant != l.tenant || a.Project != project {
			return nil, corrupt(key, i+2, errors.New("the admit line is not of this place in the stream"))
		}
	}
	if found == nil {
		return nil, corrupt(key, 0, errors.New("no admit line in the segment"))
	}
	return found, nil
}
