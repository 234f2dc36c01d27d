package cost_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clock(t *time.Time) func() time.Time { return func() time.Time { return *t } }

func logOver(store *memstore.Store, writer string) *eventlog.Log {
	return eventlog.Open(objstore.NewBucket("mneme", store), "local", writer)
}

// TestLedger: what a call may cost is refused before it is made, what it did cost
// counts, and a new day begins with nothing.
func TestLedger(t *testing.T) {
	t.Parallel()
	now := noon
	log := logOver(memstore.New(), "a")
	l := cost.Open(log, "shop", cost.Budget{USD: 1, Tokens: 1000}, clock(&now))
	most := cost.Amount{USD: .4, Tokens: 300, Calls: 1}
	for range 2 {
		if err := l.Reserve(t.Context(), most); err != nil {
			t.Fatal(err)
		}
		l.Settle(most, cost.Amount{USD: .3, Tokens: 100, Calls: 1})
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := cost.Spent(t.Context(), log, "shop", now)
	if diff := cmp.Diff(cost.Amount{USD: .6, Tokens: 200, Calls: 2}, got, cmpopts.EquateApprox(0, 1e-9)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	err = cost.Open(log, "shop", cost.Budget{USD: 1}, clock(&now)).Reserve(t.Context(), cost.Amount{USD: .41, Calls: 1})
	if !fault.Is(err, fault.Exhausted) || fault.RetryAfterOf(err) != 12*time.Hour || !strings.Contains(err.Error(), "$0.6000 are spent") || !strings.Contains(fault.HintOf(err), "budgets.shop") {
		t.Errorf("%v, after %v, hint %q", err, fault.RetryAfterOf(err), fault.HintOf(err))
	}
	if err := l.Reserve(t.Context(), cost.Amount{Tokens: 801}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("tokens: %v", err)
	}
	now = now.Add(12 * time.Hour)
	if err := l.Reserve(t.Context(), cost.Amount{USD: 1, Tokens: 1000}); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

// TestLedgerAtMidnight: a call that was reserved yesterday gives today nothing back.
func TestLedgerAtMidnight(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ between, after int64 }{ // reserved today before it is settled
		"nothing reserved today": {0, 0},
		"another amount":         {50, 50},
		"the same amount":        {300, 100}, // of two calls each one's figures are as good
	} {
		now := noon
		log := logOver(memstore.New(), "a")
		l := cost.Open(log, "shop", cost.Budget{Tokens: 1000}, clock(&now))
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		most := cost.Amount{Tokens: 300, Calls: 1}
		must(l.Reserve(t.Context(), most))
		now = now.Add(12 * time.Hour)
		if tc.between > 0 {
			must(l.Reserve(t.Context(), cost.Amount{Tokens: tc.between, Calls: 1}))
		}
		l.Settle(most, cost.Amount{Tokens: 100, Calls: 1})
		if tc.between == most.Tokens {
			l.Settle(most, cost.Amount{Tokens: 100, Calls: 1})
		}
		must(l.Close(t.Context()))
		got, err := cost.Spent(t.Context(), log, "shop", now)
		must(err)
		if got.Tokens != tc.after {
			t.Errorf("%s: today %+v, want %d tokens", name, got, tc.after)
		}
		if y, err := cost.Spent(t.Context(), log, "shop", noon); err != nil || y.Tokens < 100 || y.Tokens > 300 {
			t.Errorf("%s: yesterday %+v %v", name, y, err)
		}
	}
}

// TestLedgerGivesNothingAway: a server that counts below zero earns nothing.
func TestLedgerGivesNothingAway(t *testing.T) {
	t.Parallel()
	now := noon
	log := logOver(memstore.New(), "a")
	l := cost.Open(log, "shop", cost.Budget{USD: 1, Tokens: 1000}, clock(&now))
	most := cost.Amount{USD: .5, Tokens: 300, Calls: 1}
	if err := l.Reserve(t.Context(), most); err != nil {
		t.Fatal(err)
	}
	l.Settle(most, cost.Amount{USD: -5, Tokens: -7000, Calls: 1})
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := cost.Spent(t.Context(), log, "shop", now); err != nil || got != (cost.Amount{Calls: 1}) {
		t.Errorf("%+v %v", got, err)
	}
}

// TestLedgerOfADeadProcess: what was reserved and not settled counts as spent.
func TestLedgerOfADeadProcess(t *testing.T) {
	t.Parallel()
	now := noon
	store := memstore.New()
	if err := cost.Open(logOver(store, "a"), "shop", cost.Budget{USD: 1}, clock(&now)).Reserve(t.Context(), cost.Amount{USD: .7}); err != nil {
		t.Fatal(err)
	}
	if err := cost.Open(logOver(store, "b"), "shop", cost.Budget{USD: 1}, clock(&now)).Reserve(t.Context(), cost.Amount{USD: .7}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("%v", err)
	}
}

// TestLedgersSideBySide: many processes never spend more than one could.
func TestLedgersSideBySide(t *testing.T) {
	t.Parallel()
	now := noon
	store := memstore.New()
	var mu sync.Mutex
	var did int64
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			l := cost.Open(logOver(store, fmt.Sprint(i)), "shop", cost.Budget{Tokens: 1000}, clock(&now))
			for range 40 {
				most := cost.Amount{Tokens: 50, Calls: 1}
				err := l.Reserve(t.Context(), most)
				if fault.Is(err, fault.Unavailable) {
					continue // the ledger changed too often: nothing was taken
				}
				if err != nil {
					break
				}
				l.Settle(most, cost.Amount{Tokens: 30, Calls: 1})
				mu.Lock()
				did += 30
				mu.Unlock()
			}
			for l.Close(t.Context()) != nil {
			}
		})
	}
	all.Wait()
	got, err := cost.Spent(t.Context(), logOver(store, "x"), "shop", now)
	if err != nil || got.Tokens != did || did > 1000 || did < 800 {
		t.Errorf("%d tokens used, the ledger says %+v, %v", did, got, err)
	}
}

