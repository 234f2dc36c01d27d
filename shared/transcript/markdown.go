package transcript

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// markdown reads knowledge files. A section begins at a heading and is one
// turn; a section over NoteChars is split at paragraphs, never inside a fence
// or a table. A paragraph that is longer by itself is split at line ends, then
// at sentence ends. Roles are never inferred from the text.
//
// Of a plain text (FormatText) only paragraphs are known: it has no headings,
// fences or front matter, and paragraphs are gathered up to NoteChars.
//
// It streams: what is held is one part and the block that is open.
type markdown struct {
	r     *Reader
	plain bool

	buf   []byte // bytes of the object from start on
	start int64
	done  int // buf[:done] is the part so far; it ends with a block

	open  blockKind // of the block that begins at buf[at]
	at    int
	fence []byte // the marker that closes the open fence

	key int64 // where the private key begins that is open, plus one; 0 for none

	levels  [6]string // heading texts by level
	level   int       // of the current section, 0 before the first heading
	heading string    // heading path of the part

	front   []line // lines of a front matter that is not closed yet
	lookFor bool   // still at the very top
	derived bool
	time    memory.Turn // only its time fields
}

type blockKind uint8

const (
	blockNone blockKind = iota
	blockText
	blockFence
	blockTable
	blockOwn // Mneme's own, from MarkerOpen to MarkerClose, whatever stands between
)

const (
	// maxFrontLines bounds a front matter; without an end by then it is text.
	maxFrontLines = 200
	// maxBlockBytes bounds a fence or table that never ends.
	maxBlockBytes = 256 << 10
)

func newMarkdown(r *Reader) *markdown {
	m := &markdown{r: r, plain: r.format == FormatText}
	m.lookFor = !m.plain
	m.time.TimeQuality = memory.TimeNone
	if t := r.opt.ModTime; !t.IsZero() {
		m.time.Time, m.time.TimeQuality = t.UTC(), memory.TimeFile
		r.stats.time(t.UTC(), "")
	}
	return m
}

func (m *markdown) line(ln line) {
	if m.lookFor {
		b := bytes.TrimRight(trimBOM(ln), " \t\r")
		switch {
		case len(m.front) == 0 && string(b) == "---":
			m.keep(ln)
			return
		case len(m.front) == 0:
			m.lookFor = false
		case string(b) == "---" || string(b) == "...":
			m.lookFor = false
			m.frontMatter()
			m.front = nil
			m.start = ln.off + int64(len(ln.b)) + 1
			return
		case len(m.front) < maxFrontLines:
			m.keep(ln)
			return
		default:
			m.replay()
		}
	}
	m.body(ln)
}

func trimBOM(ln line) []byte {
	if ln.off == 0 {
		return bytes.TrimPrefix(ln.b, []byte("\ufeff"))
	}
	return ln.b
}

func (m *markdown) keep(ln line) {
	ln.b = bytes.Clone(ln.b)
	m.front = append(m.front, ln)
}

// replay reads what looked like front matter as text.
func (m *markdown) replay() {
	m.lookFor = false
	held := m.front
	m.front = nil
	for _, ln := range held {
		m.body(ln)
	}
}

// Front matter keys that date a note, the best first.
var dateKeys = []string{"updated", "last_updated", "modified", "lastmod", "date", "created"}

func (m *markdown) frontMatter() {
	rank := len(dateKeys)
	for _, ln := range m.front {
		s := strings.TrimSpace(string(ln.b))
		if s == DerivedFrontMatter {
			m.derived = true
		}
		key, val, ok := strings.Cut(s, ":")
		if !ok {
			continue
		}
		val = strings.Trim(strings.TrimSpace(val), `"'`)
		if strings.TrimSpace(key) == derivedFromKey && memory.SHA(val).Valid() {
			m.derived = true
		}
		for k, name := range dateKeys[:rank] {
			if !strings.EqualFold(strings.TrimSpace(key), name) {
				continue
			}
			if t, ok := parseTime(val); ok {
				m.time.Time, m.time.TimeRaw, m.time.TimeQuality = t, val, memory.TimeFile
				m.r.stats.time(t, val)
				rank = k
			}
			break
		}
	}
}

