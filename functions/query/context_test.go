package query_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/lookup/lookuptest"
	"github.com/mneme-ai/mneme/shared/lookup/sqlitelookup"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/signature"
)

// refusedBy is a failing git clone; day moves what a rerun moves.
func refusedBy(host string, day int) string {
	return fmt.Sprintf("2026-03-0%dT10:00:00.0000000Z Cloning into '/tmp/x%d'...\n2026-03-0%dT10:00:01.0000000Z fatal: unable to access 'https://%s/x.git/': Could not resolve host: %s\n", day, day, day, host, host)
}

func tell(w *functest.World, project, tool, log, solution string) {
	w.T.Helper()
	var out struct{ Stored bool }
	w.Post("/memory/sig/lessons", map[string]string{"project": project, "tool": tool, "log": log, "solution": solution}, http.StatusCreated, &out)
}

const talk = `{"type":"user","sessionId":"s1","uuid":"u1","timestamp":"2026-03-01T09:00:00Z","cwd":"/x","message":{"role":"user","content":"We decided that the staging database is called walrus, and that every deploy to it needs a backup first."}}
{"type":"assistant","sessionId":"s1","uuid":"u2","parentUuid":"u1","timestamp":"2026-03-01T09:01:00Z","cwd":"/x","message":{"role":"assistant","content":[{"type":"text","text":"Noted."}]}}
`

func TestContextTiers(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Live: true, Lessons: lookuptest.NewMem()})
	w.Learned("shop/s.jsonl", []byte(talk))
	w.Learned("shop/guide.md", []byte("# Guide\n\nWe decided that the canteen serves pickled herring on Thursdays, because the fishmonger delivers then.\n"))
	tell(w, "shop", "git", refusedBy("git.example.com", 1), "Start the VPN.")

	for name, c := range map[string]struct {
		ask        query.ContextRequest
		tier       int
		confidence string
		by         cures.By
		text       string
	}{
		"this very failure": {query.ContextRequest{Tool: "git", Log: refusedBy("git.example.com", 2)}, 1, "high", cures.ByDetail, "Start the VPN."},
		"in bytes":          {query.ContextRequest{Data: []byte(refusedBy("git.example.com", 2))}, 1, "high", cures.ByDetail, "Start the VPN."},
		"its line as words": {query.ContextRequest{Tool: "git", Query: "fatal: unable to access 'https://git.example.com/x.git/': Could not resolve host: git.example.com"}, 1, "high", cures.ByDetail, "Start the VPN."},
		"a log beats words": {query.ContextRequest{Tool: "git", Log: refusedBy("git.example.com", 2), Query: "what is the staging database called?"}, 1, "high", cures.ByDetail, "Start the VPN."},
		"what was said":     {query.ContextRequest{Query: "what is the staging database called?"}, 2, "medium", "", "walrus"},
		"documents":         {query.ContextRequest{Query: "when does the canteen serve pickled herring?"}, 3, "low", "", "herring"},
		"nothing":           {query.ContextRequest{Query: "quantum chromodynamics lattice"}, 0, "none", "", ""},
		"a log of nothing":  {query.ContextRequest{Log: "all is well\n"}, 0, "none", "", ""},
	} {
		c.ask.Project = "shop"
		var got query.Context
		w.Post("/memory/context", c.ask, http.StatusOK, &got)
		if got.Tier != c.tier || got.Confidence != c.confidence || got.By != c.by || got.Why == "" || len(got.Degraded) > 0 {
			t.Errorf("%s: tier %d, %s, by %q, %q, %v", name, got.Tier, got.Confidence, got.By, got.Why, got.Degraded)
		}
		if c.text != "" && !slices.ContainsFunc(got.Results, func(r query.ContextResult) bool { return strings.Contains(r.Text, c.text) }) {
			t.Errorf("%s: %q is not among %d results", name, c.text, len(got.Results))
		}
		for _, r := range got.Results {
			if len(r.Citations) == 0 || r.Citations[0].Object == "" || r.Source == "" {
				t.Errorf("%s: a result without a source: %+v", name, r)
			}
		}
		// Another project of the same tenant.
		c.ask.Project = "blog"
		w.Post("/memory/context", c.ask, http.StatusOK, &got)
		if got.Tier != 0 || len(got.Results) != 0 {
			t.Errorf("%s, asked of another project: tier %d, %d results", name, got.Tier, len(got.Results))
		}
	}
	var byURL query.Context
	w.Get("/memory/context?project=shop&tool=git&query=cannot+access+https://git.example.com/x.git/+could+not+resolve+host+git.example.com", &byURL)
	if byURL.Tier != 1 {
		t.Errorf("by GET: %+v", byURL)
	}
	for _, body := range []string{
		`{}`, `{"project":"shop"}`, `{"query":"x"}`, `{"project":"../x","query":"x"}`, `{"project":"shop","query":"x","limit":1000}`, `{"project":"shop","query":"x","tool":"a b"}`,
		`{"project":"shop","query":"x","other":1}`, `{"project":"shop","data":"UEsDBBQAAAAIAA=="}`, `{"project":"shop","query":"` + strings.Repeat("x", 5000) + `"}`, `{"project":`,
	} {
		if rec := w.Call(http.MethodPost, "/memory/context", body); rec.Code != http.StatusBadRequest {
			t.Errorf("%.60s: %d %s", body, rec.Code, rec.Body)
		}
	}
}

