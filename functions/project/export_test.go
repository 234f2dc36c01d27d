package project_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/fault"
)

// clock is a world's time of day, which tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// exportWorld learned one decision on the day of functest.Epoch; its runs ended at c.
func exportWorld(t *testing.T, c *clock) *functest.World {
	t.Helper()
	o := reference()
	o.Now = c.now
	w := functest.New(t, o)
	w.Ask("shop", "decisions")
	w.Learned("shop/a.jsonl", functest.Decision("a", day, "We decided to keep blobs as zstd, because the bucket grew too fast."))
	return w
}

// stored are the names under a prefix with their bytes.
func stored(t *testing.T, w *functest.World, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for info, err := range w.Bucket.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), info.Key, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(info.Key, prefix)] = string(b)
	}
	return out
}

// asked are the days that a sweep of project asks for.
func asked(t *testing.T, w *functest.World) (out []string) {
	t.Helper()
	es, err := w.Project.Handle(t.Context(), event.New(event.SweepRequested, "cron", event.Sweep{Tenant: functest.Tenant, At: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if event.Type(e.Type()) == event.ExportRequested {
			d, err := event.DecodeFor[event.Export](e, functest.Tenant)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, d.Day)
		}
	}
	return out
}

func exportEvent(day string) ce.Event {
	return event.New(event.ExportRequested, "ping", event.Export{Tenant: functest.Tenant, Day: day})
}

// TestNightly: the sweep asks for the days that are over since the first admission and
// have no marker, again after an hour and no more once they stand; a day without a
// decision is whole files without rows. The event twice is the same bytes.
func TestNightly(t *testing.T) {
	t.Parallel()
	c := &clock{functest.Epoch.Add(time.Hour)} // 1 March
	w := exportWorld(t, c)
	c.at = time.Date(2026, 3, 4, 0, 30, 0, 0, time.UTC)
	if diff := cmp.Diff([]string{"2026-03-03", "2026-03-02", "2026-03-01"}, asked(t, w)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if got := asked(t, w); got != nil {
		t.Errorf("30 seconds later: %v", got)
	}
	c.at = c.at.Add(61 * time.Minute)
	if got := asked(t, w); len(got) != 3 {
		t.Errorf("an hour later: %v", got)
	}
	for _, d := range []string{"2026-03-01", "2026-03-02", "2026-03-03"} {
		if es, err := w.Project.Handle(t.Context(), exportEvent(d)); err != nil || es != nil {
			t.Fatal(es, err)
		}
	}
	for d, rows := range map[string]int64{"2026-03-01": 1, "2026-03-02": 0} {
		prefix := export.DayPrefix(functest.Tenant, d)
		got := stored(t, w, prefix)
		r, err := export.ParseManifest("m", []byte(got[export.Manifest]))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 10 || got[export.Marker] != r.ExportID+"\n" || r.Files[0].Rows != rows {
			t.Errorf("%s: %d objects, %d rows", d, len(got), r.Files[0].Rows)
		}
		if _, err := w.Project.Handle(t.Context(), exportEvent(d)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, stored(t, w, prefix)); diff != "" {
			t.Errorf("%s twice differs", d)
		}
	}
	c.at = c.at.Add(61 * time.Minute)
	if got := asked(t, w); got != nil {
		t.Errorf("when all stand: %v", got)
	}
	w.Stores.Calls() // those so far
	asked(t, w)
	for _, call := range w.Stores.Calls() {
		if strings.Contains(call.Key, "exports") {
			t.Errorf("a sweep after that still calls %s %s", call.Op, call.Key)
		}
	}
	c.at = c.at.AddDate(0, 0, 30)
	if got := asked(t, w); len(got) != 7 {
		t.Errorf("after a month: %d days", len(got))
	}

	nobody := functest.New(t, functest.Options{Graph: w.Graph, Lexical: w.Lexical, Now: c.now})
	if got := asked(t, nobody); got != nil {
		t.Errorf("a tenant without a project: %v", got)
	}
}

// TestExportEvents: what is no day, not over, or of another tenant is refused for good.
func TestExportEvents(t *testing.T) {
	t.Parallel()
	c := &clock{functest.Epoch}
	w := exportWorld(t, c)
	for what, e := range map[string]ce.Event{
		"today":          exportEvent(functest.Epoch.Format(time.DateOnly)),
		"tomorrow":       exportEvent(functest.Epoch.AddDate(0, 0, 1).Format(time.DateOnly)),
		"no day":         exportEvent("../../log"),
		"another tenant": event.New(event.ExportRequested, "ping", event.Export{Tenant: "other", Day: "2026-02-28"}),
	} {
		if _, err := w.Project.Handle(t.Context(), e); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Denied) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := stored(t, w, export.Prefix); len(got) != 0 {
		t.Errorf("%d objects stand", len(got))
	}
}

// TestExportKilled: whatever store call is the last of a process, no marker stands for
// less than a whole export, and the event again makes it.
func TestExportKilled(t *testing.T) {
	t.Parallel()
	c := &clock{functest.Epoch.Add(time.Hour)}
	w := exportWorld(t, c)
	c.at = c.at.AddDate(0, 0, 2)
	const day = "2026-03-01"
	prefix := export.DayPrefix(functest.Tenant, day)
	if _, err := w.Project.Handle(t.Context(), exportEvent(day)); err != nil {
		t.Fatal(err)
	}
	want := stored(t, w, prefix)
	killed := 0
	for n := 0; ; n++ {
		for name := range want {
			if err := w.Bucket.Delete(t.Context(), prefix+name); err != nil {
				t.Fatal(err)
			}
		}
		reached := w.Stores.DieAt(n, n%2 == 0, errors.New("killed"))
		_, err := w.Project.Handle(t.Context(), exportEvent(day))
		w.Stores.Fail(nil, nil)
		if !reached() {
			break
		}
		killed++
		if err == nil {
			t.Errorf("call %d failed and nobody says so", n)
		}
		got := stored(t, w, prefix)
		for name, b := range got {
			if b != want[name] {
				t.Errorf("killed at %d: a part of %s is seen", n, name)
			}
		}
		if got[export.Marker] != "" && len(got) != len(want) {
			t.Errorf("killed at %d: a marker stands for %d objects", n, len(got))
		}
		again := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical, Now: c.now})
		if _, err := again.Project.Handle(t.Context(), exportEvent(day)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, stored(t, w, prefix)); diff != "" {
			t.Errorf("killed at %d: not the same after it", n)
		}
	}
	if killed < 20 {
		t.Fatalf("killed %d times only: the test proves nothing", killed)
	}
}

