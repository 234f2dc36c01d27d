package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Plan is what would decide in a project, as it is configured.
type Plan struct {
	Model    gru.Model
	Measured bool // the factors and TemplateTokens are a preflight's
	Cost     func(model string, promptTokens, completionTokens int) float64
	Sends    []Destination
}

// Destination is where texts of a project go.
type Destination struct {
	Use      string `json:"use"` // gate, rewrite, embed, rerank
	Endpoint string `json:"endpoint"`
	URL      string `json:"url"`
	Model    string `json:"model"`
}

// estimateRequest is the body of POST /memory/estimate: the sizes of chunks that
// somebody is about to learn. No text is sent.
type estimateRequest struct {
	Project string `json:"project"`
	Chunks  []int  `json:"chunks"` // tokens of each
	Query   string `json:"query"`  // an ad-hoc question in the place of the standing ones

	only func(catalog.Stream) bool // of the standing ones; nil: all
	by   *models.Pick              // in the place of the project's models
	anew bool                      // over all chunks that are admitted, from an empty memory
}

// Estimate is its answer: what learning would cost, and where texts would go. No
// model is called for it.
type Estimate struct {
	Project   string        `json:"project"`
	Policy    string        `json:"policy"`
	Questions int           `json:"questions"`
	Chunks    int           `json:"chunks"`
	Tokens    int           `json:"tokens"`
	Sends     []Destination `json:"sends"` // empty: nothing leaves this Mneme
	Estimate  cost.Range    `json:"estimate"`
	Budget    *cost.Budget  `json:"budget,omitempty"` // of a day
	Spent     *cost.Amount  `json:"spent,omitempty"`  // today
}

// Bounds of a request: chunks of a year of work, and one chunk's tokens.
const (
	maxEstimateBody = 8 << 20
	maxChunkTokens  = 1 << 20
)

func (f *Function) postEstimate(w http.ResponseWriter, r *http.Request) {
	var b estimateRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEstimateBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, chunks, query}", "%v", err))
		return
	}
	if !memory.ValidName(b.Project) {
		serve.WriteError(w, badProject(b.Project))
		return
	}
	for _, n := range b.Chunks {
		if n < 0 || n > maxChunkTokens {
			serve.WriteError(w, fault.At(fault.Invalid, "chunks", "", "a chunk of %d tokens; at most %d", n, maxChunkTokens))
			return
		}
	}
	e, err := f.estimate(r.Context(), b)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, e)
}

// seenSteps bounds how many past steps of a stream an estimate looks at: enough
// for rates, whatever the log has grown to.
const seenSteps = 400

func (f *Function) estimate(ctx context.Context, b estimateRequest) (Estimate, error) {
	e := Estimate{Project: b.Project, Policy: f.cfg.Policy.Name(), Sends: append([]Destination{}, f.cfg.Sends...)}
	scrub, err := f.scrubbed(ctx, b.Project)
	if err != nil {
		return e, err
	}
	if b.anew {
		if b.Chunks, err = f.admittedChunks(ctx, scrub, b.Project); err != nil {
			return e, err
		}
	}
	e.Chunks = len(b.Chunks)
	for _, n := range b.Chunks {
		e.Tokens += n
	}
	streams, err := f.cfg.Catalog.Streams(ctx, b.Project)
	if err != nil {
		return e, err
	}
	if b.Query != "" {
		streams = []catalog.Stream{{Name: memory.AdhocStream(b.Query, ""), Question: b.Query, BudgetTokens: catalog.AdhocBudget}}
	}
	streams = slices.DeleteFunc(streams, func(s catalog.Stream) bool {
		return s.Only != 0 || b.only != nil && !b.only(s) // an ad-hoc one folds its one part
	})
	var plan *Plan
	if f.cfg.Plan != nil {
		plan = f.cfg.Plan(b.Project, b.by)
	}
	if plan == nil {
		e.Questions = len(streams)
		return e, nil
	}
	m := &plan.Model
	e.Policy, e.Sends = m.Policy, slices.Concat(plan.Sends, e.Sends)
	seen, err := f.seen(ctx, b.Project, m.Name)
	if err != nil {
		return e, err
	}
	for _, s := range streams {
		c, err := f.cursor(ctx, scrub, b.Project, s.Name)
		if err != nil {
			return e, err
		}
		if b.anew {
			c.State.Tokens = 0
		}
		cfg := &gru.Config{Question: s.Question, BudgetTokens: s.BudgetTokens, Count: f.cfg.Count, Model: m}
		r := cost.Estimate(work(cfg, plan, b.Chunks, c.State.Tokens, seen))
		if e.Questions++; e.Questions > 1 {
			r = e.Estimate.Plus(r)
		}
		e.Estimate = r
	}
	if b.Query == "" && len(streams) > 0 {
		up, ok, err := f.cfg.Catalog.Synthesis(ctx, b.Project)
		if err != nil {
			return e, err
		}
		if ok {
			e.Estimate = e.Estimate.Plus(upward(plan, up, len(streams), seen, f.cfg.Count))
		}
	}
	if f.cfg.Budget != nil {
		if d := f.cfg.Budget(b.Project); !d.None() {
			spent, err := cost.Spent(ctx, f.cfg.Log, b.Project, f.cfg.Now())
			if err != nil {
				return e, err
			}
			e.Budget, e.Spent = &d, &spent
		}
	}
	return e, nil
}

