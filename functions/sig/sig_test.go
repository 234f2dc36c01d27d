package sig_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/functions/sig"
	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/lookup/lookuptest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/signature"
)

// eresolve is a failing npm ci of a package, as npm 10 prints it; day moves what a rerun moves.
func eresolve(pkg string, day int) string {
	return fmt.Sprintf(`$ npm ci
npm error code ERESOLVE
npm error ERESOLVE unable to resolve dependency tree
npm error
npm error While resolving: shop@1.0.%d
npm error Found: react@17.0.2
npm error node_modules/react
npm error
npm error Could not resolve dependency:
npm error peer react@"^15 || ^16" from %s@5.4.3
npm error node_modules/%s
npm error
npm error A complete log of this run can be found in: /home/u%d/.npm/_logs/2026-03-0%dT10_00_00_000Z-debug-0.log
`, day, pkg, pkg, day, day)
}

func world(t *testing.T) *functest.World {
	return functest.New(t, functest.Options{Live: true, Lessons: lookuptest.NewMem()})
}

func learn(w *functest.World, project, tool, log, solution string, status int) (out sig.Learned) {
	w.T.Helper()
	w.Post("/memory/sig/lessons", sig.LearnRequest{Project: project, Tool: tool, Solution: solution, Log: sig.Log{Log: log}}, status, &out)
	return out
}

func explain(w *functest.World, b sig.ExplainRequest) (out sig.Explained) {
	w.T.Helper()
	w.Post("/memory/sig/explain", b, http.StatusOK, &out)
	return out
}

func TestTold(t *testing.T) {
	t.Parallel()
	w := world(t)
	const pin = "Pin react to 16 in package.json; react-mask has no newer release."
	first := learn(w, "shop", "npm", eresolve("react-mask", 1), pin, http.StatusCreated)
	if !first.Stored || !first.Visible || first.Tool != "npm" || first.Rule != "npm.eresolve" || first.Solution != pin {
		t.Errorf("stored %+v", first)
	}
	// The same said again, of the failure of another day, writes nothing.
	again := learn(w, "shop", "npm", eresolve("react-mask", 2), "  "+pin+"\n", http.StatusOK)
	if again.Stored || again.Lesson != first.Lesson {
		t.Errorf("said again: %+v", again)
	}
	n := 0
	for _, err := range w.Log.RecordKeys(t.Context(), "shop", eventlog.Lessons) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d records on the shelf, want 1", n)
	}

	for name, c := range map[string]struct {
		ask sig.ExplainRequest
		by  cures.By
	}{
		"the failure of another day": {sig.ExplainRequest{Tool: "npm", Log: sig.Log{Log: eresolve("react-mask", 3)}}, cures.ByDetail},
		"its bytes":                  {sig.ExplainRequest{Log: sig.Log{Data: []byte(eresolve("react-mask", 3))}}, cures.ByDetail},
		"its class":                  {sig.ExplainRequest{Tool: "npm", Log: sig.Log{Log: eresolve("vue-tabs", 3)}}, cures.ByClass},
		"sig_sha":                    {sig.ExplainRequest{SigSHA: first.SigSHA}, cures.ByClass},
		"detail_sha":                 {sig.ExplainRequest{SigSHA: strings.ToUpper(first.DetailSHA)}, cures.ByDetail},
		"words":                      {sig.ExplainRequest{Tool: "npm", Query: "unable to resolve dependency tree"}, cures.BySymptom},
		"words of one who can not":   {sig.ExplainRequest{Tool: "npm", Query: "cannot resolve dependency tree"}, cures.BySymptom},
		"words that name the tool":   {sig.ExplainRequest{Query: "NPM ERR! ERESOLVE unable to resolve dependency tree"}, cures.BySymptom},
	} {
		c.ask.Project = "shop"
		got := explain(w, c.ask)
		if !got.Found || got.By != c.by || got.Count != 1 || len(got.Solutions) != 1 || got.Solutions[0].Solution != pin || got.Solutions[0].Source != "person" || got.Solutions[0].SuccessRate != nil {
			t.Errorf("%s: %+v", name, got)
		}
		c.ask.Project = "blog"
		if got := explain(w, c.ask); got.Found || got.Count != 0 || len(got.Solutions) != 0 {
			t.Errorf("%s, asked of another project: %+v", name, got)
		}
	}
	if got := explain(w, sig.ExplainRequest{Project: "shop", Tool: "npm", Query: "resolve dependency tree was found"}); got.Found {
		t.Errorf("other words: %+v", got)
	}
	var byURL sig.Explained
	w.Get("/memory/sig/explain?project=shop&sig_sha="+first.SigSHA, &byURL)
	if !byURL.Found {
		t.Error("by GET: nothing")
	}
}