var (
	atx       = lazy.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$`)
	setext    = lazy.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`)
	delimiter = lazy.MustCompile(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$`)
)

// body takes one line of the text.
func (m *markdown) body(ln line) {
	raw := trimBOM(ln)
	off := ln.off + int64(len(ln.b)-len(raw))
	if off != m.start+int64(len(m.buf)) {
		m.closeBlock() // a line over the cap was skipped, or nothing is held yet
		m.flush()
		m.start = off
	}
	from := len(m.buf)
	m.buf = append(m.buf, raw...)
	if ln.ended {
		m.buf = append(m.buf, '\n')
	}
	b := bytes.TrimSuffix(raw, []byte("\r"))
	trimmed := bytes.TrimLeft(b, " \t")
	if m.open == blockFence {
		if closesFence(trimmed, m.fence) {
			m.closeBlock()
		} else if len(m.buf)-m.at > maxBlockBytes {
			m.closeBlock()
			m.open, m.at = blockFence, len(m.buf)
		}
		return
	}
	if m.open == blockOwn {
		if bytes.Contains(b, []byte(MarkerClose)) || len(m.buf)-m.at > maxBlockBytes {
			m.closeBlock()
		}
		return
	}
	if len(trimmed) == 0 {
		m.closeBlockAt(from)
		m.r.stats.Blank++
		return
	}
	if m.document(b, from) {
		return
	}
	if opensOwn(trimmed) {
		from = m.closeBefore(from)
		m.open, m.at = blockOwn, from
		if bytes.Contains(b, []byte(MarkerClose)) {
			m.closeBlock()
		}
		return
	}
	if m.plain {
		if m.open == blockNone {
			m.open, m.at = blockText, from
		} else if len(m.buf)-m.at > maxBlockBytes {
			m.closeBlock()
		}
		return
	}
	if m.insideKey(b, off) {
		if m.open == blockNone {
			m.open, m.at = blockText, from
		}
		return
	}
	if f := opensFence(trimmed); f != nil {
		from = m.closeBefore(from)
		m.open, m.at, m.fence = blockFence, from, f
		return
	}
	if h := atx.FindSubmatch(b); h != nil {
		from = m.closeBefore(from)
		m.section(from, len(h[1]), string(h[2]))
		return
	}
	if h := setext.FindSubmatch(b); h != nil && m.open == blockText && bytes.Count(m.buf[m.at:from], []byte("\n")) == 1 && isTitle(m.buf[m.at:from]) {
		level := 1
		if h[1][0] == '-' {
			level = 2
		}
		at := m.at
		m.open = blockNone
		m.section(at, level, string(bytes.TrimSpace(m.buf[at:from])))
		return
	}
	if m.open == blockNone {
		m.open, m.at = blockText, from
	}
	if trimmed[0] == '|' || delimiter.Match(b) {
		m.open = blockTable
	}
	if len(m.buf)-m.at > maxBlockBytes {
		m.closeBlock()
	}
}

// document takes a line that begins or ends what Mneme says in the file: the parts
// before it and behind it are apart. What follows the end is somebody else's, also
// where the front matter says that Mneme wrote the file.
func (m *markdown) document(b []byte, from int) bool {
	if !bytes.Contains(b, []byte("mneme:derived")) {
		return false
	}
	opens, closes := derived.Opens(string(b)), derived.Closes(string(b))
	if !opens && !closes {
		return false
	}
	next := m.start + int64(len(m.buf))
	m.closeBefore(from)
	m.done = min(m.done, len(m.buf))
	m.flush()
	m.start, m.derived = next, opens
	return true
}

// isTitle says that a line may be a setext heading: not a list item, a quote
// or a table row.
func isTitle(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && bytes.IndexByte([]byte(">|-*+<"), b[0]) < 0
}

// opensOwn says that a line begins with the open marker, quote marks aside. Up
// to its end the block stays one part, so that the passage is seen whole.
func opensOwn(b []byte) bool {
	b = bytes.TrimLeft(b, " \t>")
	rest, ok := bytes.CutPrefix(b, []byte(MarkerOpen))
	return ok && (len(rest) == 0 || rest[0] == '>' || rest[0] == ' ' || rest[0] == '\t')
}

func opensFence(b []byte) []byte {
	for _, c := range []byte("`~") {
		n := 0
		for n < len(b) && b[n] == c {
			n++
		}
		if n >= 3 && (c == '~' || bytes.IndexByte(b[n:], '`') < 0) {
			return bytes.Clone(b[:n])
		}
	}
	return nil
}

