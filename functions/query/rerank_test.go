package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
)

// cross is a cross-encoder by a function; what it does instead of answering is
// set by fail.
type cross struct {
	score func(document string) float64
	fail  func(ctx context.Context) ([]float64, error)

	mu    sync.Mutex
	asked [][]string
}

func (c *cross) Rerank(ctx context.Context, model, question string, documents []string) ([]float64, error) {
	c.mu.Lock()
	c.asked = append(c.asked, documents)
	c.mu.Unlock()
	if model != "cross" || question == "" {
		return nil, fmt.Errorf("model %q, question %q", model, question)
	}
	if c.fail != nil {
		return c.fail(ctx)
	}
	out := make([]float64, len(documents))
	for i, d := range documents {
		out[i] = c.score(d)
	}
	return out, nil
}

// without names what an answer had to do without.
func without(a query.Answer) (out []string) {
	for _, d := range a.Degraded {
		out = append(out, d.Leg)
	}
	return out
}

// likes scores a text that holds words with 5, any other with -5.
func likes(words string) func(string) float64 {
	return func(d string) float64 {
		if strings.Contains(d, words) {
			return 5
		}
		return -5
	}
}

// ttl is asked with the level said, so that every statement stands for itself.
const ttl = "is the cache TTL 20 minutes or 10 minutes, as stale prices cost us an incident and the price feed is slow, and do we cap retries?"

func texts(a query.Answer) []string {
	var out []string
	for _, r := range a.Results {
		out = append(out, r.Text)
	}
	return out
}

func TestReranked(t *testing.T) {
	t.Parallel()
	q := query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}}
	plain := filled(t, functest.Options{})
	want := texts(ask(t, plain, ttl, q))
	last := want[len(want)-1]
	if len(want) < 3 || strings.Contains(last, "TTL") {
		t.Fatalf("the fixture finds %q", want)
	}
	c := &cross{score: likes(last)}
	w := filled(t, functest.Options{Reranker: c})
	a := ask(t, w, ttl, q)
	if d := cmp.Diff(append([]string{last}, want[:len(want)-1]...), texts(a)); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if d := cmp.Diff([][]string{want}, c.asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	for i, r := range a.Results {
		score, was := -5.0, i
		if i == 0 {
			score, was = 5, len(want)
		}
		words := fmt.Sprintf("place %d by fusion, %d by the reranker (%g", was, i+1, score)
		if r.Components.Rerank == nil || *r.Components.Rerank != score || !strings.Contains(r.Reason, words) {
			t.Errorf("%d: %v, %q, want %q", i, r.Components.Rerank, r.Reason, words)
		}
	}
	if len(a.Degraded) != 0 {
		t.Errorf("degraded %v", a.Degraded)
	}
	// A limit cuts what is reranked, not what goes to the reranker.
	q.Limit = 1
	if a := ask(t, w, ttl, q); len(a.Results) != 1 || a.Results[0].Text != last {
		t.Errorf("the best of all: %q", texts(a))
	}
	// Of the first two alone the last is not one.
	q.Limit = 0
	two := filled(t, functest.Options{Reranker: &cross{score: likes(last)}, RerankTop: 2})
	a = ask(t, two, ttl, q)
	if d := cmp.Diff(want, texts(a)); d != "" {
		t.Errorf("top 2 (-want +got):\n%s", d)
	}
	for i, r := range a.Results {
		if (r.Components.Rerank != nil) != (i < 2) || strings.Contains(r.Reason, "reranker") != (i < 2) {
			t.Errorf("top 2, %d: %+v", i, r)
		}
	}
}

// The stale statement never stands before the one that replaced it, however the
// cross-encoder likes it.
func TestRerankedSuperseded(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{Reranker: &cross{score: likes("TTL is 10 minutes, never")}})
	a := ask(t, w, ttl, query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}})
	got := texts(a)
	newer := slices.IndexFunc(got, func(s string) bool { return strings.Contains(s, "TTL is 20 minutes") })
	older := slices.IndexFunc(got, func(s string) bool { return strings.Contains(s, "TTL is 10 minutes, never") })
	if newer != 0 || older != 1 {
		t.Fatalf("the newer stands at %d, the older at %d: %q", newer, older, got)
	}
	if r := a.Results[0]; *r.Components.Rerank != -5 || !strings.Contains(r.Reason, "it replaces "+a.Results[1].SHA256.Short()+", which has 5") {
		t.Errorf("%v %q", *r.Components.Rerank, r.Reason)
	}
}

