package project

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/serve"
)

// This file writes exports for training (shared/export): of each day, once it is over,
// and of what somebody asks for.

const (
	// askAgain is how long the sweep leaves a day alone that it has asked for: one that
	// can not be exported is a dead letter, and not one every thirty seconds.
	askAgain = time.Hour
	// askedFor is how long an export stands that nobody fetched.
	askedFor = 24 * time.Hour
	// lookBack is how many days before today a sweep looks for: what was off for longer is
	// asked for by hand.
	lookBack = 7
	// progressGates is after how many decisions a line of progress is sent.
	progressGates = 1000
)

// one is held while an export is written: its rows and its files' row groups are in
// memory, and two at a time are twice that.
func (f *Function) one(ctx context.Context) (done func(), err error) {
	select {
	case f.exporting <- struct{}{}:
		return func() { <-f.exporting }, nil
	case <-ctx.Done():
		return nil, fault.As(fault.Unavailable, context.Cause(ctx))
	}
}

// exportDay writes the export of a day that is over. The one that stands is left where
// it follows from the same log.
func (f *Function) exportDay(ctx context.Context, day string) (err error) {
	defer fault.Wrap(&err, "export of %s", day)
	o, err := export.Day(day)
	if err != nil {
		return err
	}
	if f.cfg.Now().Before(o.Until) {
		return fault.At(fault.Invalid, "day", "ask again when it is over, UTC", "%s is not over", day)
	}
	_, err = f.export(ctx, o, func(string) string { return export.DayPrefix(f.cfg.Tenant, day) }, nil)
	return err
}

