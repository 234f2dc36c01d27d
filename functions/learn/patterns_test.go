package learn_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/redact"
)

// TestUserPatterns: the tenant's own patterns mask from the next admission on
// and stand in the recorded rules; a file that can not be read stops admission,
// naming its line, until it is mended.
func TestUserPatterns(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	const file = "config/" + functest.Tenant + "/redact.yaml"
	write := func(body string) {
		t.Helper()
		if _, err := w.Bucket.Put(t.Context(), file, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	learnText := func(text string) (int, string) {
		res := w.Call(http.MethodPost, "/memory/learn", map[string]any{"project": "shop", "text": text, "query": "what was decided?"})
		return res.Code, res.Body.String()
	}
	write("patterns:\n  - {name: account, regexp: 'ACME-['}\n")
	code, body := learnText("We decided to bill ACME-123456 monthly, because they asked.")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, file+":2") {
		t.Fatalf("a broken file: %d %s", code, body)
	}
	if n := len(w.Admits("shop")); n != 0 {
		t.Fatalf("%d parts were admitted meanwhile", n)
	}
	write("patterns:\n  - {name: account, regexp: 'ACME-[0-9]+', keyword: ACME-}\n")
	if code, body := learnText("We decided to bill ACME-123456 monthly, because they asked."); code >= 300 {
		t.Fatalf("a good file: %d %s", code, body)
	}
	rules := false
	for info, err := range w.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), info.Key, 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		if info.Key != file && strings.Contains(string(b), "ACME-123456") {
			t.Errorf("%s holds the account", info.Key)
		}
		rules = rules || strings.Contains(string(b), `"redact_rules":"`+redact.RulesVersion+"+")
	}
	if !rules {
		t.Error("no source record names the patterns' version")
	}
}
