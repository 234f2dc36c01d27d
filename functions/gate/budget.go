package gate

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
)

// errPaused ends a run whose project has spent its budget: no failure, and no
// reason to come again before the day is over.
var errPaused = errors.New("the run is paused")

// cutPause is how long a project waits after its server cut a prompt: each try costs a
// call and leaves a step undecided, and only a person can cure it.
const cutPause = 10 * time.Minute

// Paused is a project that waits.
type Paused = cost.Paused

func (f *Function) pause(ctx context.Context, project string, err error, span time.Duration) {
	p := f.pauses.Set(project, err, span)
	f.cfg.Logger.WarnContext(ctx, "the project pauses", slog.String("project", project), slog.Time("until", p.Until), slog.Any("err", err))
}

// Paused lists the projects that wait, as this process knows.
func (f *Function) Paused() []Paused { return f.pauses.All() }

// Held says why a stream decides nothing at present, as this process knows, and what
// cures it: its project waits, or its last slice failed. "": it does.
func (f *Function) Held(project, stream string) (reason, hint string) {
	if p, ok := f.pauses.Of(project); ok {
		return "paused until " + p.Until.Format("2006-01-02 15:04") + " UTC: " + p.Reason, p.Hint
	}
	if err, ok := f.stuck.Load(project + "/" + stream); ok {
		return err.(error).Error(), fault.HintOf(err.(error))
	}
	return "", ""
}

// promptMargin is how far a server's count of a text may lie over the factors that
// were measured on others: of go.sum SmolLM2 makes 1.22 times our tokens, of Go code
// 1.25, and of the preflight's code a tenth less.
const promptMargin = 1.25

// most is what a call can cost at the most: its prompt as the server will count
// it, and the longest reply.
func (m *Models) most(c *gru.Call) cost.Amount {
	prompt := int(math.Ceil(float64(c.PromptTokens)*max(m.Model.TokenFactor, m.Model.MostFactor, 1)*promptMargin)) + m.Model.TemplateTokens
	a := cost.Amount{Tokens: int64(prompt + c.Sampling.MaxTokens), Calls: 1}
	if m.Cost != nil {
		a.USD = m.Cost(c.Model, prompt, c.Sampling.MaxTokens)
	}
	return a
}

// billed reports whether a call that failed may have been paid for: the model may
// have read it.
func billed(err error) bool { return !endpoint.NotRun(err) }
