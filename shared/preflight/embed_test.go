package preflight_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/preflight"
)

// mind knows what the probes are about.
var mind = llmtest.Meaning(16, []string{"retr"}, []string{"price"}, []string{"driver", "pgx"}, []string{"log"}, []string{"release", "ships"}, []string{"integration"})

const mindDims = 6 + 16

// vectors is a model by a function of the text as it comes, prefix included.
type vectors struct {
	of    func(text string) []float64
	err   error
	reads int // words; more is refused, or cut where cuts
	cuts  bool
	asked int
}

func (v *vectors) Vectors(_ context.Context, _ string, texts []string, _ int) ([][]float32, error) {
	v.asked++
	if v.err != nil {
		return nil, v.err
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if w := strings.Fields(t); v.reads > 0 && len(w) > v.reads {
			if !v.cuts {
				return nil, &fault.Error{Kind: fault.Invalid, Err: llm.ErrWindow}
			}
			t = strings.Join(w[:v.reads], " ")
		}
		for _, x := range v.of(t) {
			out[i] = append(out[i], float32(x))
		}
	}
	return out, nil
}

func times(f func(string) []float64, n float64) func(string) []float64 {
	return func(t string) []float64 {
		v := f(t)
		for i := range v {
			v[i] *= n
		}
		return v
	}
}

func TestCheckEmbed(t *testing.T) {
	t.Parallel()
	there := []llm.Info{{Model: "nomic-embed-text", Window: 2048}}
	bare := func(t string) string {
		t = strings.TrimPrefix(t, "search_document: ")
		return strings.TrimPrefix(t, "search_query: ")
	}
	for name, tc := range map[string]struct {
		v       vectors
		models  []llm.Info
		list    error
		kind    string
		window  int // of the configuration, in tokens
		floor   float64
		failed  string // check
		found   string // in the finding of check says
		says    string
		cure    string
		unasked bool
	}{
		"all is well":         {v: vectors{of: mind, reads: 400}, window: 300, floor: 0.5},
		"it is down":          {v: vectors{of: mind}, list: fault.At(fault.Unavailable, "local", "start it: ollama serve", "connection refused"), floor: 0.5, failed: "reach", cure: "ollama serve", unasked: true},
		"model not there":     {v: vectors{of: mind}, models: []llm.Info{{Model: "other"}}, floor: 0.5, failed: "model", cure: "ollama pull nomic-embed-text", unasked: true},
		"it does not embed":   {v: vectors{err: fault.At(fault.Invalid, "local", "take another model", "it does not support embed")}, floor: 0.5, failed: "vector", cure: "another model"},
		"another length":      {v: vectors{of: func(string) []float64 { return []float64{1, 0, 0} }}, floor: 0.5, failed: "dims", says: "dims", found: "its vectors have 3 numbers, and 22 are configured", cure: "dims: 3"},
		"not of norm 1":       {v: vectors{of: times(mind, 12)}, floor: 0.5, says: "norm", found: "length 12: they are brought to 1"},
		"zeros":               {v: vectors{of: times(mind, 0)}, floor: 0.5, failed: "norm", cure: "zeros"},
		"one vector for all":  {v: vectors{of: func(string) []float64 { return mind("price") }}, floor: 0.5, failed: "texts", says: "texts", found: "one vector", cure: "nothing can be found"},
		"prefixes ignored":    {v: vectors{of: func(t string) []float64 { return mind(bare(t)) }}, floor: 0.5, failed: "prefix", says: "prefix", found: "one vector", cure: "prefix: none"},
		"the end is not read": {v: vectors{of: mind, reads: 100, cuts: true}, kind: "openai-compatible", window: 300, floor: 0.5, failed: "window", says: "window", found: "is not read", cure: "kind: ollama without /v1"},
		"and nobody knows":    {v: vectors{of: mind, reads: 100, cuts: true}, floor: 0.5, failed: "window", says: "window", found: "is not read", cure: "window: "},
		"it is refused":       {v: vectors{of: mind, reads: 100}, window: 300, floor: 0.5, says: "window", found: "it refuses a text of"},
		"longer ones are cut": {v: vectors{of: mind, reads: 330, cuts: true}, window: 300, floor: 0.5, says: "window", found: "it cuts in silence"},
		"longer ones refused": {v: vectors{of: mind, reads: 330}, window: 300, floor: 0.5, says: "window", found: "longer ones are refused"},
		"a floor too low":     {v: vectors{of: func(t string) []float64 { return append(mind(t)[:mindDims-1], 0.4) }}, floor: 0.05, failed: "floor", cure: "floor: 0."},
		"a floor too high":    {v: vectors{of: mind}, floor: 0.99, failed: "floor", cure: "floor: 0."},
		"words mean nothing":  {v: vectors{of: llmtest.Meaning(mindDims)}, floor: 0.5, failed: "floor", cure: "trained for retrieval"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := tc.v
			e, err := embedding.New(&v, embedding.Config{Model: "nomic-embed-text", Dims: mindDims, Count: count, WindowTokens: tc.window, TokenFactor: 1, Floor: tc.floor})
			if err != nil {
				t.Fatal(err)
			}
			if tc.models == nil {
				tc.models = there
			}
			if tc.kind == "" {
				tc.kind = "ollama"
			}
			r, err := preflight.CheckEmbed(t.Context(), preflight.EmbedServer{
				Endpoint: "local", Kind: tc.kind, Model: "nomic-embed-text", Source: &v, Probe: &server{models: tc.models, err: tc.list},
				Documents: e, Queries: e.Queries(), Longest: tc.window, Count: count,
			})
			if err != nil {
				t.Fatal(err)
			}
			failed := map[string]string{}
			for _, f := range r.Findings {
				if !f.OK {
					failed[f.Check] = f.Cure
				} else if f.Cure != "" {
					t.Errorf("a cure for what is well: %+v", f)
				}
				if f.Check == tc.says && !strings.Contains(f.Found, tc.found) {
					t.Errorf("%s: %q, want %q in it", f.Check, f.Found, tc.found)
				}
			}
			cure, ok := failed[tc.failed]
			if ok != (tc.failed != "") || r.OK != (tc.failed == "") || !strings.Contains(cure, tc.cure) {
				t.Errorf("failed %v, want %q (%s): %+v", failed, tc.failed, tc.cure, r.Findings)
			}
			if (v.asked == 0) != tc.unasked {
				t.Errorf("%d calls", v.asked)
			}
			if r.Use != "embed" || r.Server != "local/nomic-embed-text" {
				t.Errorf("%+v", r)
			}
		})
	}
}

