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
// which a sweep admits them: by (Last-Modified, key). It costs two listings,
// not a request an object.
func (f *Function) Pending(ctx context.Context) (_ []event.Object, err error) {
	defer fault.Wrap(&err, "pending objects")
	done, err := f.cfg.Log.ReceiptIDs(ctx)
	if err != nil {
		return nil, err
	}
	var infos []objstore.Info
	for info, err := range f.cfg.Inbox.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(info.Key, "/") || done[eventlog.ReceiptID(f.cfg.Inbox.Name(), info.Key, info.ETag)] {
			continue
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b objstore.Info) int {
		if c := a.ModTime.Compare(b.ModTime); c != 0 {
			return c
		}
		return strings.Compare(a.Key, b.Key)
	})
	out := make([]event.Object, len(infos))
	for i, info := range infos {
		out[i] = event.Object{Bucket: f.cfg.Inbox.Name(), Key: info.Key, ETag: info.ETag, SizeBytes: info.SizeBytes}
	}
	return out, nil
}

// sweep admits what no notification announced. One object that cannot be read
// does not hold up the others; the first error is returned at the end, so that
// the broker tries again.
func (f *Function) sweep(ctx context.Context) ([]ce.Event, error) {
	pending, err := f.Pending(ctx)
	if err != nil {
		return nil, err
	}
	start := f.cfg.Now()
	var out []ce.Event
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
			break
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
