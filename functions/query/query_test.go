package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

var day = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

// filled is a world with two projects. Each decision is kept under two
// questions; the cache's TTL is amended, once by an older session that comes
// last.
func filled(t *testing.T, o functest.Options) *functest.World {
	t.Helper()
	w := functest.New(t, o)
	w.Ask("shop", "decisions", "rules")
	w.Ask("bank", "decisions")
	for i, s := range []struct {
		project, text string
		day           int
	}{
		{"shop", "We decided to cap retries at 5 attempts, because the upstream bans us after that.", 0},
		{"shop", "From now on the cache TTL is 10 minutes, never longer, since stale prices cost us an incident.", 3},
		{"shop", "From now on the cache TTL is 20 minutes instead of 10 minutes, because the price feed is slow.", 9},
		{"shop", "Use pgx instead of lib/pq, and set max_conns to 12 everywhere.", 1},
		{"bank", "Never write an account number to a log file, no exceptions.", 2},
	} {
		w.Learned(fmt.Sprintf("%s/%d.jsonl", s.project, i), functest.Decision(fmt.Sprintf("s%d", i), day.AddDate(0, 0, s.day), s.text))
	}
	// Seen, and not kept by any gate.
	w.Learned("shop/talk.jsonl", functest.Session("talk", day,
		functest.User("Could you show me the diff of the zebra branch?"), functest.Assistant("Here is the zebra diff with the striped button.")))
	return w
}

func ask(t *testing.T, w *functest.World, question string, q query.Request) query.Answer {
	t.Helper()
	q.Query = question
	a, err := w.Query.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCitedAnswer(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	a := ask(t, w, "at how many attempts did we cap retries, and why?", query.Request{Projects: []string{"shop"}})
	if len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "cap retries at 5") || len(a.Degraded) != 0 || a.Project != "shop" {
		t.Fatalf("%+v", a)
	}
	last := 2.0
	for _, r := range a.Results {
		if r.Score < 0 || r.Score > 1 || r.Score > last {
			t.Errorf("score %f after %f", r.Score, last)
		}
		last = r.Score
		if !r.Kept || len(r.Citations) == 0 || r.Reason == "" || r.Project != "shop" || r.QueryID == "" || r.T == 0 {
			t.Errorf("%+v", r)
		}
		for _, c := range r.Citations {
			body, _, err := w.Inbox.ReadAll(t.Context(), strings.TrimPrefix(c.Object, functest.Inbox+"/"), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			raw := body[c.Start:c.End]
			var text string
			if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &text); err != nil || text != c.Quote || c.Codec != memory.CodecJSONString {
				t.Errorf("bytes [%d,%d) of %s decode to %q (%v), quote %q", c.Start, c.End, c.Object, text, err, c.Quote)
			}
			if c.SHA256 != memory.Sum(raw) || c.ETag == "" {
				t.Errorf("sha %s, etag %q", c.SHA256.Short(), c.ETag)
			}
			chunk, err := w.Log.Blob(t.Context(), "shop", c.Chunk)
			if err != nil || string(chunk[c.ChunkStart:c.ChunkEnd]) != c.Quote {
				t.Errorf("the chunk says %v", err)
			}
		}
	}
}