// export writes an export under the prefix of its id, unless it stands there.
func (f *Function) export(ctx context.Context, o export.Options, prefixOf func(id string) string, progress func(int)) (r export.Report, err error) {
	done, err := f.one(ctx)
	if err != nil {
		return r, err
	}
	defer done()
	s, err := f.exporter.Snapshot(ctx, o)
	if err != nil {
		return r, err
	}
	prefix := prefixOf(s.ID)
	id, err := export.Published(ctx, f.cfg.Bucket, prefix)
	if err != nil {
		return r, err
	}
	if id == s.ID {
		return f.published(ctx, prefix)
	}
	dir, err := os.MkdirTemp(f.cfg.TempDir, "mneme-export-*")
	if err != nil {
		return r, fault.As(fault.Unavailable, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if r, err = f.exporter.Write(ctx, s, dir, progress); err != nil {
		return r, err
	}
	for _, p := range r.Problems {
		f.cfg.Logger.ErrorContext(ctx, "a project is not in the export", serve.KeyProject, p.Project, serve.KeyError, p.Error, serve.KeyHint, p.Hint)
	}
	return r, export.Publish(ctx, f.cfg.Bucket, prefix, dir, &r)
}

// maxManifest bounds a manifest that is read, some 200 bytes a stream.
const maxManifest = 64 << 20

func (f *Function) published(ctx context.Context, prefix string) (r export.Report, err error) {
	b, _, err := f.cfg.Bucket.ReadAll(ctx, prefix+export.Manifest, maxManifest)
	if err != nil {
		return r, err
	}
	got, err := export.ParseManifest(prefix+export.Manifest, b)
	if err != nil {
		return r, err
	}
	return *got, nil
}

// nightly asks for the exports of the days that are over and have no marker: yesterday's,
// and those of the days before it on which somebody had learned something, lookBack of
// them. One HEAD a day, once an hour until all stand, and then none until midnight.
func (f *Function) nightly(ctx context.Context) (out []ce.Event, err error) {
	now := f.cfg.Now().UTC()
	yesterday := now.AddDate(0, 0, -1).Format(time.DateOnly)
	f.asked.Lock()
	defer f.asked.Unlock()
	if f.asked.seen == yesterday || now.Sub(f.asked.at) < askAgain && f.asked.day == yesterday {
		return nil, nil
	}
	first, err := f.firstDay(ctx)
	if err != nil || first == "" {
		return nil, err
	}
	for back := range lookBack {
		day := now.AddDate(0, 0, -1-back).Format(time.DateOnly)
		if back > 0 && day < first {
			break
		}
		_, err := f.cfg.Bucket.Head(ctx, export.DayPrefix(f.cfg.Tenant, day)+export.Marker)
		switch {
		case errors.Is(err, objstore.ErrNotFound):
			out = append(out, f.askFor(day))
		case err != nil:
			return nil, err
		}
	}
	f.asked.day, f.asked.at = yesterday, now
	if len(out) == 0 {
		f.asked.seen = yesterday
	}
	return out, nil
}

func (f *Function) askFor(day string) ce.Event {
	return event.New(event.ExportRequested, f.Name(), event.Export{Tenant: f.cfg.Tenant, Day: day})
}

// firstDay is the day of the tenant's first admission; "" where there is none. No run
// ended before it.
func (f *Function) firstDay(ctx context.Context) (first string, err error) {
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return "", err
	}
	for _, p := range projects {
		for a, err := range f.cfg.Log.Admits(ctx, p, 0) {
			if err != nil {
				return "", err
			}
			if day := a.StoredAt.UTC().Format(time.DateOnly); first == "" || day < first {
				first = day
			}
			break
		}
	}
	return first, nil
}

// withdraw takes away the exports that hold what was erased since from the project. A
// day's is asked for anew, and its manifest stays until then: it says so again where
// this is interrupted.
func (f *Function) withdraw(ctx context.Context, project string) (out []ce.Event, err error) {
	defer fault.Wrap(&err, "withdraw exports of %s", project)
	now, err := f.exporter.Erased(ctx, project)
	if err != nil {
		return nil, err
	}
	var manifests []string
	for info, err := range f.cfg.Bucket.List(ctx, export.Prefix) {
		if err != nil {
			return nil, err
		}
		if _, ok := export.Located(f.cfg.Tenant, info.Key); ok && path.Base(info.Key) == export.Manifest {
			manifests = append(manifests, info.Key)
		}
	}
	for _, key := range manifests {
		prefix := strings.TrimSuffix(key, export.Manifest)
		r, err := f.published(ctx, prefix)
		if err == nil && !r.Stale(now) {
			continue
		}
		if err != nil && !fault.Is(err, fault.Corrupt) { // one that nobody can read is no use either
			return nil, err
		}
		day, _ := export.Located(f.cfg.Tenant, key)
		if err := f.drop(ctx, prefix, day != ""); err != nil {
			return nil, err
		}
		if day != "" {
			out = append(out, f.askFor(day))
		}
	}
	return out, nil
}

// ExportRequest is the body of POST /memory/export.
type ExportRequest struct {
	// Keep leaves the export in the bucket; else it is there to be fetched, for a day.
	Keep    bool   `json:"keep,omitempty"`
	Since   string `json:"since,omitempty"`   // a day, UTC, or a time: runs that ended then or later
	Until   string `json:"until,omitempty"`   // the last day, or a time before which they ended
	Project string `json:"project,omitempty"` // this one alone
	Format  string `json:"format,omitempty"`  // canonical, sft, kto, dpo, verl or all
	Split   string `json:"split,omitempty"`   // train, val or test alone
}

func (b *ExportRequest) options() (o export.Options, err error) {
	o = export.Options{Project: b.Project, Format: b.Format, Split: b.Split}
	at := func(field, s string, last bool) (time.Time, error) {
		if s == "" {
			return time.Time{}, nil
		}
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UTC(), nil
		}
		t, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return t, fault.At(fault.Invalid, field, "2026-01-31 or 2026-01-31T10:00:00Z", "%q is not a time", s)
		}
		if last {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	if o.Since, err = at("since", b.Since, false); err != nil {
		return o, err
	}
	if o.Until, err = at("until", b.Until, true); err != nil {
		return o, err
	}
	return o, o.Check()
}

func (f *Function) exportRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /memory/export", f.postExport)
	mux.HandleFunc("GET /memory/export", f.listExports)
	mux.HandleFunc("GET /memory/export/{id}", f.getManifest)
	mux.HandleFunc("GET /memory/export/{id}/{file}", f.getExport)
	mux.HandleFunc("DELETE /memory/export/{id}", f.dropExport)
}

