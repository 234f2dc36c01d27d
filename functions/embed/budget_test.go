package embed_test

import (
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/cost"
)

// TestBudget: no text is embedded that could break the day's budget; what waits is
// embedded on later days, and the end is that of a run without a budget.
func TestBudget(t *testing.T) {
	t.Parallel()
	calm := world(t, functest.Options{})
	gated(t, calm, 9)
	calm.Sweep()
	want := calm.Hashes()

	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const tokens = 150
	w := world(t, functest.Options{Batch: 1, Now: func() time.Time { return now }, EmbedBudget: func(string) cost.Budget { return cost.Budget{Tokens: tokens} }})
	gated(t, w, 9)
	w.Sweep()
	days := 0
	for ; days < 60 && len(w.Embed.Paused()) > 0; days++ {
		if p := w.Embed.Paused(); len(p) != 1 || p[0].Project != "shop" || !p[0].Spent || !p[0].Until.Equal(now.Truncate(24*time.Hour).Add(24*time.Hour)) {
			t.Fatalf("%+v", p)
		}
		spent, err := cost.Spent(t.Context(), w.Log, "shop", now)
		if err != nil || spent.Tokens > tokens || spent.Calls == 0 {
			t.Fatalf("day %d: %+v %v", days, spent, err)
		}
		if n, err := w.Embed.Behind(t.Context()); n != 0 || err != nil {
			t.Errorf("%d behind while it waits, %v", n, err)
		}
		calls := w.Embed.Calls()
		w.Sweep()
		if w.Embed.Calls() != calls {
			t.Error("a call while it waits")
		}
		now = now.Add(24 * time.Hour)
		w.Sweep()
	}
	if days < 2 || days == 60 {
		t.Errorf("it took %d days", days)
	}
	if got := w.Hashes(); got.Index != want.Index {
		t.Errorf("%s, want %s", got.Index, want.Index)
	}
}
