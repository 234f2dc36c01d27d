package openaiapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
	"github.com/mneme-ai/mneme/shared/memory"
)

const key = "sk-0123456789-the-key"

func open(t *testing.T, url string, c openaiapi.Config, change func(*endpoint.Config)) *openaiapi.Client {
	t.Helper()
	e := endpoint.Config{Name: "here", URL: url, Kind: endpoint.OpenAI, FirstPause: time.Millisecond, MaxRetries: 2}
	if change != nil {
		change(&e)
	}
	ep, err := endpoint.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := openaiapi.New(ep, c)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func ask() llm.ChatRequest {
	return llm.ChatRequest{Model: llmtest.Model, System: "rules", User: "<q> & the prompt", Window: 12288,
		Sampling: memory.Sampling{Temperature: 0, TopP: 1, Seed: 7, MaxTokens: 64}}
}

func body(t *testing.T, c llmtest.Call) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(c.Body, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestChatOnTheWire(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)
	format := map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "reply", "strict": true,
		"schema": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}, "b": map[string]any{}}}}}
	withSchema := func(r *llm.ChatRequest) { r.Schema = schema }
	withChoice := func(r *llm.ChatRequest) { r.Choice = []string{"yes", "no"} }
	choice := []any{"yes", "no"}
	for name, tc := range map[string]struct {
		c    openaiapi.Config
		r    func(*llm.ChatRequest)
		want map[string]any // beside what every request has
	}{
		"plain":              {},
		"schema, vllm":       {openaiapi.Config{Dialect: openaiapi.VLLM}, withSchema, map[string]any{"response_format": format}},
		"schema, openai":     {openaiapi.Config{Dialect: openaiapi.OpenAI}, withSchema, map[string]any{"response_format": format}},
		"schema, openrouter": {openaiapi.Config{Dialect: openaiapi.OpenRouter}, withSchema, map[string]any{"response_format": format, "provider": map[string]any{"require_parameters": true}}},
		"schema, ollama":     {openaiapi.Config{Dialect: openaiapi.OllamaV1}, withSchema, map[string]any{"response_format": format, "reasoning_effort": "none"}},
		"schema, generic":    {openaiapi.Config{Dialect: openaiapi.Generic}, withSchema, nil},
		"choice, vllm":       {openaiapi.Config{Dialect: openaiapi.VLLM}, withChoice, map[string]any{"structured_outputs": map[string]any{"choice": choice}}},
		"choice, old vllm":   {openaiapi.Config{Dialect: openaiapi.VLLMGuided}, withChoice, map[string]any{"guided_choice": choice}},
		"choice, openai":     {openaiapi.Config{Dialect: openaiapi.OpenAI}, withChoice, nil},
		"logprobs, vllm":     {openaiapi.Config{Dialect: openaiapi.VLLM}, func(r *llm.ChatRequest) { r.Logprobs = true }, map[string]any{"logprobs": true, "top_logprobs": 10.0}},
		"logprobs, generic":  {openaiapi.Config{}, func(r *llm.ChatRequest) { r.Logprobs = true }, nil},
		"declared":           {openaiapi.Config{Capabilities: &llm.Capabilities{Logprobs: true}}, func(r *llm.ChatRequest) { r.Logprobs = true }, map[string]any{"logprobs": true, "top_logprobs": 10.0}},
		"adapter":            {openaiapi.Config{Dialect: openaiapi.VLLM}, func(r *llm.ChatRequest) { r.Adapter = "mneme-gate-3f2a" }, map[string]any{"model": "mneme-gate-3f2a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			r := ask()
			if tc.r != nil {
				tc.r(&r)
			}
			if _, err := open(t, s.URL, tc.c, nil).Chat(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"model": "small", "max_tokens": 64.0, "temperature": 0.0, "top_p": 1.0, "seed": 7.0,
				"messages": []any{map[string]any{"role": "system", "content": "rules"}, map[string]any{"role": "user", "content": "<q> & the prompt"}}}
			for k, v := range tc.want {
				want[k] = v
			}
			if d := cmp.Diff(want, body(t, s.Calls()[0])); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
		})
	}
}

func TestRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s.URL, openaiapi.Config{}, nil)
	for name, change := range map[string]func(*llm.ChatRequest){
		"adapter":  func(r *llm.ChatRequest) { r.Adapter = "gate" },
		"no model": func(r *llm.ChatRequest) { r.Model = "" },
		"nothing":  func(r *llm.ChatRequest) { r.System, r.User = "", "" },
		"both":     func(r *llm.ChatRequest) { r.Schema, r.Choice = json.RawMessage("{}"), []string{"a"} },
	} {
		r := ask()
		change(&r)
		if _, err := c.Chat(t.Context(), r); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Rerank(t.Context(), "m", "q", []string{"a"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("rerank without a reranker: %v", err)
	}
	if _, err := c.Vectors(t.Context(), "m", []string{"a"}, 256); !fault.Is(err, fault.Invalid) {
		t.Errorf("dimensions that cannot be asked for: %v", err)
	}
	if n := len(s.All()); n != 0 {
		t.Errorf("%d requests", n)
	}
	ep, err := endpoint.Open(endpoint.Config{URL: s.URL, Kind: endpoint.Ollama})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openaiapi.New(ep, openaiapi.Config{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an endpoint of the other kind: %v", err)
	}
}

// The dialect of a base URL, seen by what it declares.
func TestDialectByURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]llm.Capabilities{
		"https://api.openai.com/v1":    {Schema: true, Logprobs: true, Dimensions: true},
		"https://openrouter.ai/api/v1": {Schema: true},
		"https://gateway.example.org":  {},
	} {
		c := open(t, url, openaiapi.Config{}, func(e *endpoint.Config) { e.Key = endpoint.NewSecret(key) })
		if d := cmp.Diff(want, c.Capabilities()); d != "" {
			t.Errorf("%s (-want +got):\n%s", url, d)
		}
	}
}

