package gate

import (
	"context"
	"net/http"
	"slices"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/emitted"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/vault"
)

// DerivedFilter is the answer of GET /memory/derived.
type DerivedFilter struct {
	OK       bool             `json:"ok"`
	Policy   string           `json:"policy"` // which was asked, of questions that no model decides
	Projects []emitted.Report `json:"projects"`
}

// derivedFilter checks of one project, or of all, that nothing which was given out is
// evidence, or would be if it came back. It writes nothing and calls no model.
func (f *Function) derivedFilter(w http.ResponseWriter, r *http.Request) {
	s := serve.NewProgress(w, r)
	ctx := r.Context()
	known, err := f.cfg.Log.Projects(ctx)
	if p := r.URL.Query().Get("project"); err == nil && p != "" {
		if !slices.Contains(known, p) {
			err = fault.At(fault.NotFound, "project", "mem log lists what is known", "nothing is known of project %q", p)
		}
		known = []string{p}
	}
	out := DerivedFilter{OK: true, Policy: f.cfg.Policy.Name(), Projects: []emitted.Report{}}
	c := &emitted.Checker{Tenant: f.cfg.Tenant, Log: f.cfg.Log, Catalog: f.cfg.Catalog, Policy: f.cfg.Policy, Count: f.cfg.Count, ByModel: f.byModel}
	for i := 0; err == nil && i < len(known); i++ {
		var rep emitted.Report
		var pages []emitted.Artifact
		if pages, err = f.vaultPages(ctx, known[i]); err != nil {
			break
		}
		if rep, err = c.Project(ctx, known[i], pages...); err != nil {
			break
		}
		out.OK = out.OK && rep.OK()
		out.Projects = append(out.Projects, rep)
		s.Line(map[string]int{"done": i + 1, "of": len(known)})
	}
	s.End(out, err)
}

// byModel reports whether a model would decide in a stream; no server is asked.
func (f *Function) byModel(project string, s catalog.Stream) bool {
	if s.Models != nil {
		return s.Models.Gate != nil
	}
	return f.cfg.Plan != nil && f.cfg.Plan(project, nil) != nil
}

// vaultPages are the pages of the project's vault, without what people wrote on them.
func (f *Function) vaultPages(ctx context.Context, project string) ([]emitted.Artifact, error) {
	m, err := vault.Load(ctx, f.cfg.Log, f.cfg.Catalog, project)
	if err != nil {
		return nil, err
	}
	var out []emitted.Artifact
	for _, p := range vault.Render(m).Files {
		out = append(out, emitted.Artifact{Kind: emitted.KindNote, Name: p.Path, Text: string(vault.Split(p.Bytes).Body) + derived.MarkerClose + "\n"})
	}
	return out, nil
}
