package export_test

import (
	"math"
	"testing"

	"github.com/mneme-ai/mneme/shared/export"
)

// steps writes a rollout as one letter a step:
//
//	Y y  evidence, gate open / closed      N n  no evidence, gate open / closed
//	O o  nobody knows, gate open / closed  !    unreadable   #  the server cut the prompt
//
// A letter behind which stands ">" has its exit gate open.
func steps(s string) (out []export.Step) {
	for _, c := range s {
		st := export.Step{Place: export.Place{I: len(out)}, Decided: true, Parsed: true}
		switch c {
		case 'Y', 'y':
			st.Evidence, st.Open = export.Has, c == 'Y'
		case 'N', 'n':
			st.Evidence, st.Open = export.HasNot, c == 'N'
		case 'O', 'o':
			st.Open = c == 'O'
		case '!':
			st.Decided, st.Parsed = false, false
		case '#':
			st.Decided, st.Parsed, st.Cut = false, false, true
		case '>':
			out[len(out)-1].Exit = true
			continue
		}
		out = append(out, st)
	}
	return out
}

var null = math.NaN()

func same(got *float64, want float64) bool {
	if got == nil || want != want {
		return got == nil && want != want
	}
	return math.Abs(*got-want) < 1e-12
}

func show(p *float64) any {
	if p == nil {
		return "null"
	}
	return *p
}

// TestRewards: GRU-Mem (arXiv 2602.10560), Eq. 8 to 11, as specs quote them:
//
//	r_update(t)  = +1 if U_t == has_evidence(C_t) else -1                       (turn level)
//	r_exit       = -0.75 if t_exit < t_last_evidence      (too early, worse)
//	                0    if t_exit = t_last_evidence
//	               -0.5  if t_exit > t_last_evidence      (too late)            (trajectory level)
//	r_format     = 1 if EVERY turn of the trajectory parses, else 0             (trajectory level)
//
// The numbers are computed by hand.
func TestRewards(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, steps          string
		unread               []export.Evidence
		update               []float64
		exit, format, reward float64
	}{
		{"both gates right, exit with the last evidence", "nYnY>", nil, []float64{1, 1, 1, 1}, 0, 1, 1},
		{"never ends, evidence in the last chunk", "nnY", nil, []float64{1, 1, 1}, 0, 1, 1}, // t_exit = T
		{"never ends, evidence before", "nYn", nil, []float64{1, 1, 1}, -0.5, 1, 0.5},
		{"ends late", "Ynn>n", nil, []float64{1, 1, 1, 1}, -0.5, 1, 0.5},
		{"ends early", "n>nY", nil, []float64{1, 1, 1}, -0.75, 1, 0.25},
		{"the first open exit gate counts", "Y>nn>", nil, []float64{1, 1, 1}, 0, 1, 1},
		{"both kinds of a wrong update", "yN", nil, []float64{-1, -1}, -0.5, 1, 0.5},
		{"always yes", "NYNN", nil, []float64{-1, 1, -1, -1}, -0.5, 1, 0.5},
		{"no evidence at all: no r_exit", "nnN", nil, []float64{1, 1, -1}, null, 1, 1},
		{"one unreadable turn", "n!Y", nil, []float64{1, null, 1}, 0, 0, 0}, // the unread turn lies before t_last
		{"an unreadable turn behind the last evidence", "Y!", nil, []float64{1, null}, null, 0, 0},
		{"nobody knows what stands behind the last evidence", "Yo", nil, []float64{1, null}, null, 1, 1},
		{"unknown before the last evidence does no harm", "oY", nil, []float64{null, 1}, 0, 1, 1},
		{"ended and evidence was not read", "nY>", []export.Evidence{export.HasNot, export.Has}, []float64{1, 1}, -0.75, 1, 0.25},
		{"ended and nothing was missed", "nY>", []export.Evidence{export.HasNot}, []float64{1, 1}, 0, 1, 1},
		{"ended and nobody knows", "nY>", []export.Evidence{export.Unknown}, []float64{1, 1}, null, 1, 1},
		{"the server cut a prompt", "nY#", nil, []float64{1, 1, null}, null, null, null},
		{"nothing", "", nil, nil, null, null, null},
	}
	for _, tt := range tests {
		s := export.Score(export.Rollout{Steps: steps(tt.steps), Unread: tt.unread})
		for i, want := range tt.update {
			if !same(s.Update[i], want) {
				t.Errorf("%s: r_update(%d) = %v, want %v", tt.name, i+1, show(s.Update[i]), want)
			}
		}
		for what, p := range map[string]struct {
			got  *float64
			want float64
		}{"r_exit": {s.Exit, tt.exit}, "r_format": {s.Format, tt.format}, "r_traj": {s.Traj, tt.reward}} {
			if !same(p.got, p.want) {
				t.Errorf("%s: %s = %v, want %v", tt.name, what, show(p.got), p.want)
			}
		}
	}
}

