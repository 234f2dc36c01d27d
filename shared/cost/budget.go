package cost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
)

// Budget bounds what a project's model calls may cost in a day; 0 is no bound.
type Budget struct {
	USD    float64 // US dollars
	Tokens int64   // of prompts and replies, as the servers count them
}

// None reports whether nothing is bounded.
func (b Budget) None() bool { return b.USD <= 0 && b.Tokens <= 0 }

// Amount is what calls cost.
type Amount struct {
	USD    float64 `json:"usd"`
	Tokens int64   `json:"tokens"`
	Calls  int     `json:"calls"`
}

// Plus adds amounts.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.USD + b.USD, a.Tokens + b.Tokens, a.Calls + b.Calls}
}

// over says which bound an amount breaks; "" for none.
func (b Budget) over(a Amount) string {
	const cent = 1e-9 // sums of floats are off by less
	switch {
	case b.USD > 0 && a.USD > b.USD+cent:
		return fmt.Sprintf("$%.4f of $%.2f", a.USD, b.USD)
	case b.Tokens > 0 && a.Tokens > b.Tokens:
		return fmt.Sprintf("%d of %d tokens", a.Tokens, b.Tokens)
	}
	return ""
}

// ErrSpent is in the chain of Reserve's refusal.
var ErrSpent = errors.New("the day's budget is spent")

// Ledger is what a project spends against its budget. It is safe for concurrent use.
type Ledger struct {
	log     *eventlog.Log
	now     func() time.Time
	project string
	budget  Budget

	mu     sync.Mutex // guards what follows
	day    string
	etag   string
	stored Amount // as it stood in the store when it was last read
	delta  Amount // settled since, and not in the store yet
	// open counts the day's reservations that are not settled, by amount: those of one
	// amount can take each other's place. A new day begins with none.
	open map[Amount]int
}

// Open gives the ledger of a project. Without a budget it does nothing.
func Open(log *eventlog.Log, project string, b Budget, now func() time.Time) *Ledger {
	return &Ledger{log: log, now: now, project: project, budget: b}
}

func pointer(project, day string) string { return project + "/spend/" + day }

// Spent is what a project has spent on the day of t.
func Spent(ctx context.Context, log *eventlog.Log, project string, t time.Time) (a Amount, err error) {
	_, err = log.Pointer(ctx, pointer(project, dayOf(t)), &a)
	return a, err
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Reserve takes what calls may cost at the most, or refuses with fault.Exhausted,
// whose RetryAfter is the rest of the day.
func (l *Ledger) Reserve(ctx context.Context, most Amount) (err error) {
	if l.budget.None() {
		return nil
	}
	defer fault.Wrap(&err, "budget of %s", l.project)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if day := dayOf(now); day != l.day {
		if err := l.settle(ctx); err != nil {
			return err
		}
		l.day, l.delta, l.open = day, Amount{}, map[Amount]int{}
		if err := l.read(ctx); err != nil {
			return err
		}
	}
	for range 8 { // each loss means that another process spent too
		next := l.stored.Plus(l.delta).Plus(most)
		if over := l.budget.over(next); over != "" {
			y, m, d := now.UTC().Date()
			return &fault.Error{
				Kind: fault.Exhausted, Where: "project " + l.project,
				Err: ErrSpent, Msg: fmt.Sprintf("with the next call it could be %s for %s, and %s are spent", over, l.day, l.spent()),
				Hint:       "it goes on at 00:00 UTC, or with a larger budget: budgets." + l.project + " in the models file, or MNEME_BUDGET_USD, MNEME_BUDGET_TOKENS",
				RetryAfter: time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC).Sub(now),
			}
		}
		lost, err := l.write(ctx, next)
		if err != nil {
			return err
		}
		if !lost {
			l.open[most]++
			return nil
		}
	}
	return fault.New(fault.Unavailable, "the ledger keeps changing")
}

func (l *Ledger) spent() string {
	sum := l.stored.Plus(l.delta)
	if l.budget.USD > 0 {
		return fmt.Sprintf("$%.4f", sum.USD)
	}
	return fmt.Sprintf("%d", sum.Tokens)
}

// Settle puts what a call did cost in the place of what was reserved for it. It
// stands in the store with the next Reserve, or Close. What was reserved on a day that
// is over counts as spent then: the new day is given nothing back for it.
func (l *Ledger) Settle(most, did Amount) {
	if !l.budget.None() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[most] == 0 {
			return
		}
		if l.open[most]--; l.open[most] == 0 {
			delete(l.open, most)
		}
		did = Amount{max(did.USD, 0), max(did.Tokens, 0), max(did.Calls, 0)} // no server pays us
		l.delta = l.delta.Plus(Amount{did.USD - most.USD, did.Tokens - most.Tokens, did.Calls - most.Calls})
	}
}

// Close writes what was settled last.
func (l *Ledger) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settle(ctx)
}

func (l *Ledger) settle(ctx context.Context) error {
	for range 8 {
		if l.delta == (Amount{}) {
			return nil
		}
		if lost, err := l.write(ctx, l.stored.Plus(l.delta)); err != nil || !lost {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the ledger keeps changing")
}

// write puts a sum, all that was settled included; lost: another wrote meanwhile,
// and what it wrote is read.
func (l *Ledger) write(ctx context.Context, sum Amount) (lost bool, err error) {
	err = l.log.SetPointer(ctx, pointer(l.project, l.day), sum, l.etag)
	if err != nil && !fault.Is(err, fault.Conflict) {
		return false, err
	}
	if lost = err != nil; !lost {
		l.delta = Amount{}
	}
	return lost, l.read(ctx)
}

func (l *Ledger) read(ctx context.Context) error {
	var a Amount
	etag, err := l.log.Pointer(ctx, pointer(l.project, l.day), &a)
	if err != nil {
		return err
	}
	l.etag, l.stored = etag, a
	return nil
}
