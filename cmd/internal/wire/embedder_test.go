package wire_test

import (
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
)

// mind knows what the statements of these tests, and those of the preflight, are
// about; of one word it makes no number.
func mind(text string) []float64 {
	v := about(text)
	if strings.Contains(text, "keep the zorbulator") {
		v[0] = math.NaN()
	}
	return v
}

var about = llmtest.Meaning(16, []string{"retr", "repeat"}, []string{"price", "cache"}, []string{"driver", "pgx"}, []string{"log"}, []string{"release", "ships"}, []string{"integration"})

const mindDims = "22"

// likeness is a cross-encoder that knows the same.
func likeness(question, document string) float64 {
	dot := 0.0
	a, b := about(question), about(document)
	for i := range a {
		dot += a[i] * b[i]
	}
	return 10*dot - 5
}

// served is a `mem up` whose model server is s.
func served(t *testing.T, dir string, s *llmtest.Server) (*up, *calls) {
	t.Helper()
	env := map[string]string{"LLM_API_BASE": s.URL + "/v1", "MNEME_EMBED_MODEL": llmtest.Model, "MNEME_EMBED_DIMS": mindDims, "MNEME_RERANK_MODEL": llmtest.Model}
	getenv := func(k string) string { return env[k] }
	cfg, err := wire.ModelsFromEnv(getenv)
	if err != nil {
		t.Fatal(err)
	}
	u := startWith(t, wire.UpConfig{Dir: dir, Models: cfg, Getenv: getenv, Logger: slog.New(slog.DiscardHandler)})
	return u, &calls{u}
}

// calls are requests with the token.
type calls struct{ up *up }

func (c *calls) do(t *testing.T, method, path, body string, into any) {
	t.Helper()
	status, out := c.up.request(t, method, path, body, "Authorization", "Bearer "+c.up.creds.Token.Reveal(), "Content-Type", "application/json")
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, status, out)
	}
	if i := strings.LastIndex(strings.TrimSpace(out), "\n"); i >= 0 { // progress, then the result
		out = out[i+1:]
	}
	if into != nil {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, out)
		}
	}
}

func (c *calls) ask(t *testing.T, question string) query.Answer {
	t.Helper()
	var a query.Answer
	c.do(t, http.MethodGet, "/memory/query?project=shop&level=L0&query="+url.QueryEscape(question), "", &a)
	return a
}

func (c *calls) wait(t *testing.T) {
	t.Helper()
	var w struct {
		Done    bool
		Pending any
	}
	if c.do(t, http.MethodGet, "/memory/wait?timeout=60s", "", &w); !w.Done {
		t.Fatalf("pending %v", w.Pending)
	}
}

