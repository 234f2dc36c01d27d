package models_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/models"
)

func TestBudgets(t *testing.T) {
	t.Parallel()
	c, err := models.Parse("models.yaml", []byte(whole+"budgets:\n  default: {usd: 1.5}\n  shop: {usd: 3, tokens: 2000000}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.BudgetOf("shop") != (models.Budget{USD: 3, Tokens: 2_000_000}) || c.BudgetOf("other") != (models.Budget{USD: 1.5}) {
		t.Errorf("%+v", c.Budgets)
	}
	if c, _ := models.Parse("models.yaml", []byte(whole)); c.BudgetOf("shop") != (models.Budget{}) {
		t.Errorf("%+v", c.Budgets)
	}
	for name, tc := range map[string]struct{ budgets, want string }{
		"a bad project":         {"Shop Floor: {usd: 1}", `models.yaml:20: budgets: "Shop Floor" is not a project name`},
		"no bound":              {"shop: {}", "the budget of shop bounds nothing"},
		"tokens that are none":  {"shop: {tokens: many}", `tokens must be a number`},
		"an unknown field":      {"shop: {eur: 1}", `unknown field "eur"`},
		"dollars below nothing": {"shop: {usd: -1}", "usd must be dollars a day, not"},
	} {
		if _, err := models.Parse("models.yaml", []byte(whole+"budgets:\n  "+tc.budgets+"\n")); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unpriced := strings.Replace(whole, "  qwen/qwen-2.5-72b-instruct: {p", "  another: {p", 1)
	if _, err := models.Parse("models.yaml", []byte(unpriced+"budgets: {default: {usd: 1}}\n")); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "models.yaml:19: model qwen/qwen-2.5-72b-instruct: a budget in dollars bounds nothing without the model's price") || !strings.Contains(fault.HintOf(err), "prices") {
		t.Errorf("no price: %v", err)
	}
	if _, err := models.Parse("models.yaml", []byte(unpriced+"budgets: {default: {tokens: 100000}}\n")); err != nil {
		t.Errorf("tokens need no price: %v", err)
	}
}

func TestBudgetFromEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{"MNEME_GATE_MODEL": "m", "MNEME_BUDGET_USD": "2.5", "MNEME_BUDGET_TOKENS": "100000"}
	c, err := models.FromEnv(func(k string) string { return env[k] })
	if err != nil || c.BudgetOf("any") != (models.Budget{USD: 2.5, Tokens: 100_000}) {
		t.Errorf("%+v %v", c.Budgets, err)
	}
	for _, bad := range []string{"MNEME_BUDGET_USD", "MNEME_BUDGET_TOKENS"} {
		if _, err := models.FromEnv(func(k string) string {
			if k == bad {
				return "much"
			}
			return env[k]
		}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	env["LLM_API_BASE"], env["LLM_API_KEY"] = "https://openrouter.ai/api/v1", "k"
	if _, err := models.FromEnv(func(k string) string { return env[k] }); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.HintOf(err), "MNEME_MODELS") {
		t.Errorf("a hosted model without a price: %v", err)
	}
}
