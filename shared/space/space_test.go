package space_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/space"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func entry(name string) (e space.Entry) {
	e.Name, e.ID, e.Model, e.Dims, e.DenseWeight, e.Floor = name, "id-"+name, name, 8, 0.5, 0.4
	return e
}

// picture is a state in a line: serving, then (filling), [kept], {dropping}.
func picture(s space.State) string {
	out := s.Serving.Name
	if s.Filling != nil {
		out += " (" + s.Filling.Name + ")"
	}
	names := func(es []space.Entry) (out []string) {
		for _, e := range es {
			out = append(out, e.Name)
		}
		return out
	}
	if len(s.Kept) > 0 {
		out += fmt.Sprint(" ", names(s.Kept))
	}
	if len(s.Dropping) > 0 {
		out += " {" + strings.Join(names(s.Dropping), " ") + "}"
	}
	if s.Hold {
		out += " held"
	}
	return out
}

// TestStory tells what each event makes of a state; one that is refused changes nothing.
func TestStory(t *testing.T) {
	t.Parallel()
	day := day
	type move = func(space.State) (space.State, error)
	set := func(name string, hold bool) move {
		return func(s space.State) (space.State, error) { return s.Set(entry(name), hold, day) }
	}
	follow := func(name string) move {
		return func(s space.State) (space.State, error) { return s.Follow(entry(name), day) }
	}
	full := func(name string) move { // the indexes have everything
		return func(s space.State) (space.State, error) {
			s, _ = s.Compared("id-"+name, space.Recall{At10: 0.9}).Switch("id-"+name, day)
			return s, nil
		}
	}
	back := func(s space.State) (space.State, error) { return s.Back(day) }
	drop := func(what string) move {
		return func(s space.State) (space.State, error) {
			s, _, err := s.Drop(what, []string{"0ld"}, day)
			return s, err
		}
	}
	later := func(d time.Duration) move {
		return func(s space.State) (space.State, error) {
			day = day.Add(d)
			return s.Expire(day, space.Retention), nil
		}
	}
	gone := func(name string) move {
		return func(s space.State) (space.State, error) { return s.Dropped("id-" + name), nil }
	}
	s := space.First(entry("a"), day)
	for i, step := range []struct {
		what string
		do   move
		want string
		err  string
	}{
		{"nothing to go back to", back, "a", "no space that served before"},
		{"nothing to release", space.State.Release, "a", "no space is being filled"},
		{"what serves is not dropped", drop("a"), "a", "serves and cannot be dropped"},
		{"an unknown one", drop("z"), "a", "no such space"},
		{"set", set("b", false), "a (b)", ""},
		{"another in its place", set("c", false), "a (c) {b}", ""},
		{"one that leaves", set("b", false), "a (c) {b}", "being removed"},
		{"it is gone", gone("b"), "a (c)", ""},
		{"b is full too late", full("b"), "a (c)", ""},
		{"full", full("c"), "c [a]", ""},
		{"once more", full("c"), "c [a]", ""},
		{"back", back, "c (a)", ""},
		{"changed my mind: it stays kept", set("c", false), "c [a]", ""},
		{"back", back, "c (a)", ""},
		{"full", full("a"), "a [c]", ""},
		{"held", set("b", true), "a (b) [c] held", ""},
		{"full and held", full("b"), "a (b) [c] held", ""},
		{"released", space.State.Release, "a (b) [c]", ""},
		{"full", full("b"), "b [a c]", ""},
		{"a week less an hour", later(space.Retention - time.Hour), "b [a c]", ""},
		{"the file asks for what it asked for before", follow("a"), "b [a c]", ""},
		{"the file changes", follow("d"), "b (d) [a c]", ""},
		{"the file is read again", follow("d"), "b (d) [a c]", ""},
		{"full", full("d"), "d [b a c]", ""},
		{"two hours", later(2 * time.Hour), "d [b] {c a}", ""},
		{"by its name", drop("b"), "d {c a b}", ""},
		{"once more", drop("b"), "d {c a b}", ""},
		{"one that only the log knows", drop("0ld"), "d {c a b 0ld}", ""},
		{"set", set("e", false), "d (e) {c a b 0ld}", ""},
		{"what is being filled is dropped", drop("e"), "d {c a b 0ld e}", ""},
	} {
		before := picture(s)
		next, err := step.do(s)
		if picture(s) != before {
			t.Fatalf("%d %s: it changed the state that it was given to %s", i, step.what, picture(s))
		}
		if step.err != "" {
			if err == nil || !strings.Contains(err.Error(), step.err) || fault.HintOf(err) == "" {
				t.Errorf("%d %s: %v (%s), want %q and a cure", i, step.what, err, fault.HintOf(err), step.err)
			}
			continue
		}
		if s = next; err != nil || picture(s) != step.want {
			t.Fatalf("%d %s: %s, %v; want %s", i, step.what, picture(s), err, step.want)
		}
	}
}

