// Package llmtest plays a model server that does what servers were seen to do:
// right answers in both wire forms (Ollama's own and OpenAI's), and every
// misbehaviour that an adapter has to stand. For tests only.
//
// It keeps every request as it came, so that a test can prove where a key went,
// what was repeated and how many calls ran at a time:
//
//	s := llmtest.New(t)
//	s.Play(llmtest.TooMany("1"), llmtest.Text("yes")) // the first request, the second
//	… the adapter calls s.URL …
//	s.Calls() // two, with headers and bodies
//
// A request past the script gets the right answer: what Answer gives, else Reply
// as content, a vector of Dims for each text, scores that fall. It judges nothing
// and holds no model.
package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	Reply  = "<check>yes</check>" // the content of a right answer
	Model  = "small"              // the only model; "missing" is none
	Dims   = 4                    // of its vectors
	Window = 8192                 // of the model once it is loaded
)

// Call is a request as it came.
type Call struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// Field is a field of the request's JSON, by path ("options.num_ctx"); nil
// when it is not there.
func (c Call) Field(path string) any {
	var v any
	if json.Unmarshal(c.Body, &v) != nil {
		return nil
	}
	for _, name := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// Play answers one request.
type Play func(w http.ResponseWriter, r *http.Request, c Call)

// Server is the fault server.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	answer   func(Call) Play
	script   []Play
	calls    []Call
	now, top int // calls that run, and the most that ran at a time
	hold     chan struct{}
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// NewFront is a server before another that shows each load to see first; where
// see answers true, it has answered.
func NewFront(t testing.TB, s *Server, see func(http.ResponseWriter, *http.Request, Call) bool) *httptest.Server {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		c := Call{r.Method, r.URL.Path, r.Header.Clone(), body}
		if c.loads() && see(w, r, c) {
			return
		}
		s.serve(w, r)
	}))
	t.Cleanup(front.Close)
	return front
}

// NewFixed is a server that answers every request with one body.
func NewFixed(t testing.TB, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Body(http.StatusOK, body)(w, r, Call{})
	}))
	t.Cleanup(s.Close)
	return s
}

// Play sets what the next model calls get, in order. A probe (GET,
// /api/show) and a load take none of it.
func (s *Server) Play(p ...Play) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, p...)
}

// Answer sets what a request past the script gets, probes and loads included;
// where f gives nil it is the right answer of a server without a model.
func (s *Server) Answer(f func(Call) Play) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// On is an Answer by paths; loads get the right one.
func On(paths map[string]Play) func(Call) Play {
	return func(c Call) Play {
		if c.loads() {
			return nil
		}
		return paths[c.Path]
	}
}

// Hold makes every model call wait until the returned function is called.
func (s *Server) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hold := make(chan struct{})
	s.hold = hold
	return sync.OnceFunc(func() { close(hold) })
}

// Calls are the requests so far, loads and probes left out.
func (s *Server) Calls() []Call {
	var out []Call
	for _, c := range s.All() {
		if !c.aside() {
			out = append(out, c)
		}
	}
	return out
}

// All are the requests so far.
func (s *Server) All() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Most is how many requests ran at a time at the most, and Running how many do.
func (s *Server) Most() int    { s.mu.Lock(); defer s.mu.Unlock(); return s.top }
func (s *Server) Running() int { s.mu.Lock(); defer s.mu.Unlock(); return s.now }

// Repeats are the bodies that came more than once.
func (s *Server) Repeats() []string {
	seen := map[string]int{}
	var out []string
	for _, c := range s.Calls() {
		key := c.Path + " " + string(c.Body)
		if seen[key]++; seen[key] == 2 {
			out = append(out, key)
		}
	}
	return out
}

// aside reports whether a request is a probe or a load.
func (c Call) aside() bool {
	return c.Method == http.MethodGet || c.Path == "/api/show" || c.loads()
}

