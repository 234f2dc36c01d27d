package project_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/vault"
)

const vaultPrefix = "derived/vault/" + functest.Tenant + "/shop/"

// story is a project with a synthesis, a statement that was replaced, and text that
// would be Markdown.
func story(t *testing.T, o functest.Options) *functest.World {
	t.Helper()
	w := functest.New(t, o)
	w.AskUp("shop", false, "decisions", "limits")
	for i, text := range []string{
		"We decided to keep the limit of queue orders at 100 messages, because the consumer falls behind.",
		"From now on the limit of queue orders is 250 messages instead of 100, because the consumer got faster.",
		"We decided to sign releases with the new key, never with [[the old one]] or #legacy %%keys%%.",
	} {
		w.Learned("shop/"+string(rune('a'+i))+".jsonl", functest.Decision("s"+string(rune('1'+i)), day.AddDate(0, 0, i), text))
	}
	return w
}

// standingPages reads the projection: page by path, without its marker.
func standingPages(t *testing.T, w *functest.World) map[string]string {
	t.Helper()
	out := map[string]string{}
	for info, err := range w.Bucket.List(t.Context(), vaultPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), info.Key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if p := strings.TrimPrefix(info.Key, vaultPrefix); p != "_state.json" {
			out[p] = string(b)
		}
	}
	return out
}

// renderedPages renders them from the log.
func renderedPages(t *testing.T, w *functest.World, evidence bool) map[string]string {
	t.Helper()
	v, err := w.Project.Vault(t.Context(), "shop", evidence)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range v.Files {
		out[f.Path] = string(f.Bytes)
	}
	for _, p := range vault.Check(v.Files) {
		t.Error(p)
	}
	return out
}

