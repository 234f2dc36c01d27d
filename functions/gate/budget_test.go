package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
)

// TestBudget: no call is made that could break the day's budget; what was decided
// stays, other days go on, and the end is that of a run without a budget.
func TestBudget(t *testing.T) {
	t.Parallel()
	calm := modelWorld(t, functest.Options{Models: modelOf(perfect(false), nil)})
	calm.Learned("shop/a.jsonl", functest.Brief("s1", modelDay, 20))
	want := calm.Hashes()

	m := perfect(false)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const tokens = 90_000 // of the coarse counter: some five calls
	w := modelWorld(t, functest.Options{
		Models: modelOf(m, nil), Now: func() time.Time { return now },
		Budget: func(p string) cost.Budget { return map[string]cost.Budget{"shop": {Tokens: tokens}}[p] },
	})
	w.Learned("shop/a.jsonl", functest.Brief("s1", modelDay, 20))
	days := 0
	for ; days < 50; days++ {
		if spent := m.prompt + m.completion; spent > (days+1)*tokens {
			t.Fatalf("%d tokens by day %d", spent, days+1)
		}
		p := w.Gate.Paused()
		if len(p) == 0 {
			break
		}
		if len(p) != 1 || p[0].Project != "shop" || !p[0].Until.Equal(now.Truncate(24*time.Hour).Add(24*time.Hour)) || !strings.Contains(p[0].Reason, "budget is spent") || p[0].Hint == "" {
			t.Fatalf("%+v", p)
		}
		calls := len(m.asked)
		w.Sweep()
		if n, err := w.Gate.Behind(t.Context()); n != 0 || err != nil || len(m.asked) != calls {
			t.Fatalf("%d behind, %v, %d calls while it pauses", n, err, len(m.asked)-calls)
		}
		now = now.Add(24 * time.Hour)
		w.Sweep()
	}
	if days < 2 {
		t.Errorf("the budget lasted for the whole session: %d days", days)
	}
	if got := w.Hashes(); got.Log != want.Log || got.Index != want.Index {
		t.Errorf("%+v, want %+v", got, want)
	}
	spent, err := cost.Spent(t.Context(), w.Log, "shop", now)
	if err != nil || spent.Tokens == 0 || spent.Tokens > tokens {
		t.Errorf("%+v %v", spent, err)
	}
}

// TestBudgetOfFailures: a call that no model read costs nothing; of one that may have
// been answered the most that it can have cost is counted.
func TestBudgetOfFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		plays   []llmtest.Play
		counted bool
	}{
		"a limit":                   {[]llmtest.Play{llmtest.TooMany(""), llmtest.TooMany("")}, false},
		"a full queue, then a name": {[]llmtest.Play{llmtest.QueueFull(), llmtest.UnknownModel()}, false},
		"broken off":                {[]llmtest.Play{llmtest.BreaksOff()}, true},
		"closed, then a limit":      {[]llmtest.Play{llmtest.Reset(), llmtest.TooMany(""), llmtest.TooMany("")}, true},
		"an answer nobody reads":    {[]llmtest.Play{llmtest.InvalidJSON()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			s.Play(tc.plays...)
			ep, err := endpoint.Open(endpoint.Config{URL: s.URL, Kind: endpoint.OpenAI, MaxRetries: 1, FirstPause: time.Millisecond, MaxPause: 2 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			client, err := openaiapi.New(ep, openaiapi.Config{})
			if err != nil {
				t.Fatal(err)
			}
			w := modelWorld(t, functest.Options{Models: modelOf(client, nil), Now: func() time.Time { return modelDay }, Budget: func(string) cost.Budget { return cost.Budget{USD: 5} }})
			es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Brief("s1", modelDay, 2)))
			if err != nil {
				t.Fatal(err)
			}
			runs, err := w.Gate.Handle(t.Context(), es[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Gate.Handle(t.Context(), runs[0]); err == nil || len(s.Calls()) < len(tc.plays)-1 {
				t.Errorf("%d calls: %v", len(s.Calls()), err)
			}
			spent, err := cost.Spent(t.Context(), w.Log, "shop", modelDay)
			if err != nil || (spent.USD > 0) != tc.counted {
				t.Errorf("%+v %v", spent, err)
			}
		})
	}
}
