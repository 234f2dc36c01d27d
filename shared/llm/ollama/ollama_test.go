package ollama_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
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
	"github.com/mneme-ai/mneme/shared/llm/ollama"
	"github.com/mneme-ai/mneme/shared/memory"
)

func open(t *testing.T, url string, c ollama.Config, change func(*endpoint.Config)) *ollama.Client {
	t.Helper()
	e := endpoint.Config{Name: "here", URL: url, Kind: endpoint.Ollama, FirstPause: time.Millisecond, MaxRetries: 2}
	if change != nil {
		change(&e)
	}
	ep, err := endpoint.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := ollama.New(ep, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func ask() llm.ChatRequest {
	return llm.ChatRequest{Model: llmtest.Model, System: "rules", User: "<q> & the prompt", Window: 12288,
		Sampling: memory.Sampling{Temperature: 0, TopP: 1, Seed: 7, MaxTokens: 64}}
}

func TestChatOnTheWire(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object"}`)
	options := map[string]any{"num_ctx": 12288.0, "temperature": 0.0, "top_p": 1.0, "seed": 7.0, "num_predict": 64.0}
	base := func(change func(map[string]any)) map[string]any {
		m := map[string]any{"model": "small", "stream": true, "truncate": false, "shift": false, "think": false, "keep_alive": "30m0s", "options": options,
			"messages": []any{map[string]any{"role": "system", "content": "rules"}, map[string]any{"role": "user", "content": "<q> & the prompt"}}}
		if change != nil {
			change(m)
		}
		return m
	}
	for name, tc := range map[string]struct {
		c    ollama.Config
		r    func(*llm.ChatRequest)
		want map[string]any
	}{
		"plain":  {want: base(nil)},
		"schema": {r: func(r *llm.ChatRequest) { r.Schema = schema }, want: base(func(m map[string]any) { m["format"] = map[string]any{"type": "object"} })},
		"choice": {r: func(r *llm.ChatRequest) { r.Choice = []string{"yes", "no"} },
			want: base(func(m map[string]any) { m["format"] = map[string]any{"type": "string", "enum": []any{"yes", "no"}} })},
		"logprobs": {r: func(r *llm.ChatRequest) { r.Logprobs = true }, want: base(func(m map[string]any) { m["logprobs"], m["top_logprobs"] = true, 10.0 })},
		"thinks":   {c: ollama.Config{Think: map[string]string{"small": "low"}, KeepAlive: -1}, want: base(func(m map[string]any) { m["think"], m["keep_alive"] = "low", "-1s" })},
		"no bound, no window, no rules": {r: func(r *llm.ChatRequest) { r.Window, r.System, r.Sampling.MaxTokens = 0, "", 0 }, want: base(func(m map[string]any) {
			m["options"] = map[string]any{"temperature": 0.0, "top_p": 1.0, "seed": 7.0, "num_predict": -1.0}
			m["messages"] = m["messages"].([]any)[1:]
		})},
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
			var got map[string]any
			if err := json.Unmarshal(s.Calls()[0].Body, &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
			if strings.Contains(string(s.Calls()[0].Body), `\u003c`) {
				t.Error("the prompt's tags are escaped")
			}
		})
	}
}

func TestRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s.URL, ollama.Config{}, nil)
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
	if n := len(s.All()); n != 0 {
		t.Errorf("%d requests", n)
	}
	ep, err := endpoint.Open(endpoint.Config{URL: s.URL, Kind: endpoint.OpenAI})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ollama.New(ep, ollama.Config{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an endpoint of the other kind: %v", err)
	}
}

