package main_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestCrashScrub kills `mem up` at a random moment of a scrub, starts it again
// and scrubs once more: both hashes equal those of the undisturbed scrub, the
// log verifies, and no file of log, operations and index holds a word of what was
// to be masked. It kills a quarter as often as TestCrash.
func TestCrashScrub(t *testing.T) {
	runs := (crashRuns(t) + 3) / 4 // a run copies and opens a folder that is full
	src, learned := t.TempDir(), filepath.Join(t.TempDir(), "learned")
	sessions(t, src, 10)
	rules := filepath.Join(t.TempDir(), "redact.yaml")
	if err := os.WriteFile(rules, []byte("patterns:\n  - name: word\n    regexp: '(?i)retries|clock skew|fridays'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, learned)
	s.ingest(src)
	s.must("redact", "set", rules)
	s.stop()
	begin := func(name string) *server {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, os.DirFS(learned)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "ready.json")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return start(t, dir)
	}
	if n := holding(t, learned, "clock skew"); n == 0 {
		t.Fatal("nothing to mask: the test proves nothing")
	}
	calm := begin("calm")
	begun := time.Now()
	calm.must("scrub", "-p", "shop")
	calm.must("wait", "--timeout", "120s")
	took := time.Since(begun)
	want := calm.verify()
	calm.stop()
	if n := holding(t, calm.dir, "clock skew"); n != 0 || want.Counts["erased"] == 0 {
		t.Fatalf("the undisturbed scrub left %d files: %v", n, want.Counts)
	}

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("undisturbed: %v, %v; seed %d", took.Round(time.Millisecond), want.Counts, seed)
	for i := range runs {
		s := begin("crash")
		after := time.Duration(rng.Int64N(int64(took)))
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.mem("scrub", "-p", "shop") // it loses its server, or is done before
		}()
		time.Sleep(after)
		s.kill()
		<-done
		again := start(t, s.dir)
		again.must("scrub", "-p", "shop")
		again.must("wait", "--timeout", "120s")
		got := again.verify()
		again.stop()
		sameHashes(t, "run "+strconv.Itoa(i)+", killed after "+after.Round(time.Millisecond).String(), want, got)
		if n := holding(t, s.dir, "clock skew"); n != 0 {
			t.Errorf("killed after %v: %d files hold what was masked", after, n)
		}
		if t.Failed() {
			t.Fatalf("seed %d, run %d", seed, i)
		}
	}
}

// holding counts the files of log, operations and index that hold a text. Blobs
// are compressed: verify reads them.
func holding(t *testing.T, dir, text string) (n int) {
	t.Helper()
	for _, part := range []string{"index", "buckets/mneme/log", "buckets/mneme/ops", "buckets/mneme/derived"} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) || err == nil && d.IsDir() {
				return nil
			}
			if err != nil {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(text)) {
				n++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}