// postExport writes an export that is fetched by its id.
func (f *Function) postExport(w http.ResponseWriter, r *http.Request) {
	var b ExportRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {since, until, project, format, split}", "%v", err))
		return
	}
	o, err := b.options()
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	p := serve.NewProgress(w, r)
	said := 0
	out, err := f.Export(r.Context(), o, b.Keep, func(gates int) {
		if gates/progressGates > said {
			said = gates / progressGates
			p.Line(map[string]int{"gates": gates})
		}
	})
	p.End(out, err)
}

// Exported is an export that somebody asked for: its manifest, and where it stands.
type Exported struct {
	export.Report
	Prefix string `json:"prefix"` // in the log bucket
}

// Export writes an export of its own under its id: one that is kept, or one to be
// fetched within a day.
func (f *Function) Export(ctx context.Context, o export.Options, keep bool, progress func(gates int)) (out Exported, err error) {
	if err := f.dropOld(ctx); err != nil {
		return out, err
	}
	under := export.AskedPrefix(f.cfg.Tenant)
	if keep {
		under = export.KeptPrefix(f.cfg.Tenant)
	}
	prefix := func(id string) string { return under + id + "/" }
	if out.Report, err = f.export(ctx, o, prefix, progress); err != nil {
		return out, err
	}
	out.Prefix = prefix(out.ExportID)
	return out, nil
}