// TestSameWordsOnce: the same words under two questions are one answer, which
// names both.
func TestSameWordsOnce(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	a := ask(t, w, "which database driver, pgx or lib/pq?", query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}})
	seen := map[string]int{}
	for _, r := range a.Results {
		seen[r.Text]++
	}
	for text, n := range seen {
		if n > 1 {
			t.Errorf("%d results of %q", n, text)
		}
	}
	if len(a.Results) == 0 || len(a.Results[0].AlsoIn) != 1 {
		t.Fatalf("%+v", a.Results)
	}
	both := append([]string{a.Results[0].QueryID}, a.Results[0].AlsoIn...)
	slices.Sort(both)
	if diff := cmp.Diff([]string{"decisions", "rules"}, both); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	const question = "may an account number be written to a log file?"
	if a := ask(t, w, question, query.Request{}); len(a.Results) == 0 || a.Results[0].Project != "bank" || a.Project != "" {
		t.Errorf("all projects: %+v", a)
	}
	if a := ask(t, w, question, query.Request{Projects: []string{"bank", "shop"}}); len(a.Results) == 0 {
		t.Error("two projects: nothing")
	}
	for _, r := range ask(t, w, question, query.Request{Projects: []string{"shop"}}).Results {
		if r.Project != "shop" || strings.Contains(r.Text, "account number") {
			t.Errorf("shop sees %q of %s", r.Text, r.Project)
		}
	}
	a := ask(t, w, question, query.Request{Projects: []string{"unknown"}})
	if len(a.Results) != 0 || a.Notice == "" || a.Results == nil {
		t.Errorf("an unknown project: %+v", a)
	}
}

func TestNonsense(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	for _, q := range []string{"zorble quux fnordwick blathering", "qqqq", "?!", "🙂🙂🙂"} {
		a := ask(t, w, q, query.Request{})
		if len(a.Results) != 0 || a.Notice != "nothing is known about this" {
			t.Errorf("%q: %d results, notice %q: %+v", q, len(a.Results), a.Notice, a.Results)
		}
	}
}

func TestRawIsTheLastResort(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	a := ask(t, w, "zebra striped button", query.Request{Projects: []string{"shop"}})
	if len(a.Results) == 0 || !strings.Contains(a.Notice, "not kept") {
		t.Fatalf("%+v", a)
	}
	for _, r := range a.Results {
		if r.Kept || r.Level != memory.LevelRaw || !strings.HasPrefix(r.Reason, "seen, not kept") || r.QueryID != "" {
			t.Errorf("%+v", r)
		}
		if len(r.Citations) == 0 || len(r.Citations) > 3 || r.Text != r.Citations[0].Quote || !strings.Contains(r.Text, "zebra") {
			t.Errorf("text %q, citations %+v", r.Text, r.Citations)
		}
	}
	// Where memory answers nothing raw is mixed in.
	for _, r := range ask(t, w, "at how many attempts did we cap retries, and why?", query.Request{}).Results {
		if r.Level == memory.LevelRaw {
			t.Errorf("raw among memory: %+v", r)
		}
	}
	// Asked for by name it is given, for evaluation.
	if a := ask(t, w, "zebra striped button", query.Request{Levels: []memory.Level{memory.LevelRaw}}); len(a.Results) == 0 {
		t.Error("level raw by name: nothing")
	}
	if a := ask(t, w, "zebra striped button", query.Request{Levels: []memory.Level{memory.L0}}); len(a.Results) != 0 {
		t.Errorf("level L0 by name: %+v", a.Results)
	}
}

func TestSuperseded(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	a := ask(t, w, "what is the cache TTL in minutes?", query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}})
	at := func(words string) int {
		return slices.IndexFunc(a.Results, func(r query.Result) bool { return strings.Contains(r.Text, words) })
	}
	newer, older := at("TTL is 20 minutes"), at("TTL is 10 minutes")
	if newer != 0 || older < 0 {
		t.Fatalf("the newer stands at %d, the older at %d: %+v", newer, older, a.Results)
	}
	if len(a.Results[newer].SupersededBy) != 0 || len(a.Results[older].SupersededBy) == 0 {
		t.Fatalf("superseded by %v and %v", a.Results[newer].SupersededBy, a.Results[older].SupersededBy)
	}
	by, err := w.Graph.Nodes(t.Context(), functest.Tenant, a.Results[older].SupersededBy) // of its own question
	if err != nil || len(by) != 1 || by[0].Text != a.Results[newer].Text || by[0].QueryID != a.Results[older].QueryID {
		t.Errorf("superseded by %+v %v", by, err)
	}
}

