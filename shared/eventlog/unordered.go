package eventlog

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Shelf is a place for records that have no order: each object holds the
// records of one fact and is named by the sha256 of their sealed form.
type Shelf string

// The shelves beside a project's streams (DESIGN section 4). Source records
// have their own methods.
const (
	Labels     Shelf = "labels"
	Notes      Shelf = "notes"
	Lessons    Shelf = "lessons"
	Tombstones Shelf = "tombstones"
	Skills     Shelf = "skills"    // what people promoted and withdrew
	Spaces     Shelf = "spaces"    // what vectors there are
	Forgotten  Shelf = "forgotten" // receipts of what was forgotten, and what people had read again
)

func (s Shelf) valid() bool {
	return s == Labels || s == Notes || s == Lessons || s == Tombstones || s == Skills || s == Spaces || s == Forgotten
}

func (l *Log) shelfPrefix(project string, s Shelf) string {
	return "log/" + l.tenant + "/" + project + "/" + string(s) + "/"
}

func (l *Log) checkShelf(project string, s Shelf) error {
	if !s.valid() {
		return fault.New(fault.Invalid, "no shelf %q", clip([]byte(s)))
	}
	return l.checkProject(project)
}

// PutRecords writes records as one write-once object of a shelf and returns its
// key: the sha256 of the sealed form of its lines. The same records again are
// the same object and no error.
func (l *Log) PutRecords(ctx context.Context, project string, s Shelf, recs []Record) (_ memory.SHA, err error) {
	defer fault.Wrap(&err, "put records(%s/%s)", project, string(s))
	if err := l.checkShelf(project, s); err != nil {
		return "", err
	}
	key, data, err := looseLines(recs)
	if err != nil {
		return "", err
	}
	err = l.putOnce(ctx, l.shelfPrefix(project, s)+string(key)+".jsonl", data, maxSource, func(old []byte) error {
		_, err := sumLines(old, key)
		return err
	})
	return key, err
}

// RecordsKey is the key under which PutRecords would write recs.
func RecordsKey(recs []Record) (memory.SHA, error) {
	key, _, err := looseLines(recs)
	return key, err
}

// looseLines are the lines of an unordered object, and its key.
func looseLines(recs []Record) (memory.SHA, []byte, error) {
	if len(recs) == 0 {
		return "", nil, fault.New(fault.Invalid, "no records")
	}
	chain := newChainer()
	var buf bytes.Buffer
	for i, r := range recs {
		line, _, err := encodeRecord(r)
		if err != nil {
			return "", nil, at(err, "record "+strconv.Itoa(i+1))
		}
		isErased, err := chain.add(line)
		if err != nil || isErased {
			return "", nil, fault.At(fault.Invalid, "record "+strconv.Itoa(i+1), "", "erased, or no canonical form: %v", err)
		}
		if buf.Len()+len(line) >= maxSource {
			return "", nil, fault.New(fault.Invalid, "more than %d bytes of records in one object", maxSource)
		}
		buf.Write(line)
		buf.WriteByte('\n')
	}
	return chain.sum(), buf.Bytes(), nil
}

// Records reads one object of a shelf, verified against its key. None there:
// fault.NotFound.
func (l *Log) Records(ctx context.Context, project string, s Shelf, key memory.SHA) (_ []Record, err error) {
	defer fault.Wrap(&err, "records(%s/%s, %s)", project, string(s), key.Short())
	if err := l.checkShelf(project, s); err != nil {
		return nil, err
	}
	if !key.Valid() {
		return nil, fault.New(fault.Invalid, "the key of records is a sha256")
	}
	at := l.shelfPrefix(project, s) + string(key) + ".jsonl"
	raw, err := l.readLimited(ctx, at, maxSource)
	if err != nil {
		return nil, err
	}
	lines, err := sumLines(raw.data, key)
	if err != nil {
		return nil, corrupt(at, 0, err)
	}
	recs := make([]Record, len(lines))
	for i, line := range lines {
		if recs[i], err = decodeRecord(line); err != nil {
			return nil, corrupt(at, i+1, err)
		}
	}
	return recs, nil
}

// RecordKeys gives the keys of a shelf's objects, ascending. An error ends the
// sequence.
func (l *Log) RecordKeys(ctx context.Context, project string, s Shelf) iter.Seq2[memory.SHA, error] {
	return l.RecordKeysWith(ctx, project, s, "")
}

// RecordKeysWith is RecordKeys of those that begin with some hex digits.
func (l *Log) RecordKeysWith(ctx context.Context, project string, s Shelf, begin string) iter.Seq2[memory.SHA, error] {
	return func(yield func(memory.SHA, error) bool) {
		if err := l.checkShelf(project, s); err != nil {
			yield("", err)
			return
		}
		if len(begin) > 64 || strings.Trim(begin, "0123456789abcdef") != "" {
			yield("", fault.New(fault.Invalid, "a key of records is hex digits"))
			return
		}
		prefix := l.shelfPrefix(project, s)
		for info, err := range l.b.ListAfter(ctx, prefix+begin, "") {
			if err != nil {
				yield("", err)
				return
			}
			key := memory.SHA(strings.TrimSuffix(strings.TrimPrefix(info.Key, prefix), ".jsonl"))
			if key.Valid() && !yield(key, nil) {
				return
			}
		}
	}
}

// EraseRecords takes the texts out of the records of one object of a shelf: their
// sealed form stays, so that the key does, and what refers to them still finds them.
// One that is erased already is left alone. An object that changed in between is
// fault.Conflict.
func (l *Log) EraseRecords(ctx context.Context, project string, s Shelf, key, tombstone memory.SHA) (err error) {
	defer fault.Wrap(&err, "erase records(%s/%s, %s)", project, string(s), key.Short())
	if err := l.checkShelf(project, s); err != nil {
		return err
	}
	if !tombstone.Valid() || !key.Valid() {
		return fault.New(fault.Invalid, "records and their tombstone are named by their sha256")
	}
	at := l.shelfPrefix(project, s) + string(key) + ".jsonl"
	raw, err := l.readLimited(ctx, at, maxSource)
	if err != nil {
		return err
	}
	lines, err := sumLines(raw.data, key)
	if err != nil {
		return corrupt(at, 0, err)
	}
	var out []byte
	for i, line := range lines {
		gone, err := Erase(line, tombstone)
		if err != nil {
			return corrupt(at, i+1, err)
		}
		out = append(append(out, gone...), '\n')
	}
	if string(out) == string(raw.data) {
		return nil
	}
	if _, err := sumLines(out, key); err != nil {
		return fault.New(fault.Internal, "erasing would change the key: %v", err)
	}
	_, err = l.b.Replace(ctx, at, out, raw.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return fault.New(fault.Conflict, "the records changed in between")
	}
	return err
}
