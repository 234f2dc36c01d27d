package gate

import (
	"context"
	"log/slog"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/fault"
)

// decides is what decides in a stream: the models that its request picked, else
// those of the project; nil: the policy.
func (f *Function) decides(ctx context.Context, project string, s catalog.Stream) (*Models, error) {
	switch {
	case s.Models == nil:
		return f.models(ctx, project)
	case s.Models.Gate == nil:
		return nil, nil
	case f.cfg.Picked == nil:
		return nil, fault.At(fault.Invalid, "model "+s.Models.Decides(), "configure its endpoint (MNEME_MODELS), and ask again", "no model endpoint is configured")
	}
	return f.cfg.Picked(ctx, project, s.Models)
}

// refuse turns what ended the run of a request with models of its own, and no
// retry helps, into the request's answer. Any other error is for the broker.
func (f *Function) refuse(ctx context.Context, project string, s catalog.Stream, err error) error {
	if s.Models == nil || s.Only == 0 || !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Denied) {
		return err
	}
	f.cfg.Logger.WarnContext(ctx, "the models of a request are refused", slog.String("project", project), slog.String("stream", s.Name), slog.Any("err", err))
	return f.cfg.Catalog.Refuse(ctx, project, s.Name, catalog.Refusal{Reason: err.Error(), Hint: fault.HintOf(err)})
}

// refused reports whether a stream waits for its request to be made again.
func (f *Function) refused(ctx context.Context, project string, s catalog.Stream) (bool, error) {
	if s.Models == nil || s.Only == 0 {
		return false, nil
	}
	_, is, err := f.cfg.Catalog.Refused(ctx, project, s.Name)
	return is, err
}