// A success is returned as it is, whatever it is worth.
func TestReplies(t *testing.T) {
	t.Parallel()
	token := func(text string) llm.Token {
		own := llm.TokenProb{Token: text, Logprob: -0.1}
		return llm.Token{TokenProb: own, Top: []llm.TokenProb{own, {Token: "no", Logprob: -2.3}}}
	}
	split := llmtest.Chat{Content: "é", Reasoning: "hm", Finish: "stop", Tokens: []llmtest.Token{{Text: "hm", Logprob: -1}, {Text: "\xc3", Logprob: -2}, {Text: "\xa9", Logprob: -3, Top: []llmtest.Token{{Text: "\xaa", Logprob: -0.5}}}}}
	for name, tc := range map[string]struct {
		play llmtest.Play
		r    func(*llm.ChatRequest)
		want llm.ChatReply
	}{
		"right":     {llmtest.Text("a b <c>"), nil, llm.ChatReply{Content: "a b <c>", FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}},
		"half":      {llmtest.HalfPrompt(4100), nil, llm.ChatReply{Content: llmtest.Reply, FinishReason: "stop", PromptTokens: 2050, CompletionTokens: 7}},
		"empty":     {llmtest.Empty(), nil, llm.ChatReply{FinishReason: "stop", PromptTokens: 100}},
		"reasoning": {llmtest.ReasoningOnly("so I think"), nil, llm.ChatReply{Reasoning: "so I think", FinishReason: "length", PromptTokens: 100, CompletionTokens: 2048}},
		"load only": {llmtest.Chat{Finish: "load"}.Play(), nil, llm.ChatReply{FinishReason: "load"}},
		"quotes":    {llmtest.Text(llmtest.GermanQuotes), nil, llm.ChatReply{Content: llmtest.GermanQuotes, FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}},
		"newlines":  {llmtest.Text(llmtest.RawNewlines), nil, llm.ChatReply{Content: llmtest.RawNewlines, FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}},
		"fence":     {llmtest.Text(llmtest.Fenced), nil, llm.ChatReply{Content: llmtest.Fenced, FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}},
		"choice":    {llmtest.Text("\"no\" \n"), func(r *llm.ChatRequest) { r.Choice = []string{"yes", "no"} }, llm.ChatReply{Content: "no", FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}},
		"no choice": {llmtest.Text(`"maybe"`), func(r *llm.ChatRequest) { r.Choice = []string{"yes", "no"} }, llm.ChatReply{Content: `"maybe"`, FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}},
		"logprobs":  {llmtest.Text("yes"), func(r *llm.ChatRequest) { r.Logprobs = true }, llm.ChatReply{Content: "yes", FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7, Tokens: []llm.Token{token("yes")}}},
		"words":     {llmtest.Text("a b c d"), func(r *llm.ChatRequest) { r.Logprobs = true }, llm.ChatReply{Content: "a b c d", FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7, Tokens: []llm.Token{token("a "), token("b "), token("c "), token("d")}}},
		"not asked": {llmtest.Text("yes"), nil, llm.ChatReply{Content: "yes", FinishReason: "stop", PromptTokens: 100, CompletionTokens: 7}},
		"half a character": {split.Play(), func(r *llm.ChatRequest) { r.Logprobs = true }, llm.ChatReply{Content: "é", Reasoning: "hm", FinishReason: "stop",
			Tokens: []llm.Token{{TokenProb: llm.TokenProb{Token: "hm", Logprob: -1}}, {TokenProb: llm.TokenProb{Token: "\xc3", Logprob: -2}}, {TokenProb: llm.TokenProb{Token: "\xa9", Logprob: -3}, Top: []llm.TokenProb{{Token: "\xaa", Logprob: -0.5}}}}}},
		"unstreamed, with tokens": {llmtest.Body(200, `{"model":"small","message":{"content":"x"},"done":true,"done_reason":"stop","load_duration":7,"logprobs":[{"token":"x","logprob":-1}]}`), nil,
			llm.ChatReply{Content: "x", FinishReason: "stop", Tokens: []llm.Token{{TokenProb: llm.TokenProb{Token: "x", Logprob: -1}}}}},
		"unstreamed": {llmtest.Body(200, `{"model":"small","message":{"content":"x"},"done":true,"done_reason":"stop"}`), nil, llm.ChatReply{Content: "x", FinishReason: "stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			s.Play(tc.play)
			r := ask()
			if tc.r != nil {
				tc.r(&r)
			}
			got, err := open(t, s.URL, ollama.Config{}, nil).Chat(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Model = "small"
			if d := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(llm.ChatReply{}, "Latency", "Load", "Raw")); d != "" {
				t.Errorf("reply (-want +got):\n%s", d)
			}
			if got.Latency <= 0 || got.Load <= 0 && name != "unstreamed" || got.Load > got.Latency+5*time.Millisecond {
				t.Errorf("latency %s, load %s", got.Latency, got.Load)
			}
			// Raw says the same again as one object, without log-probabilities.
			var raw struct {
				Message    struct{ Content, Thinking string }
				DoneReason string `json:"done_reason"`
				Prompt     int    `json:"prompt_eval_count"`
				Logprobs   []any
			}
			if err := json.Unmarshal(got.Raw, &raw); err != nil {
				t.Fatal(err)
			}
			if name != "choice" && raw.Message.Content != got.Content || raw.Message.Thinking != got.Reasoning || raw.DoneReason != got.FinishReason ||
				raw.Prompt != got.PromptTokens || raw.Logprobs != nil {
				t.Errorf("raw is %s", got.Raw)
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
		"window in 200":    {llmtest.ErrorIn200("the input exceeds the available context size"), fault.Invalid, 1},
		"no model in 200":  {llmtest.ErrorIn200(`model "small" not found, try pulling it first`), fault.NotFound, 1},
		"busy in 200":      {llmtest.ErrorIn200("server busy"), fault.Exhausted, 1},
		"error inside":     {llmtest.MidStream("an error was encountered while running the model"), fault.Unavailable, 1},
		"ends early":       {llmtest.EndsEarly(), fault.Unavailable, 1},
		"broken off":       {llmtest.BreaksOff(), fault.Unavailable, 1},
		"stall":            {llmtest.Stall(), fault.Unavailable, 1},
		"invalid JSON":     {llmtest.InvalidJSON(), fault.Unavailable, 1},
		"a page":           {llmtest.Body(200, "<html>log in</html>"), fault.Unavailable, 1},
		"nothing":          {llmtest.Body(200, ""), fault.Unavailable, 1},
		"huge":             {llmtest.Huge(2 << 20), fault.Unavailable, 1},
		"cannot":           {llmtest.Status(400, `"small" does not support thinking`), fault.Invalid, 1},
		"window":           {llmtest.Status(400, "the input length exceeds the context length"), fault.Invalid, 1},
		"no model":         {llmtest.UnknownModel(), fault.NotFound, 1},
		"queue":            {llmtest.QueueFull(), fault.Exhausted, 3},
		"429":              {llmtest.TooMany(""), fault.Exhausted, 3},
		"redirect":         {llmtest.Redirect("http://127.0.0.1:1"), fault.Invalid, 1},
		"reset":            {llmtest.Reset(), fault.Unavailable, 3},
		"quotes all (400)": {llmtest.Echo(400), fault.Invalid, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			s.Play(tc.play, tc.play, tc.play, tc.play)
			c := open(t, s.URL, ollama.Config{}, func(e *endpoint.Config) { e.Stall, e.MaxBodyBytes = 50*time.Millisecond, 1<<20 })
			_, err := c.Chat(t.Context(), ask())
			if err == nil || fault.KindOf(err) != tc.kind {
				t.Errorf("got %v (%s), want %s", err, fault.KindOf(err), tc.kind)
			}
			if got := len(s.Calls()); got != tc.calls {
				t.Errorf("%d calls, want %d", got, tc.calls)
			}
			if tc.calls == 1 && len(s.Repeats()) > 0 {
				t.Errorf("repeated byte for byte after an answer: %q", s.Repeats())
			}
			for _, secret := range []string{"the prompt", "something broke", "log in"} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error holds %q: %v", secret, err)
				}
			}
		})
	}
}

