package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Models is what decides in a project by model calls.
type Models struct {
	Model gru.Model   // names, windows and factors, as the preflight found them
	Gate  llm.Chatter // answers the gate's calls, and all where Rewrite is nil
	// Rewrite answers rewrite and compress calls; only chunks whose gate is open
	// ever reach it.
	Rewrite llm.Chatter
	// GateWindow and RewriteWindow are asked for in each call, in the server's
	// tokens; 0 where a server cannot be asked.
	GateWindow, RewriteWindow int
	// Logprobs says that the gate's server gives log-probabilities: see gru.Score.
	Logprobs bool
	// Doubt is called where a server did what the preflight had found that it would
	// not: it cut a prompt, or refused a call for good. nil: nobody looks again.
	Doubt func()
	// Cost is what a call of a model costs, in US dollars; nil: nothing is known.
	Cost func(model string, promptTokens, completionTokens int) float64
}

// errCut says that a server read less of a prompt than it was sent. The run
// stops: what it would decide is worth nothing.
var errCut = errors.New("the server cut a prompt")

// decide makes the step over one chunk, call after call, and gathers its
// records. A call that fails leaves the stream where it was.
func (f *Function) decide(ctx context.Context, w *writer, cfg *gru.Config, gp *gru.Part, m *Models, chunk gru.ReadChunk) error {
	step := gru.Input{Config: cfg, Part: gp, Event: chunk}
	at := w.next
	for {
		next, effects := gru.Step(at, step)
		var call *gru.Call
		for _, e := range effects {
			switch e := e.(type) {
			case *gru.Call:
				call = e
			case *gru.Append:
				if err := w.take(ctx, func(gru.State) (gru.State, []gru.Record) { return next, e.Records }); err != nil {
					return err
				}
				if cut(e.Records) {
					return errCut
				}
			}
		}
		if call == nil {
			return nil
		}
		for {
			reply, err := f.ask(ctx, w, m, call, w.callKey(call, strconv.Itoa(w.next.T)))
			if err == nil {
				at, step.Event = next, gru.ModelReply{Reply: reply}
				break
			}
			smaller, again, ok := gru.Shrink(next, cfg)
			if !endpoint.OverWindow(err) || !ok {
				return err
			}
			next, call = smaller, again[0].(*gru.Call)
		}
	}
}

// cut reports whether a step found that the server cut its prompt.
func cut(recs []gru.Record) bool {
	for _, r := range recs {
		if g, ok := r.(*memory.Gate); ok && g.TruncatedByServer {
			return true
		}
	}
	return false
}

// callKey names a call: all that the server would be sent, and when in the stream,
// its step or "ahead".
func (w *writer) callKey(c *gru.Call, when string) heldKey {
	h := memory.SumString(fmt.Sprintf("%q %q %v %q %q %q", c.Model, c.Adapter, c.Sampling, c.Prompt.System, c.Prompt.User, c.Schema))
	return heldKey{w.scrub, fmt.Sprintf("%s/%s/%s/%s", w.project, w.stream.Name, when, h)}
}

// answer is what a call was answered; raw is the redacted body, for the blob.
type answer struct {
	reply gru.Reply
	raw   string
}

// ask performs one call and stores the raw reply. A call that was answered
// before is not made again: at temperature 0 it would say the same.
func (f *Function) ask(ctx context.Context, w *writer, m *Models, c *gru.Call, key heldKey) (gru.Reply, error) {
	a, ok := f.answered.Get(key)
	if !ok {
		var err error
		if a, err = f.fly(ctx, w, m, c, key); err != nil {
			return gru.Reply{}, err
		}
	}
	if a.raw != "" {
		var err error
		if a.reply.Blob, err = f.cfg.Log.PutBlob(ctx, w.project, []byte(a.raw)); err != nil {
			return gru.Reply{}, err
		}
	}
	return a.reply, nil
}

