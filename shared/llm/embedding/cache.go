package embedding

import (
	"context"
	"crypto/sha256"
	"errors"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Bytes that a cache keeps of vectors, whatever their dimensions.
const (
	// DocumentBytes is some 5,000 vectors of 768: a statement that several question
	// streams keep is embedded once while they fold the same part, and so are the
	// texts of a segment that is embedded again after a server broke off.
	DocumentBytes = 16 << 20
	// QueryBytes is some 1,300: agents ask the same question at the start of every
	// session, and a question over several levels is one text.
	QueryBytes = 4 << 20

	entryBytes = 150 // of key, list and map beside the vector
)

// Cache keeps the vectors of texts that were embedded of late, by the sha256 of
// the text and its space. A text that is bad is not kept: it is asked again. What
// is erased from a log may stay here as a vector until it is pushed out or the
// process ends; it leaves only for who has the very same text again.
type Cache struct {
	e    llm.Embedder
	kept *lru.Cache[cacheKey, []float32]
}

type cacheKey struct {
	text  [sha256.Size]byte
	space string
}

var _ llm.Embedder = (*Cache)(nil)

// Cached puts a cache of so many bytes before e. Documents and questions of a
// space have different vectors for one text, so each wants a cache of its own.
func Cached(e llm.Embedder, bytes int) (*Cache, error) {
	kept, err := lru.New[cacheKey, []float32](max(1, bytes/(4*e.Space().Dims+entryBytes)))
	if err != nil {
		return nil, fault.As(fault.Internal, err)
	}
	return &Cache{e: e, kept: kept}, nil
}

// Space is that of the embedder behind it.
func (c *Cache) Space() memory.Space { return c.e.Space() }

// Embed asks the embedder for what is not kept, in one call, and not at all where
// everything is. The vectors are the caller's own.
func (c *Cache) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	space := c.e.Space().ID
	out := make([][]float32, len(texts))
	keys := make([]cacheKey, len(texts))
	var missing []string
	var at []int
	for i, t := range texts {
		keys[i] = cacheKey{sha256.Sum256([]byte(t)), space}
		if v, ok := c.kept.Get(keys[i]); ok {
			out[i] = append([]float32(nil), v...)
			continue
		}
		missing, at = append(missing, t), append(at, i)
	}
	if len(missing) == 0 {
		return out, ctx.Err()
	}
	got, err := c.e.Embed(ctx, missing)
	bad, partly := errors.AsType[*BadTexts](err)
	switch {
	case partly:
		got = bad.Vectors
	case err != nil:
		return nil, err
	}
	if len(got) != len(missing) {
		return nil, fault.New(fault.Unavailable, "%d vectors for %d texts", len(got), len(missing))
	}
	for j, v := range got {
		if v != nil {
			c.kept.Add(keys[at[j]], append([]float32(nil), v...))
			out[at[j]] = v
		}
	}
	if partly {
		mine := &BadTexts{Err: bad.Err, Vectors: out}
		for _, j := range bad.Index {
			mine.Index = append(mine.Index, at[j])
		}
		return nil, mine
	}
	return out, nil
}