// upward is what the synthesis may take: nothing where no memory changes, else a run
// over all of them, each as large as it may be. Parts that are learned one after
// another may each lead to one.
func upward(plan *Plan, s catalog.Stream, questions int, seen *cost.Figures, count func(string) int) cost.Range {
	sizes := make([]int, questions)
	for i := range sizes {
		sizes[i] = catalog.StandingBudget
	}
	cfg := &gru.Config{Question: s.Question, BudgetTokens: s.BudgetTokens, Count: count, Model: &plan.Model}
	r := cost.Estimate(work(cfg, plan, sizes, 0, seen))
	r.Low = cost.Bound{}
	return r
}

// admittedChunks are the sizes of all chunks of a project, in tokens.
func (f *Function) admittedChunks(ctx context.Context, scrub, project string) (out []int, err error) {
	for line, err := range f.admits(ctx, project, 0) {
		if err != nil {
			return nil, err
		}
		p, err := f.part(ctx, scrub, project, line.Source)
		if err != nil {
			return nil, err
		}
		for i := range p.chunks {
			out = append(out, p.chunks[i].Tokens)
		}
	}
	return out, nil
}

// unmeasured is how far a server's count may lie from the own one before a
// preflight has measured it: other tokenizers take up to a third more for code.
var unmeasured = [2]float64{1, 1.35}

func work(cfg *gru.Config, p *Plan, chunks []int, now int, seen *cost.Figures) cost.Work {
	m := &p.Model
	w := cost.Work{
		Chunks: chunks, Room: [2]int{cfg.SectionRoom(min(now, cfg.BudgetTokens)), cfg.SectionRoom(cfg.BudgetTokens)}, Frame: cfg.PromptTokens(gru.CallDecide), Template: m.TemplateTokens,
		MemoryNow: now, MemoryBudget: cfg.BudgetTokens, Factor: unmeasured, ReplyTokens: m.ReplyTokens, Seen: seen,
	}
	if p.Measured {
		w.Factor = [2]float64{m.TokenFactor, max(m.TokenFactor, m.MostFactor)}
	}
	if m.Rewrite != "" {
		w.Split, w.Frame, w.RewriteFrame = true, cfg.PromptTokens(gru.CallGate), cfg.PromptTokens(gru.CallRewrite)
	}
	const many = 1_000_000 // a price of one token is below what a float of one call shows well
	if p.Cost != nil {
		w.PromptUSD, w.CompletionUSD = p.Cost(m.Name, many, 0)/many, p.Cost(m.Name, 0, many)/many
		w.RewritePromptUSD, w.RewriteCompletionUSD = p.Cost(m.Rewrite, many, 0)/many, p.Cost(m.Rewrite, 0, many)/many
	}
	return w
}

// seen are the figures of a model's latest steps in a project.
func (f *Function) seen(ctx context.Context, project, model string) (*cost.Figures, error) {
	var out cost.Figures
	streams, err := f.cfg.Log.Streams(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, s := range streams {
		head, err := f.cfg.Log.Head(ctx, project, s)
		if err != nil {
			return nil, err
		}
		n := 0
		for seq := head.Seq; seq > 0 && n < seenSteps; seq-- {
			seg, err := f.cfg.Log.Segment(ctx, project, s, seq)
			if err != nil {
				return nil, err
			}
			for _, r := range seg.Records {
				if g, ok := r.(*memory.Gate); ok && g.Model == model && g.PromptTokens > 0 {
					out.Add(g)
					n++
				}
			}
		}
	}
	return &out, nil
}
