package export_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// contents are the files of a folder by name.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range es {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func sameBytes(t testing.TB, what string, a, b map[string]string) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))); diff != "" {
		t.Errorf("%s: files (-a +b):\n%s", what, diff)
	}
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

func ids(t testing.TB, dir string) (out []string) {
	t.Helper()
	for _, g := range rows[export.GateRow](t, dir, export.Gates) {
		out = append(out, g.ID)
	}
	return out
}

// TestSameBytes: equal logs give equal bytes, in another process too; and what the bytes
// follow from changes the id.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop", "till")
	label(t, w, "shop", memory.Label{Stream: stream, QueryID: "decisions", Chunk: gates(w, "shop", stream)[0].Chunk, Evidence: true})
	dir, first := write(t, w, export.Options{})
	want := contents(t, dir)
	again := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
	dir, second := write(t, again, export.Options{})
	sameBytes(t, "a second process", want, contents(t, dir))
	if first.ExportID != second.ExportID || first.Rewards.Labelled != 1 {
		t.Errorf("ids %s and %s, rewards %+v", first.ExportID, second.ExportID, first.Rewards)
	}

	seen := map[string]string{first.ExportID: "at first"}
	differs := func(what string, o export.Options) {
		t.Helper()
		s, err := exporter(t, w).Snapshot(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if before := seen[s.ID]; before != "" {
			t.Errorf("%s has the id of %s", what, before)
		}
		seen[s.ID] = what
	}
	differs("a day", export.Options{Since: start})
	differs("a project", export.Options{Project: "shop"})
	differs("a split", export.Options{Split: "val"})
	differs("a format", export.Options{Format: "kto"})
	label(t, w, "shop", memory.Label{Stream: stream, QueryID: "decisions", Chunk: gates(w, "shop", stream)[1].Chunk})
	differs("another label", export.Options{})
	w.Learned("shop/c.jsonl", functest.Decision("c", start, "Never deploy on Fridays, no exceptions."))
	differs("another part", export.Options{})
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte("patterns:\n  - name: acme\n    regexp: 'ACME-[0-9]+'\n")); err != nil {
		t.Fatal(err)
	}
	differs("other rules", export.Options{})
}

// TestDays: the exports of all days together are the export of everything, whatever the
// days: a walk that begins in the middle of a stream gives the same rows as one from its
// beginning.
func TestDays(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	decided(t, w.Log, w.Admits("shop")[0], 1000, 100) // 10 segments, 10 days
	dir, all := write(t, w, dated("canonical"))
	ofMany := func(rs []export.GateRow) []export.GateRow {
		return slices.DeleteFunc(rs, func(g export.GateRow) bool { return g.Stream != many })
	}
	want := ofMany(rows[export.GateRow](t, dir, export.Gates))
	if len(want) != 1000 {
		t.Fatalf("%d rows", len(want))
	}
	var got []export.GateRow
	for d := start.Truncate(24 * time.Hour); d.Before(start.AddDate(0, 0, 12)); d = d.AddDate(0, 0, 1) {
		dir, r := write(t, w, export.Options{Since: d, Until: d.AddDate(0, 0, 1), Project: "shop", Format: "canonical"})
		day := rows[export.GateRow](t, dir, export.Gates)
		if len(day) != r.Gates {
			t.Fatalf("%s: %d rows of %d", d, len(day), r.Gates)
		}
		for i := range day {
			at := time.UnixMicro(day[i].EndedUS).UTC()
			if at.Before(d) || !at.Before(d.AddDate(0, 0, 1)) {
				t.Fatalf("%s: %s ended %s", d, day[i].ID, at)
			}
			day[i].ExportID = all.ExportID
		}
		got = append(got, ofMany(day)...)
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows by the day, %d at once", len(got), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Fatalf("row %d (-at once +by the day):\n%s", i, diff)
		}
	}
}

