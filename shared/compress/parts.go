package compress

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// Part is a piece of a text that is too large to be looked at as a whole.
type Part struct {
	Text string
	Line int   // lines before it, for Options.Line
	Byte int64 // bytes before it
}

// keyBytes is how much of the end of a part is looked at for a key that goes on in
// the next: one that is cut in two is not recognised as a secret.
const keyBytes = 32 << 10

// Parts reads a text piece by piece, each of at most size bytes and, where its lines
// are shorter than that, of whole lines; together they are the text. One piece at a
// time is in memory.
func Parts(r io.Reader, size int) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		buf := make([]byte, 0, size)
		var p Part
		for {
			n, err := io.ReadFull(r, buf[len(buf):size])
			buf = buf[:len(buf)+n]
			last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
			if err != nil && !last {
				yield(p, err)
				return
			}
			end := len(buf)
			if !last {
				end = partEnd(buf)
			}
			if end == 0 {
				return
			}
			p.Text = string(buf[:end])
			if !yield(p, nil) {
				return
			}
			p.Line += strings.Count(p.Text, "\n")
			p.Byte += int64(end)
			buf = buf[:copy(buf, buf[end:])]
			if last {
				return
			}
		}
	}
}

// partEnd is where a full buffer is cut: behind its last line feed, before a key that
// has not ended; where there is none at a rune.
func partEnd(b []byte) int {
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 {
		for end = len(b); end > len(b)-utf8.UTFMax && end > 1 && !utf8.RuneStart(b[end-1]); end-- {
		}
		if utf8.FullRune(b[end-1:]) {
			return len(b)
		}
		return end - 1
	}
	from := max(0, end-keyBytes)
	if i := bytes.LastIndex(b[from:end], []byte("-----BEGIN ")); i > 0 && !bytes.Contains(b[from+i:end], []byte("-----END ")) {
		if start := bytes.LastIndexByte(b[:from+i], '\n') + 1; start > 0 {
			return start
		}
	}
	return end
}