// The load is asked for once however many wait for it, outlives a caller that
// leaves, and is not asked for again until the window changes.
func TestColdModel(t *testing.T) {
	t.Parallel()
	loading, loaded := make(chan struct{}), make(chan struct{})
	loads := make(chan llmtest.Call, 8)
	s := llmtest.New(t)
	front := llmtest.NewFront(t, s, func(w http.ResponseWriter, r *http.Request, c llmtest.Call) bool {
		loads <- c
		if len(loads) == 1 {
			close(loading)
			select {
			case <-loaded:
			case <-r.Context().Done():
				t.Error("the load was given up")
			}
		}
		return false
	})
	c := open(t, front.URL, ollama.Config{}, func(e *endpoint.Config) { e.Chat, e.Load = 20*time.Second, time.Minute })

	short, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := c.Chat(short, ask()); first <- err }()
	<-loading
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("the caller that left got %v", err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := c.Chat(t.Context(), ask()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		if err := c.Warm(t.Context(), llmtest.Model, 12288); err != nil {
			t.Error(err)
		}
	})
	close(loaded)
	all.Wait()
	// Warm may come after the load has ended; it asks again then, the chats do not.
	if n := len(loads); n > 2 {
		t.Errorf("%d loads, want one for all", n)
	}
	before := len(loads)
	if _, err := c.Chat(t.Context(), ask()); err != nil || len(loads) != before {
		t.Errorf("a model in use is loaded again: %v", err)
	}
	r := ask()
	r.Window = 4096
	if _, err := c.Chat(t.Context(), r); err != nil || len(loads) != before+1 {
		t.Errorf("another window gives %d more loads, %v", len(loads)-before, err)
	}
	for len(loads) > 1 {
		<-loads
	}
	if got := (<-loads).Field("options.num_ctx"); got != 4096.0 {
		t.Errorf("it is loaded with a window of %v", got)
	}
}

