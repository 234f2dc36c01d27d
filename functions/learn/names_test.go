package learn_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
)

// TestNamesHoldNoSecret: a record's ids, folder, tool and type are masked as its
// text is, and so is an ad-hoc question; the masked id is still the same one
// when the file comes again.
func TestNamesHoldNoSecret(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	secret := "ghp_" + strings.Repeat("Ab3", 12)
	line := func(v map[string]any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	const at = "2026-02-01T09:00:00.000Z"
	file := line(map[string]any{"type": secret, "sessionId": secret}) +
		line(map[string]any{"type": "user", "uuid": secret, "sessionId": secret, "timestamp": at, "cwd": "/home/" + secret, "version": "2.1.42",
			"message": map[string]any{"role": "user", "content": "We decided to cap retries at 5 attempts, because the upstream bans us."}}) +
		line(map[string]any{"type": "assistant", "uuid": "a1", "sessionId": secret, "timestamp": at, "cwd": "/home/" + secret, "version": "2.1.42",
			"message": map[string]any{"id": secret, "role": "assistant", "content": []any{
				map[string]any{"type": "tool_use", "id": secret, "name": secret, "input": map[string]any{"file_path": "/x"}},
				map[string]any{"type": secret, "text": "x"},
			}}})
	if r := receive(t, w, w.Put("shop/a.jsonl", []byte(file))).Receipt; r.Outcome != learn.OutcomeAdmitted {
		t.Fatalf("%+v", r)
	}
	w.Sweep()
	if r := receive(t, w, w.Put("shop/b.jsonl", []byte(file+"\n"))).Receipt; r.Outcome != learn.OutcomeDuplicate {
		t.Errorf("the same turns again: %+v", r)
	}
	res := w.Call(http.MethodPost, "/memory/learn", map[string]any{"project": "shop", "text": "We decided to log for 30 days, because auditors ask.", "query": "what of " + secret + "?"})
	if res.Code >= 300 {
		t.Errorf("an ad-hoc question: %d %s", res.Code, res.Body)
	}
	n := 0
	for info, err := range w.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), info.Key, 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if strings.Contains(string(b), secret) || strings.Contains(info.Key, secret) {
			t.Errorf("%s holds the secret", info.Key)
		}
	}
	if n < 5 {
		t.Errorf("only %d objects stand", n)
	}
}
