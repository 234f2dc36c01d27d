package embedding_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/llm/ollama"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
)

// source is a model of three dimensions that refuses texts with "bad" in them.
type source struct {
	asked  [][]string
	dims   []int
	answer func(texts []string) ([][]float32, error)
}

func (s *source) Vectors(_ context.Context, _ string, texts []string, dims int) ([][]float32, error) {
	s.asked, s.dims = append(s.asked, texts), append(s.dims, dims)
	if s.answer != nil {
		return s.answer(texts)
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if strings.Contains(t, "bad") {
			return nil, fault.New(fault.Invalid, "refused")
		}
		out[i] = []float32{float32(len(t)), 0, 1}
		if strings.Contains(t, "nan") {
			out[i][1] = float32(math.NaN())
		}
		if strings.Contains(t, "zero") {
			out[i] = []float32{0, 0, 0}
		}
	}
	return out, nil
}

func words(s string) int { return len(strings.Fields(s)) }

func open(t *testing.T, s embedding.Source, change func(*embedding.Config)) *embedding.Embedder {
	t.Helper()
	c := embedding.Config{Model: "m", Dims: 3, Count: words}
	if change != nil {
		change(&c)
	}
	e, err := embedding.New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func TestNormBlankAndRepeats(t *testing.T) {
	t.Parallel()
	s := &source{}
	texts := []string{"one", " \n", "two words", "one", "zero"}
	got, err := open(t, s, nil).Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 0, 1, 1, 0} {
		if len(got[i]) != 3 || math.Abs(norm(got[i])-want) > 1e-6 {
			t.Errorf("%q: %v", texts[i], got[i])
		}
	}
	if d := cmp.Diff(got[0], got[3]); d != "" {
		t.Errorf("the same text twice: %s", d)
	}
	if d := cmp.Diff([][]string{{"one", "two words", "zero"}}, s.asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	got[0][0] = 7
	if got[3][0] == 7 {
		t.Error("two answers share their memory")
	}
	if v, err := open(t, s, nil).Embed(t.Context(), nil); err != nil || len(v) != 0 {
		t.Errorf("nothing gives %v, %v", v, err)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tokens, texts int
		want          [][]string
	}{
		"by tokens": {4, 10, [][]string{{"a b", "c d"}, {"e f g h i"}, {"j"}}},
		"by texts":  {100, 2, [][]string{{"a b", "c d"}, {"e f g h i", "j"}}},
		"at once":   {10, 4, [][]string{{"a b", "c d", "e f g h i", "j"}}},
	} {
		s := &source{}
		if _, err := open(t, s, func(c *embedding.Config) { c.BatchTokens, c.BatchTexts = tc.tokens, tc.texts }).
			Embed(t.Context(), []string{"a b", "c d", "e f g h i", "j"}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, s.asked); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	s := &source{}
	e := open(t, s, func(c *embedding.Config) { c.Model, c.AskDims = "nomic-embed-text-v2-moe", true })
	if _, err := e.Embed(t.Context(), []string{"x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Queries().Embed(t.Context(), []string{"x"}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]string{{"search_document: x"}, {"search_query: x"}}, s.asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{3, 3}, s.dims); d != "" {
		t.Errorf("dimensions (-want +got):\n%s", d)
	}
	if e.Space() != e.Queries().Space() || e.Space().Prefix != "nomic/1" {
		t.Errorf("spaces %+v and %+v", e.Space(), e.Queries().Space())
	}
	// Every part of the space changes its id.
	ids := map[string]bool{e.Space().ID: true}
	for _, change := range []func(*embedding.Config){
		func(c *embedding.Config) { c.Model = "n" }, func(c *embedding.Config) { c.Revision = "2" },
		func(c *embedding.Config) { c.Dims = 4 }, func(c *embedding.Config) { c.Scheme = "nomic/1" },
	} {
		ids[open(t, s, change).Space().ID] = true
	}
	if len(ids) != 5 {
		t.Errorf("%d ids of 5 spaces", len(ids))
	}
}

// A bad text is named, whatever stands around it, and no vector is given.
func TestBadTexts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		texts []string
		bad   []int
		most  int // requests
	}{
		"one of eight": {[]string{"a", "b", "c", "d", "e", "bad", "g", "h"}, []int{5}, 8},
		"two":          {[]string{"bad 1", "b", "c", "bad 2"}, []int{0, 3}, 8},
		"alone":        {[]string{"bad"}, []int{0}, 2},
		"all":          {[]string{"bad 1", "bad 2"}, []int{0, 1}, 4},
		"twice":        {[]string{"bad", "a", "bad"}, []int{0, 2}, 4},
		"NaN":          {[]string{"a", "nan", "c"}, []int{1}, 1},
		"too long":     {[]string{"a", strings.Repeat("w ", 11)}, []int{1}, 1},
	} {
		s := &source{}
		v, err := open(t, s, func(c *embedding.Config) { c.WindowTokens = 10 }).Embed(t.Context(), tc.texts)
		bad, ok := errors.AsType[*embedding.BadTexts](err)
		if !ok || !fault.Is(err, fault.Invalid) || v != nil {
			t.Errorf("%s: %v, %v", name, v, err)
			continue
		}
		if d := cmp.Diff(tc.bad, bad.Index); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if len(s.asked) > tc.most {
			t.Errorf("%s: %d requests, at most %d", name, len(s.asked), tc.most)
		}
	}
}

// What is no text's fault names no text and is not halved.
func TestFaultOfTheEndpoint(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "b", "c", "d"}
	for name, tc := range map[string]struct {
		answer func([]string) ([][]float32, error)
		kind   fault.Kind
		most   int
	}{
		"down":           {func([]string) ([][]float32, error) { return nil, fault.New(fault.Unavailable, "down") }, fault.Unavailable, 1},
		"refuses all":    {func([]string) ([][]float32, error) { return nil, fault.New(fault.Invalid, "no such path") }, fault.Invalid, 2},
		"another size":   {func(t []string) ([][]float32, error) { return make([][]float32, len(t)), nil }, fault.Corrupt, 1},
		"too few":        {func([]string) ([][]float32, error) { return [][]float32{{1, 0, 0}}, nil }, fault.Unavailable, 1},
		"the key":        {func([]string) ([][]float32, error) { return nil, fault.New(fault.Denied, "401") }, fault.Denied, 1},
		"no such model":  {func([]string) ([][]float32, error) { return nil, fault.New(fault.NotFound, "404") }, fault.NotFound, 1},
		"the own caller": {func([]string) ([][]float32, error) { return nil, fault.As(fault.Unavailable, context.Canceled) }, fault.Unavailable, 1},
	} {
		s := &source{answer: tc.answer}
		_, err := open(t, s, nil).Embed(t.Context(), texts)
		if _, named := errors.AsType[*embedding.BadTexts](err); err == nil || named || fault.KindOf(err) != tc.kind {
			t.Errorf("%s: %v (%s)", name, err, fault.KindOf(err))
		}
		if len(s.asked) > tc.most {
			t.Errorf("%s: %d requests, at most %d", name, len(s.asked), tc.most)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]embedding.Config{
		"no model":  {Dims: 3, Count: words},
		"no dims":   {Model: "m", Count: words},
		"no count":  {Model: "m", Dims: 3},
		"no scheme": {Model: "m", Dims: 3, Count: words, Scheme: "nomic/9"},
	} {
		if _, err := embedding.New(&source{}, c); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Over both adapters and the fault server: a text that the model computes NaN for
// is found among the others.
func TestOverBothForms(t *testing.T) {
	t.Parallel()
	for _, kind := range []endpoint.Kind{endpoint.Ollama, endpoint.OpenAI} {
		s := llmtest.New(t)
		ep, err := endpoint.Open(endpoint.Config{URL: s.URL, Kind: kind, FirstPause: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var src embedding.Source
		if kind == endpoint.Ollama {
			o, err := ollama.New(ep, ollama.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			src = o
		} else if src, err = openaiapi.New(ep, openaiapi.Config{}); err != nil {
			t.Fatal(err)
		}
		var e llm.Embedder = open(t, src, func(c *embedding.Config) { c.Model, c.Dims = llmtest.Model, llmtest.Dims })
		v, err := e.Embed(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"a", "b"} {
			for j, x := range llmtest.Vector(text) {
				if math.Abs(float64(v[i][j])-x) > 1e-6 {
					t.Errorf("%s, %s: %v, want %v", kind, text, v[i], llmtest.Vector(text))
				}
			}
		}
		refusing := llmtest.Refusing("BAD")
		s.Play(refusing, refusing, refusing, refusing, refusing, refusing, refusing)
		_, err = e.Embed(t.Context(), []string{"c", "e", "BAD", "d"})
		bad, ok := errors.AsType[*embedding.BadTexts](err)
		if !ok || !cmp.Equal(bad.Index, []int{2}) {
			t.Errorf("%s: %v", kind, err)
		}
		if again := s.Repeats(); len(again) > 0 {
			t.Errorf("%s: asked twice for the same: %q", kind, again)
		}
	}
}
