package preflight_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/preflight"
)

// server is a model server as its numbers say.
type server struct {
	models   []llm.Info
	err      error   // of the list
	factor   float64 // its tokens for one of ours
	template int
	window   int   // prompts over it are cut to half of it; 0: none is
	chat     error // of a call
	silent   bool  // it counts nothing
	trained  int   // > 0: a call says how large a window it wants, and gets no more than this
	calls    int
	asked    []int
}

func count(text string) int { return len(strings.Fields(text)) }

func (s *server) Capabilities() llm.Capabilities {
	return llm.Capabilities{WindowControl: s.trained > 0}
}

func (s *server) Models(context.Context) ([]llm.Info, error) { return s.models, s.err }

func (s *server) Chat(_ context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	s.calls++
	if s.trained > 0 {
		s.asked = append(s.asked, r.Window)
		s.models[0].Window = min(r.Window, s.trained)
	}
	if s.chat != nil {
		return llm.ChatReply{}, s.chat
	}
	n := int(s.factor*float64(count(r.User))) + s.template
	if s.window > 0 && n > s.window {
		n = s.window / 2
	}
	if s.silent {
		n = 0
	}
	return llm.ChatReply{Content: "ok", FinishReason: "stop", PromptTokens: n}, nil
}

func TestCheck(t *testing.T) {
	t.Parallel()
	there := []llm.Info{{Model: "other"}, {Model: "small:latest", Window: 16384}}
	down := fault.At(fault.Unavailable, "local", "start it: ollama serve", "connection refused")
	for name, tc := range map[string]struct {
		s      server
		failed string // check
		cure   string
		factor float64
		tmpl   int
	}{
		"all is well":         {s: server{models: there, factor: 1, template: 30}, factor: 1, tmpl: 30},
		"counts otherwise":    {s: server{models: there, factor: 1.5, template: 12}, factor: 1.5, tmpl: 12},
		"does not answer":     {s: server{err: down}, failed: "reach", cure: "ollama serve"},
		"model not there":     {s: server{models: there[:1]}, failed: "model", cure: "ollama pull small"},
		"window too small":    {s: server{models: []llm.Info{{Model: "small", Window: 2048}}, factor: 1, template: 30}, failed: "window", cure: "num_ctx 8030", factor: 1, tmpl: 30},
		"their tokens weigh":  {s: server{models: []llm.Info{{Model: "small", Window: 5000}}, factor: 1.5, template: 0}, failed: "window", cure: "num_ctx 12000", factor: 1.5},
		"cuts short prompts":  {s: server{models: there, factor: 1, template: 30, window: 100}, failed: "count", cure: "larger window"},
		"reads half of all":   {s: server{models: there, factor: 0.5, template: 9}, failed: "count", cure: "larger window"},
		"counts nothing":      {s: server{models: there, silent: true}, failed: "count", cure: "usage"},
		"cannot be asked":     {s: server{models: there, chat: fault.At(fault.Denied, "local", "set LLM_API_KEY", "the key is refused")}, failed: "reply", cure: "LLM_API_KEY"},
		"says no window":      {s: server{models: []llm.Info{{Model: "small"}}, factor: 1}, factor: 1},
		"window just so":      {s: server{models: []llm.Info{{Model: "small", Window: 8030}}, factor: 1, template: 30}, factor: 1, tmpl: 30},
		"read in pieces":      {s: server{models: []llm.Info{{Model: "small", Window: 4030}}, factor: 1, template: 30}, factor: 1, tmpl: 30},
		"one token too small": {s: server{models: []llm.Info{{Model: "small", Window: 4029}}, factor: 1, template: 30}, failed: "window", cure: "8030", factor: 1, tmpl: 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tc.s
			r, err := preflight.Check(t.Context(), preflight.Server{Endpoint: "local", Kind: "ollama", Model: "small", Chat: &s, Probe: &s}, preflight.Needs{Window: 8000, Least: 4000, Count: count})
			if err != nil {
				t.Fatal(err)
			}
			failed := ""
			for _, f := range r.Findings {
				if !f.OK {
					failed = f.Check
					if !strings.Contains(f.Cure, tc.cure) {
						t.Errorf("cure %q, want %q in it", f.Cure, tc.cure)
					}
				} else if f.Cure != "" {
					t.Errorf("a cure for what is well: %+v", f)
				}
			}
			if failed != tc.failed || r.OK != (tc.failed == "") || (r.Err() == nil) != r.OK {
				t.Errorf("failed %q, want %q: %+v", failed, tc.failed, r)
			}
			if d := r.TokenFactor - tc.factor; d > 0.01 || d < -0.01 || r.TemplateTokens < tc.tmpl-1 || r.TemplateTokens > tc.tmpl+1 {
				t.Errorf("factor %f, template %d, want %f and %d", r.TokenFactor, r.TemplateTokens, tc.factor, tc.tmpl)
			}
			if s.calls > 6 {
				t.Errorf("%d calls", s.calls)
			}
		})
	}
}

