package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/serve"
)

// This file labels: a larger model, rules, or a person say of each piece of a chunk
// that was decided whether it holds evidence for a question (brief P18). Unlike a
// shadow, who labels sees the piece alone and no memory: whether a chunk holds
// evidence does not depend on what was known before it.

// LabelRequest is the body of POST /memory/labels/run.
type LabelRequest struct {
	Project  string `json:"project"`
	Query    string `json:"query"`    // a question id or a stream; absent: every standing question
	Model    string `json:"model"`    // that labels
	BaseURL  string `json:"base_url"` // of a configured endpoint; absent: the project's own
	Limit    int    `json:"limit"`    // pieces of each question, the latest; 0: all
	Reviewed bool   `json:"reviewed"` // only pieces that a person labelled
	Again    bool   `json:"again"`    // ask again where the model's answer could not be read
	DryRun   bool   `json:"dry_run"`  // say what it would cost, and ask nothing
}

// Labelled is its answer.
type Labelled struct {
	Project    string        `json:"project"`
	Model      string        `json:"model"`
	Pieces     int           `json:"pieces"`   // that the request is about
	Standing   int           `json:"standing"` // of them, labelled by the model before
	ToAsk      int           `json:"to_ask"`   // the others, before this call
	Asked      int           `json:"asked"`    // by this call
	Evidence   int           `json:"evidence"` // of the asked
	Unreadable int           `json:"unreadable"`
	Gone       int           `json:"gone"` // the words are erased or were stated anew
	Took       Side          `json:"took"` // by the asked; LatencyMS of one
	Estimate   cost.Range    `json:"estimate"`
	Sends      []Destination `json:"sends"`
	Budget     *cost.Budget  `json:"budget,omitempty"` // of a day
	Spent      *cost.Amount  `json:"spent,omitempty"`  // today, before this call
}

// piece is one piece of a chunk that a question's stream decided about.
type piece struct {
	stream     *catalog.Stream
	t          int // of the latest step over it
	admit      int64
	i          int
	chunk      memory.SHA
	start, end int
	level      memory.Level
	open       bool // the update gate
}

// pieceKey tells pieces apart, whichever generation of a stream decided them.
type pieceKey struct {
	wording    string
	chunk      memory.SHA
	start, end int
}

func (p *piece) key() pieceKey {
	return pieceKey{labels.Wording(p.stream.Name), p.chunk, p.start, p.end}
}

// pieces lists what was decided of the questions asked for, in the order of the
// streams and steps; a piece that was decided twice stands at its latest step.
func (f *Function) pieces(ctx context.Context, project, query string) ([]piece, error) {
	streams, err := f.cfg.Catalog.Streams(ctx, project)
	if err != nil {
		return nil, err
	}
	var out []piece
	found := false
	for i := range streams {
		s := &streams[i]
		if !asksFor(s, query) {
			continue
		}
		found = true
		at := map[pieceKey]int{}
		for seg, err := range f.cfg.Log.Segments(ctx, project, s.Name, 0) {
			if err != nil {
				return nil, err
			}
			for _, r := range seg.Records {
				g, ok := r.(*memory.Gate)
				if !ok || !comparable(g) {
					continue
				}
				p := piece{stream: s, t: g.T, admit: g.Admit, i: g.I, chunk: g.Chunk, start: g.Start, end: g.End, level: g.Level, open: gru.Opened(g)}
				if n, ok := at[p.key()]; ok {
					out[n] = p
					continue
				}
				at[p.key()] = len(out)
				out = append(out, p)
			}
		}
	}
	if !found && query != "" {
		return nil, fault.At(fault.NotFound, "question "+query, "mem question list shows them", "project %s has no such question", project)
	}
	return out, nil
}

// asksFor reports whether a request about query is about the stream: it names its
// question, the stream or its wording, or nothing, which is every standing question.
func asksFor(s *catalog.Stream, query string) bool {
	if query == "" {
		return s.Only == 0
	}
	return s.QueryID == query || s.Name == query || labels.Wording(s.Name) == query
}

// latest keeps the last n pieces of each stream; 0: all.
func latest(ps []piece, n int) []piece {
	if n == 0 {
		return ps
	}
	left := map[*catalog.Stream]int{}
	for i := range ps {
		left[ps[i].stream]++
	}
	return slices.DeleteFunc(ps, func(p piece) bool {
		left[p.stream]--
		return left[p.stream] >= n
	})
}