type cross func(question, text string) (float64, error)

func (c cross) Rerank(_ context.Context, _, question string, texts []string) ([]float64, error) {
	out := make([]float64, len(texts))
	for i, t := range texts {
		var err error
		if out[i], err = c(question, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type byPlace []float64

func (b byPlace) Rerank(context.Context, string, string, []string) ([]float64, error) { return b, nil }

func TestCheckRerank(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		r    llm.Reranker
		ok   bool
		cure string
	}{
		"it knows": {cross(func(q, text string) (float64, error) {
			return map[bool]float64{true: 4, false: -7}[strings.Contains(text, "retr")], nil
		}), true, ""},
		"the first wins": {byPlace{2, 1}, false, "cross-encoder"},
		"the last wins":  {byPlace{1, 2}, false, "cross-encoder"},
		"all alike":      {byPlace{1, 1}, false, "cross-encoder"},
		"too few":        {byPlace{1}, false, ""},
		"it does not have": {cross(func(string, string) (float64, error) {
			return 0, fault.At(fault.Invalid, "own", "look at the URL", "404")
		}), false, "look at the URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := preflight.CheckRerank(t.Context(), preflight.RerankServer{Endpoint: "own", Kind: "vllm", Model: "m", Reranker: tc.r})
			if err != nil || r.OK != tc.ok || r.Use != "rerank" {
				t.Fatalf("%+v %v", r, err)
			}
			last := r.Findings[len(r.Findings)-1]
			if last.Check != "rerank" || !strings.Contains(last.Cure, tc.cure) {
				t.Errorf("%+v", last)
			}
		})
	}
}