func closesFence(b, fence []byte) bool {
	b = bytes.TrimRight(b, " \t\r")
	return len(b) >= len(fence) && len(bytes.Trim(b, string(fence[:1]))) == 0
}

// section begins a section whose heading stands at buf[from:].
func (m *markdown) section(from, level int, title string) {
	m.done = min(m.done, from)
	rest := bytes.Clone(m.buf[from:])
	next := m.start + int64(from)
	m.buf = m.buf[:from]
	m.flush()
	m.buf, m.start = rest, next
	m.level = level
	m.levels[level-1] = strings.TrimSpace(title)
	clear(m.levels[level:])
	var path []string
	for _, s := range m.levels[:level] {
		if s != "" {
			path = append(path, s)
		}
	}
	m.heading = strings.Join(path, " > ")
	m.done, m.open = len(m.buf), blockNone
}

func (m *markdown) closeBlock() { m.closeBlockAt(len(m.buf)) }

// closeBefore is closeBlockAt for a line that begins at buf[from]; it returns
// where the line stands after what came before was given away.
func (m *markdown) closeBefore(from int) int {
	rest := len(m.buf) - from
	m.closeBlockAt(from)
	return len(m.buf) - rest
}

// closeBlockAt ends the open block before buf[to]. The block joins the part,
// or the part is emitted and the block begins the next.
func (m *markdown) closeBlockAt(to int) {
	kind := m.open
	m.open = blockNone
	if kind == blockNone {
		return
	}
	if kind == blockOwn && !bytes.Contains(m.buf[m.at:to], []byte(MarkerClose)) {
		kind = blockText // a tag without its end is somebody's words
	}
	limit := m.r.opt.NoteChars
	if m.done > 0 && utf8.RuneCount(bytes.TrimSpace(m.buf[:to])) > limit && !opensKey(m.buf[:m.done]) {
		if !m.onlyHeading() || kind == blockText {
			m.emit(0, m.done)
			m.shift(m.at)
			to -= m.at
		}
	}
	m.done = to
	if kind != blockText {
		return
	}
	for utf8.RuneCount(bytes.TrimSpace(m.buf[:m.done])) > limit {
		k := splitAt(m.buf[:m.done], limit)
		for k < m.done && opensKey(m.buf[:k]) {
			if e := bytes.IndexByte(m.buf[k:m.done], '\n'); e >= 0 {
				k += e + 1
			} else {
				k = m.done
			}
		}
		if k == m.done && opensKey(m.buf[:k]) {
			return // the key's end is still to come
		}
		m.emit(0, k)
		end := m.done - k
		m.shift(k)
		m.done = end
	}
}

// onlyHeading says that the part is a heading line and no more: a fence or
// table that is too long anyway then stays with it.
func (m *markdown) onlyHeading() bool {
	return m.level > 0 && bytes.IndexByte(bytes.TrimSpace(m.buf[:m.done]), '\n') < 0 && atx.Match(bytes.TrimSpace(m.buf[:m.done]))
}

func (m *markdown) shift(k int) {
	m.buf = append(m.buf[:0], m.buf[k:]...)
	m.start += int64(k)
	m.done = 0
}

// Parts are looked at for secrets one by one: what shows as one only as a whole
// is not cut.
const (
	keyOpen = "-----BEGIN "
	keyEnd  = "-----END "
	// maxKeyBytes bounds a private key, and a word that is kept whole.
	maxKeyBytes = 64 << 10
)

