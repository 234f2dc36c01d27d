package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/token"
)

// modelServer is an OpenAI-compatible server whose model keeps sentences with
// "decided" in them; mode makes it do something else.
type modelServer struct {
	*httptest.Server
	mu                 sync.Mutex
	mode               string
	calls, sections    int
	prompt, completion int
}

var (
	inSection = regexp.MustCompile(`(?s)<section>\n(.*)\n</section>`)
	inMemory  = regexp.MustCompile(`(?s)<memory>\n(.*?)\n</memory>`)
	decision  = regexp.MustCompile(`[^.\n]*\bdecided\b[^.\n]*\.`)
)

func newModelServer(t *testing.T) *modelServer {
	t.Helper()
	tok, err := token.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := &modelServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"small","object":"model","max_model_len":32768},{"id":"second","object":"model","max_model_len":32768}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var b struct {
			Model    string
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls++
		system, user, prompt := b.Messages[0].Content, b.Messages[len(b.Messages)-1].Content, 0
		for _, m := range b.Messages {
			prompt += tok.Count(m.Content)
		}
		text := "ok"
		if sec := inSection.FindStringSubmatch(user); sec != nil {
			old, hit := inMemory.FindStringSubmatch(user)[1], strings.TrimSpace(decision.FindString(sec[1]))
			if b.Model == "second" && strings.Contains(hit, "cache") {
				hit = "" // of another mind
			}
			text = "<check>no</check><next>continue</next>"
			if hit != "" {
				text = "<check>yes</check><update>" + strings.TrimPrefix(old+"\n"+hit, "none\n") + "</update><next>continue</next>"
				if !strings.Contains(system, "<update>") {
					text = "<check>yes</check><next>continue</next>"
				}
			}
			if s.mode == "sulk" {
				text = "I would rather not say."
			}
			s.sections++
			s.prompt += prompt
			s.completion += tok.Count(text)
		}
		reply := map[string]any{
			"id": "1", "object": "chat.completion", "model": b.Model,
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text}}},
			"usage":   map[string]any{"prompt_tokens": prompt, "completion_tokens": tok.Count(text), "total_tokens": prompt + tok.Count(text)},
		}
		if err := json.NewEncoder(w).Encode(reply); err != nil {
			t.Error(err)
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *modelServer) set(mode string) { s.mu.Lock(); s.mode = mode; s.mu.Unlock() }

// post asks the server's API.
func (s *server) post(path, body string, into any) {
	s.t.Helper()
	creds, err := wire.ReadCredentials(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.http+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+creds.Token.Reveal())
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		s.t.Fatal(err)
	}
}

// count is how often the model was asked, probes included.
func (s *modelServer) count() int { s.mu.Lock(); defer s.mu.Unlock(); return s.calls }

