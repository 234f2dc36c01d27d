package learn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
)

// commitLine is a line of a git log.
func commitLine(t *testing.T, n int, parents int, message, remote string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"type": "commit", "sha": fmt.Sprintf("%040x", n), "parents": make([]string, parents), "author": "Ada", "email": "ada@example.org",
		"date": fmt.Sprintf("2026-02-%02dT09:00:00Z", n), "message": message + "\n", "remote": remote,
		"files": []any{map[string]any{"status": "M", "path": "retry.go"}}, "symbols": []string{"Retry"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// TestGitHistory: a commit is admitted once, whatever stands around it in the
// file that brings it; a new one is admitted wherever it stands.
func TestGitHistory(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	const remote = "https://example.org/ada/shop.git"
	one := commitLine(t, 1, 0, "Cap retries at 5\n\nThe upstream bans us after that.", remote)
	two := commitLine(t, 2, 1, "Keep logs for 30 days\n\nAuditors ask for them.", remote)
	merge := commitLine(t, 3, 2, "Merge branch 'logs'", remote)
	four := commitLine(t, 4, 1, "Cap retries at 3\n\n5 were still too many.", remote)
	five := commitLine(t, 5, 1, "Use pgx\n\nlib/pq is no longer kept up.", remote)
	ids := func(project string) []string {
		var out []string
		for _, a := range w.Admits(project) {
			src, _, err := w.Log.Source(t.Context(), project, a.Source)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range src.TurnIDs {
				out = append(out, strings.Replace(id, strings.Repeat("0", 39), "", 1))
			}
			out = append(out, fmt.Sprintf("known %d, merges %d", src.Counts.Duplicates, src.Counts.Dropped["merge"]))
		}
		return out
	}
	for _, step := range []struct{ name, body, outcome string }{
		{"first", one + two + merge, learn.OutcomeAdmitted},
		{"again under another name", one + two + merge, learn.OutcomeDuplicate},
		{"other bytes, a shallow clone", two + merge, learn.OutcomeDuplicate},
		{"a new one between", one + five + two + merge + four, learn.OutcomeAdmitted},
		{"another order", four + one + five + two, learn.OutcomeDuplicate},
	} {
		if r := receive(t, w, w.Put("shop/"+step.name+".jsonl", []byte(step.body))).Receipt; r.Outcome != step.outcome {
			t.Errorf("%s: %+v, want %s", step.name, r, step.outcome)
		}
	}
	want := []string{"git/1", "git/2", "known 0, merges 1", "git/5", "git/4", "known 2, merges 1"}
	if d := cmp.Diff(want, ids("shop")); d != "" {
		t.Errorf("shop (-want +got):\n%s", d)
	}
	// Where the key leaves it open, the repository's remote names the project.
	r := receive(t, w, w.Put("_auto/log.jsonl", []byte(one+two))).Receipt
	if len(r.Parts) != 1 || !strings.Contains(r.Parts[0].Project, "shop") || r.Parts[0].Project == "shop" {
		t.Errorf("_auto: %+v", r)
	}
}
