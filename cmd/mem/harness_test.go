package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary builds mem once for all tests of this package.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mneme-bin")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mem")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// tenantKey is the same in every run: equality is tested under one key.
const tenantKey = "test tenant key, sixteen bytes and more"

// server is a running `mem up`.
type server struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	done chan error
	http string
	s3   string
	log  *bytes.Buffer
}

// start runs `mem up` on dir and waits for its ready line.
func start(t *testing.T, dir string, env ...string) *server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, done: make(chan error, 1), log: &bytes.Buffer{}}
	s.cmd = exec.Command(path, "up", "--dir", dir, "--http", "127.0.0.1:0", "--s3", "127.0.0.1:0")
	s.cmd.Env = append(cleanEnv(), append([]string{"MNEME_TENANT_KEY=" + tenantKey}, env...)...)
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			if strings.HasPrefix(sc.Text(), "ready ") {
				ready <- sc.Text()
			}
		}
		s.done <- s.cmd.Wait()
	}()
	select {
	case line := <-ready:
		if _, err := fmt.Sscanf(line, "ready http=%s s3=%s", &s.http, &s.s3); err != nil {
			t.Fatalf("ready line %q: %v", line, err)
		}
	case err := <-s.done:
		t.Fatalf("mem up ended before it was ready: %v\n%s", err, s.log)
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		t.Fatalf("mem up is not ready after 30 s\n%s", s.log)
	}
	t.Cleanup(s.kill)
	return s
}

// cleanEnv is the environment without Mneme's own variables.
func cleanEnv() []string {
	var out []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "MNEME_") {
			out = append(out, e)
		}
	}
	return out
}

// kill is kill -9.
func (s *server) kill() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.done
}

// stop is Ctrl-C; it fails the test when the process does not end cleanly.
func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("mem up after Ctrl-C: %v\n%s", err, s.log)
		}
	case <-time.After(20 * time.Second):
		s.kill()
		s.t.Error("mem up does not end after Ctrl-C")
	}
}

// mem runs a command against the server's folder.
func (s *server) mem(args ...string) (string, int) {
	s.t.Helper()
	return mem(s.t, s.dir, args...)
}

// must is mem for commands that end with 0.
func (s *server) must(args ...string) string {
	s.t.Helper()
	out, code := s.mem(args...)
	if code != 0 {
		s.t.Fatalf("mem %s: exit %d\n%s\nserver:\n%s", strings.Join(args, " "), code, out, s.log)
	}
	return out
}

// mem runs a command; its output is standard output, and on failure standard
// error too.
func mem(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"--dir", dir}, args...)...)
	cmd.Env = cleanEnv()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if err != nil {
		return out.String() + errOut.String(), code
	}
	return out.String(), code
}

// hashes is what verify prints.
type hashes struct {
	OK        bool              `json:"ok"`
	LogHash   string            `json:"log_hash"`
	IndexHash string            `json:"index_hash"`
	Streams   map[string]string `json:"streams"`
	Problems  []string          `json:"problems"`
	Counts    map[string]int    `json:"counts"`
}

func (s *server) verify() hashes {
	s.t.Helper()
	var h hashes
	if err := json.Unmarshal([]byte(s.must("verify", "--json")), &h); err != nil {
		s.t.Fatal(err)
	}
	if !h.OK {
		s.t.Errorf("verify: %v", h.Problems)
	}
	return h
}

// status is GET /memory/status through the client's own credentials.
func (s *server) policyCalls() int {
	s.t.Helper()
	var st struct {
		PolicyCalls int `json:"policy_calls"`
	}
	if err := json.Unmarshal([]byte(s.must("status", "--json")), &st); err != nil {
		s.t.Fatal(err)
	}
	return st.PolicyCalls
}

// sameHashes compares what DESIGN section 3 says must be equal.
func sameHashes(t *testing.T, what string, want, got hashes) {
	t.Helper()
	if got.LogHash != want.LogHash {
		t.Errorf("%s: log_hash %s, want %s", what, got.LogHash, want.LogHash)
		for name, h := range want.Streams {
			if got.Streams[name] != h {
				t.Errorf("  stream %s: %s, want %s", name, got.Streams[name], h)
			}
		}
	}
	if got.IndexHash != want.IndexHash {
		t.Errorf("%s: index_hash %s, want %s", what, got.IndexHash, want.IndexHash)
	}
}

// sessions writes n Claude Code sessions into dir: talk with decisions, causes,
// rules that later sessions amend, and noise. The same n gives the same bytes.
func sessions(t *testing.T, dir string, n int) []string {
	t.Helper()
	facts := []string{
		"We decided to cap retries at %d attempts, because the upstream bans us after that.",
		"From now on the cache TTL is %d minutes, never longer, since stale prices cost us an incident.",
		"The root cause was the clock skew of node %d: tokens looked expired before they were issued.",
		"I prefer table tests over mocks; keep at most %d lines in a test helper.",
		"Never deploy on Fridays after %d o'clock, no exceptions.",
		"Use `pgx` instead of `lib/pq`, and set `max_conns` to %d everywhere.",
	}
	noise := []string{
		"Let me look at the file first.", "Running the tests now.", "Thanks, looks good.", "I'll check the logs and come back.",
		"Could you show me the diff?", "The build passed.", "Sure, one moment.",
	}
	var files []string
	for i := range n {
		var b bytes.Buffer
		line := 0
		emit := func(role, text string) {
			line++
			id := fmt.Sprintf("%08d-0000-4000-8000-%012d", i, line)
			at := time.Date(2026, 3, 1+i, 9, line, 0, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
			msg := map[string]any{"role": role, "content": text}
			if role == "assistant" {
				msg = map[string]any{"id": "msg_" + id, "role": role, "type": "message", "model": "m", "content": []any{map[string]any{"type": "text", "text": text}}}
			}
			rec := map[string]any{
				"type": role, "uuid": id, "parentUuid": nil, "sessionId": fmt.Sprintf("session-%04d", i), "timestamp": at,
				"cwd": "/home/ada/shop", "version": "2.1.42", "gitBranch": "main", "isSidechain": false, "userType": "external", "message": msg,
			}
			enc, err := json.Marshal(rec)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(enc, '\n'))
		}
		for k := range 12 {
			emit("user", noise[(i+k)%len(noise)])
			emit("assistant", noise[(i*3+k+1)%len(noise)]+" "+strings.Repeat("Reading the module and its callers in turn. ", 30))
			if k%2 == 0 {
				emit("user", fmt.Sprintf(facts[(i+k/2)%len(facts)], 3+i))
				emit("assistant", "Understood, noted.")
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("session-%04d.jsonl", i))
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	return files
}