// TestServerEmbedsAndReranks is the whole program over a server that embeds and
// reranks: it starts without it, answers by its vectors, lives with a text that
// has none, rebuilds without it, and goes on by words when it is gone.
func TestServerEmbedsAndReranks(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(llmtest.On(map[string]llmtest.Play{"/v1/embeddings": llmtest.Vectors(mind), "/v1/rerank": llmtest.Scores(likeness)}))
	dir := filepath.Join(t.TempDir(), "d")
	u, c := served(t, dir, s)
	if n := len(s.All()); n != 0 {
		t.Errorf("the start makes %d requests", n)
	}
	c.do(t, http.MethodPost, "/memory/learn", `{"project":"shop","text":"# Retries\n\nWe decided to cap retries at 5 attempts, because the upstream bans us.\n\n# Cache\n\nFrom now on the cache TTL is 10 minutes, never longer, since stale prices cost us an incident.\n\n# Turns\n\nWe decided to keep the zorbulator at 7 turns, because more would break it.\n"}`, nil)
	c.wait(t)

	a := c.ask(t, "how often may a failed call be repeated?") // no word of it stands in the answer
	if len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "cap retries") || a.Results[0].Components.Cosine < 0.5 || len(a.Degraded) != 0 {
		t.Fatalf("by meaning: %+v", a)
	}
	if a := c.ask(t, "how long does the cache keep a price, and how often is a call repeated?"); len(a.Results) < 2 || a.Results[0].Components.Rerank == nil || *a.Results[0].Components.Rerank < *a.Results[1].Components.Rerank {
		t.Errorf("reranked: %+v", a.Results)
	}
	if a := c.ask(t, "zorble quux fnordwick blathering"); len(a.Results) != 0 {
		t.Errorf("nonsense: %+v", a.Results)
	}
	if a := c.ask(t, "how many turns for the zorbulator?"); len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "zorbulator") {
		t.Errorf("the text without a vector, by its words: %+v", a)
	}
	var st struct {
		Without int `json:"without_vector"`
	}
	if c.do(t, http.MethodGet, "/memory/status", "", &st); st.Without == 0 {
		t.Error("nobody is told of the text without a vector")
	}

	var found gate.ModelsFound
	c.do(t, http.MethodGet, "/memory/models", "", &found)
	var uses []string
	for _, m := range found.Models {
		uses = append(uses, m.Use)
		for _, f := range m.Findings {
			if !f.OK {
				t.Errorf("the doctor: %s %+v", m.Use, f)
			}
		}
	}
	if d := cmp.Diff([]string{"embed", "rerank"}, uses); d != "" || found.Error != "" || !strings.HasPrefix(found.Policy, "extractive/") {
		t.Errorf("%s %+v", d, found)
	}

	// Who imports sees where texts go, though no model decides.
	var e gate.Estimate
	c.do(t, http.MethodPost, "/memory/estimate", `{"project":"shop","chunks":[100]}`, &e)
	if d := cmp.Diff([]gate.Destination{
		{Use: "embed", Endpoint: "env", URL: s.URL + "/v1", Model: llmtest.Model}, {Use: "rerank", Endpoint: "env", URL: s.URL + "/v1", Model: llmtest.Model},
	}, e.Sends); d != "" || e.Estimate.High.USD != 0 {
		t.Errorf("the estimate (-want +got):\n%s%+v", d, e)
	}

	// Rebuild and verification ask nothing, and a repeated question has its vector.
	before, embedded := len(s.All()), embeddings(s)
	var rebuilt struct {
		ModelCalls int64 `json:"model_calls"`
	}
	c.do(t, http.MethodPost, "/memory/rebuild", "{}", &rebuilt)
	var verified struct {
		OK       bool
		Problems []string
		Counts   map[string]int
	}
	c.do(t, http.MethodGet, "/memory/verify", "", &verified)
	if !verified.OK || verified.Counts["without_vector"] == 0 || rebuilt.ModelCalls != 0 {
		t.Errorf("%+v %+v", rebuilt, verified)
	}
	if n := len(s.All()); n != before {
		t.Errorf("%d requests of a rebuild", n-before)
	}
	again := c.ask(t, "how often may a failed call be repeated?")
	again.TookMS, a.TookMS = 0, 0
	if d := cmp.Diff(a, again); d != "" {
		t.Errorf("after the rebuild (-before +after):\n%s", d)
	}
	if n := embeddings(s); n != embedded {
		t.Errorf("%d embedding requests for a question that was asked before", n-embedded)
	}

	// Gone: words alone, and soon after the first time no more waiting.
	s.CloseClientConnections()
	s.Close()
	a = c.ask(t, "what is the cache TTL in minutes?")
	if d := cmp.Diff([]string{"semantic"}, slices.DeleteFunc(without(a), func(s string) bool { return s == "rerank" })); d != "" || len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "TTL is 10 minutes") {
		t.Errorf("without the server: %+v", a)
	}
	began := time.Now()
	if a := c.ask(t, "is the cache TTL 10 minutes?"); len(a.Results) == 0 || !slices.Contains(without(a), "semantic") {
		t.Errorf("and again: %+v", a)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("a question that follows waits %v", took)
	}
	if err := u.stop(); err != nil {
		t.Fatal(err)
	}
	// And it starts without the server: the space follows from the configuration.
	_, c = served(t, dir, s)
	if a := c.ask(t, "which price does the cache keep, for 10 minutes?"); len(a.Results) == 0 || !slices.Contains(without(a), "semantic") {
		t.Errorf("after a start without the server: %+v", a)
	}
}

// embeddings counts the requests for vectors.
func embeddings(s *llmtest.Server) int {
	n := 0
	for _, c := range s.All() {
		if c.Path == "/v1/embeddings" {
			n++
		}
	}
	return n
}

