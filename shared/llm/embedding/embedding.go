// Package embedding makes an llm.Embedder of a model behind a server.
//
// Invariants: every vector has the space's dimensions and norm 1, or is all zero
// where the text is blank, which is not sent; no text is cut; documents and
// questions carry the prefix that the model was trained with; an error names the
// texts that have no vector, and gives none for the others.
//
// What a server is asked for, of a document and a question under the scheme
// "nomic/1":
//
//	search_document: the build fails because …
//	search_query: why does the build fail
//
// A batch is filled up to BatchTokens and BatchTexts. One bad text fails a whole
// batch at the server (NaN, a window that the own count missed), so a batch that
// is refused is halved until the text stands alone; a text that is always the same
// and never bad tells a bad text from an endpoint that refuses everything. Only a
// refusal (fault.Invalid) is halved: a server that is down is no reason to ask it more.
//
// The package has no transport, does not retry, and does not cut a text that is too
// long: passages are cut by shared/index, and a text that is cut here would be found
// by its beginning alone.
package embedding

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Source gives a model's vectors, in the order of the texts; dims asks for a size
// where it is not 0. An error that a text causes is fault.Invalid.
type Source interface {
	Vectors(ctx context.Context, model string, texts []string, dims int) ([][]float32, error)
}

// Schemes of prefixes, by name; a changed wording is a new name.
var schemes = map[string]struct{ document, query string }{
	"none":    {},
	"nomic/1": {"search_document: ", "search_query: "}, // nomic-embed-text, all versions: its model card
}

// SchemeOf is the scheme of a model by its name; "none" for one that is not known.
func SchemeOf(model string) string {
	if strings.Contains(strings.ToLower(model), "nomic-embed-text") {
		return "nomic/1"
	}
	return "none"
}

// Config says which model, and how much goes into one request.
type Config struct {
	Model    string
	Revision string // of the weights, e.g. a digest; part of the space
	Dims     int    // that a vector must have
	Scheme   string // default SchemeOf(Model)
	AskDims  bool   // ask the server for Dims, of a model trained to be cut

	DenseWeight float64 // see memory.Space
	Floor       float64

	Count func(string) int // tokens of a text
	// WindowTokens is the longest text with its prefix, by Count; 0 leaves it to
	// the server. nomic-embed-text-v2-moe holds 512.
	WindowTokens int
	BatchTokens  int // default 8,192: some 16 passages of 512, a second or two on a CPU
	BatchTexts   int // default 32
}

// BadTexts is the error of a call with texts that have no vector. The others
// would have one: the call can be made again without these.
type BadTexts struct {
	Index []int // into the texts of the call, ascending
	Err   error // of the first
}

func (e *BadTexts) Error() string {
	return fmt.Sprintf("texts %v have no vector; the first: %v", e.Index, e.Err)
}

func (e *BadTexts) Unwrap() error { return e.Err }

// Embedder embeds documents; Queries embeds questions. It is safe for concurrent use.
type Embedder struct {
	src    Source
	c      Config
	space  memory.Space
	prefix string
}

var _ llm.Embedder = (*Embedder)(nil)

// New checks the configuration. It asks the source for nothing.
func New(src Source, c Config) (*Embedder, error) {
	if c.Scheme == "" {
		c.Scheme = SchemeOf(c.Model)
	}
	scheme, ok := schemes[c.Scheme]
	switch {
	case c.Model == "" || c.Dims <= 0 || c.Count == nil:
		return nil, fault.New(fault.Invalid, "an embedding model needs a name, its dimensions and a counter of tokens")
	case !ok:
		return nil, fault.At(fault.Invalid, "model "+c.Model, "write none or nomic/1", "the prefix scheme %q is not known", c.Scheme)
	}
	if c.BatchTokens <= 0 {
		c.BatchTokens = 8192
	}
	if c.BatchTexts <= 0 {
		c.BatchTexts = 32
	}
	return &Embedder{src: src, c: c, prefix: scheme.document, space: memory.Space{
		ID:    memory.SpaceID(c.Model, c.Revision, c.Dims, c.Scheme),
		Model: c.Model, Revision: c.Revision, Dims: c.Dims, Prefix: c.Scheme, DenseWeight: c.DenseWeight, Floor: c.Floor,
	}}, nil
}

// Queries is the embedder of questions in the same space.
func (e *Embedder) Queries() *Embedder {
	q := *e
	q.prefix = schemes[e.c.Scheme].query
	return &q
}

// Space is that of documents and questions alike.
func (e *Embedder) Space() memory.Space { return e.space }

