package transcript

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/fault"
)

const (
	// maxRatio is the largest expansion of a compressed object beyond
	// freeExpansion. Repetitive logs reach some hundreds; a bomb, millions.
	maxRatio = 2000
	// freeExpansion may always be reached, whatever the ratio.
	freeExpansion = 64 << 20
	// zstdWindow bounds what a frame may ask for; the largest level of the
	// zstd tool without --long uses 8 MiB.
	zstdWindow = 32 << 20
)

var errExpansion = errors.New("expands beyond 2,000 times its size")

// source counts what is read of the stored object and remembers its own
// failure, so that a damaged stream is told from a broken connection.
type source struct {
	r   io.Reader
	n   int64
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// inflated is a decompressed stream. Damage ends it without an error and is
// kept in damage: the good part counts.
type inflated struct {
	r      io.Reader
	src    *source
	n      int64
	damage error
	close  func()
}

func (f *inflated) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.n += int64(n)
	if err == nil && f.n > freeExpansion && f.n > maxRatio*f.src.n {
		err = errExpansion
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	if f.src.err != nil {
		return n, f.src.err
	}
	f.damage = err
	return n, io.EOF
}

// decompress tells gzip and zstd by their magic.
func decompress(r io.Reader) (in io.Reader, f *inflated, kind string, err error) {
	src := &source{r: r}
	br := bufio.NewReaderSize(src, 4<<10) // larger reads pass it by
	head, perr := br.Peek(4)
	if perr != nil && perr != io.EOF {
		return nil, nil, "", perr
	}
	switch {
	case len(head) == 4 && string(head) == "\x28\xb5\x2f\xfd":
		d, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, nil, "", err
		}
		f = &inflated{r: d, src: src, close: d.Close}
		return f, f, "zstd", nil
	case len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b:
		d, err := gzip.NewReader(br)
		if err != nil {
			if src.err != nil {
				return nil, nil, "", src.err
			}
			// Only the magic is right: read it as it stands.
			f = &inflated{r: eofReader{}, src: src, damage: err, close: func() {}}
			return f, f, "gzip", nil
		}
		f = &inflated{r: d, src: src, close: func() {}}
		return f, f, "gzip", nil
	}
	return br, nil, "", nil
}

type eofReader struct{}

func (eofReader) Read([]byte) (int, error) { return 0, io.EOF }

// Expand is the content of an object, decompressed as Open does it. Damage ends
// the content early: what it holds has to say itself where it ends.
func Expand(r io.Reader) (io.ReadCloser, error) {
	in, f, _, err := decompress(r)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	return expanded{in, f}, nil
}

type expanded struct {
	io.Reader
	f *inflated
}

func (e expanded) Close() error {
	if e.f != nil {
		e.f.close()
	}
	return nil
}
