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
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
)

// judging is a model server of the OpenAI form whose models open the gate where
// a section holds a fact, and whose memory is the facts. It keeps what came.
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
	v := gru.Verdict{Think: "t", Update: aFact.MatchString(section)}
	if v.Update {
		v.Memory = strings.Join(aFact.FindAllString(a.user, -1), " ") // old and new
	}
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
		g := slices.DeleteFunc(s.gates(t, project), func(g memory.Gate) bool { return g.Level == memory.L2 })
		if len(g) == 0 || g[0].Policy != policy {
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
	if asked != 6 { // a short text, words, code, figures and two other scripts
		t.Errorf("the preflight asked %d times, want 6: one look for two projects", asked)
	}
	if len(runs) == 0 {
		t.Error("the model was never asked")
	}
	// The look at the one that is down has pauses of up to 5 s in all, and may be
	// under way: then the doctor says so.
	var found gate.ModelsFound
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		found = gate.ModelsFound{}
		if s.api(t, http.MethodGet, "/memory/models", nil, &found); found.Error == "" || time.Now().After(end) {
			break
		}
	}
	ok := map[string]bool{}
	for _, m := range found.Models {
		ok[m.Server] = m.OK
	}
	if len(found.Models) != 2 || !ok["good/small"] || ok["down/small"] || found.Error != "" {
		t.Errorf("the doctor says %+v", found)
	}
}

// TestSilentServer: a server that lists its model and then says nothing holds up its
// own project alone, also while it is being looked at.
func TestSilentServer(t *testing.T) {
	good := newJudging(t, "small")
	came, let := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(came) })
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"small","object":"model","max_model_len":16384}]}`)
			return
		}
		once()
		<-let
	}))
	t.Cleanup(silent.Close)
	s := withModels(t, fmt.Sprintf(`endpoints:
  - {name: good, url: '%s/v1'}
  - {name: silent, url: '%s/v1'}
gate: {endpoint: silent, model: small}
projects: {one: {gate: {endpoint: good, model: small}}}
`, good.URL, silent.URL), nil)
	if status, body := s.request(t, http.MethodPut, "/memory/files/mute/a.md?sha256="+string(memory.SumString(twoFacts)), twoFacts,
		"Authorization", "Bearer "+s.creds.Token.Reveal(), "Content-Type", "application/octet-stream"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	<-came
	defer close(let) // before the server stops: it would wait for the look
	var l learn.Learned
	if status := s.api(t, http.MethodPost, "/memory/learn", map[string]any{"project": "one", "text": twoFacts}, &l); status != http.StatusOK || l.Status != "completed" || l.Model != "small" {
		t.Errorf("%d %+v", status, l)
	}
}

// TestTwoServersInOneRequest: the gate is on one server and the rewrite model on
// another, each with its own key in its own way (brief D5).
func TestTwoServersInOneRequest(t *testing.T) {
	small, large := newJudging(t, "small"), newJudging(t, "large")
	s := withModels(t, fmt.Sprintf(`endpoints:
  - {name: one, url: '%s/v1', auth: bearer, key_env: KEY_ONE}
  - {name: two, url: '%s/v1', auth: apikey, key_env: KEY_TWO}
