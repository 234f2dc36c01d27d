package eventlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// This file is what scrubbing needs of the log (shared/scrub): which records
// stand for erased ones, and how what no record holds, blobs, vectors and
// cached folds, is taken out.

// maxReplaced bounds how many newly redacted forms of one source follow one
// another: one for each version of the rules that found something in it.
const maxReplaced = 256

// Part reads the source record that stands for the one an admit line names:
// itself, or its newest redacted form. Errors are those of Source.
func (l *Log) Part(ctx context.Context, project string, key memory.SHA) (_ memory.Source, _ []memory.Chunk, err error) {
	_, s, chunks, err := l.PartKey(ctx, project, key)
	return s, chunks, err
}

// PartKey is Part with the key of the record that it gives.
func (l *Log) PartKey(ctx context.Context, project string, key memory.SHA) (_ memory.SHA, s memory.Source, chunks []memory.Chunk, err error) {
	defer fault.Wrap(&err, "part(%s, %s)", project, key.Short())
	for range maxReplaced {
		if s, chunks, err = l.Source(ctx, project, key); err != nil || s.Erased == "" {
			return key, s, chunks, err
		}
		next, err := l.replacement(ctx, project, s.Erased, key)
		if err != nil {
			return key, s, nil, err
		}
		if next == "" {
			return key, s, nil, corrupt(l.sourceKey(project, key), 1, errors.New("its tombstone names no source in its place"))
		}
		key = next
	}
	return key, s, nil, corrupt(l.sourceKey(project, key), 1, errors.New("replaced again and again"))
}

// Next reads a source record, and names the one in its place, "" where it stands itself.
// Of one that was forgotten only the name is left.
func (l *Log) Next(ctx context.Context, project string, key memory.SHA) (next memory.SHA, s memory.Source, chunks []memory.Chunk, err error) {
	defer fault.Wrap(&err, "next(%s, %s)", project, key.Short())
	if s, chunks, err = l.Source(ctx, project, key); err != nil || s.Erased == "" {
		return "", s, chunks, err
	}
	if next, err = l.replacement(ctx, project, s.Erased, key); err == nil && next == "" {
		err = corrupt(l.sourceKey(project, key), 1, errors.New("its tombstone names no source in its place"))
	}
	return next, s, chunks, err
}

// replacement is the source record that a tombstone names in the place of key;
// "" where it names none. The tombstone, which holds the edits of the whole
// project, is read once.
func (l *Log) replacement(ctx context.Context, project string, tombstone, key memory.SHA) (memory.SHA, error) {
	name := project + "/" + string(tombstone)
	v, ok := l.replaced.Load(name)
	if !ok {
		t, err := l.Tombstone(ctx, project, tombstone)
		if err != nil {
			return "", err
		}
		now := make(map[memory.SHA]memory.SHA, len(t.Sources))
		for _, r := range t.Sources {
			now[r.Old] = r.New
		}
		v, _ = l.replaced.LoadOrStore(name, now)
	}
	return v.(map[memory.SHA]memory.SHA)[key], nil
}

// Tombstone reads one tombstone. None there: fault.NotFound.
func (l *Log) Tombstone(ctx context.Context, project string, key memory.SHA) (*memory.Tombstone, error) {
	recs, err := l.Records(ctx, project, Tombstones, key)
	if err != nil {
		return nil, err
	}
	for _, r := range recs {
		if t, ok := r.(*memory.Tombstone); ok {
			return t, nil
		}
	}
	return nil, corrupt(l.shelfPrefix(project, Tombstones)+string(key)+".jsonl", 1, errors.New("no tombstone record"))
}

// ScrubbedBlobs gives every blob of the project that was scrubbed, by its
// sha256. Of a blob that two tombstones name the edits are the same, unless its
// text was learned again meanwhile.
func (l *Log) ScrubbedBlobs(ctx context.Context, project string) (map[memory.SHA]memory.Scrubbed, error) {
	out := map[memory.SHA]memory.Scrubbed{}
	for key, err := range l.RecordKeys(ctx, project, Tombstones) {
		if err != nil {
			return nil, err
		}
		t, err := l.Tombstone(ctx, project, key)
		if err != nil {
			return nil, err
		}
		for _, b := range t.Blobs {
			out[b.Old] = b
		}
	}
	return out, nil
}

