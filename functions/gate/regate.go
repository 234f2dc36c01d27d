package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/serve"
)

// regates reports whether pending steps of a stream were asked for again and can
// be: by a model, as a policy leaves none.
func (f *Function) regates(ctx context.Context, project string, s catalog.Stream, st *gru.State) (bool, error) {
	if len(st.Pending) == 0 {
		return false, nil
	}
	if st.Open == nil || !st.Open.Regate {
		upTo, err := f.cfg.Catalog.Regate(ctx, project, s.Name)
		if err != nil || st.Pending[0].T > upTo {
			return false, err
		}
	}
	m, err := f.decides(ctx, project, s)
	return m != nil || err != nil, nil // why they cannot be used is the run's to say
}

// again asks the pending steps of the stream again, after all that is admitted;
// false when the time was over before its end.
func (f *Function) again(ctx context.Context, w *writer, cfg *gru.Config, deadline time.Time) (bool, error) {
	open := w.next.Open != nil && w.next.Open.Regate
	if ok, err := f.regates(ctx, w.project, w.stream, &w.next); err != nil || !ok && !open {
		return true, err
	}
	m, err := w.ready(ctx, cfg)
	if err != nil {
		return false, err
	}
	end := func(s gru.State) (gru.State, []gru.Record) { return gru.End(s, cfg, nil, f.cfg.Now()) }
	switch {
	case m == nil && open: // it was a model's run, and none decides any more
		return true, w.take(ctx, end)
	case m == nil:
		return true, nil
	}
	if err := w.take(ctx, func(s gru.State) (gru.State, []gru.Record) { return gru.BeginRegate(s, cfg, f.cfg.Now()) }); err != nil {
		return false, err
	}
	for steps := w.next.Regate(0); len(steps) > 0; steps = w.next.Regate(0) {
		if err := ctx.Err(); err != nil {
			return false, fault.As(fault.Unavailable, err)
		}
		if w.moved && f.cfg.Now().After(deadline) {
			return false, nil
		}
		gp, p, err := f.admitted(ctx, w, steps[0].Admit)
		if err != nil {
			return false, err
		}
		in, err := f.input(ctx, w.scrub, w.project, p, steps[0].I)
		if err != nil {
			return false, err
		}
		if err := f.decide(ctx, w, cfg, gp, m, gru.ReadChunk{ChunkInput: in}); err != nil {
			return false, err
		}
	}
	return true, w.take(ctx, end)
}

// admitted is the part of an admit line.
func (f *Function) admitted(ctx context.Context, w *writer, seq int64) (*gru.Part, part, error) {
	for line, err := range f.admits(ctx, w.project, seq-1) {
		if err != nil {
			return nil, part{}, err
		}
		p, err := f.part(ctx, w.scrub, w.project, line.Source)
		return &gru.Part{Admit: line, Source: p.source, Chunks: len(p.chunks)}, p, err
	}
	return nil, part{}, fault.New(fault.Corrupt, "a step looked at part %d, which is not admitted", seq)
}

// Undecided is one stream's steps without a readable reply.
type Undecided struct {
	Project string            `json:"project"`
	Stream  string            `json:"stream"`
	QueryID string            `json:"query_id"`
	Asked   int               `json:"asked"`   // of them, asked again and not yet answered
	Pending []gru.PendingStep `json:"pending"` // in order

	of catalog.Stream
}

// Regated is the answer of GET and POST /memory/regate.
type Regated struct {
	Streams []Undecided `json:"streams"`
}

// undecided lists the streams with pending steps.
func (f *Function) undecided(ctx context.Context, project, query string) ([]Undecided, error) {
	projects := []string{project}
	if project == "" {
		var err error
		if projects, err = f.cfg.Catalog.Known(ctx); err != nil {
			return nil, err
		}
	}
	out := []Undecided{}
	for _, p := range projects {
		streams, err := f.cfg.Catalog.Streams(ctx, p)
		if err != nil {
			return nil, err
		}
		scrub, err := f.scrubbed(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			if query != "" && s.QueryID != query && s.Name != query {
				continue
			}
			c, err := f.cursor(ctx, scrub, p, s.Name)
			if err != nil {
				return nil, err
			}
			if len(c.State.Pending) == 0 {
				continue
			}
			u := Undecided{Project: p, Stream: s.Name, QueryID: s.QueryID, Pending: c.State.Pending, of: s}
			if again, err := f.regates(ctx, p, s, &c.State); err != nil {
				return nil, err
			} else if again {
				upTo, err := f.cfg.Catalog.Regate(ctx, p, s.Name)
				if err != nil {
					return nil, err
				}
				u.Asked = len(c.State.Regate(upTo))
			}
			out = append(out, u)
		}
	}
	return out, nil
}

func (f *Function) listPending(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Query().Get("project")
	if p != "" && !memory.ValidName(p) {
		serve.WriteError(w, badProject(p))
		return
	}
	u, err := f.undecided(r.Context(), p, r.URL.Query().Get("query"))
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, Regated{u})
}