// fetch gets one file of an export that was asked for.
func fetch(w *functest.World, id, name string) (int, []byte) {
	rec := w.Call(http.MethodGet, "/memory/export/"+id+"/"+name, nil)
	return rec.Code, rec.Body.Bytes()
}

// TestExportRoutes: an export is asked for, fetched file by file and dropped; one that is
// kept stays; what nobody fetched in a day goes with the next request.
func TestExportRoutes(t *testing.T) {
	t.Parallel()
	c := &clock{functest.Epoch}
	w := exportWorld(t, c)
	var out project.Exported
	w.Post("/memory/export", map[string]any{}, http.StatusOK, &out)
	if out.Gates != 1 || len(out.Files) != 8 || !strings.HasPrefix(out.Prefix, export.AskedPrefix(functest.Tenant)) {
		t.Errorf("%+v", out)
	}
	dir := t.TempDir()
	for _, name := range out.Names() {
		code, body := fetch(w, out.ExportID, name)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", name, code, body)
		}
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := export.CheckPath(dir); err != nil || len(got) != 8 {
		t.Error(err)
	}
	if rec := w.Call(http.MethodDelete, "/memory/export/"+out.ExportID, nil); rec.Code != http.StatusNoContent {
		t.Errorf("drop: %d %s", rec.Code, rec.Body)
	}
	if code, _ := fetch(w, out.ExportID, export.Gates); code != http.StatusNotFound {
		t.Errorf("after the drop: %d", code)
	}

	var kept project.Exported
	w.Post("/memory/export", map[string]any{"keep": true}, http.StatusOK, &kept)
	if kept.ExportID != out.ExportID || len(stored(t, w, kept.Prefix)) != 10 {
		t.Errorf("%s is not kept under %s", kept.ExportID, kept.Prefix)
	}
	if code, b := fetch(w, kept.ExportID, export.Marker); code != http.StatusOK || string(bytes.TrimSpace(b)) != kept.ExportID {
		t.Errorf("kept: %d %s", code, b)
	}

	for body, want := range map[string]string{
		`{"format":"csv"}`:     "is not a format",
		`{"since":"monday"}`:   "is not a time",
		`{"split":"half"}`:     "is not a split",
		`{"project":"nobody"}`: "nothing is known of it",
		`{"bucket":"x"}`:       "unknown field",
		`[]`:                   "cannot unmarshal",
		`{"since":"2026-03-02","until":"2026-03-01"}`: "nothing lies between",
	} {
		rec := w.Call(http.MethodPost, "/memory/export", json.RawMessage(body))
		if rec.Code/100 != 4 || !strings.Contains(rec.Body.String(), want) || !strings.Contains(rec.Body.String(), "hint") {
			t.Errorf("%s: %d %s, want %s and a hint", body, rec.Code, rec.Body, want)
		}
	}
	for _, target := range []string{"/memory/export/x/" + export.Gates, "/memory/export/" + strings.Repeat("0", 32) + "/" + export.Gates, "/memory/export/" + kept.ExportID + "/..%2F..%2Fx"} {
		if rec := w.Call(http.MethodGet, target, nil); rec.Code/100 != 4 {
			t.Errorf("%s: %d", target, rec.Code)
		}
	}

	var left project.Exported
	w.Post("/memory/export", map[string]any{"format": "sft"}, http.StatusOK, &left)
	w.Stores.Skip(25 * time.Hour)
	w.Post("/memory/export", map[string]any{"format": "kto"}, http.StatusOK, &out)
	if got := stored(t, w, left.Prefix); len(got) != 0 {
		t.Errorf("%d objects stand that nobody fetched", len(got))
	}
	if len(stored(t, w, kept.Prefix)) != 10 {
		t.Error("the kept one went too")
	}
}