// TestAdvantages: Eq. 12 and 13 of the paper, as specs quote them:
//
//	A_traj(g)    = r_traj(g) - mean_g r_traj                 (no std division)
//	A_turn(g,t)  = r_update(g,t) - mean over the G_t rollouts still alive at step t
//	A(g,t,i)     = α·A_traj + (1-α)·A_turn,   α = 0.9
//
// Three rollouts over the same four chunks, the second of which holds the only
// evidence. The first ends there, the second reads on, the third misses it.
//
//	rollout  r_update        r_exit  r_format  r_traj  A_traj (mean 2/3)
//	nY>      +1 +1            0       1         1.0     +1/3
//	NYnn     -1 +1 +1 +1     -0.5     1         0.5     -1/6
//	nynN     +1 -1 +1 -1     -0.5     1         0.5     -1/6
//
// Alive at steps 1 and 2: three, means 1/3 and 1/3; at steps 3 and 4 two, means 1 and 0.
func TestAdvantages(t *testing.T) {
	t.Parallel()
	no := []export.Evidence{export.HasNot, export.HasNot}
	group := []export.Rollout{{Steps: steps("nY>"), Unread: no}, {Steps: steps("NYnn")}, {Steps: steps("nynN")}}
	scores := make([]export.Scores, len(group))
	for i := range group {
		scores[i] = export.Score(group[i])
	}
	export.Advantages(group, scores)
	traj := []float64{1. / 3, -1. / 6, -1. / 6}
	turn := [][]float64{{2. / 3, 2. / 3}, {-4. / 3, 2. / 3, 0, 1}, {2. / 3, -4. / 3, 0, -1}}
	for g := range group {
		if !same(scores[g].ATraj, traj[g]) {
			t.Errorf("A_traj(%d) = %v, want %v", g, show(scores[g].ATraj), traj[g])
		}
		for i, want := range turn[g] {
			if !same(scores[g].ATurn[i], want) {
				t.Errorf("A_turn(%d,%d) = %v, want %v", g, i+1, show(scores[g].ATurn[i]), want)
			}
			if all := 0.9*traj[g] + 0.1*want; !same(scores[g].Advantage[i], all) {
				t.Errorf("A(%d,%d) = %v, want %v", g, i+1, show(scores[g].Advantage[i]), all)
			}
		}
	}

	one := []export.Rollout{{Steps: steps("nYo")}}
	s := []export.Scores{export.Score(one[0])}
	export.Advantages(one, s)
	for i, want := range []float64{0, 0, null} {
		if !same(s[0].Advantage[i], want) {
			t.Errorf("a group of one: A(%d) = %v, want %v", i+1, show(s[0].Advantage[i]), want)
		}
	}
	if !same(s[0].ATraj, 0) {
		t.Errorf("a group of one: A_traj = %v", show(s[0].ATraj))
	}
}