`, small.URL, large.URL), map[string]string{"KEY_ONE": "key-of-one", "KEY_TWO": "key-of-two"})
	req := map[string]any{"project": "shop", "text": twoFacts, "query": "Which limits are there?", "gate_model": "small", "gate_base_url": small.URL + "/v1/",
		"rewrite_model": "large", "rewrite_base_url": large.URL + "/v1"}
	var l learn.Learned
	if status := s.api(t, http.MethodPost, "/memory/learn", req, &l); status != http.StatusOK || l.Status != "completed" || l.Model != "small" || l.ChunksSeen != 3 || l.ChunksUsed != 2 || len(aFact.FindAllString(l.Memory, -1)) != 2 {
		t.Fatalf("%d %+v", status, l)
	}
	for _, of := range []struct {
		name       string
		s          *judging
		auth, key  string
		runs       int
		own, other string
	}{{"the gate's", small, "Bearer key-of-one", "", 3, "key-of-one", "key-of-two"}, {"the rewrite model's", large, "", "key-of-two", 2, "key-of-two", "key-of-one"}} {
		probes, runs := of.s.calls()
		if len(runs) != of.runs || len(probes) == 0 {
			t.Errorf("%s server: %d calls of the preflight, %d of the run, want %d", of.name, len(probes), len(runs), of.runs)
		}
		for _, a := range append(probes, runs...) {
			if a.header.Get("Authorization") != of.auth || a.header.Get("apikey") != of.key {
				t.Errorf("%s server got Authorization %q and apikey %q", of.name, a.header.Get("Authorization"), a.header.Get("apikey"))
			}
			if strings.Contains(fmt.Sprint(a), of.other) {
				t.Errorf("%s server got the key of the other", of.name)
			}
		}
	}
	_, runs := large.calls()
	for _, a := range runs {
		if _, section, _ := strings.Cut(a.user, "<section>"); !aFact.MatchString(section) || strings.Contains(section, "soup") {
			t.Errorf("a chunk whose gate is closed reached the rewrite model: %s", section)
		}
	}
	// The choice is on record, with no key, and decides that stream alone.
	stream := l.Questions[0].Stream
	_, run := s.request(t, http.MethodGet, "/memory/log?project=shop&type=run&stream="+stream, "", "Authorization", "Bearer "+s.creds.Token.Reveal())
	if !strings.Contains(run, `"model":"small","rewrite_model":"large"`) || !strings.Contains(run, `"policy":"model/split"`) || strings.Contains(run, "key-of") {
		t.Errorf("the run's record: %s", run)
	}
	for _, g := range s.gates(t, "shop") {
		if (g.QueryID == stream) != (g.Model == "small") {
			t.Errorf("stream %s was decided by %q", g.QueryID, g.Model)
		}
	}
	// The same request again, and its event again: no call of either.
	before := fmt.Sprint(count(small), count(large))
	var again learn.Learned
	if status := s.api(t, http.MethodPost, "/memory/learn", req, &again); status != http.StatusOK || again.ChunksUsed != 0 || again.Memory != l.Memory || again.Model != "small" || again.Stored {
		t.Errorf("again: %d %+v", status, again)
	}
	redelivered, err := json.Marshal(event.New(event.RunRequested, "learn", event.Stream{Tenant: memory.LocalTenant, Project: "shop", Stream: stream}))
	if err != nil {
		t.Fatal(err)
	}
	if status, out := s.request(t, http.MethodPost, "/events", string(redelivered), "Authorization", "Bearer "+s.creds.Token.Reveal(), "Content-Type", "application/cloudevents+json"); status != http.StatusAccepted {
		t.Errorf("the event again: %d %s", status, out)
	}
	var done struct{ Done bool }
	s.api(t, http.MethodGet, "/memory/wait?timeout=20s", nil, &done)
	if after := fmt.Sprint(count(small), count(large)); after != before || !done.Done {
		t.Errorf("calls %s became %s", before, after)
	}
	// The other way round is another choice, and another stream.
	req["rewrite_model"], req["rewrite_base_url"] = nil, nil
	if status := s.api(t, http.MethodPost, "/memory/learn", req, &again); status != http.StatusOK || again.Questions[0].Stream == stream || again.ChunksUsed != 2 {
		t.Errorf("the gate's model alone: %d %+v", status, again)
	}
	req["gate_model"], req["gate_base_url"], req["model"] = nil, nil, "extractive"
	var plain learn.Learned
	if status := s.api(t, http.MethodPost, "/memory/learn", req, &plain); status != http.StatusOK || plain.Model != "extractive" || plain.Questions[0].Stream == again.Questions[0].Stream {
		t.Errorf("the built-in policy: %d %+v", status, plain)
	}
}

// count is how often a server was called.
func count(s *judging) int {
	probes, runs := s.calls()
	return len(probes) + len(runs)
}

// TestModelsOfARequestRefused: what cannot decide answers the request, with the
// cure, and no other server is called in its place.
func TestModelsOfARequestRefused(t *testing.T) {
	good, free := newJudging(t, "small"), newJudging(t, "small")
	away := httptest.NewServer(http.RedirectHandler(good.URL+"/v1/models", http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	s := withModels(t, fmt.Sprintf(`endpoints:
  - {name: good, url: '%s/v1'}
  - {name: away, url: '%s/v1', auth: bearer, key_env: KEY}
  - {name: keyless, url: 'https://llm.example.org/v1', key_env: NOT_SET}