// EraseSource marks a source record as one that another stands for, named by
// the tombstone. Its key stays what it is. A record that is marked already is
// left alone.
func (l *Log) EraseSource(ctx context.Context, project string, key, tombstone memory.SHA) (err error) {
	defer fault.Wrap(&err, "erase source(%s, %s)", project, key.Short())
	if err := l.checkProject(project); err != nil {
		return err
	}
	at := l.sourceKey(project, key)
	raw, err := l.readLimited(ctx, at, maxSource)
	if err != nil {
		return err
	}
	lines, err := sumLines(raw.data, key)
	if err != nil {
		return corrupt(at, 0, err)
	}
	gone, err := Erase(lines[0], tombstone)
	if err != nil {
		return corrupt(at, 1, err)
	}
	if string(gone) == string(lines[0]) {
		return nil
	}
	out := append(make([]byte, 0, len(raw.data)+len(gone)), gone...)
	out = append(out, raw.data[len(lines[0]):]...)
	if _, _, err := parseSource(out, key); err != nil {
		return fault.New(fault.Internal, "erasing would change the key: %v", err)
	}
	_, err = l.b.Replace(ctx, at, out, raw.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return fault.New(fault.Conflict, "the source changed in between")
	}
	return err
}

// SetAside gives the dead letters that hold bytes of damaged objects of a
// project's log, with the text in them as far as it can be read.
func (l *Log) SetAside(ctx context.Context, project string) iter.Seq2[memory.SHA, string] {
	return func(yield func(memory.SHA, string) bool) {
		blobs := l.blobKey(project, "")
		for d, err := range l.DeadLetters(ctx) {
			if err != nil || len(d.Body) == 0 { // mem dead names a letter that is damaged itself
				continue
			}
			text := string(d.Body)
			if strings.HasPrefix(d.Key, blobs) {
				text = l.unpackSome(d.Body)
			} else if !strings.HasPrefix(d.Key, "log/"+l.tenant+"/"+project+"/") {
				continue
			}
			if !yield(d.ID, text) {
				return
			}
		}
	}
}

// unpackSome is what of a damaged blob decompresses.
func (l *Log) unpackSome(packed []byte) string {
	r, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderMaxMemory(maxBlob))
	if err != nil {
		return ""
	}
	defer r.Close()
	out, _ := io.ReadAll(io.LimitReader(r, maxBlob)) // it is damaged: what comes before counts
	return string(out)
}

// Blobs lists the blobs of a project by key.
func (l *Log) Blobs(ctx context.Context, project string) iter.Seq2[memory.SHA, error] {
	return func(yield func(memory.SHA, error) bool) {
		if err := l.checkProject(project); err != nil {
			yield("", err)
			return
		}
		prefix := l.blobKey(project, "")
		for info, err := range l.b.ListAfter(ctx, prefix, "") {
			if err != nil {
				yield("", err)
				return
			}
			if sha := memory.SHA(strings.TrimPrefix(info.Key, prefix)); sha.Valid() && !yield(sha, nil) {
				return
			}
		}
	}
}

// DropBlob removes a blob that was scrubbed. None there is no error.
func (l *Log) DropBlob(ctx context.Context, project string, sha memory.SHA) error {
	if err := l.checkProject(project); err != nil {
		return err
	}
	if !sha.Valid() {
		return fault.New(fault.Invalid, "the key of a blob is a sha256")
	}
	return absentOK(l.b.Delete(ctx, l.blobKey(project, sha)))
}

// DropFold removes the cached fold of a stream, which holds texts. None there is
// no error.
func (l *Log) DropFold(ctx context.Context, project, stream string) error {
	if err := l.checkStream(project, stream); err != nil {
		return err
	}
	return absentOK(l.b.Delete(ctx, l.foldKey(project, stream)))
}

