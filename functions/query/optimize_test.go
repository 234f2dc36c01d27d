package query_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/compress"
)

// logged is a world in which somebody pasted a long line.
func logged(t *testing.T, o functest.Options) *functest.World {
	t.Helper()
	w := filled(t, o)
	var b strings.Builder
	b.WriteString("[")
	for i := range 60 {
		state := "drained"
		if i == 31 {
			state = "lost its quorum: 2 of 5 answer"
		}
		fmt.Fprintf(&b, `{"deployment":"striped-walrus","node":%d,"state":"%s"},`, i, state)
	}
	b.WriteString(`{"deployment":"striped-walrus","node":60,"state":"drained"}]`)
	w.Learned("shop/paste.jsonl", functest.Session("paste", day, functest.User(b.String()), functest.Assistant("I see.")))
	return w
}

func answered(t *testing.T, w *functest.World, target string) (query.Answer, string) {
	t.Helper()
	rec := w.Call(http.MethodGet, target, nil)
	var a query.Answer
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%s: %d %v %s", target, rec.Code, err, rec.Body)
	}
	return a, rec.Body.String()
}

// TestOptimizedAnswer: what is long is shortened, the rest is as it was, and what is
// left out can be had under the name that the answer gives.
func TestOptimizedAnswer(t *testing.T) {
	t.Parallel()
	w := logged(t, functest.Options{})
	ask := "/memory/query?project=shop&level=raw&query=" + url.QueryEscape("striped walrus deployment")
	plain, body := answered(t, w, ask)
	if strings.Contains(body, `"omitted"`) || strings.Contains(body, `"tokens"`) || len(plain.Results) == 0 {
		t.Fatalf("who does not ask for less: %s", body)
	}
	short, _ := answered(t, w, ask+"&optimize=true")
	if short.Tokens == nil || short.Tokens.Given*2 > short.Tokens.Found || len(short.Omitted) == 0 {
		t.Fatalf("tokens %+v, omitted %+v\n%+v", short.Tokens, short.Omitted, short.Results)
	}
	if len(short.Results) != len(plain.Results) {
		t.Fatalf("%d results, %d without", len(short.Results), len(plain.Results))
	}
	shown := 0
	for i, r := range short.Results {
		if r.SHA256 != plain.Results[i].SHA256 || r.Score != plain.Results[i].Score {
			t.Errorf("result %d is another", i)
		}
		was := plain.Results[i]
		if r.Shortened {
			shown++
			if !strings.Contains(r.Text, "lost its quorum: 2 of 5 answer") || len(r.Text)*2 > len(was.Text) {
				t.Errorf("text %q", r.Text)
			}
			r.Text, r.Shortened = was.Text, false
		}
		for k := range r.Citations {
			if c := &r.Citations[k]; c.QuoteIsText { // not given twice
				if c.Quote != "" {
					t.Errorf("quote %q", c.Quote)
				}
				c.Quote, c.QuoteIsText = was.Text, false
			}
		}
		if d := cmp.Diff(was, r); d != "" {
			t.Error(d)
		}
	}
	if shown == 0 {
		t.Error("nothing is shortened")
	}
	for _, om := range short.Omitted {
		method, target, _ := strings.Cut(om.Get, " ")
		if om.Of != short.Results[0].SHA256 || om.Field != "text" || om.Count == 0 || om.Unit != "elements" {
			t.Errorf("%+v", om)
		}
		rec := w.Call(method, target, nil)
		var o query.Original
		if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || rec.Code != http.StatusOK || o.Text == nil || *o.Text != plain.Results[0].Citations[0].Quote {
			t.Errorf("%s: %d %v %s", target, rec.Code, err, rec.Body)
		}
	}
	once, _ := answered(t, w, ask+"&optimize=true")
	again, _ := answered(t, w, ask+"&optimize=true")
	again.TookMS = once.TookMS
	if d := cmp.Diff(once, again); d != "" {
		t.Errorf("asked again: %s", d)
	}
	exact, _ := answered(t, w, "/memory/query?project=shop&level=raw&optimize=true&query="+url.QueryEscape("the exact output of the striped walrus deployment"))
	if len(exact.Results) == 0 {
		t.Error("nothing found")
	}
	for _, r := range exact.Results {
		if r.Shortened {
			t.Error("the exact text was asked for")
		}
	}
}

