// Package preflight looks at model servers before a run relies on them, and says
// what to do about what it finds.
//
// Invariant: a run that passed has a gate model that is present, whose window
// holds the run's sum of instructions, question, memory, section and reply, and
// whose token counts are known in terms of the own ones, so that a prompt which
// the server cuts is noticed (specs of Ollama and vLLM: both may answer 200 to a
// prompt of which they read half).
//
//	check       finding                                   what to do
//	reach       local does not answer                      start it: ollama serve
//	model       qwen2.5:3b-instruct is not there           ollama pull qwen2.5:3b-instruct
//	reply       it gives no reply                          what the server's error says
//	count       its counts are 1.31 times ours             (measured; nothing to do)
//	window      it holds 4,096 tokens, 8,350 are needed    PARAMETER num_ctx 12288 in its Modelfile
//	constraint  it answers outside a schema that it was    (good: tags are asked for; the cure is
//	            sent, and says nothing                      for who wants JSON)
//
// The package makes a few short calls and keeps nothing. It judges no quality.
package preflight

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Server is one model at one endpoint.
type Server struct {
	Endpoint string // its name
	Kind     string // ollama, vllm, …: words the cures
	Model    string
	Adapter  string
	Chat     llm.Chatter
	Probe    llm.Prober // nil: models are not listed
}

// Needs is what a run asks of a model.
type Needs struct {
	// Window is what a run would have, and Least what it cannot do without, in
	// tokens by the own count, prompt and reply together. Between the two long
	// chunks are read in pieces.
	Window, Least int
	Count         func(string) int // Qwen2.5 tokens
}

// Finding is one check.
type Finding struct {
	Check string `json:"check"` // reach | model | reply | count | window | constraint; see embed.go for the others
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	// Cure says what to do about it; of a constraint that does not hold also where
	// OK is true.
	Cure string `json:"cure,omitempty"`
}

// Result is what a model turned out to be.
type Result struct {
	Use      string    `json:"use,omitempty"` // embed, rerank; "" of what gates and rewrites
	Server   string    `json:"server"`        // endpoint/model
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
	// Window is what the server holds, in its own tokens; 0 when it does not say.
	Window int `json:"window"`
	// TokenFactor is its count over ours, for the kind of text, words or code, of which
	// it makes the fewest: a prompt that is counted below that was cut. MostFactor is
	// that of the kind of which it makes the most: what fits by it fits. DigitFactor is
	// that of figures, each of which is a token of ours; others take up to three at once.
	TokenFactor float64 `json:"token_factor"`
	MostFactor  float64 `json:"most_factor"`
	DigitFactor float64 `json:"digit_factor"`
	// ForeignFactor is the lesser of those of Chinese and Russian: a vocabulary made for
	// English takes two to four times our tokens for other scripts.
	ForeignFactor  float64 `json:"foreign_factor"`
	TemplateTokens int     `json:"template_tokens"` // what its chat template adds to a prompt
	// Ask is the window to ask for in each call, in its tokens: another one would
	// make the server load the model anew. 0 where it cannot be asked.
	Ask int `json:"ask,omitempty"`
	// Schema says that a reply was seen to be held to a JSON Schema.
	Schema bool `json:"schema,omitempty"`
	// Logprobs says that a reply came with the log-probabilities of its tokens.
	Logprobs bool    `json:"logprobs,omitempty"`
	WarmupMS float64 `json:"warmup_ms"` // of the first call, loading the model

	silence error // of a server that gave no answer; its kind is Err's
}

// Err is the first finding that is not good, as an error with its cure; nil when
// all are. It is Invalid, which only a person cures, but for a server that is down
// or full: that is Unavailable or Exhausted, and asked again.
func (r *Result) Err() error {
	for _, f := range r.Findings {
		if f.OK {
			continue
		}
		e := &fault.Error{Kind: fault.Invalid, Where: "model " + r.Server, Hint: f.Cure, Msg: f.Found}
		if kind := fault.KindOf(r.silence); kind == fault.Unavailable || kind == fault.Exhausted {
			e.Kind, e.RetryAfter = kind, fault.RetryAfterOf(r.silence)
		}
		return e
	}
	return nil
}

// tolerance is how far two counts of the same text may lie apart before the
// factor counts as unknown: 2 % (models.md section 7) of some hundred tokens.
const tolerance = 0.02

