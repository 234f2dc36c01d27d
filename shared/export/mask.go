package export

import (
	"crypto/sha256"
	"io"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Bounds of what an export remembers, about 30 MB each at the worst.
const (
	maxMasked  = 512      // texts and what became of them
	maxTexts   = 512      // chunks
	longestOne = 64 << 10 // bytes of a text that is remembered
	shortest   = 64       // bytes of one that is masked faster than it is looked up
)

// masker redacts, and remembers: a section stands in several prompts of its decision,
// and a memory in those of all decisions until it changes.
type masker struct {
	redact func(string) string
	done   *lru.Cache[[sha256.Size]byte, string]
}

func newMasker(redact func(string) string) *masker {
	done, err := lru.New[[sha256.Size]byte, string](maxMasked)
	if err != nil {
		panic("export: " + err.Error()) // the size is positive
	}
	return &masker{redact, done}
}

func (m *masker) of(s string) string {
	if len(s) < shortest || len(s) > longestOne {
		return m.redact(s)
	}
	h := sha256.New()
	io.WriteString(h, s)
	var key [sha256.Size]byte
	h.Sum(key[:0])
	if out, ok := m.done.Get(key); ok {
		return out
	}
	out := m.redact(s)
	m.done.Add(key, out)
	return out
}

// texts are the chunk texts read last: the streams of a small project read the same.
type texts = lru.Cache[textKey, string]

type textKey struct {
	project string
	chunk   memory.SHA
}

func newTexts() *texts {
	t, err := lru.New[textKey, string](maxTexts)
	if err != nil {
		panic("export: " + err.Error()) // the size is positive
	}
	return t
}
