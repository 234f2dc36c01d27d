package gate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/serve"
)

// ShadowRequest is the body of POST /memory/shadow.
type ShadowRequest struct {
	Project string `json:"project"`
	Query   string `json:"query"`    // a question id or a stream; absent: every stream
	Model   string `json:"model"`    // the second model
	BaseURL string `json:"base_url"` // of a configured endpoint; absent: the project's own
	Limit   int    `json:"limit"`    // steps of each stream, the latest; 0: all
}

// Shadowed compares a second model with what was decided (brief B16). Its decisions
// are labels; no memory follows from them.
type Shadowed struct {
	Project string       `json:"project"`
	Model   string       `json:"model"`
	Streams []Comparison `json:"streams"`
}

// Comparison is one stream's. First in Table is what was decided, second the model.
type Comparison struct {
	Stream    string      `json:"stream"`
	QueryID   string      `json:"query_id"`
	Model     string      `json:"model"` // that decided last; empty: a policy
	Table     agree.Table `json:"table"`
	Agreement float64     `json:"agreement"`
	CI        [2]float64  `json:"agreement_ci"` // Wilson, 95 %
	Kappa     *float64    `json:"kappa"`        // null where it is not defined
	Unread    int         `json:"unreadable"`   // steps of which the second gave no readable answer
	Now       Side        `json:"now"`
	Then      Side        `json:"then"`
	Differ    []Different `json:"differ"` // the first maxDiffer
	Asked     int         `json:"asked"`  // steps asked by this call; the others stood as labels
}

// Side is what the compared steps took. The gate's question alone is asked of the
// second; of a model that also writes the memory, Now includes that.
type Side struct {
	PromptTokens     int64   `json:"prompt_tokens"`
	CompletionTokens int64   `json:"completion_tokens"`
	USD              float64 `json:"usd"`
	LatencyMS        float64 `json:"latency_ms"` // of a step, on average
}

// Different is a step on which the two differ.
type Different struct {
	T      int        `json:"t"`
	Chunk  memory.SHA `json:"chunk"`
	Admit  int64      `json:"admit"`
	I      int        `json:"i"`
	Now    bool       `json:"now"`
	Then   bool       `json:"then"`
	Reason string     `json:"reason"` // of what was decided
}

const (
	maxDiffer = 100
	// shadowBatch is how many labels stand in one object, and what an interrupted
	// comparison asks again at the most.
	shadowBatch = 16
	// shadowCalls is how many questions are under way; the endpoint's own cap is
	// often lower.
	shadowCalls = 8
)

