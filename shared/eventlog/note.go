package eventlog

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// maxNoteText bounds a note's text as it is stored: the marks of redaction may be
// longer than what they stand for.
const maxNoteText = 2 * memory.MaxNoteBytes

// NoteRecord is a note as a record of the shelf Notes: a line, as programs that
// know other fields of notes keep them.
func NoteRecord(n *memory.Note) (Record, error) {
	c := *n
	c.At = c.At.UTC()
	c.Prev = slices.Clone(c.Prev)
	slices.Sort(c.Prev)
	c.Prev = slices.Compact(c.Prev)
	if c.Prev == nil {
		c.Prev = []memory.SHA{}
	}
	if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeNote, memory.LevelNone); err != nil {
		return nil, err
	}
	switch {
	case len(c.Text) > maxNoteText:
		return nil, fault.New(fault.Invalid, "the note has %d bytes, at most %d are kept", len(c.Text), maxNoteText)
	case !utf8.ValidString(c.Text):
		return nil, fault.New(fault.Invalid, "the note is not UTF-8")
	case c.Note == "" || c.Origin == "":
		return nil, fault.New(fault.Invalid, "a note says where it stands and where it comes from")
	}
	line, err := marshal(&c)
	return &Opaque{Type: memory.TypeNote, Line: line}, err
}

// AsNote reads a note out of a record; false where it is none. textSHA is the
// sha256 of its text, which an erased note still has.
func AsNote(r Record) (n *memory.Note, textSHA memory.SHA, ok bool, err error) {
	o, isOpaque := r.(*Opaque)
	if !isOpaque || o.Type != memory.TypeNote {
		return nil, "", false, nil
	}
	n = &memory.Note{}
	if err := json.Unmarshal(o.Line, n); err != nil {
		return nil, "", true, fault.New(fault.Corrupt, "the note does not decode: %v", jsonFault(err))
	}
	if n.Erased != "" { // the text is that of the sealed form
		textSHA = memory.SHA(strings.TrimPrefix(n.Text, "sha256:"))
		n.Text = ""
		return n, textSHA, true, nil
	}
	return n, memory.SumString(n.Text), true, nil
}

// KeptNote is a note with the key of the object it stands in.
type KeptNote struct {
	Key     memory.SHA
	Note    *memory.Note
	TextSHA memory.SHA // of its text, erased or not
}

// Note reads the note of one object of the shelf; nil where it holds none, which
// a newer program may have written. None there: fault.NotFound.
func (l *Log) Note(ctx context.Context, project string, key memory.SHA) (*KeptNote, error) {
	recs, err := l.Records(ctx, project, Notes, key)
	if err != nil {
		return nil, err
	}
	for _, r := range recs {
		n, sum, ok, err := AsNote(r)
		if err != nil {
			return nil, err
		}
		if ok {
			return &KeptNote{Key: key, Note: n, TextSHA: sum}, nil
		}
	}
	return nil, nil
}

// Notes reads every note of a project, by key. An error ends the sequence.
func (l *Log) Notes(ctx context.Context, project string) iter.Seq2[*KeptNote, error] {
	return func(yield func(*KeptNote, error) bool) {
		for key, err := range l.RecordKeys(ctx, project, Notes) {
			var n *KeptNote
			if err == nil {
				n, err = l.Note(ctx, project, key)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if n != nil && !yield(n, nil) {
				return
			}
		}
	}
}

// PutNote appends a note and returns its key.
func (l *Log) PutNote(ctx context.Context, n *memory.Note) (memory.SHA, error) {
	r, err := NoteRecord(n)
	if err != nil {
		return "", err
	}
	return l.PutRecords(ctx, n.Project, Notes, []Record{r})
}