// regateRequest is the body of POST /memory/regate.
type regateRequest struct {
	Project string `json:"project"` // absent: all; of Apply it must be one
	Query   string `json:"query"`   // a question id or a stream; absent: all
	// Apply decides everything once more, in new streams; Model and BaseURL by
	// another model than the project's. DryRun only says what it would cost.
	Apply   bool   `json:"apply"`
	Model   string `json:"model"`
	BaseURL string `json:"base_url"`
	DryRun  bool   `json:"dry_run"`
}

// Reopened is the answer to Apply.
type Reopened struct {
	Project  string   `json:"project"`
	Streams  []string `json:"streams"` // the new ones; of a dry run those that they would follow
	Model    string   `json:"model"`   // that decides in them
	Estimate Estimate `json:"estimate"`
}

// postRegate asks the pending steps again. The models are looked at first, so that
// whoever asks is told what is wrong with them.
func (f *Function) postRegate(w http.ResponseWriter, r *http.Request) {
	var b regateRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, query} or {project, query, apply, model, base_url, dry_run}", "%v", err))
		return
	}
	if b.Project != "" && !memory.ValidName(b.Project) {
		serve.WriteError(w, badProject(b.Project))
		return
	}
	if b.Apply {
		out, err := f.reopen(r.Context(), b)
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		serve.WriteJSON(w, http.StatusOK, out)
		return
	}
	if b.Model != "" || b.BaseURL != "" || b.DryRun {
		serve.WriteError(w, fault.At(fault.Invalid, "model, base_url, dry_run", "send them with apply", "pending steps are asked of the project's own models"))
		return
	}
	out, err := f.askAgain(r.Context(), b.Project, b.Query)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	status := http.StatusOK
	if len(out.Streams) > 0 {
		status = http.StatusAccepted
	}
	serve.WriteJSON(w, status, out)
}

func (f *Function) askAgain(ctx context.Context, project, query string) (Regated, error) {
	list, err := f.undecided(ctx, project, query)
	if err != nil || len(list) == 0 {
		return Regated{list}, err
	}
	for i := range list {
		u := &list[i]
		m, err := f.decides(ctx, u.Project, u.of)
		if err != nil {
			return Regated{}, err
		}
		if m == nil {
			return Regated{}, fault.At(fault.Invalid, "project "+u.Project, "configure a gate model (docs/MODELS.md)", "no model decides there: pending steps are a model's to answer")
		}
		if err := f.cfg.Catalog.AskRegate(ctx, u.Project, u.Stream, u.Pending[len(u.Pending)-1].T); err != nil {
			return Regated{}, err
		}
		u.Asked = len(u.Pending)
		f.pauses.Resume(u.Project)
		if f.cfg.Publish == nil {
			continue // the sweep finds it
		}
		if err := f.cfg.Publish(ctx, event.New(event.RunRequested, f.Name(), event.Stream{
			Tenant: f.cfg.Tenant, Project: u.Project, Stream: u.Stream, Seq: int64(u.Pending[len(u.Pending)-1].T),
		})); err != nil {
			return Regated{}, err
		}
	}
	return Regated{list}, nil
}

// reopen opens the next stream of each question asked for: it is back-filled by the
// model while the present one serves, and then takes its place.
func (f *Function) reopen(ctx context.Context, b regateRequest) (Reopened, error) {
	out := Reopened{Project: b.Project, Streams: []string{}, Model: models.Builtin}
	if b.Project == "" {
		return out, fault.At(fault.Invalid, "project", "name one", "everything is decided once more in one project at a time")
	}
	var pick *models.Pick
	if b.Model != "" || b.BaseURL != "" {
		if f.cfg.Pick == nil {
			return out, fault.At(fault.Invalid, "model "+b.Model, "configure its endpoint (MNEME_MODELS)", "no model endpoint is configured")
		}
		var err error
		if pick, err = f.cfg.Pick(b.Project, models.Request{Model: b.Model, GateBaseURL: b.BaseURL}); err != nil {
			return out, err
		}
	}
	asked := func(s catalog.Stream) bool {
		return s.Only == 0 && (b.Query == "" || s.QueryID == b.Query || s.Name == b.Query)
	}
	streams, err := f.cfg.Catalog.Streams(ctx, b.Project)
	if err != nil {
		return out, err
	}
	for _, s := range streams {
		if asked(s) {
			out.Streams = append(out.Streams, s.Name)
		}
	}
	if out.Estimate, err = f.estimate(ctx, estimateRequest{Project: b.Project, only: asked, by: pick, anew: true}); err != nil {
		return out, err
	}
	// The models are looked at first: who asks is told what is wrong with them.
	m, err := f.decides(ctx, b.Project, catalog.Stream{Models: pick})
	if err != nil {
		return out, err
	}
	if m != nil {
		out.Model = m.Model.Name
	}
	if b.DryRun {
		return out, nil
	}
	opened, err := f.cfg.Catalog.OpenGenerations(ctx, b.Project, asked, pick)
	if err != nil {
		return out, err
	}
	out.Streams = out.Streams[:0]
	for _, s := range opened {
		out.Streams = append(out.Streams, s.Name)
	}
	if f.cfg.Publish != nil {
		err = f.cfg.Publish(ctx, event.New(event.QuestionsChanged, f.Name(), event.Project{Tenant: f.cfg.Tenant, Project: b.Project}))
	}
	return out, err
}
