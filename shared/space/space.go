// Package space decides which embedding spaces live beside each other: the one
// that serves, the one that is being filled, and those that served before and are
// kept up to date so that one step leads back.
//
// Invariant: exactly one space serves, and the change to another is one write of one
// pointer. A space that serves is never dropped; a space is dropped only after it was
// out of use for Grace, so that no process still asks it. Everything here but Store is
// pure: a state and what happens give a state.
//
// Format: the pointer ops/pointer/<tenant>/space, whose value is
//
//	{"serving":{"name":"static","id":"0a1b2c3d","model":"mneme-static-minilm","revision":"e807","dims":256,
//	  "prefix_scheme":"none","dense_weight":0.4,"floor":0.45,"since":"2026-03-01T12:00:00Z"},
//	 "filling":{"name":"static-128",…},"kept":[…],"dropping":[…],"hold":false,"wish":"0a1b2c3d"}
//
// The package embeds nothing and knows no index: functions/embed fills, functions/project
// applies, compares and switches.
package space

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	// Grace is how long a space that leaves stays untouched: every process reads the
	// pointer each Fresh, a slice of work is some seconds, and a query ends within 5 s
	// (brief P16).
	Grace = 30 * time.Second
	// Retention is how long a space that served is kept up to date, so that one step
	// leads back to it.
	Retention = 7 * 24 * time.Hour
	// MaxKept bounds what every new text is embedded for beside what serves.
	MaxKept = 3
)

// Entry is one space and the model that fills it.
type Entry struct {
	Name string `json:"name"` // as `mem model set embed` takes it
	memory.Space
	Endpoint string `json:"endpoint,omitempty"` // of the configuration; "" is a table of the program
	Window   int    `json:"window,omitempty"`   // of the model, in its tokens; 0: not known
	// Since is when it became what it is, UTC: began to serve or to be filled, or ceased to
	// serve.
	Since time.Time `json:"since"`
	// Served says that it served once: one that is given up while it is brought up to date
	// is kept, and not dropped.
	Served bool `json:"served,omitempty"`
	// Recall says how it compares with what served, once it has all.
	Recall *Recall `json:"recall,omitempty"`
}

// Recall compares the nearest nodes of two spaces over a probe set of stored passages.
type Recall struct {
	Against string  `json:"against"` // id of the other space
	Probes  int     `json:"probes"`  // how many were compared
	At10    float64 `json:"at10"`    // mean share of the other's ten nearest nodes that are among its own ten, [0,1]
	Cosine  float64 `json:"cosine"`  // median cosine of a probe to its nearest node, in this space
	Was     float64 `json:"was"`     // likewise in the other
}

func (r *Recall) String() string {
	return fmt.Sprintf("recall@10 %.3f against %s over %d probes; median cosine of the nearest %.3f, before %.3f", r.At10, r.Against, r.Probes, r.Cosine, r.Was)
}

// State is what stands in the pointer.
type State struct {
	Serving  Entry   `json:"serving"`
	Filling  *Entry  `json:"filling,omitempty"`
	Kept     []Entry `json:"kept,omitempty"`     // the last that served first
	Dropping []Entry `json:"dropping,omitempty"` // to be removed from log and indexes
	Hold     bool    `json:"hold,omitempty"`     // the filled space waits for `mem model switch`
	// Wish is the id of the space that the configuration asked for when it was last
	// followed: a file that did not change does not undo what was set since.
	Wish string `json:"wish,omitempty"`
}

// Role is what a live space is for.
type Role string

// The roles.
const (
	Serving Role = "serving"
	Filling Role = "filling"
	Kept    Role = "kept"
)

// Live is a space that takes new vectors.
type Live struct {
	Entry
	Role Role
}

// First is the state of a log that had none.
func First(e Entry, now time.Time) State {
	e.Since, e.Recall = now.UTC(), nil
	return State{Serving: e, Wish: e.ID}
}

// Live lists the spaces that take new vectors, what serves first.
func (s State) Live() []Live {
	out := []Live{{s.Serving, Serving}}
	if s.Filling != nil {
		out = append(out, Live{*s.Filling, Filling})
	}
	for _, e := range s.Kept {
		out = append(out, Live{e, Kept})
	}
	return out
}

// clone makes the slices and pointers of s its own.
func (s State) clone() State {
	if s.Filling != nil {
		e := *s.Filling
		s.Filling = &e
	}
	s.Kept, s.Dropping = slices.Clone(s.Kept), slices.Clone(s.Dropping)
	return s
}

func byID(id string) func(Entry) bool { return func(e Entry) bool { return e.ID == id } }

// Set asks for e. A space that serves already ends a filling under way; one that was
// kept is brought up to date and serves again; else e is filled from the log, in the
// place of another that was. With hold it does not serve before Release.
func (s State) Set(e Entry, hold bool, now time.Time) (State, error) {
	s = s.clone()
	if slices.ContainsFunc(s.Dropping, byID(e.ID)) {
		return s, fault.At(fault.Unavailable, "space "+e.ID, "try again within a minute; mem model says when it is gone", "it is being removed")
	}
	e.Since, e.Recall = now.UTC(), nil
	switch {
	case e.ID == s.Serving.ID:
		s.leaveFilling(now)
		s.Hold = false
		s.Serving.Name = e.Name
		return s, nil
	case s.Filling != nil && s.Filling.ID == e.ID:
		s.Hold = hold
		return s, nil
	}
	s.leaveFilling(now)
	e.Served = slices.ContainsFunc(s.Kept, byID(e.ID))
	s.Kept = slices.DeleteFunc(s.Kept, byID(e.ID))
	s.Filling, s.Hold = &e, hold
	return s, nil
}