// TestBudget: texts and quotes together are never over it, what has a place keeps the
// order of rank, and what has none can be had.
func TestBudget(t *testing.T) {
	t.Parallel()
	w := logged(t, functest.Options{})
	ask := "/memory/query?project=shop&query=" + url.QueryEscape("how many retries, which cache TTL and which driver did we decide?")
	plain, _ := answered(t, w, ask)
	if len(plain.Results) < 3 {
		t.Fatalf("%d results", len(plain.Results))
	}
	given := 0
	for _, budget := range []int{50, 60, 80, 120, 200, 1000} {
		a, _ := answered(t, w, fmt.Sprintf("%s&budget_tokens=%d", ask, budget))
		sum, at := 0, 0
		for _, r := range a.Results {
			sum += compress.Tokens(r.Text)
			for _, c := range r.Citations {
				sum += compress.Tokens(c.Quote)
			}
			for at < len(plain.Results) && plain.Results[at].SHA256 != r.SHA256 {
				at++
			}
			if at == len(plain.Results) {
				t.Errorf("budget %d: a result that was not found, or in another order", budget)
			}
		}
		if sum > budget || a.Tokens.Given != sum || sum < given {
			t.Errorf("budget %d: %d tokens, said %+v, %d before", budget, sum, a.Tokens, given)
		}
		given = sum
		missing := 0
		for _, om := range a.Omitted {
			if om.Unit != "results" {
				continue
			}
			missing += om.Count
			rec := w.Call(http.MethodGet, strings.TrimPrefix(om.Get, "GET "), nil)
			var o query.Original
			if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || o.Text == nil || strings.Count(*o.Text, "\n") != om.Count {
				t.Errorf("%s: %v %s", om.Get, err, rec.Body)
				continue
			}
			for line := range strings.Lines(*o.Text) {
				var r query.Result
				if err := json.Unmarshal([]byte(line), &r); err != nil || r.Text == "" || len(r.Citations) == 0 || r.Citations[0].Quote == "" {
					t.Errorf("%v: %s", err, line)
				}
			}
		}
		if len(a.Results)+missing != len(plain.Results) {
			t.Errorf("budget %d: %d given, %d told, of %d", budget, len(a.Results), missing, len(plain.Results))
		}
	}
	if given == 0 {
		t.Error("nothing was ever given")
	}
}

// TestOptimizerOff: with the switch off, and without a store, nothing names an original.
func TestOptimizerOff(t *testing.T) {
	t.Parallel()
	off := logged(t, functest.Options{Optimizer: compress.Options{Off: true}})
	ask := "/memory/query?project=shop&level=raw&optimize=true&query=" + url.QueryEscape("striped walrus deployment")
	a, _ := answered(t, off, ask)
	if a.Tokens.Given != a.Tokens.Found || len(a.Omitted) != 0 {
		t.Errorf("switched off: %+v %+v", a.Tokens, a.Omitted)
	}
	kept := logged(t, functest.Options{OriginalsOff: true})
	a, body := answered(t, kept, ask)
	if a.Tokens.Given >= a.Tokens.Found || len(a.Omitted) == 0 || strings.Contains(body, "original ") {
		t.Errorf("originals are off: %+v %s", a.Tokens, body)
	}
	for _, om := range a.Omitted {
		if om.Get != "" || om.Hash != "" || om.Count == 0 {
			t.Errorf("%+v", om)
		}
	}
}

func TestBudgetRefused(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	for target, where := range map[string]string{
		"budget_tokens=0": "budget_tokens", "budget_tokens=49": "budget_tokens", "budget_tokens=x": "budget_tokens", "budget_tokens=-5": "budget_tokens", "budget_tokens=1000001": "budget_tokens", "optimize=perhaps": "optimize",
	} {
		rec := w.Call(http.MethodGet, "/memory/query?query=x&"+target, nil)
		if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), `"where":"`+where+`"`) {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}
