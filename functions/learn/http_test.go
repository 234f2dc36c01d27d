package learn_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

const note = "# Retries\n\nWe decided to cap retries at 5 attempts, because the upstream bans us after that.\n\n# Lunch\n\nThe soup was fine.\n"

func TestPostLearn(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Live: true})
	var first, again learn.Learned
	req := map[string]any{"project": "shop", "text": note}
	w.Post("/memory/learn", req, http.StatusOK, &first)
	if first.Status != "completed" || !first.Stored || first.ChunksSeen == 0 || first.ChunksUsed == 0 || first.ChunksUsed > first.ChunksSeen {
		t.Errorf("%+v", first)
	}
	if !strings.Contains(first.Memory, "cap retries at 5 attempts") || first.MemoryTokens == 0 {
		t.Errorf("memory of %d tokens: %q", first.MemoryTokens, first.Memory)
	}
	if first.Project != "shop" || first.Model == "" || first.JobID == "" || first.StatusURL != "/memory/ingest/"+first.JobID {
		t.Errorf("%+v", first)
	}
	if len(first.Questions) != 9 {
		t.Errorf("%d questions, want the default nine", len(first.Questions))
	}
	before := w.Gate.PolicyCalls()
	w.Post("/memory/learn", req, http.StatusOK, &again)
	if again.Stored || again.ChunksUsed != 0 || again.ChunksSeen != first.ChunksSeen || again.JobID != first.JobID {
		t.Errorf("a repeat: %+v", again)
	}
	if n := w.Gate.PolicyCalls() - before; n != 0 {
		t.Errorf("a repeat makes %d policy calls", n)
	}
	var job learn.Learned
	w.Get(first.StatusURL, &job)
	if diff := cmp.Diff(first, job); diff != "" {
		t.Errorf("the job is not the answer (-answer +job):\n%s", diff)
	}
	// The fields of D1 are there by name, whatever their value.
	var raw map[string]any
	w.Get(first.StatusURL, &raw)
	for _, k := range []string{"project", "status", "chunks_seen", "chunks_used", "memory", "memory_tokens", "stored", "model", "job_id", "status_url"} {
		if _, ok := raw[k]; !ok {
			t.Errorf("the answer has no field %q", k)
		}
	}
}

// TestPostLearnRunning: where no run ends in time the answer is 202 and the job
// tells the rest.
func TestPostLearnRunning(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	var l learn.Learned
	w.Post("/memory/learn", map[string]any{"project": "shop", "text": note}, http.StatusAccepted, &l)
	if l.Status != "running" || !l.Stored || l.ChunksUsed != 0 {
		t.Errorf("%+v", l)
	}
	w.Run(w.Published()...)
	w.Get(l.StatusURL, &l)
	if l.Status != "completed" || l.ChunksUsed == 0 {
		t.Errorf("after the run: %+v", l)
	}
	if rec := w.Call(http.MethodGet, "/memory/ingest/"+string(memory.SumString("no such")), nil); rec.Code != http.StatusNotFound {
		t.Errorf("an unknown job: %d %s", rec.Code, rec.Body)
	}
	if rec := w.Call(http.MethodGet, "/memory/ingest/xyz", nil); rec.Code != http.StatusBadRequest {
		t.Errorf("no job id: %d %s", rec.Code, rec.Body)
	}
	if rec := w.Call(http.MethodGet, l.StatusURL+"?wait=2h", nil); rec.Code != http.StatusBadRequest {
		t.Errorf("a wait over the bound: %d %s", rec.Code, rec.Body)
	}
}

