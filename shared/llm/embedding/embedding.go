// Package embedding makes an llm.Embedder of a model behind a server.
//
// Invariants: every vector has the space's dimensions and norm 1, or is all zero
// where the text is blank, which is not sent; a vector stands for the whole of its
// text, also of one that is longer than the model's window; documents and
// questions carry the prefix that the model was trained with; an error names the
// texts that have no vector.
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
// A text over the window (a passage of 150 words that are paths or hashes) is read
// in pieces, see mean. Cached keeps vectors of texts that come again.
//
// The package has no transport and does not retry.
package embedding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

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
	// WindowTokens is the longest text with its prefix, in the model's tokens; 0
	// leaves it to the server, which must refuse what is longer. nomic-embed-text-v2-moe
	// holds 512.
	WindowTokens int
	// TokenFactor is the model's tokens for one of Count; default 1.6.
	TokenFactor float64
	BatchTokens int // default 8,192: some 16 passages of 512, a second or two on a CPU
	BatchTexts  int // default 32
}

const (
	// MostFactor is about the most tokens that a model makes of one of Qwen2.5's:
	// BERT's WordPiece, which nomic-embed-text reads, counts 1.26 times Qwen2.5's tokens
	// in the median of 581 passages of 150 words of prose, code and transcripts, 1.55
	// times in 99 % and 1.64 times at the most.
	MostFactor = 1.6
	// specialTokens begin and end a text (BERT's [CLS] and [SEP]).
	specialTokens = 2
	// shortest is the length in bytes under which a text is not cut, some dozen
	// tokens: what refuses that refuses it for another reason than its length.
	shortest = 64
)