// TestWindowControl: a server that gives the window it is asked for is asked in
// its own tokens, once it is known how they count.
func TestWindowControl(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		factor  float64
		trained int
		ask     []int
		window  int
		ok      bool
	}{
		"counts as we do":    {1, 32768, []int{8000, 8000, 8000, 8000, 8000, 8000, 8010}, 8010, true},
		"its tokens weigh":   {1.5, 32768, []int{8000, 8000, 8000, 8000, 8000, 8000, 12010}, 12010, true},
		"trained for less":   {1.5, 9000, []int{8000, 8000, 8000, 8000, 8000, 8000, 12010}, 9000, true},
		"trained for little": {1, 2048, []int{8000, 8000, 8000, 8000, 8000, 8000, 8010}, 2048, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{models: []llm.Info{{Model: "small"}}, factor: tc.factor, template: 10, trained: tc.trained}
			r, err := preflight.Check(t.Context(), preflight.Server{Endpoint: "local", Kind: "ollama", Model: "small", Chat: s, Probe: s}, preflight.Needs{Window: 8000, Least: 4000, Count: count})
			if err != nil || r.OK != tc.ok || r.Window != tc.window || r.Ask != tc.ask[6] {
				t.Errorf("%+v %v", r, err)
			}
			for i, n := range s.asked {
				if n < tc.ask[i]-1 || n > tc.ask[i]+1 {
					t.Errorf("asked for %v, want %v", s.asked, tc.ask)
				}
			}
			if len(s.asked) != 7 {
				t.Errorf("%d calls", len(s.asked))
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &server{chat: context.Canceled, models: []llm.Info{{Model: "small"}}}
	if _, err := preflight.Check(ctx, preflight.Server{Endpoint: "local", Model: "small", Chat: s, Probe: s}, preflight.Needs{Window: 8000, Least: 4000, Count: count}); err == nil {
		t.Error("a cancelled look says nothing")
	}
}

// grouping counts figures three at a time, as the tokenizers of GPT and Llama do.
type grouping struct{ server }

var figures = regexp.MustCompile(`[0-9]{1,3}`)

func (g *grouping) Chat(ctx context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	out, err := g.server.Chat(ctx, r)
	plain := figures.ReplaceAllString(r.User, "")
	out.PromptTokens = count(plain) + len(figures.FindAllString(r.User, -1)) + 9
	return out, err
}

// TestFactorsByKind: what a token of ours is in theirs hangs on the kind of text.
func TestFactorsByKind(t *testing.T) {
	t.Parallel()
	own := func(s string) int { // one a figure, as Qwen2.5 has it
		digits := 0
		for _, c := range s {
			if '0' <= c && c <= '9' {
				digits++
			}
		}
		return count(figures.ReplaceAllString(s, "")) + digits
	}
	g := &grouping{server{models: []llm.Info{{Model: "small", Window: 16384}}, factor: 1}}
	r, err := preflight.Check(t.Context(), preflight.Server{Endpoint: "local", Model: "small", Chat: g, Probe: &g.server}, preflight.Needs{Window: 8000, Least: 4000, Count: own})
	if err != nil || !r.OK {
		t.Fatalf("%+v %v", r, err)
	}
	if r.DigitFactor > 0.7 || r.TokenFactor < 0.8 || r.MostFactor > 1 || r.MostFactor < r.TokenFactor {
		t.Errorf("words and code %.2f to %.2f, figures %.2f", r.TokenFactor, r.MostFactor, r.DigitFactor)
	}
}

// TestErrKind: a server that is down is asked again by who asked; what only a
// person can cure is not.
func TestErrKind(t *testing.T) {
	t.Parallel()
	there := []llm.Info{{Model: "small", Window: 16384}}
	full := &fault.Error{Kind: fault.Exhausted, Msg: "full", RetryAfter: 7 * time.Second}
	for name, tc := range map[string]struct {
		s     server
		kind  fault.Kind
		after time.Duration
	}{
		"down":          {server{err: fault.New(fault.Unavailable, "down")}, fault.Unavailable, 0},
		"full":          {server{models: there, chat: full}, fault.Exhausted, 7 * time.Second},
		"loading":       {server{models: there, chat: fault.New(fault.Unavailable, "loading")}, fault.Unavailable, 0},
		"the key":       {server{err: fault.New(fault.Denied, "401")}, fault.Invalid, 0},
		"not there":     {server{models: there[:0]}, fault.Invalid, 0},
		"counts little": {server{models: there, factor: 1, template: 30, window: 100}, fault.Invalid, 0},
	} {
		s := tc.s
		r, err := preflight.Check(t.Context(), preflight.Server{Endpoint: "local", Model: "small", Chat: &s, Probe: &s}, preflight.Needs{Window: 8000, Least: 4000, Count: count})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Err(); fault.KindOf(err) != tc.kind || fault.RetryAfterOf(err) != tc.after || err == nil {
			t.Errorf("%s: %v, kind %s after %s", name, err, fault.KindOf(err), fault.RetryAfterOf(err))
		}
	}
}
