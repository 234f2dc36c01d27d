package wire

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/preflight"
)

// liveModels are the gate's model servers as the models file has them now. A run that is
// under way keeps those it began with: their clients are closed with the process.
type liveModels struct {
	read func() (models.Config, error) // the configuration as it stands; nil: it never changes
	open func(models.Config) (*modelServers, error)
	log  *slog.Logger

	mu  sync.Mutex
	cfg models.Config
	cur *modelServers // nil: no model can be asked
	old []*modelServers
	bad string // the last error of a change that was not taken
}

func (l *liveModels) now() *modelServers {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur
}

// reload is gate.Config.Reload. A file that cannot be used leaves what decides as it is.
func (l *liveModels) reload(ctx context.Context) (changed bool, err error) {
	if l.read == nil {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		switch {
		case err != nil && err.Error() != l.bad: // said once, however often it is looked at
			l.bad = err.Error()
			l.log.WarnContext(ctx, "the models file changed and is not used", slog.Any("err", err))
		case err == nil:
			l.bad = ""
		}
	}()
	next, err := l.read()
	if err != nil || reflect.DeepEqual(next, l.cfg) {
		return false, err
	}
	if !reflect.DeepEqual(next.Rerank, l.cfg.Rerank) {
		return false, fault.At(fault.Invalid, "models file", "start Mneme again", "what reranks can not change while it runs")
	}
	cur, err := l.open(next)
	if err != nil {
		return false, err
	}
	if l.cur != nil {
		l.old = append(l.old, l.cur)
	}
	l.cfg, l.cur = next, cur
	l.log.InfoContext(ctx, "the models file changed; new parts are decided by what it names now")
	return true, nil
}

func (l *liveModels) close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.old { // the present one is its owner's to close
		err = errors.Join(err, m.Close())
	}
	l.old = nil
	return err
}

// into sets what the gate asks of models.
func (l *liveModels) into(c *gate.Config) {
	none := func() error {
		return fault.At(fault.Invalid, "model", "configure its endpoint (MNEME_MODELS)", "no model endpoint is configured")
	}
	c.Reload = l.reload
	c.Models = func(ctx context.Context, project string) (*gate.Models, error) {
		if m := l.now(); m != nil {
			return m.models(ctx, project)
		}
		return nil, nil
	}
	c.Picked = func(ctx context.Context, project string, p *models.Pick) (*gate.Models, error) {
		if m := l.now(); m != nil {
			return m.picked(ctx, project, p)
		}
		return nil, none()
	}
	c.Pick = func(project string, r models.Request) (*models.Pick, error) {
		if m := l.now(); m != nil {
			return m.cfg.Pick(project, r)
		}
		return nil, none()
	}
	c.Doctor = func(ctx context.Context) ([]preflight.Result, error) {
		if m := l.now(); m != nil {
			return m.doctor(ctx)
		}
		return nil, nil
	}
	c.Budget = func(project string) cost.Budget {
		if m := l.now(); m != nil {
			return m.budget(project)
		}
		return cost.Budget{}
	}
	c.Plan = func(project string, p *models.Pick) *gate.Plan {
		if m := l.now(); m != nil {
			return m.plan(project, p)
		}
		return nil
	}
}
