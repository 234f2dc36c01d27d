package labels_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mneme-ai/mneme/shared/labels"
)

func evidence(s string) (out []labels.Evidence) {
	for _, c := range s {
		out = append(out, map[rune]labels.Evidence{'?': labels.Unknown, 'y': labels.Has, 'n': labels.HasNot}[c])
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
		want         labels.Outcome
	}{
		"at the last evidence":           {2, "nyy", "nn", labels.Exact},
		"evidence left unread":           {1, "ny", "nyn", labels.Early},
		"the gate opened, reading on":    {0, "nny", "", labels.Early},
		"after it":                       {2, "ynn", "", labels.Late},
		"at the end, as it never opened": {1, "ny", "", labels.Exact},
		"nothing to find":                {2, "nnn", "n", labels.NoEvidence},
		"a piece behind without a label": {0, "y", "n?n", labels.NotKnown},
		"one before does not matter":     {2, "?ny", "", labels.Exact},
		"none has a label":               {1, "??", "", labels.NotKnown},
		"the last one may be it":         {1, "y?", "", labels.NotKnown},
		"nothing was read":               {-1, "", "", labels.NoEvidence},
	} {
		if got := labels.ExitOf(tc.exit, evidence(tc.read), evidence(tc.unread)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestExitOfIsOfTheLastEvidence: a slow and plain reading of Eq. 9 says the same.
func TestExitOfIsOfTheLastEvidence(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		read, unread := make([]labels.Evidence, 1+r.IntN(5)), make([]labels.Evidence, r.IntN(3))
		for i := range read {
			read[i] = labels.Evidence(1 + r.IntN(2))
		}
		for i := range unread {
			unread[i] = labels.Evidence(1 + r.IntN(2))
		}
		exit, last := r.IntN(len(read)), -1
		for i, e := range append(append([]labels.Evidence{}, read...), unread...) {
			if e == labels.Has {
				last = i
			}
		}
		want := labels.Exact
		switch {
		case last < 0:
			want = labels.NoEvidence
		case exit < last:
			want = labels.Early
		case exit > last:
			want = labels.Late
		}
		if got := labels.ExitOf(exit, read, unread); got != want {
			t.Fatalf("exit at %d of %v, %v: %d, want %d", exit, read, unread, got, want)
		}
	}
}
