package main_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// ingest learns the folder and waits until nothing is in flight.
func (s *server) ingest(dir string) {
	s.t.Helper()
	s.must("learn", "-p", "shop", dir)
	s.must("wait", "--timeout", "120s")
}

// crashRuns is how often a crash test kills: MNEME_CRASH_RUNS, 2 without it. It
// skips the test with -short.
func crashRuns(t *testing.T) int {
	t.Helper()
	if testing.Short() {
		t.Skip("kills processes for many seconds; runs without -short")
	}
	v := os.Getenv("MNEME_CRASH_RUNS")
	if v == "" {
		return 2
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("MNEME_CRASH_RUNS=%q", v)
	}
	return n
}

// TestCrash kills `mem up` at a random moment of an ingest of ten transcripts,
// starts it again and waits: both hashes equal those of the undisturbed run,
// and the log verifies. MNEME_CRASH_RUNS says how often (2 without it).
func TestCrash(t *testing.T) {
	runs := crashRuns(t)
	src := t.TempDir()
	sessions(t, src, 10)

	calm := start(t, filepath.Join(t.TempDir(), "calm"))
	begun := time.Now()
	calm.ingest(src)
	took := time.Since(begun)
	want := calm.verify()
	if want.Counts["evidence"] == 0 || want.Counts["gates"] == 0 {
		t.Fatalf("the undisturbed run kept nothing: %v", want.Counts)
	}
	calm.stop()
	t.Logf("undisturbed: %v, %v", took.Round(time.Millisecond), want.Counts)

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for i := range runs {
		dir := filepath.Join(t.TempDir(), "crash")
		s := start(t, dir)
		after := time.Duration(rng.Int64N(int64(took)))
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.mem("learn", "-p", "shop", src) // it loses its server, or is done before
		}()
		time.Sleep(after)
		s.kill()
		<-done
		again := start(t, dir)
		again.ingest(src)
		got := again.verify()
		sameHashes(t, "run "+strconv.Itoa(i)+", killed after "+after.Round(time.Millisecond).String(), want, got)
		again.kill()
		if t.Failed() {
			t.Fatalf("data folder of the failed run is lost with the test; seed %d, run %d", seed, i)
		}
	}
}

// TestDisorder delivers every event after admission three times and in random
// order, and loses every second one with the sweep to find it: the same hashes.
func TestDisorder(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sessions(t, src, 6)
	run := func(name string, env ...string) hashes {
		s := start(t, filepath.Join(t.TempDir(), name), env...)
		s.ingest(src)
		h := s.verify()
		s.stop()
		return h
	}
	want := run("calm")
	if want.Counts["evidence"] == 0 {
		t.Fatalf("nothing kept: %v", want.Counts)
	}
	sameHashes(t, "three times, shuffled", want, run("thrice", "MNEME_TEST_CHAOS=duplicate=3,shuffle=80ms,seed=1"))
	sameHashes(t, "every second one lost", want, run("lossy", "MNEME_TEST_CHAOS=drop=2,seed=2", "MNEME_TEST_SWEEP=200ms"))
	sameHashes(t, "all at once", want, run("both", "MNEME_TEST_CHAOS=duplicate=3,shuffle=80ms,drop=2,seed=3", "MNEME_TEST_SWEEP=200ms"))
}
