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
	"github.com/mneme-ai/mneme/functions/gate"
)

// TestModelsFileChanges: the file that names the models is followed while the process
// runs: new parts are decided by what it names now, old decisions stand; a file that
// cannot be used changes nothing, and what reranks cannot be exchanged this way.
func TestModelsFileChanges(t *testing.T) {
	t.Parallel()
	first, second := newJudging(t, "small"), newJudging(t, "large")
	file := filepath.Join(t.TempDir(), "models.yaml")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	endpoints := fmt.Sprintf("endpoints:\n  - {name: a, url: '%s/v1'}\n  - {name: b, url: '%s/v1'}\n", first.URL, second.URL)
	write(endpoints + "gate: {endpoint: a, model: small}\n")
	getenv := func(k string) string { return map[string]string{"MNEME_MODELS": file}[k] }
	cfg, err := wire.ModelsFromEnv(getenv)
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(t, wire.UpConfig{Dir: filepath.Join(t.TempDir(), "d"), Models: cfg, Getenv: getenv})
	learn := func(text string) {
		t.Helper()
		var out struct{ Status string }
		s.api(t, http.MethodPost, "/memory/learn?wait=20s", map[string]string{"project": "shop", "text": text}, &out)
	}
	deciders := func(want int) map[string]int {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			by := map[string]int{}
			n := 0
			for _, g := range s.gates(t, "shop") {
				if g.Level != "L2" {
					by[g.Model]++
					n++
				}
			}
			if n >= want || time.Now().After(end) {
				return by
			}
		}
	}
	learn("# Limits\n\nThe limit of queue a is 5 messages.\n")
	before := deciders(9)
	if before["small"] == 0 || before["large"] != 0 {
		t.Fatalf("%v", before)
	}
	var r gate.Reloaded
	reload := func() int {
		t.Helper()
		return s.api(t, http.MethodPost, "/memory/models/reload", map[string]any{}, &r)
	}
	if code := reload(); code != 200 || r.Changed {
		t.Errorf("nothing changed: %d %+v", code, r)
	}
	for name, bad := range map[string]string{
		"broken":      endpoints + "gate: {endpoint: a, model: small",
		"unknown":     endpoints + "gate: {endpoint: nowhere, model: small}\n",
		"reranks":     endpoints + "gate: {endpoint: b, model: large}\nrerank: {endpoint: b, model: cross}\n",
		"needs a key": "endpoints:\n  - {name: b, url: 'https://llm.example.org/v1', key_env: NOT_SET}\ngate: {endpoint: b, model: large}\n",
	} {
		write(bad)
		if code := reload(); code != 400 {
			t.Errorf("%s: %d %+v", name, code, r)
		}
	}
	write(endpoints + "gate: {endpoint: b, model: large}\n")
	if code := reload(); code != 200 || !r.Changed || len(r.Models) != 1 || !strings.Contains(r.Models[0].Server, "large") {
		t.Fatalf("%d %+v", code, r)
	}
	learn("# More limits\n\nThe limit of queue b is 9 messages.\n")
	after := deciders(2 * before["small"])
	if after["small"] != before["small"] || after["large"] == 0 {
		t.Errorf("before %v, after %v", before, after)
	}
	// Back to the built-in policy, and without anybody saying so: a sweep looks too.
	write(endpoints)
	s.request(t, http.MethodPost, "/memory/sweep", "", "Authorization", "Bearer "+s.creds.Token.Reveal())
	var found gate.ModelsFound
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		s.api(t, http.MethodGet, "/memory/models", map[string]any{}, &found)
		if strings.HasPrefix(found.Policy, "extractive") || time.Now().After(end) {
			break
		}
	}
	if !strings.HasPrefix(found.Policy, "extractive") || len(found.Models) != 0 {
		t.Errorf("%+v", found)
	}
}
