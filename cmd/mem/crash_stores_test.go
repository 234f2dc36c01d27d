package main_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const osScript = "../../infra/local/services/opensearch.sh"

// openSearch starts a server of the test's own, to be killed; see postgres.
func openSearch(t *testing.T) (base, dir string) {
	t.Helper()
	if os.Getenv("MNEME_TEST_OS") == "" {
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "os") {
			t.Fatal("MNEME_TEST_OS is required")
		}
		t.Skip("MNEME_TEST_OS is not set: MNEME_TEST_OS=$(infra/local/services/opensearch.sh start DIR)")
	}
	dir, err := os.MkdirTemp("", "mneme-os-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command(osScript, "kill", dir).Run()
		os.RemoveAll(dir)
	})
	return osStart(t, dir, "0"), dir
}

func osStart(t *testing.T, dir, port string) string {
	t.Helper()
	cmd := exec.Command(osScript, "start", dir, port)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("opensearch.sh start: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func portOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// TestCrashStores kills PostgreSQL, the process that projects, or OpenSearch with SIGKILL
// at a random moment while ten transcripts are projected, and the first two also while
// they are rebuilt; it starts what was killed again and waits: both hashes and the number
// of passages that words find equal those of an undisturbed run. MNEME_CRASH_RUNS says how
// often: 3 is once each, 75 s on two cores.
func TestCrashStores(t *testing.T) {
	if os.Getenv("MNEME_CRASH_RUNS") == "" {
		t.Skip("kills servers for a minute: MNEME_CRASH_RUNS=3")
	}
	runs := crashRuns(t)
	dsn, pgDir := postgres(t)
	cluster, osDir := openSearch(t)
	src := t.TempDir()
	sessions(t, src, 10)
	up := func(dir string) *server {
		name := strings.ReplaceAll(filepath.Base(dir), "_", "-")
		return start(t, dir, "MNEME_PG="+dsn+"&search_path="+name, "MNEME_OS="+cluster+"/"+name)
	}
	type state struct {
		hashes
		Lexical int `json:"lexical_passages"`
	}
	look := func(s *server) (st state) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.must("verify", "--json")), &st); err != nil {
			t.Fatal(err)
		}
		if !st.OK {
			t.Errorf("verify: %v", st.Problems)
		}
		return st
	}

	calm := up(filepath.Join(t.TempDir(), "calm"))
	begun := time.Now()
	calm.ingest(src)
	took := time.Since(begun)
	want := look(calm)
	begun = time.Now()
	calm.rebuild()
	rebuilding := time.Since(begun)
	calm.stop()
	if want.Counts["evidence"] == 0 || want.Lexical == 0 {
		t.Fatalf("the undisturbed run kept nothing: %v", want.Counts)
	}
	t.Logf("undisturbed: projected in %v, rebuilt in %v, %d passages", took.Round(time.Millisecond), rebuilding.Round(time.Millisecond), want.Lexical)

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	victims := []string{"PostgreSQL", "projector", "OpenSearch"}
	for i := range runs {
		victim := victims[i%len(victims)]
		name := "crash" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		dir := filepath.Join(t.TempDir(), name)
		s := up(dir)
		kill := func() {
			t.Helper()
			switch victim {
			case "PostgreSQL":
				if out, err := exec.Command(pgScript, "kill", pgDir).CombinedOutput(); err != nil {
					t.Fatalf("kill: %v\n%s", err, out)
				}
				pgStart(t, pgDir, portOf(t, dsn))
			case "OpenSearch":
				if out, err := exec.Command(osScript, "kill", osDir).CombinedOutput(); err != nil {
					t.Fatalf("kill: %v\n%s", err, out)
				}
				osStart(t, osDir, portOf(t, cluster))
			default:
				s.kill()
				s = up(dir)
			}
		}
		during := func(within time.Duration, args ...string) time.Duration {
			t.Helper()
			after := time.Duration(rng.Int64N(int64(within)))
			done, serving := make(chan struct{}), s
			go func() {
				defer close(done)
				serving.mem(args...) // it loses its server, or is done before
			}()
			time.Sleep(after)
			kill()
			<-done
			return after.Round(time.Millisecond)
		}
		after := during(took, "learn", "-p", "shop", src)
		s.ingest(src)
		got := look(s)
		t.Logf("run %d: %s killed after %v", i, victim, after)
		what := victim + " killed after " + after.String()
		sameHashes(t, what, want.hashes, got.hashes)
		if got.Lexical != want.Lexical {
			t.Errorf("%s: %d passages, want %d", what, got.Lexical, want.Lexical)
		}
		if victim != "OpenSearch" { // which takes ten seconds to come up
			after = during(rebuilding, "rebuild")
			what = victim + " killed after " + after.String() + " of a rebuild"
			sameHashes(t, what, want.hashes, look(s).hashes)
			r := s.rebuild()
			if got := look(s); r.IndexHash != want.IndexHash || got.Lexical != want.Lexical {
				t.Errorf("%s and rebuilt: %+v, %d passages, want %s, %d", what, r, got.Lexical, want.IndexHash, want.Lexical)
			}
			t.Logf("run %d: %s killed after %v of a rebuild, which then went on after %d segments", i, victim, after, r.Resumed)
		}
		s.kill()
		if t.Failed() {
			t.Fatalf("seed %d, run %d\n%s", seed, i, s.log)
		}
	}
}
