// Package lookuptest holds the conformance suite of lookup.Index, and an index in memory
// that is as plain as the contract: what drivers are held against.
package lookuptest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Mem is a lookup.Index in memory.
type Mem struct {
	mu     sync.Mutex
	scopes map[lookup.Scope]*shelf
}

type shelf struct {
	known    map[memory.SHA]bool // true: gone
	rows     map[memory.SHA]lookup.Row
	outcomes map[memory.SHA]lookup.Outcome // by record
}

// NewMem gives an empty one.
func NewMem() *Mem { return &Mem{scopes: map[lookup.Scope]*shelf{}} }

var _ lookup.Index = (*Mem)(nil)

func (m *Mem) of(s lookup.Scope) *shelf {
	sh := m.scopes[s]
	if sh == nil {
		sh = &shelf{map[memory.SHA]bool{}, map[memory.SHA]lookup.Row{}, map[memory.SHA]lookup.Outcome{}}
	}
	return sh
}

// Apply implements lookup.Index.
func (m *Mem) Apply(_ context.Context, s lookup.Scope, b lookup.Batch) error {
	return m.write(s, b, false)
}

// Replace implements lookup.Index.
func (m *Mem) Replace(_ context.Context, s lookup.Scope, b lookup.Batch) error {
	return m.write(s, b, true)
}

func (m *Mem) write(s lookup.Scope, b lookup.Batch, anew bool) error {
	if err := lookup.CheckBatch(s, &b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if anew {
		delete(m.scopes, s)
	}
	sh := m.of(s)
	m.scopes[s] = sh
	for _, k := range b.Gone {
		sh.known[k] = true
		delete(sh.rows, k)
		delete(sh.outcomes, k)
	}
	for _, r := range b.Rows {
		if _, ok := sh.known[r.Key]; !ok {
			sh.known[r.Key] = false
			sh.rows[r.Key] = r
		}
	}
	for _, o := range b.Outcomes {
		if _, ok := sh.known[o.Record]; !ok {
			sh.known[o.Record] = false
			sh.outcomes[o.Record] = o
		}
	}
	return nil
}

func (sh *shelf) match(r lookup.Row) lookup.Match {
	m := lookup.Match{Row: r}
	first := map[string]lookup.Outcome{}
	for _, o := range sh.outcomes {
		if old, ok := first[o.Use]; o.Lesson == r.Key && (!ok || o.Record < old.Record) {
			first[o.Use] = o
		}
	}
	for _, o := range first {
		m.Told++
		if o.Worked {
			m.Worked++
		}
	}
	return m
}

// Find implements lookup.Index.
func (m *Mem) Find(_ context.Context, s lookup.Scope, k lookup.Kind, hashes []memory.SHA, limit int) (out []lookup.Match, total int, err error) {
	if err := s.Check(); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sh := m.of(s)
	var rows []lookup.Row
	for _, r := range sh.rows {
		if slices.ContainsFunc(r.Hashes, func(h lookup.Hash) bool { return h.Kind == k && slices.Contains(hashes, h.SHA) }) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b lookup.Row) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Key, b.Key)) })
	for _, r := range rows[:min(limit, len(rows))] {
		out = append(out, sh.match(r))
	}
	return out, min(len(rows), lookup.MaxTotal), nil
}

// Get implements lookup.Index.
func (m *Mem) Get(_ context.Context, s lookup.Scope, key memory.SHA) (lookup.Match, bool, error) {
	if err := s.Check(); err != nil {
		return lookup.Match{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	sh := m.of(s)
	r, ok := sh.rows[key]
	if !ok {
		return lookup.Match{}, false, nil
	}
	return sh.match(r), true, nil
}

// Known implements lookup.Index.
func (m *Mem) Known(_ context.Context, s lookup.Scope) (map[memory.SHA]bool, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[memory.SHA]bool{}
	for k := range m.of(s).known {
		out[k] = true
	}
	return out, nil
}

// Has implements lookup.Index.
func (m *Mem) Has(_ context.Context, s lookup.Scope, key memory.SHA) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.of(s).known[key]
	return ok, s.Check()
}

// Projects implements lookup.Index.
func (m *Mem) Projects(_ context.Context, tenant string) (out []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, sh := range m.scopes {
		if s.Tenant == tenant && len(sh.known) > 0 {
			out = append(out, s.Project)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Hash implements lookup.Index.
func (m *Mem) Hash(_ context.Context, tenant string) (memory.SHA, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var h lookup.Hasher
	var projects []string
	for s := range m.scopes {
		if s.Tenant == tenant {
			projects = append(projects, s.Project)
		}
	}
	slices.Sort(projects)
	for _, p := range projects {
		sh := m.scopes[lookup.Scope{Tenant: tenant, Project: p}]
		for _, k := range slices.Sorted(maps.Keys(sh.rows)) {
			h.Row(p, sh.rows[k])
		}
	}
	for _, p := range projects {
		sh := m.scopes[lookup.Scope{Tenant: tenant, Project: p}]
		for _, k := range slices.Sorted(maps.Keys(sh.outcomes)) {
			h.Outcome(p, sh.outcomes[k])
		}
	}
	sum, n := h.Sum()
	return sum, n, nil
}

// Holding implements lookup.Index.
func (m *Mem) Holding(_ context.Context, s lookup.Scope, holds func(string) bool) (searched, found int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.of(s).rows {
		searched++
		if holds(string(r.Body)) {
			found++
		}
	}
	return searched, found, nil
}

// Purge implements lookup.Index.
func (m *Mem) Purge(context.Context) error { return nil }

// Close implements lookup.Index.
func (m *Mem) Close() error { return nil }
