package vault_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

// model has the given questions and notes.
func model(notes []vault.KeptNote, qs ...vault.Question) *vault.Model {
	return &vault.Model{Project: "shop", Questions: qs, Notes: notes}
}

// A note follows its question: by its wording under another id, by its id under
// another wording, and stands apart when neither is asked.
func TestNotesFollow(t *testing.T) {
	t.Parallel()
	const wording = "Which limits hold?"
	old := memory.StreamName("limits", wording)
	notes := []vault.KeptNote{kept("limits", old, "mine\n", 1)}
	for _, tc := range []struct {
		name string
		qs   []vault.Question
		path string
	}{
		{"as it was", []vault.Question{asked("limits", wording, 0)}, "limits.md"},
		{"under another id", []vault.Question{asked("bounds", wording, 0)}, "bounds.md"},
		{"under another wording", []vault.Question{asked("limits", "Which limits are there?", 0)}, "limits.md"},
		{"its wording under another id, its id under another wording", []vault.Question{asked("limits", "Which limits are there?", 0), asked("bounds", wording, 1)}, "bounds.md"},
		{"asked twice", []vault.Question{asked("bounds", wording, 0), asked("limits", wording, 1)}, "limits.md"},
		{"asked no more", []vault.Question{asked("rules", "Which rules hold?", 0)}, "orphans/limits.md"},
		{"an orphan beside a question of its file's name", []vault.Question{asked("orphans", "Who?", 0)}, "orphans/limits.md"},
	} {
		v := vault.Render(model(notes, tc.qs...))
		n := 0
		for _, f := range v.Files {
			if got := string(vault.Split(f.Bytes).Notes); got == "mine\n" {
				n++
				if f.Path != tc.path {
					t.Errorf("%s: it stands on %s, want %s", tc.name, f.Path, tc.path)
				}
			} else if got != "" {
				t.Errorf("%s: %s has %q", tc.name, f.Path, got)
			}
		}
		if n != 1 {
			t.Errorf("%s: it stands on %d pages", tc.name, n)
		}
		for _, p := range vault.Check(v.Files) {
			t.Errorf("%s: %s", tc.name, p)
		}
	}
}

// A note goes on from where it was shown last: no chain of changes of id and wording
// leaves it behind, and an edit of a page from before them finds it.
func TestNotesFollowOn(t *testing.T) {
	t.Parallel()
	const w1, w2, w3, w4 = "Which colour is it?", "Which colour is it, now reworded?", "Which colour?", "What colour?"
	type step struct{ id, wording string }
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"another id, then another wording", []step{{"qone", w1}, {"qtwo", w1}, {"qtwo", w2}}},
		{"another wording, then another id", []step{{"bq", w1}, {"bq", w2}, {"bq2", w2}}},
		{"three ids", []step{{"a", w1}, {"b", w1}, {"c", w1}, {"d", w1}}},
		{"three wordings, then an id", []step{{"a", w1}, {"a", w2}, {"a", w3}, {"a", w4}, {"b", w4}}},
		{"in turn", []step{{"a", w1}, {"b", w1}, {"b", w2}, {"c", w2}, {"c", w3}, {"d", w3}, {"d", w4}}},
		{"taken away in between", []step{{"a", w1}, {"b", w1}, {"", ""}, {"b", w2}, {"", ""}, {"c", w2}}},
		{"back again", []step{{"a", w1}, {"b", w1}, {"b", w2}, {"a", w2}, {"a", w1}}},
	} {
		for _, texts := range [][]string{{"mine\n"}, {"from here\n", "from there\n"}} {
			first := tc.steps[0]
			stream := memory.StreamName(first.id, first.wording)
			var notes []vault.KeptNote
			for i, text := range texts {
				notes = append(notes, kept(first.id, stream, text, i+1))
			}
			for _, st := range tc.steps {
				qs := []vault.Question{asked("other", "Which rules hold?", 1)}
				if st.id != "" {
					qs = append(qs, asked(st.id, st.wording, 0))
				}
				m := model(notes, qs...)
				for i, n := range vault.Moves(m) {
					notes = append(notes, vault.KeptNote{Key: memory.SumString(fmt.Sprint(i, n)), Note: n, TextSHA: memory.SumString(n.Text)})
				}
				m.Notes = notes
				if again := vault.Moves(m); len(again) > 0 {
					t.Fatalf("%s: it moves without end: %v", tc.name, again)
				}
				if st.id == "" {
					continue
				}
				v := vault.Render(m)
				got := string(vault.Split([]byte(page(t, v, st.id+".md"))).Notes)
				for _, text := range texts {
					if !strings.Contains(got, text) || v.Stats.Orphans > 0 {
						t.Fatalf("%s: as %s, %q: the page has %q, %d orphans", tc.name, st.id, st.wording, got, v.Stats.Orphans)
					}
				}
				reg, asks, ok := vault.RegionFor(m, first.id, stream)
				if !ok || reg.Note != st.id || asks != memory.StreamName(st.id, st.wording) && st.wording != w1 {
					t.Errorf("%s: as %s, %q: an edit of the first page goes to %+v under %s", tc.name, st.id, st.wording, reg, asks)
				}
			}
		}
	}
}

