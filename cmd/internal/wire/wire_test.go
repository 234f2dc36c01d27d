package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/fault"
)

// up is a running Mneme in this process. A process holds one S3 endpoint at a
// time, so that tests that start one are not parallel.
type up struct {
	dir   string
	ready wire.Ready
	creds wire.Credentials
	stop  func() error
}

func start(t testing.TB, dir string) *up {
	t.Helper()
	return startWith(t, wire.UpConfig{Dir: dir})
}

// startWith is start with more than a folder.
func startWith(t testing.TB, cfg wire.UpConfig) *up {
	t.Helper()
	dir := cfg.Dir
	cfg.HTTP, cfg.S3 = "127.0.0.1:0", "127.0.0.1:0"
	u, err := wire.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, done := make(chan wire.Ready, 1), make(chan error, 1)
	go func() { done <- u.Run(ctx, func(r wire.Ready) { ready <- r }) }()
	stopped := false
	s := &up{dir: dir, creds: u.Credentials(), stop: func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	select {
	case s.ready = <-ready:
	case err := <-done:
		done <- err
		t.Fatal(err)
	}
	return s
}

// request sends one request; header values with the name "Host" set the host.
func (s *up) request(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.ready.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// s3 is a client with these keys.
func (s *up) s3(t *testing.T, access, secret string) *minio.Client {
	t.Helper()
	c, err := minio.New(strings.TrimPrefix(s.ready.S3, "http://"), &minio.Options{Creds: credentials.NewStaticV4(access, secret, ""), Region: "us-east-1", MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRefused: from another origin or Host, without a token and with a guessed
// one nothing is read and nothing is written, on every route.
func TestRefused(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "d"))
	token := "Bearer " + s.creds.Token.Reveal()
	routes := [][2]string{
		{"GET", "/memory/query?query=x"}, {"POST", "/memory/query"}, {"POST", "/memory/learn"}, {"GET", "/memory/projects"}, {"GET", "/memory/log"},
		{"GET", "/memory/why?sha256=x"}, {"GET", "/memory/verify"}, {"POST", "/memory/rebuild"}, {"GET", "/memory/questions?project=shop"}, {"POST", "/memory/questions"},
		{"DELETE", "/memory/questions/a?project=shop"}, {"PUT", "/memory/files/shop/a?sha256=x"}, {"GET", "/memory/ingest/x"}, {"GET", "/memory/wait"},
		{"GET", "/memory/schemas"}, {"POST", "/memory/schemas"}, {"GET", "/memory/schemas/a"}, {"DELETE", "/memory/schemas/a"},
		{"GET", "/memory/redact"}, {"POST", "/memory/redact"}, {"POST", "/memory/scrub"}, {"GET", "/memory/models"},
		{"GET", "/memory/status"}, {"GET", "/memory/dead"}, {"POST", "/memory/sweep"}, {"POST", "/events"},
	}
	for name, tc := range map[string]struct {
		status  int
		headers []string
	}{
		"no token":       {401, nil},
		"another token":  {401, []string{"Authorization", "Bearer mneme_000000000000000000000000000000000000000000000000"}},
		"hook token":     {401, []string{"Authorization", "Bearer " + s.creds.HookToken.Reveal()}},
		"foreign Host":   {0, []string{"Authorization", token, "Host", "evil.example"}},
		"rebound Host":   {0, []string{"Authorization", token, "Host", "127.0.0.1.nip.example"}},
		"foreign Origin": {0, []string{"Authorization", token, "Origin", "https://evil.example"}},
		"null Origin":    {0, []string{"Authorization", token, "Origin", "null"}},
		"another port":   {0, []string{"Authorization", token, "Origin", "http://127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range routes {
				code, body := s.request(t, r[0], r[1], "", append([]string{"Content-Type", "application/json"}, tc.headers...)...)
				if tc.status != 0 && code != tc.status || code < 400 || code == 404 || code >= 500 || strings.Contains(body, `"results"`) {
					t.Errorf("%s %s: %d %s", r[0], r[1], code, body)
				}
			}
		})
	}
	t.Run("a form", func(t *testing.T) {
		for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
			if code, body := s.request(t, "POST", "/memory/learn", `{"project":"shop","text":"x"}`, "Authorization", token, "Content-Type", ct); code < 400 {
				t.Errorf("%q: %d %s", ct, code, body)
			}
		}
	})
	t.Run("hooks", func(t *testing.T) {
		for _, tok := range []string{"", "0000", s.creds.Token.Reveal()} {
			if code, body := s.request(t, "POST", "/hooks/object/"+tok, `{"Records":[]}`); code < 400 {
				t.Errorf("token %q: %d %s", tok, code, body)
			}
		}
		if code, body := s.request(t, "POST", "/hooks/object/"+s.creds.HookToken.Reveal(), `{"Records":[]}`); code >= 300 {
			t.Errorf("the hook's own token: %d %s", code, body)
		}
	})
	t.Run("health is open and says nothing", func(t *testing.T) {
		if code, body := s.request(t, "GET", "/healthz", ""); code != 200 || strings.TrimSpace(body) != `{"status":"ok"}` {
			t.Errorf("%d %s", code, body)
		}
	})
	t.Run("credentials are private", func(t *testing.T) {
		for _, p := range []struct {
			path string
			mode os.FileMode
		}{{s.dir, 0o700}, {filepath.Join(s.dir, "credentials"), 0o600}, {filepath.Join(s.dir, "ready.json"), 0o600}} {
			st, err := os.Stat(p.path)
			if err != nil || st.Mode().Perm() != p.mode {
				t.Errorf("%s: %v %v, want %o", filepath.Base(p.path), st.Mode(), err, p.mode)
			}
		}
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Info("x", slog.Any("token", s.creds.Token), slog.Any("all", fmt.Sprintf("%v %+v", s.creds, s.creds)))
		if strings.Contains(b.String(), s.creds.Token.Reveal()) {
			t.Error("a credential is logged")
		}
	})
}

func denied(err error) bool {
	r := minio.ToErrorResponse(err)
	return err != nil && (r.StatusCode == 403 || r.Code == "AccessDenied" || r.Code == "SignatureDoesNotMatch" || r.Code == "InvalidAccessKeyId")
}

func TestS3Keys(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "d"))
	ctx := t.Context()
	put := func(c *minio.Client, bucket, key string) error {
		_, err := c.PutObject(ctx, bucket, key, strings.NewReader("# Rule\n\nWe decided to use pgx.\n"), 31, minio.PutObjectOptions{})
		return err
	}
	list := func(c *minio.Client, bucket string) error {
		for o := range c.ListObjects(ctx, bucket, minio.ListObjectsOptions{Recursive: true}) {
			if o.Err != nil {
				return o.Err
			}
		}
		return nil
	}
	for name, c := range map[string]*minio.Client{
		"guessed key":    s.s3(t, "MNEME0000000000000000", s.creds.S3SecretKey.Reveal()),
		"guessed secret": s.s3(t, s.creds.S3AccessKey.Reveal(), "000000000000000000000000000000000000000000000000"),
		"minioadmin":     s.s3(t, "minioadmin", "minioadmin"),
	} {
		if err := put(c, "transcripts", "shop/a.md"); !denied(err) {
			t.Errorf("%s: put: %v", name, err)
		}
		for _, b := range []string{"transcripts", "mneme"} {
			if err := list(c, b); !denied(err) {
				t.Errorf("%s: list %s: %v", name, b, err)
			}
		}
	}
	own := s.s3(t, s.creds.S3AccessKey.Reveal(), s.creds.S3SecretKey.Reveal())
	for _, b := range []string{"transcripts", "mneme"} { // both exist from the start
		if ok, err := own.BucketExists(ctx, b); !ok && !denied(err) {
			t.Errorf("%s: %t %v", b, ok, err)
		}
	}
	if err := put(own, "mneme", "log/local/shop/admit/00000000000000000001.jsonl"); !denied(err) {
		t.Errorf("a write into the log: %v", err)
	}
	if err := put(own, "transcripts", "shop/a.md"); err != nil {
		t.Fatal(err)
	}
	// The upload is learned by its notification alone.
	if code, body := s.request(t, "GET", "/memory/wait?timeout=20s", "", "Authorization", "Bearer "+s.creds.Token.Reveal()); code != 200 || !strings.Contains(body, `"done":true`) {
		t.Fatalf("%d %s", code, body)
	}
	_, body := s.request(t, "GET", "/memory/query?query=do+we+use+pgx", "", "apikey", s.creds.Token.Reveal())
	if !strings.Contains(body, "We decided to use pgx") {
		t.Errorf("the upload is not found: %s", body)
	}
}

