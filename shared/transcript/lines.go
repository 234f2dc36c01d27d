package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	// readSize is one read: larger ones gain nothing and leave the cache between
	// the hash and the parsing of the same bytes, and a long line is
	// rare (23 of 194,131 are over 200 KB, formats.md 1.8).
	readSize = 64 << 10
	// firstSize is the first read; the next ones double up to readSize. Many
	// transcripts are small, and clearing a buffer of readSize costs more than
	// reading one of 10 KB.
	firstSize = 16 << 10
	// keepSize is the buffer that is kept after a long line; what is larger is
	// given back.
	keepSize = 2 << 20
)

// line is one physical line without its LF.
type line struct {
	b     []byte // valid until the next call
	off   int64  // of b[0] in the object
	no    int    // from 1
	ended bool   // by an LF
	part  bool   // the line goes on in the next one: see lines.pieces
}

// lines splits on LF bytes only, in bounded memory, and hashes what it reads.
type lines struct {
	r       io.Reader
	max     int
	buf     []byte
	a, n    int   // unread bytes are buf[a:n]
	scanned int   // buf[a:scanned] holds no LF
	off     int64 // of buf[a]
	eof     bool
	err     error // of I/O

	// pieces gives a long line in parts of about readSize, so that a document
	// of one line may be of any size: its reader puts records together itself.
	pieces bool
	given  int64 // bytes of the present line that were given in parts

	// The hash runs beside the parsing of the same bytes: done is set while it
	// does, and all below belongs to it until done is closed.
	done     chan struct{}
	sum      hash.Hash
	size     int64
	consumed int64
	prefix   []byte // sum at consumed
	from     int64
	fromSum  []byte // sum at from

	count    int
	count0   int // lines before Options.From
	maxLine  int64
	tooLong  int
	tooLong0 int
	lastByte byte
}

func newLines(r io.Reader, max int, from int64) *lines {
	l := &lines{r: r, max: max, from: from, buf: make([]byte, firstSize), sum: sha256.New()}
	l.prefix = l.sum.Sum(nil)
	return l
}

// next gives the next line. Lines over the cap are skipped and counted, and
// nothing of them is kept.
func (l *lines) next() (line, bool) {
	for {
		if k := bytes.IndexByte(l.buf[l.scanned:l.n], '\n'); k >= 0 {
			end := l.scanned + k
			ln := line{b: l.buf[l.a:end], off: l.off, ended: true}
			l.advance(end + 1)
			l.note(int64(len(ln.b)))
			ln.no = l.count
			if len(ln.b) > l.max {
				l.tooLong++
				continue
			}
			return ln, true
		}
		l.scanned = l.n
		if l.eof {
			if l.a == l.n {
				if l.given > 0 { // the last part was the line's end after all
					l.note(0)
				}
				return line{}, false
			}
			ln := line{b: l.buf[l.a:l.n], off: l.off}
			l.advance(l.n)
			l.note(int64(len(ln.b)))
			ln.no = l.count
			if len(ln.b) > l.max {
				l.tooLong++
				continue
			}
			return ln, true
		}
		if l.pieces && l.n-l.a >= readSize {
			k := wholeRunes(l.buf[l.a:l.n])
			ln := line{b: l.buf[l.a : l.a+k], off: l.off, no: l.count + 1, part: true}
			l.advance(l.a + k)
			l.given += int64(k)
			return ln, true
		}
		if l.n-l.a > l.max {
			l.skip()
			continue
		}
		l.fill()
	}
}

func (l *lines) note(size int64) {
	l.count++
	l.maxLine = max(l.maxLine, l.given+size)
	l.given = 0
}

// wholeRunes is the length of b without a rune that its end cuts.
func wholeRunes(b []byte) int {
	for k := len(b) - 1; k >= 0 && k > len(b)-utf8.UTFMax; k-- {
		if utf8.RuneStart(b[k]) {
			if !utf8.FullRune(b[k:]) {
				return k
			}
			break
		}
	}
	return len(b)
}

