package transcript

import (
	"io"
	"iter"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// ReaderVersion is recorded in every source record. It changes when the same
// bytes give other turns.
//
// History: t1 — Claude Code, pi v1 to v3, flat JSONL, Markdown.
const ReaderVersion = "t1"

// MaxLineBytes is the default cap on one physical line, in bytes: real lines
// reach 15 MB (formats.md section 0 rule 2); past the cap a line is skipped
// and counted, so that memory stays bounded.
const MaxLineBytes = 64 << 20

// Options says how an object is read. The zero value is usable.
type Options struct {
	// Object is the object's key. Its last element is the hint for the format
	// (".md") and the seed of ids in formats that have none of their own; the
	// folders before it have no influence, so a copy elsewhere gives equal turns.
	Object string
	// ModTime is the time of notes that name none; zero when unknown.
	ModTime time.Time
	// MaxLineBytes caps one physical line; 0 means MaxLineBytes.
	MaxLineBytes int
	// NoteChars is the length, in characters, over which a Markdown section is
	// split at paragraphs; 0 means 2,000 (brief D3).
	NoteChars int
	// From resumes: records that begin before this byte of the decompressed
	// object give no turn and are not counted. They are still read, because
	// turn ids and the queue of typed-ahead prompts depend on them.
	From int64
}

// Reader reads one object. It is not safe for concurrent use.
type Reader struct {
	stats  Stats
	format string
}

// Open decompresses gzip and zstd, told by their magic, and detects the format
// by content over the first 64 KiB or 20 records. It reads r no further than
// that. The error is one of I/O only: an object of no known format opens, with
// Format "unknown" and no turns.
func Open(r io.Reader, opt Options) (*Reader, error) { return &Reader{}, nil }

// Format is the detected format; see the Format constants.
func (r *Reader) Format() string { return r.format }

// Turns yields the turns in file order. A bad line never ends it; an error is
// one of I/O, is yielded last, and leaves Stats as far as the reading came.
// It may be called once.
func (r *Reader) Turns() iter.Seq2[memory.Turn, error] {
	return func(func(memory.Turn, error) bool) {}
}

// Stats is final after Turns is drained.
func (r *Reader) Stats() *Stats { return &r.stats }
