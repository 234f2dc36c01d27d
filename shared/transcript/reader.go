package transcript

import (
	"bytes"
	"io"
	"iter"
	"path"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// ReaderVersion is recorded in every source record. It changes when the same
// bytes give other turns.
//
// History: t1 — Claude Code, pi v1 to v3, flat JSONL, Markdown.
// t2 — and Codex, Gemini, Cursor, OpenAI messages, ShareGPT, TRL, OpenCode,
// Cline, Aider, ChatGPT and Claude.ai exports, agent loops, plain text, schemas,
// git history.
// t3 — and outputs of tools that Claude Code wrote into files of their own.
const ReaderVersion = "t3"

// MaxLineBytes is the default cap on one physical line, in bytes: real lines
// reach 15 MB (formats.md section 0 rule 2); past the cap a line is skipped
// and counted, so that memory stays bounded.
const MaxLineBytes = 64 << 20

// NoteChars is the default length of a note, in characters (brief D3).
const NoteChars = 2000

// Options says how an object is read. The zero value is usable.
type Options struct {
	// Object is the object's key. Its last element is the hint for the format
	// (".md") and the seed of ids in formats that have none of their own; the
	// folders before it have no influence, so a copy elsewhere gives equal turns.
	// Only of a tool's output in a file of its own the folders tell what it is and
	// whose: see Spilled.
	Object string
	// ModTime is the time of notes that name none; zero when unknown.
	ModTime time.Time
	// MaxLineBytes caps one physical line; 0 means MaxLineBytes.
	MaxLineBytes int
	// NoteChars is the length, in characters, over which a Markdown section is
	// split at paragraphs; 0 means 2,000 (brief D3).
	NoteChars int
	// From resumes: lines that begin before this byte of the decompressed
	// object give no turn and are not counted. They are still read, because
	// turn ids and the queue of typed-ahead prompts depend on them.
	From int64
	// Schemas are formats that the user describes, tried in this order on each
	// record that detection sees. The first that fits goes before the shapes that
	// many formats share (OpenAI messages, ShareGPT, agent loops, flat lines), and
	// never before another format that this package knows.
	Schemas []Schema
}

// parser reads the lines of one format.
type parser interface {
	line(ln line)
	end()
}

// Reader reads one object. It is not safe for concurrent use.
type Reader struct {
	opt     Options
	base    string
	format  string
	stats   Stats
	lines   *lines
	inflate *inflated
	held    []line // lines read for detection
	schema  *Schema
	guessed bool
	parser  parser

	yield func(memory.Turn, error) bool
	stop  bool
	win   window
	seq   int
	muted bool // before Options.From
	ids   ids
	names interner
}

// Open decompresses gzip and zstd, told by their magic, and detects the format
// by content over the first 64 KiB or 20 records. It reads r no further than
// that. The error is one of I/O only: an object of no known format opens, with
// Format "unknown" and no turns.
func Open(r io.Reader, opt Options) (rd *Reader, err error) {
	defer fault.Wrap(&err, "open(%q)", opt.Object)
	if opt.MaxLineBytes <= 0 {
		opt.MaxLineBytes = MaxLineBytes
	}
	if opt.NoteChars <= 0 {
		opt.NoteChars = NoteChars
	}
	in, inflate, kind, err := decompress(r)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	rd = &Reader{
		opt:     opt,
		base:    baseOf(opt.Object),
		lines:   newLines(in, opt.MaxLineBytes, opt.From),
		inflate: inflate,
		ids:     newIDs(),
		names:   interner{},
		muted:   opt.From > 0,
	}
	rd.stats.init()
	rd.stats.Compression = kind
	det := detector{hint: hintOf(opt.Object), base: rd.base, schemas: opt.Schemas}
	_, _, det.output = Spilled(opt.Object)
	rd.lines.pieces = rd.lines.first() == '[' && !det.output
	for settled := false; !settled; {
		ln, ok := rd.lines.next()
		if !ok {
			rd.format = det.last()
			break
		}
		rd.format, settled = det.feed(ln)
		rd.lines.pieces = rd.lines.pieces && (det.doc || !det.began)
	}
	if rd.lines.err != nil {
		return nil, fault.As(fault.Unavailable, rd.lines.err)
	}
	rd.held = det.held
	rd.schema = det.schema
	rd.guessed = shapes[rd.format] || rd.format == FormatUnknown && det.json
	rd.stats.File, rd.stats.Format = path.Base(opt.Object), rd.format
	rd.parser = rd.newParser()
	return rd, nil
}

func (r *Reader) newParser() parser {
	if p := r.newDocument(); p != nil {
		return p
	}
	switch r.format {
	case FormatClaude:
		return newJSONL(r, newClaude(r))
	case FormatPi:
		return newJSONL(r, newPi(r))
	case FormatMarkdown, FormatText:
		return newMarkdown(r)
	case FormatAider:
		return newAider(r)
	case FormatCodex:
		return newJSONL(r, newCodex(r))
	case FormatGemini:
		return newGemini(r)
	case FormatCursor:
		return newCursor(r)
	case FormatGit:
		return newJSONL(r, &gitLog{r})
	case FormatOutput:
		return newOutput(r)
	case FormatUnknown, FormatEmpty:
	default:
		r.stats.Unsupported = r.format
	}
	return &whole{jsonl: jsonl{r: r, h: &counter{r: r}}}
}

// Format is the detected format; see the Format constants.
func (r *Reader) Format() string { return r.format }

// Guessed says that the object holds JSON of no known format, or of a shape that
// many formats share: a schema that is not at hand may describe it.
func (r *Reader) Guessed() bool { return r.guessed }

// Version is ReaderVersion, and after "+" that of the user's schema by which
// the object is read: "t2+1a2b3c4d".
func (r *Reader) Version() string {
	if r.schema == nil || r.schema.own == "" {
		return ReaderVersion
	}
	return ReaderVersion + "+" + r.schema.own
}

// Turns yields the turns in file order. A bad line never ends it; an error is
// one of I/O, is yielded last, and leaves Stats as far as the reading came.
// It may be called once.
func (r *Reader) Turns() iter.Seq2[memory.Turn, error] {
	return func(yield func(memory.Turn, error) bool) {
		r.yield = yield
		defer r.close()
		for _, ln := range r.held {
			r.take(ln)
			if r.stop {
				return
			}
		}
		r.held = nil
		for {
			ln, ok := r.lines.next()
			if !ok {
				break
			}
			r.take(ln)
			if r.stop {
				return
			}
		}
		if err := r.lines.err; err != nil {
			r.win.flush(r)
			if !r.stop {
				yield(memory.Turn{}, fault.As(fault.Unavailable, err))
			}
			return
		}
		r.unmute(line{off: r.lines.off})
		r.parser.end()
		r.win.flush(r)
	}
}

// take hands one line to the parser.
func (r *Reader) take(ln line) {
	r.unmute(ln)
	if !validUTF8(ln.b) {
		r.stats.BadUTF8++
	}
	r.parser.line(ln)
}

// unmute starts to count and to yield when the resumed part begins.
func (r *Reader) unmute(ln line) {
	if !r.muted || ln.off < r.opt.From {
		return
	}
	r.muted = false
	r.stats.restart()
	r.lines.tooLong0, r.lines.maxLine = r.lines.tooLong, int64(len(ln.b))
	if r.lines.count0 = r.lines.count; ln.off < r.lines.off && !ln.part {
		r.lines.count0-- // this line counts
	}
}

// close fills in what the line reader knows.
func (r *Reader) close() {
	l := r.lines
	l.settle()
	s := &r.stats
	s.Lines = l.count - l.count0
	s.TooLong = l.tooLong - l.tooLong0
	s.maxLine = l.maxLine
	s.SizeBytes = l.size
	s.endsLF = l.size > 0 && l.lastByte == '\n'
	s.RawSHA256 = hexSHA(l.sum.Sum(nil))
	s.Consumed, s.PrefixSHA256 = l.consumed, hexSHA(l.prefix)
	s.FromSHA256 = hexSHA(l.fromSum)
	if r.inflate != nil {
		if r.inflate.damage != nil {
			s.Damage = r.inflate.damage.Error()
		}
		r.inflate.close()
	}
}

// Stats is final after Turns is drained.
func (r *Reader) Stats() *Stats { return &r.stats }

// emit gives a turn its place and hands it to the window, which yields it.
func (r *Reader) emit(t memory.Turn) {
	t.Format = r.format
	t.Seq = r.seq
	r.seq++
	if r.muted || r.stop {
		return
	}
	r.win.push(r, t)
}

// stem is the object's session id when its records name none: the key's
// last element without its suffix.
func (r *Reader) stem() string {
	b := r.base
	if i := bytes.LastIndexByte([]byte(b), '.'); i > 0 {
		b = b[:i]
	}
	return cleanID(b)
}
