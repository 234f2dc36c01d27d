package preflight

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
)

// What CheckEmbed and CheckRerank find:
//
//	check    finding                                              what to do
//	space    nomic-embed-text, 768 dimensions, …: space 0a1b2c3d  (nothing to do)
//	vector   it gives none: model "m" does not support embed      take another model
//	dims     768 numbers, and 512 are configured                  dims: 768
//	norm     its vectors have length 12.3: they are brought to 1  (nothing to do)
//	texts    two texts have one vector                            look at the server
//	prefix   a document and a question have one vector            prefix: none
//	window   the end of a text of 318 tokens is not read          window: 256
//	floor    invented words reach a cosine of 0.71; it is 0.50    floor: 0.78
//	rerank   the text that answers does not stand first           serve a cross-encoder

// Vectorer gives a model's vectors as they are, in the order of the texts.
type Vectorer interface {
	Vectors(ctx context.Context, model string, texts []string, dims int) ([][]float32, error)
}

// Texts embeds documents or questions.
type Texts interface {
	llm.Embedder
	Prefix() string // that goes before each
}

// EmbedServer is one embedding model at one endpoint.
type EmbedServer struct {
	Endpoint string // its name
	Kind     string
	Model    string
	Source   Vectorer
	Probe    llm.Prober // nil: models are not listed
	// Documents and Queries are the model as a run uses it.
	Documents, Queries Texts
	// Longest is the longest text that a run sends at a time, in tokens of Count;
	// 0 where the window is not known and whole passages are sent.
	Longest int
	Count   func(string) int
}

// RerankServer is one cross-encoder at one endpoint.
type RerankServer struct {
	Endpoint string
	Kind     string
	Model    string
	Reranker llm.Reranker
	Probe    llm.Prober
}

// look collects what is found of one server.
type look struct{ r Result }

func (l *look) say(check string, ok bool, cure, format string, args ...any) bool {
	if ok {
		cure = ""
	}
	l.r.Findings = append(l.r.Findings, Finding{Check: check, OK: ok, Found: fmt.Sprintf(format, args...), Cure: cure})
	return ok
}

func (l *look) done(ctx context.Context) (Result, error) {
	l.r.OK = !slices.ContainsFunc(l.r.Findings, func(f Finding) bool { return !f.OK })
	if ctx.Err() != nil {
		return l.r, context.Cause(ctx)
	}
	return l.r, nil
}

// present says whether the endpoint answers and has the model.
func (l *look) present(ctx context.Context, s Server) bool {
	if s.Probe == nil {
		return true
	}
	models, err := s.Probe.Models(ctx)
	if err != nil {
		return l.say("reach", false, fault.HintOf(err), "%s does not answer: %v", s.Endpoint, err)
	}
	l.say("reach", true, "", "%s answers", s.Endpoint)
	at, ok := find(models, s.Model)
	l.r.Window = at.Window
	return l.say("model", ok, missing(s), "%s is %sthere", s.Model, map[bool]string{false: "not "}[ok])
}

// same is the cosine from which two vectors count as one: servers round, and may
// compute in float16.
const same = 1 - 1e-4

// CheckEmbed looks at an embedding model. A server that cannot be asked is a
// finding; the error is of a context that ended.
func CheckEmbed(ctx context.Context, s EmbedServer) (Result, error) {
	l := look{Result{Use: "embed", Server: s.Endpoint + "/" + s.Model}}
	if !l.present(ctx, Server{Endpoint: s.Endpoint, Kind: s.Kind, Model: s.Model, Probe: s.Probe}) {
		return l.done(ctx)
	}
	space := s.Documents.Space()
	l.say("space", true, "", "%s, %d dimensions, prefixes %s: space %s", space.Model, space.Dims, space.Prefix, space.ID)
	prefix := s.Documents.Prefix()
	raw, err := s.Source.Vectors(ctx, s.Model, []string{prefix + probes[0].text, prefix + probes[1].text}, 0)
	if err == nil && len(raw) != 2 {
		err = fault.New(fault.Unavailable, "%d vectors for 2 texts", len(raw))
	}
	if err != nil {
		l.say("vector", false, fault.HintOf(err), "%s gives no vector: %v", s.Model, err)
		return l.done(ctx)
	}
	if n := len(raw[0]); !l.say("dims", n == space.Dims, fmt.Sprintf("dims: %d in the file of models, or MNEME_EMBED_DIMS; that is another space, which is filled anew", n),
		"its vectors have %d numbers, and %d are configured", n, space.Dims) {
		return l.done(ctx)
	}
	if n := length(raw[0]); math.Abs(n-1) < 1e-3 {
		l.say("norm", true, "", "its vectors have length 1")
	} else {
		l.say("norm", n > 0 && !math.IsInf(n, 0) && !math.IsNaN(n), "look at the server: a vector of zeros is near nothing", "its vectors have length %.3g: they are brought to 1 here", n)
	}
	l.say("texts", cosine(raw[0], raw[1]) < same, "look at the server and the model: nothing can be found by such vectors", "two texts have %s", differ(cosine(raw[0], raw[1])))
	if err := l.meaning(ctx, s); err != nil {
		l.say("vector", false, fault.HintOf(err), "%s gives no vector: %v", s.Model, err)
		return l.done(ctx)
	}
	l.window(ctx, s)
	return l.done(ctx)
}

