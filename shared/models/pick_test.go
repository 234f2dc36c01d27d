package models_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/models"
)

func TestPick(t *testing.T) {
	t.Parallel()
	const (
		local   = "http://127.0.0.1:11434"
		router  = "https://openrouter.ai:443/api/v1"
		gateway = "https://llm.example.org:443/v1"
	)
	at := func(endpoint, url, model string) *models.Server {
		return &models.Server{Endpoint: endpoint, URL: url, Model: model}
	}
	one := func(s *models.Server) *models.Pick { return &models.Pick{Gate: s} }
	lora := &models.Server{Endpoint: "gateway", URL: gateway, Model: "g", Adapter: "lora-1"}
	for name, tc := range map[string]struct {
		project string
		r       models.Request
		want    *models.Pick
	}{
		"nothing":                      {"shop", models.Request{}, nil},
		"one for all":                  {"shop", models.Request{Model: "m"}, one(at("local", local, "m"))},
		"one for all, elsewhere":       {"shop", models.Request{Model: "m", GateBaseURL: "https://LLM.example.org/v1/"}, one(at("gateway", gateway, "m"))},
		"a gate model writes too":      {"shop", models.Request{GateModel: "m"}, one(at("local", local, "m"))},
		"the project's own endpoint":   {"both", models.Request{Model: "m"}, one(at("gateway", gateway, "m"))},
		"a model with an adapter":      {"both", models.Request{Model: "g"}, one(lora)},
		"the same name elsewhere":      {"both", models.Request{Model: "g", GateBaseURL: local}, one(at("local", local, "g"))},
		"two, at the project's own":    {"shop", models.Request{GateModel: "a", RewriteModel: "b"}, &models.Pick{Gate: at("local", local, "a"), Rewrite: at("router", router, "b")}},
		"two, where one has no server": {"notes", models.Request{GateModel: "a", RewriteModel: "b"}, &models.Pick{Gate: at("local", local, "a"), Rewrite: at("local", local, "b")}},
		"two servers": {"shop", models.Request{GateModel: "a", GateBaseURL: "https://openrouter.ai/api/v1", RewriteModel: "b", RewriteBaseURL: "https://llm.example.org:443/v1"},
			&models.Pick{Gate: at("router", router, "a"), Rewrite: at("gateway", gateway, "b")}},
		"a rewrite model beside the project's gate": {"both", models.Request{RewriteModel: "b"}, &models.Pick{Gate: lora, Rewrite: at("local", local, "b")}},
		"beside a gate that the request names":      {"private", models.Request{GateModel: "a", GateBaseURL: local, RewriteModel: "b"}, &models.Pick{Gate: at("local", local, "a"), Rewrite: at("local", local, "b")}},
		"the built-in policy":                       {"shop", models.Request{Model: "extractive"}, &models.Pick{}},
		"the built-in policy, twice":                {"shop", models.Request{GateModel: "extractive", RewriteModel: "extractive"}, &models.Pick{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parsed(t, perProject)
			got, err := c.Pick(tc.project, tc.r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPickRefused(t *testing.T) {
	t.Parallel()
	list := "local (http://127.0.0.1:11434), router (https://openrouter.ai/api/v1), gateway (https://llm.example.org/v1)"
	for name, tc := range map[string]struct {
		project          string
		r                models.Request
		field, says, how string
	}{
		"an unknown URL":         {"shop", models.Request{Model: "m", GateBaseURL: "https://evil.example/v1"}, "gate_base_url", "only endpoints that the operator configured", list},
		"of this machine":        {"shop", models.Request{Model: "m", GateBaseURL: "http://127.0.0.1:9000/v1"}, "gate_base_url", "only endpoints", list},
		"another port":           {"shop", models.Request{Model: "m", GateBaseURL: "https://openrouter.ai:8443/api/v1"}, "gate_base_url", "only endpoints", list},
		"another scheme":         {"shop", models.Request{Model: "m", GateBaseURL: "http://openrouter.ai/api/v1"}, "gate_base_url", "only endpoints", list},
		"a path below":           {"shop", models.Request{Model: "m", GateBaseURL: "https://openrouter.ai/api/v1/x"}, "gate_base_url", "only endpoints", list},
		"a longer host":          {"shop", models.Request{Model: "m", GateBaseURL: "https://openrouter.ai.evil.example/api/v1"}, "gate_base_url", "only endpoints", list},
		"link-local":             {"shop", models.Request{Model: "m", GateBaseURL: "http://169.254.169.254/"}, "gate_base_url", "link-local", list},
		"a key in it":            {"shop", models.Request{Model: "m", GateBaseURL: "https://me:sk-secret@openrouter.ai/api/v1"}, "gate_base_url", "must not hold a user", list},
		"an unknown second URL":  {"shop", models.Request{GateModel: "m", RewriteModel: "r", RewriteBaseURL: "https://evil.example/v1"}, "rewrite_base_url", "only endpoints", list},
		"no endpoint of its own": {"private", models.Request{Model: "m"}, "model", "no endpoint of its own", "send gate_base_url too; configured: " + list},
		"no gate of its own":     {"private", models.Request{RewriteModel: "m"}, "rewrite_model", "no model gates in project private", "gate_model"},
		"both forms":             {"shop", models.Request{Model: "m", RewriteModel: "r"}, "model", "another one is named too", "gate_model and rewrite_model"},
		"one at two places":      {"shop", models.Request{Model: "m", RewriteBaseURL: "http://127.0.0.1:11434"}, "rewrite_base_url", "one model for all", "gate_model"},
		"a URL alone":            {"shop", models.Request{GateBaseURL: "http://127.0.0.1:11434"}, "gate_base_url", "without a model", "gate_model"},
		"a second URL alone":     {"shop", models.Request{GateModel: "m", RewriteBaseURL: "http://127.0.0.1:11434"}, "rewrite_base_url", "without a model", "rewrite_model"},
		"built-in and a model":   {"shop", models.Request{GateModel: "extractive", RewriteModel: "m"}, "gate_model", "decides alone", "model: extractive"},
		"a model and built-in":   {"shop", models.Request{GateModel: "m", RewriteModel: "extractive"}, "rewrite_model", "decides alone", ""},
		"built-in at a URL":      {"shop", models.Request{Model: "extractive", GateBaseURL: "http://127.0.0.1:11434"}, "model", "decides alone", ""},
		"no name":                {"shop", models.Request{Model: "m\nX-Evil: 1"}, "model", "no name of a model", ""},
		"a long name":            {"shop", models.Request{GateModel: strings.Repeat("m", 201)}, "gate_model", "no name of a model", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parsed(t, perProject)
			p, err := c.Pick(tc.project, tc.r)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "field "+tc.field+": ") || !strings.Contains(err.Error(), tc.says) || !strings.Contains(fault.HintOf(err), tc.how) {
				t.Errorf("%v (%s), want %s: %s (%s)", err, fault.HintOf(err), tc.field, tc.says, tc.how)
			}
			if err != nil && strings.Contains(err.Error()+fault.HintOf(err), "secret") || p != nil {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	none := models.Config{}
	if _, err := none.Pick("shop", models.Request{Model: "m"}); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.HintOf(err), "no endpoint is configured") {
		t.Errorf("%v (%s)", err, fault.HintOf(err))
	}
}

// TestFreeURLs: where they are allowed, a URL of this machine may be named, and
// no other.
func TestFreeURLs(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{false, true} {
		c := parsed(t, perProject)
		c.FreeURLs = free
		for url, want := range map[string]models.Endpoint{
			"http://127.0.0.1:9000/v1/":     {URL: "http://127.0.0.1:9000/v1", Kind: models.Compatible},
			"http://localhost:9000":         {URL: "http://localhost:9000", Kind: models.Ollama},
			"http://[::1]:9000/v1":          {URL: "http://[::1]:9000/v1", Kind: models.Compatible},
			"https://x.localhost:9000/v1":   {URL: "https://x.localhost:9000/v1", Kind: models.Compatible},
			"http://10.0.0.7:9000/v1":       {},
			"https://localhost.evil.org/v1": {},
			"http://169.254.169.254/v1":     {},
		} {
			p, err := c.Pick("shop", models.Request{Model: "m", GateBaseURL: url})
			if !free || want.URL == "" {
				if !fault.Is(err, fault.Invalid) {
					t.Errorf("%s (free %v): %+v %v", url, free, p, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", url, err)
				continue
			}
			e, use, err := c.Find("shop", p.Gate)
			if err != nil {
				t.Errorf("%s: %v", url, err)
				continue
			}
			if e.URL != want.URL || e.Kind != want.Kind || e.Auth != models.None || e.Name != e.URL || use.Model != "m" || p.Gate.Endpoint != "" {
				t.Errorf("%s: %+v %+v", url, e, use)
			}
			c.FreeURLs = false // taken back before the run
			if _, _, err := c.Find("shop", p.Gate); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s is called though it is free no more: %v", url, err)
			}
			c.FreeURLs = true
		}
	}
}

// TestFind: what was picked is found again by its URL, and never at another one.
func TestFind(t *testing.T) {
	t.Parallel()
	c := parsed(t, perProject)
	p, err := c.Pick("shop", models.Request{Model: "qwen2.5:3b-instruct"})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again models.Pick
	if err := json.Unmarshal(stored, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, &again); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	e, use, err := c.Find("shop", again.Gate)
	if err != nil || e.Name != "local" || use.Window != 16384 {
		t.Errorf("%+v %+v %v", e, use, err) // the window of the file
	}
	for name, tc := range map[string]struct{ endpoints, endpoint string }{
		"as it was":      {"{name: local, url: 'http://127.0.0.1:11434'}", "local"},
		"renamed":        {"{name: here, url: 'http://127.0.0.1:11434'}", "here"},
		"the name moved": {"{name: local, url: 'http://127.0.0.1:11435'}, {name: here, url: 'http://127.0.0.1:11434'}", "here"},
		"another port":   {"{name: local, url: 'http://127.0.0.1:11435'}", ""},
		"gone":           {"{name: router, url: 'https://openrouter.ai/api/v1'}", ""},
	} {
		changed := parsed(t, "endpoints: ["+tc.endpoints+"]\n")
		e, _, err := changed.Find("shop", again.Gate)
		if tc.endpoint == "" && !fault.Is(err, fault.Invalid) || tc.endpoint != "" && (err != nil || e.Name != tc.endpoint) {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	c := parsed(t, perProject)
	seen := map[string]models.Request{}
	for _, r := range []models.Request{
		{}, {Model: "extractive"}, {Model: "a"}, {Model: "b"}, {Model: "a", GateBaseURL: "https://llm.example.org/v1"},
		{GateModel: "a", RewriteModel: "b"}, {GateModel: "b", RewriteModel: "a"}, {GateModel: "a", RewriteModel: "b", RewriteBaseURL: "http://127.0.0.1:11434"},
	} {
		p, err := c.Pick("shop", r)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := seen[p.Key()]; dup {
			t.Errorf("%+v and %+v have one key", r, other)
		}
		seen[p.Key()] = r
	}
	var none *models.Pick
	if none.Key() != "" || (&models.Pick{}).Key() != "{}" || (&models.Pick{}).Decides() != "extractive" {
		t.Error("the key of no choice, or of the built-in policy, moved")
	}
	a, b := &models.Pick{Gate: &models.Server{Endpoint: "x", URL: "u", Model: "m"}}, &models.Pick{Gate: &models.Server{Endpoint: "y", URL: "u", Model: "m"}}
	if a.Key() != b.Key() || a.Gate.Endpoint != "x" {
		t.Error("the name of an endpoint is in the key")
	}
}