func (c Call) loads() bool {
	for _, f := range []string{"messages", "input"} {
		if list, ok := c.Field(f).([]any); ok && len(list) == 0 {
			return true
		}
	}
	return false
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c := Call{r.Method, r.URL.Path, r.Header.Clone(), body}
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.now++
	s.top = max(s.top, s.now)
	answer, hold := s.answer, s.hold
	var play Play
	if !c.aside() && len(s.script) > 0 {
		play, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if play == nil && answer != nil {
		play = answer(c)
	}
	if play == nil {
		play = right
	}
	defer func() { s.mu.Lock(); s.now--; s.mu.Unlock() }()
	if hold != nil && !c.aside() {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	play(w, r, c)
}

// right is what a server without a fault answers.
func right(w http.ResponseWriter, r *http.Request, c Call) {
	if model, _ := c.Field("model").(string); model == "missing" {
		UnknownModel()(w, r, c)
		return
	}
	switch c.Path {
	case "/api/chat":
		if c.loads() {
			send(w, http.StatusOK, map[string]any{"model": Model, "message": map[string]any{"role": "assistant", "content": ""}, "done": true, "done_reason": "load"})
			return
		}
		Text(Reply)(w, r, c)
	case "/v1/chat/completions":
		Text(Reply)(w, r, c)
	case "/api/embed", "/v1/embeddings":
		Vectors(vector)(w, r, c)
	case "/api/tags":
		send(w, http.StatusOK, map[string]any{"models": []any{map[string]any{"name": Model + ":latest", "model": Model + ":latest"}, map[string]any{"name": "other:1b", "model": "other:1b"}}})
	case "/api/ps":
		send(w, http.StatusOK, map[string]any{"models": []any{map[string]any{"name": Model + ":latest", "model": Model + ":latest", "context_length": Window}}})
	case "/api/show":
		send(w, http.StatusOK, map[string]any{"parameters": "num_ctx                        4096\nstop                           \"<|im_end|>\"", "model_info": map[string]any{"general.architecture": "llama", "llama.context_length": 32768}})
	case "/v1/models":
		send(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": Model, "object": "model", "created": 1, "owned_by": "x", "max_model_len": Window}}})
	case "/v1/rerank":
		docs, _ := c.Field("documents").([]any)
		var results []any
		for i := len(docs) - 1; i >= 0; i-- { // best last: the order is not that of the documents
			results = append(results, map[string]any{"index": i, "relevance_score": 1 / float64(i+1)})
		}
		send(w, http.StatusOK, map[string]any{"id": "1", "model": Model, "results": results})
	default:
		http.NotFound(w, r)
	}
}

// vector is a unit vector that depends on the text alone.
func vector(text string) []float64 {
	h := fnv.New64a()
	io.WriteString(h, text)
	v, sum := make([]float64, Dims), 0.0
	for i, bits := 0, h.Sum64(); i < Dims; i, bits = i+1, bits>>16 {
		v[i] = float64(bits&0xffff) + 1
		sum += v[i] * v[i]
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
	return v
}

// Vector is the right vector of a text.
func Vector(text string) []float64 { return vector(text) }

// Chat is a reply in the terms of both forms.
type Chat struct {
	Content, Reasoning, Finish string
	Prompt, Completion         int
	// Tokens are sent when log-probabilities are asked for; where there are none,
	// each word is a token of -0.1 with the alternative "no" of -2.3.
	Tokens []Token
}

// Token is a token with its log-probability and those of the likeliest tokens.
type Token struct {
	Text    string
	Logprob float64
	Top     []Token
}

func (t Token) form() map[string]any {
	bytes := make([]int, len(t.Text))
	for i := range len(t.Text) {
		bytes[i] = int(t.Text[i])
	}
	m := map[string]any{"token": strings.ToValidUTF8(t.Text, "\ufffd"), "logprob": t.Logprob, "bytes": bytes}
	if t.Top != nil {
		var top []any
		for _, a := range t.Top {
			top = append(top, a.form())
		}
		m["top_logprobs"] = top
	}
	return m
}

// tokens are what is sent of a.
func (a Chat) tokens() []any {
	list := a.Tokens
	if list == nil {
		for _, word := range strings.SplitAfter(a.Content, " ") {
			if word != "" {
				list = append(list, Token{word, -0.1, []Token{{word, -0.1, nil}, {"no", -2.3, nil}}})
			}
		}
	}
	var out []any
	for _, t := range list {
		out = append(out, t.form())
	}
	return out
}

// Text is a right reply with this content.
func Text(content string) Play {
	return Chat{Content: content, Finish: "stop", Prompt: 100, Completion: 7}.Play()
}

// Play answers with it.
func (a Chat) Play() Play {
	return func(w http.ResponseWriter, r *http.Request, c Call) {
		var tokens []any
		if c.Field("logprobs") == true {
			tokens = a.tokens()
		}
		if c.Path == "/v1/chat/completions" {
			m := map[string]any{"role": "assistant", "content": a.Content}
			if a.Reasoning != "" {
				m["reasoning"] = a.Reasoning
			}
			if a.Content == "" {
				m["content"] = nil
			}
			choice := map[string]any{"index": 0, "message": m, "finish_reason": a.Finish}
			if tokens != nil {
				choice["logprobs"] = map[string]any{"content": tokens}
			}
			send(w, http.StatusOK, map[string]any{"id": "1", "object": "chat.completion", "created": 1, "model": Model, "choices": []any{choice},
				"usage": map[string]any{"prompt_tokens": a.Prompt, "completion_tokens": a.Completion, "total_tokens": a.Prompt + a.Completion}})
			return
		}
		var lines []any
		piece := func(field, text string) {
			for _, part := range strings.SplitAfter(text, " ") {
				if part == "" {
					continue
				}
				m := map[string]any{"role": "assistant", "content": ""}
				m[field] = part
				line := map[string]any{"model": Model, "message": m, "done": false}
				if len(tokens) > 0 && field == "content" { // a line may hold several
					n := max(1, len(tokens)/2)
					line["logprobs"], tokens = tokens[:n], tokens[n:]
				}
				lines = append(lines, line)
			}
		}
		piece("thinking", a.Reasoning)
		piece("content", a.Content)
		last := map[string]any{"model": Model, "message": map[string]any{"role": "assistant", "content": ""}, "done": true, "done_reason": a.Finish,
			"prompt_eval_count": a.Prompt, "eval_count": a.Completion, "load_duration": int64(5 * time.Millisecond), "total_duration": int64(time.Second)}
		if len(tokens) > 0 {
			last["logprobs"] = tokens
		}
		lines = append(lines, last)
		w.Header().Set("Content-Type", "application/x-ndjson")
		for _, l := range lines {
			b, _ := json.Marshal(l)
			w.Write(append(b, '\n'))
			w.(http.Flusher).Flush()
		}
	}
}

// HalfPrompt is what a server says that cut a prompt of n tokens.
func HalfPrompt(n int) Play {
	return Chat{Content: Reply, Finish: "stop", Prompt: n / 2, Completion: 7}.Play()
}

// Empty is a success without content.
func Empty() Play { return Chat{Finish: "stop", Prompt: 100}.Play() }

// ReasoningOnly is a reply whose length went into the thought.
func ReasoningOnly(thought string) Play {
	return Chat{Reasoning: thought, Finish: "length", Prompt: 100, Completion: 2048}.Play()
}

// Content that a model writes when it is asked for JSON.
const (
	GermanQuotes = `{„check“: “yes”}`
	RawNewlines  = "{\"check\": \"yes\",\n \"update\": \"one\ntwo\"}"
	Fenced       = "```json\n{\"check\": \"yes\"}\n```"
)

// Body answers with a status and bytes as they are.
func Body(status int, body string) Play {
	return func(w http.ResponseWriter, _ *http.Request, _ Call) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// Status answers with an error in the form that the path wants.
func Status(status int, text string) Play {
	return func(w http.ResponseWriter, _ *http.Request, c Call) {
		if strings.HasPrefix(c.Path, "/v1/") {
			send(w, status, map[string]any{"error": map[string]any{"message": text, "type": "api_error", "param": nil, "code": nil}})
			return
		}
		send(w, status, map[string]any{"error": text})
	}
}

// InvalidJSON is a success that is cut off inside.
func InvalidJSON() Play { return Body(http.StatusOK, `{"model":"small","message":{"content":"a`) }

// ErrorIn200 is an error under a success.
func ErrorIn200(text string) Play { return Status(http.StatusOK, text) }

// TooMany is 429; after is the Retry-After, none when empty.
func TooMany(after string) Play {
	return retryLater(http.StatusTooManyRequests, after, "rate limit reached")
}

// QueueFull is what Ollama answers when its queue is.
func QueueFull() Play {
	return retryLater(http.StatusServiceUnavailable, "", "server busy, please try again.  maximum pending requests exceeded")
}

// Later is a status with a Retry-After.
func Later(status int, after string) Play { return retryLater(status, after, "later") }

func retryLater(status int, after, text string) Play {
	return func(w http.ResponseWriter, r *http.Request, c Call) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		Status(status, text)(w, r, c)
	}
}

// UnknownModel is 404 in the words of the form.
func UnknownModel() Play {
	return func(w http.ResponseWriter, r *http.Request, c Call) {
		Status(http.StatusNotFound, fmt.Sprintf("model '%v' not found", c.Field("model")))(w, r, c)
	}
}

// Echo is a 4xx that quotes the key and the whole request back.
func Echo(status int) Play {
	return func(w http.ResponseWriter, r *http.Request, c Call) {
		Status(status, "refused "+c.Header.Get("Authorization")+c.Header.Get("Apikey")+" for "+string(c.Body))(w, r, c)
	}
}

// Reset closes the connection before a byte of an answer.
func Reset() Play {
	return func(w http.ResponseWriter, _ *http.Request, _ Call) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
	}
}

// partial is the beginning of an answer of either form.
func partial(w http.ResponseWriter, c Call) {
	w.WriteHeader(http.StatusOK)
	if strings.HasPrefix(c.Path, "/v1/") {
		io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"content":"a`)
	} else {
		io.WriteString(w, `{"model":"small","message":{"role":"assistant","content":"a"},"done":false}`+"\n")
	}
	w.(http.Flusher).Flush()
}

// BreaksOff closes the connection inside an answer.
func BreaksOff() Play {
	return func(w http.ResponseWriter, _ *http.Request, c Call) {
		partial(w, c)
		panic(http.ErrAbortHandler)
	}
}

// EndsEarly ends an answer of Ollama's form properly, but without its last line.
func EndsEarly() Play { return func(w http.ResponseWriter, _ *http.Request, c Call) { partial(w, c) } }

// MidStream is an error inside an answer of Ollama's form.
func MidStream(text string) Play {
	return func(w http.ResponseWriter, _ *http.Request, c Call) {
		partial(w, c)
		b, _ := json.Marshal(map[string]any{"error": text})
		w.Write(append(b, '\n'))
	}
}

// Stall begins an answer and falls silent until the client leaves.
func Stall() Play {
	return func(w http.ResponseWriter, r *http.Request, c Call) {
		partial(w, c)
		<-r.Context().Done()
	}
}

// Silent takes the request and answers nothing until the client leaves.
func Silent() Play {
	return func(_ http.ResponseWriter, r *http.Request, _ Call) { <-r.Context().Done() }
}

// Slow sends its headers, thinks for d, and answers rightly: a proxy before a
// model that reads a long prompt or is being loaded.
func Slow(d time.Duration) Play {
	return func(w http.ResponseWriter, r *http.Request, c Call) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-time.After(d):
			io.WriteString(w, `{"model":"small","message":{"content":"late"},"done":true,"done_reason":"stop"}`)
		case <-r.Context().Done():
		}
	}
}

// Redirect sends the client to another place.
func Redirect(to string) Play {
	return func(w http.ResponseWriter, r *http.Request, _ Call) {
		http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
	}
}

// Huge is a success of n bytes.
func Huge(n int) Play {
	return func(w http.ResponseWriter, _ *http.Request, _ Call) {
		block := bytes.Repeat([]byte(" "), 64<<10)
		for ; n > 0; n -= len(block) {
			if _, err := w.Write(block[:min(n, len(block))]); err != nil {
				return
			}
		}
	}
}

// Vectors answers with a vector for each text by of. A NaN is written as such,
// which is no JSON.
func Vectors(of func(text string) []float64) Play {
	return func(w http.ResponseWriter, _ *http.Request, c Call) {
		list, _ := c.Field("input").([]any)
		var out []string
		for _, t := range list {
			text, _ := t.(string)
			var parts []string
			for _, x := range of(text) {
				parts = append(parts, fmt.Sprint(x))
			}
			out = append(out, "["+strings.Join(parts, ",")+"]")
		}
		if c.Path == "/api/embed" {
			Body(http.StatusOK, `{"model":"small","embeddings":[`+strings.Join(out, ",")+`],"prompt_eval_count":3}`)(w, nil, c)
			return
		}
		var data []string
		for i := len(out) - 1; i >= 0; i-- { // not in order: index says which is which
			data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, out[i]))
		}
		Body(http.StatusOK, `{"object":"list","model":"small","data":[`+strings.Join(data, ",")+`],"usage":{"prompt_tokens":3,"total_tokens":3}}`)(w, nil, c)
	}
}

