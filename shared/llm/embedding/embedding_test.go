package embedding_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/llm/ollama"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
	"github.com/mneme-ai/mneme/shared/models"
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
		"in a piece":   {[]string{"a", strings.Repeat("w ", 60) + "bad"}, []int{1}, 6},
	} {
		s := &source{}
		v, err := open(t, s, func(c *embedding.Config) { c.WindowTokens, c.TokenFactor = 42, 1 }).Embed(t.Context(), tc.texts)
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
		// The error carries what the others have, as if the bad ones were not there.
		for i, text := range tc.texts {
			if slices.Contains(bad.Index, i) {
				if bad.Vectors[i] != nil {
					t.Errorf("%s: the bad text %d has a vector", name, i)
				}
				continue
			}
			alone, err := open(t, &source{}, nil).Embed(t.Context(), []string{text})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(alone[0], bad.Vectors[i]); d != "" {
				t.Errorf("%s: text %d (-alone +beside):\n%s", name, i, d)
			}
		}
	}
}

// windowed is a model that reads window words and refuses more; the vector of a
// text is how often it says each of three words.
type windowed struct {
	window int
	asked  [][]string
}

func (w *windowed) Vectors(_ context.Context, _ string, texts []string, _ int) ([][]float32, error) {
	w.asked = append(w.asked, texts)
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if words(t) > w.window {
			return nil, &fault.Error{Kind: fault.Invalid, Err: llm.ErrWindow}
		}
		out[i] = []float32{float32(strings.Count(t, "alpha")), float32(strings.Count(t, "beta")), float32(strings.Count(t, "gamma"))}
	}
	return out, nil
}

// A text over the window is found by all of it, whether the own count knows that
// it is too long or the server says so.
func TestOverTheWindow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("alpha ", 120) + strings.Repeat("beta ", 60) + strings.TrimSpace(strings.Repeat("gamma ", 60))
	var first [][]float32
	for name, tc := range map[string]struct {
		told  int // Config.WindowTokens, by Count
		count func(string) int
	}{
		"known":           {52, words},
		"unknown":         {0, words},
		"counted lightly": {52, func(s string) int { return words(s) / 3 }},
	} {
		m := &windowed{window: 50}
		e := open(t, m, func(c *embedding.Config) { c.WindowTokens, c.TokenFactor, c.Count = tc.told, 1, tc.count })
		got, err := e.Embed(t.Context(), []string{"beta", long, long, "gamma"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// Pieces of one word each point its way, so the mean is near the shares 2:1:1.
		want := []float64{2 / math.Sqrt(6), 1 / math.Sqrt(6), 1 / math.Sqrt(6)}
		for i, x := range got[1] {
			if math.Abs(float64(x)-want[i]) > 0.08 {
				t.Errorf("%s: %v, want about %v", name, got[1], want)
			}
		}
		if math.Abs(norm(got[1])-1) > 1e-6 {
			t.Errorf("%s: norm %f", name, norm(got[1]))
		}
		if d := cmp.Diff([][]float32{{0, 1, 0}, got[1], {0, 0, 1}}, [][]float32{got[0], got[2], got[3]}); d != "" {
			t.Errorf("%s: its neighbours (-want +got):\n%s", name, d)
		}
		var read []string
		for _, texts := range m.asked {
			for _, text := range texts {
				if words(text) <= m.window && words(text) > 1 {
					read = append(read, text)
				}
			}
		}
		if tc.told > 0 && tc.count("x y z") == 3 {
			if d := cmp.Diff(long, strings.Join(read, " ")); d != "" {
				t.Errorf("%s: the pieces are not the text (-want +got):\n%s", name, d)
			}
			if len(m.asked) != 1 {
				t.Errorf("%s: %d requests", name, len(m.asked))
			}
		}
		again, err := open(t, &windowed{window: 50}, func(c *embedding.Config) {
			c.WindowTokens, c.TokenFactor, c.Count, c.BatchTexts = tc.told, 1, tc.count, 1
		}).
			Embed(t.Context(), []string{long})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(got[1], again[0]); d != "" {
			t.Errorf("%s: in another batch (-want +got):\n%s", name, d)
		}
		first = append(first, got[1])
	}
	if len(first) != 3 {
		t.Fatal("a case was left out")
	}
}

// A text without white space is cut between characters; what is short is not cut,
// whatever the server says.
func TestPiecesOfOneWord(t *testing.T) {
	t.Parallel()
	blob := strings.Repeat("é", 300)
	s := &source{answer: func(texts []string) ([][]float32, error) {
		out := make([][]float32, len(texts))
		for i, text := range texts {
			if !utf8.ValidString(text) {
				t.Errorf("a character is cut: %q", text)
			}
			if len(text) > 200 {
				return nil, &fault.Error{Kind: fault.Invalid, Err: llm.ErrWindow}
			}
			out[i] = []float32{1, 0, 0}
		}
		return out, nil
	}}
	if v, err := open(t, s, nil).Embed(t.Context(), []string{blob}); err != nil || v[0][0] != 1 {
		t.Errorf("%v %v", v, err)
	}
	never := &source{answer: func([]string) ([][]float32, error) {
		return nil, &fault.Error{Kind: fault.Invalid, Err: llm.ErrWindow}
	}}
	_, err := open(t, never, nil).Embed(t.Context(), []string{blob})
	if bad, ok := errors.AsType[*embedding.BadTexts](err); !ok || len(bad.Index) != 1 {
		t.Errorf("%v", err)
	}
	if len(never.asked) > 8 {
		t.Errorf("%d requests for a text that always is too long", len(never.asked))
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
	for prefix := range models.Prefixes { // what a file of models may name
		if _, err := embedding.New(&source{}, embedding.Config{Model: "m", Dims: 3, Count: words, Scheme: prefix}); err != nil {
			t.Errorf("%s: %v", prefix, err)
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