// TestConsent: a project that says export: false is in no file and no text of it is read;
// one whose question file cannot be read is left out and named.
func TestConsent(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop", "till", "vault")
	put := func(project, yaml string) {
		t.Helper()
		if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/"+project+"/questions.yaml", []byte(yaml)); err != nil {
			t.Fatal(err)
		}
	}
	put("till", "project: till\nexport: false\nqueries:\n  - id: decisions\n    question: "+functest.Wording("decisions")+"\n")
	put("vault", "project: vault\nexport: perhaps\n")
	dir, r := write(t, w, export.Options{})
	for _, id := range ids(t, dir) {
		if !strings.HasPrefix(id, "shop/") {
			t.Errorf("row %s", id)
		}
	}
	for name, b := range contents(t, dir) {
		if name != export.Manifest && (strings.Contains(b, "till") || strings.Contains(b, "vault")) {
			t.Errorf("%s names a project that is left out", name)
		}
	}
	if r.Absent["no_consent"] != len(gates(w, "till", stream))*2 || len(r.Problems) != 1 || r.Problems[0].Project != "vault" || !strings.Contains(r.Problems[0].Error, "questions.yaml:2") {
		t.Errorf("absent %v, problems %+v", r.Absent, r.Problems)
	}
}

const secret = "ACME-77aa88bb99"

func secretWorld(t *testing.T) *functest.World {
	w := world(t, functest.Options{}, "shop")
	w.Learned("shop/s.jsonl", functest.Decision("s", start, "We decided to sign the releases with the key "+secret+", because the old one leaked."))
	return w
}

func forbid(t *testing.T, w *functest.World) {
	t.Helper()
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte("patterns:\n  - name: acme\n    regexp: 'ACME-[0-9a-f]{10}'\n")); err != nil {
		t.Fatal(err)
	}
}

// texts are all string columns of the files that hold text.
func texts(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, g := range rows[export.GateRow](t, dir, export.Gates) {
		for _, s := range []*string{g.PromptUser, g.Completion, g.RawOutput, &g.Reason, &g.Think} {
			if s != nil {
				b.WriteString(*s)
			}
		}
	}
	for _, r := range rows[export.SFTRow](t, dir, export.SFT) {
		for _, m := range r.Messages {
			b.WriteString(m.Content)
		}
	}
	for _, r := range rows[export.SFTPCRow](t, dir, export.SFTPC) {
		b.WriteString(r.Prompt[1].Content)
	}
	for _, r := range rows[export.KTORow](t, dir, export.KTO) {
		b.WriteString(r.Prompt[1].Content)
	}
	for _, r := range rows[export.VerlRow](t, dir, export.VerlRL) {
		b.WriteString(r.Prompt[1].Content + r.Context)
	}
	return b.String()
}

// TestNewestRules: what came in under older rules is masked as it is written.
func TestNewestRules(t *testing.T) {
	t.Parallel()
	w := secretWorld(t)
	g := gates(w, "shop", stream)
	label(t, w, "shop", memory.Label{Stream: stream, QueryID: "decisions", Chunk: g[len(g)-1].Chunk, Evidence: true})
	dir, _ := write(t, w, export.Options{})
	if !strings.Contains(texts(t, dir), secret) {
		t.Fatal("the text is not there: the test proves nothing")
	}
	forbid(t, w)
	dir, r := write(t, w, export.Options{})
	if s := texts(t, dir); strings.Contains(s, secret) || !strings.Contains(s, "[REDACTED:acme") && !strings.Contains(s, "acme:") {
		t.Errorf("the secret stands in the export, or no mark does (rules %s)", r.Rules)
	}
}

// TestErased: a chunk that a scrub erased is in no file, its newly redacted form is no
// decision, and the export is another one though no stream may have grown.
func TestErased(t *testing.T) {
	t.Parallel()
	w := secretWorld(t)
	_, before := write(t, w, export.Options{})
	forbid(t, w)
	if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil {
		t.Fatal(err)
	}
	dir, after := write(t, w, export.Options{})
	if strings.Contains(texts(t, dir), secret) {
		t.Error("the secret stands in the export")
	}
	if before.ExportID == after.ExportID || after.Absent["erased"] == 0 || len(after.Erasures) != 1 {
		t.Errorf("ids %s and %s, absent %v, erasures %v", before.ExportID, after.ExportID, after.Absent, after.Erasures)
	}
	now, err := exporter(t, w).Erased(t.Context(), "shop")
	if err != nil || !before.Stale(now) || after.Stale(now) {
		t.Errorf("stale: %v before, %v after, %v", before.Stale(now), after.Stale(now), err)
	}
	if _, err := export.CheckPath(dir); err != nil {
		t.Error(err)
	}
}