func TestTimeFilter(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	q := query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}, Until: day.AddDate(0, 0, 5)}
	for _, r := range ask(t, w, "what is the cache TTL in minutes?", q).Results {
		if r.Time == nil || !r.Time.Before(q.Until) {
			t.Errorf("%v: %q", r.Time, r.Text)
		}
	}
	a := ask(t, w, "what is the cache TTL in minutes?", q)
	if len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "TTL is 10 minutes") || len(a.Results[0].SupersededBy) != 0 {
		t.Errorf("as of then: %+v", a.Results)
	}
	q.Until, q.Since = time.Time{}, day.AddDate(1, 0, 0)
	if a := ask(t, w, "what is the cache TTL in minutes?", q); len(a.Results) != 0 {
		t.Errorf("from the future: %+v", a.Results)
	}
}

// broken is a leg that fails, or hangs until its context ends.
type broken struct {
	index.Graph
	hang bool
	mu   *sync.Mutex
	on   *bool
}

func (b broken) SearchDense(ctx context.Context, space string, vec []float32, f index.Filter, k int) ([]index.Hit, error) {
	b.mu.Lock()
	on := *b.on
	b.mu.Unlock()
	if !on {
		return b.Graph.SearchDense(ctx, space, vec, f, k)
	}
	if b.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("the leg is broken")
}

type brokenLexical struct {
	index.Lexical
	b broken
}

func (l brokenLexical) Search(ctx context.Context, q string, f index.Filter, k int) ([]index.Hit, error) {
	l.b.mu.Lock()
	on := *l.b.on
	l.b.mu.Unlock()
	if !on {
		return l.Lexical.Search(ctx, q, f, k)
	}
	if l.b.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, errors.New("the leg is broken")
}