// first is the first byte of the object that is neither white space nor a
// byte order mark, looked for in the first readSize bytes; 0 when there is none.
func (l *lines) first() byte {
	for {
		b := bytes.TrimPrefix(l.buf[l.a:l.n], []byte("\ufeff"))
		if i := skipSpace(b, 0); i < len(b) {
			return b[i]
		}
		if l.eof || l.n-l.a >= readSize {
			return 0
		}
		l.fill()
		l.scanned = l.a // nobody has looked for lines yet
	}
}

func (l *lines) advance(to int) {
	l.off += int64(to - l.a)
	l.a, l.scanned = to, to
}

// skip throws the rest of an over-long line away.
func (l *lines) skip() {
	size := int64(0)
	for {
		end, found := l.n, false
		if k := bytes.IndexByte(l.buf[l.scanned:l.n], '\n'); k >= 0 {
			end, found = l.scanned+k, true
		}
		size += int64(end - l.a)
		if found {
			l.advance(end + 1)
		} else {
			l.advance(end)
		}
		if found || l.eof {
			l.note(size)
			l.tooLong++
			return
		}
		l.fill()
	}
}

// fill reads once more, moving or growing the buffer when it is full.
func (l *lines) fill() {
	l.settle() // the bytes may move now
	switch used := l.n - l.a; {
	case used == 0 && len(l.buf) > keepSize:
		l.buf = make([]byte, readSize)
		l.a, l.n = 0, 0
	case used == 0:
		l.a, l.n = 0, 0
	case l.n == len(l.buf):
		dst := l.buf
		switch {
		case used <= len(l.buf)/2 && len(l.buf) >= readSize && len(l.buf) <= keepSize:
		case len(l.buf) < keepSize:
			dst = make([]byte, 2*len(l.buf))
		case used > len(l.buf)/2 && len(l.buf) < l.max+readSize:
			// Straight to the cap: the pages that are not reached cost
			// nothing, and no series of outgrown buffers is left behind.
			dst = make([]byte, max(l.max+readSize, used+readSize))
		}
		copy(dst, l.buf[l.a:l.n])
		l.buf, l.a, l.n = dst, 0, used
	}
	l.scanned = l.n
	m, err := l.r.Read(l.buf[l.n:])
	if m > 0 {
		l.hash(l.buf[l.n : l.n+m])
		l.n += m
	}
	if err != nil {
		l.eof = true
		if err != io.EOF {
			l.err = err
		}
	}
}

// asyncBytes is the least read whose hash is worth a goroutine: a hash takes
// 0.7 ns a byte, a goroutine about 1 µs.
const asyncBytes = 16 << 10

// hash starts the hash of p, which stays as it is until settle.
func (l *lines) hash(p []byte) {
	if len(p) < asyncBytes {
		l.digest(p)
		return
	}
	done := make(chan struct{})
	l.done = done
	go func() {
		defer close(done)
		l.digest(p)
	}()
}

// settle waits for the hash.
func (l *lines) settle() {
	if l.done != nil {
		<-l.done
		l.done = nil
	}
}

// digest hashes p, remembering the sum at the last LF and at from.
func (l *lines) digest(p []byte) {
	l.lastByte = p[len(p)-1]
	if end := l.size + int64(len(p)); l.from > l.size && l.from <= end {
		k := int(l.from - l.size)
		l.write(p[:k])
		l.fromSum = l.sum.Sum(nil)
		if p = p[k:]; len(p) == 0 {
			return
		}
	}
	l.write(p)
}

func (l *lines) write(p []byte) {
	if k := bytes.LastIndexByte(p, '\n') + 1; k > 0 {
		l.sum.Write(p[:k])
		l.prefix = l.sum.Sum(l.prefix[:0])
		l.consumed = l.size + int64(k)
		l.sum.Write(p[k:])
	} else {
		l.sum.Write(p)
	}
	l.size += int64(len(p))
}

func hexSHA(b []byte) memory.SHA {
	if b == nil {
		return ""
	}
	return memory.SHA(hex.EncodeToString(b))
}
