package gate

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/preflight"
	"github.com/mneme-ai/mneme/shared/questions"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Routes adds what people call: a project's standing questions.
func (f *Function) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /memory/questions", f.listQuestions)
	mux.HandleFunc("POST /memory/questions", f.addQuestion)
	mux.HandleFunc("DELETE /memory/questions/{id}", f.removeQuestion)
	mux.HandleFunc("PUT /memory/questions/export", f.consent)
	mux.HandleFunc("GET /memory/models", f.listModels)
	mux.HandleFunc("POST /memory/models/reload", f.postReload)
	mux.HandleFunc("POST /memory/estimate", f.postEstimate)
	mux.HandleFunc("GET /memory/regate", f.listPending)
	mux.HandleFunc("POST /memory/regate", f.postRegate)
	mux.HandleFunc("POST /memory/shadow", f.postShadow)
	mux.HandleFunc("POST /memory/synthesis", f.postSynthesis)
	mux.HandleFunc("GET /memory/derived", f.derivedFilter)
	f.labelRoutes(mux)
}

// ModelsFound is the answer of GET /memory/models: what decides, and what the
// preflight found of it and of the models that embed and rerank. A look at the
// servers that is recent is not repeated.
type ModelsFound struct {
	Policy string             `json:"policy"` // of what decides: extractive/…, model/full, model/split
	Models []preflight.Result `json:"models"`
	Error  string             `json:"error,omitempty"`
	Hint   string             `json:"hint,omitempty"`
}

func (f *Function) listModels(w http.ResponseWriter, r *http.Request) {
	serve.WriteJSON(w, http.StatusOK, f.found(r.Context()))
}

func (f *Function) found(ctx context.Context) ModelsFound {
	out := ModelsFound{Policy: f.cfg.Policy.Name(), Models: []preflight.Result{}}
	if f.cfg.Doctor == nil {
		return out
	}
	// The configuration may change while servers are looked at: what is said of both is of one.
	now, err := f.decider(ctx)
	for range 3 {
		found, derr := f.cfg.Doctor(ctx)
		out.Models, out.Error, out.Hint = append([]preflight.Result{}, found...), "", ""
		if derr != nil {
			out.Error, out.Hint = derr.Error(), fault.HintOf(derr)
		}
		was := now
		if now, err = f.decider(ctx); now == was {
			break
		}
	}
	switch {
	case err != nil:
		out.Policy = "model"
	case now.policy != "":
		out.Policy = now.policy
	}
	return out
}

type decider struct{ policy, gate, rewrite string }

// decider is what decides now by its names; the zero value where the policy does.
func (f *Function) decider(ctx context.Context) (decider, error) {
	m, err := f.models(ctx, "")
	if m == nil {
		return decider{}, err
	}
	return decider{m.Model.Policy, m.Model.Name, m.Model.Rewrite}, err
}

// Reloaded is the answer of POST /memory/models/reload.
type Reloaded struct {
	Changed bool `json:"changed"`
	ModelsFound
}

func (f *Function) postReload(w http.ResponseWriter, r *http.Request) {
	changed, err := f.reload(r.Context())
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	if changed && f.cfg.Publish != nil { // other processes look too, and what waited goes on
		at := f.cfg.Now().UTC().Format(time.RFC3339Nano)
		if err := f.cfg.Publish(r.Context(), event.New(event.ModelChanged, f.Name(), event.Model{Tenant: f.cfg.Tenant, At: at})); err != nil {
			serve.WriteError(w, err)
			return
		}
	}
	serve.WriteJSON(w, http.StatusOK, Reloaded{changed, f.found(r.Context())})
}

// badProject is the error of a request whose project is no name.
func badProject(name string) error {
	return fault.At(fault.Invalid, "project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", name)
}

// Question is one standing question as people see it.
type Question struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	ExitGate bool   `json:"exit_gate,omitempty"`
	Stream   string `json:"stream"`
	Serving  string `json:"serving"` // the stream that answers now
	CaughtUp bool   `json:"caught_up"`
}

// Questions is the answer of GET /memory/questions.
type Questions struct {
	Project   string     `json:"project"`
	Default   bool       `json:"default"` // the project has no file of its own
	Export    bool       `json:"export"`  // whether decisions may be exported for training
	Questions []Question `json:"questions"`
}

func project(r *http.Request) (string, error) {
	p := r.URL.Query().Get("project")
	if !memory.ValidName(p) {
		return "", fault.At(fault.Invalid, "project", "name one project: ?project=shop", "%q is not a project name", p)
	}
	return p, nil
}

func (f *Function) listQuestions(w http.ResponseWriter, r *http.Request) {
	p, err := project(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	q, err := f.questions(r.Context(), p)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, q)
}