// TestDegraded: a leg that fails or is late is left out and named; the other
// decides alone. Without either the answer is an error, never an empty one.
func TestDegraded(t *testing.T) {
	t.Parallel()
	const question = "cap retries at 5 attempts, because the upstream bans" // words as the reference index has them
	for _, hang := range []bool{false, true} {
		for _, leg := range []string{"semantic", "lexical", "both"} {
			t.Run(fmt.Sprintf("%s hang=%t", leg, hang), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // a hanging leg costs no time
					dense, lexical := false, false
					mu := &sync.Mutex{}
					o := functest.Options{
						Graph:   broken{indextest.NewGraph(), hang, mu, &dense},
						Lexical: brokenLexical{indextest.NewLexical(), broken{nil, hang, mu, &lexical}},
					}
					w := filled(t, o)
					mu.Lock()
					dense, lexical = leg != "lexical", leg != "semantic"
					mu.Unlock()
					start := time.Now()
					a, err := w.Query.Ask(t.Context(), query.Request{Query: question, Projects: []string{"shop"}})
					if took := time.Since(start); hang && (took < 2*time.Second || took > 5*time.Second) {
						t.Errorf("took %v: a leg may cost 2 s", took)
					}
					if leg == "both" {
						if !fault.Is(err, fault.Unavailable) {
							t.Errorf("no leg answers, and neither does an error: %v %+v", err, a)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff([]string{leg}, without(a)); diff != "" {
						t.Errorf("degraded (-want +got):\n%s", diff)
					}
					if len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "cap retries at 5") {
						t.Errorf("%+v", a.Results)
					}
				})
			})
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	for _, tc := range []struct{ params, field string }{
		{"", "query"},
		{"query=%20%20", "query"},
		{"query=" + strings.Repeat("x", 5000), "query"},
		{"query=a&limit=0", "limit"},
		{"query=a&limit=-1", "limit"},
		{"query=a&limit=101", "limit"},
		{"query=a&limit=ten", "limit"},
		{"query=a&level=L9", "level"},
		{"query=a&since=yesterday", "since"},
		{"query=a&until=2026-13-01", "until"},
		{"query=a&project=Shop", "project"},
		{"query=a&project=../x", "project"},
		{"query=" + strings.Repeat("why+", 25_000), "query"}, // 100 kB
		{"query=%ff%fe", "query"},
		{"query=a&limit=99999999999999999999", "limit"},
		{"query=a&since=2026-02-02&until=2026-02-01", "since"},
		{"query=a&since=2026-02-02&until=2026-02-02", "since"},
		{"query=a&since=2026-02-02&as_of=2026-02-01", "as_of"},
		{"query=a&as_of=then", "as_of"},
		{"query=a&floor=low", "floor"},
		{"query=a&source=" + strings.Repeat("x", 2000), "source"},
		{"query=a&source=%ff", "source"},
		{"query=a" + many("&source=x", 20), "source"},
		{"query=a&dense_weight=NaN", "dense_weight"},
		{"query=a" + many("&project=p", 1000), "project"},
	} {
		rec := w.Call(http.MethodGet, "/memory/query?"+tc.params, nil)
		var p serve.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != http.StatusBadRequest || p.Where != tc.field || p.Hint == "" {
			t.Errorf("%.60s: %d %s, want 400 for %s", tc.params, rec.Code, rec.Body, tc.field)
		}
	}
	for _, text := range []string{"🚀", "'; DROP TABLE memory_node; --", "?!… --- ###", "\x00\x01\u200b\x7f", strings.Repeat("cache TTL ", 400), "%_%", `{"match_all":{}}`} {
		if rec := w.Call(http.MethodPost, "/memory/query", map[string]any{"query": text, "projects": []string{"shop"}}); rec.Code != http.StatusOK {
			t.Errorf("%.20q: %d %s", text, rec.Code, rec.Body)
		}
	}
	for body, field := range map[string]string{
		`{"query":"` + strings.Repeat("x", 100_000) + `"}`: "query", `{"query":"a","limit":0}`: "limit", `{"query":"a","limit":-1}`: "limit",
		`{"query":"` + strings.Repeat("x", 2_000_000) + `"}`: "body",
	} {
		rec := w.Call(http.MethodPost, "/memory/query", body)
		var p serve.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != http.StatusBadRequest || p.Where != field || p.Hint == "" {
			t.Errorf("%.30s…: %d %s, want 400 for %s", body, rec.Code, rec.Body, field)
		}
	}
	for _, body := range []string{"", "{", `{"query":"a","colour":1}`, `{"query":1}`, `[]`, `{"query":"a","limit":101}`, `{"query":"a","projects":["A"]}`} {
		if rec := w.Call(http.MethodPost, "/memory/query", body); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
	}
	// Both ways to ask are one; levels and projects may be several.
	var get, post query.Answer
	w.Get("/memory/query?"+url.Values{"query": {"cache  TTL\tin minutes"}, "project": {"shop,bank"}, "level": {"L0, L1"}, "limit": {"2"}, "since": {"2026-01-01"}, "until": {"2027-01-01T00:00:00+02:00"}}.Encode(), &get)
	w.Post("/memory/query", map[string]any{"query": "cache  TTL\tin minutes", "projects": []string{"shop", "bank"}, "level": "L0,L1", "limit": 2, "since": "2026-01-01", "until": "2027-01-01T00:00:00+02:00"}, http.StatusOK, &post)
	get.TookMS, post.TookMS = 0, 0
	if diff := cmp.Diff(get, post); diff != "" || len(get.Results) != 2 {
		t.Errorf("%d results, (-get +post):\n%s", len(get.Results), diff)
	}
	// The fixed names of the answer.
	var raw map[string]any
	w.Get("/memory/query?query=cache+TTL+minutes", &raw)
	for _, k := range []string{"query", "project", "degraded", "took_ms", "results"} {
		if _, ok := raw[k]; !ok {
			t.Errorf("the answer has no %q", k)
		}
	}
	r := raw["results"].([]any)[0].(map[string]any)
	for _, k := range []string{"sha256", "level", "project", "query_id", "text", "score", "components", "reason", "t", "citations"} {
		if _, ok := r[k]; !ok {
			t.Errorf("a result has no %q", k)
		}
	}
}