// Without an index of lessons the answer says so, and the other tiers answer.
func TestContextWithoutLessons(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Live: true})
	w.Learned("shop/s.jsonl", []byte(talk))
	var got query.Context
	w.Post("/memory/context", query.ContextRequest{Project: "shop", Query: "what is the staging database called?"}, http.StatusOK, &got)
	if got.Tier != 2 || len(got.Degraded) == 0 || got.Degraded[0].Leg != "lessons" {
		t.Errorf("%+v", got)
	}
}

// BenchmarkContextTier1 is a whole call with a log of 50 KB, over an index of so many
// lessons.
func BenchmarkContextTier1(b *testing.B) {
	const n = 100_000
	ix, err := sqlitelookup.Open(b.Context(), filepath.Join(b.TempDir(), "lessons.sqlite"))
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	w := functest.New(b, functest.Options{Lessons: ix})
	log := strings.Repeat("2026-03-01T10:00:00.0000000Z ok  \tgithub.com/ana/shop/cart\t0.004s\n", 750) + refusedBy("git.example.com", 3)
	res, err := signature.Extract(signature.FromBytes([]byte(log)), signature.Options{Tool: "git"})
	if err != nil {
		b.Fatal(err)
	}
	for at := 0; at < n; {
		var batch lookup.Batch
		for ; at < n && len(batch.Rows) < 5000; at++ {
			l := lesson.Of(&res)
			l.Text, l.Outcome, l.Origin, l.Time = fmt.Sprint("cure ", at), lesson.Told, lesson.Person, "2026-03-01T10:00:00Z"
			if at > 0 {
				l.DetailSHA, l.SigSHA, l.SymSHAs = string(memory.SumString(fmt.Sprint("d", at))), string(memory.SumString(fmt.Sprint("c", at))), nil
			}
			row, err := cures.RowOf(memory.SumString(fmt.Sprint("key", at)), &l)
			if err != nil {
				b.Fatal(err)
			}
			batch.Rows = append(batch.Rows, row)
		}
		if err := ix.Apply(b.Context(), lookup.Scope{Tenant: functest.Tenant, Project: "shop"}, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Run(fmt.Sprintf("%dKB-log/100k-lessons", len(log)>>10), func(b *testing.B) {
		b.ReportAllocs()
		var times []time.Duration
		for b.Loop() {
			start := time.Now()
			c, err := w.Query.Context(b.Context(), query.ContextRequest{Project: "shop", Tool: "git", Log: log})
			if err != nil || c.Tier != 1 || c.By != cures.ByDetail {
				b.Fatal(c.Tier, c.By, err)
			}
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	})
}
