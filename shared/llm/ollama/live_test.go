package ollama_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest/tapetest"
	"github.com/mneme-ai/mneme/shared/llm/ollama"
	"github.com/mneme-ai/mneme/shared/memory"
)

// liveModel is what infra/local/services/ollama.sh serves: too small to judge
// anything by, so only the wire is tested.
const liveModel = "smollm2-135m"

// TestTape is TestServer over what a real Ollama answered when it was recorded.
func TestTape(t *testing.T) {
	t.Parallel()
	conversation(t, tapetest.Open(t, "testdata/ollama.tape").URL, true)
}

// TestServer runs against the Ollama that MNEME_TEST_OLLAMA names, as
// `infra/local/services/ollama.sh start DIR` prints it.
func TestServer(t *testing.T) {
	where := os.Getenv("MNEME_TEST_OLLAMA")
	if where == "" {
		const msg = "MNEME_TEST_OLLAMA is not set: the adapter is tested against the fault server and a tape"
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "ollama") {
			t.Fatal(msg)
		}
		t.Skip(msg)
	}
	conversation(t, where, false)
}

// conversation is what is asked of a real server. Its parts share one that runs
// one call at a time, so they come one after the other. A fresh one has not
// loaded the model yet.
func conversation(t *testing.T, where string, fresh bool) {
	c := open(t, where, ollama.Config{EmbedWindow: 2048, KeepAlive: 5 * time.Minute}, func(e *endpoint.Config) { e.MaxRetries = -1 })
	ask := func(user string, window, tokens int) llm.ChatRequest {
		return llm.ChatRequest{Model: liveModel, User: user, Window: window, Sampling: memory.Sampling{TopP: 1, Seed: 1, MaxTokens: tokens}}
	}
	info := func(t *testing.T) llm.Info {
		t.Helper()
		models, err := c.Models(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(models, func(m llm.Info) bool { return m.Model == liveModel })
		if i < 0 {
			t.Fatalf("%s is not among %v", liveModel, models)
		}
		return models[i]
	}

	t.Run("cold", func(t *testing.T) {
		// On the disk it has the window of its Modelfile. A window of its own makes
		// the server load it, wherever it stood.
		switch got := info(t); {
		case !got.Loaded && got.Window != 8192:
			t.Errorf("on the disk it is %+v", got)
		case got.Loaded && fresh:
			t.Fatal("the model is loaded already: a tape is recorded from a server that was started for it")
		}
		if err := c.Warm(t.Context(), liveModel, 1024); err != nil {
			t.Fatal(err)
		}
		if got := info(t); !got.Loaded || got.Window != 1024 {
			t.Errorf("after the load it is %+v", got)
		}
		if err := c.Warm(t.Context(), liveModel, 2048); err != nil {
			t.Fatal(err)
		}
		if got := info(t); !got.Loaded || got.Window != 2048 {
			t.Errorf("after a load with another window it is %+v", got)
		}
	})
	t.Run("chat", func(t *testing.T) {
		r := ask("Say hello.", 2048, 6)
		r.Logprobs = true
		a, err := c.Chat(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if a.Content == "" || a.FinishReason != "length" || a.CompletionTokens != 6 || a.PromptTokens < 5 || a.PromptTokens > 40 || a.Latency <= 0 || !json.Valid(a.Raw) {
			t.Errorf("got %+v", a)
		}
		text := ""
		for _, tok := range a.Tokens {
			text += tok.Token
			if len(tok.Top) < 2 || tok.Logprob > 0 || tok.Top[0].Logprob < tok.Top[1].Logprob || tok.Top[0].Logprob < tok.Logprob {
				t.Errorf("token %+v", tok)
			}
		}
		if !strings.Contains(text, a.Content) || len(a.Tokens) != a.CompletionTokens {
			t.Errorf("%d tokens %q of %q", len(a.Tokens), text, a.Content)
		}
		b, err := c.Chat(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if a.Content != b.Content {
			t.Errorf("temperature 0 and one seed give %q and %q", a.Content, b.Content)
		}
	})
	t.Run("schema", func(t *testing.T) {
		r := ask("Is water wet?", 2048, 40)
		r.Schema = json.RawMessage(`{"type":"object","properties":{"check":{"type":"string","enum":["yes","no"]}},"required":["check"],"additionalProperties":false}`)
		a, err := c.Chat(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Check string }
		if err := json.Unmarshal([]byte(a.Content), &got); err != nil || got.Check != "yes" && got.Check != "no" {
			t.Errorf("%q is outside the schema: %v", a.Content, err)
		}
	})
	t.Run("tags", func(t *testing.T) {
		r := ask("Does water boil at 100 degrees? Answer <check>yes</check> or <check>no</check>, nothing else.", 2048, 24)
		r.System = "You answer with one tag."
		a, err := c.Chat(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if a.Content == "" || a.PromptTokens < 30 || a.CompletionTokens == 0 || a.FinishReason != "stop" && a.FinishReason != "length" {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("choice", func(t *testing.T) {
		r := ask("Write a long poem about the sea.", 2048, 20)
		r.Choice, r.Logprobs = []string{"continue", "end"}, true
		a, err := c.Chat(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(r.Choice, a.Content) || len(a.Tokens) == 0 {
			t.Errorf("%q is none of %q; %d tokens", a.Content, r.Choice, len(a.Tokens))
		}
	})
	t.Run("window", func(t *testing.T) {
		long := strings.Repeat("one two three four five ", 600) // some 3,000 tokens
		a, err := c.Chat(t.Context(), ask(long, 2048, 4))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.HintOf(err), "num_ctx") {
			t.Errorf("a prompt over the window gives %+v, %v", a, err)
		}
		// A reply that fills the window ends there; what came before it stays in sight.
		a, err = c.Chat(t.Context(), ask("Write a very long story about a river.", 64, 80))
		if err != nil {
			t.Fatal(err)
		}
		if a.FinishReason != "length" || a.PromptTokens+a.CompletionTokens > 66 {
			t.Errorf("in a window of 64: %d + %d tokens, %q", a.PromptTokens, a.CompletionTokens, a.FinishReason)
		}
	})
	t.Run("vectors", func(t *testing.T) {
		texts := []string{"the build fails", "a recipe for bread"}
		v, err := c.Vectors(t.Context(), liveModel, texts, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range v {
			sum := 0.0
			for _, x := range v[i] {
				sum += float64(x) * float64(x)
			}
			if len(v[i]) != 576 || math.Abs(sum-1) > 1e-3 {
				t.Errorf("vector %d: %d dimensions, norm² %v", i, len(v[i]), sum)
			}
		}
		if _, err := c.Vectors(t.Context(), liveModel, []string{"short", strings.Repeat("word ", 4000)}, 0); !fault.Is(err, fault.Invalid) {
			t.Errorf("a text over the window gives %v", err)
		}
		if _, err := c.Vectors(t.Context(), liveModel, []string{""}, 0); !fault.Is(err, fault.Invalid) {
			t.Errorf("an empty text gives %v", err)
		}
	})
	t.Run("no model", func(t *testing.T) {
		r := ask("hi", 0, 4)
		r.Model = "no-such-model"
		if _, err := c.Chat(t.Context(), r); !fault.Is(err, fault.NotFound) || fault.HintOf(err) != "ollama pull no-such-model" {
			t.Errorf("got %v", err)
		}
	})
}