func (f *Function) postLabelRun(w http.ResponseWriter, r *http.Request) {
	var b LabelRequest
	err := body(w, r, 64<<10, &b, "send {project, query, model, base_url, limit, reviewed, again, dry_run}")
	switch {
	case err != nil:
	case !memory.ValidName(b.Project):
		err = badProject(b.Project)
	case b.Model == "" || b.Model == models.Builtin:
		err = fault.At(fault.Invalid, "model", "name the model that labels", "no model to ask")
	case b.Limit < 0:
		err = fault.At(fault.Invalid, "limit", "", "%d", b.Limit)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	p := serve.NewProgress(w, r)
	out, err := f.Label(r.Context(), b, func(done, of int) { p.Line(map[string]int{"done": done, "of": of}) })
	p.End(out, err)
}

// body decodes a bounded strict JSON body.
func body(w http.ResponseWriter, r *http.Request, most int64, into any, hint string) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fault.At(fault.Invalid, "body", hint, "%v", err)
	}
	return nil
}

// Label asks the model about every piece, without a memory. What stands as its label,
// under the wording that it is asked with now, is not asked again, so that a call
// which was interrupted goes on. Pieces that a person labelled come first: what they
// say of the model is known before the rest is paid for.
func (f *Function) Label(ctx context.Context, b LabelRequest, progress func(done, of int)) (_ Labelled, err error) {
	defer fault.Wrap(&err, "label %s by %s", b.Project, b.Model)
	out := Labelled{Project: b.Project, Model: b.Model, Sends: []Destination{}}
	pick, m, err := f.otherModel(ctx, b.Project, b.Model, b.BaseURL)
	if err != nil {
		return out, err
	}
	all, err := f.pieces(ctx, b.Project, b.Query)
	if err != nil {
		return out, err
	}
	set, err := labels.Read(ctx, f.cfg.Log, b.Project, func(l *memory.Label) bool {
		return l.Kind == memory.LabelHuman || l.Kind == memory.LabelModel && l.Basis == memory.BasisChunk && l.Model == m.Model.Name && l.Adapter == m.Model.Adapter && l.PromptVersion == m.Model.Version()
	})
	if err != nil {
		return out, err
	}
	human := func(p *piece) bool {
		v, ok := set.Best(p.stream.Name, p.chunk, p.start, p.end)
		return ok && v.Kind == memory.LabelHuman
	}
	if b.Reviewed {
		all = slices.DeleteFunc(all, func(p piece) bool { return !human(&p) })
	}
	all = latest(all, b.Limit)
	todo := make([]piece, 0, len(all))
	rank := map[pieceKey]int{}
	for _, p := range all {
		if slices.ContainsFunc(set.Of(p.stream.Name, p.chunk, p.start, p.end), func(v labels.Verdict) bool {
			return v.Kind == memory.LabelModel && v.Start == p.start && v.End == p.end && (v.FormatOK || !b.Again)
		}) {
			continue
		}
		if !human(&p) {
			rank[p.key()] = 1
		}
		todo = append(todo, p)
	}
	slices.SortStableFunc(todo, func(a, b piece) int { return cmp.Compare(rank[a.key()], rank[b.key()]) })
	out.Pieces, out.ToAsk, out.Standing = len(all), len(todo), len(all)-len(todo)
	if err := f.labelCost(ctx, b.Project, pick, m, todo, &out); err != nil || b.DryRun {
		return out, err
	}
	ledger := f.purses.Of(b.Project)
	defer func() { err = errors.Join(err, ledger.Close(context.WithoutCancel(ctx))) }()
	done := 0
	for batch := range slices.Chunk(todo, shadowBatch) {
		if err := f.labelBatch(ctx, b.Project, m, ledger, batch, &out); err != nil {
			return out, err
		}
		done += len(batch)
		progress(done, len(todo))
	}
	if out.Asked > 0 {
		out.Took.LatencyMS /= float64(out.Asked)
	}
	return out, nil
}

