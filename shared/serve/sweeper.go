package serve

import (
	"context"
	"log/slog"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
)

// DefaultSweepInterval is how long a lost event can delay its work under
// `mem up`. A sweep of a log at rest is one listing per function.
const DefaultSweepInterval = 30 * time.Second

// SweeperConfig is what a Sweeper needs.
type SweeperConfig struct {
	Tenant   string
	Interval time.Duration // default DefaultSweepInterval
	// Publish takes the event: Broker.Publish.
	Publish func(ctx context.Context, e ce.Event) error
	Logger  *slog.Logger // gets a line when a sweep cannot be announced
}

// Sweeper sends sweep.requested: at start, at each interval, and on demand. On
// a cluster a PingSource does this.
type Sweeper struct{ cfg SweeperConfig }

// NewSweeper makes a Sweeper.
func NewSweeper(cfg SweeperConfig) *Sweeper {
	cfg.Interval = or(cfg.Interval, DefaultSweepInterval)
	cfg.Logger = orDiscard(cfg.Logger)
	return &Sweeper{cfg: cfg}
}

// Sweep asks for a sweep now. Two are two events; the Broker makes one of those
// that wait.
func (s *Sweeper) Sweep(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "sweep(%s)", s.cfg.Tenant)
	at := time.Now().UTC().Format(time.RFC3339Nano)
	return s.cfg.Publish(ctx, event.New(event.SweepRequested, "sweeper", event.Sweep{Tenant: s.cfg.Tenant, At: at}))
}

// Run sweeps at once and then at each interval until ctx ends. A sweep that the
// broker does not take is logged and not repeated before its next turn.
func (s *Sweeper) Run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Interval)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.WarnContext(ctx, "sweep not announced", KeyTenant, s.cfg.Tenant, KeyError, err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