// DropOriginals removes the texts of which readers were given a shorter form
// (shared/originals): each is a whole text that newer rules may mask, and none is
// needed.
func (l *Log) DropOriginals(ctx context.Context, project string) error {
	if err := l.checkProject(project); err != nil {
		return err
	}
	for info, err := range l.b.ListAfter(ctx, "derived/ccr/"+l.tenant+"/"+project+"/", "") {
		if err != nil {
			return err
		}
		if err := absentOK(l.b.Delete(ctx, info.Key)); err != nil {
			return err
		}
	}
	return nil
}

func absentOK(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// DropVectors keeps of a segment's vectors in a space those of the passages that
// keep chooses, and returns how many it removed. No vectors there is no error.
func (l *Log) DropVectors(ctx context.Context, project, space, stream string, seq int64, keep func(passage memory.SHA) bool) (n int, err error) {
	defer fault.Wrap(&err, "drop vectors(%s/%s, %s, %d)", project, stream, space, seq)
	if err := l.checkVectorKey(project, space, stream, seq); err != nil {
		return 0, err
	}
	key := l.vectorKey(project, space, stream, seq)
	raw, err := l.readLimited(ctx, key, maxVectors)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	h := vectorHeader{V: memory.Version, Type: typeVectors, Level: memory.LevelNone, Tenant: l.tenant, Project: project, Space: space, Stream: stream, Seq: seq}
	old, err := decodeVectors(raw.data, h)
	if err != nil {
		return 0, corrupt(key, 0, err)
	}
	left := Vectors{Dims: old.Dims}
	for i, p := range old.Passages {
		if keep(p) {
			left.Passages = append(left.Passages, p)
			left.Rows = append(left.Rows, old.Row(i)...)
		}
	}
	for _, p := range old.Without {
		if keep(p) {
			left.Without = append(left.Without, p)
		}
	}
	if n = len(old.all()) - len(left.all()); n == 0 {
		return 0, nil
	}
	h.Dims, h.Rows, h.Without = left.Dims, len(left.Passages), left.Without
	data, err := encodeVectors(h, left)
	if err != nil {
		return 0, err
	}
	_, err = l.b.Replace(ctx, key, data, raw.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return 0, fault.New(fault.Conflict, "the vectors changed in between")
	}
	return n, err
}

// Scrub is how far a project's last scrub is, or the forgetting of something (shared/forget).
// It stands in the pointer
// <project>/scrub, which is set before the tombstone is written: who keeps texts
// in memory, or rows in an index, holds them under the value that he read first.
type Scrub struct {
	Kind      string     `json:"kind,omitempty"` // of the tombstone; empty: memory.TombstoneScrub
	N         int64      `json:"n"`              // begins of a scrub so far, of one that goes on too: no value comes twice
	Tombstone memory.SHA `json:"tombstone"`      // of the last scrub that found something; none stands there where it died before its commit
	Rules     string     `json:"rules"`          // of that one
	Marked    bool       `json:"marked"`         // every old source record leads to its new one
	Done      bool       `json:"done"`           // all that the tombstone demands of the log is done
	// Proved, of memory.TombstoneForget, says that the receipt is written: indexes,
	// exports and pages were cleaned and looked through too.
	Proved bool `json:"proved,omitempty"`
}

// Forgetting reports whether something is being forgotten: nothing of the project is
// decided until the log is clean of it.
func (s Scrub) Forgetting() bool { return s.Kind == memory.TombstoneForget && !s.Done }

func scrubPointer(project string) string { return project + "/scrub" }

// ScrubState is a value that changes with each scrub of the project; empty
// before the first.
func (l *Log) ScrubState(ctx context.Context, project string) (etag string, err error) {
	var s Scrub
	return l.Pointer(ctx, scrubPointer(project), &s)
}

// LastScrub reads the project's last scrub, the zero value where there was none.
func (l *Log) LastScrub(ctx context.Context, project string) (s Scrub, etag string, err error) {
	etag, err = l.Pointer(ctx, scrubPointer(project), &s)
	return s, etag, err
}

// SetScrub writes it, as SetPointer does.
func (l *Log) SetScrub(ctx context.Context, project string, s Scrub, etag string) error {
	return l.SetPointer(ctx, scrubPointer(project), s, etag)
}