// call asks the model's server, within the budget.
func (f *Function) call(ctx context.Context, ledger *cost.Ledger, m *Models, c *gru.Call) (answer, error) {
	server, window, scored := m.Gate, m.GateWindow, m.Logprobs && (c.Kind == gru.CallDecide || c.Kind == gru.CallGate)
	if m.Rewrite != nil && (c.Kind == gru.CallRewrite || c.Kind == gru.CallCompress) {
		server, window = m.Rewrite, m.RewriteWindow
	}
	most := m.most(c)
	if err := ledger.Reserve(ctx, most); err != nil {
		return answer{}, err
	}
	f.calls.Add(1)
	start := time.Now()
	r, err := server.Chat(ctx, llm.ChatRequest{
		Model: c.Model, Adapter: c.Adapter, System: c.Prompt.System, User: c.Prompt.User, Sampling: c.Sampling, Schema: c.Schema, Window: window, Logprobs: scored,
	})
	if err != nil {
		if !billed(err) {
			ledger.Settle(most, cost.Amount{})
		}
		return answer{}, err
	}
	r.PromptTokens, r.CompletionTokens = max(r.PromptTokens, 0), max(r.CompletionTokens, 0)
	a := answer{raw: string(r.Raw), reply: gru.Reply{
		Content: r.Content, Reasoning: r.Reasoning, FinishReason: r.FinishReason,
		PromptTokens: r.PromptTokens, CompletionTokens: r.CompletionTokens,
		LatencyMS: float64(time.Since(start).Microseconds()) / 1000,
	}}
	if scored {
		a.reply.Score = gru.Score(len(c.Schema) > 0, r.Content, tokens(r.Tokens))
	}
	if f.cfg.Redact != nil {
		a.raw = f.cfg.Redact(a.raw)
	}
	if m.Cost != nil {
		a.reply.CostUSD = m.Cost(c.Model, r.PromptTokens, r.CompletionTokens)
	}
	if r.PromptTokens > 0 && r.CompletionTokens >= 0 { // else it may have been anything up to the most
		ledger.Settle(most, cost.Amount{USD: a.reply.CostUSD, Tokens: int64(r.PromptTokens + r.CompletionTokens), Calls: 1})
	}
	return a, nil
}

// tokens are a reply's in the terms of the loop.
func tokens(list []llm.Token) []gru.Token {
	out := make([]gru.Token, len(list))
	for i, t := range list {
		out[i] = gru.Token{Prob: gru.Prob{Text: t.Token, Logprob: t.Logprob}}
		for _, a := range t.Top {
			out[i].Top = append(out[i].Top, gru.Prob{Text: a.Token, Logprob: a.Logprob})
		}
	}
	return out
}

// stopped turns what ended a slice by a model's server into what an operator
// can cure. The records made before it are appended first.
func (f *Function) stopped(ctx context.Context, project, stream string, m *Models, err error) error {
	if kind := fault.KindOf(err); m.Doubt != nil && (errors.Is(err, errCut) || kind == fault.Invalid || kind == fault.NotFound || kind == fault.Denied) {
		m.Doubt()
	}
	if !errors.Is(err, errCut) {
		return err
	}
	f.cfg.Logger.ErrorContext(ctx, "a run stops: the server cut its prompt", slog.String("project", project), slog.String("stream", stream), slog.String("model", m.Model.Name))
	need := int(math.Ceil(float64(m.Model.WindowTokens)*max(m.Model.MostFactor, 1))) + m.Model.TemplateTokens
	return &fault.Error{
		Kind: fault.Invalid, Where: "model " + m.Model.Name, Err: errCut,
		Hint: fmt.Sprintf("give the model a window of %d tokens: PARAMETER num_ctx %d in its Modelfile, or OLLAMA_CONTEXT_LENGTH; --max-model-len with vLLM. Then: mem regate --pending", need, need),
		Msg:  "it read less of a prompt than it was sent, and nothing of the step is in the memory",
	}
}

// models is what decides in the project; nil: the policy.
func (f *Function) models(ctx context.Context, project string) (*Models, error) {
	if f.cfg.Models == nil {
		return nil, nil
	}
	return f.cfg.Models(ctx, project)
}