// TestServerComesLate: what is learned while the server is down is embedded when
// it is back.
func TestServerComesLate(t *testing.T) {
	s := llmtest.New(t)
	// 402 is not tried again by the client.
	s.Answer(llmtest.On(map[string]llmtest.Play{"/v1/embeddings": llmtest.Body(http.StatusPaymentRequired, `{"error":{"message":"no credit","type":"x"}}`)}))
	_, c := served(t, filepath.Join(t.TempDir(), "d"), s)
	c.do(t, http.MethodPost, "/memory/learn", `{"project":"shop","text":"# Retries\n\nWe decided to cap retries at 5 attempts, because the upstream bans us.\n"}`, nil)
	var w struct {
		Done    bool
		Pending wire.Pending
	}
	if c.do(t, http.MethodGet, "/memory/wait?timeout=1s", "", &w); w.Done || w.Pending.Vectors == 0 || w.Pending.Streams != 0 {
		t.Errorf("%+v", w)
	}
	s.Answer(llmtest.On(map[string]llmtest.Play{"/v1/embeddings": llmtest.Vectors(mind), "/v1/rerank": llmtest.Scores(likeness)}))
	c.do(t, http.MethodPost, "/memory/sweep", "", nil)
	c.wait(t)
	if a := c.ask(t, "how often may a failed call be repeated?"); len(a.Results) == 0 || a.Results[0].Components.Cosine < 0.5 {
		t.Errorf("%+v", a)
	}
}

