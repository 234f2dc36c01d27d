package models

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// Embed is the model that embeds:
//
//	embed:
//	  endpoint: local
//	  model: nomic-embed-text-v2-moe
//	  dims: 768                    # known for nomic-embed-text and -v2-moe; else it must be given
//	  window: 512                  # tokens of the longest text; likewise, else left to the server
//	  revision: "1f3a"             # of the weights; another one is another space
//	  prefix: nomic/1              # none, nomic/1; by the model's name where it is left out
//	  dense_weight: 0.6
//	  floor: 0.5
//
// Model, revision, dims and prefix are the space: to change one is to embed
// everything anew, beside the old vectors, while those serve. Others that may serve
// have names, and `embed` may be one of them, or a table of the program:
//
//	embed: static                  # static, static-128, static-256, or a name under embeds
//	embeds:
//	  small: {endpoint: local, model: all-minilm, dims: 384}
type Embed struct {
	Endpoint    string // its name
	Model       string
	Dims        int
	Window      int    // in the model's tokens; 0: not known
	Revision    string // "" where it is not told apart
	Prefix      string // scheme; "" by the model's name
	DenseWeight float64
	Floor       float64
}

// Rerank is the cross-encoder that orders what was found:
//
//	rerank:
//	  endpoint: cross              # vllm or openai-compatible: /v1/rerank
//	  model: BAAI/bge-reranker-base
//	  top: 50                      # how many candidates of a question go to it
type Rerank struct {
	Endpoint string // its name
	Model    string
	Top      int
}

const (
	// DefaultDenseWeight is the brief's 0.6/0.4 of its embedding model.
	DefaultDenseWeight = 0.6
	// DefaultFloor is the cosine under which a hit counts as nothing. It is measured
	// for no model: how cosines lie is a matter of each. It stands over the 0.45 of
	// the static table, as it is better to leave a question to its words than to
	// answer nonsense; the preflight compares it with what invented words reach.
	DefaultFloor = 0.5
	// DefaultTop is as many as each leg gives.
	DefaultTop = 50
	maxTop     = 100     // both legs together give no more
	maxDims    = 1 << 16 // of a vector object
	minEmbed   = 64      // tokens of a window: a prefix and a sentence
)

// known are the dimensions and windows of models, by their name without owner
// and tag. nomic-embed-text was trained with 2,048 tokens; servers that stretch
// it to 8,192 differ.
var known = map[string]struct{ dims, window int }{
	"nomic-embed-text-v2-moe": {768, 512},
	"nomic-embed-text":        {768, 2048},
	"nomic-embed-text-v1":     {768, 2048},
	"nomic-embed-text-v1.5":   {768, 2048},
}

// Prefixes are the prefix schemes; "" is the one of the model's name.
var Prefixes = map[string]bool{"none": true, "nomic/1": true}

// canRerank says which kinds of endpoints have /v1/rerank. Of any compatible
// server the operator says so by naming it.
var canRerank = map[Kind]bool{VLLM: true, Compatible: true}

// fill completes what a known model leaves out.
func (e *Embed) fill() error {
	name := e.Model[strings.LastIndexByte(e.Model, '/')+1:]
	name, _, _ = strings.Cut(strings.ToLower(name), ":")
	k := known[name]
	if e.Dims == 0 {
		e.Dims = k.dims
	}
	if e.Window == 0 {
		e.Window = k.window
	}
	if e.Dims == 0 {
		return fault.At(fault.Invalid, "", "add dims: N, the length of its vectors", "the dimensions of %q are not known", e.Model)
	}
	return nil
}

func noRerank(e Endpoint) error {
	if e.Kind == Ollama {
		return fault.At(fault.Invalid, "", "serve a cross-encoder with vLLM or llama.cpp (--reranking) at an endpoint of its own", "Ollama has no rerank")
	}
	if !canRerank[e.Kind] {
		return fault.At(fault.Invalid, "", "name an endpoint of kind vllm or openai-compatible", "an endpoint of kind %s does not rerank", e.Kind)
	}
	return nil
}

// Tables are the names of the tables that ship with the program.
var Tables = []string{"static", "static-128", "static-256"}

// maxEmbeds bounds the file's embeds.
const maxEmbeds = 32

