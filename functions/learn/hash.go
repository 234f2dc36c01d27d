package learn

import (
	"encoding/hex"
	"hash"
	"io"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// checkedReader reads a body of known size and fails in place of its last bytes
// when its hash is not the one announced: a store that gets an error instead of
// the end keeps nothing, and nothing that stands is touched.
type checkedReader struct {
	r     io.Reader
	h     hash.Hash
	left  int64
	want  memory.SHA
	wrong error // what check found
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if c.wrong != nil {
		return 0, c.wrong
	}
	n, err := c.r.Read(p)
	c.h.Write(p[:n])
	c.left -= int64(n)
	if n > 0 {
		if bad := c.check(); bad != nil {
			return 0, bad
		}
	}
	return n, err
}

// check compares the hashes once the whole body has passed.
func (c *checkedReader) check() error {
	if c.left > 0 {
		return nil
	}
	if got := memory.SHA(hex.EncodeToString(c.h.Sum(nil))); got != c.want {
		c.wrong = fault.At(fault.Corrupt, "sha256", "send the file again", "the body's hash is %s", got)
	}
	return c.wrong
}