// insideKey says that a line belongs to a private key that began before it. Its
// lines may begin like headings: a key that is commented out does.
func (m *markdown) insideKey(b []byte, off int64) bool {
	switch {
	case m.key > 0 && off-m.key > maxKeyBytes:
		m.key = 0
	case m.key > 0:
		if bytes.Contains(b, []byte(keyEnd)) {
			m.key = 0
		}
		return true
	case bytes.Contains(b, []byte(keyOpen)) && opensKey(b):
		m.key = off + 1
	}
	return false
}

// opensKey says that a private key begins in b and does not end there.
func opensKey(b []byte) bool {
	from := max(0, len(b)-maxKeyBytes)
	k := bytes.LastIndex(b[from:], []byte(keyOpen))
	if k < 0 {
		return false
	}
	b = b[from+k+len(keyOpen):]
	head, _, _ := bytes.Cut(b, []byte("-----"))
	return len(head) < 64 && bytes.Contains(head, []byte("PRIVATE KEY")) && !bytes.Contains(b, []byte(keyEnd))
}

// splitAt is where a text over limit characters is best cut: after the last
// line that fits, else after the last sentence, else after the last space,
// else at the next one, else at the limit.
func splitAt(b []byte, limit int) int {
	end := 0
	for n := 0; n < limit && end < len(b); n++ {
		_, k := utf8.DecodeRune(b[end:])
		end += k
	}
	head := b[:end]
	if k := bytes.LastIndexByte(head, '\n'); k > 0 && len(bytes.TrimSpace(head[:k])) > 0 {
		return k + 1
	}
	if m := sentenceEnd.FindAllIndex(head, -1); m != nil {
		return m[len(m)-1][1]
	}
	if k := bytes.LastIndexAny(head, " \t"); k > 0 && len(bytes.TrimSpace(head[:k])) > 0 {
		return k + 1
	}
	if k := bytes.IndexAny(b[end:min(len(b), end+maxKeyBytes)], " \t\n"); k >= 0 {
		return end + k + 1
	}
	if len(b)-end <= maxKeyBytes {
		return len(b)
	}
	return end
}

var sentenceEnd = lazy.MustCompile(`[.!?][)"'*_]*\s+`)

// flush emits the part that is held.
func (m *markdown) flush() {
	m.emit(0, m.done)
	m.buf, m.done, m.open = m.buf[:0], 0, blockNone
}

// emit yields buf[from:to] as one turn.
func (m *markdown) emit(from, to int) {
	for from < to { // whole blank lines at the front; indentation stays
		k := bytes.IndexByte(m.buf[from:to], '\n')
		if k < 0 || len(bytes.TrimSpace(m.buf[from:from+k])) > 0 {
			break
		}
		from += k + 1
	}
	to = from + len(bytes.TrimRight(m.buf[from:to], " \t\r\n"))
	if len(bytes.TrimSpace(m.buf[from:to])) == 0 {
		return
	}
	s := &m.r.stats
	s.Records++
	p := rawPiece(m.buf[from:to], m.start+int64(from))
	t := m.time
	t.Role, t.Kind, t.Trust = memory.RoleNote, memory.KindText, memory.TrustUser
	t.Heading, t.Derived = m.heading, m.derived
	t.From, t.To = p.Start, p.End
	kept, injected, own := cut(p)
	if injected {
		s.drop("system_reminder")
	}
	if own {
		s.drop("own_memory")
	}
	if blank(kept) {
		t.Derived, kept = t.Derived || own, []memory.Piece{p}
	}
	t.Pieces = kept
	t.ID = m.r.ids.unique("md/" + string(memory.SumString(m.r.base + "\n" + m.heading + "\n" + p.Text))[:32])
	m.r.emit(t)
}

func (m *markdown) end() {
	if m.front != nil {
		m.replay()
	}
	m.closeBlock()
	m.flush()
}
