package export_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// maxMemory is what an export of a million gate decisions may hold: 512 MiB.
const maxMemory = 512 << 20

// TestMemory: the peak of a process that exports many gate decisions to every file is
// within 512 MiB. MNEME_TEST_EXPORT_GATES says how many, 5,000 without it; the figure of
// docs/BENCHMARKS.md is of 1,000,000.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peak is read from /proc")
	}
	if testing.Short() {
		t.Skip("runs without -short")
	}
	n := 5000
	if v := os.Getenv("MNEME_TEST_EXPORT_GATES"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.Ask("shop", "decisions")
	w.Learned("shop/a.jsonl", prose("a", 50, 2))
	root := filepath.Join(t.TempDir(), "buckets")
	b, log := openLog(t, root)
	for info, err := range w.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := w.Bucket.ReadAll(t.Context(), info.Key, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), info.Key, data); err != nil {
			t.Fatal(err)
		}
	}
	decided(t, log, w.Admits("shop")[0], n, 1000)
	out := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryChild$", "-test.v", "-test.timeout=2h")
	cmd.Env = append(os.Environ(), "MNEME_EXPORT_FROM="+root, "MNEME_EXPORT_TO="+out)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	m := regexp.MustCompile(`peak (\d+) kB, (\d+) gates, ([0-9.]+) s`).FindSubmatch(said)
	if m == nil {
		t.Fatalf("%s", said)
	}
	peak, _ := strconv.ParseInt(string(m[1]), 10, 64)
	t.Logf("%s", m[0])
	if gates, _ := strconv.Atoi(string(m[2])); gates < n {
		t.Errorf("%d gates, want %d and some", gates, n)
	}
	if peak<<10 > maxMemory {
		t.Errorf("the peak is %d MiB, at most %d are allowed", peak>>10, maxMemory>>20)
	}
	if _, err := export.CheckPath(out); err != nil {
		t.Error(err)
	}
}

func openLog(t *testing.T, root string) (*objstore.Bucket, *eventlog.Log) {
	t.Helper()
	d, err := dirstore.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	b := objstore.NewBucket("mneme", d)
	return b, eventlog.Open(b, functest.Tenant, "test")
}

// TestMemoryChild is the process whose memory TestMemory reads.
func TestMemoryChild(t *testing.T) {
	from := os.Getenv("MNEME_EXPORT_FROM")
	if from == "" {
		t.Skip("is run by TestMemory")
	}
	b, log := openLog(t, from)
	c := catalog.New(b, log, functest.Tenant)
	e, err := export.New(export.Config{Tenant: functest.Tenant, Log: log, Catalog: c, Redactor: functest.Redactor(c)})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	s, err := e.Snapshot(t.Context(), dated("all"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Write(t.Context(), s, os.Getenv("MNEME_EXPORT_TO"), nil)
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatal("no VmHWM")
	}
	var size int64
	for _, f := range r.Files {
		size += f.SizeBytes
	}
	t.Logf("peak %s kB, %d gates, %.1f s, %d bytes of files", m[1], r.Gates, time.Since(begun).Seconds(), size)
}