// TestExportNights: the exports of nights are listed, read and fetched by their day, only
// where they stand whole, and stay.
func TestExportNights(t *testing.T) {
	t.Parallel()
	c := &clock{functest.Epoch.Add(time.Hour)}
	w := exportWorld(t, c)
	var none project.Nights
	if rec := w.Call(http.MethodGet, "/memory/export", nil); rec.Code != http.StatusOK || json.Unmarshal(rec.Body.Bytes(), &none) != nil || none.Nights == nil || len(none.Nights) != 0 {
		t.Errorf("without one: %d %s", rec.Code, rec.Body)
	}
	c.at = c.at.AddDate(0, 0, 3)
	for _, d := range []string{"2026-03-02", "2026-03-01"} {
		if _, err := w.Project.Handle(t.Context(), exportEvent(d)); err != nil {
			t.Fatal(err)
		}
	}
	var kept project.Exported
	w.Post("/memory/export", map[string]any{"keep": true}, http.StatusOK, &kept)

	var out project.Exported
	rec := w.Call(http.MethodGet, "/memory/export/2026-03-01", nil)
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil || rec.Code != http.StatusOK || out.Gates != 1 || out.Prefix != export.DayPrefix(functest.Tenant, "2026-03-01") {
		t.Fatalf("the manifest: %d %s", rec.Code, rec.Body)
	}
	rec = w.Call(http.MethodGet, "/memory/export", nil)
	var list project.Nights
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list.Nights) != 2 || list.Nights[0].Day != "2026-03-01" || list.Nights[0].ExportID != out.ExportID || list.Nights[0].SizeBytes < 1000 || list.Nights[1].Day != "2026-03-02" {
		t.Errorf("the list: %d %s", rec.Code, rec.Body)
	}
	dir := t.TempDir()
	for _, name := range out.Names() {
		code, body := fetch(w, "2026-03-01", name)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", name, code, body)
		}
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := export.CheckPath(dir); err != nil || len(got) != 8 {
		t.Error(err)
	}
	rec = w.Call(http.MethodGet, "/memory/export/"+kept.ExportID, nil)
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil || rec.Code != http.StatusOK || out.Prefix != kept.Prefix {
		t.Errorf("the kept one's manifest: %d %s", rec.Code, rec.Body)
	}

	if rec := w.Call(http.MethodDelete, "/memory/export/2026-03-01", nil); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "not removed") {
		t.Errorf("a night is dropped: %d %s", rec.Code, rec.Body)
	}
	if err := w.Bucket.Delete(t.Context(), export.DayPrefix(functest.Tenant, "2026-03-02")+export.Marker); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]int{
		"2026-03-02": http.StatusNotFound, "2026-03-02/" + export.Gates: http.StatusNotFound, "2026-03-03": http.StatusNotFound,
		"2026-02-31": http.StatusBadRequest, "_kept": http.StatusBadRequest, "2026-03-01/other": http.StatusBadRequest,
	} {
		if rec := w.Call(http.MethodGet, "/memory/export/"+target, nil); rec.Code != want || !strings.Contains(rec.Body.String(), "hint") {
			t.Errorf("%s: %d %s, want %d and a hint", target, rec.Code, rec.Body, want)
		}
	}
	rec = w.Call(http.MethodGet, "/memory/export", nil)
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list.Nights) != 1 {
		t.Errorf("without a marker it is listed: %s", rec.Body)
	}
}

