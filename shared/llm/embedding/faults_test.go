package embedding_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/llm/ollama"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
)

// sized answers with vectors of another size for the texts from the given one on.
func sized(dims, from int) llmtest.Play {
	n := 0
	return llmtest.Vectors(func(text string) []float64 {
		if n++; n <= from {
			return llmtest.Vector(text)
		}
		v := make([]float64, dims)
		v[0] = 1
		return v
	})
}

// TestFaultServer: over both adapters a misbehaving server gives an error of the
// right kind and no vector, no text is blamed for it, and once it is well the
// vectors are those of a calm server.
func TestFaultServer(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "b", "c"}
	for _, kind := range []endpoint.Kind{endpoint.Ollama, endpoint.OpenAI} {
		for name, tc := range map[string]struct {
			play  llmtest.Play
			kind  fault.Kind
			again bool // the adapter sends it again, so that one is not seen
			after time.Duration
		}{
			"wrong dimension":             {play: sized(3, 0), kind: fault.Corrupt},
			"wrong dimension of the last": {play: sized(5, 2), kind: fault.Corrupt},
			"too few":                     {play: llmtest.Body(http.StatusOK, `{"embeddings":[[1,0,0,0]],"data":[{"index":0,"embedding":[1,0,0,0]}]}`), kind: fault.Unavailable},
			"an empty body":               {play: llmtest.Body(http.StatusOK, ""), kind: fault.Unavailable},
			"cut JSON body":               {play: llmtest.Body(http.StatusOK, `{"embeddings":[[1,0,`), kind: fault.Unavailable},
			"a chat's answer":             {play: llmtest.Text("hello"), kind: fault.Unavailable},
			"HTML in a 200":               {play: llmtest.Body(http.StatusOK, "<html>nginx</html>"), kind: fault.Unavailable},
			"error in a 200":              {play: llmtest.ErrorIn200("the runner ended"), kind: fault.Unavailable},
			"broken inside the body":      {play: llmtest.BreaksOff(), kind: fault.Unavailable},
			"connection reset":            {play: llmtest.Reset(), kind: fault.Unavailable, again: true},
			"429":                         {play: llmtest.TooMany(""), kind: fault.Exhausted, again: true},
			"429 with Retry-After":        {play: llmtest.TooMany("9"), kind: fault.Exhausted, after: 9 * time.Second},
			"503":                         {play: llmtest.Status(http.StatusServiceUnavailable, "upstream"), kind: fault.Unavailable, again: true},
			"401":                         {play: llmtest.Status(http.StatusUnauthorized, "key"), kind: fault.Denied},
			"404 unknown model":           {play: llmtest.UnknownModel(), kind: fault.NotFound},
		} {
			t.Run(fmt.Sprintf("%s/%s", kind, name), func(t *testing.T) {
				t.Parallel()
				s := llmtest.New(t)
				ep, err := endpoint.Open(endpoint.Config{URL: s.URL, Kind: kind, FirstPause: time.Millisecond, MaxPause: 20 * time.Millisecond, MaxRetries: 1})
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
				e := open(t, src, func(c *embedding.Config) { c.Model, c.Dims = llmtest.Model, llmtest.Dims })
				s.Play(tc.play)
				faults := 1
				if tc.again {
					s.Play(tc.play)
					faults = 2
				}
				v, err := e.Embed(t.Context(), texts)
				if v != nil || fault.KindOf(err) != tc.kind || fault.RetryAfterOf(err) != tc.after {
					t.Errorf("%v, %v: kind %s after %s", v, err, fault.KindOf(err), fault.RetryAfterOf(err))
				}
				if bad, ok := errors.AsType[*embedding.BadTexts](err); ok {
					t.Errorf("texts %v are blamed", bad.Index)
				}
				if n := len(s.Calls()); n != faults {
					t.Errorf("%d calls for %d faults", n, faults)
				}
				if v, err = e.Embed(t.Context(), texts); err != nil {
					t.Fatal(err)
				}
				for i, text := range texts {
					if !cmp.Equal(llmtest.Vector(text), floats(v[i]), near) {
						t.Errorf("%s: %v, want %v", text, v[i], llmtest.Vector(text))
					}
				}
			})
		}
	}
}

var near = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })

func floats(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