// BadTexts is the error of a call with texts that have no vector.
type BadTexts struct {
	Index []int // into the texts of the call, ascending
	Err   error // of the first
	// Vectors are those of the other texts, as Embed would give them without the bad
	// ones; nil at Index.
	Vectors [][]float32
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
	if c.TokenFactor <= 0 {
		c.TokenFactor = MostFactor
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

// Longest is the longest text that is sent in one piece with its prefix, in tokens
// of Count; 0 where the window is not known.
func (e *Embedder) Longest() int {
	return max(int(float64(e.c.WindowTokens-specialTokens)/e.c.TokenFactor), 0)
}

// Prefix is what a text is sent with.
func (e *Embedder) Prefix() string { return e.prefix }

// Space is that of documents and questions alike.
func (e *Embedder) Space() memory.Space { return e.space }

// Embed is llm.Embedder's. Where texts are bad, the error is a *BadTexts of kind
// Invalid.
func (e *Embedder) Embed(ctx context.Context, texts []string) (_ [][]float32, err error) {
	defer fault.Wrap(&err, "embed(%s, %d texts)", e.c.Model, len(texts))
	run := call{e: e, parts: make([][]part, len(texts)), bad: map[int]error{}}
	first := map[string]int{} // the same text gets the same vector, and is asked for once
	var batch []piece
	tokens := 0
	flush := func() error {
		err := run.embed(ctx, batch)
		batch, tokens = nil, 0
		return err
	}
	for i, t := range texts {
		if _, seen := first[t]; seen || strings.TrimSpace(t) == "" {
			continue
		}
		first[t] = i
		for _, p := range e.pieces(t, i) {
			if len(batch) > 0 && (tokens+p.tokens > e.c.BatchTokens || len(batch) == e.c.BatchTexts) {
				if err := flush(); err != nil {
					return nil, err
				}
			}
			batch, tokens = append(batch, p), tokens+p.tokens
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	out, bad := make([][]float32, len(texts)), &BadTexts{}
	for i, t := range texts {
		at, asked := first[t]
		if err := run.bad[at]; asked && err != nil {
			if bad.Index = append(bad.Index, i); bad.Err == nil {
				bad.Err = err
			}
			continue
		}
		out[i] = mean(run.parts[at], e.c.Dims)
		if !asked {
			out[i] = make([]float32, e.c.Dims)
		}
	}
	if bad.Index != nil {
		bad.Vectors = out
		return nil, bad
	}
	return out, nil
}

// piece is what one vector is asked for: a text, or a part of one.
type piece struct {
	text   string // without the prefix
	of     int    // the text's index
	tokens int    // by Count, with the prefix
}

// part is the vector of a piece.
type part struct {
	vector []float32
	tokens int
}

// pieces cuts a text that is longer than the window in halves until each fits.
func (e *Embedder) pieces(text string, of int) []piece {
	p := piece{text, of, e.c.Count(e.prefix + text)}
	if e.c.WindowTokens > 0 && p.tokens > e.Longest() {
		if a, b, ok := halve(text); ok {
			return append(e.pieces(a, of), e.pieces(b, of)...)
		}
	}
	return []piece{p}
}

// halve cuts a text at the white space that is nearest to its middle, and where
// there is none in the middle half, between two characters. The halves of a long
// text are about as long as one another, so that no last piece of three words
// weighs as its own thought.
func halve(text string) (a, b string, ok bool) {
	if len(text) < 2*shortest {
		return "", "", false
	}
	mid := len(text) / 2
	at := mid
	for !utf8.RuneStart(text[at]) {
		at--
	}
	for d := range len(text) / 4 {
		if space(text[mid-d]) {
			at = mid - d
			break
		}
		if space(text[mid+d]) {
			at = mid + d
			break
		}
	}
	a, b = strings.TrimSpace(text[:at]), strings.TrimSpace(text[at:])
	return a, b, a != "" && b != ""
}

func space(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// mean is the vector of a text of several pieces: the mean of theirs, each weighed
// by its tokens, brought to norm 1. A model that pools by the mean would give it
// for the whole text if no token saw beyond its piece; every piece pulls it
// towards itself, so that a question about the end of a text finds it as one about
// its beginning does. It depends on the text alone, and it is one row: passages are
// cut once for all spaces (shared/index), so a passage cannot have more here than
// elsewhere. Sums are in the order of the pieces and in float64.
func mean(parts []part, dims int) []float32 {
	sum := make([]float64, dims)
	for _, p := range parts {
		if len(parts) == 1 {
			return append([]float32(nil), p.vector...)
		}
		for i, x := range p.vector {
			sum[i] += float64(x) * float64(p.tokens)
		}
	}
	out := make([]float32, dims)
	for i, x := range sum {
		out[i] = float32(x)
	}
	return unit(out)
}

// call is what one Embed has so far.
type call struct {
	e     *Embedder
	parts [][]part // of each text, in the order of its pieces
	bad   map[int]error
	alive bool // the endpoint has given a vector
}

// embed asks for the vectors of pieces; what is bad goes into bad.
func (c *call) embed(ctx context.Context, ps []piece) error {
	ps = slices.DeleteFunc(slices.Clone(ps), func(p piece) bool { return c.bad[p.of] != nil }) // a part would stand for the whole
	if len(ps) == 0 {
		return nil
	}
	ask := make([]string, len(ps))
	for j, p := range ps {
		ask[j] = c.e.prefix + p.text
	}
	vectors, err := c.e.vectors(ctx, ask)
	tooLong := errors.Is(err, llm.ErrWindow)
	switch {
	case err == nil:
		c.alive = true
		for j, p := range ps {
			if vectors[j] == nil {
				c.bad[p.of] = fault.At(fault.Invalid, fmt.Sprintf("text %d", p.of), "leave this text out, or cut it differently", "the model's vector is not a number")
				continue
			}
			c.parts[p.of] = append(c.parts[p.of], part{vectors[j], max(p.tokens, 1)})
		}
		return nil
	case !fault.Is(err, fault.Invalid):
		return err
	case !c.alive && !tooLong:
		// Is it the texts, or the endpoint? What fails here is not a text's fault.
		if _, err := c.e.vectors(ctx, []string{c.e.prefix + "a"}); err != nil {
			return err
		}
		c.alive = true
	}
	if len(ps) > 1 {
		half := len(ps) / 2
		if err := c.embed(ctx, ps[:half]); err != nil {
			return err
		}
		return c.embed(ctx, ps[half:])
	}
	p := ps[0]
	if a, b, ok := halve(p.text); ok && tooLong { // the own count missed: the server knows
		return c.embed(ctx, []piece{{a, p.of, c.e.c.Count(c.e.prefix + a)}, {b, p.of, c.e.c.Count(c.e.prefix + b)}})
	}
	c.bad[p.of] = err
	return nil
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
