package openaiapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
)

// Dialect is which server stands behind the form.
type Dialect string

const (
	VLLM       Dialect = "vllm"        // 0.12 and newer
	VLLMGuided Dialect = "vllm-guided" // before 0.12
	OpenAI     Dialect = "openai"
	OpenRouter Dialect = "openrouter"
	OllamaV1   Dialect = "ollama-v1"
	Generic    Dialect = "generic" // nothing beyond chat and vectors
)

var capabilities = map[Dialect]llm.Capabilities{
	VLLM:       {Choice: true, Schema: true, Logprobs: true, Adapters: true, Rerank: true},
	VLLMGuided: {Choice: true, Schema: true, Logprobs: true, Adapters: true, Rerank: true},
	OpenAI:     {Schema: true, Logprobs: true, Dimensions: true},
	OpenRouter: {Schema: true},
	OllamaV1:   {Schema: true, Logprobs: true},
	Generic:    {},
}

// Config is what may be set beside the endpoint.
type Config struct {
	Dialect Dialect // default by the URL: openai, openrouter, else generic
	// Capabilities replaces what the dialect declares, where a server or a model
	// differs from it. WindowControl and TruncateControl stay false.
	Capabilities *llm.Capabilities
}

// Client is one server.
type Client struct {
	ep      *endpoint.Client
	dialect Dialect
	caps    llm.Capabilities
	chat    openai.ChatCompletionService
	embed   openai.EmbeddingService
	embeds  openai.Client // for paths that openai-go has no method for
	probes  openai.Client
}

var (
	_ llm.Chatter  = (*Client)(nil)
	_ llm.Prober   = (*Client)(nil)
	_ llm.Reranker = (*Client)(nil)
)

// New is the client of an endpoint of kind openai. It sends nothing.
func New(ep *endpoint.Client, c Config) (*Client, error) {
	if ep.Kind() != endpoint.OpenAI {
		return nil, fault.At(fault.Invalid, ep.Name(), "set the endpoint's kind to openai", "the endpoint is of kind %s", ep.Kind())
	}
	if c.Dialect == "" {
		c.Dialect = dialectOf(ep.Base())
	}
	caps, ok := capabilities[c.Dialect]
	if !ok {
		return nil, fault.At(fault.Invalid, ep.Name(), "write vllm, vllm-guided, openai, openrouter, ollama-v1 or generic", "the dialect %q is none", c.Dialect)
	}
	if c.Capabilities != nil {
		caps = *c.Capabilities
		caps.WindowControl, caps.TruncateControl = false, false
	}
	// The services and a Client made by hand take nothing from OPENAI_*, which
	// openai.NewClient does. The key is put on by the endpoint, beneath.
	options := func(class endpoint.Class) []option.RequestOption {
		return []option.RequestOption{option.WithBaseURL(ep.Base()), option.WithHTTPClient(ep.HTTP(class)), option.WithMaxRetries(0)}
	}
	return &Client{
		ep: ep, dialect: c.Dialect, caps: caps,
		chat:   openai.NewChatCompletionService(options(endpoint.Chat)...),
		embed:  openai.NewEmbeddingService(options(endpoint.Embed)...),
		embeds: openai.Client{Options: options(endpoint.Embed)},
		probes: openai.Client{Options: options(endpoint.Probe)},
	}, nil
}

func dialectOf(base string) Dialect {
	if u, err := url.Parse(base); err == nil {
		switch strings.ToLower(u.Hostname()) {
		case "api.openai.com":
			return OpenAI
		case "openrouter.ai":
			return OpenRouter
		}
	}
	return Generic
}

// Capabilities are those that the dialect, or the configuration, declares.
func (c *Client) Capabilities() llm.Capabilities { return c.caps }

// topLogprobs is how many alternatives are asked for: a word stands in several
// forms ("yes", " yes", "Yes"), and 20 is the most that vLLM and OpenAI give.
const topLogprobs = 10

// Chat is one call of /v1/chat/completions.
func (c *Client) Chat(ctx context.Context, r llm.ChatRequest) (_ llm.ChatReply, err error) {
	defer fault.Wrap(&err, "chat(%s, %s)", c.ep.Name(), r.Model)
	params, err := c.params(r)
	if err != nil {
		return llm.ChatReply{}, err
	}
	begun := time.Now()
	var raw []byte
	if _, err := c.chat.New(ctx, params, option.WithResponseBodyInto(&raw)); err != nil {
		return llm.ChatReply{}, c.ep.Fault(ctx, err)
	}
	reply, err := c.reply(raw, params.Model)
	reply.Latency = time.Since(begun)
	return reply, err
}

