package models_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/models"
)

const servers = `endpoints:
  - {name: local, url: "http://127.0.0.1:11434", kind: ollama}
  - {name: cross, url: "http://127.0.0.1:8000/v1", kind: vllm}
  - {name: own, url: "http://127.0.0.1:8001/v1"}
  - {name: big, url: "https://api.openai.com/v1", kind: openai}
`

func TestParseEmbedAndRerank(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file   string
		embed  *models.Embed
		rerank *models.Rerank
	}{
		"a known model": {
			"embed: {endpoint: local, model: nomic-embed-text-v2-moe}",
			&models.Embed{Endpoint: "local", Model: "nomic-embed-text-v2-moe", Dims: 768, Window: 512, DenseWeight: 0.6, Floor: 0.5}, nil,
		},
		"by its owner and tag": {
			"embed: {endpoint: cross, model: \"nomic-ai/nomic-embed-text:v1.5\", window: 8192}",
			&models.Embed{Endpoint: "cross", Model: "nomic-ai/nomic-embed-text:v1.5", Dims: 768, Window: 8192, DenseWeight: 0.6, Floor: 0.5}, nil,
		},
		"all of it": {
			"embed: {endpoint: local, model: bge-m3, dims: 1024, window: 8192, revision: \"1f3a\", prefix: none, dense_weight: 0.5, floor: 0}\nrerank: {endpoint: cross, model: BAAI/bge-reranker-base, top: 20}",
			&models.Embed{Endpoint: "local", Model: "bge-m3", Dims: 1024, Window: 8192, Revision: "1f3a", Prefix: "none", DenseWeight: 0.5},
			&models.Rerank{Endpoint: "cross", Model: "BAAI/bge-reranker-base", Top: 20},
		},
		"a reranker alone": {
			"rerank: {endpoint: own, model: m}", nil, &models.Rerank{Endpoint: "own", Model: "m", Top: 50},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := models.Parse("models.yaml", []byte(servers+tc.file))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.embed, got.Embed); d != "" {
				t.Errorf("embed (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.rerank, got.Rerank); d != "" {
				t.Errorf("rerank (-want +got):\n%s", d)
			}
			if got.Gate != nil {
				t.Errorf("a gate from nowhere: %+v", got.Gate)
			}
		})
	}
}

func TestEmbedAndRerankRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, want, hint string }{
		"dimensions unknown":   {"embed: {endpoint: local, model: bge-m3}", `models.yaml:6: embed: the dimensions of "bge-m3" are not known`, "add dims: N"},
		"no dimensions":        {"embed: {endpoint: local, model: m, dims: 0}", "models.yaml:6: dims must be a number from 1", ""},
		"a window of nothing":  {"embed: {endpoint: local, model: m, dims: 3, window: 8}", "models.yaml:6: window must be a number from 64", ""},
		"another prefix":       {"embed: {endpoint: local, model: m, dims: 3, prefix: e5}", `models.yaml:6: prefix "e5" is not known`, "nomic/1"},
		"a weight over 1":      {"embed: {endpoint: local, model: m, dims: 3, dense_weight: 1.5}", "dense_weight must be a number from 0 to 1", ""},
		"a floor that is none": {"embed: {endpoint: local, model: m, dims: 3, floor: NaN}", "floor must be a number from 0 to 1", ""},
		"embed nowhere":        {"embed: {endpoint: locall, model: m, dims: 3}", `models.yaml:6: embed: no endpoint "locall"`, "under endpoints"},
		"embed without model":  {"embed: {endpoint: local, dims: 3}", "embed needs an endpoint and a model", ""},
		"an unknown field":     {"embed: {endpoint: local, model: m, dim: 3}", `unknown field "dim"`, ""},
		"rerank nowhere":       {"rerank: {endpoint: locall, model: m}", `models.yaml:6: rerank: no endpoint "locall"`, "under endpoints"},
		"rerank by Ollama":     {"rerank: {endpoint: local, model: m}", "models.yaml:6: rerank: Ollama has no rerank", "vLLM"},
		"rerank by OpenAI":     {"rerank: {endpoint: big, model: m}", "models.yaml:6: rerank: an endpoint of kind openai does not rerank", "kind vllm"},
		"too many candidates":  {"rerank: {endpoint: cross, model: m, top: 500}", "top must be a number from 1 to 100", ""},
		"rerank without model": {"rerank: {endpoint: cross}", "rerank needs an endpoint and a model", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := models.Parse("models.yaml", []byte(servers+tc.file))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(fault.HintOf(err), tc.hint) {
				t.Errorf("%v (%s), want %q (%s)", err, fault.HintOf(err), tc.want, tc.hint)
			}
		})
	}
}