func TestPostLearnAdhoc(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Live: true})
	w.Learned("shop/other.jsonl", decision("s1"))
	before := w.Streams("shop")
	var l, again learn.Learned
	req := map[string]any{"project": "shop", "text": note, "query": "How many retries?", "memory_budget": 300}
	w.Post("/memory/learn", req, http.StatusOK, &l)
	if len(l.Questions) != 1 || !strings.HasPrefix(l.Questions[0].Stream, "adhoc-") || !l.Questions[0].Done {
		t.Fatalf("questions %+v", l.Questions)
	}
	if !strings.Contains(l.Memory, "cap retries") || l.ChunksUsed == 0 || l.MemoryTokens > 300 {
		t.Errorf("%+v", l)
	}
	// It folds the part of its request alone.
	ends := functest.Of[*memory.RunEnd](w.Records("shop", l.Questions[0].Stream))
	if len(ends) != 1 || ends[0].Admit != 2 {
		t.Errorf("run ends %+v, want one for part 2", ends)
	}
	runs := functest.Of[*memory.Run](w.Records("shop", l.Questions[0].Stream))
	if len(runs) != 1 || runs[0].MemoryBudget != 300 {
		t.Errorf("runs %+v, want the budget of the request", runs)
	}
	w.Post("/memory/learn", req, http.StatusOK, &again)
	if again.Stored || again.Memory != l.Memory {
		t.Errorf("the same question again: %+v", again)
	}
	if got := len(w.Streams("shop")); got != len(before)+1 {
		t.Errorf("%d streams, want %d", got, len(before)+1)
	}
	w.Learned("shop/later.jsonl", decision("s3"))
	if n := len(functest.Of[*memory.RunEnd](w.Records("shop", l.Questions[0].Stream))); n != 1 {
		t.Errorf("a later part is folded into the ad-hoc stream: %d run ends", n)
	}
	w.Hashes()
}

// TestAdhocJob: a request with a question of its own that is answered 202 finds
// the answer to that question at its status URL.
func TestAdhocJob(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	var l learn.Learned
	w.Post("/memory/learn", map[string]any{"project": "shop", "text": note, "query": "How many retries?"}, http.StatusAccepted, &l)
	w.Get(l.StatusURL, &l)
	if l.Status != "running" {
		t.Errorf("before the run: %+v", l)
	}
	w.Run(w.Published()...)
	w.Get(l.StatusURL, &l)
	if l.Status != "completed" || len(l.Questions) != 1 || !strings.HasPrefix(l.Questions[0].Stream, "adhoc-") || !strings.Contains(l.Memory, "cap retries") {
		t.Errorf("%+v", l)
	}
	for _, stream := range []string{"adhoc-00000000", "gone@00000000", "adhoc-../../x"} {
		rec := w.Call(http.MethodGet, "/memory/ingest/"+l.JobID+"?stream="+stream, nil)
		if rec.Code != http.StatusNotFound && rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", stream, rec.Code, rec.Body)
		}
	}
}

func TestPostLearnValidation(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Live: true})
	ok := func(more ...any) map[string]any {
		m := map[string]any{"project": "shop", "text": note}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	tests := map[string]struct {
		body  any
		field string
	}{
		"no JSON":               {"{", "body"},
		"no object":             {"[]", "body"},
		"unknown field":         {ok("colour", "red"), "colour"},
		"wrong type":            {ok("memory_budget", "many"), "memory_budget"},
		"no project":            {map[string]any{"text": note}, "project"},
		"bad project":           {ok("project", "Shop!"), "project"},
		"auto":                  {ok("project", "_auto"), "project"},
		"no text":               {ok("text", " \n "), "text"},
		"budget alone":          {ok("memory_budget", 100), "memory_budget"},
		"budget below":          {ok("query", "q?", "memory_budget", -1), "memory_budget"},
		"budget above":          {ok("query", "q?", "memory_budget", 1<<20), "memory_budget"},
		"chunk size":            {ok("chunk_size", 10), "chunk_size"},
		"long query":            {ok("query", strings.Repeat("why ", 4000)), "query"},
		"query of 1,500 tokens": {ok("query", strings.Repeat("why ", 1500)), "query"},
		"model":                 {ok("model", "gpt"), "model"},
		"model endpoint":        {ok("gate_base_url", "http://169.254.169.254/"), "gate_base_url"},
		"name with a slash":     {ok("name", "../../etc/\x00passwd"), "name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rec := w.Call(http.MethodPost, "/memory/learn", tc.body)
			var p serve.Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
				t.Fatalf("%v: %s", err, rec.Body)
			}
			if rec.Code != http.StatusBadRequest || p.Code != "invalid" || !strings.Contains(p.Where+" "+p.Message, tc.field) {
				t.Errorf("status %d, %+v: want 400 that names %q", rec.Code, p, tc.field)
			}
		})
	}
	if p, err := w.Log.Projects(t.Context()); err != nil || len(p) != 0 {
		t.Errorf("a refused request left %v %v", p, err)
	}
}

