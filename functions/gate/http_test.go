package gate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

func refused(t *testing.T, w *functest.World, method, target string, body any, status int, words ...string) {
	t.Helper()
	rec := w.Call(method, target, body)
	var p serve.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatalf("%s %s: %v: %s", method, target, err, rec.Body)
	}
	if rec.Code != status {
		t.Errorf("%s %s: status %d, want %d: %+v", method, target, rec.Code, status, p)
	}
	for _, word := range words {
		if !strings.Contains(p.Message+" "+p.Where+" "+p.Hint, word) {
			t.Errorf("%s %s: %+v does not say %q", method, target, p, word)
		}
	}
}

func TestQuestionRoutes(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Live: true})
	var q gate.Questions
	w.Get("/memory/questions?project=shop", &q)
	if !q.Default || len(q.Questions) != 9 {
		t.Errorf("a new project has %d questions, default %t", len(q.Questions), q.Default)
	}
	w.Learned("shop/a.jsonl", functest.Decision("s1", start, "We decided to cap retries at 5 attempts, because the upstream bans us after that."))
	w.Post("/memory/questions", map[string]any{"project": "shop", "id": "databases", "question": "  Which databases are used?  "}, http.StatusOK, &q)
	if q.Default || len(q.Questions) != 10 {
		t.Fatalf("%d questions, default %t: the nine stay", len(q.Questions), q.Default)
	}
	last := q.Questions[9]
	want := gate.Question{
		ID: "databases", Question: "Which databases are used?", CaughtUp: true,
		Stream: memory.StreamName("databases", "Which databases are used?"), Serving: memory.StreamName("databases", "Which databases are used?"),
	}
	if last != want {
		t.Errorf("%+v, want %+v", last, want)
	}
	if runs, _ := steps(t, w, want.Stream); runs != 1 {
		t.Errorf("%d runs: it is not back-filled", runs)
	}
	// The same again moves nothing, and is announced harmlessly.
	before := w.Hashes()
	w.Post("/memory/questions", map[string]any{"project": "shop", "id": "databases", "question": "Which databases are used?"}, http.StatusOK, &q)
	if len(q.Questions) != 10 || w.Hashes().Log != before.Log {
		t.Error("the same question again changed something")
	}
	if rec := w.Call(http.MethodDelete, "/memory/questions/databases?project=shop", nil); rec.Code != http.StatusOK {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	refused(t, w, http.MethodDelete, "/memory/questions/databases?project=shop", nil, http.StatusNotFound, "databases", "mem question list")
	refused(t, w, http.MethodDelete, "/memory/questions/databases?project=Shop", nil, http.StatusBadRequest, "project")
	refused(t, w, http.MethodGet, "/memory/questions", nil, http.StatusBadRequest, "project")
	add := func(id, question string) map[string]any {
		return map[string]any{"project": "shop", "id": id, "question": question}
	}
	refused(t, w, http.MethodPost, "/memory/questions", "{", http.StatusBadRequest, "body")
	refused(t, w, http.MethodPost, "/memory/questions", map[string]any{"project": "shop", "id": "a", "question": "a?", "colour": 1}, http.StatusBadRequest, "colour")
	refused(t, w, http.MethodPost, "/memory/questions", map[string]any{"project": "", "id": "a", "question": "a?"}, http.StatusBadRequest, "project")
	refused(t, w, http.MethodPost, "/memory/questions", add("_synthesis", "What?"), http.StatusBadRequest, "id")
	refused(t, w, http.MethodPost, "/memory/questions", add("adhoc-1", "What?"), http.StatusBadRequest, "id")
	refused(t, w, http.MethodPost, "/memory/questions", add("a b", "What?"), http.StatusBadRequest, "id")
	refused(t, w, http.MethodPost, "/memory/questions", add("empty", "   "), http.StatusBadRequest, "question")
	refused(t, w, http.MethodPost, "/memory/questions", add("long", strings.Repeat("why ", 1500)), http.StatusBadRequest, "question", "1024")
}

// TestQuestionFileErrors: a file that people broke is refused with its line,
// and nothing of it is guessed.
func TestQuestionFileErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, line, word string }{
		"unknown field": {"project: shop\nqueries:\n  - id: a\n    question: What?\n    colour: red\n", ":5", "colour"},
		"no YAML":       {"project: shop\nqueries:\n  - id: [\n", ":", ""},
		"repeated id":   {"project: shop\nqueries:\n  - id: a\n    question: What?\n  - id: a\n    question: Who?\n", ":5", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := functest.New(t, functest.Options{})
			key := "config/" + functest.Tenant + "/shop/questions.yaml"
			if _, err := w.Bucket.Put(t.Context(), key, []byte(tc.file)); err != nil {
				t.Fatal(err)
			}
			refused(t, w, http.MethodGet, "/memory/questions?project=shop", nil, http.StatusBadRequest, "questions.yaml"+tc.line, tc.word)
			refused(t, w, http.MethodPost, "/memory/questions", map[string]any{"project": "shop", "id": "b", "question": "Why?"}, http.StatusBadRequest, "questions.yaml"+tc.line)
			b, _, err := w.Bucket.ReadAll(t.Context(), key, 1<<10)
			if err != nil || string(b) != tc.file {
				t.Errorf("the file was touched: %v %q", err, b)
			}
		})
	}
}

// TestBrokenFileOfOneProject: the other projects go on.
func TestBrokenFileOfOneProject(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Ask("shop", "decisions")
	if _, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Decision("s1", start, "We decided to cap retries at 5 attempts."))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/bank/questions.yaml", []byte("queries: 7\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Learn.Handle(t.Context(), w.Put("bank/a.jsonl", functest.Decision("s2", start, "We decided to use pgx."))); err != nil {
		t.Fatal(err)
	}
	w.Sweep()
	if runs, _ := steps(t, w, stream("decisions")); runs != 1 {
		t.Errorf("shop has %d runs, want 1", runs)
	}
	if _, err := w.Gate.Behind(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "questions.yaml:1") {
		t.Errorf("who waits is told %v", err)
	}
	// A store that does not answer for one project is a reason to come again.
	w.Stores.Fail(func(c functest.Call) error {
		if strings.Contains(c.Key, "/bank/") {
			return errKilled
		}
		return nil
	}, nil)
	w.Ask("shop", "decisions", "rules")
	_, err := w.Gate.Handle(t.Context(), event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"}))
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("the sweep answers %v", err)
	}
	if es := w.Published(); len(es) != 1 || es[0].Type() != string(event.RunRequested) {
		t.Errorf("announced %v", es)
	}
}

// TestConcurrentEdits: two people who add a question each keep both.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	done := make(chan int)
	ids := []string{"databases", "queues", "caches"}
	for _, id := range ids {
		go func() {
			done <- w.Call(http.MethodPost, "/memory/questions", map[string]any{"project": "shop", "id": id, "question": "Which " + id + "?"}).Code
		}()
	}
	for range ids {
		if code := <-done; code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	set, _, err := w.Catalog.Questions(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, ok := set.Get(id); !ok {
			t.Errorf("%s is lost", id)
		}
	}
}