// many is n values of a parameter.
func many(parameter string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d", parameter, i)
	}
	return b.String()
}

func TestProjects(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	var got struct {
		Projects []struct {
			Project   string
			Parts     int
			Questions []struct{ ID, Question, Stream string }
		}
	}
	w.Get("/memory/projects", &got)
	if len(got.Projects) != 2 || got.Projects[0].Project != "bank" || got.Projects[0].Parts != 1 || got.Projects[1].Parts != 5 || len(got.Projects[1].Questions) != 2 {
		t.Errorf("%+v", got)
	}
	empty := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	if rec := empty.Call(http.MethodGet, "/memory/projects", nil); strings.TrimSpace(rec.Body.String()) != `{"projects":[]}` {
		t.Errorf("nothing known: %s", rec.Body)
	}
	// The mappings by which learn names a project are what a reader gets.
	key := "config/" + functest.Tenant + "/projects.yaml"
	for _, tc := range []struct{ file, want string }{
		{"mappings:\n  - {cwd: /home/*/bank, project: bank}\n", `{"projects":[],"mappings":[{"cwd":"/home/*/bank","project":"bank"}]}`},
		{"mappings:\n  - {cwd: bank, project: bank}\n", `"mappings_error":"project mappings: config/local/projects.yaml:2: `},
	} {
		if _, err := empty.Bucket.Put(t.Context(), key, []byte(tc.file)); err != nil {
			t.Fatal(err)
		}
		if rec := empty.Call(http.MethodGet, "/memory/projects", nil); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), tc.want) {
			t.Errorf("%s: %d %s", tc.file, rec.Code, rec.Body)
		}
	}
}

// lines are the JSON Lines of an answer.
func lines(t *testing.T, w *functest.World, target string) []map[string]any {
	t.Helper()
	rec := w.Call(http.MethodGet, target, nil)
	if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%s: %d %s", target, rec.Code, rec.Body)
	}
	var out []map[string]any
	for l := range strings.Lines(rec.Body.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		out = append(out, m)
	}
	return out
}

