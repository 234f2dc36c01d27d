package main_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// onServers starts `mem up` over the shared PostgreSQL and OpenSearch, with a schema and
// indices of its own.
func onServers(t *testing.T) (s *server, dropGraph, dropWords func()) {
	t.Helper()
	dsn, cluster := os.Getenv("MNEME_TEST_PG"), os.Getenv("MNEME_TEST_OS")
	for name, v := range map[string]string{"pg": dsn, "os": cluster} {
		if v != "" {
			continue
		}
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), name) {
			t.Fatalf("the server %s is required", name)
		}
		t.Skip("MNEME_TEST_PG or MNEME_TEST_OS is not set: eval \"$(make services)\"")
	}
	name := "test" + strconv.FormatInt(time.Now().UnixNano(), 36)
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	dropGraph = func() {
		if out, err := psql(dsn, "DROP SCHEMA IF EXISTS "+name+" CASCADE").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	dropWords = func() {
		req, err := http.NewRequest(http.MethodDelete, cluster+"/"+name+"-*", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Errorf("DELETE %s-*: %s", name, resp.Status)
		}
	}
	s = start(t, filepath.Join(t.TempDir(), "servers"), "MNEME_PG="+dsn+sep+"search_path="+name, "MNEME_OS="+cluster+"/"+name)
	t.Cleanup(func() { s.kill(); dropGraph(); dropWords() })
	return s, dropGraph, dropWords
}

// pages are the bytes of the vault in the server's folder, by path.
func (s *server) pages() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "/mneme/derived/vault/") {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

type rebuilt struct {
	IndexHash   string `json:"index_hash"`
	Segments    int    `json:"segments"`
	Resumed     int    `json:"resumed"`
	PolicyCalls int    `json:"policy_calls"`
	ModelCalls  int    `json:"model_calls"`
}

func (s *server) rebuild(args ...string) (r rebuilt) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(append([]string{"rebuild", "--json"}, args...)...)), &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

type compared struct {
	hashes
	Rebuild struct {
		OK              bool     `json:"ok"`
		IndexHash       string   `json:"index_hash"`
		Pages           int      `json:"pages"`
		LexicalPassages int      `json:"lexical_passages"`
		PolicyCalls     int      `json:"policy_calls"`
		ModelCalls      int      `json:"model_calls"`
		Differences     []string `json:"differences"`
	} `json:"rebuild"`
}

// proved is `mem verify --rebuild`, which must find all equal.
func (s *server) proved(want hashes) {
	s.t.Helper()
	var c compared
	if err := json.Unmarshal([]byte(s.must("verify", "--rebuild", "--json")), &c); err != nil {
		s.t.Fatal(err)
	}
	r := c.Rebuild
	if !c.OK || !r.OK || r.IndexHash != want.IndexHash || c.IndexHash != want.IndexHash || r.Pages == 0 || r.LexicalPassages == 0 || r.PolicyCalls+r.ModelCalls != 0 {
		s.t.Errorf("verify --rebuild: %+v, want index hash %s", c, want.IndexHash)
	}
}

// asking queries until it is told to stop, and gives how many answers there were and how
// many of them were empty or refused.
func (s *server) asking(clients int) (stop func() (answers, empty int64)) {
	s.t.Helper()
	token := strings.TrimSpace(s.must("token"))
	var end atomic.Bool
	var n, bad atomic.Int64
	var done sync.WaitGroup
	for range clients {
		done.Go(func() {
			for !end.Load() {
				time.Sleep(5 * time.Millisecond)
				req, err := http.NewRequest(http.MethodPost, s.http+"/memory/query", strings.NewReader(`{"query":"how many retry attempts are allowed and why?","project":"shop"}`))
				if err != nil {
					s.t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+token)
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				var out struct {
					Results  []json.RawMessage `json:"results"`
					Degraded []string          `json:"degraded"`
				}
				if err == nil {
					err = json.NewDecoder(resp.Body).Decode(&out)
					resp.Body.Close()
				}
				n.Add(1)
				if err != nil || resp.StatusCode != http.StatusOK || len(out.Results) == 0 || len(out.Degraded) > 0 {
					if bad.Add(1) == 1 {
						s.t.Errorf("a query meanwhile: %v, %d results, degraded %v", err, len(out.Results), out.Degraded)
					}
				}
			}
		})
	}
	return func() (int64, int64) { end.Store(true); done.Wait(); return n.Load(), bad.Load() }
}