func TestRegionEdit(t *testing.T) {
	t.Parallel()
	q := asked("limits", "Which limits hold?", 0)
	a := kept("limits", q.Asked, "a", 1)
	b := kept("limits", q.Asked, "b", 2, a.Key)
	c := kept("limits", q.Asked, "c", 3, a.Key) // beside b
	sum := func(s string) memory.SHA { return memory.SumString(s) }
	both := func() memory.SHA {
		reg, _, _ := vault.RegionFor(model([]vault.KeptNote{a, b, c}, q), "limits", q.Asked)
		if !reg.Conflict() || !strings.Contains(reg.Text, "\nb\n") || !strings.Contains(reg.Text, "\nc\n") || !strings.Contains(reg.Text, "2 versions") {
			t.Fatalf("%q", reg.Text)
		}
		return reg.Sum
	}()
	for _, tc := range []struct {
		name  string
		notes []vault.KeptNote
		base  memory.SHA
		text  string
		prev  []memory.SHA
		isNew bool
	}{
		{"the first", nil, sum(""), "a", nil, true},
		{"an empty first", nil, sum(""), " \n", nil, false},
		{"the same again", []vault.KeptNote{a}, sum(""), "a", nil, false},
		{"what follows", []vault.KeptNote{a}, sum("a"), "b", []memory.SHA{a.Key}, true},
		{"emptied", []vault.KeptNote{a}, sum("a"), "", []memory.SHA{a.Key}, true},
		{"on an older base: beside what came since", []vault.KeptNote{a, b}, sum("a"), "x", []memory.SHA{a.Key}, true},
		{"on a base that nobody knows: beside it", []vault.KeptNote{a}, "", "x", nil, true},
		{"an old folder that nobody edited", []vault.KeptNote{a, b}, "", "a", nil, false},
		{"back to what it was", []vault.KeptNote{a, b}, sum("b"), "a", []memory.SHA{b.Key}, true},
		{"one of two versions", []vault.KeptNote{a, b, c}, sum("a"), "b", nil, false},
		{"a conflict made one", []vault.KeptNote{a, b, c}, both, "d", []memory.SHA{b.Key, c.Key}, true},
		{"a conflict made one of its versions", []vault.KeptNote{a, b, c}, both, "b", []memory.SHA{b.Key, c.Key}, true},
		{"on one of two versions", []vault.KeptNote{a, b, c}, sum("c"), "d", []memory.SHA{c.Key}, true},
	} {
		reg, stream, ok := vault.RegionFor(model(tc.notes, q), "limits", q.Asked)
		prev, isNew := reg.Edit(tc.base, tc.text)
		if !ok || stream != q.Asked || isNew != tc.isNew || fmt.Sprint(prev) != fmt.Sprint(tc.prev) {
			t.Errorf("%s: %v, %t, want %v, %t (%t)", tc.name, prev, isNew, tc.prev, tc.isNew, ok)
		}
	}
	if _, _, ok := vault.RegionFor(model(nil, q), "../x", ""); ok {
		t.Error("a note of no page is taken")
	}
}

// Property: whatever edits people make in folders that are in step or behind, no
// text that was written is lost: it stands in the region, or a later edit was made
// on a text that held it.
func TestNoEditIsLost(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		q := asked("limits", "Which limits hold?", 0)
		m := model(nil, q)
		type folder struct {
			base memory.SHA
			text string
		}
		folders := make([]folder, 3)
		for i := range folders {
			folders[i].base = memory.SumString("")
		}
		words := 0
		for step := range 20 {
			f := &folders[rng.IntN(len(folders))]
			if rng.IntN(3) > 0 { // a person adds a word
				words++
				f.text += fmt.Sprintf("word%d\n", words)
			}
			reg, stream, _ := vault.RegionFor(m, "limits", q.Asked)
			if prev, isNew := reg.Edit(f.base, f.text); memory.SumString(f.text) != f.base && isNew {
				m.Notes = append(m.Notes, kept("limits", stream, f.text, step, prev...))
			}
			reg, _, _ = vault.RegionFor(m, "limits", q.Asked)
			for w := range strings.Lines(f.text) {
				if strings.HasPrefix(w, "word") && !strings.Contains(reg.Text, w) {
					t.Fatalf("%q is lost from %q", w, reg.Text)
				}
			}
			f.base, f.text = memory.SumString(reg.Text), reg.Text
		}
		reg, _, _ := vault.RegionFor(m, "limits", q.Asked)
		for i := range words {
			if w := fmt.Sprintf("word%d\n", i+1); !strings.Contains(reg.Text, w) && !strings.Contains(folders[0].text+folders[1].text+folders[2].text, w) {
				t.Fatalf("%q is lost from %q", w, reg.Text)
			}
		}
	}
}