// Meaning gives texts vectors by what they are about: a text that holds a word of
// a concept, as it begins, points that way, and one that holds none points at a
// place of its own. It has len(concepts)+own dimensions.
func Meaning(own int, concepts ...[]string) func(text string) []float64 {
	return func(text string) []float64 {
		v := make([]float64, len(concepts)+own)
		h := fnv.New64a()
		io.WriteString(h, text)
		v[len(concepts)+int(h.Sum64()%uint64(own))] = 0.3
		for i, words := range concepts {
			for _, w := range words {
				if strings.Contains(" "+strings.ToLower(text), " "+w) {
					v[i] = 1
				}
			}
		}
		sum := 0.0
		for _, x := range v {
			sum += x * x
		}
		for i := range v {
			v[i] /= math.Sqrt(sum)
		}
		return v
	}
}

// Scores answers a rerank with a score for each document by of, in an order that
// is not theirs.
func Scores(of func(query, document string) float64) Play {
	return func(w http.ResponseWriter, _ *http.Request, c Call) {
		query, _ := c.Field("query").(string)
		docs, _ := c.Field("documents").([]any)
		results := []any{}
		for i := len(docs) - 1; i >= 0; i-- {
			text, _ := docs[i].(string)
			results = append(results, map[string]any{"index": i, "relevance_score": of(query, text)})
		}
		send(w, http.StatusOK, map[string]any{"id": "1", "model": Model, "results": results})
	}
}

// Refusing is Vectors that fails the whole batch with 500 when a text holds bad,
// as a model does that computes NaN for it.
func Refusing(bad string) Play {
	return func(w http.ResponseWriter, r *http.Request, c Call) {
		if strings.Contains(string(c.Body), bad) {
			Status(http.StatusInternalServerError, "failed to encode response: json: unsupported value: NaN")(w, r, c)
			return
		}
		Vectors(vector)(w, r, c)
	}
}

func send(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a map of plain values always encodes
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}