// Check looks at s. A server that cannot be asked is a finding; the error is of
// a context that ended.
func Check(ctx context.Context, s Server, n Needs) (Result, error) {
	r := Result{Server: s.Endpoint + "/" + s.Model}
	say := func(check string, ok bool, cure, format string, args ...any) bool {
		if ok {
			cure = ""
		}
		r.Findings = append(r.Findings, Finding{Check: check, OK: ok, Found: fmt.Sprintf(format, args...), Cure: cure})
		return ok
	}
	silent := func(err error) {
		r.silence = err
		say("reply", false, fault.HintOf(err), "%s gives no reply: %v", s.Model, err)
	}
	done := func() (Result, error) {
		r.OK = true
		for _, f := range r.Findings {
			r.OK = r.OK && f.OK
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		return r, nil
	}
	if s.Probe != nil {
		models, err := s.Probe.Models(ctx)
		if err != nil {
			r.silence = err
			say("reach", false, fault.HintOf(err), "%s does not answer: %v", s.Endpoint, err)
			return done()
		}
		say("reach", true, "", "%s answers", s.Endpoint)
		at, ok := find(models, s.Model)
		if !say("model", ok, missing(s), "%s is %sthere", s.Model, map[bool]string{false: "not "}[ok]) {
			return done()
		}
		r.Window = at.Window
	}
	// The first call loads the model; its time is not the gate's.
	start := time.Now()
	control := s.Chat.Capabilities().WindowControl
	if control {
		r.Ask = n.Window
	}
	short, err := r.first(ctx, s)
	r.WarmupMS = float64(time.Since(start).Milliseconds())
	if err != nil {
		silent(err)
		return done()
	}
	r.loaded(ctx, s)
	var long [len(countProbes)]int
	for i, text := range countProbes {
		if long[i], err = ask(ctx, s, r.Ask, text); err != nil {
			silent(err)
			return done()
		}
	}
	r.measure(n.Count, short, long, say)
	if need := r.theirs(n.Window); control && r.Window > 0 && r.Window < need { // it was asked for our tokens, and its own are smaller
		r.Ask = need
		if _, err := ask(ctx, s, r.Ask, probeShort); err != nil {
			silent(err)
			return done()
		}
		r.loaded(ctx, s)
	}
	switch need := r.theirs(n.Window); {
	case r.Window == 0: // it does not say: each prompt's count will
	case r.Window >= need:
		say("window", true, "", "it holds %d tokens; a run needs %d", r.Window, need)
	case r.Window >= r.theirs(n.Least):
		say("window", true, "", "it holds %d of the %d tokens that whole chunks need: long ones are read in pieces", r.Window, need)
	default:
		say("window", false, widen(s, need), "it holds %d tokens; a run needs %d, and at least %d", r.Window, need, r.theirs(n.Least))
		return done()
	}
	f, schema, tried, err := constrained(ctx, s, r.Ask)
	switch {
	case err != nil:
		silent(err)
	case tried:
		r.Findings, r.Schema = append(r.Findings, f), schema
	}
	return done()
}

// theirs is a number of our tokens in the server's, with its template.
func (r *Result) theirs(ours int) int {
	return int(math.Ceil(float64(ours)*max(r.MostFactor, 1))) + r.TemplateTokens
}

// loaded notes what a loaded model says that it holds.
func (r *Result) loaded(ctx context.Context, s Server) {
	if s.Probe == nil {
		return
	}
	if models, err := s.Probe.Models(ctx); err == nil {
		if at, ok := find(models, s.Model); ok && at.Window > 0 {
			r.Window = at.Window
		}
	}
}

// measure finds what a token of ours is in theirs, from a short text and one of each
// kind.
func (r *Result) measure(count func(string) int, short int, long [len(countProbes)]int, say func(string, bool, string, string, ...any) bool) {
	if short <= 0 || slices.Min(long[:]) <= 0 {
		say("count", false, "use a server that reports usage: without it a prompt that is cut goes unnoticed", "the server does not count prompt tokens")
		return
	}
	own := count(probeShort)
	var f [len(countProbes)]float64
	for i, text := range countProbes {
		n := count(text)
		f[i] = float64(long[i]-short) / float64(n-own)
		if f[i] < leastFactor[i] || f[i] > mostFactor {
			say("count", false, "the server reads only a part of what it is sent, or counts something else: give the model a larger window, and look at what stands between it and the model",
				"it counts %d tokens for a text of %d, after %d for one of %d: %.2f for one", long[i], n, short, own, f[i])
			return
		}
		if math.Abs(f[i]-1) < tolerance {
			f[i] = 1
		}
	}
	r.TokenFactor, r.DigitFactor, r.MostFactor = min(f[probeWords], f[probeCode]), f[probeDigits], max(f[probeWords], f[probeCode], f[probeDigits])
	r.ForeignFactor = min(f[probeChinese], f[probeRussian])
	r.TemplateTokens = max(int(math.Round(float64(short)-f[probeWords]*float64(own))), 0)
	say("count", true, "", "its counts are %.2f times ours for words, %.2f for code, %.2f for figures, %.2f for other scripts; its template adds %d tokens", f[probeWords], f[probeCode], f[probeDigits], r.ForeignFactor, r.TemplateTokens)
}

// The texts of the probe, of the kinds that transcripts hold. The short one stands at
// the end of each, so that the difference is the text's own.
const probeShort = "Say ok."

const (
	probeWords = iota
	probeCode
	probeDigits
	probeChinese
	probeRussian
)

var countProbes = [...]string{
	probeWords: strings.Repeat("We decided to cap retries at 5, because the upstream bans us after 10 in 60 s; see retry.go:41 (maxRetries). ", 7) + probeShort,
	probeCode: strings.Repeat("func (c *Client) retryAfter(h http.Header, now time.Time) (time.Duration, error) {\n\tif v := strings.TrimSpace(h.Get(\"Retry-After\")); v != \"\" {\n\t\treturn parseDelay(v, now), nil // RFC 9110\n\t}\n"+
		"{\"level\":\"error\",\"path\":\"/var/lib/app/node_modules/left-pad/index.js\",\"code\":\"ERR_MODULE_NOT_FOUND\"}\n", 3) + probeShort,
	probeDigits:  strings.Repeat("20260301 114205 8841730 192168001017 4096 65536 ", 6) + probeShort,
	probeChinese: strings.Repeat("我们决定把重试次数限制为五次，因为上游服务会封禁我们。 部署由她负责，缓存保留十分钟。 ", 4) + probeShort,
	probeRussian: strings.Repeat("Мы решили ограничить число повторов пятью, потому что сервер нас блокирует. Кэш хранится десять минут. ", 4) + probeShort,
}

// leastFactor is the fewest tokens that a tokenizer in use makes of one of ours, by the
// kind of text, with slack: of words and code all are near 1, of figures those that take
// three at once have 0.4, and vocabularies larger than ours have some shorter words. A
// server below that has cut its prompts already.
var leastFactor = [len(countProbes)]float64{probeWords: 0.7, probeCode: 0.6, probeDigits: 0.25, probeChinese: 0.5, probeRussian: 0.5}

// mostFactor is the most: a vocabulary of bytes alone makes six of one.
const mostFactor = 8

// first is the first call. It asks for log-probabilities where they are declared,
// and without them where that is refused, as OpenAI's reasoning models do.
func (r *Result) first(ctx context.Context, s Server) (int, error) {
	if !s.Chat.Capabilities().Logprobs {
		return ask(ctx, s, r.Ask, probeShort)
	}
	req := request(s, r.Ask, probeShort)
	req.Logprobs = true
	got, err := s.Chat.Chat(ctx, req)
	if fault.Is(err, fault.Invalid) {
		return ask(ctx, s, r.Ask, probeShort)
	}
	r.Logprobs = len(got.Tokens) > 0
	return got.PromptTokens, err
}

// ask makes one short call and gives the server's prompt count.
func ask(ctx context.Context, s Server, window int, text string) (int, error) {
	r, err := s.Chat.Chat(ctx, request(s, window, text))
	return r.PromptTokens, err
}

func request(s Server, window int, text string) llm.ChatRequest {
	return llm.ChatRequest{
		Model: s.Model, Adapter: s.Adapter, User: text, Window: window,
		Sampling: memory.Sampling{TopP: 1, Seed: 1, MaxTokens: 8},
	}
}

// find looks a model up as servers write names: Ollama adds ":latest".
func find(models []llm.Info, name string) (llm.Info, bool) {
	for _, m := range models {
		if m.Model == name || m.Model == name+":latest" {
			return m, true
		}
	}
	return llm.Info{}, false
}

func missing(s Server) string {
	if s.Kind == "ollama" {
		return "ollama pull " + s.Model
	}
	return "serve it, or name one that the endpoint lists"
}

func widen(s Server, need int) string {
	if s.Kind == "ollama" {
		return fmt.Sprintf("PARAMETER num_ctx %d in its Modelfile and ollama create, or OLLAMA_CONTEXT_LENGTH=%d; else a smaller memory budget", need, need)
	}
	return fmt.Sprintf("serve it with a longer context (vLLM: --max-model-len %d); else a smaller memory budget", need)
}