// TestSplits: all rows of a question are in one split, and the exports of the splits
// together hold every row once.
func TestSplits(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	var names []string
	for i := range 12 {
		names = append(names, "q"+string(rune('a'+i)))
	}
	w.Ask("shop", names...)
	w.Learned("shop/a.jsonl", functest.Decision("a", start, "We decided to keep blobs as zstd, because the bucket grew too fast."))
	w.Learned("shop/b.jsonl", functest.Decision("b", start, "We decided to keep logs for a day, because the disk is small."))
	dir, _ := write(t, w, export.Options{})
	split := map[string]string{}
	n := map[string]int{}
	for _, g := range rows[export.GateRow](t, dir, export.Gates) {
		if s, ok := split[g.QueryID]; ok && s != g.Split {
			t.Errorf("question %s is in %s and in %s", g.QueryID, s, g.Split)
		}
		split[g.QueryID] = g.Split
		n[g.Split]++
	}
	if len(n) < 2 {
		t.Fatalf("12 questions are all in one split: %v", n)
	}
	for _, s := range export.Splits {
		dir, r := write(t, w, export.Options{Split: s})
		if got := len(ids(t, dir)); got != n[s] || r.Gates != n[s] || r.Trajectories != n[s] || r.Absent["other_split"] != 24-n[s] {
			t.Errorf("split %s: %d rows, the manifest says %d of %d runs, want %d; absent %v", s, got, r.Gates, r.Trajectories, n[s], r.Absent)
		}
	}
}

