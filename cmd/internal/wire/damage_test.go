package wire_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/fault"
)

// TestDamagedDatabase: a graph index that SQLite calls malformed does not keep
// mem up from starting; it is filled again from the log.
func TestDamagedDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	s := start(t, dir)
	auth := []string{"Authorization", "Bearer " + s.creds.Token.Reveal(), "Content-Type", "application/json"}
	if code, body := s.request(t, "POST", "/memory/learn", `{"project":"shop","text":"We decided to use pgx, because lib/pq is frozen."}`, auth...); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	hash := func(s *up) string {
		t.Helper()
		s.request(t, "GET", "/memory/wait", "", auth...)
		var v struct {
			OK        bool
			IndexHash string `json:"index_hash"`
		}
		_, body := s.request(t, "GET", "/memory/verify", "", auth...)
		if err := json.Unmarshal([]byte(body), &v); err != nil || !v.OK {
			t.Errorf("%v %s", err, body)
		}
		return v.IndexHash
	}
	want := hash(s)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	// 5,000 bytes are a whole header and no whole second page.
	if err := os.Truncate(filepath.Join(dir, "index", "graph.sqlite"), 5000); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	if got := hash(s); got != want {
		t.Errorf("filled again %s, before %s", got, want)
	}
}

// TestCredentialsStayPrivate: a copy that others may read is closed to them.
func TestCredentialsStayPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := start(t, dir).stop(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "credentials")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Mode().Perm(); got != fs.FileMode(0o600) {
		t.Errorf("mode %v, want 0600", got)
	}
}

// A folder that holds a log has redaction marks and seals under its tenant key.
func TestCredentialsGoneFromALog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "buckets", "mneme", "log", "local"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := wire.Start(t.Context(), wire.UpConfig{Dir: dir, HTTP: "127.0.0.1:0", S3: "127.0.0.1:0"})
	if !fault.Is(err, fault.Corrupt) || fault.HintOf(err) == "" {
		t.Errorf("started under a new tenant key: %v", err)
	}
}