func differ(cosine float64) string {
	if cosine < same {
		return fmt.Sprintf("vectors of their own (cosine %.2f)", cosine)
	}
	return "one vector"
}

// meaning compares questions and invented words with what they are asked of, as
// a run embeds them.
func (l *look) meaning(ctx context.Context, s EmbedServer) error {
	var texts, questions []string
	for _, p := range probes {
		texts, questions = append(texts, p.text), append(questions, p.question)
	}
	documents, err := s.Documents.Embed(ctx, texts)
	if err != nil {
		return err
	}
	asked, err := s.Queries.Embed(ctx, slices.Concat(questions, invented, texts[:1]))
	if err != nil {
		return err
	}
	if d, q := s.Documents.Prefix(), s.Queries.Prefix(); d != q {
		l.say("prefix", cosine(documents[0], asked[len(asked)-1]) < same, "prefix: none, if the model has no prefixes; else look at the server",
			"documents go with %q, questions with %q: one text as both has %s", d, q, differ(cosine(documents[0], asked[len(asked)-1])))
	} else {
		l.say("prefix", true, "", "documents and questions go as they are")
	}
	noise := 0.0
	var near []float64
	for i, q := range asked[:len(questions)+len(invented)] {
		if i < len(questions) {
			near = append(near, cosine(documents[i], q))
			continue
		}
		for _, d := range documents {
			noise = max(noise, cosine(d, q))
		}
	}
	slices.Sort(near)
	typical, floor := near[len(near)/2], s.Documents.Space().Floor
	words := fmt.Sprintf("invented words reach a cosine of %.2f, and questions one of %.2f with their answer; the floor is %.2f", noise, typical, floor)
	switch {
	case noise < floor && floor <= typical:
		l.say("floor", true, "", "%s", words)
	case noise < typical:
		l.say("floor", false, fmt.Sprintf("floor: %.2f", (noise+typical)/2), "%s", words)
	default:
		l.say("floor", false, "take a model that is trained for retrieval, or dense_weight: 0 and floor: 1, which leave the answer to words", "%s", words)
	}
	return nil
}

// longText is how long a text the look at the window sends at the most, in tokens
// of the own count: over the 256 and 512 of the models whose windows are small, and
// over nearly all passages; a long one of 1,600 takes minutes where the processor is slow.
const longText = 700