func TestEmbedAndRerankFromEnv(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env        map[string]string
		embed      *models.Embed
		rerank     *models.Rerank
		want, hint string // of an error
	}{
		"a known model": {env: map[string]string{"MNEME_EMBED_MODEL": "nomic-embed-text"},
			embed: &models.Embed{Endpoint: "env", Model: "nomic-embed-text", Dims: 768, Window: 2048, DenseWeight: 0.6, Floor: 0.5}},
		"another, and a reranker": {env: map[string]string{"MNEME_EMBED_MODEL": "bge-m3", "MNEME_EMBED_DIMS": "1024", "MNEME_RERANK_MODEL": "r", "LLM_API_BASE": "http://127.0.0.1:8000/v1"},
			embed: &models.Embed{Endpoint: "env", Model: "bge-m3", Dims: 1024, DenseWeight: 0.6, Floor: 0.5}, rerank: &models.Rerank{Endpoint: "env", Model: "r", Top: 50}},
		"dimensions unknown": {env: map[string]string{"MNEME_EMBED_MODEL": "bge-m3"}, want: `MNEME_EMBED_MODEL: the dimensions of "bge-m3" are not known`, hint: "MNEME_EMBED_DIMS"},
		"no dimensions":      {env: map[string]string{"MNEME_EMBED_MODEL": "bge-m3", "MNEME_EMBED_DIMS": "x"}, want: "MNEME_EMBED_DIMS"},
		"rerank by Ollama":   {env: map[string]string{"MNEME_RERANK_MODEL": "r"}, want: "MNEME_RERANK_MODEL: Ollama has no rerank", hint: "vLLM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := models.FromEnv(func(k string) string { return tc.env[k] })
			if tc.want != "" {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(fault.HintOf(err), tc.hint) {
					t.Errorf("%v (%s)", err, fault.HintOf(err))
				}
				return
			}
			if err != nil || c.Gate != nil || len(c.Endpoints) != 1 {
				t.Fatalf("%+v %v", c, err)
			}
			if d := cmp.Diff(tc.embed, c.Embed); d != "" {
				t.Errorf("embed (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.rerank, c.Rerank); d != "" {
				t.Errorf("rerank (-want +got):\n%s", d)
			}
		})
	}
}

// TestEmbeds: several embedding models have names, and what is to serve is one of them,
// a table of the program, or stands by itself.
func TestEmbeds(t *testing.T) {
	t.Parallel()
	small := &models.Embed{Endpoint: "local", Model: "all-minilm", Dims: 384, DenseWeight: 0.6, Floor: 0.5}
	const embeds = "\nembeds:\n  small: {endpoint: local, model: all-minilm, dims: 384}\n"
	for file, want := range map[string]struct {
		wanted string
		embed  *models.Embed
	}{
		"":                       {"static", nil},
		"embed: static" + embeds: {"static", nil},
		"embed: static-128":      {"static-128", nil},
		"embed: small" + embeds:  {"small", small},
		embeds[1:]:               {"static", nil},
		"embed: {endpoint: local, model: all-minilm, dims: 384}" + embeds: {"all-minilm", small},
	} {
		c, err := models.Parse("models.yaml", []byte(servers+file))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d := cmp.Diff(want.embed, c.Embed); d != "" || c.Wanted() != want.wanted {
			t.Errorf("%s: wants %s, want %s (-want +got):\n%s", file, c.Wanted(), want.wanted, d)
		}
		for _, n := range c.Embeddings() {
			if _, ok := c.Embedding(n); !ok {
				t.Errorf("%s: %s is listed and not known", file, n)
			}
		}
		if e, ok := c.Embedding(c.Wanted()); !ok || e != c.Embed {
			t.Errorf("%s: what is wanted is %v, %t", file, e, ok)
		}
		if _, ok := c.Embedding("nope"); ok {
			t.Error("an unknown name is known")
		}
	}
	for file, want := range map[string]string{
		"embed: small": `no embedding model "small"`,
		"embeds:\n  static: {endpoint: local, model: m, dims: 3}": "is no name",
		"embeds:\n  UP: {endpoint: local, model: m, dims: 3}":     "is no name",
		"embeds:\n  a: {endpoint: nowhere, model: m, dims: 3}":    `embeds a: no endpoint "nowhere"`,
		"embeds:\n  a: {endpoint: local, model: m}":               "dimensions",
		"embeds: [a]": "mapping",
	} {
		if _, err := models.Parse("models.yaml", []byte(servers+file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	c, err := models.FromEnv(func(k string) string { return map[string]string{"MNEME_EMBED_MODEL": "static-128"}[k] })
	if err != nil || c.Wanted() != "static-128" || c.Embed != nil {
		t.Errorf("%+v %v", c, err)
	}
}
