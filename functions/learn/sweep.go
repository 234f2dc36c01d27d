package learn

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Pending lists the objects of the inbox that have no receipt, in the order in
// which a sweep admits them: by (Last-Modified, key). It costs three listings and
// a GET, not a request an object. When the schemas have changed since the last
// sweep, what was refused before is pending too.
func (f *Function) Pending(ctx context.Context) (_ []event.Object, err error) {
	p, err := f.pending(ctx)
	return p.objects, err
}

// backlog is what a sweep has to do.
type backlog struct {
	objects []event.Object
	schemas string // their version
	moved   bool   // the last sweep knew another one
	etag    string // of the pointer that says so
}

func (f *Function) pending(ctx context.Context) (p backlog, err error) {
	defer fault.Wrap(&err, "pending objects")
	schemas, err := f.cfg.Catalog.Schemas(ctx)
	if err != nil {
		return p, err
	}
	p.schemas = schemas.Version
	swept, etag, err := f.cfg.Catalog.SweptSchemas(ctx)
	if err != nil {
		return p, err
	}
	p.etag, p.moved = etag, swept != p.schemas
	done, err := f.cfg.Log.ReceiptIDs(ctx)
	if err != nil {
		return p, err
	}
	// After the receipts: a dead letter is written before its receipt.
	var refused map[string]bool
	if p.moved {
		if refused, err = f.refused(ctx); err != nil {
			return p, err
		}
	}
	var infos []objstore.Info
	for info, err := range f.cfg.Inbox.List(ctx, "") {
		if err != nil {
			return p, err
		}
		if strings.HasSuffix(info.Key, "/") {
			continue
		}
		if id := eventlog.ReceiptID(f.cfg.Inbox.Name(), info.Key, info.ETag); done[id] {
			if !refused[f.cfg.Inbox.Name()+"/"+info.Key] {
				continue
			}
			r, ok, err := f.cfg.Log.ReceiptByID(ctx, id)
			if err != nil {
				return p, err
			}
			if ok && (r.Final() || r.Schemas == p.schemas) {
				continue
			}
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b objstore.Info) int {
		if c := a.ModTime.Compare(b.ModTime); c != 0 {
			return c
		}
		return strings.Compare(a.Key, b.Key)
	})
	p.objects = make([]event.Object, len(infos))
	for i, info := range infos {
		p.objects[i] = event.Object{Bucket: f.cfg.Inbox.Name(), Key: info.Key, ETag: info.ETag, SizeBytes: info.SizeBytes}
	}
	return p, nil
}

// refused names the objects that have a dead letter of this function: all that
// is in no format that is read, and little else.
func (f *Function) refused(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for d, err := range f.cfg.Log.DeadLetters(ctx) {
		switch {
		case fault.Is(err, fault.Corrupt):
			continue // mem dead shows it
		case err != nil:
			return nil, err
		case d.Function == f.Name() && d.Key != "":
			out[d.Key] = true
		}
	}
	return out, nil
}

// sweep admits what no notification announced. One object that cannot be read
// does not hold up the others; the first error is returned at the end, so that
// the broker tries again.
func (f *Function) sweep(ctx context.Context) ([]ce.Event, error) {
	finished, err := f.finishForgotten(ctx)
	if err != nil {
		return nil, err
	}
	p, err := f.pending(ctx)
	if err != nil {
		return nil, err
	}
	pending, whole := p.objects, true
	start := f.cfg.Now()
	out := finished
	var first error
	for i, o := range pending {
		res, err := f.Object(ctx, o)
		if err != nil {
			f.cfg.Logger.WarnContext(ctx, "swept object not read", slog.String("key", f.shown(o.Key)), slog.Any("err", err))
			if first == nil {
				first = err
			}
			continue
		}
		out = append(out, res.Events...)
		if f.cfg.Now().Sub(start) > f.cfg.SweepBudget && i < len(pending)-1 {
			out = append(out, event.New(event.SweepRequested, f.Name(), event.Sweep{
				Tenant: f.cfg.Tenant, At: f.cfg.Now().UTC().Format(time.RFC3339Nano),
			}))
			whole = false
			break
		}
	}
	if whole && first == nil && p.moved {
		if err := f.cfg.Catalog.SetSweptSchemas(ctx, p.schemas, p.etag); err != nil && !fault.Is(err, fault.Conflict) {
			first = err
		}
	}
	if first != nil && f.cfg.Publish != nil && len(out) > 0 {
		// The admitted ones are announced now; returning an error would drop
		// their events until the next sweep of the other functions.
		if err := f.cfg.Publish(ctx, out...); err != nil {
			return nil, err
		}
		return nil, first
	}
	return out, first
}