// modelsFile is the configuration of that server, with more lines behind it.
func (s *modelServer) modelsFile(t *testing.T, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "models.yaml")
	text := "endpoints:\n  - {name: fake, url: " + s.URL + "/v1, kind: openai-compatible, auth: none}\ngate: {endpoint: fake, model: small}\nprices: {small: {prompt: 1, completion: 2}, second: {prompt: 3, completion: 4}}\n" + more
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func note(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCostOfAModel: the estimate makes no call and holds what the run then costs;
// undecided steps are named, and decided when they are asked for again.
func TestCostOfAModel(t *testing.T) {
	t.Parallel()
	m := newModelServer(t)
	s := start(t, t.TempDir(), "MNEME_MODELS="+m.modelsFile(t, "budgets: {default: {usd: 50}}\n"))
	file := note(t, "n.md", "# Retries\n\nWe decided to stop retries after 5 attempts.\n\n# Cache\n\nWe decided to cap the cache at 10 MB.\n\n# Other\n\nNothing of note.\n")

	out := s.must("-p", "shop", "learn", "--dry-run", file)
	for _, want := range []string{"3 chunks", "project shop: 9 questions over 3 chunks", "small at fake (" + m.URL + "/v1)", "budget of a day: $50.00; today: $0.0000"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := m.count(); n != 0 {
		t.Errorf("the estimate made %d calls", n)
	}
	var plan struct {
		Projects []struct {
			Estimate struct {
				Low, High struct {
					PromptTokens     int     `json:"prompt_tokens"`
					CompletionTokens int     `json:"completion_tokens"`
					USD              float64 `json:"usd"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(s.must("--json", "-p", "shop", "learn", "-n", file)), &plan); err != nil {
		t.Fatal(err)
	}
	m.set("sulk")
	if out := s.must("-p", "shop", "learn", "--wait", file); !strings.Contains(out, "left 27 steps undecided") {
		t.Errorf("%s", out)
	}
	if out := s.must("-p", "shop", "regate", "--pending", "-n", "-q", "decisions"); !strings.Contains(out, "3 undecided, 0 asked again") {
		t.Errorf("%s", out)
	}
	m.set("")
	if out := s.must("-p", "shop", "regate", "--pending"); !strings.Contains(out, "27 undecided steps asked again: 27 answered, 0 still undecided") {
		t.Errorf("%s", out)
	}
	if out := s.must("regate", "--pending"); !strings.Contains(out, "no step is undecided") {
		t.Errorf("%s", out)
	}
	s.must("wait") // the synthesis too
	m.mu.Lock()
	p, c := m.prompt, m.completion
	m.mu.Unlock()
	e := plan.Projects[0].Estimate
	// Sulking took every call twice, and then each was asked once more.
	if p < e.Low.PromptTokens || p > 3*e.High.PromptTokens/2 || c > 3*e.High.CompletionTokens/2 {
		t.Errorf("%d and %d tokens; the estimate %+v", p, c, e)
	}
	var report struct {
		Streams []struct {
			QueryID string `json:"query_id"`
			Figures struct {
				USD    float64 `json:"usd"`
				Prompt int     `json:"prompt_tokens"`
				Open   int     `json:"open"`
				Kept   int     `json:"memories_kept"`
				Per    float64 `json:"usd_per_kept"`
			}
		}
	}
	if err := json.Unmarshal([]byte(s.must("--json", "-p", "shop", "report")), &report); err != nil {
		t.Fatal(err)
	}
	prompt := 0
	for _, r := range report.Streams {
		prompt += r.Figures.Prompt
		if strings.HasPrefix(r.QueryID, "_") {
			continue // the synthesis reads nine memories, and opens as it likes
		}
		if r.Figures.Open != 2 || r.Figures.Kept != 2 || r.Figures.Per <= 0 || r.Figures.Per*2 < r.Figures.USD*.999 {
			t.Errorf("%+v", r.Figures)
		}
	}
	if len(report.Streams) != 10 || prompt != p {
		t.Errorf("%d streams, %d prompt tokens in the log, %d at the server", len(report.Streams), prompt, p)
	}
	if out := s.must("-p", "shop", "report", "-q", "decisions"); !strings.Contains(out, "cost") || !strings.Contains(out, "a kept memory $") || !strings.Contains(out, "by small") {
		t.Errorf("%s", out)
	}
	if out := s.must("-p", "shop", "query", "how large may the cache be"); !strings.Contains(out, "10 MB") {
		t.Errorf("%s", out)
	}
}

// TestBudgetPauses: a run stops before it breaks the day's budget, and whoever waits
// is told why.
func TestBudgetPauses(t *testing.T) {
	t.Parallel()
	m := newModelServer(t)
	s := start(t, t.TempDir(), "MNEME_MODELS="+m.modelsFile(t, "budgets: {shop: {tokens: 20000}}\n"))
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "# Part %d\n\nWe decided to set limit %d to %d. %s\n\n", i, i, 10*i, strings.Repeat("It is so. ", 60))
	}
	s.must("-p", "shop", "learn", note(t, "n.md", b.String()))
	out, code := s.mem("wait", "--timeout", "30s")
	if code != 1 || !strings.Contains(out, "paused until ") || !strings.Contains(out, "of 20000 tokens") || !strings.Contains(out, "budgets.shop") {
		t.Errorf("exit %d: %s", code, out)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if spent := m.prompt + m.completion; spent == 0 || spent > 20_000 {
		t.Errorf("%d tokens are spent", spent)
	}
}

// TestEstimateOfPieces: in a small window long chunks are read in pieces, and the
// estimate bounds how often the model is asked.
func TestEstimateOfPieces(t *testing.T) {
	t.Parallel()
	m := newModelServer(t)
	models := m.modelsFile(t, "")
	b, err := os.ReadFile(models)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(models, []byte(strings.Replace(string(b), "model: small}", "model: small, window: 4400}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, t.TempDir(), "MNEME_MODELS="+models)
	dir := t.TempDir()
	file := sessions(t, dir, 1)[0]
	var plan struct {
		Projects []struct {
			Chunks   int
			Estimate struct{ Low, High struct{ Calls int } }
		}
	}
	if err := json.Unmarshal([]byte(s.must("--json", "-p", "shop", "learn", "-n", file)), &plan); err != nil {
		t.Fatal(err)
	}
	m.set("sulk") // every call is made twice
	s.must("-p", "shop", "learn", "--wait", file)
	m.mu.Lock()
	n := m.sections
	m.mu.Unlock()
	if e := plan.Projects[0].Estimate; n < e.Low.Calls || n > e.High.Calls {
		t.Errorf("%d calls; the estimate is %+v", n, e)
	}
}

// TestAnotherModel: a second model is compared without touching the memory, and then
// decides everything once more in streams that take over.
func TestAnotherModel(t *testing.T) {
	t.Parallel()
	m := newModelServer(t)
	s := start(t, t.TempDir(), "MNEME_MODELS="+m.modelsFile(t, ""))
	s.must("-p", "shop", "learn", "--wait", note(t, "n.md", "# Retries\n\nWe decided to stop retries after 5 attempts.\n\n# Cache\n\nWe decided to cap the cache at 10 MB.\n\n# Other\n\nNothing of note.\n"))
	s.must("wait")
	before := s.verify()

	out := s.must("-p", "shop", "regate", "--model", "second", "--shadow", "-q", "decisions")
	for _, want := range []string{"both open", "only second", "agreement", "0.667 [", "now open, second closed", "3 steps were asked now"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := s.must("-p", "shop", "regate", "--model", "second", "--shadow", "-q", "decisions"); !strings.Contains(out, "0 steps were asked now") {
		t.Errorf("%s", out)
	}
	if after := s.verify(); after.LogHash != before.LogHash || after.IndexHash != before.IndexHash {
		t.Error("the comparison changed the memory")
	}
	calls := m.count()
	if out := s.must("-p", "shop", "regate", "--model", "second", "--apply", "-q", "decisions"); !strings.Contains(out, "run it again with --yes") || !strings.Contains(out, "1 questions over 3 chunks") {
		t.Errorf("%s", out)
	}
	if n := m.count(); n != calls {
		t.Errorf("to show the cost took %d calls", n-calls)
	}
	if out := s.must("-p", "shop", "regate", "--model", "second", "--apply", "--yes", "-q", "decisions"); !strings.Contains(out, "second decides in decisions@") {
		t.Errorf("%s", out)
	}
	s.must("wait")
	if out := s.must("-p", "shop", "question", "show", "decisions"); !strings.Contains(out, ".2, caught up: true") {
		t.Errorf("%s", out)
	}
	if out := s.must("-p", "shop", "report", "-q", "decisions"); !strings.Contains(out, "by small, not serving") || !strings.Contains(out, "by second\n") {
		t.Errorf("%s", out)
	}
	for _, args := range [][]string{{"regate"}, {"regate", "--pending", "--shadow"}, {"regate", "--shadow"}, {"regate", "--pending", "--model", "x"}} {
		if out, code := s.mem(args...); code != 2 {
			t.Errorf("%v: exit %d: %s", args, code, out)
		}
	}
}

// TestWaitSaysWhy: who waits for a file is told why nothing is decided, and within the
// time given.
func TestWaitSaysWhy(t *testing.T) {
	t.Parallel()
	m := newModelServer(t)
	s := start(t, t.TempDir(), "MNEME_MODELS="+m.modelsFile(t, "budgets: {shop: {tokens: 300}}\n"))
	file := note(t, "n.md", "# Cache\n\nWe decided to cap the cache at 10 MB.\n")
	within := func(most time.Duration, want []string, args ...string) {
		t.Helper()
		begin := time.Now()
		out, code := s.mem(args...)
		if d := time.Since(begin); code != 1 || d > most {
			t.Errorf("%v: exit %d after %v", args, code, d)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%v: no %q in %s", args, w, out)
			}
		}
	}
	spent := []string{"paused until ", "of 300 tokens", "budgets.shop"}
	const soon = 10 * time.Second // a look of 2 s, and a machine that does much else
	within(soon, spent, "-p", "shop", "learn", "--wait", file)
	within(soon, spent, "-p", "shop", "learn", "--wait", file)
	within(soon, spent, "-p", "shop", "learn", "--query", "Which limits are there?", file)
	var l learn.Learned
	s.post("/memory/learn?wait=0s", `{"project": "shop", "text": "We decided to cap the queue at 7."}`, &l)
	if l.Status != "running" || !strings.Contains(l.Reason, "paused until ") || !strings.Contains(l.Hint, "budgets.shop") {
		t.Errorf("%+v", l)
	}

	m.set("sulk")
	if out := s.must("-p", "other", "learn", "--wait", file); !strings.Contains(out, "undecided") {
		t.Errorf("%s", out)
	}
	m.set("")
	s.must("-p", "other", "regate", "--pending")
	s.must("wait", "-p", "other")
	within(soon, spent, "wait", "-p", "shop")
	within(soon, spent, "wait")
}

// TestWaitOnADeadServer: the reason of a look that failed is told, when the time is over.
func TestWaitOnADeadServer(t *testing.T) {
	t.Parallel()
	m := newModelServer(t)
	s := start(t, t.TempDir(), "MNEME_MODELS="+m.modelsFile(t, ""))
	m.Close()
	begin := time.Now()
	out, code := s.mem("-p", "shop", "learn", "--wait", "--timeout", "3s", note(t, "n.md", "# Cache\n\nWe decided to cap the cache at 10 MB.\n"))
	if d := time.Since(begin); code != 1 || d > 10*time.Second || !strings.Contains(out, "still running after 3s: ") || !strings.Contains(out, "fake") {
		t.Errorf("exit %d after %v: %s", code, d, out)
	}
}
