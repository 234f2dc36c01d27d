package wire

import (
	"context"
	"log/slog"
	"time"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/preflight"
)

// ModelServers are the clients of a configuration, as both programs make them.
type ModelServers struct{ m *modelServers }

// OpenModels makes them; tune changes deadlines and pauses.
func OpenModels(cfg models.Config, count func(string) int, tune ...func(*endpoint.Config)) (ModelServers, error) {
	m, err := newModelServers(cfg, count, slog.New(slog.DiscardHandler), func(string) string { return "" }, tune...)
	return ModelServers{m}, err
}

// Models is gate.Config.Models.
func (m ModelServers) Models(ctx context.Context, project string) (*gate.Models, error) {
	return m.m.models(ctx, project)
}

// Picked is gate.Config.Picked.
func (m ModelServers) Picked(ctx context.Context, project string, p *models.Pick) (*gate.Models, error) {
	return m.m.picked(ctx, project, p)
}

// Doctor is gate.Config.Doctor.
func (m ModelServers) Doctor(ctx context.Context) ([]preflight.Result, error) { return m.m.doctor(ctx) }

// Age makes what was found older.
func (m ModelServers) Age(d time.Duration) {
	m.m.mu.Lock()
	defer m.m.mu.Unlock()
	for _, l := range m.m.looks {
		l.turn <- struct{}{}
		if !l.at.IsZero() {
			l.at = l.at.Add(-d)
		}
		<-l.turn
	}
}

// LookAgain is how long a look counts that found something wrong.
const LookAgain = lookAgain

// Close ends them.
func (m ModelServers) Close() error { return m.m.Close() }

// Built builds the function of a configuration over stores in memory, and closes
// it again.
func Built(ctx context.Context, cfg FnConfig) error {
	p := parts{tenant: cfg.Tenant, key: []byte(cfg.TenantKey.Reveal()), logger: slog.New(slog.DiscardHandler), count: lazyCounter()}
	p.stores = Stores{Inbox: objstore.NewBucket(InboxBucket, memstore.New()), Log: objstore.NewBucket(LogBucket, memstore.New())}
	p.log = eventlog.Open(p.stores.Log, p.tenant, "test")
	p.catalog = catalog.New(p.stores.Log, p.log, p.tenant)
	_, closing, err := p.one(ctx, cfg)
	if err != nil {
		return err
	}
	return closing()
}