// This very failure beats its class, and its class what people say of it.
func TestTiers(t *testing.T) {
	t.Parallel()
	w := world(t)
	learn(w, "shop", "npm", eresolve("react-mask", 1), "pin react", http.StatusCreated)
	learn(w, "shop", "npm", eresolve("vue-tabs", 1), "upgrade vue-tabs", http.StatusCreated)
	for pkg, want := range map[string][]string{"react-mask": {"pin react"}, "vue-tabs": {"upgrade vue-tabs"}, "other": {"upgrade vue-tabs", "pin react"}} {
		var got []string
		for _, s := range explain(w, sig.ExplainRequest{Project: "shop", Log: sig.Log{Log: eresolve(pkg, 2)}, Query: "npm unable to resolve dependency tree"}).Solutions {
			got = append(got, s.Solution)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pkg, got, want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	w := world(t)
	a := learn(w, "shop", "npm", eresolve("react-mask", 1), "pin react", http.StatusCreated)
	b := learn(w, "shop", "npm", eresolve("react-mask", 1), "use --legacy-peer-deps", http.StatusCreated)
	tell := func(l memory.SHA, use string, worked bool, status int) {
		t.Helper()
		var out sig.Told
		w.Post("/memory/sig/outcomes", sig.OutcomeRequest{Project: "shop", Lesson: string(l), Worked: &worked, Use: use}, status, &out)
		if status == http.StatusCreated && !out.Visible {
			t.Error("told, and not counted")
		}
	}
	solutions := func() (out []string) {
		for _, s := range explain(w, sig.ExplainRequest{Project: "shop", SigSHA: a.DetailSHA}).Solutions {
			rate := "-"
			if s.SuccessRate != nil {
				rate = fmt.Sprintf("%.2f", *s.SuccessRate)
			}
			out = append(out, fmt.Sprintf("%s %s %d/%d", s.Solution, rate, s.Successes, s.Uses))
		}
		return out
	}
	tell(a.Lesson, "run-1", false, http.StatusCreated)
	tell(b.Lesson, "run-1", true, http.StatusCreated)
	tell(b.Lesson, "run-1", true, http.StatusCreated) // the same use
	if got, want := solutions(), []string{"use --legacy-peer-deps - 1/1", "pin react - 0/1"}; !slices.Equal(got, want) {
		t.Errorf("under three uses: %q, want %q", got, want)
	}
	tell(b.Lesson[:8], "run-2", true, http.StatusCreated)
	tell(b.Lesson, "run-3", false, http.StatusCreated)
	if got, want := solutions(), []string{"use --legacy-peer-deps 0.67 2/3", "pin react - 0/1"}; !slices.Equal(got, want) {
		t.Errorf("three uses: %q, want %q", got, want)
	}
	tell(memory.SumString("nothing"), "x", true, http.StatusNotFound)
	tell(a.Lesson, "no name", true, http.StatusBadRequest)
	tell("abc", "x", true, http.StatusBadRequest)
	tell("../../credentials", "x", true, http.StatusBadRequest)
	for _, body := range []string{`{"project":"shop","lesson":"` + string(a.Lesson) + `"}`, `{"project":"blog","lesson":"` + string(a.Lesson) + `","worked":true}`} {
		if rec := w.Call(http.MethodPost, "/memory/sig/outcomes", body); rec.Code < 400 {
			t.Errorf("%s: %d", body, rec.Code)
		}
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	w := world(t)
	const secret = "hunter2hunter2"
	log := "fatal: unable to access 'https://bob:" + secret + "@git.example.com/x.git/': Could not resolve host: git.example.com\n"
	got := learn(w, "shop", "git", log, "export DB_PASSWORD="+secret+" and try again", http.StatusCreated)
	if strings.Contains(got.Failure+got.Solution, secret) {
		t.Errorf("answered %+v", got)
	}
	recs, err := w.Log.Records(t.Context(), "shop", eventlog.Lessons, got.Lesson)
	if err != nil {
		t.Fatal(err)
	}
	if line := string(recs[0].(*eventlog.Opaque).Line); strings.Contains(line, secret) || !strings.Contains(line, "[REDACTED:") {
		t.Errorf("stored %s", line)
	}
	// A rotated secret is the same failure.
	if e := explain(w, sig.ExplainRequest{Project: "shop", Tool: "git", Log: sig.Log{Log: strings.ReplaceAll(log, secret, "correcthorse9")}}); e.By != cures.ByDetail {
		t.Errorf("after a rotation: %+v", e)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	w := world(t)
	for name, b := range map[string]string{
		"no project":         `{"solution":"x","log":"npm error code ERESOLVE"}`,
		"bad project":        `{"project":"../x","solution":"x","log":"npm error code ERESOLVE"}`,
		"no solution":        `{"project":"shop","solution":" ","log":"npm error code ERESOLVE"}`,
		"no log":             `{"project":"shop","solution":"x"}`,
		"nothing in it":      `{"project":"shop","solution":"x","log":"all is well\nbye"}`,
		"only that it fails": `{"project":"shop","tool":"shell","solution":"x","log":"0 errors, 0 failures\nexit status 1"}`,
		"unknown field":      `{"project":"shop","solution":"x","log":"npm error code ERESOLVE","extra":1}`,
		"no tool":            `{"project":"shop","tool":"a b","solution":"x","log":"npm error code ERESOLVE"}`,
		"too long":           `{"project":"shop","log":"npm error code ERESOLVE","solution":"` + strings.Repeat("x", 9<<10) + `"}`,
		"cut off":            `{"project":"shop"`,
		"zip":                `{"project":"shop","solution":"x","data":"UEsDBBQAAAAIAA=="}`,
	} {
		if rec := w.Call(http.MethodPost, "/memory/sig/lessons", b); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	for name, b := range map[string]string{
		"no project": `{"tool":"npm","query":"x"}`, "nothing asked": `{"project":"shop"}`, "no sha": `{"project":"shop","sig_sha":"abc"}`,
	} {
		if rec := w.Call(http.MethodPost, "/memory/sig/explain", b); rec.Code != http.StatusBadRequest {
			t.Errorf("explain, %s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if e := explain(w, sig.ExplainRequest{Project: "shop", Query: "it failed"}); e.Found || e.Why == "" {
		t.Errorf("words that say nothing: %+v", e)
	}
}

// mined uploads a session and gives the log of one of its failures, as a later run shows it.
func mined(t *testing.T, w *functest.World, project string) {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash("../../shared/lesson/testdata/claude-code.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w.Learned(project+"/session.jsonl", b)
}

const laterRun = "--- FAIL: TestTotalRounds (0.01s)\n    total_test.go:31: Total() = 1099, want 1100\nFAIL\nFAIL\tgithub.com/ana/shop/cart\t0.011s\nFAIL\n"

// A lesson mined from a session is found by a later log of the same failure, with spans,
// in this project alone; whatever happens to the events.
func TestMined(t *testing.T) {
	t.Parallel()
	w := world(t)
	mined(t, w, "shop")
	got := explain(w, sig.ExplainRequest{Project: "shop", Tool: "go", Log: sig.Log{Log: laterRun}})
	if !got.Found || got.By != cures.ByDetail || got.Solutions[0].Origin != "mined" || got.Solutions[0].Outcome != "passed" || got.Solutions[0].Uses != 1 || got.Solutions[0].Successes != 1 {
		t.Fatalf("%+v", got)
	}
	s := got.Solutions[0]
	roles := map[string]bool{}
	for _, sp := range s.Spans {
		roles[sp.Role] = true
		if sp.Object != functest.Inbox+"/shop/session.jsonl" || sp.End <= sp.Start {
			t.Errorf("span %+v", sp)
		}
	}
	if !roles["failed"] || !roles["change"] || !roles["passed"] {
		t.Errorf("spans show %v", roles)
	}
	if got := explain(w, sig.ExplainRequest{Project: "blog", Tool: "go", Log: sig.Log{Log: laterRun}}); got.Found {
		t.Errorf("another project: %+v", got)
	}
	var c query.Context
	w.Post("/memory/context", query.ContextRequest{Project: "shop", Tool: "go", Log: laterRun}, http.StatusOK, &c)
	if c.Tier != 1 || c.Confidence != "high" || c.By != cures.ByDetail || len(c.Results) == 0 || len(c.Results[0].Citations) < 3 || c.Why == "" {
		t.Errorf("context: %+v", c)
	}
	w.Post("/memory/context", query.ContextRequest{Project: "blog", Tool: "go", Log: laterRun}, http.StatusOK, &c)
	if c.Tier != 0 || c.Confidence != "none" || len(c.Results) != 0 {
		t.Errorf("context of another project: %+v", c)
	}

	// The index is a projection: events repeated in any order, lost, or a rebuild, all come
	// to the same rows.
	want, n, err := w.Lessons.Hash(t.Context(), functest.Tenant)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	same := func(how string, ix lookup.Index) {
		t.Helper()
		if h, m, err := ix.Hash(t.Context(), functest.Tenant); h != want || m != n || err != nil {
			t.Errorf("%s: %d rows %s (%v), want %d %s", how, m, h, err, n, want)
		}
	}
	lost := functest.New(t, functest.Options{From: w, Lessons: lookuptest.NewMem()})
	if b, err := lost.Project.Behind(t.Context()); b == 0 || err != nil {
		t.Error("lessons that are not applied are not behind", b, err)
	}
	lost.Sweep()
	same("after a sweep", lost.Lessons)
	rebuilt := functest.New(t, functest.Options{From: w, Lessons: lookuptest.NewMem()})
	if _, err := rebuilt.Project.RebuildOnly(t.Context(), "lessons", nil); err != nil {
		t.Fatal(err)
	}
	same("rebuilt", rebuilt.Lessons)
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	same("rebuilt in place", w.Lessons)
	for seed := range uint64(3) {
		sh := functest.New(t, functest.Options{Lessons: lookuptest.NewMem()})
		b, err := os.ReadFile(filepath.FromSlash("../../shared/lesson/testdata/claude-code.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		sh.Shuffled(seed, 2, sh.Put("shop/session.jsonl", b))
		if _, m, err := sh.Lessons.Hash(t.Context(), functest.Tenant); m != n || err != nil {
			t.Errorf("order %d: %d rows, want %d (%v)", seed, m, n, err)
		}
	}
}

// A lesson goes with its source; the receipt names it, and the sweep does not bring it back.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w := world(t)
	mined(t, w, "shop")
	told := learn(w, "shop", "npm", eresolve("react-mask", 1), "pin react", http.StatusCreated)
	keys := explain(w, sig.ExplainRequest{Project: "shop", Tool: "go", Log: sig.Log{Log: laterRun}}).Solutions
	if len(keys) == 0 {
		t.Fatal("nothing to forget")
	}
	rec := w.Call(http.MethodPost, "/memory/forget", map[string]any{"project": "shop", "source": "session.jsonl"})
	if rec.Code >= 300 || !strings.Contains(rec.Body.String(), string(keys[0].Lesson)) {
		t.Fatalf("forget: %d %s", rec.Code, rec.Body)
	}
	w.Sweep()
	w.Run(event.New(event.SignatureExtracted, "test", event.Lessons{Tenant: functest.Tenant, Project: "shop", Keys: []memory.SHA{keys[0].Lesson}}))
	if got := explain(w, sig.ExplainRequest{Project: "shop", Tool: "go", Log: sig.Log{Log: laterRun}}); got.Found {
		t.Errorf("found after it was forgotten: %+v", got)
	}
	if got := explain(w, sig.ExplainRequest{Project: "shop", SigSHA: told.SigSHA}); !got.Found {
		t.Error("a lesson of another source was forgotten")
	}
	recs, err := w.Log.Records(t.Context(), "shop", eventlog.Lessons, keys[0].Lesson)
	if err != nil {
		t.Fatal(err)
	}
	if _, erased, ok, err := eventlog.AsLesson(recs[0]); !erased || !ok || err != nil {
		t.Error("its words stand in the log", erased, ok, err)
	}
	if line := string(recs[0].(*eventlog.Opaque).Line); strings.Contains(line, "Total()") || strings.Contains(line, "go test") || strings.Contains(line, "total.go") {
		t.Errorf("its words stand in the log: %s", line)
	}
	w.Hashes() // the log is whole
}

// The labelled logs: each learned from one log of a pair is found, as this very failure, by
// the other.
func TestPairs(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	b, err := os.ReadFile(filepath.Join(root, "logs", "manifest.json"))
	if err != nil {
		t.Skip("no labelled logs here: set MNEME_SHARED")
	}
	rows, err := signature.ParseManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	groups := map[[2]string][]signature.Labelled{}
	for _, r := range rows {
		if stem, ok := pairOf(r.File); ok && r.RootLine != nil {
			g := [2]string{r.Tool, stem}
			groups[g] = append(groups[g], r)
		}
	}
	w := world(t)
	read := func(r signature.Labelled) []byte {
		b, err := os.ReadFile(filepath.Join(root, "logs", filepath.FromSlash(r.File)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	asked, unusable := 0, 0
	for g, rows := range groups {
		if len(rows) < 2 {
			continue
		}
		solution := "cure of " + g[0] + "/" + g[1]
		rec := w.Call(http.MethodPost, "/memory/sig/lessons", sig.LearnRequest{Project: "shop", Tool: g[0], Solution: solution, Log: sig.Log{Data: read(rows[0])}})
		if rec.Code >= 300 {
			unusable++
			continue
		}
		for _, r := range rows[1:] {
			asked++
			got := explain(w, sig.ExplainRequest{Project: "shop", Tool: r.Tool, Log: sig.Log{Data: read(r)}})
			if got.By != cures.ByDetail || !slices.ContainsFunc(got.Solutions, func(s lesson.Solution) bool { return s.Solution == solution }) {
				t.Errorf("%s, learned from %s: by %q, %d solutions", r.File, rows[0].File, got.By, len(got.Solutions))
			}
		}
	}
	t.Logf("%d logs asked of %d groups; %d groups whose log is not learned from", asked, len(groups), unusable)
	if asked < 50 {
		t.Errorf("only %d logs asked", asked)
	}
}

// pairOf is the name that two runs of one failure share: x.a.log and x.b.log.
func pairOf(file string) (string, bool) {
	for _, run := range []string{".a.", ".b."} {
		if before, after, ok := strings.Cut(file, run); ok {
			return before + "." + after, true
		}
	}
	return "", false
}
