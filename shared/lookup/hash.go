package lookup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Hasher is Index.Hash of rows in the order of (project, key), then of outcomes in the
// order of (project, record): the same for every driver.
type Hasher struct {
	h hash.Hash
	n int64
}

func (h *Hasher) part(b []byte) {
	if h.h == nil {
		h.h = sha256.New()
	}
	h.h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	h.h.Write(b)
}

// Row adds a row; its hashes are sorted, as CheckBatch leaves them.
func (h *Hasher) Row(project string, r Row) {
	h.n++
	h.part([]byte("row " + project))
	h.part([]byte(r.Key))
	h.part(binary.BigEndian.AppendUint64(nil, uint64(r.At.UnixMilli())))
	for _, x := range r.Hashes {
		h.part(append([]byte{byte(x.Kind)}, x.SHA...))
	}
	h.part(r.Body)
}

// Outcome adds an outcome.
func (h *Hasher) Outcome(project string, o Outcome) {
	h.part([]byte("outcome " + project))
	h.part([]byte(o.Record))
	h.part([]byte(o.Lesson))
	h.part([]byte(o.Use))
	if o.Worked {
		h.part([]byte{1})
	} else {
		h.part([]byte{0})
	}
}

// Sum is the hash, and how many rows it is over.
func (h *Hasher) Sum() (memory.SHA, int64) {
	h.part(nil)
	return memory.SHA(hex.EncodeToString(h.h.Sum(nil))), h.n
}
