package report_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mneme-ai/mneme/shared/report"
)

func evidence(s string) (out []report.Evidence) {
	for _, c := range s {
		out = append(out, map[rune]report.Evidence{'?': report.Unknown, 'y': report.Has, 'n': report.HasNot}[c])
	}
	return out
}

// TestExitOf quotes GRU-Mem, Eq. 9: r_exit is "-0.75 if t_exit < t_last_evidence", "0 if
// t_exit = t_last_evidence" and "-0.5 if t_exit > t_last_evidence".
func TestExitOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exit         int
		read, unread string
		want         report.Outcome
	}{
		"at the last evidence":           {2, "nyy", "nn", report.Exact},
		"evidence left unread":           {1, "ny", "nyn", report.Early},
		"the gate opened, reading on":    {0, "nny", "", report.Early},
		"after it":                       {2, "ynn", "", report.Late},
		"at the end, as it never opened": {1, "ny", "", report.Exact},
		"nothing to find":                {2, "nnn", "n", report.NoEvidence},
		"a piece behind without a label": {0, "y", "n?n", report.NotKnown},
		"one before does not matter":     {2, "?ny", "", report.Exact},
		"none has a label":               {1, "??", "", report.NotKnown},
		"the last one may be it":         {1, "y?", "", report.NotKnown},
		"nothing was read":               {-1, "", "", report.NoEvidence},
	} {
		if got := report.ExitOf(tc.exit, evidence(tc.read), evidence(tc.unread)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestExitOfIsOfTheLastEvidence: a slow and plain reading of Eq. 9 says the same.
func TestExitOfIsOfTheLastEvidence(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		read, unread := make([]report.Evidence, 1+r.IntN(5)), make([]report.Evidence, r.IntN(3))
		for i := range read {
			read[i] = report.Evidence(1 + r.IntN(2))
		}
		for i := range unread {
			unread[i] = report.Evidence(1 + r.IntN(2))
		}
		exit, last := r.IntN(len(read)), -1
		for i, e := range append(append([]report.Evidence{}, read...), unread...) {
			if e == report.Has {
				last = i
			}
		}
		want := report.Exact
		switch {
		case last < 0:
			want = report.NoEvidence
		case exit < last:
			want = report.Early
		case exit > last:
			want = report.Late
		}
		if got := report.ExitOf(exit, read, unread); got != want {
			t.Fatalf("exit at %d of %v, %v: %d, want %d", exit, read, unread, got, want)
		}
	}
}
