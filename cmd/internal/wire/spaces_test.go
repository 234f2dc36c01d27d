package wire_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/embed"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestEmbedFileChanges: another `embed` in the watched file fills its space while the
// present one serves, and serves then, with no start; a start with a changed file does the
// same. A model whose vectors are not as long as declared is refused, and what the file no
// longer names can still lead back.
func TestEmbedFileChanges(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(llmtest.On(map[string]llmtest.Play{"/v1/embeddings": llmtest.Vectors(about)}))
	dims := len(about(""))
	file := filepath.Join(t.TempDir(), "models.yaml")
	write := func(what string) {
		t.Helper()
		text := fmt.Sprintf("endpoints: [{name: e, url: '%s/v1', auth: none}]\nembeds:\n  words: {endpoint: e, model: %s, dims: %d}\n  wrong: {endpoint: e, model: %s, dims: %d}\nembed: %s\n",
			s.URL, llmtest.Model, dims, llmtest.Model, dims+1, what)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(k string) string { return map[string]string{"MNEME_MODELS": file}[k] }
	dir := filepath.Join(t.TempDir(), "d")
	begin := func() *up {
		t.Helper()
		cfg, err := wire.ModelsFromEnv(getenv)
		if err != nil {
			t.Fatal(err)
		}
		return startWith(t, wire.UpConfig{Dir: dir, Models: cfg, Getenv: getenv})
	}
	serves := func(u *up, want string) {
		t.Helper()
		c := &calls{u}
		var st embed.Status
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			c.do(t, http.MethodPost, "/memory/sweep", "", nil)
			c.wait(t)
			st = embed.Status{}
			c.do(t, http.MethodGet, "/memory/models/spaces", "", &st)
			if st.Spaces[0].Name == want || time.Now().After(end) {
				break
			}
		}
		if got := st.Spaces[0]; got.Name != want || got.ID != st.Serving || got.Segments != got.Of || got.Of == 0 {
			t.Fatalf("%+v, want %s", st, want)
		}
		a := c.ask(t, "how often may a failed call be repeated?")
		if len(a.Results) == 0 && want == "words" || a.Space != st.Serving || len(a.Degraded) > 0 {
			t.Errorf("%s: %+v", want, a)
		}
		var v struct {
			OK       bool
			Problems []string
		}
		if c.do(t, http.MethodGet, "/memory/verify", "", &v); !v.OK {
			t.Errorf("%v", v.Problems)
		}
	}
	write("static")
	u := begin()
	(&calls{u}).do(t, http.MethodPost, "/memory/learn", `{"project":"shop","text":"# Retries\n\nWe decided to cap retries at 5 attempts, because the upstream bans us.\n"}`, nil)
	serves(u, "static")
	write("words")
	serves(u, "words")
	var r struct{ Code, Message, Hint string }
	if code := u.api(t, http.MethodPost, "/memory/models/embed", map[string]string{"name": "wrong"}, &r); code != http.StatusBadRequest || !strings.Contains(r.Hint, fmt.Sprintf("dims: %d", dims)) {
		t.Errorf("vectors of another length: %d %+v", code, r)
	}
	write("wrong")
	serves(u, "words")
	write("static-128")
	serves(u, "static-128")
	var st embed.Status
	if code := u.api(t, http.MethodPost, "/memory/models/rollback", map[string]any{}, &st); code != http.StatusOK {
		t.Errorf("rollback: %d", code)
	}
	serves(u, "words") // the file still says static-128: it was followed once
	if err := u.stop(); err != nil {
		t.Fatal(err)
	}
	u = begin()
	serves(u, "words")
	if err := u.stop(); err != nil {
		t.Fatal(err)
	}
	write("static-256")
	u = begin()
	serves(u, "static-256")
	// The object in the bucket goes before the file, and one that cannot be used changes nothing.
	for _, step := range []struct{ file, serves string }{{"embed: static-128\n", "static-128"}, {"embed: no-such-model\n", "static-128"}, {"embed: 7 8\nurl: x\n", "static-128"}, {"embed: words\nretention: 1h\n", "words"}} {
		object := filepath.Join(dir, "buckets", wire.LogBucket, "config", memory.LocalTenant, "spaces.yaml")
		if err := os.MkdirAll(filepath.Dir(object), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(object, []byte(step.file), 0o600); err != nil {
			t.Fatal(err)
		}
		serves(u, step.serves)
	}
}