func put(w *functest.World, name string, sha memory.SHA, body []byte) (int, learn.Learned, serve.Problem) {
	rec := w.Call(http.MethodPut, "/memory/files/shop/"+name+"?sha256="+string(sha), body)
	var l learn.Learned
	var p serve.Problem
	if rec.Code == http.StatusOK {
		_ = json.Unmarshal(rec.Body.Bytes(), &l)
	} else {
		_ = json.Unmarshal(rec.Body.Bytes(), &p)
	}
	return rec.Code, l, p
}

func inbox(t *testing.T, w *functest.World) []string {
	t.Helper()
	var out []string
	for info, err := range w.Inbox.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Key)
	}
	return out
}

func TestPutFile(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	body := decision("s1")
	code, l, p := put(w, "a.jsonl", memory.Sum(body), body)
	if code != http.StatusOK || l.Outcome != learn.OutcomeAdmitted || l.Project != "shop" || !l.Stored {
		t.Fatalf("%d %+v %+v", code, l, p)
	}
	es := w.Published()
	if len(es) != 1 || es[0].Type() != string(event.ChunksReady) {
		t.Errorf("announced %v", es)
	}
	want := []string{"shop/_post/" + string(memory.Sum(body)) + "/a.jsonl"}
	if diff := cmp.Diff(want, inbox(t, w)); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
	code, l, _ = put(w, "a.jsonl", memory.Sum(body), body)
	if code != http.StatusOK || l.Stored || len(w.Published()) != 0 {
		t.Errorf("again: %d %+v", code, l)
	}
	// The document's own name is in the log, not where it was put.
	if a := w.Admits("shop"); len(a) != 1 || a[0].Object != functest.Inbox+"/"+want[0] {
		t.Errorf("%+v", a)
	}
}

// TestPutFileWrongHash: bytes that are not those announced are not stored, and
// what stands under the name is not touched.
func TestPutFileWrongHash(t *testing.T) {
	t.Parallel()
	body := decision("s1")
	lie := bytes.Replace(body, []byte("5 attempts"), []byte("9 attempts"), 1)
	for name, tc := range map[string]struct{ body, stands []byte }{
		"new":               {lie, nil},
		"empty":             {nil, nil},
		"over what stands":  {lie, body},
		"empty over it":     {nil, body},
		"longer than large": {bytes.Repeat(lie, 400), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := functest.New(t, functest.Options{})
			if tc.stands != nil {
				if code, _, p := put(w, "a.jsonl", memory.Sum(body), tc.stands); code != http.StatusOK {
					t.Fatalf("%d %+v", code, p)
				}
			}
			before := inbox(t, w)
			code, l, p := put(w, "a.jsonl", memory.Sum(body), tc.body)
			if tc.stands == nil && (code != http.StatusUnprocessableEntity || p.Hint == "") {
				t.Errorf("%d %+v %+v", code, l, p)
			}
			if diff := cmp.Diff(before, inbox(t, w)); diff != "" {
				t.Errorf("the inbox changed (-before +after):\n%s", diff)
			}
			if tc.stands != nil {
				b, _, err := w.Inbox.ReadAll(t.Context(), before[0], 1<<20)
				if err != nil || !bytes.Equal(b, body) {
					t.Errorf("what stood is gone: %v", err)
				}
			}
			// The right bytes come through afterwards.
			if code, _, p := put(w, "a.jsonl", memory.Sum(body), body); code != http.StatusOK || len(w.Admits("shop")) != 1 {
				t.Errorf("%d %+v, %d lines", code, p, len(w.Admits("shop")))
			}
		})
	}
}

func TestPutFileValidation(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	body := decision("s1")
	sha := string(memory.Sum(body))
	for name, target := range map[string]string{
		"project":    "/memory/files/Shop/a.jsonl?sha256=" + sha,
		"no hash":    "/memory/files/shop/a.jsonl",
		"short hash": "/memory/files/shop/a.jsonl?sha256=abc",
		"upper case": "/memory/files/shop/a.jsonl?sha256=" + strings.ToUpper(sha),
	} {
		if rec := w.Call(http.MethodPut, target, body); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if got := inbox(t, w); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
	// A name of any length and script is cut to a key, never refused.
	for _, n := range []string{strings.Repeat("x", 300) + ".jsonl", "日本語%20ノート.md", "a%2Fb.jsonl", "%2E%2E%2F%2E%2E%2Fpasswd"} {
		if rec := w.Call(http.MethodPut, "/memory/files/shop/"+n+"?sha256="+sha, body); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %s", n, rec.Code, rec.Body)
		}
	}
}
