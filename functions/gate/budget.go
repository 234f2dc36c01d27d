package gate

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
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

// Paused is a project whose budget of the day is spent, or whose server cut a prompt.
type Paused struct {
	Project string    `json:"project"`
	Reason  string    `json:"reason"`
	Hint    string    `json:"hint"`
	Until   time.Time `json:"until"`

	spent bool // the budget; else the server
}

// ledger is the project's, one for all that this process asks: what a call that
// outlives its slice did cost is settled with the next one.
func (f *Function) ledger(project string) *cost.Ledger {
	if l, ok := f.ledgers.Load(project); ok {
		return l.(*cost.Ledger)
	}
	var b cost.Budget
	if f.cfg.Budget != nil {
		b = f.cfg.Budget(project)
	}
	l, _ := f.ledgers.LoadOrStore(project, cost.Open(f.cfg.Log, project, b, f.cfg.Now))
	return l.(*cost.Ledger)
}

func (f *Function) pause(ctx context.Context, project string, err error, span time.Duration) {
	p := Paused{Project: project, Reason: err.Error(), Hint: fault.HintOf(err), Until: f.cfg.Now().Add(span).UTC(), spent: errors.Is(err, cost.ErrSpent)}
	f.paused.Store(project, p)
	f.cfg.Logger.WarnContext(ctx, "the project pauses", slog.String("project", project), slog.Time("until", p.Until), slog.Any("err", err))
}

func (f *Function) pausedAt(project string) (Paused, bool) {
	v, ok := f.paused.Load(project)
	if !ok {
		return Paused{}, false
	}
	p := v.(Paused)
	if !f.cfg.Now().Before(p.Until) {
		f.paused.Delete(project)
		return Paused{}, false
	}
	return p, true
}

// Paused lists the projects that wait, as this process knows.
func (f *Function) Paused() []Paused {
	out := []Paused{}
	f.paused.Range(func(k, _ any) bool {
		if p, ok := f.pausedAt(k.(string)); ok {
			out = append(out, p)
		}
		return true
	})
	slices.SortFunc(out, func(a, b Paused) int { return strings.Compare(a.Project, b.Project) })
	return out
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
