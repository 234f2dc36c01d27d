package catalog_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/questions"
)

func open(t *testing.T, d objstore.Driver) (*catalog.Catalog, *objstore.Bucket) {
	t.Helper()
	b := objstore.NewBucket("mneme", d)
	return catalog.New(b, eventlog.Open(b, "local", "test"), "local"), b
}

func names(ss []catalog.Stream) []string {
	var out []string
	for _, s := range ss {
		out = append(out, s.Name)
	}
	return out
}

func TestDefaultSet(t *testing.T) {
	t.Parallel()
	c, _ := open(t, memstore.New())
	set, etag, err := c.Questions(t.Context(), "shop")
	if err != nil || etag != "" || !set.Equal(questions.Default("shop")) {
		t.Errorf("etag %q %v", etag, err)
	}
	ss, err := c.Streams(t.Context(), "shop")
	if err != nil || len(ss) != len(set.Queries) {
		t.Fatal(len(ss), err)
	}
	for i, s := range ss {
		q := set.Queries[i]
		want := catalog.Stream{Name: q.Stream(), QueryID: q.ID, Question: q.Question, BudgetTokens: 1024} // at L1 the exit gate is not acted on
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		one, err := c.Stream(t.Context(), "shop", s.Name)
		if err != nil || one != s {
			t.Errorf("by name: %+v %v", one, err)
		}
	}
	for _, name := range []string{"gone@00000000", "adhoc-00000000"} {
		if _, err := c.Stream(t.Context(), "shop", name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSaveByETag(t *testing.T) {
	t.Parallel()
	c, _ := open(t, memstore.New())
	set, _, err := c.Questions(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	one, err := set.Add(questions.Query{ID: "databases", Question: "Which databases?"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SaveQuestions(t.Context(), "shop", one, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.SaveQuestions(t.Context(), "shop", one, ""); err != nil && !fault.Is(err, fault.Conflict) {
		t.Errorf("over a file that was there: %v", err)
	}
	got, etag, err := c.Questions(t.Context(), "shop")
	if err != nil || etag == "" || !got.Equal(one) {
		t.Fatalf("%v %q", err, etag)
	}
	two, err := got.Add(questions.Query{ID: "queues", Question: "Which queues?"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SaveQuestions(t.Context(), "shop", two, etag); err != nil {
		t.Fatal(err)
	}
	if err := c.SaveQuestions(t.Context(), "shop", set, etag); !fault.Is(err, fault.Conflict) {
		t.Errorf("by a stale ETag: %v", err)
	}
	if got, _, _ := c.Questions(t.Context(), "shop"); !got.Equal(two) {
		t.Error("the stale edit came through")
	}
}

func TestAdhoc(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	c, _ := open(t, store)
	raw := memory.SumString("part")
	a := catalog.Adhoc{Stream: memory.AdhocStream("How many?", raw), Question: "How many?", RawSHA256: raw, Admit: 7, BudgetTokens: 300}
	if asked, err := c.PutAdhoc(t.Context(), "shop", a); err != nil || asked {
		t.Fatal(err)
	}
	again := a
	again.BudgetTokens = 999 // the stream's budget is the first one's
	if asked, err := c.PutAdhoc(t.Context(), "shop", again); err != nil || !asked {
		t.Fatal(err)
	}
	next, _ := open(t, store) // another process
	want := catalog.Stream{Name: a.Stream, QueryID: a.Stream, Question: "How many?", BudgetTokens: 300, Only: 7}
	for _, c := range []*catalog.Catalog{c, next} {
		s, err := c.Stream(t.Context(), "shop", a.Stream)
		if err != nil || s != want {
			t.Errorf("%+v %v", s, err)
		}
		ss, err := c.Streams(t.Context(), "shop")
		if err != nil || len(ss) != 10 || ss[9] != want {
			t.Errorf("%v %v", names(ss), err)
		}
	}
	// Another project does not see it.
	if ss, err := c.Streams(t.Context(), "bank"); err != nil || len(ss) != 9 {
		t.Errorf("%v %v", names(ss), err)
	}
}

// TestCaughtUp: pointers of several questions move at the same time and none is
// lost; the stream served is that of the pointer.
func TestCaughtUp(t *testing.T) {
	t.Parallel()
	c, _ := open(t, memstore.New())
	var wg sync.WaitGroup
	ids := []string{"decisions", "open", "rules"}
	for _, id := range ids {
		wg.Go(func() {
			var err error
			for range 5 { // a lost race is Unavailable at last: the event comes again
				if err = c.CaughtUp(t.Context(), "shop", id, id+"@00000000"); err == nil {
					return
				}
			}
			t.Error(err)
		})
	}
	wg.Wait()
	s, etag, err := c.Serving(t.Context(), "shop")
	if err != nil || etag == "" {
		t.Fatal(err)
	}
	for _, id := range ids {
		if s.Serving[id] != id+"@00000000" {
			t.Errorf("%s is served by %q", id, s.Serving[id])
		}
	}
	ss, err := c.ServingStreams(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range ss {
		if want, ok := s.Serving[st.QueryID]; ok && st.Name != want {
			t.Errorf("%s: %s serves, the pointer says %s", st.QueryID, st.Name, want)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	c, b := open(t, memstore.New())
	for key, body := range map[string]string{
		"config/local/shop/questions.yaml":            "project: shop\nqueries:\n  - id: a\n    colour: red\n",
		"config/local/projects.yaml":                  "mappings:\n  - cwd: 7\n    colour: red\n",
		"config/local/shop/adhoc/adhoc-00000000.json": "{",
	} {
		if _, err := b.Put(t.Context(), key, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.Questions(t.Context(), "shop"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "questions.yaml:4") {
		t.Errorf("%v", err)
	}
	if _, err := c.Mappings(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "projects.yaml:") {
		t.Errorf("%v", err)
	}
	if _, err := c.Adhocs(t.Context(), "shop"); !fault.Is(err, fault.Corrupt) {
		t.Errorf("%v", err)
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	c, b := open(t, memstore.New())
	if ps, err := c.Known(t.Context()); err != nil || len(ps) != 0 {
		t.Errorf("%v %v", ps, err)
	}
	l := eventlog.Open(b, "local", "other")
	if _, err := l.PutBlob(t.Context(), "shop", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.AppendAdmit(t.Context(), "shop", eventlog.Head{}, memory.Admit{Source: memory.SumString("s"), RawSHA256: memory.SumString("r"), Object: "transcripts/shop/a", ETag: "e", PrefixSHA256: memory.SumString("r"), Chunks: 1}); err != nil {
		t.Fatal(err)
	}
	if ps, err := c.Known(t.Context()); err != nil || len(ps) != 1 || ps[0] != "shop" {
		t.Errorf("%v %v", ps, err)
	}
}

// TestOpenGenerationsTwice: who asks for the same again before it has caught up is
// answered by the stream that is being filled.
func TestOpenGenerationsTwice(t *testing.T) {
	t.Parallel()
	c, _ := open(t, memstore.New())
	pick := func(model string) *models.Pick {
		return &models.Pick{Gate: &models.Server{Endpoint: "here", URL: "http://127.0.0.1:1", Model: model}}
	}
	set := questions.Default("shop")
	id, first := set.Queries[0].ID, set.Queries[0].Stream()
	for i, step := range []struct {
		by     *models.Pick
		caught bool // before it
		want   string
	}{
		{pick("a"), false, ".2"},
		{pick("a"), false, ".2"},
		{pick("b"), false, ".3"},
		{pick("b"), false, ".3"},
		{pick("b"), true, ".4"},
		{nil, false, ".5"},
		{nil, false, ".5"},
	} {
		if step.caught {
			if err := c.CaughtUp(t.Context(), "shop", id, first+".3"); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.OpenGenerations(t.Context(), "shop", func(s catalog.Stream) bool { return s.QueryID == id }, step.by)
		if err != nil || len(got) != 1 || got[0].Name != first+step.want || got[0].Models.Key() != step.by.Key() {
			t.Errorf("step %d: %+v %v, want %s", i, got, err, step.want)
		}
	}
}
