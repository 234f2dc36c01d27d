package models

import (
	"net/url"
	"strconv"

	"github.com/mneme-ai/mneme/shared/baseurl"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// Budget bounds what a project's model calls cost in a day; 0 is no bound.
type Budget struct {
	USD    float64
	Tokens int64
}

// DefaultBudget is the key of the budget of projects that have none of their own.
const DefaultBudget = "default"

// maxTokensPerDay is far over what a day of calls can read.
const maxTokensPerDay = 1_000_000_000_000

// BudgetOf is a project's budget.
func (c *Config) BudgetOf(project string) Budget {
	if b, ok := c.Budgets[project]; ok {
		return b
	}
	return c.Budgets[DefaultBudget]
}

// budgets reads `budgets:`; inDollars is the first one that bounds dollars.
func (c *Config) budgets(f strictyaml.File, n *strictyaml.Node) (inDollars *strictyaml.Node, err error) {
	c.Budgets = map[string]Budget{}
	err = f.Each(n, "budgets", "a mapping of projects", func(k, v *strictyaml.Node) error {
		if !memory.ValidName(k.Value) {
			return f.Fault(k, "default, or a project: [a-z0-9][a-z0-9._-]{0,62}", "budgets: %q is not a project name", k.Value)
		}
		var b Budget
		err := f.Mapping(v, "a budget", strictyaml.Fields{
			"usd": func(n *strictyaml.Node) (err error) { b.USD, err = dollars(f, n, "usd", aDay); return err },
			"tokens": func(n *strictyaml.Node) (err error) {
				t, err := number(f, n, "tokens", 1, maxTokensPerDay)
				b.Tokens = int64(t)
				return err
			},
		})
		if err == nil && b == (Budget{}) {
			err = f.Fault(v, "usd: DOLLARS a day, tokens: NUMBER a day", "the budget of %s bounds nothing", k.Value)
		}
		if b.USD > 0 && inDollars == nil {
			inDollars = k
		}
		c.Budgets[k.Value] = b
		return err
	})
	return inDollars, err
}

// budgetFromEnv is MNEME_BUDGET_USD and MNEME_BUDGET_TOKENS, of every project.
func budgetFromEnv(getenv func(string) string) (map[string]Budget, error) {
	var b Budget
	var err error
	if v := getenv("MNEME_BUDGET_USD"); v != "" {
		if b.USD, err = strconv.ParseFloat(v, 64); err != nil || !(b.USD > 0 && b.USD < 1e6) {
			return nil, fault.At(fault.Invalid, "MNEME_BUDGET_USD", "", "%q is no amount of dollars", v)
		}
	}
	if v := getenv("MNEME_BUDGET_TOKENS"); v != "" {
		if b.Tokens, err = strconv.ParseInt(v, 10, 64); err != nil || b.Tokens < 1 || b.Tokens > maxTokensPerDay {
			return nil, fault.At(fault.Invalid, "MNEME_BUDGET_TOKENS", "", "%q is no number of tokens", v)
		}
	}
	if b == (Budget{}) {
		return nil, nil
	}
	return map[string]Budget{DefaultBudget: b}, nil
}

// priced refuses a budget in dollars where a model that is used has no price and
// does not run on this machine: it would bound nothing.
func (c *Config) priced() error {
	dollars := false
	for _, b := range c.Budgets {
		dollars = dollars || b.USD > 0
	}
	if !dollars {
		return nil
	}
	for _, u := range c.Uses() {
		e, _ := c.Endpoint(u.Endpoint)
		if at, err := url.Parse(e.URL); err == nil && baseurl.Local(at.Hostname()) {
			continue
		}
		if _, ok := c.Prices[u.Model]; !ok {
			return fault.At(fault.Invalid, "model "+u.Model, "add it to prices in the models file (MNEME_MODELS), or bound tokens", "a budget in dollars bounds nothing without the model's price")
		}
	}
	return nil
}
