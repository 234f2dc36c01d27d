package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Append writes recs as segment prev.Seq+1, create-only: the commit and the
// fence. It returns the new head.
//
//   - A lost race is fault.Conflict: read the stream again and redo.
//   - An own earlier attempt whose answer was lost is success: the segment that
//     stands there has this writer and these records.
//   - fault.Unavailable leaves open whether the write took effect; appending
//     the same records at the same prev again settles it.
//   - A last segment without a footer is set aside under ops/dead and replaced.
//   - Records that break the format, and records too many or too large for one
//     segment, are fault.Invalid and nothing is written.
func (l *Log) Append(ctx context.Context, project, stream string, prev Head, recs []Record) (_ Head, err error) {
	defer fault.Wrap(&err, "append(%s/%s, %d)", project, stream, prev.Seq+1)
	if err := l.checkStream(project, stream); err != nil {
		return Head{}, err
	}
	if len(recs) == 0 {
		return Head{}, fault.New(fault.Invalid, "no records")
	}
	if l.writer == "" {
		return Head{}, fault.New(fault.Invalid, "the log was opened without a writer")
	}
	if err := l.checkPrev(ctx, project, stream, prev); err != nil {
		return Head{}, err
	}
	data, hash, err := encodeSegment(Header{
		Tenant: l.tenant, Project: project, Stream: stream,
		Seq: prev.Seq + 1, Prev: prev.Hash, Writer: l.writer,
	}, recs)
	if err != nil {
		return Head{}, err
	}
	head := Head{prev.Seq + 1, hash}
	if err := l.commit(ctx, project, stream, head, data); err != nil {
		return Head{}, err
	}
	l.learn(project, stream, head)
	return head, nil
}

// checkPrev proves that prev is in the log, so that no append leaves a gap or
// breaks the chain.
func (l *Log) checkPrev(ctx context.Context, project, stream string, prev Head) error {
	if prev.Seq < 0 || prev.Seq == 0 && prev.Hash != "" {
		return fault.New(fault.Invalid, "no head is (%d, %q)", prev.Seq, clip([]byte(prev.Hash)))
	}
	if h, ok := l.recall(project, stream); prev.Seq == 0 || ok && h == prev {
		return nil
	}
	seg, err := l.Segment(ctx, project, stream, prev.Seq)
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.New(fault.Conflict, "the log does not hold segment %d", prev.Seq)
	case err != nil:
		return err
	case seg.Hash != prev.Hash:
		return fault.New(fault.Conflict, "segment %d has another hash", prev.Seq)
	}
	return nil
}

// commit writes the segment and settles what a failed write means.
func (l *Log) commit(ctx context.Context, project, stream string, head Head, data []byte) error {
	key := l.segmentKey(project, stream, head.Seq)
	_, err := l.b.Create(ctx, key, data)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, objstore.ErrPrecondition):
		return l.settle(ctx, project, stream, head, data)
	case ctx.Err() == nil && fault.Is(err, fault.Unavailable):
		// The write may have taken effect all the same.
		if seg, _, e := l.read(ctx, project, stream, head.Seq); e == nil && l.own(seg, head) {
			return nil
		}
	}
	return err
}

// own reports whether seg is this process's write of the segment head names.
func (l *Log) own(seg Segment, head Head) bool {
	return seg.Header.Writer == l.writer && seg.Hash == head.Hash
}

// settle reads the segment that stood in the way.
func (l *Log) settle(ctx context.Context, project, stream string, head Head, data []byte) error {
	seg, raw, err := l.read(ctx, project, stream, head.Seq)
	switch {
	case err == nil && l.own(seg, head):
		return nil
	case err == nil:
		return fault.New(fault.Conflict, "segment %d was written by %s", head.Seq, seg.Header.Writer)
	case fault.Is(err, fault.NotFound):
		return fault.New(fault.Unavailable, "segment %d is there and not there", head.Seq)
	case !errors.Is(err, errTorn):
		return err
	}
	if last, e := l.isLast(ctx, project, stream, head.Seq); e != nil {
		return e
	} else if !last {
		return err
	}
	key := l.segmentKey(project, stream, head.Seq)
	if err := l.setAside(ctx, key, raw.data, errTorn); err != nil {
		return err
	}
	_, err = l.b.Replace(ctx, key, data, raw.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		if seg, _, e := l.read(ctx, project, stream, head.Seq); e == nil && l.own(seg, head) {
			return nil
		}
		return fault.New(fault.Conflict, "segment %d changed while its torn form was replaced", head.Seq)
	}
	return err
}

// isLast reports whether no segment stands after seq.
func (l *Log) isLast(ctx context.Context, project, stream string, seq int64) (bool, error) {
	_, err := l.b.Head(ctx, l.segmentKey(project, stream, seq+1))
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	return false, err
}

// setAside keeps bytes that are about to be replaced as a dead letter.
func (l *Log) setAside(ctx context.Context, key string, data []byte, why error) error {
	return l.PutDead(ctx, Dead{
		Function: "eventlog", Key: key, Body: data,
		Kind: fault.Corrupt.String(), Error: why.Error(),
		Hint: "nothing to do: the bytes were replaced by a whole object and are kept here",
	})
}

// AppendAdmit appends one admit line after prev: the commit that fixes its
// part's place in THE order. It sets V, Type, Level, Tenant, Project, Seq and
// StoredAt (the store's clock, UTC, milliseconds) and returns the line as it
// stands. Errors are those of Append; a repeat of an own attempt whose answer
// was lost gives the line that was stored then.
func (l *Log) AppendAdmit(ctx context.Context, project string, prev Head, a memory.Admit) (_ memory.Admit, _ Head, err error) {
	defer fault.Wrap(&err, "append admit")
	now, err := l.b.Now(ctx)
	if err != nil {
		return a, Head{}, err
	}
	a.V, a.Type, a.Level = memory.Version, memory.TypeAdmit, memory.LevelNone
	a.Tenant, a.Project, a.Seq = l.tenant, project, prev.Seq+1
	a.StoredAt = now.UTC().Truncate(time.Millisecond)
	if !a.Source.Valid() || !a.RawSHA256.Valid() {
		return a, Head{}, fault.New(fault.Invalid, "an admit line names its source record and raw sha256")
	}
	head, err := l.Append(ctx, project, memory.AdmitStream, prev, []Record{&a})
	if !fault.Is(err, fault.Conflict) {
		return a, head, err
	}
	seg, e := l.Segment(ctx, project, memory.AdmitStream, a.Seq)
	if e != nil || seg.Header.Writer != l.writer || seg.Header.Prev != prev.Hash || len(seg.Records) != 1 {
		return a, Head{}, err
	}
	stored, ok := seg.Records[0].(*memory.Admit)
	if !ok {
		return a, Head{}, err
	}
	want := a
	want.StoredAt = stored.StoredAt
	if *stored != want {
		return a, Head{}, err
	}
	return *stored, Head{seg.Header.Seq, seg.Hash}, nil
}