func gates(n int, each func(i int, g *memory.Gate)) *cost.Figures {
	var f cost.Figures
	for i := range n {
		g := &memory.Gate{T: i + 1, FormatOK: true, Attempt: 1, ReasonCode: "closed", PromptTokens: 1000, PromptTokensOwn: 900, CompletionTokens: 40, LatencyMS: 100, CostUSD: .01, MemoryTokens: 50}
		each(i, g)
		f.Add(g)
	}
	return &f
}

func TestFigures(t *testing.T) {
	t.Parallel()
	f := gates(100, func(i int, g *memory.Gate) {
		if i%20 == 0 {
			g.Update, g.ReasonCode, g.MemorySHA = true, "kept", memory.SumString(fmt.Sprint(i))
		}
		g.MemoryTokens = 50 + i
		switch i {
		case 7:
			g.Pending, g.FormatOK, g.Attempt, g.ReasonCode = true, false, 2, "format"
		case 8:
			g.Pending, g.FormatOK, g.TruncatedByServer = true, false, true
		case 50:
			g.RegateOf = 8
		case 60:
			g.Exit = true
		}
	})
	r := f.Report()
	if r.Steps != 100 || r.Open != 5 || r.UpdateRate != .05 || r.BadFormat != 2 || r.Pending != 1 || r.Cut != 1 || r.Regated != 1 || r.Retried != 1 || r.Exits != 1 || r.FirstExit != 61 || r.Kept != 5 {
		t.Errorf("%+v", r)
	}
	if r.MemorySlope < .999 || r.MemorySlope > 1.001 || r.MemoryP50 != 99 || r.MemoryMax != 149 || r.LatencyP95 != 100 {
		t.Errorf("%+v", r)
	}
	if d := r.USDPerKept - .2; d > 1e-9 || d < -1e-9 || r.TokensPerKept != 100*1040/5 {
		t.Errorf("$%f, %f tokens", r.USDPerKept, r.TokensPerKept)
	}
	if r := new(cost.Figures).Report(); r.Steps != 0 || r.UpdateRate != 0 || r.ByReason == nil {
		t.Errorf("of nothing: %+v", r)
	}
}

// TestEstimateHolds: what work did cost lies in the range that was given before it,
// with nothing known and with a past.
func TestEstimateHolds(t *testing.T) {
	t.Parallel()
	w := cost.Work{Chunks: []int{4000, 5000, 1000}, Frame: 300, Template: 10, MemoryBudget: 1024, Factor: [2]float64{1.1, 1.1}, ReplyTokens: 2048, Split: true, RewriteFrame: 250, PromptUSD: 1e-6, CompletionUSD: 2e-6, RewritePromptUSD: 1e-5, RewriteCompletionUSD: 2e-5}
	bounds := cost.Estimate(w)
	if bounds.Steps != 0 || bounds.Low.Calls != 3 || bounds.High.Calls != 12 || bounds.Low.Seconds != 0 {
		t.Errorf("%+v", bounds)
	}
	if lo := int64((10_000+3*300)*1.1) + 30; bounds.Low.PromptTokens < lo || bounds.Low.PromptTokens > lo+2 {
		t.Errorf("%d, want %d", bounds.Low.PromptTokens, lo)
	}
	w.Seen = gates(200, func(i int, g *memory.Gate) {
		if g.Update = i%10 == 0; g.Update {
			g.CompletionTokens = 300
		}
	})
	past := cost.Estimate(w)
	if past.Steps != 200 || past.High.USD >= bounds.High.USD || past.Low.USD <= bounds.Low.USD || past.Low.Seconds <= 0 || past.High.Calls >= bounds.High.Calls {
		t.Errorf("with a past %+v, without %+v", past, bounds)
	}
	w.Seen, w.Room = nil, [2]int{4000, 1500}
	pieces := cost.Estimate(w)
	// 1+2+1 at the least; 5+7+1 at the most, each twice, by gate and rewrite.
	if pieces.Low.Calls != 4 || pieces.High.Calls != 4*13 || pieces.Low.PromptTokens <= bounds.Low.PromptTokens || pieces.High.PromptTokens <= bounds.High.PromptTokens {
		t.Errorf("in pieces %+v, whole %+v", pieces, bounds)
	}
	if r := cost.Estimate(cost.Work{}); r != (cost.Range{}) {
		t.Errorf("of nothing: %+v", r)
	}
}