// Embed is llm.Embedder's. Where texts are bad, the error is a *BadTexts of kind
// Invalid.
func (e *Embedder) Embed(ctx context.Context, texts []string) (_ [][]float32, err error) {
	defer fault.Wrap(&err, "embed(%s, %d texts)", e.c.Model, len(texts))
	run := call{e: e, out: make([][]float32, len(texts)), bad: map[int]error{}}
	first := map[string]int{} // the same text gets the same vector, and is asked for once
	var batch []int
	tokens := 0
	flush := func() error {
		err := run.embed(ctx, texts, batch)
		batch, tokens = nil, 0
		return err
	}
	for i, t := range texts {
		if strings.TrimSpace(t) == "" {
			run.out[i] = make([]float32, e.c.Dims)
			continue
		}
		if _, seen := first[t]; seen {
			continue
		}
		first[t] = i
		n := e.c.Count(e.prefix + t)
		if e.c.WindowTokens > 0 && n > e.c.WindowTokens {
			run.bad[i] = fault.At(fault.Invalid, fmt.Sprintf("text %d", i), "cut it into passages", "it has %d tokens, and the model's window %d", n, e.c.WindowTokens)
			continue
		}
		if len(batch) > 0 && (tokens+n > e.c.BatchTokens || len(batch) == e.c.BatchTexts) {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		batch, tokens = append(batch, i), tokens+n
	}
	if err := flush(); err != nil {
		return nil, err
	}
	bad := &BadTexts{}
	for i, t := range texts {
		at := i
		if run.out[i] == nil {
			at = first[t]
		}
		if err := run.bad[at]; err != nil {
			if bad.Index = append(bad.Index, i); bad.Err == nil {
				bad.Err = err
			}
			continue
		}
		if at != i {
			run.out[i] = append([]float32(nil), run.out[at]...)
		}
	}
	if bad.Index != nil {
		return nil, bad
	}
	return run.out, nil
}

// call is what one Embed has so far.
type call struct {
	e     *Embedder
	out   [][]float32
	bad   map[int]error
	alive bool // the endpoint has given a vector
}

// embed asks for the vectors of texts[i] for i in at; what is bad goes into bad.
func (c *call) embed(ctx context.Context, texts []string, at []int) error {
	if len(at) == 0 {
		return nil
	}
	ask := make([]string, len(at))
	for j, i := range at {
		ask[j] = c.e.prefix + texts[i]
	}
	vectors, err := c.e.vectors(ctx, ask)
	switch {
	case err == nil:
		c.alive = true
		for j, i := range at {
			if vectors[j] == nil {
				c.bad[i] = fault.At(fault.Invalid, fmt.Sprintf("text %d", i), "leave this text out, or cut it differently", "the model's vector is not a number")
			}
			c.out[i] = vectors[j]
		}
		return nil
	case !fault.Is(err, fault.Invalid):
		return err
	case !c.alive:
		// Is it the texts, or the endpoint? What fails here is not a text's fault.
		if _, err := c.e.vectors(ctx, []string{c.e.prefix + "a"}); err != nil {
			return err
		}
		c.alive = true
	}
	if len(at) == 1 {
		c.bad[at[0]] = err
		return nil
	}
	half := len(at) / 2
	if err := c.embed(ctx, texts, at[:half]); err != nil {
		return err
	}
	return c.embed(ctx, texts, at[half:])
}

// vectors are those of texts as they are sent, of norm 1; nil for one that is not
// a number.
func (e *Embedder) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	dims := 0
	if e.c.AskDims {
		dims = e.c.Dims
	}
	got, err := e.src.Vectors(ctx, e.c.Model, texts, dims)
	if err != nil {
		return nil, err
	}
	if len(got) != len(texts) {
		return nil, fault.New(fault.Unavailable, "%d vectors for %d texts", len(got), len(texts))
	}
	for i, v := range got {
		if len(v) != e.c.Dims {
			// Not Invalid, which would be taken for a bad text: no text can cure it.
			return nil, fault.At(fault.Corrupt, "model "+e.c.Model, "vectors of another size are another space: set the dimensions anew and let it be filled",
				"a vector has %d dimensions, and the space %d", len(v), e.c.Dims)
		}
		got[i] = unit(v)
	}
	return got, nil
}

// unit scales v to norm 1; a vector of zeros stays, one that is not a number is nil.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		return nil
	case sum == 0:
		return v
	}
	norm := math.Sqrt(sum)
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / norm)
	}
	return out
}