// leaveFilling gives up a filling under way. One that served before stays kept.
func (s *State) leaveFilling(now time.Time) {
	if s.Filling == nil {
		return
	}
	e := *s.Filling
	e.Since, e.Recall = now.UTC(), nil
	s.Filling = nil
	if e.Served {
		s.Kept = append([]Entry{e}, s.Kept...)
		return
	}
	s.Dropping = append(s.Dropping, e)
}

// Follow takes over what the configuration asks for: nothing where that was followed
// before. Weights and floor of a space that stands are those of the configuration.
func (s State) Follow(e Entry, now time.Time) (State, error) {
	was := s.Wish
	s = s.clone()
	s.Wish = e.ID
	for _, at := range append([]*Entry{&s.Serving, s.Filling}, pointers(s.Kept)...) {
		if at != nil && at.ID == e.ID {
			at.DenseWeight, at.Floor, at.Endpoint, at.Window = e.DenseWeight, e.Floor, e.Endpoint, e.Window
		}
	}
	if was == e.ID || s.Serving.ID == e.ID && s.Filling == nil {
		return s, nil
	}
	return s.Set(e, false, now)
}

func pointers(es []Entry) (out []*Entry) {
	for i := range es {
		out = append(out, &es[i])
	}
	return out
}

// Release lets the filled space serve once it has all.
func (s State) Release() (State, error) {
	s = s.clone()
	if s.Filling == nil {
		return s, fault.At(fault.Invalid, "embedding model", "name one first: mem model set embed NAME", "no space is being filled")
	}
	s.Hold = false
	return s, nil
}

// Compared notes how the filling space id compares with what serves.
func (s State) Compared(id string, r Recall) State {
	s = s.clone()
	if s.Filling != nil && s.Filling.ID == id {
		s.Filling.Recall = &r
	}
	return s
}

// Switch lets the filling space id serve. The caller has seen that it holds everything.
// What served is kept; false where id is not being filled any more, or is held.
func (s State) Switch(id string, now time.Time) (State, bool) {
	if s.Filling == nil || s.Filling.ID != id || s.Hold {
		return s, false
	}
	s = s.clone()
	was := s.Serving
	was.Since, was.Recall, was.Served = now.UTC(), nil, true
	s.Serving, s.Filling = *s.Filling, nil
	s.Serving.Since = now.UTC()
	s.Kept = append([]Entry{was}, s.Kept...)
	for len(s.Kept) > MaxKept {
		s.drop(len(s.Kept)-1, now)
	}
	return s, true
}

// Back asks for the space that served last.
func (s State) Back(now time.Time) (State, error) {
	if len(s.Kept) == 0 {
		return s, fault.At(fault.Invalid, "embedding model", "a space is kept for a time after another took its place", "no space that served before is kept")
	}
	return s.Set(s.Kept[0], false, now)
}

func (s *State) drop(i int, now time.Time) {
	e := s.Kept[i]
	e.Since, e.Recall = now.UTC(), nil
	s.Dropping = append(s.Dropping, e)
	s.Kept = slices.Delete(s.Kept, i, i+1)
}

// Drop asks for the removal of a space, by the name of its model or by its id. others
// are ids of spaces that the log holds vectors of and the state does not name.
func (s State) Drop(what string, others []string, now time.Time) (State, Entry, error) {
	s = s.clone()
	is := func(e Entry) bool { return e.ID == what || e.Name == what || e.Model == what }
	if is(s.Serving) && !slices.ContainsFunc(s.Kept, is) && (s.Filling == nil || !is(*s.Filling)) {
		return s, Entry{}, fault.At(fault.Invalid, "space "+s.Serving.ID, "let another one serve first: mem model set embed NAME", "%s serves and cannot be dropped", s.Serving.Name)
	}
	if s.Filling != nil && is(*s.Filling) {
		e := *s.Filling
		s.Filling.Served = false
		s.leaveFilling(now)
		return s, e, nil
	}
	if i := slices.IndexFunc(s.Dropping, is); i >= 0 {
		return s, s.Dropping[i], nil
	}
	if i := slices.IndexFunc(s.Kept, is); i >= 0 {
		e := s.Kept[i]
		s.drop(i, now)
		return s, e, nil
	}
	if slices.Contains(others, what) {
		e := Entry{Name: what, Since: now.UTC()}
		e.ID = what
		s.Dropping = append(s.Dropping, e)
		return s, e, nil
	}
	known := others
	for _, l := range s.Live()[1:] {
		known = append(known, l.Name)
	}
	return s, Entry{}, fault.At(fault.Invalid, "space "+what, "one of: "+strings.Join(known, ", "), "no such space is kept")
}

// Expire drops the kept spaces that served last before now-retention.
func (s State) Expire(now time.Time, retention time.Duration) State {
	s = s.clone()
	for i := len(s.Kept) - 1; i >= 0; i-- {
		if now.Sub(s.Kept[i].Since) >= retention {
			s.drop(i, now)
		}
	}
	return s
}

// Due lists the spaces that may be removed now: out of use for grace.
func (s State) Due(now time.Time, grace time.Duration) []Entry {
	return slices.DeleteFunc(slices.Clone(s.Dropping), func(e Entry) bool { return now.Sub(e.Since) < grace })
}

// Dropped notes that nothing of a space is left.
func (s State) Dropped(id string) State {
	s = s.clone()
	s.Dropping = slices.DeleteFunc(s.Dropping, byID(id))
	return s
}
