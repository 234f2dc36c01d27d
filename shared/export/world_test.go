package export_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
)

var (
	start  = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	stream = memory.StreamName("decisions", functest.Wording("decisions"))
)

// world is a world with indexes that do nothing; ended is the day on which its runs end.
func world(t testing.TB, o functest.Options, projects ...string) *functest.World {
	t.Helper()
	o.Graph, o.Lexical = indextest.NewGraph(), indextest.NewLexical()
	if o.Now == nil {
		o.Now = func() time.Time { return time.Date(2026, 6, 7, 12, 0, 0, 0, time.UTC) }
	}
	w := functest.New(t, o)
	for _, p := range projects {
		w.Ask(p, "decisions", "causes")
		w.Learned(p+"/a.jsonl", functest.Decision("a", start, "We decided to keep blobs as zstd, because the bucket grew too fast."))
		w.Learned(p+"/b.jsonl", functest.Decision("b", start.AddDate(0, 0, 1), "The root cause was the clock skew of node 7: tokens looked expired."))
	}
	return w
}

func exporter(t testing.TB, w *functest.World) *export.Exporter {
	t.Helper()
	e, err := export.New(export.Config{Tenant: functest.Tenant, Log: w.Log, Catalog: w.Catalog, Redactor: functest.Redactor(w.Catalog)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// write exports into a folder of its own.
func write(t testing.TB, w *functest.World, o export.Options) (string, export.Report) {
	t.Helper()
	e := exporter(t, w)
	s, err := e.Snapshot(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := e.Write(t.Context(), s, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

// rows reads a file of an export.
func rows[T any](t testing.TB, dir, name string) []T {
	t.Helper()
	out, err := parquet.ReadFile[T](filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// label says of the first chunk that holds text whether it is evidence.
func label(t testing.TB, w *functest.World, project string, l memory.Label) {
	t.Helper()
	if l.Kind == "" {
		l.Kind = memory.LabelHuman
	}
	if l.At.IsZero() {
		l.At = start
	}
	l.Level = memory.L1
	r, err := eventlog.LabelRecord(&l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Log.PutRecords(t.Context(), project, eventlog.Labels, []eventlog.Record{r}); err != nil {
		t.Fatal(err)
	}
}

func gates(w *functest.World, project, stream string) []*memory.Gate {
	return functest.Of[*memory.Gate](w.Records(project, stream))
}