// TestSecondStart: one process a folder; the second says who is there, and the
// folder is free again when the first has ended.
func TestSecondStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	s := start(t, dir)
	if _, err := wire.ReadReady(dir); err != nil {
		t.Error(err)
	}
	_, err := wire.Start(t.Context(), wire.UpConfig{Dir: dir, HTTP: "127.0.0.1:0", S3: "127.0.0.1:0"})
	if err == nil || fault.HintOf(err) == "" {
		t.Errorf("a second one on the folder: %v", err)
	}
	if r, err := wire.ReadReady(dir); err != nil || r != s.ready {
		t.Errorf("the second one touched ready.json: %+v %v", r, err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, err := wire.ReadReady(dir); !fault.Is(err, fault.Unavailable) {
		t.Errorf("ready.json outlives its process: %v", err)
	}
	again := start(t, dir)
	if again.creds != s.creds {
		t.Error("another start has other credentials")
	}
}

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := wire.Start(t.Context(), wire.UpConfig{Dir: filepath.Join(t.TempDir(), "d"), HTTP: l.Addr().String(), S3: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if u.Ready().HTTP == "http://"+l.Addr().String() {
		t.Error("a taken port is said to serve")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.Run(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestStartRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "credentials"), []byte("MNEME_TOKEN=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]wire.UpConfig{
		"all interfaces":   {Dir: t.TempDir(), HTTP: "0.0.0.0:0", S3: "127.0.0.1:0"},
		"no host":          {Dir: t.TempDir(), HTTP: ":0", S3: "127.0.0.1:0"},
		"S3 for all":       {Dir: t.TempDir(), HTTP: "127.0.0.1:0", S3: "[::]:0"},
		"a file":           {Dir: file, HTTP: "127.0.0.1:0", S3: "127.0.0.1:0"},
		"short key":        {Dir: t.TempDir(), HTTP: "127.0.0.1:0", S3: "127.0.0.1:0", TenantKey: "short"},
		"half a file":      {Dir: half, HTTP: "127.0.0.1:0", S3: "127.0.0.1:0"},
		"key of two lines": {Dir: t.TempDir(), HTTP: "127.0.0.1:0", S3: "127.0.0.1:0", TenantKey: "a tenant key over\ntwo lines of text"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := wire.Start(t.Context(), cfg)
			if err == nil {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				t.Fatalf("started; %v", u.Run(ctx, nil))
			}
			if name != "a file" && fault.HintOf(err) == "" { // "not a directory" needs none
				t.Errorf("%v says no cure", err)
			}
		})
	}
}

// TestDroppedIndex: an index that cannot be read is filled again from the log.
func TestDroppedIndex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	s := start(t, dir)
	auth := []string{"Authorization", "Bearer " + s.creds.Token.Reveal(), "Content-Type", "application/json"}
	if code, body := s.request(t, "POST", "/memory/learn", `{"project":"shop","text":"We decided to use pgx, because lib/pq is frozen."}`, auth...); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	s.request(t, "GET", "/memory/wait", "", auth...)
	verify := func(s *up) (v struct {
		OK        bool
		IndexHash string `json:"index_hash"`
		LogHash   string `json:"log_hash"`
	}) {
		t.Helper()
		_, body := s.request(t, "GET", "/memory/verify", "", auth...)
		if err := json.Unmarshal([]byte(body), &v); err != nil || !v.OK {
			t.Errorf("%v %s", err, body)
		}
		return v
	}
	want := verify(s)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "index", "graph.sqlite"), []byte("this is no database, and long enough to be read as one"), 0o600), os.RemoveAll(filepath.Join(dir, "index", "lexical.bleve"))); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	s.request(t, "GET", "/memory/wait", "", auth...)
	if got := verify(s); got != want {
		t.Errorf("filled again %+v, before %+v", got, want)
	}
}

