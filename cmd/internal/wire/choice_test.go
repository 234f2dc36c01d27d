package wire_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
)

// judging is a model server of the OpenAI form whose models open the gate where
// a section holds a fact, and whose memory is the fact. It keeps what came.
type judging struct {
	*httptest.Server
	names []string // of its models

	mu   sync.Mutex
	came []arrival
}

type arrival struct {
	path, model, system, user string
	header                    http.Header
}

// probes reports whether the preflight sent it.
func (a arrival) probes() bool { return !strings.Contains(a.user, "<section>") }

var aFact = regexp.MustCompile(`The limit of queue [a-z]+ is \d+ messages\.`)

func newJudging(t *testing.T, names ...string) *judging {
	t.Helper()
	count, err := wire.Counter()
	if err != nil {
		t.Fatal(err)
	}
	s := &judging{names: names}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &in) // a GET has none
		a := arrival{path: r.URL.Path, model: in.Model, header: r.Header.Clone()}
		for _, m := range in.Messages {
			if m.Role == "system" {
				a.system = m.Content
			} else {
				a.user = m.Content
			}
		}
		s.mu.Lock()
		s.came = append(s.came, a)
		s.mu.Unlock()
		var out any
		switch {
		case r.URL.Path == "/v1/models":
			var list []any
			for _, n := range s.names {
				list = append(list, map[string]any{"id": n, "object": "model", "max_model_len": 16384})
			}
			out = map[string]any{"object": "list", "data": list}
		case !slices.Contains(s.names, in.Model):
			w.WriteHeader(http.StatusNotFound)
			out = map[string]any{"error": map[string]any{"message": "model not found"}}
		default:
			text := a.reply()
			out = map[string]any{"id": "1", "object": "chat.completion", "model": in.Model,
				"choices": []any{map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop"}},
				"usage":   map[string]any{"prompt_tokens": count(a.system) + count(a.user), "completion_tokens": count(text)}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	return s
}

func (a arrival) reply() string {
	if a.probes() {
		return "ok"
	}
	_, section, _ := strings.Cut(a.user, "<section>")
	fact := aFact.FindString(section)
	v := gru.Verdict{Think: "t", Update: fact != "", Memory: fact}
	switch gates, writes := strings.Contains(a.system, "<check>"), strings.Contains(a.system, "<update>"); {
	case gates && writes:
		return v.Render(gru.ShapeFull)
	case gates:
		return v.Render(gru.ShapeGate)
	}
	return v.Render(gru.ShapeRewrite)
}

// calls are the arrivals so far: the preflight's, and those of runs.
func (s *judging) calls() (probes, runs []arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.came {
		if a.probes() {
			probes = append(probes, a)
		} else {
			runs = append(runs, a)
		}
	}
	return probes, runs
}

// api calls the server as a client with its token.
func (s *up) api(t *testing.T, method, path string, body, into any) int {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	status, out := s.request(t, method, path, string(b), "Authorization", "Bearer "+s.creds.Token.Reveal(), "Content-Type", "application/json")
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, status, out)
	}
	return status
}

// withModels starts a Mneme over a file of models and the keys that it names.
func withModels(t *testing.T, file string, env map[string]string) *up {
	t.Helper()
	cfg, err := models.Parse("models.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, wire.UpConfig{Dir: filepath.Join(t.TempDir(), "d"), Models: cfg, Getenv: func(k string) string { return env[k] }})
}

// gates are the gate records of a project.
func (s *up) gates(t *testing.T, project string) []memory.Gate {
	t.Helper()
	_, body := s.request(t, http.MethodGet, "/memory/log?project="+project+"&type=gate", "", "Authorization", "Bearer "+s.creds.Token.Reveal())
	var out []memory.Gate
	for line := range strings.Lines(body) {
		var g memory.Gate
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, g)
	}
	return out
}

const twoFacts = "# Limits\n\nThe limit of queue a is 5 messages.\n\n# Lunch\n\nThe soup was fine.\n\n# More limits\n\nThe limit of queue b is 9 messages.\n"

// TestProjectModels: each project is decided by its own models; two with the
// same one have it looked at once, and one whose server is down holds up nobody.
func TestProjectModels(t *testing.T) {
	good, down := newJudging(t, "small"), newJudging(t, "small")
	down.Close()
	s := withModels(t, fmt.Sprintf(`endpoints:
  - {name: good, url: '%s/v1'}
  - {name: down, url: '%s/v1'}
  - {name: spare, url: 'https://llm.example.org/v1', key_env: NOT_SET}
gate: {endpoint: down, model: small}
projects:
  one: {gate: {endpoint: good, model: small}}
  two: {gate: {endpoint: good, model: small}}
  plain: {gate: none}
`, good.URL, down.URL), nil)
	// The broken one first: its runs are refused while the others go on.
	text := twoFacts
	status, body := s.request(t, http.MethodPut, "/memory/files/broken/a.md?sha256="+string(memory.SumString(text)), text,
		"Authorization", "Bearer "+s.creds.Token.Reveal(), "Content-Type", "application/octet-stream")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for project, want := range map[string]string{"one": "small", "two": "small", "plain": "extractive"} {
		var l learn.Learned
		if status := s.api(t, http.MethodPost, "/memory/learn", map[string]any{"project": project, "text": text}, &l); status != http.StatusOK || l.Model != want {
			t.Errorf("%s: %d %+v", project, status, l)
		}
		policy := map[string]string{"small": "model/full", "extractive": wire.Versions()["gate_policy"]}[want]
		if g := s.gates(t, project); len(g) == 0 || g[0].Policy != policy {
			t.Errorf("%s: %d gate records, of %+v", project, len(g), g[:min(1, len(g))])
		}
	}
	if g := s.gates(t, "broken"); len(g) != 0 {
		t.Errorf("a project whose server is down has %d gate records", len(g))
	}
	probes, runs := good.calls()
	asked := 0
	for _, p := range probes {
		if p.path == "/v1/chat/completions" {
			asked++
		}
	}
	if asked != 2 { // a short and a long text
		t.Errorf("the preflight asked %d times, want 2: one look for two projects", asked)
	}
	if len(runs) == 0 {
		t.Error("the model was never asked")
	}
	var found gate.ModelsFound
	s.api(t, http.MethodGet, "/memory/models", nil, &found)
	ok := map[string]bool{}
	for _, m := range found.Models {
		ok[m.Server] = m.OK
	}
	if len(found.Models) != 2 || !ok["good/small"] || ok["down/small"] || found.Error != "" {
		t.Errorf("the doctor says %+v", found)
	}
}
