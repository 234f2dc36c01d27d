package models_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/models"
)

const whole = `endpoints:
  - name: local
    url: http://127.0.0.1:11434/
    kind: ollama
  - name: router
    url: https://openrouter.ai/api/v1
    kind: openrouter
    key_env: ROUTER_KEY
  - name: gateway
    url: https://llm.example.org/v1
    in_flight: 8
gate:
  endpoint: local
  model: qwen2.5:3b-instruct
  window: 16384
rewrite: {endpoint: router, model: qwen/qwen-2.5-72b-instruct}
prices:
  qwen/qwen-2.5-72b-instruct: {prompt: 0.12, completion: 0.39}
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := models.Parse("models.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := models.Config{
		Endpoints: []models.Endpoint{
			{Name: "local", URL: "http://127.0.0.1:11434", Kind: models.Ollama, Auth: models.None, KeyEnv: "LLM_API_KEY", InFlight: 2},
			{Name: "router", URL: "https://openrouter.ai/api/v1", Kind: models.OpenRouter, Auth: models.Bearer, KeyEnv: "ROUTER_KEY", InFlight: 4},
			{Name: "gateway", URL: "https://llm.example.org/v1", Kind: models.Compatible, Auth: models.APIKey, KeyEnv: "LLM_API_KEY", InFlight: 8},
		},
		Gate:    &models.Use{Endpoint: "local", Model: "qwen2.5:3b-instruct", Window: 16384},
		Rewrite: &models.Use{Endpoint: "router", Model: "qwen/qwen-2.5-72b-instruct", Window: models.DefaultWindow},
		Prices:  map[string]models.Price{"qwen/qwen-2.5-72b-instruct": {Prompt: 0.12, Completion: 0.39}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := got.Cost("qwen/qwen-2.5-72b-instruct", 1_000_000, 2_000_000); c < 0.8999 || c > 0.9001 {
		t.Errorf("$%f", c)
	}
	if got.Cost("unknown", 5, 5) != 0 {
		t.Error("a model without a price costs something")
	}
}

// TestByURL: what a file leaves out of an endpoint follows from its URL.
func TestByURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]models.Endpoint{
		"http://models.localhost:11434": {Kind: models.Ollama, Auth: models.None, InFlight: 2},
		"https://OPENROUTER.ai/api/v1":  {Kind: models.OpenRouter, Auth: models.Bearer, InFlight: 4},
		"https://llm.example.org:11434": {Kind: models.Ollama, Auth: models.APIKey, InFlight: 4},
		"http://[::1]:8000/v1":          {Kind: models.Compatible, Auth: models.None, InFlight: 2},
	} {
		c, err := models.Parse("m.yaml", []byte("endpoints: [{name: e, url: '"+url+"'}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		want.Name, want.URL, want.KeyEnv = "e", url, models.DefaultKeyEnv
		if diff := cmp.Diff([]models.Endpoint{want}, c.Endpoints); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	replace := func(old, to string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("%q is not in the file", old)
		}
		return strings.Replace(whole, old, to, 1)
	}
	for name, tc := range map[string]struct{ file, want string }{
		"an unknown field":       {replace("key_env", "key"), `models.yaml:8: unknown field "key"`},
		"a key in the url":       {replace("https://openrouter.ai", "https://u:secret@openrouter.ai"), "models.yaml:5: endpoint \"router\": the url must not hold a user"},
		"a key in the query":     {replace("api/v1", "api/v1?key=secret"), "must not hold a user, a query"},
		"no url":                 {replace("    url: https://llm.example.org/v1\n", ""), `models.yaml:9: endpoint "gateway" has no url`},
		"another scheme":         {replace("https://llm", "ftp://llm"), "must be http:// or https://"},
		"a key over http":        {replace("https://llm", "http://llm"), "a key is not sent over http"},
		"link-local":             {replace("https://llm.example.org", "https://169.254.169.254"), "link-local"},
		"link-local in IPv6":     {replace("https://llm.example.org", "https://[::ffff:169.254.169.254]"), "link-local"},
		"another kind":           {replace("kind: ollama", "kind: olama"), `models.yaml:4: kind "olama" is not known`},
		"a name twice":           {replace("name: router", "name: local"), `models.yaml:5: endpoint "local" stands twice`},
		"no such endpoint":       {replace("  endpoint: local", "  endpoint: locall"), `models.yaml:13: gate: no endpoint "locall"`},
		"a small window":         {replace("16384", "512"), "models.yaml:15: window must be a number from 4096"},
		"a price that is none":   {replace("0.39", "cheap"), "completion must be dollars"},
		"a price below nothing":  {replace("0.39", "-1"), "completion must be dollars"},
		"no model":               {replace("  model: qwen2.5:3b-instruct\n", ""), "gate needs an endpoint and a model"},
		"a rewrite model alone":  {replace("gate:\n  endpoint: local\n  model: qwen2.5:3b-instruct\n  window: 16384\n", ""), "rewrite without gate"},
		"nothing":                {"", "the file is empty"},
		"a timeout that is none": {replace("in_flight: 8", "timeout: soon"), "models.yaml:11: timeout must be a duration"},
		"more side by side than the endpoint takes": {replace("gate:\n", "parallel: 9\ngate:\n"), "models.yaml:12: endpoint "},
		"a wording that is none":                    {replace("  window: 16384", "  prompt: t9"), `models.yaml:15: prompt version "t9" is not known`},
		"too many calls at once":                    {replace("in_flight: 8", "in_flight: 100000"), "in_flight must be a number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := models.Parse("models.yaml", []byte(tc.file), "t1", "t2")
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error holds the key: %v", err)
			}
		})
	}
}

func TestFromEnv(t *testing.T) {
	t.Parallel()
	env := func(kv ...string) func(string) string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return func(k string) string { return m[k] }
	}
	if c, err := models.FromEnv(env("LLM_API_BASE", "https://x.example")); err != nil || c.Gate != nil {
		t.Errorf("no gate model: %+v %v", c, err)
	}
	for _, tc := range []struct {
		base string
		key  string
		kind models.Kind
		auth models.Auth
		url  string
	}{
		{"", "", models.Ollama, models.None, "http://127.0.0.1:11434"},
		{"http://localhost:11434", "", models.Ollama, models.None, "http://localhost:11434"},
		{"http://127.0.0.1:25000", "", models.Ollama, models.None, "http://127.0.0.1:25000"},
		{"http://ollama:11434", "", models.Ollama, models.None, "http://ollama:11434"},
		{"https://vllm.example.org/v1", "", models.Compatible, models.None, "https://vllm.example.org/v1"},
		{"http://127.0.0.1:11434/v1/", "", models.Compatible, models.None, "http://127.0.0.1:11434/v1"},
		{"https://openrouter.ai/api/v1", "k", models.OpenRouter, models.Bearer, "https://openrouter.ai/api/v1"},
		{"https://api.openai.com/v1", "", models.OpenAI, models.Bearer, "https://api.openai.com/v1"},
		{"https://kong.example.org/v1", "k", models.Compatible, models.APIKey, "https://kong.example.org/v1"},
	} {
		c, err := models.FromEnv(env("MNEME_GATE_MODEL", "m", "MNEME_REWRITE_MODEL", "r", "LLM_API_BASE", tc.base, "LLM_API_KEY", tc.key))
		if err != nil {
			t.Fatal(err)
		}
		e := c.Endpoints[0]
		if e.Kind != tc.kind || e.Auth != tc.auth || e.URL != tc.url || c.Gate.Model != "m" || c.Rewrite.Model != "r" || c.Gate.Window != models.DefaultWindow {
			t.Errorf("%q: %+v %+v", tc.base, e, c.Gate)
		}
	}
	for _, bad := range [][]string{
		{"LLM_API_BASE", "not a url"}, {"LLM_API_BASE", "http://kong.example.org/v1", "LLM_API_KEY", "k"}, {"MNEME_GATE_WINDOW", "12k"},
	} {
		if _, err := models.FromEnv(env(append([]string{"MNEME_GATE_MODEL", "m"}, bad...)...)); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), bad[0]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