// TestKeptAreBounded: the oldest leave.
func TestKeptAreBounded(t *testing.T) {
	t.Parallel()
	s := space.First(entry("0"), day)
	for i := 1; i < 7; i++ {
		name := fmt.Sprint(i)
		s, _ = s.Set(entry(name), false, day)
		s, _ = s.Switch("id-"+name, day)
	}
	if got := picture(s); got != "6 [5 4 3] {0 1 2}" {
		t.Error(got)
	}
	if n := len(s.Due(day.Add(space.Grace-time.Second), space.Grace)); n != 0 {
		t.Errorf("%d are removed while a process may ask them", n)
	}
	if n := len(s.Due(day.Add(space.Grace), space.Grace)); n != 3 {
		t.Errorf("%d are due, want 3", n)
	}
	var ids []string
	for _, l := range s.Live() {
		ids = append(ids, l.Name+" "+string(l.Role))
	}
	if d := cmp.Diff([]string{"6 serving", "5 kept", "4 kept", "3 kept"}, ids); d != "" {
		t.Error(d)
	}
}

// TestFollowTunes: weights and floor of a space that stands are those of the
// configuration, and no vector is made anew.
func TestFollowTunes(t *testing.T) {
	t.Parallel()
	s := space.First(entry("a"), day)
	e := entry("a")
	e.Floor, e.DenseWeight = 0.7, 0.3
	s, err := s.Follow(e, day)
	if err != nil || s.Serving.Floor != 0.7 || s.Serving.DenseWeight != 0.3 || s.Filling != nil {
		t.Errorf("%+v %v", s, err)
	}
}

func open(t *testing.T) (*eventlog.Log, *int) {
	t.Helper()
	fails := new(int)
	st := memstore.NewWith(memstore.Hooks{Before: func(_ context.Context, c memstore.Call) error {
		if *fails > 0 {
			*fails--
			return fault.As(fault.Unavailable, errors.New("the store is down"))
		}
		return nil
	}})
	return eventlog.Open(objstore.NewBucket("mneme", st), "local", "w"), fails
}

// TestStore: each process follows within Fresh, and updates side by side are all kept.
func TestStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _ := open(t)
		first := func(context.Context) (space.Entry, error) { return entry("a"), nil }
		one, two := space.NewStore(log, first, nil), space.NewStore(log, first, nil)
		for _, s := range []*space.Store{one, two} {
			if st, err := s.State(t.Context()); err != nil || picture(st) != "a" {
				t.Fatalf("%s %v", picture(st), err)
			}
		}
		if _, err := one.Update(t.Context(), func(s space.State) (space.State, error) { return s.Set(entry("b"), false, time.Now()) }); err != nil {
			t.Fatal(err)
		}
		if st, _ := one.State(t.Context()); picture(st) != "a (b)" {
			t.Errorf("who moved it sees %s", picture(st))
		}
		time.Sleep(space.Fresh)
		if st, _ := two.State(t.Context()); picture(st) != "a (b)" {
			t.Errorf("after %v another sees %s", space.Fresh, picture(st))
		}
		var g sync.WaitGroup
		for i := range 5 {
			s := []*space.Store{one, two}[i%2]
			g.Go(func() {
				_, err := s.Update(t.Context(), func(s space.State) (space.State, error) {
					s.Dropping = append(s.Dropping[:len(s.Dropping):len(s.Dropping)], entry(fmt.Sprint(i)))
					return s, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		g.Wait()
		time.Sleep(space.Fresh)
		if st, err := two.State(t.Context()); err != nil || len(st.Dropping) != 5 {
			t.Errorf("%s %v", picture(st), err)
		}
		bad := errors.New("no")
		if _, err := one.Update(t.Context(), func(s space.State) (space.State, error) { return space.State{}, bad }); !errors.Is(err, bad) {
			t.Error(err)
		}
		if st, err := one.State(t.Context()); err != nil || st.Serving.Name != "a" {
			t.Errorf("after an update that was refused: %s %v", picture(st), err)
		}
	})
}

// TestStoreDown: while the store is down, what was read last goes on.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, fails := open(t)
		s := space.NewStore(log, func(context.Context) (space.Entry, error) { return entry("a"), nil }, nil)
		*fails = 1000
		if _, err := s.State(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("nothing was read yet: %v", err)
		}
		*fails = 0
		if _, err := s.State(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * space.Fresh)
		*fails = 1000
		if st, err := s.State(t.Context()); err != nil || picture(st) != "a" {
			t.Errorf("%s %v", picture(st), err)
		}
	})
}
