package signature

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Limits. A log over MaxBytes is read as its beginning and its end: the end
// holds what failed, the beginning what was run.
const (
	MaxBytes = 5 << 20
	HeadSize = 1 << 20 // of MaxBytes, kept from the beginning
	MaxLines = 200_000
	maxLine  = 8 << 10 // bytes of one line that rules see
)

// Log is the part of a log that is looked at.
type Log struct {
	head, tail []byte
	gapLines   int   // line ends between head and tail
	total      int64 // bytes of the whole log
}

// Read takes a log of any length in bounded memory. It never holds more than
// MaxBytes and a buffer.
func Read(r io.Reader) (*Log, error) {
	l := &Log{}
	buf := make([]byte, 0, 64<<10)
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		l.total += int64(n)
		buf = append(buf, chunk[:n]...)
		if l.head == nil && len(buf) > MaxBytes {
			l.head = append([]byte(nil), buf[:HeadSize]...)
			buf = append([]byte(nil), buf[HeadSize:]...)
		}
		// The tail is cut at twice its size, so that each byte moves once.
		if keep := MaxBytes - HeadSize; l.head != nil && len(buf) > 2*keep {
			drop := len(buf) - keep
			l.gapLines += bytes.Count(buf[:drop], []byte{'\n'})
			buf = buf[:copy(buf, buf[drop:])]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	l.tail = buf
	if keep := MaxBytes - HeadSize; l.head != nil && len(buf) > keep {
		drop := len(buf) - keep
		l.gapLines += bytes.Count(buf[:drop], []byte{'\n'})
		l.tail = buf[drop:]
	}
	return l, nil
}

// FromBytes is Read of bytes that are already here.
func FromBytes(b []byte) *Log {
	l := &Log{tail: b, total: int64(len(b))}
	if len(b) > MaxBytes {
		from := len(b) - (MaxBytes - HeadSize)
		l.head, l.tail = b[:HeadSize], b[from:]
		l.gapLines = bytes.Count(b[HeadSize:from], []byte{'\n'})
	}
	return l
}

// Bytes is the length of the whole log, and how much of it is looked at.
func (l *Log) Bytes() (total, read int64) { return l.total, int64(len(l.head) + len(l.tail)) }

// magics name what is often handed in by mistake.
var magics = []struct{ magic, what string }{
	{"PK\x03\x04", "a zip archive"}, {"PK\x05\x06", "an empty zip archive"}, {"\x1f\x8b", "gzip data"},
	{"\xfd7zXZ\x00", "xz data"}, {"\x28\xb5\x2f\xfd", "zstd data"}, {"BZh", "bzip2 data"}, {"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"\x7fELF", "an ELF program"}, {"MZ\x90", "a Windows program"}, {"\x89PNG", "a picture"}, {"\xff\xd8\xff", "a picture"}, {"%PDF-", "a PDF"},
	{"SQLite format 3\x00", "a database"}, {"\xcf\xfa\xed\xfe", "a Mach-O program"},
}

// text decodes both parts. Bytes that are no text are a named error.
func (l *Log) text() (head, tail string, err error) {
	first := l.tail
	if l.head != nil {
		first = l.head
	}
	for _, m := range magics {
		if bytes.HasPrefix(first, []byte(m.magic)) && (m.magic != "BZh" || len(first) > 3 && first[3] >= '1' && first[3] <= '9') {
			return "", "", fault.At(fault.Invalid, "", "unpack it and give the log itself", "this is %s, not a log", m.what)
		}
	}
	order, skip := utf16Order(first)
	if order != nil {
		if l.head != nil {
			// The cut keeps pairs whole: HeadSize is even; the tail is aligned by the total.
			at := int(l.total-int64(len(l.tail))) % 2
			return decode16(l.head[skip:], order), decode16(l.tail[at:], order), nil
		}
		return "", decode16(l.tail[skip:], order), nil
	}
	if binaryShare(first) {
		return "", "", fault.At(fault.Invalid, "", "give the log as text: UTF-8, or UTF-16 with its mark", "these bytes are no text")
	}
	return clean(trimRune(l.head)), clean(l.tail), nil
}

// trimRune drops half a rune at the end of a cut.
func trimRune(b []byte) []byte {
	for i := 1; i <= 3 && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// clean makes valid UTF-8 without NUL: U+FFFD stands for each bad run.
func clean(b []byte) string {
	s := strings.TrimPrefix(string(b), "\ufeff")
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// sniff is how many bytes decide whether a log is text.
const sniff = 8 << 10

// binaryShare reports whether more than a tenth of the first bytes are neither
// text nor what terminals are told.
func binaryShare(b []byte) bool {
	b = b[:min(len(b), sniff)]
	bad := 0
	for i := 0; i < len(b); {
		c := b[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 && len(b)-i >= utf8.UTFMax {
				bad++
			}
			i += n
			continue
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\f' && c != '\b' && c != 7 && c != 0x0f && c != 0x0e {
			bad++
		}
		i++
	}
	// Text in an old one-byte code has few letters beyond ASCII; 16 bytes decide nothing.
	return len(b) >= 16 && bad*10 > len(b)
}

// utf16Order tells UTF-16 by its mark, or by every second byte being 0.
func utf16Order(b []byte) (binary.ByteOrder, int) {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		return binary.LittleEndian, 2
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return binary.BigEndian, 2
	}
	b = b[:min(len(b), 512)&^1]
	if len(b) < 16 {
		return nil, 0
	}
	var zero [2]int
	for i, c := range b {
		if c == 0 {
			zero[i&1]++
		}
	}
	half := len(b) / 2
	switch {
	case zero[1]*10 >= half*9 && zero[0] == 0:
		return binary.LittleEndian, 0
	case zero[0]*10 >= half*9 && zero[1] == 0:
		return binary.BigEndian, 0
	}
	return nil, 0
}

func decode16(b []byte, order binary.ByteOrder) string {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = order.Uint16(b[2*i:])
	}
	return strings.ReplaceAll(string(utf16.Decode(u)), "\x00", "")
}