// TestNothing: an export of nothing is whole files without rows, and a marker.
func TestNothing(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	for what, o := range map[string]export.Options{"no such day": {Since: start.AddDate(9, 0, 0)}, "a split without a question": {Split: "test", Project: "shop"}} {
		dir, r := write(t, w, o)
		got, err := export.CheckPath(dir)
		if err != nil || len(got) != 8 {
			t.Errorf("%s: %d files, %v", what, len(got), err)
		}
		for _, c := range got {
			if c.Rows != 0 || !c.Manifest {
				t.Errorf("%s: %+v", what, c)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, export.Marker)); err != nil || r.ExportID == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	empty := world(t, functest.Options{})
	dir, _ := write(t, empty, export.Options{})
	if _, err := export.CheckPath(dir); err != nil {
		t.Error(err)
	}
}

// TestOptions: what names nothing is refused and says what does.
func TestOptions(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	for want, o := range map[string]export.Options{
		`"csv" is not a format`:            {Format: "csv"},
		`"holdout" is not a split`:         {Split: "holdout"},
		`"../x" is not a project name`:     {Project: "../x"},
		"nothing is known of it":           {Project: "shed"},
		"nothing lies between since and u": {Since: start, Until: start},
	} {
		_, err := exporter(t, w).Snapshot(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) || fault.HintOf(err) == "" {
			t.Errorf("%+v: %v, want %s and a hint", o, err, want)
		}
	}
	if _, err := export.Day("yesterday"); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// TestBrokenOff: an export that ends in the middle leaves no file under a final name, and
// the one that stood there before has lost its marker and nothing else.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	dir, _ := write(t, w, export.Options{})
	old := contents(t, dir)
	e := exporter(t, w)
	s, err := e.Snapshot(t.Context(), export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, into := range []string{t.TempDir(), dir} {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := e.Write(ctx, s, into, func(int) { cancel() }); err == nil {
			t.Fatal("it did not break off: the test proves nothing")
		}
		got := contents(t, into)
		want := map[string]string{}
		if into == dir {
			want = maps.Clone(old)
			delete(want, export.Marker)
		}
		sameBytes(t, "after a break", want, got)
	}
	if _, err := e.Write(t.Context(), s, dir, nil); err != nil {
		t.Fatal(err)
	}
	sameBytes(t, "written again", old, contents(t, dir))
}

// TestPublish: whatever store call of an upload fails, before or after it took effect, a
// marker stands for whole files only; and the next upload makes it whole.
func TestPublish(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	dir, r := write(t, w, export.Options{})
	want := contents(t, dir)
	prefix := export.DayPrefix(functest.Tenant, "2026-06-07")
	stands := func() map[string]string {
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
	broke := 0
	for _, effect := range []bool{false, true} {
		for n := 0; ; n++ {
			reached := w.Stores.DieAt(n, effect, errors.New("the line was cut"))
			err := export.Publish(t.Context(), w.Bucket, prefix, dir, &r)
			w.Stores.Fail(nil, nil)
			if !reached() {
				break
			}
			if err == nil {
				t.Errorf("call %d failed and nobody says so", n)
			}
			broke++
			got := stands()
			if got[export.Marker] != "" {
				sameBytes(t, "a marker", want, got)
			}
			for name := range got {
				if got[name] != want[name] {
					t.Errorf("call %d: a part of %s is seen", n, name)
				}
			}
		}
	}
	if broke < 20 { // delete, eight files, the manifest and the marker, twice
		t.Fatalf("only %d uploads broke off: the test proves nothing", broke)
	}
	if err := export.Publish(t.Context(), w.Bucket, prefix, dir, &r); err != nil {
		t.Fatal(err)
	}
	sameBytes(t, "at last", want, stands())
}

// TestReceive: what arrives damaged is not seen under its name, and a second try
// replaces what an earlier export of other files left.
func TestReceive(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	dir, r := write(t, w, export.Options{})
	want := contents(t, dir)
	open := func(_ context.Context, name string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(want[name])), nil
	}
	into := filepath.Join(t.TempDir(), "new", "folder")
	if err := export.Receive(t.Context(), into, &r, func(_ context.Context, name string) (io.ReadCloser, error) {
		if name == export.KTO {
			return io.NopCloser(strings.NewReader(want[name][1:])), nil
		}
		return open(t.Context(), name)
	}); err == nil || !strings.Contains(err.Error(), "kto.parquet") {
		t.Fatalf("a damaged file: %v", err)
	}
	if got := contents(t, into); got[export.KTO] != "" || got[export.Marker] != "" || len(got) != 3 {
		t.Errorf("after a damaged file: %v", slices.Sorted(maps.Keys(got)))
	}
	if err := export.Receive(t.Context(), into, &r, open); err != nil {
		t.Fatal(err)
	}
	sameBytes(t, "received", want, contents(t, into))

	dir, small := write(t, w, export.Options{Format: "sft"})
	want = contents(t, dir)
	if err := export.Receive(t.Context(), into, &small, open); err != nil {
		t.Fatal(err)
	}
	sameBytes(t, "a smaller one", want, contents(t, into))
	if !bytes.Contains([]byte(want[export.Manifest]), []byte(small.ExportID)) {
		t.Error("the manifest is of another export")
	}
}

// TestUntrusted: labels of a model that does not agree with people count once it does, and
// a person's always.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	g := gates(w, "shop", stream)
	model := func(chunk memory.SHA) memory.Label {
		return memory.Label{Kind: memory.LabelModel, Model: "judge", Basis: memory.BasisChunk, FormatOK: true, Stream: stream, QueryID: "decisions", Chunk: chunk, Evidence: true}
	}
	label(t, w, "shop", model(g[0].Chunk))
	label(t, w, "shop", model(g[1].Chunk))
	label(t, w, "shop", memory.Label{Stream: stream, QueryID: "decisions", Chunk: g[1].Chunk})
	labelled := func(bound labels.Bound) map[string]string {
		e, err := export.New(export.Config{Tenant: functest.Tenant, Log: w.Log, Catalog: w.Catalog, Untrusted: export.Untrusted(w.Log, bound)})
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Snapshot(t.Context(), export.Options{Format: "canonical"})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		r, err := e.Write(t.Context(), s, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{"untrusted": ""}
		for _, j := range r.Labels[0].Untrusted {
			out["untrusted"] += j.Kind + " " + j.Model
		}
		for _, g := range rows[export.GateRow](t, dir, export.Gates) {
			if g.Stream == stream && g.LabelSource != nil {
				out[g.ID[len(g.ID)-1:]] = *g.LabelSource
			}
		}
		return out
	}
	if diff := cmp.Diff(map[string]string{"untrusted": "model judge", "2": "human"}, labelled(labels.DefaultBound)); diff != "" {
		t.Errorf("a judge who is not trusted (-want +got):\n%s", diff)
	}
	// Twenty more pieces on which both agree, half of them evidence.
	for i := range 20 {
		c := memory.SumString(string(rune('a' + i)))
		m := model(c)
		m.Evidence = i%2 == 0
		label(t, w, "shop", m)
		label(t, w, "shop", memory.Label{Stream: stream, QueryID: "decisions", Chunk: c, Evidence: i%2 == 0})
	}
	if diff := cmp.Diff(map[string]string{"untrusted": "", "1": "model", "2": "human"}, labelled(labels.DefaultBound)); diff != "" {
		t.Errorf("a judge who is trusted (-want +got):\n%s", diff)
	}
}
