// Package static embeds English text by a table that ships with the program:
// no network, no model server, microseconds a text.
//
// A text is cut into WordPiece tokens, the rows of its tokens are summed and
// the sum is brought to length 1. The table is derived from all-MiniLM-L6-v2
// (Apache-2.0; see NOTICE): 30,522 rows of 256 int8, one scale a row. Its
// layout, little-endian:
//
//	 0  magic "MNST"
//	 4  uint32 version, 1
//	 8  uint32 rows
//	12  uint32 dims
//	16  rows x float32 scale
//	 …  rows x dims int8, row by row; a value is scale[row] * int8
//
// vocab.txt holds one token a line; the line number from 0 is the row, and a
// token that continues a word begins with "##".
//
// Invariants: every vector of testdata/vectors.json is reproduced (ids equal,
// components within 1e-4); the table is read where it lies and never copied;
// the same text gives the same bytes on every machine (no fused
// multiply-add), wherever it stands in a batch.
//
// What it does not do: it knows no word order and no negation, other scripts
// than Latin mostly vanish, and long texts blur, so that callers cut at 150
// words. It is a second signal beside the lexical leg, not a search by itself.
package static

import (
	"context"
	_ "embed"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

//go:embed table.i8
var tableBytes string

//go:embed vocab.txt
var vocabBytes string

const (
	// Model names the table in its space.
	Model = "mneme-static-minilm"
	// Revision is the first 12 hex digits of the sha256 of table.i8. A test
	// holds the file to it; 7.9 MB are not hashed at every start.
	Revision = "e80715404ad7"

	dims      = 256
	rows      = 30522
	version   = 1
	scalesAt  = 16
	rowsAt    = scalesAt + 4*rows
	tableSize = rowsAt + rows*dims
)

const (
	// denseWeight is the dense leg's share of the fusion. Measured under
	// min-max by the table's authors: LoCoMo recall@10 is best at 0.4 (.641,
	// +.028 over BM25 alone), and 0.3 to 0.5 do no harm on SDE-bench.
	denseWeight = 0.4
	// floor stands between two distributions that TestFloor measures over the
	// chats of SDE-bench: the best cosine of invented words and keyboard noise
	// to anything (95 % at or under .402 and .383, greatest .472), and that of
	// real questions to their answer (90 % at or over .552 whole, .455 for the
	// first ten words). Plain questions about other matters reach .565, so that
	// the floor alone does not refuse those.
	floor = 0.45
	// floor128 is likewise of the first 128 dimensions alone: 95 % of the nonsense at or
	// under .466 and .446, 90 % of the real questions at or over .589 and .482.
	floor128 = 0.5
)

// Embedder reads the table. It has no state but its index of the vocabulary,
// and is safe for concurrent use.
type Embedder struct {
	dims  int // the first so many of the table's
	space memory.Space
	vocab *vocabulary
	pool  sync.Pool // of *scratch
}

var _ llm.Embedder = (*Embedder)(nil)

// New indexes the vocabulary (about 1 ms, once a process) and checks the
// table's header. A table of another shape gives Corrupt.
func New() (*Embedder, error) { return Cut(dims) }

// Name is what the table is called in `mem model set embed`; a cut form is Name-128.
const Name = "static"

// cuts are the dimensions that the table can be cut to, and the floor of each, measured
// by TestFloor as that of the whole is.
var cuts = map[int]float64{dims: floor, 128: floor128}

// Dims is how many dimensions the form called name has: "static" is the whole table,
// "static-128" its first 128. False for any other name.
func Dims(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, Name)
	if !ok {
		return 0, false
	}
	if rest == "" {
		return dims, true
	}
	n, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
	if _, is := cuts[n]; err != nil || !is || rest != "-"+strconv.Itoa(n) {
		return 0, false
	}
	return n, true
}

// Names are the names that Dims knows.
func Names() []string { return []string{Name, Name + "-128", Name + "-256"} }

// Cut is the table's first n dimensions, each vector brought to length 1 again: a
// space of its own. Another n than 128 and 256 is Invalid.
func Cut(n int) (e *Embedder, err error) {
	defer fault.Wrap(&err, "static.Cut(%d)", n)
	low, ok := cuts[n]
	if !ok {
		return nil, fault.At(fault.Invalid, "static table", "one of "+strings.Join(Names(), ", "), "it is not cut to %d dimensions", n)
	}
	v, err := shared()
	if err != nil {
		return nil, err
	}
	return &Embedder{
		dims: n,
		space: memory.Space{
			ID:    memory.SpaceID(Model, Revision, n, "none"),
			Model: Model, Revision: Revision, Dims: n, Prefix: "none",
			DenseWeight: denseWeight, Floor: low,
		},
		vocab: v,
		pool:  sync.Pool{New: func() any { return new(scratch) }},
	}, nil
}

var shared = sync.OnceValues(func() (*vocabulary, error) {
	field := func(at int) uint32 { return binary.LittleEndian.Uint32([]byte(tableBytes[at : at+4])) }
	if len(tableBytes) != tableSize || tableBytes[:4] != "MNST" || field(4) != version || field(8) != rows || field(12) != dims {
		return nil, fault.New(fault.Corrupt, "table.i8 is not a version %d table of %d rows", version, rows)
	}
	return newVocabulary(vocabBytes)
})

// Space is the space of every vector of this table.
func (e *Embedder) Space() memory.Space { return e.space }

// Embed gives one vector a text. The only error is that of a done context.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	s := e.pool.Get().(*scratch)
	defer e.pool.Put(s)
	flat := make([]float32, e.dims*len(texts))
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = flat[i*e.dims : (i+1)*e.dims : (i+1)*e.dims]
		sum(out[i], e.vocab.tokens(s, text))
	}
	return out, nil
}

// Tokens is the rows that text is the sum of.
func (e *Embedder) Tokens(text string) []int {
	s := e.pool.Get().(*scratch)
	defer e.pool.Put(s)
	ids := []int{}
	for _, id := range e.vocab.tokens(s, text) {
		ids = append(ids, int(id))
	}
	return ids
}

// sum adds the rows of ids, as many dimensions of them as v has, into v, which is zero,
// and brings it to length 1.
func sum(v []float32, ids []uint16) {
	for _, id := range ids {
		at := scalesAt + 4*int(id)
		bits := uint32(tableBytes[at]) | uint32(tableBytes[at+1])<<8 | uint32(tableBytes[at+2])<<16 | uint32(tableBytes[at+3])<<24
		scale := math.Float32frombits(bits)
		row := tableBytes[rowsAt+int(id)*dims:][:len(v)]
		for i := range v {
			v[i] += float32(scale * float32(int8(row[i]))) // the conversion forbids a fused multiply-add
		}
	}
	var square float64
	for _, x := range v {
		square += float64(float64(x) * float64(x))
	}
	if square == 0 {
		return
	}
	inv := 1 / math.Sqrt(square)
	for i, x := range v {
		v[i] = float32(float64(x) * inv)
	}
}
