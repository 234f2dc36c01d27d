package learn_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/serve"
)

const servers = `endpoints:
  - {name: local, url: 'http://127.0.0.1:11434'}
  - {name: router, url: 'https://openrouter.ai/api/v1'}
gate: {endpoint: local, model: small}
projects: {plain: {gate: none}}
`

func withServers(t *testing.T) *functest.World {
	t.Helper()
	c, err := models.Parse("models.yaml", []byte(servers))
	if err != nil {
		t.Fatal(err)
	}
	return functest.New(t, functest.Options{Picks: c})
}

// TestChoiceIsKept: what a request chose stands beside its question, resolved and
// without a key.
func TestChoiceIsKept(t *testing.T) {
	t.Parallel()
	w := withServers(t)
	for name, tc := range map[string]struct {
		fields map[string]any
		want   string // the object's models
		model  string // of the answer
	}{
		"none":         {nil, "", "extractive"},
		"one":          {map[string]any{"model": "m"}, `{"gate":{"endpoint":"local","url":"http://127.0.0.1:11434","model":"m"}}`, "m"},
		"the built-in": {map[string]any{"model": "extractive"}, `{}`, "extractive"},
		"two servers": {map[string]any{"gate_model": "g", "rewrite_model": "org/r:free", "rewrite_base_url": "https://openrouter.ai/api/v1/"},
			`{"gate":{"endpoint":"local","url":"http://127.0.0.1:11434","model":"g"},"rewrite":{"endpoint":"router","url":"https://openrouter.ai:443/api/v1","model":"org/r:free"}}`, "g"},
	} {
		req := map[string]any{"project": "shop", "text": note, "query": "How many retries?"}
		for k, v := range tc.fields {
			req[k] = v
		}
		var l learn.Learned
		w.Post("/memory/learn", req, http.StatusAccepted, &l)
		if l.Model != tc.model || l.Status != "running" {
			t.Errorf("%s: %+v", name, l)
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), "config/"+functest.Tenant+"/shop/adhoc/"+l.Questions[0].Stream+".json", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var kept struct {
			Models json.RawMessage `json:"models"`
		}
		if err := json.Unmarshal(b, &kept); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, string(kept.Models)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		s, err := w.Catalog.Stream(t.Context(), "shop", l.Questions[0].Stream)
		if err != nil {
			t.Fatal(err)
		}
		if want := memory.AdhocStreamBy("How many retries?", memory.SumString(note), s.Models.Key()); s.Name != want {
			t.Errorf("%s: stream %s, want %s", name, s.Name, want)
		}
	}
}

func TestChoiceRefused(t *testing.T) {
	t.Parallel()
	w := withServers(t)
	for name, tc := range map[string]struct {
		fields     map[string]any
		says, hint string
	}{
		"an unknown URL":            {map[string]any{"query": "q?", "model": "m", "gate_base_url": "https://evil.example/v1"}, "gate_base_url", "local (http://127.0.0.1:11434), router (https://openrouter.ai/api/v1)"},
		"without a query":           {map[string]any{"model": "m"}, "without a query", "send it with a query"},
		"built-in, where one gates": {map[string]any{"model": "extractive"}, "without a query", "standing questions keep"},
		"a secret for a name":       {map[string]any{"query": "q?", "model": "sk-ant-api03-" + strings.Repeat("aB3dE5gH", 12) + "AA"}, "holds a secret", "keys are the operator's"},
		"a URL alone":               {map[string]any{"query": "q?", "gate_base_url": "http://127.0.0.1:11434"}, "gate_base_url", "gate_model"},
	} {
		body := map[string]any{"project": "shop", "text": note}
		for k, v := range tc.fields {
			body[k] = v
		}
		rec := w.Call(http.MethodPost, "/memory/learn", body)
		var p serve.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
			t.Fatalf("%v: %s", err, rec.Body)
		}
		if rec.Code != http.StatusBadRequest || !strings.Contains(p.Where+" "+p.Message, tc.says) || !strings.Contains(p.Hint, tc.hint) || strings.Contains(rec.Body.String(), "sk-ant") {
			t.Errorf("%s: %d %+v", name, rec.Code, p)
		}
	}
	if got := inbox(t, w); len(got) != 0 {
		t.Errorf("refused requests stored %v", got)
	}
	// Where the built-in policy decides anyway, saying so changes nothing.
	var l learn.Learned
	w.Post("/memory/learn", map[string]any{"project": "plain", "text": note, "model": "extractive"}, http.StatusAccepted, &l)
	if l.Model != "extractive" || len(l.Questions) != 9 {
		t.Errorf("%+v", l)
	}
	for _, name := range []string{"qwen2.5:3b-instruct-q4_K_M", "hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:IQ4_XS", "ft:gpt-4o-mini-2024-07-18:acme::7p4lURel", "qwen/qwen-2.5-72b-instruct:free", "gpt-oss:120b-cloud", "@cf/meta/llama-3.1-8b-instruct"} {
		w.Post("/memory/learn", map[string]any{"project": "shop", "text": note, "query": "q?", "model": name}, http.StatusAccepted, &l)
		if l.Model != name {
			t.Errorf("%q: %+v", name, l)
		}
	}
}
