package sqlitelookup_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/lookup/lookuptest"
	"github.com/mneme-ai/mneme/shared/lookup/sqlitelookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

func open(t testing.TB, path string) *sqlitelookup.Index {
	t.Helper()
	ix, err := sqlitelookup.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

func TestSuite(t *testing.T) {
	t.Parallel()
	lookuptest.Run(t, func(t *testing.T) lookup.Index { return open(t, filepath.Join(t.TempDir(), "lessons.sqlite")) })
}

func row(n int) lookup.Row {
	return lookup.Row{
		Key: memory.SumString(fmt.Sprint("k", n)), At: time.UnixMilli(int64(n)).UTC(), Body: []byte(`{"text":"the rotten walrus"}`),
		Hashes: []lookup.Hash{{Kind: lookup.Detail, SHA: memory.SumString(fmt.Sprint("d", n))}, {Kind: lookup.Class, SHA: memory.SumString(fmt.Sprint("c", n/3))}, {Kind: lookup.Symptom, SHA: memory.SumString(fmt.Sprint("s", n/3))}},
	}
}

var scope = lookup.Scope{Tenant: "acme", Project: "shop"}

func TestReopened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lessons.sqlite")
	ix := open(t, path)
	if err := ix.Apply(t.Context(), scope, lookup.Batch{Rows: []lookup.Row{row(1)}}); err != nil {
		t.Fatal(err)
	}
	want, _, err := ix.Hash(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	got, n, err := open(t, path).Hash(t.Context(), "acme")
	if err != nil || got != want || n != 1 {
		t.Errorf("after a restart %s, %d rows (%v); before %s", got, n, err, want)
	}
}

// What is gone is gone from the bytes of the files.
func TestPurged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ix := open(t, filepath.Join(dir, "lessons.sqlite"))
	if err := ix.Apply(t.Context(), scope, lookup.Batch{Rows: []lookup.Row{row(1)}}); err != nil {
		t.Fatal(err)
	}
	if !holds(t, dir, "rotten walrus") {
		t.Fatal("the words are not in the files: this test looks at nothing")
	}
	if err := ix.Replace(t.Context(), scope, lookup.Batch{Gone: []memory.SHA{row(1).Key}}); err != nil {
		t.Fatal(err)
	}
	if err := ix.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if holds(t, dir, "rotten walrus") {
		t.Error("the words are in the files")
	}
}

func holds(t *testing.T, dir, words string) bool {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(words)) {
			return true
		}
	}
	return false
}

func TestRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lessons.sqlite")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitelookup.Open(t.Context(), path); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a file that is no database: %v", err)
	}
}

// BenchmarkFind looks one failure up among so many others.
func BenchmarkFind(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"10k-signatures", 10_000}, {"1M-signatures", 1_000_000}} {
		b.Run(size.name, func(b *testing.B) {
			if testing.Short() && size.n > 10_000 {
				b.Skip("the large one takes a minute to fill")
			}
			ix := open(b, filepath.Join(b.TempDir(), "lessons.sqlite"))
			for at := 0; at < size.n; {
				var batch lookup.Batch
				for ; at < size.n && len(batch.Rows) < 10_000; at++ {
					batch.Rows = append(batch.Rows, row(at))
				}
				if err := ix.Apply(b.Context(), scope, batch); err != nil {
					b.Fatal(err)
				}
			}
			for _, k := range []struct {
				name   string
				kind   lookup.Kind
				letter string
				per    int
			}{{"detail", lookup.Detail, "d", 1}, {"class", lookup.Class, "c", 3}, {"symptom", lookup.Symptom, "s", 3}} {
				b.Run(k.name, func(b *testing.B) {
					b.ReportAllocs()
					i := 0
					var times []time.Duration
					for b.Loop() {
						n := i * 7919 % size.n
						i++
						start := time.Now()
						ms, _, err := ix.Find(b.Context(), scope, k.kind, []memory.SHA{memory.SumString(fmt.Sprint(k.letter, n/k.per))}, 64)
						if err != nil || len(ms) == 0 {
							b.Fatal(len(ms), err)
						}
						times = append(times, time.Since(start))
					}
					b.ReportMetric(float64(percentile(times, 50).Microseconds())/1000, "p50-ms")
					b.ReportMetric(float64(percentile(times, 99).Microseconds())/1000, "p99-ms")
				})
			}
		})
	}
}
