package learn

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/scrub"
	"github.com/mneme-ai/mneme/shared/serve"
)

// scrubRequest is the body of POST /memory/scrub; an empty one scrubs all.
type scrubRequest struct {
	Project string `json:"project"` // absent: every project
	DryRun  bool   `json:"dry_run"` // look, and change nothing
}

// Scrubbed is its answer.
type Scrubbed struct {
	Rules    string         `json:"rules"`
	DryRun   bool           `json:"dry_run,omitempty"`
	Projects []scrub.Report `json:"projects"`
}

func (f *Function) postScrub(w http.ResponseWriter, r *http.Request) {
	var req scrubRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil && !errors.Is(err, io.EOF) {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, dry_run}", "%v", err))
		return
	}
	if req.Project != "" && !memory.ValidName(req.Project) {
		serve.WriteError(w, fault.At(fault.Invalid, "field project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", req.Project))
		return
	}
	p := serve.NewProgress(w, r)
	out, err := f.Scrub(r.Context(), req.Project, req.DryRun, func(r scrub.Report) { p.Line(r) })
	p.End(out, err)
}

// Scrub applies the present redaction rules to what is stored, in one project or
// in all, and asks for the rows and vectors of what was changed. No object is
// admitted meanwhile. A project that fails ends it; what is done stays done, and
// the next call goes on from there.
func (f *Function) Scrub(ctx context.Context, project string, dry bool, progress func(scrub.Report)) (Scrubbed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	red, err := f.redactor(ctx)
	if err != nil {
		return Scrubbed{}, err
	}
	out := Scrubbed{Rules: red.Version(), DryRun: dry, Projects: []scrub.Report{}}
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return out, err
	}
	if project != "" {
		if !slices.Contains(projects, project) {
			return out, fault.At(fault.NotFound, "project "+project, "", "nothing is stored of such a project")
		}
		projects = []string{project}
	}
	cfg := scrub.Config{
		Tenant: f.cfg.Tenant, Log: f.cfg.Log, Now: f.cfg.Now, Progress: progress, Patience: f.cfg.ScrubPatience,
		Rules: scrub.Rules{Redact: red, TenantKey: f.cfg.TenantKey, Count: f.cfg.Count},
	}
	for _, p := range projects {
		r, err := scrub.Project(ctx, cfg, p, dry)
		if err == nil {
			err = f.wordings(ctx, red, p, &r)
		}
		if err == nil && !dry {
			err = f.cfg.Log.DropOriginals(ctx, p)
		}
		out.Projects = append(out.Projects, r)
		if e := f.publish(ctx, f.scrubbed(r)); err == nil {
			err = e
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// wordings reports the questions in which the rules would mask something: a
// stream's name follows from its question's wording, so that whoever asked it
// must word it anew.
func (f *Function) wordings(ctx context.Context, red *redact.Redactor, project string, r *scrub.Report) error {
	streams, err := f.cfg.Catalog.Streams(ctx, project)
	if fault.Is(err, fault.Invalid) {
		r.Unreadable = append(r.Unreadable, err.Error())
		return nil
	}
	for _, s := range streams {
		if out, _ := red.Redact(s.Question); out != s.Question {
			r.Names = append(r.Names, "wording of question "+s.Name)
		}
	}
	return err
}

// scrubbed asks for what follows: the index without the old rows, then the new
// ones' vectors, and the slices of streams that were held.
func (f *Function) scrubbed(r scrub.Report) []ce.Event {
	if r.Tombstone == "" && r.Finished == "" {
		return nil
	}
	at := event.Project{Tenant: f.cfg.Tenant, Project: r.Project}
	out := []ce.Event{event.New(event.RebuildRequested, f.Name(), at)}
	for _, s := range r.Streams {
		out = append(out, event.New(event.RunEnded, f.Name(), event.Stream{Tenant: f.cfg.Tenant, Project: r.Project, Stream: s}))
	}
	return append(out, event.New(event.QuestionsChanged, f.Name(), at))
}