// labelCost estimates what asking about the pieces takes.
func (f *Function) labelCost(ctx context.Context, project string, pick *models.Pick, m *Models, todo []piece, out *Labelled) error {
	if f.cfg.Plan != nil {
		if plan := f.cfg.Plan(project, pick); plan != nil {
			out.Sends = append(out.Sends, plan.Sends...)
		}
	}
	scrub, err := f.scrubbed(ctx, project)
	if err != nil {
		return err
	}
	sizes := map[*catalog.Stream][]int{}
	var order []*catalog.Stream
	for i := range todo {
		p := &todo[i]
		n, err := f.pieceTokens(ctx, scrub, project, p)
		if err != nil {
			return err
		}
		if _, ok := sizes[p.stream]; !ok {
			order = append(order, p.stream)
		}
		sizes[p.stream] = append(sizes[p.stream], n)
	}
	plan := &Plan{Model: m.Model, Measured: m.Model.TokenFactor > 0, Cost: m.Cost}
	for i, s := range order {
		cfg := &gru.Config{Question: s.Question, BudgetTokens: s.BudgetTokens, Count: f.cfg.Count, Model: &m.Model}
		w := work(cfg, plan, sizes[s], 0, nil)
		w.Split, w.Frame, w.Room, w.MemoryBudget = false, cfg.PromptTokens(gru.CallGate), [2]int{}, 0 // the gate's question alone, a call a piece, no memory
		r := cost.Estimate(w)
		if i > 0 {
			r = out.Estimate.Plus(r)
		}
		out.Estimate = r
	}
	if f.cfg.Budget != nil {
		if d := f.cfg.Budget(project); !d.None() {
			spent, err := cost.Spent(ctx, f.cfg.Log, project, f.cfg.Now())
			if err != nil {
				return err
			}
			out.Budget, out.Spent = &d, &spent
		}
	}
	return nil
}

// pieceTokens is the piece's share of its chunk's tokens, by bytes: no text is read
// for an estimate. 0 where the chunk is gone.
func (f *Function) pieceTokens(ctx context.Context, scrub, project string, p *piece) (int, error) {
	_, at, err := f.admitted(ctx, &writer{f: f, scrub: scrub, project: project}, p.admit)
	if err != nil {
		return 0, err
	}
	if p.i >= len(at.chunks) || at.chunks[p.i].SHA256 != p.chunk || at.chunks[p.i].SizeBytes == 0 {
		return 0, nil
	}
	c := &at.chunks[p.i]
	share := float64(min(p.end, c.SizeBytes)-p.start) / float64(c.SizeBytes)
	return int(math.Ceil(share * float64(c.Tokens))), nil
}

// labelBatch asks about the pieces side by side and keeps the answers in one object.
// Answers that came before another failed are kept too: they were paid for.
func (f *Function) labelBatch(ctx context.Context, project string, m *Models, ledger *cost.Ledger, batch []piece, out *Labelled) error {
	var mu sync.Mutex
	found := make([]*memory.Label, len(batch))
	var g errgroup.Group
	g.SetLimit(shadowCalls)
	for i := range batch {
		g.Go(func() error {
			p := &batch[i]
			s := &shadow{f: f, project: project, stream: *p.stream, m: m, ledger: ledger}
			l, err := s.ask(ctx, &judged{
				gate:   &memory.Gate{T: p.t, Level: p.level, Admit: p.admit, I: p.i, Chunk: p.chunk, Start: p.start, End: p.end},
				before: gru.State{T: p.t - 1},
			})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if l == nil {
				out.Gone++
				return nil
			}
			l.T, l.Basis, l.MemoryBeforeSHA = 0, memory.BasisChunk, "" // of no step: see memory.Label
			found[i] = l
			out.Asked++
			out.Took.add(l.PromptTokens, l.CompletionTokens, l.CostUSD, l.LatencyMS)
			switch {
			case !l.FormatOK:
				out.Unreadable++
			case l.Evidence:
				out.Evidence++
			}
			return nil
		})
	}
	err := g.Wait()
	return errors.Join(err, f.putLabels(context.WithoutCancel(ctx), project, slices.DeleteFunc(found, func(l *memory.Label) bool { return l == nil })))
}

// labelsPerObject bounds an object of labels that cost nothing: some 500 KB.
const labelsPerObject = 1000

// putLabels keeps labels, in objects of at most labelsPerObject.
func (f *Function) putLabels(ctx context.Context, project string, list []*memory.Label) error {
	for some := range slices.Chunk(list, labelsPerObject) {
		recs := make([]eventlog.Record, len(some))
		for i, l := range some {
			var err error
			if recs[i], err = eventlog.LabelRecord(l); err != nil {
				return err
			}
		}
		if _, err := f.cfg.Log.PutRecords(ctx, project, eventlog.Labels, recs); err != nil {
			return err
		}
	}
	return nil
}
