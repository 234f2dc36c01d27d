package eventlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// This file is what forgetting needs of the log (shared/forget) beyond what scrubbing
// does.

// Forget is Erase of records that nothing will stand for; see the function Forget.
func (l *Log) Forget(ctx context.Context, project, stream string, seq int64, tombstone memory.SHA, pick func(Record) bool) (n int, err error) {
	return l.eraseBy(ctx, project, stream, seq, tombstone, pick, Forget)
}

// stub is what is left of a source record that was forgotten: its chunk list, its
// headings and the names of its tools and folders are gone with its texts. Its bytes no
// longer prove its key, so that Verify asks the tombstone for it.
//
//	{"v":1,"type":"source","level":"-","tenant":"local","project":"shop","erased":"8c11…","forgotten":true}
type stub struct {
	V         int          `json:"v"`
	Type      string       `json:"type"`
	Level     memory.Level `json:"level"`
	Tenant    string       `json:"tenant"`
	Project   string       `json:"project"`
	Erased    memory.SHA   `json:"erased"`
	Forgotten bool         `json:"forgotten"`
}

// maxStub bounds a stub: a longer object is none.
const maxStub = 1024

func parseStub(data []byte) (memory.Source, bool) {
	if len(data) > maxStub || bytes.Count(data, lineFeed) != 1 || !bytes.HasSuffix(data, lineFeed) {
		return memory.Source{}, false
	}
	var s stub
	if json.Unmarshal(data, &s) != nil || s.Type != memory.TypeSource || !s.Forgotten || !s.Erased.Valid() || versionError(s.V) != nil {
		return memory.Source{}, false
	}
	return memory.Source{V: s.V, Type: s.Type, Level: s.Level, Tenant: s.Tenant, Project: s.Project, Erased: s.Erased, Forgotten: true}, true
}

// ForgetSource puts a stub in the place of a source record; the tombstone names the
// record that stands for it. A stub is left alone, and none there is no error.
func (l *Log) ForgetSource(ctx context.Context, project string, key, tombstone memory.SHA) (err error) {
	defer fault.Wrap(&err, "forget source(%s, %s)", project, key.Short())
	if err := l.checkProject(project); err != nil {
		return err
	}
	if !key.Valid() || !tombstone.Valid() {
		return fault.New(fault.Invalid, "a source and its tombstone are named by their sha256")
	}
	at := l.sourceKey(project, key)
	raw, err := l.readLimited(ctx, at, maxSource)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, ok := parseStub(raw.data); ok {
		return nil
	}
	line, err := marshal(&stub{V: memory.Version, Type: memory.TypeSource, Level: memory.LevelNone, Tenant: l.tenant, Project: project, Erased: tombstone, Forgotten: true})
	if err != nil {
		return err
	}
	_, err = l.b.Replace(ctx, at, append(line, '\n'), raw.etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return fault.New(fault.Conflict, "the source changed in between")
	}
	return err
}

// SourceKeys lists the source records of a project by key, those that no admit line
// names included.
func (l *Log) SourceKeys(ctx context.Context, project string) iter.Seq2[memory.SHA, error] {
	return func(yield func(memory.SHA, error) bool) {
		if err := l.checkProject(project); err != nil {
			yield("", err)
			return
		}
		prefix := strings.TrimSuffix(l.sourceKey(project, ""), ".jsonl")
		for info, err := range l.b.ListAfter(ctx, prefix, "") {
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

// DropLooseSource removes a source record that no admit line leads to: what an admission
// left that died before its line stood. None there is no error.
func (l *Log) DropLooseSource(ctx context.Context, project string, key memory.SHA) error {
	if err := l.checkProject(project); err != nil {
		return err
	}
	if !key.Valid() {
		return fault.New(fault.Invalid, "the key of a source is a sha256")
	}
	return absentOK(l.b.Delete(ctx, l.sourceKey(project, key)))
}

// ForgetReceipt makes the receipt of an object version answer `forgotten`; false where
// there is none, or it says so already.
func (l *Log) ForgetReceipt(ctx context.Context, id memory.SHA, reason string) (changed bool, err error) {
	defer fault.Wrap(&err, "forget receipt(%s)", id.Short())
	r, etag, found, err := l.receipt(ctx, id)
	if err != nil || !found || r.Outcome == OutcomeForgotten {
		return false, err
	}
	r.Outcome, r.Reason, r.Counts = OutcomeForgotten, reason, nil
	line, err := marshal(&r)
	if err != nil {
		return false, err
	}
	_, err = l.b.Replace(ctx, l.receiptKey(id), append(line, '\n'), etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return false, fault.New(fault.Conflict, "the receipt changed in between")
	}
	return err == nil, err
}

// ReadmitReceipt takes the receipt of an object version away that says `forgotten`, so
// that the object is read again.
func (l *Log) ReadmitReceipt(ctx context.Context, id memory.SHA) (err error) {
	defer fault.Wrap(&err, "readmit receipt(%s)", id.Short())
	r, _, found, err := l.receipt(ctx, id)
	if err != nil || !found || r.Outcome != OutcomeForgotten {
		return err
	}
	return absentOK(l.b.Delete(ctx, l.receiptKey(id)))
}