func env(kv ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(k string) string { return m[k] }
}

func TestFnFromEnv(t *testing.T) {
	t.Parallel()
	full := []string{
		"MNEME_S3_ENDPOINT", "http://127.0.0.1:9000", "MNEME_S3_ACCESS_KEY", "a", "MNEME_S3_SECRET_KEY", "b",
		"MNEME_TENANT_KEY", "sixteen bytes or more", "MNEME_INDEX_DIR", "/tmp/index",
	}
	for _, name := range wire.Functions() {
		c, err := wire.FnFromEnv(name, env(full...))
		if err != nil || c.Listen != "[::]:8080" || c.Tenant != "local" {
			t.Errorf("%s: %+v %v", name, c, err)
		}
		// Every bad variable is named at once.
		_, err = wire.FnFromEnv(name, env("MNEME_TENANT", "No Name"))
		for _, v := range []string{"MNEME_S3_ENDPOINT", "MNEME_S3_ACCESS_KEY", "MNEME_S3_SECRET_KEY", "MNEME_TENANT"} {
			if err == nil || !strings.Contains(err.Error(), v) {
				t.Errorf("%s: %v does not name %s", name, err, v)
			}
		}
	}
	for _, tc := range [][2]string{{"learn", "MNEME_TENANT_KEY"}, {"project", "MNEME_INDEX_DIR"}, {"query", "MNEME_INDEX_DIR"}, {"cook", "cook"}} {
		if _, err := wire.FnFromEnv(tc[0], env(full[:6]...)); err == nil || !strings.Contains(err.Error(), tc[1]) {
			t.Errorf("%s: %v does not name %s", tc[0], err, tc[1])
		}
	}
}