func (f *Function) questions(ctx context.Context, p string) (Questions, error) {
	set, etag, err := f.cfg.Catalog.Questions(ctx, p)
	if err != nil {
		return Questions{}, err
	}
	serving, _, err := f.cfg.Catalog.Serving(ctx, p)
	if err != nil {
		return Questions{}, err
	}
	head, err := f.cfg.Log.Head(ctx, p, memory.AdmitStream)
	if err != nil {
		return Questions{}, err
	}
	scrub, err := f.scrubbed(ctx, p)
	if err != nil {
		return Questions{}, err
	}
	out := Questions{Project: p, Default: etag == "", Export: !set.NoExport, Questions: []Question{}}
	for _, q := range set.Queries {
		name := serving.Of(q).Name
		c, err := f.cursor(ctx, scrub, p, name)
		if err != nil {
			return out, err
		}
		row := Question{ID: q.ID, Question: q.Question, ExitGate: q.ExitGate, Stream: name, Serving: serving.Serving[q.ID], CaughtUp: c.State.Admit >= head.Seq}
		if row.Serving == "" {
			row.Serving = row.Stream
		}
		out.Questions = append(out.Questions, row)
	}
	return out, nil
}

func (f *Function) addQuestion(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Project  string `json:"project"`
		ID       string `json:"id"`
		Question string `json:"question"`
		ExitGate bool   `json:"exit_gate"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, id, question}", "%v", err))
		return
	}
	if !memory.ValidName(b.Project) {
		serve.WriteError(w, badProject(b.Project))
		return
	}
	if n := f.cfg.Count(b.Question); n > maxQuestionTokens {
		serve.WriteError(w, fault.At(fault.Invalid, "question", "ask a shorter question", "%d tokens, at most %d", n, maxQuestionTokens))
		return
	}
	if f.cfg.Redact != nil && f.cfg.Redact(b.Question) != b.Question {
		// It would stand in the question file and in every run's record.
		serve.WriteError(w, fault.At(fault.Invalid, "question", "ask without the secret", "holds a secret"))
		return
	}
	f.edit(w, r, b.Project, func(s questions.Set) (questions.Set, error) {
		return s.Add(questions.Query{ID: b.ID, Question: b.Question, ExitGate: b.ExitGate})
	})
}

// maxQuestionTokens is the question's share of the window (DESIGN section 6).
const maxQuestionTokens = 1024

func (f *Function) removeQuestion(w http.ResponseWriter, r *http.Request) {
	p, err := project(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	id := r.PathValue("id")
	f.edit(w, r, p, func(s questions.Set) (questions.Set, error) {
		out, ok := s.Remove(id)
		if !ok {
			return s, fault.At(fault.NotFound, "question "+id, "mem question list shows them", "project %s has no such question", p)
		}
		return out, nil
	})
}

// consent says whether the project's decisions may be exported for training.
func (f *Function) consent(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Project string `json:"project"`
		Export  *bool  `json:"export"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	dec.DisallowUnknownFields()
	err := dec.Decode(&b)
	switch {
	case err != nil || b.Export == nil:
		serve.WriteError(w, fault.At(fault.Invalid, "body", `send {"project": "shop", "export": false}`, "it does not say whether: %v", err))
	case !memory.ValidName(b.Project):
		serve.WriteError(w, badProject(b.Project))
	default:
		f.edit(w, r, b.Project, func(s questions.Set) (questions.Set, error) {
			s.NoExport = !*b.Export
			return s, nil
		})
	}
}

// edit changes the question file by If-Match and announces it.
func (f *Function) edit(w http.ResponseWriter, r *http.Request, p string, change func(questions.Set) (questions.Set, error)) {
	ctx := r.Context()
	err := func() error {
		for range 5 { // each loss means that somebody else edited the file
			set, etag, err := f.cfg.Catalog.Questions(ctx, p)
			if err != nil {
				return err
			}
			next, err := change(set)
			if err != nil {
				return err
			}
			next.Project = p
			if err := f.cfg.Catalog.SaveQuestions(ctx, p, next, etag); !fault.Is(err, fault.Conflict) {
				return err
			}
		}
		return fault.New(fault.Unavailable, "the question file keeps changing")
	}()
	if err == nil && f.cfg.Publish != nil {
		err = f.cfg.Publish(ctx, event.New(event.QuestionsChanged, f.Name(), event.Project{Tenant: f.cfg.Tenant, Project: p}))
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	q, err := f.questions(ctx, p)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, q)
}

// publisher is how a route's own events reach the broker.
type publisher = func(ctx context.Context, es ...ce.Event) error
