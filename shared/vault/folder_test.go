package vault_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

const (
	pageHead = "---\ngenerated_by: mneme\n---\n\n<!-- mneme:derived kind=vault -->\n"
	pageEnd  = "<!-- /mneme:derived -->\n\n## Notes\n"
)

// rendered is a page of a body and a region.
func rendered(body, notes string) []byte { return []byte(pageHead + body + "\n" + pageEnd + notes) }

func listed(path string, b []byte) vault.Listed {
	m := vault.MarkOf(b)
	return vault.Listed{Path: path, SHA256: m.SHA256, SizeBytes: len(b), Body: m.Body, Note: strings.TrimSuffix(path, ".md"), Stream: "s", Notes: m.Notes}
}

func written(b []byte) vault.Written {
	m := vault.MarkOf(b)
	return vault.Written{SHA256: m.SHA256, Body: m.Body, Notes: m.Notes, Note: "a", Stream: "s"}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	old, now := rendered("one", "x"), rendered("two", "x")
	type want struct {
		edit        bool
		write, kept bool // a step that writes; one that sets aside first
	}
	for _, tc := range []struct {
		name    string
		state   []byte // nil: none
		file    []byte // nil: none
		now     []byte // nil: not listed
		answer  vault.Outcome
		want    want
		removed bool
	}{
		{"new", nil, nil, now, 0, want{write: true}, false},
		{"in step", now, now, now, 0, want{}, false},
		{"the server moved on", old, old, now, 0, want{write: true}, false},
		{"removed by hand", old, nil, now, 0, want{write: true}, false},
		{"its Notes edited", now, rendered("two", "y"), now, vault.Held, want{edit: true, write: true}, false},
		{"edited, masked", now, rendered("two", "y"), now, vault.Masked, want{edit: true, write: true, kept: true}, false},
		{"edited, refused", old, rendered("one", "y"), now, vault.Not, want{edit: true}, false},
		{"its body edited", now, rendered("mine", "x"), now, 0, want{write: true, kept: true}, false},
		{"body and Notes edited", now, rendered("mine", "y"), now, vault.Held, want{edit: true, write: true, kept: true}, false},
		{"front matter broken", now, append([]byte("%"), now...), now, 0, want{write: true, kept: true}, false},
		{"emptied", now, []byte{}, now, 0, want{write: true}, false},
		{"a file of somebody else's", nil, []byte("# Mine\n\n## Notes\nmine"), now, 0, want{write: true, kept: true}, false},
		{"without the state file, in step", nil, now, now, 0, want{}, false},
		{"without the state file, an older page", nil, old, now, 0, want{write: true, kept: true}, false},
		{"Windows line ends", now, []byte(strings.ReplaceAll(string(rendered("two", "")), "\n", "\r\n") + "x"), now, 0, want{write: true}, false},
		{"gone from the listing", old, old, nil, 0, want{}, true},
		{"gone from the listing, Notes edited", old, rendered("one", "y"), nil, vault.Held, want{edit: true}, true},
		{"gone from the listing, Notes refused", old, rendered("one", "y"), nil, vault.Not, want{edit: true}, false},
		{"gone from the listing, body edited", old, rendered("mine", "x"), nil, 0, want{kept: true}, true},
	} {
		f := vault.LocalFolder{State: vault.FolderState{V: 1, Project: "shop", Pages: map[string]vault.Written{}}, Files: map[string]vault.Mark{}}
		if tc.state != nil {
			f.State.Pages["a.md"] = written(tc.state)
		}
		if tc.file != nil {
			f.Files["a.md"] = vault.MarkOf(tc.file)
		}
		var ls []vault.Listed
		if tc.now != nil {
			ls = append(ls, listed("a.md", tc.now))
		}
		edits := f.Edits(ls)
		if (len(edits) == 1) != tc.want.edit {
			t.Errorf("%s: edits %v", tc.name, edits)
		}
		answers, skipped := map[string]vault.Answer{}, map[string]bool{"a.md": tc.answer == vault.Not}
		if tc.answer != 0 {
			answers["a.md"] = vault.Answer{Outcome: tc.answer, Notes: vault.MarkOf(tc.file).Notes}
		}
		steps := f.Steps(ls, answers, skipped)
		var got want
		got.edit = tc.want.edit
		removed := false
		for _, s := range steps {
			got.write, got.kept = got.write || s.Write, got.kept || s.Aside
			removed = removed || !s.Write
		}
		if got != tc.want || removed != tc.removed {
			t.Errorf("%s: %+v, removed %t", tc.name, steps, removed)
		}
		if len(steps) > 0 && tc.file != nil && steps[0].Seen != vault.MarkOf(tc.file) {
			t.Errorf("%s: the step does not say what it saw", tc.name)
		}
	}
}

