package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
)

// Config is what may be set beside the endpoint.
type Config struct {
	// KeepAlive is how long the server keeps a model after its last use. Default
	// 30 min, as an ingest pauses longer than Ollama's 5 min; negative for ever.
	KeepAlive time.Duration
	// Think names the models that must think, and how: "true", "low", "medium" or
	// "high" (gpt-oss cannot do without). All others get think:false, as a thought
	// eats the reply's tokens.
	Think map[string]string
	// EmbedWindow is the num_ctx of vectors, in tokens; 0 leaves it to the model.
	EmbedWindow int
}

// Client is one Ollama server. Close it.
type Client struct {
	ep    *endpoint.Client
	c     Config
	loads sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running map[loadKey]*load
	fresh   map[string]use // by model: what it was last used with
}

var (
	_ llm.Chatter = (*Client)(nil)
	_ llm.Prober  = (*Client)(nil)
)

// loadKey is what a load makes ready: another window is another load.
type loadKey struct {
	path   string
	model  string
	window int
}

type load struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

type use struct {
	key loadKey
	at  time.Time
}

// New is the client of an endpoint of kind ollama. It sends nothing.
func New(ep *endpoint.Client, c Config) (*Client, error) {
	if ep.Kind() != endpoint.Ollama {
		return nil, fault.At(fault.Invalid, ep.Name(), "set the endpoint's kind to ollama", "the endpoint is of kind %s", ep.Kind())
	}
	for model, how := range c.Think {
		if !slices.Contains([]string{"true", "low", "medium", "high"}, how) {
			return nil, fault.At(fault.Invalid, ep.Name(), "write true, low, medium or high", "model %q must think %q", model, how)
		}
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 30 * time.Minute
	}
	return &Client{ep: ep, c: c, running: map[loadKey]*load{}, fresh: map[string]use{}}, nil
}

// Close gives up the loads that run and waits for them. No call may follow.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for _, l := range c.running {
		l.cancel()
	}
	c.mu.Unlock()
	c.loads.Wait()
}

// Capabilities are the same for every model of the server.
func (c *Client) Capabilities() llm.Capabilities {
	return llm.Capabilities{WindowControl: true, TruncateControl: true, Choice: true, Schema: true, Logprobs: true}
}

type message struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking,omitempty"`
}

type chatOptions struct {
	NumCtx      int     `json:"num_ctx,omitempty"`
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
	Seed        int64   `json:"seed"`
	NumPredict  int     `json:"num_predict"`
}

type chatRequest struct {
	Model       string          `json:"model"`
	Messages    []message       `json:"messages"`
	Stream      bool            `json:"stream"`
	Options     any             `json:"options,omitempty"`
	Truncate    bool            `json:"truncate"`
	Shift       bool            `json:"shift"`
	Think       any             `json:"think,omitempty"`
	KeepAlive   string          `json:"keep_alive"`
	Format      json.RawMessage `json:"format,omitempty"`
	Logprobs    bool            `json:"logprobs,omitempty"`
	TopLogprobs int             `json:"top_logprobs,omitempty"`
}

// windowOption is the options of a call that samples nothing.
type windowOption struct {
	NumCtx int `json:"num_ctx,omitempty"`
}

type chatPiece struct {
	Model    string  `json:"model"`
	Message  message `json:"message"`
	Done     bool    `json:"done"`
	Reason   string  `json:"done_reason"`
	Prompt   int     `json:"prompt_eval_count"`
	Eval     int     `json:"eval_count"`
	Load     int64   `json:"load_duration"` // nanoseconds
	Logprobs []struct {
		alternative
		Top []alternative `json:"top_logprobs"`
	} `json:"logprobs"`
	Error json.RawMessage `json:"error"`
}

type alternative struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // of the token, where it ends inside a character
}

func (a alternative) prob() llm.TokenProb { return llm.Prob(a.Token, a.Bytes, a.Logprob) }

// topLogprobs is how many alternatives are asked for: a word stands in several
// forms ("yes", " yes", "Yes"), and 20 is the most that servers give.
const topLogprobs = 10

// Chat is one call of /api/chat, after the model is loaded.
func (c *Client) Chat(ctx context.Context, r llm.ChatRequest) (_ llm.ChatReply, err error) {
	defer fault.Wrap(&err, "chat(%s, %s)", c.ep.Name(), r.Model)
	req, err := c.request(r)
	if err != nil {
		return llm.ChatReply{}, err
	}
	begun := time.Now()
	key := loadKey{"api/chat", r.Model, r.Window}
	if err := c.ready(ctx, key); err != nil {
		return llm.ChatReply{}, err
	}
	loading := time.Since(begun)
	body, err := c.ep.Post(ctx, endpoint.Chat, key.path, req)
	if err != nil {
		c.forget(key, err)
		return llm.ChatReply{}, err
	}
	reply, err := c.join(body, r.Model)
	if err != nil {
		c.forget(key, err)
		return llm.ChatReply{}, err
	}
	c.used(key)
	reply.Latency = time.Since(begun)
	reply.Load += loading
	if len(r.Choice) > 0 {
		reply.Content = chosen(reply.Content, r.Choice)
	}
	return reply, nil
}

