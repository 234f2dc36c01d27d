package wire_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
)

// TestOllama is the whole program over a real Ollama with a small model: the
// doctor is content, every gate record carries what the log promises, and a
// window that is too small is refused with its cure.
func TestOllama(t *testing.T) {
	url := os.Getenv("MNEME_TEST_OLLAMA")
	if url == "" {
		const msg = "MNEME_TEST_OLLAMA is not set: models are tested over made-up servers alone"
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "ollama") {
			t.Fatal(msg)
		}
		t.Skip(msg)
	}
	env := map[string]string{"MNEME_GATE_MODEL": "smollm2-135m", "LLM_API_BASE": url, "MNEME_GATE_WINDOW": "4096"}
	getenv := func(k string) string { return env[k] }
	cfg, err := wire.ModelsFromEnv(getenv)
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(t, wire.UpConfig{Dir: filepath.Join(t.TempDir(), "d"), Models: cfg, Getenv: getenv})
	call := func(method, path, body string) string {
		t.Helper()
		status, out := s.request(t, method, path, body, "Authorization", "Bearer "+s.creds.Token.Reveal(), "Content-Type", "application/json")
		if status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, status, out)
		}
		return out
	}
	var found gate.ModelsFound
	if err := json.Unmarshal([]byte(call(http.MethodGet, "/memory/models", "")), &found); err != nil {
		t.Fatal(err)
	}
	if found.Error != "" || found.Policy != "model/full" || len(found.Models) != 1 || !found.Models[0].OK || found.Models[0].TokenFactor < 0.9 || found.Models[0].TokenFactor > 1.3 {
		t.Fatalf("%+v", found)
	}
	var asked gate.Questions
	if err := json.Unmarshal([]byte(call(http.MethodGet, "/memory/questions?project=shop", "")), &asked); err != nil {
		t.Fatal(err)
	}
	for _, q := range asked.Questions[1:] { // one is slow enough
		call(http.MethodDelete, "/memory/questions/"+q.ID+"?project=shop", "")
	}
	call(http.MethodPost, "/memory/learn", `{"project":"shop","text":"# Retries\n\nWe decided to cap retries at 5 attempts, because the upstream bans us.\n"}`)
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		_, body := s.request(t, http.MethodGet, "/memory/log?project=shop&type=gate", "", "Authorization", "Bearer "+s.creds.Token.Reveal())
		if strings.Contains(body, `"type":"gate"`) {
			var g struct {
				Model, Policy string
				PromptVersion string  `json:"prompt_version"`
				Server        int     `json:"prompt_tokens"`
				Own           int     `json:"prompt_tokens_own"`
				Latency       float64 `json:"latency_ms"`
				Reply         string
			}
			line, _, _ := strings.Cut(body, "\n")
			if err := json.Unmarshal([]byte(line), &g); err != nil {
				t.Fatal(err)
			}
			if g.Model != "smollm2-135m" || g.Policy != "model/full" || g.PromptVersion == "" || g.Server == 0 || g.Own == 0 || g.Latency == 0 || len(g.Reply) != 64 {
				t.Errorf("%s", line)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no gate record after 3 min: %s", body)
		}
	}
}

// TestModelsRefused: what is configured wrongly ends the start, and says why.
func TestModelsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(file, []byte("endpoints:\n  - name: router\n    url: https://openrouter.ai/api/v1\ngate: {endpoint: router, model: m}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		env        map[string]string
		want, hint string
	}{
		"no key":        {map[string]string{"MNEME_MODELS": file}, "LLM_API_KEY is empty", "set LLM_API_KEY"},
		"no file":       {map[string]string{"MNEME_MODELS": file + ".gone"}, "models.yaml.gone", ""},
		"a bad address": {map[string]string{"MNEME_GATE_MODEL": "m", "LLM_API_BASE": "nowhere"}, "LLM_API_BASE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			getenv := func(k string) string { return tc.env[k] }
			cfg, err := wire.ModelsFromEnv(getenv)
			if err == nil {
				_, err = wire.Start(t.Context(), wire.UpConfig{Dir: filepath.Join(t.TempDir(), "d"), HTTP: "127.0.0.1:0", S3: "127.0.0.1:0", Models: cfg, Getenv: getenv})
			}
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(fault.HintOf(err), tc.hint) {
				t.Errorf("%v (%s)", err, fault.HintOf(err))
			}
		})
	}
}

// TestUnknownWording: a prompt version that there is not is an error at its line, before
// anything starts.
func TestUnknownWording(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{"t9": false, gru.PromptVersion: true, gru.PromptVersionJSON: true} {
		file := filepath.Join(t.TempDir(), "models.yaml")
		text := "endpoints: [{name: e, url: 'http://127.0.0.1:1'}]\ngate: {endpoint: e, model: m,\n  prompt: " + version + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := wire.ModelsFromEnv(func(k string) string { return map[string]string{"MNEME_MODELS": file}[k] })
		if ok != (err == nil) || !ok && (!strings.Contains(err.Error(), "models.yaml:3: ") || !strings.Contains(fault.HintOf(err), gru.PromptVersion)) {
			t.Errorf("%s: %v (%s)", version, err, fault.HintOf(err))
		}
	}
}
