package serve

import (
	"encoding/json"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
)

// fromPing is the event that a tick of Knative's cron source stands for, and
// every other event as it is. The extension mnemejob names the job ("sweep",
// "rebuild", "synthesis", "export"); the scope comes from the source's own data, {"tenant", "project"},
// or else from the extensions. A tick has a random id, so the new id comes from
// the content, as everywhere.
func fromPing(e ce.Event) (ce.Event, error) {
	if event.Type(e.Type()) != event.Ping {
		return e, nil
	}
	var scope struct {
		Tenant  string `json:"tenant"`
		Project string `json:"project"`
	}
	if len(e.Data()) > 0 {
		if err := json.Unmarshal(e.Data(), &scope); err != nil {
			return ce.Event{}, fault.At(fault.Invalid, "ping data", `give {"tenant": "…"} as the source's data`, "%v", err)
		}
	}
	if scope.Tenant == "" {
		scope.Tenant = extension(e, extTenant)
	}
	if scope.Project == "" {
		scope.Project = extension(e, extProject)
	}
	var out ce.Event
	switch job := extension(e, extJob); job {
	case "sweep":
		at := e.Time()
		if at.IsZero() {
			at = time.Now()
		}
		out = event.New(event.SweepRequested, "ping", event.Sweep{Tenant: scope.Tenant, At: at.UTC().Format(time.RFC3339Nano)})
	case "rebuild":
		out = event.New(event.RebuildRequested, "ping", event.Project{Tenant: scope.Tenant, Project: scope.Project})
	case "synthesis":
		out = event.New(event.SynthesisRequested, "ping", event.Synthesis{Tenant: scope.Tenant, Project: scope.Project})
	case "export": // the day before the tick's: the one that is over
		at := e.Time()
		if at.IsZero() {
			at = time.Now()
		}
		out = event.New(event.ExportRequested, "ping", event.Export{Tenant: scope.Tenant, Day: at.UTC().AddDate(0, 0, -1).Format(time.DateOnly)})
	default:
		return ce.Event{}, fault.At(fault.Invalid, "ping extension "+extJob, "name sweep, rebuild, synthesis or export", "job %q is not known", job)
	}
	carry(&out, e)
	return out, nil
}

// carry copies the trace of cause onto e, unless e has its own.
func carry(e *ce.Event, cause ce.Event) {
	if t := extension(cause, extTraceparent); t != "" && extension(*e, extTraceparent) == "" {
		e.SetExtension(extTraceparent, t)
	}
}