// TestFunctionsNeedTheirOwnKeys: a function calls, and has the keys of, what it
// needs; the space alone needs none.
func TestFunctionsNeedTheirOwnKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(file, []byte(`endpoints:
  - {name: g, url: "https://g.example.org/v1", key_env: G}
  - {name: e, url: "https://e.example.org/v1", key_env: E}
  - {name: r, url: "https://r.example.org/v1", key_env: R}
gate: {endpoint: g, model: m}
embed: {endpoint: e, model: m, dims: 3}
rerank: {endpoint: r, model: m}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for function, want := range map[string]string{"learn": "", "gate": "EGR", "embed": "E", "project": "", "query": "ER"} {
		for _, missing := range []string{"", "G", "E", "R"} {
			vars := map[string]string{
				"MNEME_S3_ENDPOINT": "http://127.0.0.1:9", "MNEME_S3_ACCESS_KEY": "a", "MNEME_S3_SECRET_KEY": "b", "MNEME_TENANT_KEY": "sixteen bytes or more",
				"MNEME_INDEX_DIR": t.TempDir(), "MNEME_MODELS": file, "G": "k", "E": "k", "R": "k",
			}
			delete(vars, missing)
			cfg, err := wire.FnFromEnv(function, func(k string) string { return vars[k] })
			if err != nil {
				t.Fatal(err)
			}
			err = wire.Built(t.Context(), cfg)
			if refused := missing != "" && strings.Contains(want, missing); (err != nil) != refused || refused && !strings.Contains(fault.HintOf(err), "set "+missing) {
				t.Errorf("%s without %s: %v", function, missing, err)
			}
		}
	}
}

// TestOllamaEmbeds is the whole program with vectors of a real Ollama. The model
// is none for embedding: what is tested is the wire, and that the doctor says so.
func TestOllamaEmbeds(t *testing.T) {
	base := os.Getenv("MNEME_TEST_OLLAMA")
	if base == "" {
		const msg = "MNEME_TEST_OLLAMA is not set: embedding is tested over made-up servers alone"
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "ollama") {
			t.Fatal(msg)
		}
		t.Skip(msg)
	}
	vars := map[string]string{"LLM_API_BASE": base, "MNEME_EMBED_MODEL": "smollm2-135m", "MNEME_EMBED_DIMS": "576"}
	getenv := func(k string) string { return vars[k] }
	cfg, err := wire.ModelsFromEnv(getenv)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Embed.Window = 64 // so that passages are read in pieces
	u := startWith(t, wire.UpConfig{Dir: filepath.Join(t.TempDir(), "d"), Models: cfg, Getenv: getenv})
	c := &calls{u}
	var found gate.ModelsFound
	c.do(t, http.MethodGet, "/memory/models", "", &found)
	if len(found.Models) != 1 || found.Models[0].Use != "embed" {
		t.Fatalf("%+v", found)
	}
	well := map[string]bool{}
	for _, f := range found.Models[0].Findings {
		t.Logf("%-6s %t %s (%s)", f.Check, f.OK, f.Found, f.Cure)
		well[f.Check] = f.OK
	}
	for _, check := range []string{"reach", "model", "dims", "norm", "texts", "window"} {
		if !well[check] {
			t.Errorf("%s is not well", check)
		}
	}
	if ok, said := well["floor"]; ok || !said {
		t.Error("a model that does not tell nonsense from a question is not noticed")
	}
	c.do(t, http.MethodPost, "/memory/learn", `{"project":"shop","text":"# Retries\n\nWe decided to cap retries at 5 attempts in services/checkout/internal/basket/retry.go, services/mailer/internal/queue/retry.go, services/search/internal/index/retry.go and services/ledger/internal/books/retry.go, because the upstream bans us.\n"}`, nil)
	c.wait(t)
	a := c.ask(t, "at how many attempts did we cap retries?")
	if len(a.Results) == 0 || a.Results[0].Components.Cosine <= 0 || len(a.Degraded) != 0 {
		t.Errorf("%+v", a)
	}
	var st struct {
		Without int `json:"without_vector"`
	}
	if c.do(t, http.MethodGet, "/memory/status", "", &st); st.Without != 0 {
		t.Errorf("%d passages without a vector", st.Without)
	}
}

// TestSpaceChanges: another embedding model fills its own space from the log, and
// the old one is as it was when it comes back. Neither start decides anew.
func TestSpaceChanges(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(llmtest.On(map[string]llmtest.Play{"/v1/embeddings": llmtest.Vectors(about), "/v1/rerank": llmtest.Scores(likeness)}))
	dir := filepath.Join(t.TempDir(), "d")
	const question = "how often may a failed call be repeated?"
	var gates []int
	look := func(u *up) (hash string) {
		t.Helper()
		c := &calls{u}
		c.do(t, http.MethodPost, "/memory/sweep", "", nil)
		c.wait(t)
		var v struct {
			OK        bool
			Problems  []string
			IndexHash string `json:"index_hash"`
			Counts    map[string]int
		}
		if c.do(t, http.MethodGet, "/memory/verify", "", &v); !v.OK {
			t.Errorf("%v", v.Problems)
		}
		gates = append(gates, v.Counts["gates"])
		return v.IndexHash
	}
	u := start(t, dir)
	(&calls{u}).do(t, http.MethodPost, "/memory/learn", `{"project":"shop","text":"# Retries\n\nWe decided to cap retries at 5 attempts, because the upstream bans us.\n"}`, nil)
	static := look(u)
	if err := u.stop(); err != nil {
		t.Fatal(err)
	}
	u, c := served(t, dir, s)
	if h := look(u); h != static {
		t.Errorf("the index hash is %s, and was %s: vectors are in it", h, static)
	}
	if a := c.ask(t, question); len(a.Results) == 0 || a.Results[0].Components.Cosine < 0.5 || a.Results[0].Components.SemanticWeight != 0.6 {
		t.Errorf("in the new space: %+v", a)
	}
	asked := len(s.All())
	if err := u.stop(); err != nil {
		t.Fatal(err)
	}
	u = start(t, dir)
	if h := look(u); h != static {
		t.Errorf("back: %s, was %s", h, static)
	}
	if a := (&calls{u}).ask(t, "at how many attempts did we cap retries?"); len(a.Results) == 0 || a.Results[0].Components.SemanticWeight != 0.4 || a.Results[0].Components.Cosine == 0 {
		t.Errorf("in the old space: %+v", a)
	}
	if n := len(s.All()); n != asked {
		t.Errorf("%d requests to a server that is no longer configured", n-asked)
	}
	if d := cmp.Diff([]int{gates[0], gates[0], gates[0]}, gates); d != "" || gates[0] == 0 {
		t.Errorf("decisions: %v", gates)
	}
}

// without names the legs that an answer had to do without.
func without(a query.Answer) (out []string) {
	for _, d := range a.Degraded {
		out = append(out, d.Leg)
	}
	return out
}
