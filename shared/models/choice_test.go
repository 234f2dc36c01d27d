package models_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/models"
)

const perProject = whole + `projects:
  notes:
    gate: {endpoint: local, model: "qwen2.5:7b-instruct"}
  both:
    gate: {endpoint: gateway, model: g, adapter: lora-1, window: 8192}
    rewrite: {endpoint: local, model: "qwen2.5:7b-instruct"}
  private:
    gate: none
`

func parsed(t *testing.T, file string) models.Config {
	t.Helper()
	c, err := models.Parse("models.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFor(t *testing.T) {
	t.Parallel()
	c := parsed(t, perProject)
	small := &models.Use{Endpoint: "local", Model: "qwen2.5:3b-instruct", Window: 16384}
	router := &models.Use{Endpoint: "router", Model: "qwen/qwen-2.5-72b-instruct", Window: models.DefaultWindow}
	seven := &models.Use{Endpoint: "local", Model: "qwen2.5:7b-instruct", Window: models.DefaultWindow}
	lora := &models.Use{Endpoint: "gateway", Model: "g", Adapter: "lora-1", Window: 8192}
	for project, want := range map[string]models.Choice{
		"":        {Gate: small, Rewrite: router},
		"shop":    {Gate: small, Rewrite: router},
		"notes":   {Gate: seven}, // the general rewrite model is not asked
		"both":    {Gate: lora, Rewrite: seven},
		"private": {},
	} {
		if diff := cmp.Diff(want, c.For(project)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", project, diff)
		}
	}
	if diff := cmp.Diff([]*models.Use{small, router, lora, seven}, c.Uses()); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	// A file may leave the rest to the built-in policy.
	c = parsed(t, "endpoints: [{name: e, url: 'http://127.0.0.1:11434'}]\ngate: none\nprojects: {shop: {gate: {endpoint: e, model: m}}}\n")
	if c.For("").Gate != nil || c.For("other").Gate != nil || c.For("shop").Gate == nil || len(c.Uses()) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestProjectsRefused(t *testing.T) {
	t.Parallel()
	replace := func(old, to string) string {
		if !strings.Contains(perProject, old) {
			t.Fatalf("%q is not in the file", old)
		}
		return strings.Replace(perProject, old, to, 1)
	}
	for name, tc := range map[string]struct{ file, want string }{
		"no project name":     {replace("  notes:", "  Notes!:"), `models.yaml:20: "Notes!" is not a project name`},
		"no such endpoint":    {replace("endpoint: gateway", "endpoint: gatewai"), `models.yaml:23: gate: no endpoint "gatewai"`},
		"no such rewrite":     {replace("rewrite: {endpoint: local", "rewrite: {endpoint: lokal"), `models.yaml:24: rewrite: no endpoint "lokal"`},
		"an unknown field":    {replace("    gate: none", "    gates: none"), `models.yaml:26: unknown field "gates"`},
		"another word":        {replace("gate: none", "gate: off"), "models.yaml:26: gate must be a mapping of fields"},
		"a rewrite alone":     {replace("    gate: none", "    rewrite: {endpoint: local, model: m}"), "models.yaml:26: rewrite without gate"},
		"none and a rewrite":  {perProject + "    rewrite: {endpoint: local, model: m}\n", "models.yaml:27: rewrite with gate: none"},
		"nothing":             {replace("    gate: none", "    {}"), `models.yaml:26: project "private" says nothing`},
		"a project twice":     {replace("  private:", "  notes:"), `models.yaml:25: field "notes" stands twice`},
		"a general none":      {replace("gate:\n  endpoint: local\n  model: qwen2.5:3b-instruct\n  window: 16384\n", "gate: none\n"), "rewrite with gate: none"},
		"a list":              {"endpoints: []\nprojects: [shop]\n", "models.yaml:2: projects must be a mapping of projects"},
		"no endpoints at all": {"projects: {shop: {gate: {endpoint: e, model: m}}}\n", `models.yaml:1: gate: no endpoint "e"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := models.Parse("models.yaml", []byte(tc.file)); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
