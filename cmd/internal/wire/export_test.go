package wire

import (
	"context"
	"log/slog"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

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