// Embedding is the embedding model called name: one of embeds, or the configured one by
// its model's. nil and true is a table of the program, by its name in Tables.
func (c *Config) Embedding(name string) (*Embed, bool) {
	if slices.Contains(Tables, name) {
		return nil, true
	}
	if e := c.Embeds[name]; e != nil {
		return e, true
	}
	if c.Embed != nil && (name == c.Embed.Model || name == c.EmbedName) {
		return c.Embed, true
	}
	return nil, false
}

// Embeddings lists the names that Embedding knows.
func (c *Config) Embeddings() []string {
	out := slices.Sorted(maps.Keys(c.Embeds))
	if c.Embed != nil && c.EmbedName == "" {
		out = append(out, c.Embed.Model)
	}
	return append(out, Tables...)
}

// Wanted is the name of what the configuration asks to embed with.
func (c *Config) Wanted() string {
	switch {
	case c.EmbedName != "":
		return c.EmbedName
	case c.Embed != nil:
		return c.Embed.Model
	}
	return Tables[0]
}

// embedsOf reads the models that may serve in the place of what embeds now.
func embedsOf(f strictyaml.File, n *strictyaml.Node, into map[string]*Embed, at map[string]*strictyaml.Node) error {
	return f.Each(n, "embeds", "a mapping of names", func(k, v *strictyaml.Node) (err error) {
		switch {
		case !memory.ValidName(k.Value) || slices.Contains(Tables, k.Value):
			return f.Fault(k, "a name is [a-z0-9][a-z0-9._-]{0,62}, and not "+strings.Join(Tables, ", "), "%q is no name of an embedding model", k.Value)
		case len(into) == maxEmbeds:
			return f.Fault(k, "", "more than %d embedding models", maxEmbeds)
		}
		at[k.Value] = v
		into[k.Value], err = embedOf(f, v)
		return err
	})
}

func embedOf(f strictyaml.File, n *strictyaml.Node) (*Embed, error) {
	e := Embed{DenseWeight: DefaultDenseWeight, Floor: DefaultFloor}
	text := func(to *string, what string) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) { *to, err = f.Text(n, what); return err }
	}
	count := func(to *int, what string, low, high int) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) { *to, err = number(f, n, what, low, high); return err }
	}
	err := f.Mapping(n, "embed", strictyaml.Fields{
		"endpoint": text(&e.Endpoint, "endpoint"), "model": text(&e.Model, "model"), "revision": text(&e.Revision, "revision"),
		"dims": count(&e.Dims, "dims", 1, maxDims), "window": count(&e.Window, "window", minEmbed, maxWindow),
		"prefix": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "prefix")
			if e.Prefix = v; err == nil && !Prefixes[v] {
				return f.Fault(n, "one of "+strictyaml.Words(Prefixes), "prefix %q is not known", v)
			}
			return err
		},
		"dense_weight": func(n *strictyaml.Node) (err error) { e.DenseWeight, err = share(f, n, "dense_weight"); return err },
		"floor":        func(n *strictyaml.Node) (err error) { e.Floor, err = share(f, n, "floor"); return err },
	})
	if err == nil && (e.Endpoint == "" || e.Model == "") {
		err = f.Fault(n, "", "embed needs an endpoint and a model")
	}
	if err == nil {
		if bad := e.fill(); bad != nil {
			err = f.Fault(n, fault.HintOf(bad), "embed: %v", bad)
		}
	}
	return &e, err
}

func rerankOf(f strictyaml.File, n *strictyaml.Node) (*Rerank, error) {
	r := Rerank{Top: DefaultTop}
	text := func(to *string, what string) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) { *to, err = f.Text(n, what); return err }
	}
	err := f.Mapping(n, "rerank", strictyaml.Fields{
		"endpoint": text(&r.Endpoint, "endpoint"), "model": text(&r.Model, "model"),
		"top": func(n *strictyaml.Node) (err error) { r.Top, err = number(f, n, "top", 1, maxTop); return err },
	})
	if err == nil && (r.Endpoint == "" || r.Model == "") {
		err = f.Fault(n, "", "rerank needs an endpoint and a model")
	}
	return &r, err
}

func share(f strictyaml.File, n *strictyaml.Node, what string) (float64, error) {
	v, err := f.Text(n, what)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, f.Fault(n, "", "%s must be a number from 0 to 1, not %q", what, v)
	}
	return x, nil
}