func (c *Client) params(r llm.ChatRequest) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{
		Model:       r.Model,
		Temperature: openai.Float(r.Sampling.Temperature), TopP: openai.Float(r.Sampling.TopP), Seed: openai.Int(r.Sampling.Seed),
	}
	switch {
	case r.Adapter != "" && !c.caps.Adapters:
		return p, fault.At(fault.Invalid, c.ep.Name(), "serve the adapter with vLLM (--enable-lora), or leave it out", "an adapter cannot be chosen by request")
	case r.Adapter != "":
		p.Model = r.Adapter
	}
	if p.Model == "" || r.User == "" && r.System == "" {
		return p, fault.New(fault.Invalid, "a chat needs a model and a prompt")
	}
	if len(r.Schema) > 0 && len(r.Choice) > 0 {
		return p, fault.New(fault.Invalid, "a chat has a schema or a choice, not both")
	}
	if r.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(r.System))
	}
	if r.User != "" {
		p.Messages = append(p.Messages, openai.UserMessage(r.User))
	}
	if r.Sampling.MaxTokens > 0 {
		p.MaxTokens = openai.Int(int64(r.Sampling.MaxTokens))
	}
	if r.Logprobs && c.caps.Logprobs {
		p.Logprobs, p.TopLogprobs = openai.Bool(true), openai.Int(topLogprobs)
	}
	extra := map[string]any{}
	if len(r.Schema) > 0 && c.caps.Schema {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "reply", Strict: openai.Bool(true), Schema: r.Schema},
		}
		if c.dialect == OpenRouter {
			// A provider that does not know response_format would drop it.
			extra["provider"] = map[string]any{"require_parameters": true}
		}
	}
	if len(r.Choice) > 0 && c.caps.Choice {
		if c.dialect == VLLMGuided {
			extra["guided_choice"] = r.Choice
		} else {
			extra["structured_outputs"] = map[string]any{"choice": r.Choice}
		}
	}
	if c.dialect == OllamaV1 {
		p.ReasoningEffort = "none"
	}
	if len(extra) > 0 {
		p.SetExtraFields(extra)
	}
	return p, nil
}

func (c *Client) reply(raw []byte, model string) (llm.ChatReply, error) {
	if err := c.inBand(raw, model); err != nil {
		return llm.ChatReply{}, err
	}
	var got openai.ChatCompletion
	if got.UnmarshalJSON(raw) != nil || len(got.Choices) == 0 {
		return llm.ChatReply{}, c.ep.Unreadable("there is no choice in it")
	}
	first := got.Choices[0]
	if e, ok := first.JSON.ExtraFields["error"]; ok && e.Raw() != "null" { // OpenRouter, of a provider that failed inside
		return llm.ChatReply{}, c.ep.InBand([]byte(`{"error":`+e.Raw()+`}`), model)
	}
	reply := llm.ChatReply{
		Content: first.Message.Content, FinishReason: first.FinishReason, Model: got.Model,
		PromptTokens: int(got.Usage.PromptTokens), CompletionTokens: int(got.Usage.CompletionTokens), Raw: raw,
	}
	for _, name := range []string{"reasoning", "reasoning_content"} {
		if f, ok := first.Message.JSON.ExtraFields[name]; ok && reply.Reasoning == "" {
			_ = json.Unmarshal([]byte(f.Raw()), &reply.Reasoning) // stays empty where it is no text
		}
	}
	for _, l := range first.Logprobs.Content {
		t := llm.Token{TokenProb: llm.Prob(l.Token, l.Bytes, l.Logprob)}
		for _, a := range l.TopLogprobs {
			t.Top = append(t.Top, llm.Prob(a.Token, a.Bytes, a.Logprob))
		}
		reply.Tokens = append(reply.Tokens, t)
	}
	if reply.Tokens != nil {
		reply.Raw = bare(raw)
	}
	return reply, nil
}

// bare is a body without the log-probabilities of its choices; one that is not
// of the form stays as it is.
func bare(raw []byte) []byte {
	var top map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil || json.Unmarshal(top["choices"], &choices) != nil {
		return raw
	}
	for _, c := range choices {
		delete(c, "logprobs")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(choices) != nil {
		return raw
	}
	top["choices"] = bytes.Clone(out.Bytes())
	out.Reset()
	if enc.Encode(top) != nil {
		return raw
	}
	return bytes.TrimSpace(out.Bytes())
}

// inBand finds an error under a success, and what is no JSON object at all:
// openai-go reads a wrong type as a zero without a word.
func (c *Client) inBand(raw []byte, model string) error {
	var top struct {
		Error json.RawMessage `json:"error"`
	}
	switch {
	case json.Unmarshal(raw, &top) != nil:
		return c.ep.Unreadable("it is no JSON object")
	case len(top.Error) > 0 && string(top.Error) != "null":
		return c.ep.InBand(raw, model)
	}
	return nil
}