// TestRebuildOnServers: the schema dropped and the indices deleted, a rebuild gives the
// same hashes and pages without a call; while another runs every query is answered.
func TestRebuildOnServers(t *testing.T) {
	t.Parallel()
	s, dropGraph, dropWords := onServers(t)
	src := t.TempDir()
	sessions(t, src, 4)
	s.ingest(src)
	want, pages := s.verify(), s.pages()
	if len(pages) == 0 {
		t.Fatal("no page stands in the bucket")
	}
	dropGraph()
	dropWords()
	if out, code := s.mem("query", "-p", "shop", "how many retry attempts are allowed?"); code == 0 || !strings.Contains(out, "mem rebuild") {
		t.Errorf("without its stores: exit %d\n%s", code, out)
	}
	r := s.rebuild()
	if r.IndexHash != want.IndexHash || r.Segments == 0 || r.PolicyCalls != 0 || r.ModelCalls != 0 {
		t.Errorf("rebuilt %+v, want %s", r, want.IndexHash)
	}
	sameHashes(t, "rebuilt", want, s.verify())
	s.proved(want)
	if d := cmp.Diff(pages, s.pages()); d != "" {
		t.Errorf("pages (-before +after):\n%s", d)
	}

	stop := s.asking(2)
	for _, only := range []string{"", "pg", "os"} {
		if r := s.rebuild("--only=" + only); r.PolicyCalls+r.ModelCalls != 0 || only != "os" && r.IndexHash != want.IndexHash {
			t.Errorf("--only=%s while it is asked: %+v", only, r)
		}
	}
	answers, empty := stop()
	t.Logf("%d queries during three rebuilds, %d without an answer", answers, empty)
	if answers == 0 || empty > 0 {
		t.Errorf("%d of %d queries had no answer", empty, answers)
	}
	sameHashes(t, "rebuilt while it is asked", want, s.verify())
	s.stop()
}

// TestRebuildServes is the same over the embedded indexes; two at once, one that is killed,
// and wrong names besides.
func TestRebuildServes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "up")
	s := start(t, dir)
	src := t.TempDir()
	sessions(t, src, 6)
	s.ingest(src)
	want, pages := s.verify(), s.pages()
	s.proved(want)

	stop := s.asking(2)
	for _, only := range []string{"", "sqlite", "bleve", "vault"} {
		s.rebuild("--only=" + only)
	}
	if answers, empty := stop(); answers == 0 || empty > 0 {
		t.Errorf("%d of %d queries had no answer", empty, answers)
	}
	sameHashes(t, "rebuilt while it is asked", want, s.verify())
	if d := cmp.Diff(pages, s.pages()); d != "" {
		t.Errorf("pages (-before +after):\n%s", d)
	}
	for _, only := range []string{"pg", "os", "nonsense"} {
		if out, code := s.mem("rebuild", "--only="+only); code == 0 || !strings.Contains(out, "sqlite, bleve, lessons and vault") {
			t.Errorf("--only=%s: exit %d\n%s", only, code, out)
		}
	}
	// What is wrong with what serves is named.
	var page string
	for p := range pages {
		if strings.HasSuffix(p, ".md") && (page == "" || p < page) {
			page = p
		}
	}
	if err := os.WriteFile(page, []byte(strings.Repeat("x", len(pages[page]))), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := s.mem("verify", "--rebuild"); code != 1 || !strings.Contains(out, "difference: shop: page "+filepath.Base(page)) {
		t.Errorf("a page was changed: exit %d\n%s", code, out)
	}
	s.rebuild("--only=vault")
	s.proved(want)

	// Killed in the middle of one it serves on, and the next rebuild ends.
	for i := range 2 {
		go s.mem("rebuild")
		time.Sleep(time.Duration(30+60*i) * time.Millisecond)
		s.kill()
		s = start(t, dir)
		sameHashes(t, "killed while it was rebuilt", want, s.verify())
		if r := s.rebuild(); r.IndexHash != want.IndexHash {
			t.Errorf("rebuilt after the kill: %+v", r)
		}
	}
	s.proved(want)
	s.stop()
}