// The projection follows the log without being asked, and is that of another world
// with the same uploads whose events came twice in any order.
func TestVaultFollowsTheLog(t *testing.T) {
	t.Parallel()
	w := story(t, reference())
	want := renderedPages(t, w, false)
	if diff := cmp.Diff(want, standingPages(t, w)); diff != "" {
		t.Errorf("what stands in the bucket (-rendered +standing):\n%s", diff)
	}
	for page, holds := range map[string]string{
		"index.md":     "\n## Synthesis\n\n*" + functest.SynthesisWording + "*\n\n- ",
		"decisions.md": "~~We decided to keep the limit of queue orders at 100 messages",
		"timeline.md":  "\n## 2026-02-02\n",
		"limits.md":    "\n## Provenance\n",
	} {
		if !strings.Contains(want[page], holds) {
			t.Errorf("%s does not hold %q:\n%s", page, holds, want[page])
		}
	}
	if strings.Contains(want["index.md"], "names no source") || !strings.Contains(want["index.md"], "chunks_seen: 2\n") {
		t.Errorf("the synthesis cites not:\n%s", want["index.md"])
	}
	for seed := range uint64(4) {
		o := functest.New(t, reference())
		o.AskUp("shop", false, "decisions", "limits")
		for i, text := range []string{
			"We decided to keep the limit of queue orders at 100 messages, because the consumer falls behind.",
			"From now on the limit of queue orders is 250 messages instead of 100, because the consumer got faster.",
			"We decided to sign releases with the new key, never with [[the old one]] or #legacy %%keys%%.",
		} {
			o.Shuffled(seed, 2, o.Put("shop/"+string(rune('a'+i))+".jsonl", functest.Decision("s"+string(rune('1'+i)), day.AddDate(0, 0, i), text)))
		}
		o.Sweep()
		if diff := cmp.Diff(want, standingPages(t, o)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// Dropped, damaged or killed in the middle of a writing, the pages come back byte for
// byte.
func TestVaultComesBack(t *testing.T) {
	t.Parallel()
	w := story(t, reference())
	want := standingPages(t, w)
	drop := func(only string) {
		t.Helper()
		for info, err := range w.Bucket.List(t.Context(), vaultPrefix+only) {
			if err == nil {
				err = w.Bucket.Delete(t.Context(), info.Key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put := func(path, text string) {
		t.Helper()
		if _, err := w.Bucket.Put(t.Context(), vaultPrefix+path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	rebuild := func() {
		t.Helper()
		if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		do   func()
		cure func()
	}{
		{"all dropped, swept", func() { drop("") }, func() { w.Sweep() }},
		{"one page dropped, swept", func() { drop("limits.md") }, func() { w.Sweep() }},
		{"its marker dropped", func() { drop("_state.json") }, func() { w.Sweep() }},
		{"its marker damaged", func() { put("_state.json", "{") }, func() { w.Sweep() }},
		{"a page cut off", func() { put("limits.md", "---") }, func() { w.Sweep() }},
		{"a page that there is not", func() { put("extra.md", "x") }, func() { w.Sweep() }},
		{"all dropped, rebuilt", func() { drop("") }, rebuild},
		{"a page changed, as long as it was, rebuilt", func() { put("limits.md", strings.Repeat("x", len(want["limits.md"]))) }, rebuild},
	} {
		tc.do()
		tc.cure()
		if diff := cmp.Diff(want, standingPages(t, w)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	// A store that fails at the n-th writing of a page.
	for n := 1; n <= 5; n++ {
		drop("")
		left := n
		w.Stores.Fail(func(c functest.Call) error {
			if c.Op == memstore.OpPut && strings.HasPrefix(c.Key, vaultPrefix) {
				if left--; left == 0 {
					return fault.New(fault.Unavailable, "cut")
				}
			}
			return nil
		}, nil)
		_, err := w.Project.Rebuild(t.Context(), nil)
		w.Stores.Fail(nil, nil)
		if err == nil {
			t.Errorf("writing %d failed and the rebuild says nothing", n)
		}
		w.Sweep()
		if diff := cmp.Diff(want, standingPages(t, w)); diff != "" {
			t.Errorf("cut at writing %d (-want +got):\n%s", n, diff)
		}
	}
}

// What changes is written, and no more; a state that stands costs no page.
func TestVaultIsIncremental(t *testing.T) {
	t.Parallel()
	w := story(t, reference())
	pages := func(do func()) (out []string) {
		w.Stores.Calls()
		do()
		for _, c := range w.Stores.Calls() {
			if p, ok := strings.CutPrefix(c.Key, vaultPrefix); ok && c.Op == memstore.OpPut {
				out = append(out, p)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	if got := pages(func() { w.Sweep() }); len(got) > 0 {
		t.Errorf("nothing is new, and %v are written", got)
	}
	var out project.NotesAnswer
	w.Post("/memory/vault/notes", project.NotesRequest{Project: "shop", Notes: []project.NoteEdit{{Note: "limits", Base: memory.SumString(""), Text: "mine"}}}, http.StatusOK, &out)
	if got := pages(func() { w.Sweep() }); !slices.Equal(got, []string{"_state.json", "limits.md"}) {
		t.Errorf("a note on one page: %v are written", got)
	}
}

// A region that people write is in the log, in every page from then on, and in no
// index; each that can not be kept is named and holds up no other.
func TestVaultNotes(t *testing.T) {
	t.Parallel()
	now := day
	o := reference()
	o.Now = func() time.Time { now = now.Add(time.Minute); return now }
	w := story(t, o)
	before := w.Hashes()
	empty := memory.SumString("")
	const mine = "\n  my words\r\n\u0645\u0631\u062d\u0628\u0627 [[x]]\n---\n<!-- /mneme:derived -->\n## Notes\nno end"
	var out project.NotesAnswer
	w.Post("/memory/vault/notes", project.NotesRequest{Project: "shop", Notes: []project.NoteEdit{
		{Note: "decisions", Base: empty, Text: mine, SHA256: memory.SumString(mine)},
		{Note: "nothing/such", Base: empty, Text: "x"},
		{Note: "limits", Base: empty, Text: strings.Repeat("x", memory.MaxNoteBytes+1)},
		{Note: "limits", Base: empty, Text: "not what it says", SHA256: empty},
		{Note: memory.NoteTimeline, Base: empty, Text: "key ghp_0123456789abcdefghijABCDEFGHIJ456789"},
		{Note: memory.NoteIndex, Base: empty, Text: ""},
		{Note: "decisions", Base: memory.SumString(mine), Text: mine},
	}}, http.StatusOK, &out)
	got := ""
	for _, n := range out.Notes {
		got += n.Note + " " + n.Outcome + " " + n.Reason + "\n"
	}
	want := "decisions saved \n" +
		"nothing/such refused no such page has notes\n" +
		"limits refused 1048577 bytes, at most 1048576 are kept\n" +
		"limits refused the text is not what its sha256 says: it is not UTF-8\n" +
		"_timeline saved \n_index unchanged \ndecisions unchanged \n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(out.Notes[4].Redacted) != 1 {
		t.Errorf("the secret is not named: %+v", out.Notes[4])
	}
	w.Sweep()
	pages := standingPages(t, w)
	if !strings.HasSuffix(pages["decisions.md"], "\n## Notes\n"+mine) {
		t.Errorf("decisions.md:\n%s", pages["decisions.md"])
	}
	if strings.Contains(pages["timeline.md"], "ghp_") || !strings.Contains(pages["timeline.md"], "[REDACTED:") {
		t.Errorf("timeline.md:\n%s", pages["timeline.md"])
	}
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pages, standingPages(t, w)); diff != "" {
		t.Errorf("after a rebuild (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before, w.Hashes()); diff != "" {
		t.Errorf("notes count in hashes (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(pages, renderedPages(t, functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical}), false)); diff != "" {
		t.Errorf("of a process that starts anew (-before +after):\n%s", diff)
	}

	// The question gets another id: its notes go along.
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/shop/questions.yaml", []byte("project: shop\nqueries:\n  - id: choices\n    question: "+functest.Wording("decisions")+"\n")); err != nil {
		t.Fatal(err)
	}
	w.Sweep()
	pages = standingPages(t, w)
	if !strings.HasSuffix(pages["choices.md"], "\n## Notes\n"+mine) || pages["decisions.md"] != "" || pages["limits.md"] != "" {
		t.Errorf("after another id: %q", pages["choices.md"])
	}
}

// Notes stay with a question whatever it is called and however it is worded, in the
// pages, in the projection and after a rebuild.
func TestVaultNotesFollowOn(t *testing.T) {
	t.Parallel()
	w := story(t, reference())
	const mine = "mine, all along\n"
	var out project.NotesAnswer
	w.Post("/memory/vault/notes", project.NotesRequest{Project: "shop", Notes: []project.NoteEdit{{Note: "decisions", Base: memory.SumString(""), Text: mine}}}, http.StatusOK, &out)
	for _, q := range [][2]string{
		{"choices", functest.Wording("decisions")}, {"choices", "What was decided?"}, {"picks", "What was decided?"},
		{"picks", "What was decided, all in all?"}, {"last", "What was decided, all in all?"},
	} {
		if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/shop/questions.yaml", []byte("project: shop\nqueries:\n  - id: "+q[0]+"\n    question: "+q[1]+"\n")); err != nil {
			t.Fatal(err)
		}
		w.Sweep()
		pages := standingPages(t, w)
		if !strings.HasSuffix(pages[q[0]+".md"], "\n## Notes\n"+mine) {
			t.Fatalf("as %s, %q: %q", q[0], q[1], slices.Sorted(maps.Keys(pages)))
		}
		if diff := cmp.Diff(pages, renderedPages(t, w, false)); diff != "" {
			t.Errorf("as %s, %q (-standing +rendered):\n%s", q[0], q[1], diff)
		}
		if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pages, standingPages(t, w)); diff != "" {
			t.Errorf("as %s, %q: after a rebuild (-before +after):\n%s", q[0], q[1], diff)
		}
	}
}

func TestVaultHTTP(t *testing.T) {
	t.Parallel()
	w := story(t, reference())
	var l project.VaultListing
	w.Get("/memory/vault?project=shop&evidence=true", &l)
	if l.Folder != "shop" || len(l.Pages) < 7 || !slices.IsSortedFunc(l.Pages, func(a, b vault.Listed) int { return strings.Compare(a.Path, b.Path) }) {
		t.Fatalf("%+v", l)
	}
	want := renderedPages(t, w, true)
	var paths []string
	for _, p := range l.Pages {
		paths = append(paths, p.Path)
		rec := w.Call(http.MethodGet, "/memory/vault?"+url.Values{"project": {"shop"}, "evidence": {"true"}, "path": {p.Path}, "sha256": {string(p.SHA256)}}.Encode(), nil)
		if rec.Code != 200 || rec.Body.String() != want[p.Path] || rec.Header().Get("ETag") != `"`+string(p.SHA256)+`"` || memory.SumString(want[p.Path]) != p.SHA256 || len(want[p.Path]) != p.SizeBytes {
			t.Errorf("%s: %d", p.Path, rec.Code)
		}
	}
	rec := w.Call(http.MethodPost, "/memory/vault/pages", project.PagesRequest{Project: "shop", Evidence: true, Paths: append(paths, "nothing.md")})
	n := 0
	for sc := bufio.NewScanner(rec.Body); sc.Scan(); n++ {
		var p project.PageText
		if err := json.Unmarshal(sc.Bytes(), &p); err != nil || p.Path != paths[n] || p.Text != want[p.Path] || p.SHA256 != memory.SumString(p.Text) {
			t.Fatalf("line %d: %v %+v", n, err, p)
		}
	}
	if n != len(paths) {
		t.Errorf("%d of %d pages", n, len(paths))
	}
	for _, tc := range []struct {
		method, target, body string
		code                 int
		want                 string
	}{
		{"GET", "/memory/vault", "", 400, "not a project name"},
		{"GET", "/memory/vault?project=../x", "", 400, "not a project name"},
		{"GET", "/memory/vault?project=other", "", 404, "nothing is known"},
		{"GET", "/memory/vault?project=shop&path=x.md", "", 404, "no page"},
		{"GET", "/memory/vault?project=shop&path=../index.md", "", 404, "no page"},
		{"GET", "/memory/vault?project=shop&evidence=maybe", "", 400, "neither"},
		{"POST", "/memory/vault/notes", "{", 400, "body"},
		{"POST", "/memory/vault/notes", `{"project":"shop","nots":[]}`, 400, "nots"},
		{"POST", "/memory/vault/notes", `{"project":"other","notes":[]}`, 404, "nothing is known"},
		{"POST", "/memory/vault/notes", `{"project":"shop","notes":[` + strings.Repeat(`{"note":"a"},`, 1000) + `{"note":"a"}]}`, 400, "at most 1000"},
		{"POST", "/memory/vault/pages", `{"project":"shop","paths":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, 400, "at most 1000"},
		{"POST", "/memory/vault/pages", `{"project":"other","paths":[]}`, 404, "nothing is known"},
	} {
		rec := w.Call(tc.method, tc.target, tc.body)
		if rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.want) {
			t.Errorf("%s %s: %d %s", tc.method, tc.target, rec.Code, rec.Body)
		}
	}
}

// A question file that people broke keeps nothing else from being applied.
func TestVaultOfBrokenQuestions(t *testing.T) {
	t.Parallel()
	w := story(t, reference())
	want := standingPages(t, w)
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/shop/questions.yaml", []byte("project: shop\nqueries: [")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Errorf("the rebuild fails by it: %v", err)
	}
	if rec := w.Call(http.MethodGet, "/memory/vault?project=shop", nil); rec.Code != 400 || !strings.Contains(rec.Body.String(), "questions.yaml") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if diff := cmp.Diff(want, standingPages(t, w)); diff != "" {
		t.Errorf("the pages that stood (-want +got):\n%s", diff)
	}
}
