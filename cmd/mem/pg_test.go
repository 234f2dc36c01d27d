package main_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const pgScript = "../../infra/local/services/postgres.sh"

// postgres starts a server of the test's own, to be killed; it is skipped where
// MNEME_TEST_PG says that there is none to be had.
func postgres(t *testing.T) (dsn, dir string) {
	t.Helper()
	if os.Getenv("MNEME_TEST_PG") == "" {
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "pg") {
			t.Fatal("MNEME_TEST_PG is required")
		}
		t.Skip("MNEME_TEST_PG is not set: MNEME_TEST_PG=$(infra/local/services/postgres.sh start DIR)")
	}
	dir, err := os.MkdirTemp("", "mneme-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command(pgScript, "kill", dir).Run()
		os.RemoveAll(dir)
	})
	return pgStart(t, dir, ""), dir
}

func pgStart(t *testing.T, dir, port string) string {
	t.Helper()
	args := []string{"start", dir}
	if port != "" {
		args = append(args, port)
	}
	cmd := exec.Command(pgScript, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("postgres.sh start: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// TestOnPostgres: over PostgreSQL the memory answers and hashes as over the embedded
// index; the server may be killed while rows come in, and its schema be dropped.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dsn, dir := postgres(t)
	src := t.TempDir()
	sessions(t, src, 6)
	embedded := start(t, filepath.Join(t.TempDir(), "embedded"))
	embedded.ingest(src)
	want := embedded.verify()

	s := start(t, filepath.Join(t.TempDir(), "pg"), "MNEME_PG="+dsn)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.mem("learn", "-p", "shop", src)
	}()
	for range 3 {
		time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond)
		if out, err := exec.Command(pgScript, "kill", dir).CombinedOutput(); err != nil {
			t.Fatalf("kill: %v\n%s", err, out)
		}
		pgStart(t, dir, u.Port())
	}
	<-done
	s.ingest(src)
	sameHashes(t, "PostgreSQL killed three times", want, s.verify())

	texts := func(s *server, question string) (out []string) {
		for _, r := range s.query(question, "-p", "shop") {
			out = append(out, r.Text)
		}
		return out
	}
	for _, q := range []string{"how many retry attempts are allowed and why?", "what must we never do?", "retries"} {
		if d := cmp.Diff(texts(embedded, q), texts(s, q)); d != "" {
			t.Errorf("%s (-embedded +PostgreSQL):\n%s", q, d)
		}
	}

	if out, err := psql(dsn, "DROP SCHEMA mneme CASCADE").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, code := s.mem("query", "-p", "shop", "how many retry attempts are allowed?"); code == 0 || !strings.Contains(out, "mem rebuild") {
		t.Errorf("without its tables: exit %d\n%s", code, out)
	}
	var r struct {
		IndexHash   string `json:"index_hash"`
		PolicyCalls int    `json:"policy_calls"`
		ModelCalls  int    `json:"model_calls"`
	}
	if err := json.Unmarshal([]byte(s.must("rebuild", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.IndexHash != want.IndexHash || r.PolicyCalls != 0 || r.ModelCalls != 0 {
		t.Errorf("rebuilt %+v, want %s", r, want.IndexHash)
	}
	sameHashes(t, "rebuilt", want, s.verify())
	s.stop()
}

// TestOnServers: graph and words both in servers, the log in a folder: the same hashes,
// cited answers, a rebuild with no call.
func TestOnServers(t *testing.T) {
	t.Parallel()
	dsn, cluster := os.Getenv("MNEME_TEST_PG"), os.Getenv("MNEME_TEST_OS")
	if dsn == "" || cluster == "" {
		t.Skip("MNEME_TEST_PG or MNEME_TEST_OS is not set")
	}
	name := "test" + strconv.FormatInt(time.Now().UnixNano(), 36)
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	src := t.TempDir()
	sessions(t, src, 4)
	embedded := start(t, filepath.Join(t.TempDir(), "embedded"))
	embedded.ingest(src)
	want := embedded.verify()
	s := start(t, filepath.Join(t.TempDir(), "servers"), "MNEME_PG="+dsn+sep+"search_path="+name, "MNEME_OS="+cluster+"/"+name)
	t.Cleanup(func() {
		s.kill()
		_ = psql(dsn, "DROP SCHEMA IF EXISTS "+name+" CASCADE").Run()
		if req, err := http.NewRequest(http.MethodDelete, cluster+"/"+name+"-*", nil); err == nil { // a rebuild gives longer names
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	})
	s.ingest(src)
	sameHashes(t, "on servers", want, s.verify())
	for _, q := range []string{"how many retry attempts are allowed and why?", "what must we never do?", "retries"} {
		here, there := embedded.query(q, "-p", "shop"), s.query(q, "-p", "shop")
		if len(here) > 0 != (len(there) > 0) || len(there) > 0 && len(there[0].Citations) == 0 {
			t.Errorf("%s: embedded %+v, on servers %+v", q, here, there)
		}
	}
	if rs := s.query("zorble quux fnord", "-p", "shop"); len(rs) > 0 {
		t.Errorf("nonsense is answered: %+v", rs[0])
	}
	s.must("rebuild")
	sameHashes(t, "rebuilt", want, s.verify())
	s.stop()
}

func psql(dsn, sql string) *exec.Cmd {
	c := exec.Command("/usr/lib/postgresql/15/bin/psql", dsn, "-qc", sql)
	if p := os.Getenv("PG_BIN"); p != "" {
		c.Path = filepath.Join(p, "psql")
	}
	return c
}