// What the floor refuses is not asked about, whatever the cross-encoder would say.
func TestRerankedNonsense(t *testing.T) {
	t.Parallel()
	c := &cross{score: func(string) float64 { return 1 }}
	w := filled(t, functest.Options{Reranker: c})
	for _, q := range []string{"zorble quux fnordwick blathering", "zebra striped button"} { // the second: seen, not kept
		a := ask(t, w, q, query.Request{})
		for _, r := range a.Results {
			if r.Kept || r.Components.Rerank != nil {
				t.Errorf("%q: %+v", q, r)
			}
		}
	}
	if len(c.asked) != 0 {
		t.Errorf("asked %q", c.asked)
	}
}

// A reranker that is down, late or wrong leaves the answer as it is without one,
// and the answer says so. Without one it does not speak of one.
func TestRerankDegraded(t *testing.T) {
	t.Parallel()
	const question = "cap retries at 5 attempts, because the upstream bans us, and the cache TTL"
	bytesOf := func(t *testing.T, w *functest.World, degraded ...string) string {
		t.Helper()
		a := ask(t, w, question, query.Request{Projects: []string{"shop"}})
		if len(a.Results) < 2 {
			t.Fatalf("the fixture finds %d results", len(a.Results))
		}
		if d := cmp.Diff(degraded, without(a)); d != "" {
			t.Errorf("degraded (-want +got):\n%s", d)
		}
		a.TookMS, a.Degraded = 0, nil
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, fail := range map[string]func(ctx context.Context) ([]float64, error){
		"down":       func(context.Context) ([]float64, error) { return nil, errors.New("down") },
		"late":       func(ctx context.Context) ([]float64, error) { <-ctx.Done(); return nil, ctx.Err() },
		"too few":    func(context.Context) ([]float64, error) { return []float64{1}, nil },
		"no numbers": func(context.Context) ([]float64, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := func() functest.Options {
					return functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()}
				}
				plain := bytesOf(t, filled(t, o()))
				if strings.Contains(plain, "rerank") {
					t.Errorf("%s", plain)
				}
				with := o()
				with.Reranker = &cross{fail: fail}
				w := filled(t, with)
				start := time.Now()
				if d := cmp.Diff(plain, bytesOf(t, w, "rerank")); d != "" {
					t.Errorf("(-without +with):\n%s", d)
				}
				if took := time.Since(start); name == "late" && took != 2*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A long text goes in excerpts, whole, and has the best one's score.
func TestRerankLongTexts(t *testing.T) {
	t.Parallel()
	c := &cross{score: likes("needle")}
	w := functest.New(t, functest.Options{Reranker: c})
	w.Ask("shop", "decisions")
	var says []functest.Say
	for i := range 30 {
		says = append(says, functest.User(fmt.Sprintf("Please read file number %d of the compass module once more, and show me its last lines in full.", i)), functest.Assistant("Here they are."))
	}
	says = append(says, functest.User("And the needle of the compass module?"))
	w.Learned("shop/0.jsonl", functest.Session("s", day, says...))
	w.Learned("shop/1.jsonl", functest.Decision("d", day, "We decided that the compass module stands in the file compass.toml, because operators ask for it."))
	a := ask(t, w, "where does the compass module stand?", query.Request{Levels: []memory.Level{memory.L0, memory.LevelRaw}})
	if len(a.Results) != 3 || a.Results[0].Level != memory.LevelRaw || *a.Results[0].Components.Rerank != 5 {
		t.Fatalf("%d results: %+v", len(a.Results), a.Results)
	}
	if n := len(c.asked[0]); n < 5 { // two short texts and a long one
		t.Errorf("%d excerpts: %q", n, c.asked[0])
	}
}

func TestExcerpts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		n     int
		whole bool
	}{
		"nothing":            {" ", 1, true},
		"short":              {"we cap retries", 1, true},
		"words":              {strings.Repeat("retry ", 500), 3, true},
		"one word":           {strings.Repeat("é", 1500), 3, true},
		"a long word inside": {"a " + strings.Repeat("b", 2000) + " c", 2, true},
		"a book":             {strings.Repeat("retry ", 5000), 8, false},
	} {
		got := query.Excerpts(tc.text)
		if len(got) != tc.n {
			t.Errorf("%s: %d excerpts, want %d", name, len(got), tc.n)
		}
		for _, e := range got {
			if len(e) > 1200 || !utf8.ValidString(e) {
				t.Errorf("%s: an excerpt of %d bytes", name, len(e))
			}
		}
		bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if (bare(strings.Join(got, "")) == bare(tc.text)) != tc.whole {
			t.Errorf("%s: whole %t", name, !tc.whole)
		}
	}
}
