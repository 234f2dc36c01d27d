package catalog_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// TestRefusalIsCleared: a refusal stands until it is reopened, whoever sets it.
func TestRefusalIsCleared(t *testing.T) {
	t.Parallel()
	c, _ := open(t, memstore.New())
	a := catalog.Adhoc{Stream: "adhoc-1", BudgetTokens: 300}
	if _, err := c.PutAdhoc(t.Context(), "shop", a); err != nil {
		t.Fatal(err)
	}
	check := func(want catalog.Refusal, refused bool) {
		t.Helper()
		if got, is, err := c.Refused(t.Context(), "shop", "adhoc-1"); err != nil || got != want || is != refused {
			t.Errorf("%+v %v %v, want %+v", got, is, err, want)
		}
	}
	check(catalog.Refusal{}, false)
	if was, err := c.Reopen(t.Context(), "shop", a); was || err != nil {
		t.Errorf("%v %v", was, err)
	}
	for _, r := range []catalog.Refusal{{Reason: "a", Hint: "b"}, {Reason: "a", Hint: "b"}, {Reason: "c"}} {
		if err := c.Refuse(t.Context(), "shop", "adhoc-1", r); err != nil {
			t.Fatal(err)
		}
		check(r, true)
	}
	for _, want := range []bool{true, false} {
		if was, err := c.Reopen(t.Context(), "shop", a); was != want || err != nil {
			t.Errorf("%v %v", was, err)
		}
		check(catalog.Refusal{}, false)
	}
}

// TestReopenRebudgets: who asks a refused question again may give another budget, and
// every process sees it; once it is decided with one, that stays.
func TestReopenRebudgets(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	c, b := open(t, store)
	other, _ := open(t, store)
	a := catalog.Adhoc{Stream: "adhoc-1", Question: "How many?", Admit: 7, BudgetTokens: 4096}
	if _, err := c.PutAdhoc(t.Context(), "shop", a); err != nil {
		t.Fatal(err)
	}
	check := func(want int) {
		t.Helper()
		for _, c := range []*catalog.Catalog{c, other} {
			if s, err := c.Stream(t.Context(), "shop", a.Stream); err != nil || s.BudgetTokens != want {
				t.Errorf("%+v %v, want %d", s, err, want)
			}
		}
	}
	ask := func(budget int, refused bool) {
		t.Helper()
		if refused {
			if err := other.Refuse(t.Context(), "shop", a.Stream, catalog.Refusal{Reason: "too long"}); err != nil {
				t.Fatal(err)
			}
		}
		a.BudgetTokens = budget
		if was, err := c.Reopen(t.Context(), "shop", a); err != nil || was != refused {
			t.Errorf("%v %v", was, err)
		}
	}
	check(4096)
	ask(1024, false) // it was not refused
	check(4096)
	ask(1024, true)
	check(1024)
	log := eventlog.Open(b, "local", "test")
	if _, err := log.Append(t.Context(), "shop", a.Stream, eventlog.Head{}, []eventlog.Record{&memory.Run{
		V: memory.Version, Type: memory.TypeRun, Level: memory.L1, Run: memory.SumString("run"), Stream: a.Stream, Question: a.Question,
		Cause: memory.Cause{Kind: memory.CausePart, Ref: string(memory.SumString("part"))}, Policy: "p", PromptVersion: "-", MemoryBudget: 1024,
	}}); err != nil {
		t.Fatal(err)
	}
	ask(512, true)
	check(1024)
}