func TestChaosFromEnv(t *testing.T) {
	t.Parallel()
	var c wire.UpConfig
	if err := wire.ChaosFromEnv(&c, env("MNEME_TEST_CHAOS", "duplicate=3,shuffle=50ms,drop=2,seed=7", "MNEME_TEST_SWEEP", "200ms")); err != nil {
		t.Fatal(err)
	}
	if c.Sweep != 200*time.Millisecond || c.Chaos.Duplicate != 3 || c.Chaos.Shuffle != 50*time.Millisecond || c.Chaos.Drop != 2 || c.Chaos.Seed != 7 {
		t.Errorf("%+v %+v", c, c.Chaos)
	}
	for _, kv := range [][]string{{"MNEME_TEST_CHAOS", "colour=red"}, {"MNEME_TEST_CHAOS", "drop=many"}, {"MNEME_TEST_SWEEP", "soon"}, {"MNEME_TEST_SWEEP", "-1s"}} {
		if err := wire.ChaosFromEnv(&c, env(kv...)); err == nil || !strings.Contains(err.Error(), kv[0]) {
			t.Errorf("%v: %v", kv, err)
		}
	}
}

// BenchmarkFnReady is the start of one function to its readiness probe: the
// program itself, and within a process that runs already. 30 ms is the aim.
func BenchmarkFnReady(b *testing.B) {
	full := []string{
		"MNEME_S3_ENDPOINT=http://127.0.0.1:1", "MNEME_S3_ACCESS_KEY=a", "MNEME_S3_SECRET_KEY=b",
		"MNEME_TENANT_KEY=sixteen bytes or more", "MNEME_INDEX_DIR=" + b.TempDir(), "PATH=" + os.Getenv("PATH"),
	}
	bin := filepath.Join(b.TempDir(), "fn")
	if out, err := exec.Command("go", "build", "-o", bin, "../../fn").CombinedOutput(); err != nil {
		b.Fatalf("%v %s", err, out)
	}
	// learn and gate first prove the store, so that theirs is a matter of the network.
	for _, name := range []string{"embed", "project", "query"} {
		b.Run(name, func(b *testing.B) {
			var longest time.Duration
			for b.Loop() {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					b.Fatal(err)
				}
				addr := l.Addr().String()
				_ = l.Close()
				cmd := exec.Command(bin, name)
				cmd.Env = append(full, "LISTEN_ADDRESS="+addr)
				from := time.Now()
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				for {
					resp, err := http.Get("http://" + addr + "/health/readiness")
					if err == nil {
						_ = resp.Body.Close()
						if resp.StatusCode == http.StatusOK {
							break
						}
					}
					if time.Since(from) > 10*time.Second {
						b.Fatal("not ready after 10 s")
					}
					time.Sleep(200 * time.Microsecond)
				}
				longest = max(longest, time.Since(from))
				b.StopTimer()
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				b.StartTimer()
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
		})
	}
}