// window looks whether the end of the longest text that is sent counts.
func (l *look) window(ctx context.Context, s EmbedServer) {
	most := longText
	if s.Longest > 0 {
		most = min(s.Longest, longText)
	}
	longest := filled(s.Count, most-s.Count(s.Documents.Prefix()+endings[0]))
	at := func(text string) (string, error) {
		texts := []string{s.Documents.Prefix() + text + endings[0], s.Documents.Prefix() + text + endings[1]}
		v, err := s.Source.Vectors(ctx, s.Model, texts, 0)
		switch {
		case errors.Is(err, llm.ErrWindow):
			return "refused", nil
		case err != nil:
			return "", err
		case len(v) != 2 || cosine(v[0], v[1]) > 1-1e-6: // the end of a long text moves its vector little
			return "cut", nil
		}
		return "read", nil
	}
	whole, err := at(longest)
	if err != nil {
		l.say("window", false, fault.HintOf(err), "a text of %d tokens has no vector: %v", s.Count(longest), err)
		return
	}
	tokens := s.Count(s.Documents.Prefix() + longest + endings[0])
	switch whole {
	case "cut":
		cure := fmt.Sprintf("window: a number of tokens that it does read, under %d", tokens)
		if s.Kind != "ollama" {
			cure += "; or a server that refuses what it cannot read (kind: ollama without /v1, vLLM)"
		}
		l.say("window", false, cure, "the end of a text of %d tokens is not read, and it does not say so: such texts are found by their beginning alone", tokens)
		return
	case "refused":
		l.say("window", true, "", "it refuses a text of %d tokens: such texts are read in smaller pieces", tokens)
		return
	}
	words := "a text of %d tokens is read to its end"
	if most == s.Longest { // longer ones are not sent: what if one were, as the count erred?
		switch over, err := at(strings.Repeat(longest+" ", 3)); {
		case err == nil && over == "refused":
			words += ", and longer ones are refused"
		case err == nil && over == "cut":
			words += "; longer ones, which are not sent, it cuts in silence"
		}
	}
	l.say("window", true, "", words, tokens)
}

// CheckRerank looks at a cross-encoder: of two texts the one that answers must
// stand first, whichever comes first.
func CheckRerank(ctx context.Context, s RerankServer) (Result, error) {
	l := look{Result{Use: "rerank", Server: s.Endpoint + "/" + s.Model}}
	if !l.present(ctx, Server{Endpoint: s.Endpoint, Kind: s.Kind, Model: s.Model, Probe: s.Probe}) {
		return l.done(ctx)
	}
	p := probes[0]
	for _, right := range []int{1, 0} {
		texts := []string{probes[1].text, probes[1].text}
		texts[right] = p.text
		scores, err := s.Reranker.Rerank(ctx, s.Model, p.question, texts)
		if err == nil && len(scores) != 2 {
			err = fault.New(fault.Unavailable, "%d scores for 2 texts", len(scores))
		}
		if err != nil {
			l.say("rerank", false, fault.HintOf(err), "%s gives no scores: %v", s.Model, err)
			return l.done(ctx)
		}
		if !(scores[right] > scores[1-right]) {
			l.say("rerank", false, "serve a cross-encoder that is trained to rerank, such as bge-reranker-base", "the text that answers has %.3g, one that does not %.3g", scores[right], scores[1-right])
			return l.done(ctx)
		}
		if right == 0 {
			l.say("rerank", true, "", "the text that answers stands first, with %.3g over %.3g", scores[right], scores[1-right])
		}
	}
	return l.done(ctx)
}

// probes are statements as a memory holds them, each with a question in other
// words.
var probes = []struct{ text, question string }{
	{"We decided to cap retries at 5, because the upstream bans us after ten attempts.", "how many times may a failed request be retried?"},
	{"The cache keeps prices for ten minutes and never longer.", "when do cached prices expire?"},
	{"Use pgx instead of lib/pq in every service that talks to Postgres.", "which driver should I use for the database?"},
	{"Account numbers must not appear in any log file.", "what is forbidden to be logged?"},
	{"The release is cut on Thursdays by whoever is on call.", "who ships a new version, and on which day?"},
	{"Integration tests need Docker and take four minutes.", "what do I need to run the integration tests?"},
}

// invented are questions that nothing answers.
var invented = []string{
	"zorble quux fnordwick blathering", "asdf jkl qwer uiop zxcv", "the plimth of a grundle vorks trell",
	"flarn snib oomp wexil hish", "xq vv kkr plo zz", "glimber tox varnel",
}

var endings = [2]string{" In the end the answer was the cache.", " At last somebody found three dead pigeons."}

// filled is words of about n tokens, and not more.
func filled(count func(string) int, n int) string {
	const words = "the reader goes on through a plain text about many small things of every day and then some more of them "
	per := max(count(words), 1)
	text := strings.TrimSpace(strings.Repeat(words, max(n/per, 1)))
	for count(text) > n && strings.Contains(text, " ") {
		text = text[:strings.LastIndexByte(text, ' ')]
	}
	return text
}

func length(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// cosine is 0 where a vector is all zero.
func cosine(a, b []float32) float64 {
	dot, n := 0.0, length(a)*length(b)
	for i := range min(len(a), len(b)) {
		dot += float64(a[i]) * float64(b[i])
	}
	if n == 0 {
		return 0
	}
	return dot / n
}