`, good.URL, away.URL), map[string]string{"KEY": "key-of-away"})
	ask := func(more map[string]any) (int, learn.Learned, string) {
		t.Helper()
		req := map[string]any{"project": "shop", "text": twoFacts, "query": "Which limits are there?"}
		for k, v := range more {
			req[k] = v
		}
		b, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		status, out := s.request(t, http.MethodPost, "/memory/learn", string(b), "Authorization", "Bearer "+s.creds.Token.Reveal(), "Content-Type", "application/json")
		var l learn.Learned
		_ = json.Unmarshal([]byte(out), &l) // an error has other fields
		return status, l, out
	}
	for name, url := range map[string]string{
		"another server": "https://evil.example/v1", "one of this machine": free.URL + "/v1", "link-local": "http://169.254.169.254/v1", "a mapped one": "http://[::ffff:169.254.169.254]/v1",
	} {
		status, _, out := ask(map[string]any{"model": "small", "gate_base_url": url})
		if status != http.StatusBadRequest || !strings.Contains(out, "good ("+good.URL+"/v1)") || strings.Contains(out, "key-of") {
			t.Errorf("%s: %d %s", name, status, out)
		}
	}
	status, _, out := ask(map[string]any{"model": "small", "gate_base_url": good.URL + "/v1", "query": ""})
	if status != http.StatusBadRequest || !strings.Contains(out, "query") {
		t.Errorf("without a query: %d %s", status, out)
	}
	if n := count(good) + count(free); n != 0 {
		t.Errorf("refused requests made %d calls", n)
	}
	var projects struct{ Projects []any }
	s.api(t, http.MethodGet, "/memory/projects", nil, &projects)
	if len(projects.Projects) != 0 {
		t.Errorf("refused requests left %v", projects.Projects)
	}

	for name, tc := range map[string]struct {
		url, model   string
		budget       int
		reason, hint string
	}{
		"no such model":  {good.URL + "/v1", "large", 0, "large is not there", "name one that the endpoint lists"},
		"a small window": {good.URL + "/v1", "small", 16384, "and the window has 12288", "a smaller memory budget"},
		"a redirect":     {away.URL + "/v1", "small", 0, "points somewhere else", "redirects are not followed"},
		"no key":         {"https://llm.example.org/v1", "small", 0, "NOT_SET is empty", "set NOT_SET"},
	} {
		status, l, out := ask(map[string]any{"model": tc.model, "gate_base_url": tc.url, "memory_budget": tc.budget})
		if status != http.StatusOK || l.Status != "refused" || !strings.Contains(l.Reason, tc.reason) || !strings.Contains(l.Hint, tc.hint) || l.ChunksUsed != 0 || strings.Contains(out, "key-of") {
			t.Errorf("%s: %d %s", name, status, out)
		}
		var job learn.Learned
		s.api(t, http.MethodGet, l.StatusURL, nil, &job)
		if job.Status != "refused" || job.Reason != l.Reason || job.Hint != l.Hint {
			t.Errorf("%s: the job says %+v", name, job)
		}
	}
	if _, runs := good.calls(); len(runs) != 0 {
		t.Errorf("%d calls of a run that was refused", len(runs))
	}
	for _, a := range good.came {
		if a.header.Get("Authorization") != "" || a.header.Get("apikey") != "" {
			t.Error("a key followed the redirect")
		}
	}
	// They are nobody's work any more, and no dead letter.
	var done struct{ Done bool }
	s.api(t, http.MethodGet, "/memory/wait?timeout=20s", nil, &done)
	var dead struct{ Dead []any }
	s.api(t, http.MethodGet, "/memory/dead", nil, &dead)
	if !done.Done || len(dead.Dead) != 0 {
		t.Errorf("done %v, dead letters %v", done.Done, dead.Dead)
	}
	// The cure, and the request again.
	good.mu.Lock()
	good.names = append(good.names, "large")
	good.mu.Unlock()
	if status, l, out := ask(map[string]any{"model": "large", "gate_base_url": good.URL + "/v1"}); status != http.StatusOK || l.Status != "completed" || l.ChunksUsed != 2 || l.Model != "large" || l.Reason != "" {
		t.Errorf("after the cure: %d %s", status, out)
	}
}

// TestAllowURLs: with MNEME_ALLOW_URLS a URL of this machine may be named; it is
// sent no key.
func TestAllowURLs(t *testing.T) {
	free := newJudging(t, "small")
	env := map[string]string{"MNEME_ALLOW_URLS": "1", "LLM_API_KEY": "key-of-nobody"}
	getenv := func(k string) string { return env[k] }
	cfg, err := wire.ModelsFromEnv(getenv)
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(t, wire.UpConfig{Dir: filepath.Join(t.TempDir(), "d"), Models: cfg, Getenv: getenv})
	req := map[string]any{"project": "shop", "text": twoFacts, "query": "Which limits are there?", "model": "small", "gate_base_url": free.URL + "/v1"}
	var l learn.Learned
	if status := s.api(t, http.MethodPost, "/memory/learn", req, &l); status != http.StatusOK || l.Status != "completed" || l.ChunksUsed != 2 {
		t.Errorf("%d %+v", status, l)
	}
	probes, runs := free.calls()
	for _, a := range append(probes, runs...) {
		if strings.Contains(fmt.Sprint(a), "key-of-nobody") {
			t.Errorf("a URL that is not configured got a key: %v", a.header)
		}
	}
	if len(runs) == 0 {
		t.Error("it was not called")
	}
	req["gate_base_url"] = "http://10.0.0.7:9/v1"
	var p struct{ Code, Hint string }
	if status := s.api(t, http.MethodPost, "/memory/learn", req, &p); status != http.StatusBadRequest || !strings.Contains(p.Hint, "any of this machine") {
		t.Errorf("another machine: %d %+v", status, p)
	}
	env["MNEME_ALLOW_URLS"] = "yes"
	if _, err := wire.ModelsFromEnv(getenv); err == nil || !strings.Contains(err.Error(), "MNEME_ALLOW_URLS") {
		t.Errorf("another value: %v", err)
	}
}

// TestFnReadsModels: on a cluster gate calls the models, and learn knows which a
// request may name.
func TestFnReadsModels(t *testing.T) {
	t.Parallel()
	env := map[string]string{"MNEME_GATE_MODEL": "small", "MNEME_S3_ENDPOINT": "http://127.0.0.1:9000", "MNEME_S3_ACCESS_KEY": "a", "MNEME_S3_SECRET_KEY": "b", "MNEME_TENANT_KEY": "a tenant key, sixteen bytes"}
	for name, want := range map[string]bool{"learn": true, "gate": true, "embed": false} {
		c, err := wire.FnFromEnv(name, func(k string) string { return env[k] })
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Models.Gate != nil; got != want {
			t.Errorf("%s reads the models that decide: %v", name, got)
		}
	}
}
