package cost

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Paused is a project that waits: its budget of the day is spent, or its model's
// server did what only a person can cure.
type Paused struct {
	Project string    `json:"project"`
	Reason  string    `json:"reason"`
	Hint    string    `json:"hint"`
	Until   time.Time `json:"until"`
	// Spent says that the budget is why: nobody but the day's end, or a larger one,
	// ends the wait.
	Spent bool `json:"spent"`
}

// Pauses are the projects that wait, as a process knows: another one finds out by
// itself. They are safe for concurrent use.
type Pauses struct {
	now func() time.Time

	mu sync.Mutex
	by map[string]Paused
}

// NewPauses begins without any.
func NewPauses(now func() time.Time) *Pauses { return &Pauses{now: now, by: map[string]Paused{}} }

// Set lets a project wait for a span, because of err.
func (p *Pauses) Set(project string, err error, span time.Duration) Paused {
	w := Paused{Project: project, Reason: err.Error(), Hint: fault.HintOf(err), Until: p.now().Add(span).UTC(), Spent: errors.Is(err, ErrSpent)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.by[project] = w
	return w
}

// Of is why a project waits; false where it does not.
func (p *Pauses) Of(project string) (Paused, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.by[project]
	if ok && !p.now().Before(w.Until) {
		delete(p.by, project)
		return Paused{}, false
	}
	return w, ok
}

// Resume ends the wait of a project, unless it is for its budget: who asks has seen to
// the server.
func (p *Pauses) Resume(project string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.by[project].Spent {
		delete(p.by, project)
	}
}

// All lists those that wait, by name.
func (p *Pauses) All() []Paused {
	p.mu.Lock()
	names := make([]string, 0, len(p.by))
	for n := range p.by {
		names = append(names, n)
	}
	p.mu.Unlock()
	out := []Paused{}
	for _, n := range names {
		if w, ok := p.Of(n); ok {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b Paused) int { return strings.Compare(a.Project, b.Project) })
	return out
}

// Purses are the ledgers of a process's projects: one for each, so that what ran longer
// than who asked for it is settled with the next call.
type Purses struct {
	open func(project string) *Ledger

	mu sync.Mutex
	by map[string]*Ledger
}

// NewPurses opens ledgers by open when they are first asked for.
func NewPurses(open func(project string) *Ledger) *Purses {
	return &Purses{open: open, by: map[string]*Ledger{}}
}

// Of is a project's ledger.
func (p *Purses) Of(project string) *Ledger {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.by[project]
	if l == nil {
		l = p.open(project)
		p.by[project] = l
	}
	return l
}