// TestWithdraw: exports that hold what was erased since go with the rebuild that a scrub
// asks for; a day's is asked for again, also where the first try was interrupted.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	const secret = "ACME-77aa88bb99"
	c := &clock{functest.Epoch.Add(time.Hour)}
	w := exportWorld(t, c)
	w.Learned("shop/s.jsonl", functest.Decision("s", day, "We decided to sign the releases with the key "+secret+", because the old one leaked."))
	w.Ask("till", "decisions")
	w.Learned("till/t.jsonl", functest.Decision("t", day, "We decided to keep the till open on Sundays, because people ask for it."))
	c.at = c.at.AddDate(0, 0, 1)
	if _, err := w.Project.Handle(t.Context(), exportEvent("2026-03-01")); err != nil {
		t.Fatal(err)
	}
	var kept, other project.Exported
	w.Post("/memory/export", map[string]any{"keep": true, "project": "shop"}, http.StatusOK, &kept)
	w.Post("/memory/export", map[string]any{"keep": true, "project": "till"}, http.StatusOK, &other)
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte("patterns:\n  - name: acme\n    regexp: 'ACME-[0-9a-f]{10}'\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil {
		t.Fatal(err)
	}
	rebuild := event.New(event.RebuildRequested, "learn", event.Project{Tenant: functest.Tenant, Project: "shop"})
	for range 2 { // the second time nobody carried out what the first asked for
		es, err := w.Project.Handle(t.Context(), rebuild)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(es, func(e ce.Event) bool { return event.Type(e.Type()) == event.ExportRequested })
		if i < 0 {
			t.Fatalf("the day is not asked for again: %v", es)
		}
		if got := stored(t, w, export.DayPrefix(functest.Tenant, "2026-03-01")); len(got) != 1 || got[export.Manifest] == "" {
			t.Errorf("of the day %d objects stand", len(got))
		}
	}
	if len(stored(t, w, kept.Prefix)) != 0 || len(stored(t, w, other.Prefix)) != 10 {
		t.Error("the kept export of the project stands, or that of the other does not")
	}
	if _, err := w.Project.Handle(t.Context(), exportEvent("2026-03-01")); err != nil {
		t.Fatal(err)
	}
	es, err := w.Project.Handle(t.Context(), rebuild)
	if err != nil || slices.ContainsFunc(es, func(e ce.Event) bool { return event.Type(e.Type()) == event.ExportRequested }) {
		t.Errorf("asked for again though it is new: %v, %v", es, err)
	}
	if got := stored(t, w, export.DayPrefix(functest.Tenant, "2026-03-01")); len(got) != 10 {
		t.Errorf("of the new one %d objects stand", len(got))
	}
}