func TestWhy(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	talk := w.Admits("shop")[4]
	src, _, err := w.Log.Source(t.Context(), "shop", talk.Source)
	if err != nil {
		t.Fatal(err)
	}
	// A file, its source record and its chunk: the refused gates, with a reason.
	for what, sha := range map[string]memory.SHA{"file": talk.RawSHA256, "source": talk.Source, "chunk": src.Chunks[0]} {
		ls := lines(t, w, "/memory/why?sha256="+string(sha))
		if len(ls) != 2 { // one for each question
			t.Errorf("%s: %d lines", what, len(ls))
		}
		for _, l := range ls {
			if l["type"] != "gate" || l["update"] != false || l["reason"] == "" || l["object"] != talk.Object || l["project"] != "shop" {
				t.Errorf("%s: %v", what, l)
			}
		}
	}
	// A node and a memory: the step that wrote it.
	a := ask(t, w, "what is the cache TTL in minutes?", query.Request{Projects: []string{"shop"}})
	if len(a.Results) < 2 {
		t.Fatalf("%d results", len(a.Results))
	}
	for _, r := range a.Results[:2] {
		ls := lines(t, w, "/memory/why?project=shop&sha256="+string(r.SHA256))
		if len(ls) != 1 || ls[0]["update"] != true || ls[0]["t"] != float64(r.T) || ls[0]["query_id"] != r.QueryID {
			t.Errorf("%s %q: %v", r.Level, r.Text, ls)
		}
	}
	for target, status := range map[string]int{
		"/memory/why":            http.StatusBadRequest,
		"/memory/why?sha256=abc": http.StatusBadRequest,
		"/memory/why?sha256=" + string(memory.SumString("no such")):                      http.StatusNotFound,
		"/memory/why?project=bank&sha256=" + string(talk.RawSHA256):                      http.StatusNotFound,
		"/memory/why?project=unknown&sha256=" + string(talk.RawSHA256):                   http.StatusNotFound,
		"/memory/why?sha256=" + url.QueryEscape(strings.ToUpper(string(talk.RawSHA256))): http.StatusBadRequest,
	} {
		if rec := w.Call(http.MethodGet, target, nil); rec.Code != status {
			t.Errorf("%s: %d, want %d: %s", target, rec.Code, status, rec.Body)
		}
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	if ls := lines(t, w, "/memory/log?project=shop&stream=_admit"); len(ls) != 5 || ls[0]["type"] != "admit" || ls[4]["seq"] != float64(5) {
		t.Errorf("%v", ls)
	}
	// By the question's id, and by type.
	byID := lines(t, w, "/memory/log?project=shop&stream=decisions&type=gate")
	byName := lines(t, w, "/memory/log?project=shop&type=gate&stream="+url.QueryEscape(memory.StreamName("decisions", functest.Wording("decisions"))))
	if diff := cmp.Diff(byName, byID); diff != "" || len(byID) != 5 {
		t.Errorf("%d gates, (-name +id):\n%s", len(byID), diff)
	}
	all := lines(t, w, "/memory/log")
	types := map[any]int{}
	for _, l := range all {
		types[l["type"]]++
	}
	if types["admit"] != 6 || types["run"] != 11 || types["run_end"] != 11 || types["gate"] != 11 || types["evidence"] == 0 || types["memory"] == 0 {
		t.Errorf("%v", types)
	}
	if ls := lines(t, w, "/memory/log?project=shop&type=nothing"); len(ls) != 0 {
		t.Errorf("%v", ls)
	}
	if rec := w.Call(http.MethodGet, "/memory/log?project=unknown", nil); rec.Code != http.StatusNotFound {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// TestOldWordingServes: while a new wording is behind the old stream answers.
func TestOldWordingServes(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	w.Ask("bank", "decisions")
	rec := w.Call(http.MethodPost, "/memory/questions", map[string]any{"project": "bank", "id": "decisions", "question": "What holds?"})
	if rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	es := w.Published() // not delivered yet
	const question = "may an account number be written to a log file?"
	before := ask(t, w, question, query.Request{Projects: []string{"bank"}})
	if len(before.Results) == 0 {
		t.Fatal("nothing serves while the new wording is behind")
	}
	w.Run(es...)
	after := ask(t, w, question, query.Request{Projects: []string{"bank"}})
	if len(after.Results) == 0 || after.Results[0].SHA256 == before.Results[0].SHA256 {
		t.Errorf("the new stream does not serve: %+v", after.Results)
	}
	if _, err := w.Query.Handle(t.Context(), event.New(event.SweepRequested, "test", event.Sweep{})); !fault.Is(err, fault.Invalid) {
		t.Errorf("query handles an event: %v", err)
	}
}

// TestManyQuestions: nine questions that keep the same statements do not crowd
// the answer: as many different ones come as were asked for.
func TestManyQuestions(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	for i := range 12 {
		name := []string{"orders", "refunds", "mails", "prices", "images", "events", "audits", "exports", "imports", "alerts", "taxes", "stock"}[i]
		w.Learned(fmt.Sprintf("shop/%d.jsonl", i), functest.Decision(fmt.Sprintf("s%d", i), day.AddDate(0, 0, i), fmt.Sprintf("We decided to limit the %s queue to %d messages, because its consumer is slow.", name, 100+i)))
	}
	a := ask(t, w, "what is the limit of each message queue?", query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}})
	if len(a.Results) != 10 {
		t.Errorf("%d results, want the 10 of the default limit", len(a.Results))
	}
}
