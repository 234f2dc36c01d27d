package scrub_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

// A secret in what people wrote on pages is masked there as everywhere, in the
// present text and in what it replaced; the present one stays the present one, and
// a process that dies at any write of it comes to the same.
func TestScrubOfNotes(t *testing.T) {
	t.Parallel()
	const old, now, clean = "first: " + secret + "\n", "first: " + secret + "\nsecond\r\n", "nothing to hide"
	for kill := 0; ; kill++ {
		w := taught(t, reference(), bodies()[7])
		empty := memory.SumString("")
		save := func(note, base, text string) {
			t.Helper()
			b := empty
			if base != "" {
				b = memory.SumString(base)
			}
			out, err := w.Project.SaveNotes(t.Context(), project.NotesRequest{Project: "shop", Notes: []project.NoteEdit{{Note: note, Base: b, Text: text}}})
			if err != nil || out.Notes[0].Outcome != "saved" {
				t.Fatalf("%v %+v", err, out)
			}
		}
		save("decisions", "", old)
		save("decisions", old, now)
		save("rules", "", clean)
		forbid(t, w)
		left, killed := kill, false
		w.Stores.Fail(func(c functest.Call) error {
			if c.Write() && strings.Contains(c.Key, "/notes/") {
				if left--; left == 0 {
					killed = true
					return fault.New(fault.Internal, "killed")
				}
			}
			return nil
		}, nil)
		_, err := w.Learn.Scrub(t.Context(), "", false, nil)
		w.Stores.Fail(nil, nil)
		if killed != (err != nil) {
			t.Fatalf("killed %t: %v", killed, err)
		}
		if killed {
			scrubbed(t, w)
		} else {
			w.Run(w.Published()...)
		}
		w.Sweep()
		if got := leaks(t, w); len(got) > 0 {
			t.Errorf("killed at %d: %v", kill, got)
		}
		v, err := w.Project.Vault(t.Context(), "shop", false)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"decisions.md": "first: [REDACTED:user_acme:", "rules.md": clean} {
			for _, f := range v.Files {
				if notes := string(vault.Split(f.Bytes).Notes); f.Path == path && !strings.HasPrefix(notes, want) {
					t.Errorf("killed at %d: %s: %q", kill, path, notes)
				}
			}
		}
		if v.Stats.Conflicts != 0 {
			t.Errorf("killed at %d: %d conflicts", kill, v.Stats.Conflicts)
		}
		if kill > 0 && !killed {
			if kill < 3 {
				t.Errorf("a scrub of two notes writes %d times only", kill-1)
			}
			return
		}
	}
}