// Property: people and the server change what they like, a process dies between any
// two writes; every word that a person wrote stands in a page, in a file set aside or
// in the log, and a folder left alone comes to be in step.
func TestFolderLosesNothing(t *testing.T) {
	t.Parallel()
	for seed := range 200 {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		paths := []string{"a.md", "b.md", "c.md"}
		server, asides, log := map[string][]byte{}, []string{}, []string{}
		disk := map[string][]byte{}
		state := vault.FolderState{}
		words, n := []string{}, 0
		sync := func(dies int) bool {
			list := func() (ls []vault.Listed) {
				for _, p := range slices.Sorted(maps.Keys(server)) {
					ls = append(ls, listed(p, server[p]))
				}
				return ls
			}
			f := vault.LocalFolder{State: state, Files: map[string]vault.Mark{}}
			for p, b := range disk {
				f.Files[p] = vault.MarkOf(b)
			}
			answers := map[string]vault.Answer{}
			for _, e := range f.Edits(list()) {
				text := string(vault.Split(disk[e.Path]).Notes)
				log = append(log, text)
				answers[e.Path] = vault.Answer{Outcome: vault.Held, Notes: memory.SumString(text)}
				if b, ok := server[e.Path]; ok {
					server[e.Path] = rendered(string(vault.Split(b).Body[len(pageHead):len(vault.Split(b).Body)-1]), text)
				}
			}
			ls := list()
			steps := f.Steps(ls, answers, nil)
			state = f.Next("shop", ls, steps, answers, nil, true)
			for i, st := range steps {
				if i == dies {
					return false
				}
				if st.Aside {
					asides = append(asides, string(disk[st.Path]))
				}
				if st.Write {
					disk[st.Path] = server[st.Path]
				} else {
					delete(disk, st.Path)
				}
			}
			if dies == len(steps) {
				return false
			}
			state = f.Next("shop", ls, steps, answers, nil, false)
			return true
		}
		for range 25 {
			p := paths[rng.IntN(len(paths))]
			n++
			switch rng.IntN(6) {
			case 0: // the server's page changes
				notes := ""
				if b, ok := server[p]; ok {
					notes = string(vault.Split(b).Notes)
				}
				server[p] = rendered(fmt.Sprintf("body %d", n), notes)
			case 1:
				if b, ok := server[p]; ok && len(vault.Split(b).Notes) == 0 {
					delete(server, p)
				}
			case 2: // a person writes Notes
				if b, ok := disk[p]; ok {
					w := fmt.Sprintf("note%d\n", n)
					disk[p], words = append(slices.Clone(b), w...), append(words, w)
				}
			case 3: // a person writes above them
				if b, ok := disk[p]; ok {
					w := fmt.Sprintf("body%d\n", n)
					disk[p], words = append([]byte(w), b...), append(words, w)
				}
			case 4:
				sync(rng.IntN(4))
			case 5:
				sync(-1)
			}
		}
		sync(-1)
		sync(-1)
		if diff := cmp.Diff(server, disk); diff != "" {
			t.Fatalf("seed %d: not in step (-server +disk):\n%s", seed, diff)
		}
		all := strings.Join(asides, "\x00") + strings.Join(log, "\x00")
		for _, w := range words {
			if !strings.Contains(all, w) {
				t.Fatalf("seed %d: %q is lost", seed, w)
			}
		}
	}
}

// An answer counts for the region that was sent. What was saved since is sent in the
// next round, as an edit of what the log holds by now.
func TestAnswerOfAnotherText(t *testing.T) {
	t.Parallel()
	now := rendered("two", "x")
	f := vault.LocalFolder{State: vault.FolderState{Pages: map[string]vault.Written{"a.md": written(now)}}, Files: map[string]vault.Mark{"a.md": vault.MarkOf(rendered("two", "x, y, z"))}}
	ls := []vault.Listed{listed("a.md", rendered("two", "x, y"))}
	answers := map[string]vault.Answer{"a.md": {Outcome: vault.Held, Notes: memory.SumString("x, y")}}
	if got := f.Unsettled(ls, answers); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("unsettled %v", got)
	}
	if steps := f.Steps(ls, answers, nil); len(steps) != 1 || !steps[0].Aside {
		t.Errorf("%+v", steps)
	}
	skipped := map[string]bool{"a.md": true}
	if steps := f.Steps(ls, answers, skipped); len(steps) != 0 {
		t.Errorf("%+v", steps)
	}
	f.State = f.Next("shop", ls, nil, answers, skipped, false)
	if e := f.Edits(ls); len(e) != 1 || e[0].Base != memory.SumString("x, y") {
		t.Errorf("%+v", e)
	}
}

func TestMarkOfForeign(t *testing.T) {
	t.Parallel()
	if m := vault.MarkOf([]byte("# Mine\n\n## Notes\nx")); m.Ours || m.Notes != memory.SumString("x") {
		t.Errorf("%+v", m)
	}
}