// dropOld removes what nobody fetched.
func (f *Function) dropOld(ctx context.Context) error {
	now, err := f.cfg.Bucket.Now(ctx)
	if err != nil {
		return err
	}
	for info, err := range f.cfg.Bucket.List(ctx, export.AskedPrefix(f.cfg.Tenant)) {
		if err != nil {
			return err
		}
		if now.Sub(info.ModTime) > askedFor {
			if err := f.cfg.Bucket.Delete(ctx, info.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// prefixOf is where the export stands that a request names by its id or by its day; one
// that somebody asked for comes before the kept one.
func (f *Function) prefixOf(r *http.Request) (prefix string, err error) {
	name := r.PathValue("id")
	if _, err := export.Day(name); err == nil {
		prefix = export.DayPrefix(f.cfg.Tenant, name)
		id, err := export.Published(r.Context(), f.cfg.Bucket, prefix)
		if err == nil && id == "" {
			err = fault.At(fault.NotFound, "export of "+name, "mem export list shows the nights there are", "it does not stand here")
		}
		return prefix, err
	}
	if !export.ValidID(name) {
		return "", fault.At(fault.Invalid, "id", "as POST /memory/export gave it, or a day such as 2026-01-31", "%q is not the id of an export", name)
	}
	for _, under := range []string{export.AskedPrefix(f.cfg.Tenant), export.KeptPrefix(f.cfg.Tenant)} {
		got, err := export.Published(r.Context(), f.cfg.Bucket, under+name+"/")
		if err != nil || got == name {
			return under + name + "/", err
		}
	}
	return "", fault.At(fault.NotFound, "export "+name, "ask for it again: mem export", "it does not stand here any more")
}

// Nights are the exports of days that stand whole.
type Nights struct {
	Nights []Night `json:"nights"` // by day
}

// Night is one of them.
type Night struct {
	Day       string `json:"day"` // UTC
	ExportID  string `json:"export_id"`
	SizeBytes int64  `json:"size_bytes"` // of its files and its manifest
}

// listExports lists the nights there are.
func (f *Function) listExports(w http.ResponseWriter, r *http.Request) {
	out, err := f.nights(r.Context())
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func (f *Function) nights(ctx context.Context) (out Nights, err error) {
	defer fault.Wrap(&err, "nights")
	out.Nights = []Night{}
	sizes := map[string]int64{}
	var days []string
	for info, err := range f.cfg.Bucket.List(ctx, export.Prefix) {
		if err != nil {
			return out, err
		}
		day, ok := export.Located(f.cfg.Tenant, info.Key)
		switch {
		case !ok || day == "":
		case path.Base(info.Key) == export.Marker:
			days = append(days, day)
		default:
			sizes[day] += info.SizeBytes
		}
	}
	slices.Sort(days)
	for _, day := range days {
		id, err := export.Published(ctx, f.cfg.Bucket, export.DayPrefix(f.cfg.Tenant, day))
		if err != nil {
			return out, err
		}
		if id != "" {
			out.Nights = append(out.Nights, Night{day, id, sizes[day]})
		}
	}
	return out, nil
}

// getManifest answers an export's manifest, and where it stands.
func (f *Function) getManifest(w http.ResponseWriter, r *http.Request) {
	var out Exported
	var err error
	if out.Prefix, err = f.prefixOf(r); err == nil {
		out.Report, err = f.published(r.Context(), out.Prefix)
	}
	if errors.Is(err, objstore.ErrNotFound) { // withdrawn since
		err = fault.At(fault.NotFound, "export", "ask for it again: mem export", "it does not stand here any more")
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

// getExport streams one file.
func (f *Function) getExport(w http.ResponseWriter, r *http.Request) {
	prefix, err := f.prefixOf(r)
	name := r.PathValue("file")
	if err == nil && !export.ValidName(name) {
		err = fault.At(fault.Invalid, "file", "as the manifest lists them", "an export has no file %q", name)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	body, info, err := f.cfg.Bucket.Get(r.Context(), prefix+name)
	if errors.Is(err, objstore.ErrNotFound) {
		err = fault.At(fault.NotFound, "export", "ask for it again: mem export", "it holds no %s", name)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	defer body.Close()
	types := map[string]string{".parquet": "application/vnd.apache.parquet", ".json": "application/json"}
	if t := types[path.Ext(name)]; t != "" {
		w.Header().Set("Content-Type", t)
	} else {
		w.Header().Set("Content-Type", "text/plain")
	}
	w.Header().Set("Content-Length", strconv.FormatInt(info.SizeBytes, 10))
	if _, err := io.Copy(w, body); err != nil {
		f.cfg.Logger.WarnContext(r.Context(), "an export was not fetched to its end", serve.KeyError, err.Error())
		panic(http.ErrAbortHandler) // the length was promised: the client must see that it broke off
	}
}

// dropExport removes an export that was fetched. A night's stays: the sweep would only
// write it again.
func (f *Function) dropExport(w http.ResponseWriter, r *http.Request) {
	prefix, err := f.prefixOf(r)
	if day, _ := export.Located(f.cfg.Tenant, prefix+export.Marker); err == nil && day != "" {
		err = fault.At(fault.Invalid, "id", "name an export by its id", "the export of a night is not removed")
	}
	if err == nil {
		err = f.drop(r.Context(), prefix, false)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// drop removes an export, its marker first.
func (f *Function) drop(ctx context.Context, prefix string, keepManifest bool) error {
	if err := f.cfg.Bucket.Delete(ctx, prefix+export.Marker); err != nil {
		return err
	}
	for info, err := range f.cfg.Bucket.List(ctx, prefix) {
		if err != nil {
			return err
		}
		if keepManifest && info.Key == prefix+export.Manifest {
			continue
		}
		if err := f.cfg.Bucket.Delete(ctx, info.Key); err != nil {
			return err
		}
	}
	return nil
}

// exported serves export.requested.
func (f *Function) exported(ctx context.Context, e ce.Event) ([]ce.Event, error) {
	d, err := event.DecodeFor[event.Export](e, f.cfg.Tenant)
	if err != nil {
		return nil, err
	}
	return nil, f.exportDay(ctx, d.Day)
}