func (f *Function) postShadow(w http.ResponseWriter, r *http.Request) {
	var b ShadowRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	dec.DisallowUnknownFields()
	err := dec.Decode(&b)
	switch {
	case err != nil:
		err = fault.At(fault.Invalid, "body", "send {project, model, query, base_url, limit}", "%v", err)
	case !memory.ValidName(b.Project):
		err = badProject(b.Project)
	case b.Model == "" || b.Model == models.Builtin:
		err = fault.At(fault.Invalid, "model", "name the second model", "no model to compare with")
	case b.Limit < 0:
		err = fault.At(fault.Invalid, "limit", "", "%d", b.Limit)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	p := serve.NewProgress(w, r)
	out, err := f.Shadow(r.Context(), b, func(done, of int) { p.Line(map[string]int{"done": done, "of": of}) })
	p.End(out, err)
}

// otherModel is the model that a request names, ready to be asked.
func (f *Function) otherModel(ctx context.Context, project, model, baseURL string) (*models.Pick, *Models, error) {
	if f.cfg.Pick == nil || f.cfg.Picked == nil {
		return nil, nil, fault.At(fault.Invalid, "model "+model, "configure its endpoint (MNEME_MODELS)", "no model endpoint is configured")
	}
	pick, err := f.cfg.Pick(project, models.Request{Model: model, GateBaseURL: baseURL})
	if err != nil {
		return nil, nil, err
	}
	m, err := f.cfg.Picked(ctx, project, pick)
	return pick, m, err
}

// Shadow asks the second model about every decided step of the streams, and
// compares. An answer that stands as a label is not asked for again, so that a call
// which was interrupted goes on.
func (f *Function) Shadow(ctx context.Context, b ShadowRequest, progress func(done, of int)) (_ Shadowed, err error) {
	defer fault.Wrap(&err, "shadow %s by %s", b.Project, b.Model)
	out := Shadowed{Project: b.Project, Model: b.Model, Streams: []Comparison{}}
	_, m, err := f.otherModel(ctx, b.Project, b.Model, b.BaseURL)
	if err != nil {
		return out, err
	}
	streams, err := f.cfg.Catalog.Streams(ctx, b.Project)
	if err != nil {
		return out, err
	}
	known, err := f.labels(ctx, b.Project, m)
	if err != nil {
		return out, err
	}
	ledger := f.purses.Of(b.Project)
	defer func() { err = errors.Join(err, ledger.Close(context.WithoutCancel(ctx))) }()
	var todo []*shadow
	total := 0
	for _, s := range streams {
		if b.Query != "" && s.QueryID != b.Query && s.Name != b.Query || b.Query == "" && s.Only != 0 {
			continue
		}
		head, err := f.cfg.Log.Head(ctx, b.Project, s.Name)
		if err != nil {
			return out, err
		}
		if head.Seq == 0 {
			continue
		}
		sh := &shadow{f: f, project: b.Project, stream: s, m: m, ledger: ledger, known: known[s.Name], limit: b.Limit}
		if sh.steps, err = sh.count(ctx); err != nil {
			return out, err
		}
		todo = append(todo, sh)
		total += sh.take()
	}
	done := 0
	for _, sh := range todo {
		c, err := sh.run(ctx, func(n int) { done += n; progress(done, total) })
		if err != nil {
			return out, err
		}
		out.Streams = append(out.Streams, c)
	}
	return out, nil
}

// labels are the model's own in a project, by stream and step, under the wording that
// it is asked with now: another one may get another answer.
func (f *Function) labels(ctx context.Context, project string, m *Models) (map[string]map[int]*memory.Label, error) {
	out := map[string]map[int]*memory.Label{}
	for key, err := range f.cfg.Log.RecordKeys(ctx, project, eventlog.Labels) {
		if err != nil {
			return nil, err
		}
		recs, err := f.cfg.Log.Records(ctx, project, eventlog.Labels, key)
		if err != nil {
			return nil, err
		}
		for _, r := range recs {
			l, ok, err := eventlog.AsLabel(r)
			if err != nil {
				return nil, err
			}
			if !ok || l.Kind != memory.LabelModel || l.Model != m.Model.Name || l.Adapter != m.Model.Adapter || l.PromptVersion != m.Model.Version() || l.T == 0 {
				continue
			}
			if out[l.Stream] == nil {
				out[l.Stream] = map[int]*memory.Label{}
			}
			out[l.Stream][l.T] = l
		}
	}
	return out, nil
}

// shadow is one stream that is compared.
type shadow struct {
	f       *Function
	project string
	stream  catalog.Stream
	m       *Models
	ledger  *cost.Ledger
	known   map[int]*memory.Label
	limit   int
	steps   int // that can be compared

	c     Comparison
	batch []*judged
}

// judged is one decided step with the model's answer.
type judged struct {
	gate   *memory.Gate
	before gru.State
	label  *memory.Label // nil: to be asked
}

// comparable reports whether a step was a decision about words that still stand.
func comparable(g *memory.Gate) bool {
	switch g.ReasonCode {
	case "empty", "derived", "scrubbed":
		return false
	}
	return !g.Pending && g.Erased == ""
}

// each walks the stream's steps with the state before each, as far as a question
// about a step needs it: the memory, not what it rests on.
func (s *shadow) each(ctx context.Context, do func(g *memory.Gate, before gru.State) error) error {
	var st gru.State
	for seg, err := range s.f.cfg.Log.Segments(ctx, s.project, s.stream.Name, 0) {
		if err != nil {
			return err
		}
		for _, r := range seg.Records {
			switch r := r.(type) {
			case *memory.Gate:
				if comparable(r) {
					if err := do(r, st); err != nil {
						return err
					}
				}
				if st.T = r.T; r.Newest.After(st.Newest) {
					st.Newest = r.Newest
				}
			case *memory.Memory:
				st.MemoryText, st.MemorySHA, st.MemoryNode, st.Tokens = r.Text, r.TextSHA, r.Node, r.Tokens
			}
		}
	}
	return nil
}

func (s *shadow) count(ctx context.Context) (n int, err error) {
	err = s.each(ctx, func(*memory.Gate, gru.State) error { n++; return nil })
	return n, err
}

// take is how many steps are compared: the latest.
func (s *shadow) take() int {
	if s.limit > 0 {
		return min(s.limit, s.steps)
	}
	return s.steps
}

func (s *shadow) run(ctx context.Context, progress func(int)) (Comparison, error) {
	s.c = Comparison{Stream: s.stream.Name, QueryID: s.stream.QueryID, Differ: []Different{}}
	skip := s.steps - s.take()
	err := s.each(ctx, func(g *memory.Gate, before gru.State) error {
		if skip > 0 {
			skip--
			return nil
		}
		s.batch = append(s.batch, &judged{gate: g, before: before, label: s.known[g.T]})
		if len(s.batch) < shadowBatch {
			return nil
		}
		n := len(s.batch)
		if err := s.flush(ctx); err != nil {
			return err
		}
		progress(n)
		return nil
	})
	if err != nil {
		return s.c, err
	}
	n := len(s.batch)
	if err := s.flush(ctx); err != nil {
		return s.c, err
	}
	progress(n)
	steps := float64(max(s.c.Table.N()+s.c.Unread, 1))
	s.c.Now.LatencyMS /= steps
	s.c.Then.LatencyMS /= steps
	s.c.Agreement, s.c.CI = s.c.Table.Agreement()
	if k, _ := s.c.Table.Kappa(); k == k { // not NaN
		s.c.Kappa = &k
	}
	return s.c, nil
}

// flush asks about the batch, side by side, keeps the answers as labels, and counts
// them. Answers that came before another failed are kept too: they were paid for.
func (s *shadow) flush(ctx context.Context) error {
	var mu sync.Mutex
	var fresh []eventlog.Record
	var g errgroup.Group
	g.SetLimit(shadowCalls)
	for _, j := range s.batch {
		if j.label != nil {
			continue
		}
		g.Go(func() error {
			l, err := s.ask(ctx, j)
			if err != nil || l == nil {
				return err
			}
			r, err := eventlog.LabelRecord(l)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			j.label = l
			fresh = append(fresh, r)
			return nil
		})
	}
	err := g.Wait()
	if len(fresh) > 0 {
		if _, e := s.f.cfg.Log.PutRecords(context.WithoutCancel(ctx), s.project, eventlog.Labels, fresh); e != nil {
			return errors.Join(err, e)
		}
	}
	if err != nil {
		return err
	}
	s.c.Asked += len(fresh)
	for _, j := range s.batch {
		s.add(j)
	}
	s.batch = s.batch[:0]
	return nil
}

// ask puts the gate's question about a step to the second model; nil where the
// words are gone.
func (s *shadow) ask(ctx context.Context, j *judged) (*memory.Label, error) {
	f, g := s.f, j.gate
	scrub, err := f.scrubbed(ctx, s.project)
	if err != nil {
		return nil, err
	}
	gp, p, err := f.admitted(ctx, &writer{f: f, scrub: scrub, project: s.project}, g.Admit)
	if err != nil {
		return nil, err
	}
	if g.I >= len(p.chunks) || p.chunks[g.I].SHA256 != g.Chunk {
		return nil, nil // it was stated anew
	}
	in, err := f.input(ctx, scrub, s.project, p, g.I)
	if fault.Is(err, fault.NotFound) {
		return nil, nil // erased
	}
	if err != nil {
		return nil, err
	}
	end := min(g.End, len(in.Chunk.Text))
	cfg := &gru.Config{
		Tenant: f.cfg.Tenant, Project: s.project, Stream: s.stream.Name, QueryID: s.stream.QueryID, Question: s.stream.Question,
		Level: memory.L1, BudgetTokens: s.stream.BudgetTokens, Count: f.cfg.Count, Model: &s.m.Model,
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	judging := gru.Judge(cfg, gp, j.before, in, g.Start, end)
	for judging.Next != nil {
		a, err := f.call(ctx, s.ledger, s.m, judging.Next)
		if endpoint.OverWindow(err) {
			judging.TooLong()
			break
		}
		if err != nil {
			return nil, err
		}
		judging.Reply(a.reply)
	}
	v := judging.Judgement()
	if v.Cut {
		return nil, f.stopped(ctx, s.project, s.stream.Name, s.m, errCut)
	}
	return &memory.Label{
		Level: g.Level, Kind: memory.LabelModel, Stream: s.stream.Name, QueryID: s.stream.QueryID, T: g.T, Admit: g.Admit, I: g.I, Chunk: g.Chunk, Start: g.Start, End: end,
		Evidence: v.Evidence, Exit: v.Exit, Confidence: v.Score, FormatOK: v.FormatOK, ReasonCode: v.Code,
		Model: s.m.Model.Name, Adapter: s.m.Model.Adapter, PromptVersion: cfg.Model.Version(), Sampling: &v.Sampling, MemoryBeforeSHA: j.before.MemorySHA, Attempt: v.Attempt,
		PromptTokens: v.PromptTokens, PromptTokensOwn: v.PromptTokensOwn, CompletionTokens: v.CompletionTokens, LatencyMS: v.LatencyMS, CostUSD: v.CostUSD, At: f.cfg.Now(),
	}, nil
}

// add counts a step.
func (s *shadow) add(j *judged) {
	g, l := j.gate, j.label
	if l == nil {
		return
	}
	if g.Model != "" {
		s.c.Model = g.Model
	}
	s.c.Now.add(g.PromptTokens, g.CompletionTokens, g.CostUSD, g.LatencyMS)
	s.c.Then.add(l.PromptTokens, l.CompletionTokens, l.CostUSD, l.LatencyMS)
	if !l.FormatOK {
		s.c.Unread++
		return
	}
	now := gru.Opened(g)
	s.c.Table.Add(now, l.Evidence)
	if now != l.Evidence && len(s.c.Differ) < maxDiffer {
		s.c.Differ = append(s.c.Differ, Different{T: g.T, Chunk: g.Chunk, Admit: g.Admit, I: g.I, Now: now, Then: l.Evidence, Reason: g.Reason})
	}
}

func (s *Side) add(prompt, completion int, usd, ms float64) {
	s.PromptTokens += int64(prompt)
	s.CompletionTokens += int64(completion)
	s.USD += usd
	s.LatencyMS += ms
}