func TestLoadThatFails(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s.URL, ollama.Config{}, nil)
	r := ask()
	r.Model = "missing"
	_, err := c.Chat(t.Context(), r)
	if !fault.Is(err, fault.NotFound) || fault.HintOf(err) != "ollama pull missing" {
		t.Errorf("got %v, hint %q", err, fault.HintOf(err))
	}
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d chats to a model that is not there", n)
	}
	if err := c.Warm(t.Context(), "missing", 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("a second load gives %v", err)
	}
}

// A server that was started anew has no model in memory: the call after a
// failure loads again.
func TestLoadsAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Play(llmtest.BreaksOff())
	c := open(t, s.URL, ollama.Config{}, nil)
	if _, err := c.Chat(t.Context(), ask()); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if _, err := c.Chat(t.Context(), ask()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.All()) - len(s.Calls()); n != 2 {
		t.Errorf("%d loads, want 2", n)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	begun := make(chan struct{})
	front := llmtest.NewFront(t, s, func(_ http.ResponseWriter, r *http.Request, _ llmtest.Call) bool {
		close(begun)
		<-r.Context().Done()
		return true
	})
	c := open(t, front.URL, ollama.Config{}, nil)
	got := make(chan error, 1)
	go func() { _, err := c.Chat(t.Context(), ask()); got <- err }()
	<-begun
	c.Close()
	if err := <-got; !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Chat(t.Context(), ask()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a call after Close gives %v", err)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s.URL, ollama.Config{}, nil)
	got, err := c.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.Info{{Model: "small", Window: 8192, Loaded: true}, {Model: "other:1b", Window: 4096}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("models (-want +got):\n%s", d)
	}
	s.Close()
	if _, err := c.Models(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a server that is down gives %v", err)
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s.URL, ollama.Config{EmbedWindow: 512}, nil)
	got, err := c.Vectors(t.Context(), llmtest.Model, []string{"a", "b"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"a", "b"} {
		for j, x := range llmtest.Vector(text) {
			if math.Abs(float64(got[i][j])-x) > 1e-6 {
				t.Errorf("%s: %v, want %v", text, got[i], llmtest.Vector(text))
			}
		}
	}
	var sent map[string]any
	if err := json.Unmarshal(s.Calls()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"model": "small", "input": []any{"a", "b"}, "truncate": false, "keep_alive": "30m0s", "options": map[string]any{"num_ctx": 512.0}}
	if d := cmp.Diff(want, sent); d != "" {
		t.Errorf("request (-want +got):\n%s", d)
	}
	for name, tc := range map[string]struct {
		play llmtest.Play
		kind fault.Kind
	}{
		"NaN":         {llmtest.Vectors(func(string) []float64 { return []float64{1, math.NaN()} }), fault.Invalid},
		"null":        {llmtest.Body(200, `{"embeddings":[[0.1,null],[1,2]]}`), fault.Invalid},
		"refused NaN": {llmtest.Refusing("b"), fault.Invalid},
		"too few":     {llmtest.Body(200, `{"embeddings":[[1]]}`), fault.Unavailable},
		"an empty":    {llmtest.Body(200, `{"embeddings":[[1],[]]}`), fault.Unavailable},
		"base64":      {llmtest.Body(200, `{"embeddings":["AAAA","AAAA"]}`), fault.Unavailable},
		"a page":      {llmtest.Body(200, `<html>`), fault.Unavailable},
		"error":       {llmtest.ErrorIn200("boom"), fault.Unavailable},
	} {
		s.Play(tc.play)
		if v, err := c.Vectors(t.Context(), llmtest.Model, []string{"a", "b"}, 0); err == nil || fault.KindOf(err) != tc.kind {
			t.Errorf("%s: %v, %v (%s), want %s", name, v, err, fault.KindOf(err), tc.kind)
		}
	}
}