// vectors reads the fields of a file that embed and rerank; check is called when
// all endpoints are known.
func (c *Config) vectors(f strictyaml.File, fields strictyaml.Fields) (check func() error) {
	var embed, rerank *strictyaml.Node
	others := map[string]*strictyaml.Node{}
	fields["embed"] = func(n *strictyaml.Node) (err error) {
		if embed = n; n.Kind == strictyaml.Scalar {
			c.EmbedName, err = f.Text(n, "embed")
			return err
		}
		c.Embed, err = embedOf(f, n)
		return err
	}
	fields["embeds"] = func(n *strictyaml.Node) error {
		c.Embeds = map[string]*Embed{}
		return embedsOf(f, n, c.Embeds, others)
	}
	fields["rerank"] = func(n *strictyaml.Node) (err error) { rerank = n; c.Rerank, err = rerankOf(f, n); return err }
	return func() error {
		for _, name := range slices.Sorted(maps.Keys(c.Embeds)) {
			if _, ok := c.Endpoint(c.Embeds[name].Endpoint); !ok {
				return f.Fault(others[name], "name one that stands under endpoints", "embeds %s: no endpoint %q", name, c.Embeds[name].Endpoint)
			}
		}
		if c.EmbedName != "" {
			e, ok := c.Embedding(c.EmbedName)
			if !ok {
				return f.Fault(embed, "one of "+strings.Join(c.Embeddings(), ", "), "embed: no embedding model %q", c.EmbedName)
			}
			c.Embed = e
		}
		if c.Embed != nil {
			if _, ok := c.Endpoint(c.Embed.Endpoint); !ok {
				return f.Fault(embed, "name one that stands under endpoints", "embed: no endpoint %q", c.Embed.Endpoint)
			}
		}
		if c.Rerank == nil {
			return nil
		}
		e, ok := c.Endpoint(c.Rerank.Endpoint)
		if !ok {
			return f.Fault(rerank, "name one that stands under endpoints", "rerank: no endpoint %q", c.Rerank.Endpoint)
		}
		if bad := noRerank(e); bad != nil {
			return f.Fault(rerank, fault.HintOf(bad), "rerank: %v", bad)
		}
		return nil
	}
}

// vectorsFromEnv adds the models of MNEME_EMBED_MODEL, whose dimensions are
// MNEME_EMBED_DIMS where they are not known (or a table of the program), and MNEME_RERANK_MODEL, at e.
func (c *Config) vectorsFromEnv(getenv func(string) string, e Endpoint) error {
	if m := strings.TrimSpace(getenv("MNEME_EMBED_MODEL")); slices.Contains(Tables, m) {
		c.EmbedName = m
	} else if m != "" {
		c.Embed = &Embed{Endpoint: e.Name, Model: m, DenseWeight: DefaultDenseWeight, Floor: DefaultFloor}
		if d := strings.TrimSpace(getenv("MNEME_EMBED_DIMS")); d != "" {
			n, err := strconv.Atoi(d)
			if err != nil || n < 1 || n > maxDims {
				return fault.At(fault.Invalid, "MNEME_EMBED_DIMS", "", "%q is no number from 1 to %d", d, maxDims)
			}
			c.Embed.Dims = n
		}
		if err := c.Embed.fill(); err != nil {
			return fault.At(fault.Invalid, "MNEME_EMBED_MODEL", "set MNEME_EMBED_DIMS to the length of its vectors", "%v", err)
		}
	}
	if m := strings.TrimSpace(getenv("MNEME_RERANK_MODEL")); m != "" {
		if err := noRerank(e); err != nil {
			return fault.At(fault.Invalid, "MNEME_RERANK_MODEL", fault.HintOf(err), "%v", err)
		}
		c.Rerank = &Rerank{Endpoint: e.Name, Model: m, Top: DefaultTop}
	}
	return nil
}

// namesModel reports whether the environment names a model of any use.
func namesModel(getenv func(string) string) bool {
	for _, k := range []string{"MNEME_GATE_MODEL", "MNEME_EMBED_MODEL", "MNEME_RERANK_MODEL"} {
		if strings.TrimSpace(getenv(k)) != "" {
			return true
		}
	}
	return false
}
