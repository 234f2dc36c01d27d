package main_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/export"
)

// TestCrashExport kills `mem up` at a random moment of an export into its bucket and of
// one that is fetched: no file is ever seen in part, a marker stands for a whole export
// only, and after a new start the export is the undisturbed one, byte for byte.
func TestCrashExport(t *testing.T) {
	runs := crashRuns(t) * 4 // a run takes little
	src := t.TempDir()
	sessions(t, src, 8)
	s := start(t, filepath.Join(t.TempDir(), "data"))
	s.ingest(src)
	calm := filepath.Join(t.TempDir(), "calm")
	s.must("export", "--out", calm)
	want := files(t, calm)
	begun := time.Now()
	s.must("export")
	took := time.Since(begun)
	kept := kept(t, s.dir)
	sameFiles(t, "the kept one", want, files(t, kept))

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("undisturbed: %v; seed %d", took.Round(time.Millisecond), seed)
	broke := 0
	for i := range runs {
		if err := os.RemoveAll(kept); err != nil {
			t.Fatal(err)
		}
		args := []string{"export"}
		out := kept
		if i%2 == 1 {
			out = filepath.Join(t.TempDir(), "out")
			args = append(args, "--out", out)
		}
		code := make(chan int, 1)
		go func() {
			_, c := s.mem(args...)
			code <- c
		}()
		time.Sleep(time.Duration(rng.Int64N(int64(took))))
		s.kill()
		if <-code != 0 {
			broke++
		}
		got := files(t, out)
		for name := range got {
			if strings.HasSuffix(name, ".parquet") {
				if _, err := export.CheckPath(filepath.Join(out, name)); err != nil && got[export.Manifest] != "" {
					t.Errorf("run %d: %v", i, err)
				}
				if got[name] != want[name] {
					t.Errorf("run %d: a part of %s is seen", i, name)
				}
			}
		}
		if got[export.Marker] != "" {
			sameFiles(t, "a marker", want, got)
		}
		s = start(t, s.dir)
		s.must(args...)
		sameFiles(t, "after it", want, files(t, out))
	}
	if broke == 0 {
		t.Errorf("no export broke off: the test proves nothing; seed %d", seed)
	}
	if es, err := os.ReadDir(filepath.Join(s.dir, "tmp")); err != nil || len(es) != 0 {
		t.Errorf("%d files are left in tmp, %v", len(es), err)
	}
}

// kept is the folder of the only export that is kept in a data folder's bucket.
func kept(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "buckets", "mneme", "derived", "exports", "_kept", "local", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// files are the contents of a folder that may not be there, by name; the store writes _
// and % where a name needs it.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	es, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range es {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(e.Name(), "%")
		if strings.HasSuffix(name, ".tmp") {
			continue // a name that nobody reads
		}
		out[name] = string(b)
	}
	return out
}

func sameFiles(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d files, want %d", what, len(got), len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}