func (c *Client) request(r llm.ChatRequest) (*chatRequest, error) {
	switch {
	case r.Adapter != "":
		return nil, fault.At(fault.Invalid, c.ep.Name(), "ollama create a model with ADAPTER in its Modelfile, and name that as the model", "an adapter cannot be chosen by request")
	case r.Model == "" || r.User == "" && r.System == "":
		return nil, fault.New(fault.Invalid, "a chat needs a model and a prompt")
	case len(r.Schema) > 0 && len(r.Choice) > 0:
		return nil, fault.New(fault.Invalid, "a chat has a schema or a choice, not both")
	}
	req := &chatRequest{Model: r.Model, Stream: true, KeepAlive: c.keepAlive(), Think: c.think(r.Model), Format: r.Schema, Logprobs: r.Logprobs}
	for _, m := range []message{{Role: "system", Content: r.System}, {Role: "user", Content: r.User}} {
		if m.Content != "" {
			req.Messages = append(req.Messages, m)
		}
	}
	o := chatOptions{r.Window, r.Sampling.Temperature, r.Sampling.TopP, r.Sampling.Seed, r.Sampling.MaxTokens}
	if o.NumPredict == 0 {
		o.NumPredict = -1 // up to the window's end
	}
	req.Options = o
	if r.Logprobs {
		req.TopLogprobs = topLogprobs
	}
	if len(r.Choice) > 0 {
		format, err := json.Marshal(map[string]any{"type": "string", "enum": r.Choice})
		if err != nil {
			return nil, fault.As(fault.Internal, err)
		}
		req.Format = format
	}
	return req, nil
}

func (c *Client) keepAlive() string {
	if c.c.KeepAlive < 0 {
		return "-1s"
	}
	return c.c.KeepAlive.String()
}

func (c *Client) think(model string) any {
	switch how := c.c.Think[model]; how {
	case "":
		return false
	case "true":
		return true
	default:
		return how
	}
}

// join reads the lines of a reply into one.
func (c *Client) join(body []byte, model string) (llm.ChatReply, error) {
	var reply llm.ChatReply
	var content, thought strings.Builder
	dec := json.NewDecoder(bytes.NewReader(body))
	for pieces := 1; ; pieces++ {
		var raw json.RawMessage
		var p chatPiece
		if dec.Decode(&raw) != nil || json.Unmarshal(raw, &p) != nil {
			if pieces > 1 && dec.InputOffset() >= int64(len(bytes.TrimRight(body, "\n"))) {
				return reply, fault.At(fault.Unavailable, c.ep.Name(), "look at the server's log", "the reply broke off after %d pieces", pieces-1)
			}
			return reply, c.ep.Unreadable("it is not the JSON of /api/chat")
		}
		if len(p.Error) > 0 && string(p.Error) != "null" {
			return reply, c.ep.InBand(raw, model)
		}
		content.WriteString(p.Message.Content)
		thought.WriteString(p.Message.Thinking)
		for _, l := range p.Logprobs {
			t := llm.Token{TokenProb: l.prob()}
			for _, a := range l.Top {
				t.Top = append(t.Top, a.prob())
			}
			reply.Tokens = append(reply.Tokens, t)
		}
		if !p.Done {
			continue
		}
		reply.Content, reply.Reasoning = content.String(), thought.String()
		reply.FinishReason, reply.Model = p.Reason, p.Model
		reply.PromptTokens, reply.CompletionTokens, reply.Load = p.Prompt, p.Eval, time.Duration(p.Load)
		reply.Raw = bytes.TrimSpace(body)
		if pieces > 1 || reply.Tokens != nil {
			whole, err := whole(raw, message{Role: "assistant", Content: reply.Content, Thinking: reply.Reasoning})
			if err != nil {
				return reply, err
			}
			reply.Raw = whole
		}
		return reply, nil
	}
}

// whole is the last line with the joined message, as the server gives it
// unstreamed, without log-probabilities.
func whole(last json.RawMessage, m message) ([]byte, error) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(last))
	d.UseNumber() // durations are larger than a float64 holds exactly
	if err := d.Decode(&fields); err != nil {
		return nil, fault.As(fault.Internal, err)
	}
	fields["message"] = m
	delete(fields, "logprobs")
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return nil, fault.As(fault.Internal, err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// chosen takes a JSON string out of its quotes where that is one of the choices;
// anything else stays what the server said.
func chosen(content string, choice []string) string {
	var s string
	if json.Unmarshal([]byte(content), &s) == nil && slices.Contains(choice, s) {
		return s
	}
	return content
}
