package llm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Chatter answers prompts.
//
// Contract: one call is one prompt without history. A reply that the server
// calls a success is returned as it is, also one that is empty or cut off: what
// it is worth is for the caller to say. Errors have the kind that says what to
// do: Exhausted (a limit or a full queue, with RetryAfter where the server names
// one) and Unavailable (down, slow, loading, broken off) after the adapter's own
// retries; Denied (the key); NotFound (no such model); Invalid (the request can
// never succeed: a prompt over the window, an option that the model does not
// have). No message holds a key, a prompt or a reply. A cancelled context gives
// the context's error. Implementations are safe for concurrent use, and hold
// at most their endpoint's number of calls in flight.
type Chatter interface {
	Capabilities() Capabilities
	Chat(ctx context.Context, r ChatRequest) (ChatReply, error)
}

// ChatRequest is one prompt.
type ChatRequest struct {
	Model    string
	Adapter  string // a LoRA adapter's name, in the place of Model where the server has it
	System   string
	User     string
	Sampling memory.Sampling // always sent whole: servers have other defaults
	// Schema is the JSON Schema that the reply must follow, and Choice the texts
	// that it must be one of; at most one of them is set. A server that cannot
	// enforce it is not sent it: see Capabilities.
	Schema json.RawMessage
	Choice []string
	// Window is the context window that the call needs, in tokens of the server;
	// 0 leaves it to the server. Only a server with WindowControl is told.
	Window int
	// Logprobs asks for the log-probabilities of the reply's tokens. A server that
	// does not give them is not asked: see Capabilities.
	Logprobs bool
}

// ChatReply is what the server answered.
type ChatReply struct {
	Content          string
	Reasoning        string // a thought that the server took out of the content
	FinishReason     string // "stop", "length", or what the server says
	Model            string // as the server names it
	PromptTokens     int    // the server's count; 0 when it gives none
	CompletionTokens int
	Latency          time.Duration
	Load             time.Duration // of it, loading the model; 0 when unsaid
	// Tokens are what was generated, in order; a thought that the server took out
	// may stand before the content's. Empty when not asked for or not offered.
	Tokens []Token
	// Raw is the body for the log's blob: as it came, without log-probabilities,
	// which are a hundred times the size of the text.
	Raw []byte
}

// Token is a token of a reply, with the likeliest ones in its place, itself
// included where it is among them; likeliest first.
type Token struct {
	TokenProb
	Top []TokenProb
}

// TokenProb is a token and its natural log-probability.
type TokenProb struct {
	Token   string // its bytes, which may end inside a character
	Logprob float64
}

// Prob is a token as servers give it. Its bytes count where there are any: a token
// that ends inside a character has no text of its own.
func Prob[N int | int64](text string, bytes []N, logprob float64) TokenProb {
	b := make([]byte, len(bytes))
	for i, n := range bytes {
		if n < 0 || n > 255 {
			return TokenProb{text, logprob}
		}
		b[i] = byte(n)
	}
	if len(b) > 0 {
		text = string(b)
	}
	return TokenProb{text, logprob}
}

// Capabilities are what an endpoint can be asked for.
type Capabilities struct {
	WindowControl   bool // a request says how large a window it needs
	TruncateControl bool // a request can forbid a silent cut of its prompt
	Choice          bool // a reply can be held to a set of texts
	Schema          bool // a reply can be held to a JSON Schema
	Logprobs        bool
	Adapters        bool // LoRA by request
	Rerank          bool
	Dimensions      bool // of embeddings, by request
}

// Info is what an endpoint says of a model.
type Info struct {
	Model  string
	Window int // tokens that it holds now, or would when loaded; 0 when unsaid
	Loaded bool
}

// Prober looks at an endpoint before it is relied on.
type Prober interface {
	// Models lists what the endpoint serves. An error says that it cannot be
	// reached or refuses the key.
	Models(ctx context.Context) ([]Info, error)
}

// Reranker orders passages by a cross-encoder.
type Reranker interface {
	// Rerank gives one score for each document, in their order; the greater the
	// better. Scores of two calls are not comparable.
	Rerank(ctx context.Context, model, query string, documents []string) ([]float64, error)
}