// Nothing of the environment reaches a server, and no key but the configured one.
func TestNoEnvironment(t *testing.T) {
	s, other := llmtest.New(t), llmtest.New(t)
	t.Setenv("OPENAI_BASE_URL", other.URL+"/v1")
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "stray-secret")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Stray: stray-secret")
	for _, auth := range []endpoint.Auth{endpoint.None, endpoint.Bearer, endpoint.APIKey} {
		c := open(t, s.URL, openaiapi.Config{Dialect: openaiapi.VLLM}, func(e *endpoint.Config) { e.Auth, e.Key = auth, endpoint.NewSecret(key) })
		if _, err := c.Chat(t.Context(), ask()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Vectors(t.Context(), "small", []string{"a"}, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Rerank(t.Context(), "small", "q", []string{"a"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Models(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(other.All()); n != 0 {
		t.Errorf("the base URL of the environment got %d requests", n)
	}
	calls := s.All()
	if len(calls) != 12 {
		t.Fatalf("%d requests, want 12", len(calls))
	}
	for i, call := range calls {
		if all := fmt.Sprint(call.Header, string(call.Body)); strings.Contains(all, "stray-secret") || strings.Contains(all, "Stainless") {
			t.Errorf("%s: %s", call.Path, all)
		}
		got := call.Header.Get("Authorization") + "|" + call.Header.Get("Apikey")
		want := []string{"|", "Bearer " + key + "|", "|" + key}[i/4]
		if got != want {
			t.Errorf("%s: key as %q, want %q", call.Path, got, want)
		}
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	right := llm.ChatReply{Content: llmtest.Reply, FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}
	with := func(content string) llm.ChatReply { r := right; r.Content = content; return r }
	half := right
	half.PromptTokens = 2050
	for name, tc := range map[string]struct {
		play llmtest.Play
		r    func(*llm.ChatRequest)
		want llm.ChatReply
	}{
		"right":         {llmtest.Text(llmtest.Reply), nil, right},
		"half":          {llmtest.HalfPrompt(4100), nil, half},
		"empty":         {llmtest.Empty(), nil, llm.ChatReply{FinishReason: "stop", PromptTokens: 100}},
		"reasoning":     {llmtest.ReasoningOnly("so I think"), nil, llm.ChatReply{Reasoning: "so I think", FinishReason: "length", PromptTokens: 100, CompletionTokens: 2048}},
		"old reasoning": {llmtest.Body(200, `{"model":"small","choices":[{"message":{"content":null,"reasoning":null,"reasoning_content":"hm"},"finish_reason":"stop"}]}`), nil, llm.ChatReply{Reasoning: "hm", FinishReason: "stop"}},
		"quotes":        {llmtest.Text(llmtest.GermanQuotes), nil, with(llmtest.GermanQuotes)},
		"newlines":      {llmtest.Text(llmtest.RawNewlines), nil, with(llmtest.RawNewlines)},
		"fence":         {llmtest.Text(llmtest.Fenced), nil, with(llmtest.Fenced)},
		"logprobs": {llmtest.Text("yes"), func(r *llm.ChatRequest) { r.Logprobs = true }, llm.ChatReply{Content: "yes", FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7,
			Tokens: []llm.Token{{TokenProb: llm.TokenProb{Token: "yes", Logprob: -0.1}, Top: []llm.TokenProb{{Token: "yes", Logprob: -0.1}, {Token: "no", Logprob: -2.3}}}}}},
		"half a character": {llmtest.Chat{Content: "é", Finish: "stop", Tokens: []llmtest.Token{{Text: "\xc3", Logprob: -2}, {Text: "\xa9", Logprob: -3}}}.Play(), func(r *llm.ChatRequest) { r.Logprobs = true },
			llm.ChatReply{Content: "é", FinishReason: "stop", Tokens: []llm.Token{{TokenProb: llm.TokenProb{Token: "\xc3", Logprob: -2}}, {TokenProb: llm.TokenProb{Token: "\xa9", Logprob: -3}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			s.Play(tc.play)
			r := ask()
			if tc.r != nil {
				tc.r(&r)
			}
			got, err := open(t, s.URL, openaiapi.Config{Dialect: openaiapi.VLLM}, nil).Chat(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Model = "small"
			if d := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(llm.ChatReply{}, "Latency", "Raw")); d != "" {
				t.Errorf("reply (-want +got):\n%s", d)
			}
			if got.Latency <= 0 || !json.Valid(got.Raw) || !strings.Contains(string(got.Raw), `"choices"`) || strings.Contains(string(got.Raw), "logprobs") ||
				!strings.Contains(string(got.Raw), `"finish_reason":"`+got.FinishReason+`"`) {
				t.Errorf("latency %s, raw %s", got.Latency, got.Raw)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		play  llmtest.Play
		kind  fault.Kind
		calls int
	}{
		"error in 200":     {llmtest.ErrorIn200("something broke"), fault.Unavailable, 1},
		"window in 200":    {llmtest.ErrorIn200("This model's maximum context length is 2048 tokens"), fault.Invalid, 1},
		"error in choice":  {llmtest.Body(200, `{"choices":[{"message":{"content":"half"},"finish_reason":"error","error":{"message":"something broke","code":502}}]}`), fault.Unavailable, 1},
		"no choice":        {llmtest.Body(200, `{"model":"small","choices":[]}`), fault.Unavailable, 1},
		"a list":           {llmtest.Body(200, `["& the prompt"]`), fault.Unavailable, 1},
		"a page":           {llmtest.Body(200, "<html>log in</html>"), fault.Unavailable, 1},
		"nothing":          {llmtest.Body(200, ""), fault.Unavailable, 1},
		"invalid JSON":     {llmtest.InvalidJSON(), fault.Unavailable, 1},
		"broken off":       {llmtest.BreaksOff(), fault.Unavailable, 1},
		"stall":            {llmtest.Stall(), fault.Unavailable, 1},
		"huge":             {llmtest.Huge(2 << 20), fault.Unavailable, 1},
		"window":           {llmtest.Body(400, `{"object":"error","message":"This model's maximum context length is 2048 tokens. However, you requested 2341 tokens (<q> & the prompt)","type":"BadRequestError"}`), fault.Invalid, 1},
		"no model":         {llmtest.UnknownModel(), fault.NotFound, 1},
		"no path":          {llmtest.Body(404, `{"detail":"Not Found"}`), fault.Invalid, 1},
		"401":              {llmtest.Echo(401), fault.Denied, 1},
		"402":              {llmtest.Status(402, "Insufficient credits"), fault.Exhausted, 1},
		"429":              {llmtest.TooMany(""), fault.Exhausted, 3},
		"500":              {llmtest.Status(500, "something broke"), fault.Unavailable, 3},
		"503 queue":        {llmtest.QueueFull(), fault.Exhausted, 3},
		"redirect":         {llmtest.Redirect("http://127.0.0.1:1"), fault.Invalid, 1},
		"reset":            {llmtest.Reset(), fault.Unavailable, 3},
		"quotes all (400)": {llmtest.Echo(400), fault.Invalid, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			s.Play(tc.play, tc.play, tc.play, tc.play)
			c := open(t, s.URL, openaiapi.Config{}, func(e *endpoint.Config) {
				e.Stall, e.MaxBodyBytes, e.Auth, e.Key = 50*time.Millisecond, 1<<20, endpoint.Bearer, endpoint.NewSecret(key)
			})
			_, err := c.Chat(t.Context(), ask())
			if err == nil || fault.KindOf(err) != tc.kind {
				t.Errorf("got %v (%s), want %s", err, fault.KindOf(err), tc.kind)
			}
			if got := len(s.Calls()); got != tc.calls {
				t.Errorf("%d calls, want %d: openai-go repeats by itself unless told", got, tc.calls)
			}
			for _, secret := range []string{"& the prompt", "something broke", "log in", key, "half"} {
				if strings.Contains(fmt.Sprintf("%v %s", err, fault.HintOf(err)), secret) {
					t.Errorf("the error holds %q: %v", secret, err)
				}
			}
		})
	}
}

func TestCancelledAndInFlight(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	release := s.Hold()
	c := open(t, s.URL, openaiapi.Config{}, func(e *endpoint.Config) { e.InFlight = 2 })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := c.Chat(ctx, ask()); gone <- err }()
	for s.Running() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call gives %v", err)
	}
	for s.Running() > 0 {
		time.Sleep(time.Millisecond)
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if _, err := c.Chat(t.Context(), ask()); err != nil {
				t.Error(err)
			}
		})
	}
	for s.Running() < 2 {
		time.Sleep(time.Millisecond)
	}
	release()
	all.Wait()
	if got := s.Most(); got != 2 {
		t.Errorf("%d calls at a time, want 2", got)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	got, err := open(t, s.URL, openaiapi.Config{Dialect: openaiapi.VLLM}, nil).Models(t.Context())
	if d := cmp.Diff([]llm.Info{{Model: "small", Window: 8192, Loaded: true}}, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	// An adapter of vLLM names its base; OpenRouter has its own word for the window.
	list := llmtest.NewFixed(t, `{"object":"list","data":[{"id":"base","max_model_len":4096},{"id":"gate","parent":"base","max_model_len":null},{"id":"far","context_length":131072},{"id":"mute"}]}`)
	got, err = open(t, list.URL, openaiapi.Config{}, nil).Models(t.Context())
	want := []llm.Info{{Model: "base", Window: 4096}, {Model: "gate", Window: 4096}, {Model: "far", Window: 131072}, {Model: "mute"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := open(t, llmtest.NewFixed(t, `<html>`).URL, openaiapi.Config{}, nil).Models(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a page gives %v", err)
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s.URL, openaiapi.Config{Dialect: openaiapi.OpenAI}, nil)
	got, err := c.Vectors(t.Context(), llmtest.Model, []string{"a", "b"}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"a", "b"} { // the server answers them in the other order
		for j, x := range llmtest.Vector(text) {
			if math.Abs(float64(got[i][j])-x) > 1e-6 {
				t.Errorf("%s: %v, want %v", text, got[i], llmtest.Vector(text))
			}
		}
	}
	want := map[string]any{"model": "small", "input": []any{"a", "b"}, "encoding_format": "float", "dimensions": 4.0}
	if d := cmp.Diff(want, body(t, s.Calls()[0])); d != "" {
		t.Errorf("request (-want +got):\n%s", d)
	}
	for name, tc := range map[string]struct {
		play llmtest.Play
		kind fault.Kind
	}{
		"NaN":         {llmtest.Vectors(func(string) []float64 { return []float64{1, math.NaN()} }), fault.Invalid},
		"null":        {llmtest.Body(200, `{"data":[{"index":0,"embedding":[1,null]},{"index":1,"embedding":[1,2]}]}`), fault.Invalid},
		"refused NaN": {llmtest.Refusing("b"), fault.Invalid},
		"window":      {llmtest.Status(400, "maximum context length is 512 tokens, however you requested 1451"), fault.Invalid},
		"too few":     {llmtest.Body(200, `{"data":[{"index":0,"embedding":[1]}]}`), fault.Unavailable},
		"twice":       {llmtest.Body(200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`), fault.Unavailable},
		"beyond":      {llmtest.Body(200, `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`), fault.Unavailable},
		"base64":      {llmtest.Body(200, `{"data":[{"index":0,"embedding":"AAAA"},{"index":1,"embedding":"AAAA"}]}`), fault.Unavailable},
		"error":       {llmtest.ErrorIn200("boom"), fault.Unavailable},
	} {
		s.Play(tc.play)
		if v, err := c.Vectors(t.Context(), llmtest.Model, []string{"a", "b"}, 0); err == nil || fault.KindOf(err) != tc.kind {
			t.Errorf("%s: %v, %v (%s), want %s", name, v, err, fault.KindOf(err), tc.kind)
		}
	}
}

func TestRerank(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s.URL, openaiapi.Config{Dialect: openaiapi.VLLM}, nil)
	got, err := c.Rerank(t.Context(), "bge-reranker-base", "q", []string{"a", "b", "c"})
	if d := cmp.Diff([]float64{1, 0.5, 1. / 3}, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if d := cmp.Diff(map[string]any{"model": "bge-reranker-base", "query": "q", "documents": []any{"a", "b", "c"}}, body(t, s.Calls()[0])); d != "" || s.Calls()[0].Path != "/v1/rerank" {
		t.Errorf("request to %s (-want +got):\n%s", s.Calls()[0].Path, d)
	}
	for name, b := range map[string]string{
		"twice":     `{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]}`,
		"beyond":    `{"results":[{"index":0,"relevance_score":1},{"index":2,"relevance_score":1}]}`,
		"too few":   `{"results":[{"index":0,"relevance_score":1}]}`,
		"no score":  `{"results":[{"index":0},{"index":1}]}`,
		"no index":  `{"results":[{"relevance_score":1},{"relevance_score":1}]}`,
		"no answer": `{}`,
	} {
		s.Play(llmtest.Body(http.StatusOK, b))
		if v, err := c.Rerank(t.Context(), "m", "q", []string{"a", "b"}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

// TestServer runs against the /v1 of the Ollama that MNEME_TEST_OLLAMA names, as
// `infra/local/services/ollama.sh start DIR` prints it.
func TestServer(t *testing.T) {
	where := os.Getenv("MNEME_TEST_OLLAMA")
	if where == "" {
		const msg = "MNEME_TEST_OLLAMA is not set: the adapter is tested against the fault server alone"
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "ollama") {
			t.Fatal(msg)
		}
		t.Skip(msg)
	}
	const model = "smollm2-135m"
	c := open(t, where, openaiapi.Config{Dialect: openaiapi.OllamaV1}, func(e *endpoint.Config) { e.MaxRetries = -1 })
	r := llm.ChatRequest{Model: model, User: "Is water wet?", Sampling: memory.Sampling{TopP: 1, Seed: 1, MaxTokens: 30}, Logprobs: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"check":{"type":"string","enum":["yes","no"]}},"required":["check"],"additionalProperties":false}`)}
	a, err := c.Chat(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Check string }
	if err := json.Unmarshal([]byte(a.Content), &got); err != nil || got.Check != "yes" && got.Check != "no" {
		t.Errorf("%q is outside the schema: %v", a.Content, err)
	}
	if a.PromptTokens < 5 || a.PromptTokens > 60 || a.CompletionTokens == 0 || len(a.Tokens) == 0 {
		t.Errorf("got %+v", a)
	}
	models, err := c.Models(t.Context())
	if err != nil || !slices.ContainsFunc(models, func(m llm.Info) bool { return strings.HasPrefix(m.Model, model) }) {
		t.Errorf("models %v, %v", models, err)
	}
	v, err := c.Vectors(t.Context(), model, []string{"the build fails", "bread"}, 0)
	if err != nil || len(v) != 2 || len(v[0]) != 576 {
		t.Errorf("%d vectors, %v", len(v), err)
	}
	r.Model = "no-such-model"
	if _, err := c.Chat(t.Context(), r); !fault.Is(err, fault.NotFound) {
		t.Errorf("a model that is not there gives %v", err)
	}
	// It has no such path; a configuration that says so is told.
	if _, err := open(t, where, openaiapi.Config{Dialect: openaiapi.VLLM}, nil).Rerank(t.Context(), model, "q", []string{"a"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("rerank gives %v", err)
	}
}
