package learn

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/mneme-ai/mneme/shared/memory"
)

// hashReader hashes what is read through it.
type hashReader struct {
	r io.Reader
	h hash.Hash
	n int64
}

func newHashReader(r io.Reader) *hashReader { return &hashReader{r: r, h: sha256.New()} }

func (h *hashReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.h.Write(p[:n])
	h.n += int64(n)
	return n, err
}

func (h *hashReader) sum() memory.SHA { return memory.SHA(hex.EncodeToString(h.h.Sum(nil))) }
