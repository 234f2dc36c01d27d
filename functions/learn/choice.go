package learn

import (
	"context"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/redact"
)

// pick is what the request chose to decide; nil: nothing, or what stands anyway.
// It belongs to the request's own question: standing ones keep the models of
// their project.
func (f *Function) pick(q learnRequest, red *redact.Redactor) (*models.Pick, error) {
	p, err := f.cfg.Models.Pick(q.Project, models.Request{
		Model: q.Model, GateModel: q.GateModel, RewriteModel: q.RewriteModel, GateBaseURL: q.GateBaseURL, RewriteBaseURL: q.RewriteBaseURL,
	})
	if err != nil || p == nil {
		return nil, err
	}
	for _, s := range p.Servers() {
		for _, text := range []string{s.Model, s.URL} { // they stand in records
			if masked, _ := red.Redact(text); masked != text {
				return nil, fault.At(fault.Invalid, "field model", "name the model and its endpoint without the secret: keys are the operator's to configure", "holds a secret")
			}
		}
	}
	switch {
	case q.Query != "":
		return p, nil
	case p.Gate == nil && f.cfg.Models.For(q.Project).Gate == nil:
		return nil, nil // the built-in policy decides there as it is
	}
	return nil, fault.At(fault.Invalid, "field model", "send it with a query of its own: standing questions keep the models of their project (MNEME_MODELS)", "models without a query")
}

// refusal turns l into the answer of a request whose models cannot decide.
func (f *Function) refusal(ctx context.Context, project string, s catalog.Stream, l *Learned) error {
	if s.Models == nil {
		return nil
	}
	r, is, err := f.cfg.Catalog.Refused(ctx, project, s.Name)
	if is {
		l.Status, l.Reason, l.Hint = "refused", r.Reason, r.Hint
	}
	return err
}
