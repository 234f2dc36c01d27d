package export

import "github.com/mneme-ai/mneme/shared/labels"

// This file is GRU-Mem's rewards and advantages (arXiv 2602.10560, Eq. 8 to 13), as
// far as a log can tell them: there is no checked answer, so that r_outcome is not
// part of r_traj here. They are computed at each export and stored nowhere.

// Rewards and the weight of the trajectory's share, by the paper.
const (
	rewardRight = 1.0  // the update gate agrees with the evidence
	rewardWrong = -1.0 // it does not
	Alpha       = 0.9  // of A_traj; 1-Alpha of A_turn
)

// Evidence is what is known of a piece.
type Evidence = labels.Evidence

// What a label may say, and what no label says.
const (
	Unknown = labels.Unknown
	Has     = labels.Has
	HasNot  = labels.HasNot
)

// Step is one turn of a rollout.
type Step struct {
	Place    Place
	Decided  bool // there is a decision: pending steps have none
	Open     bool // the update gate, whatever became of the memory
	Exit     bool // the exit gate, acted on or not
	Parsed   bool // the reply kept to the contract
	Cut      bool // the server cut the prompt: nothing is known of how the model keeps to the contract
	Evidence Evidence
}

// Place is where in its part a step begins: chunk, and byte of its text. It is what
// the same turn of another rollout has in common with it.
type Place struct{ I, Start int }

// Rollout is one trajectory: all turns over one part, in order.
type Rollout struct {
	Steps []Step
	// Unread is what is known of the pieces behind an exit gate that was acted on.
	Unread []Evidence
}

// Scores are the rewards of a rollout and, once Advantages has seen its group, the
// advantages. A nil one is not defined.
type Scores struct {
	Update    []*float64 // by step
	Exit      *float64
	Format    *float64
	Traj      *float64 // r_exit (0 where not defined) + r_format
	ATraj     *float64
	ATurn     []*float64 // by step
	Advantage []*float64 // by step: Alpha·ATraj + (1-Alpha)·ATurn

	outcome labels.Outcome
}

func ref(v float64) *float64 { return &v }

// Score computes a rollout's rewards.
func Score(r Rollout) Scores {
	s := Scores{Update: make([]*float64, len(r.Steps))}
	cut, parsed := false, true
	for i, st := range r.Steps {
		s.Update[i] = updateReward(st)
		cut = cut || st.Cut
		parsed = parsed && st.Parsed
	}
	s.outcome = exitOf(r)
	if v, ok := s.outcome.Reward(); ok {
		s.Exit = &v
	}
	if len(r.Steps) == 0 || cut {
		return s
	}
	s.Format = ref(0)
	if parsed {
		*s.Format = 1
	}
	s.Traj = ref(*s.Format)
	if s.Exit != nil {
		*s.Traj += *s.Exit
	}
	return s
}

// updateReward is Eq. 8: +1 if U_t == has_evidence(C_t) else -1.
func updateReward(s Step) *float64 {
	if !s.Decided || s.Evidence == Unknown {
		return nil
	}
	if s.Open == (s.Evidence == Has) {
		return ref(rewardRight)
	}
	return ref(rewardWrong)
}

// exitOf is where the rollout's exit stands (labels.ExitOf): at the first step whose exit
// gate is open, or at the last one.
func exitOf(r Rollout) labels.Outcome {
	exit := len(r.Steps) - 1
	for t, s := range r.Steps {
		if s.Exit {
			exit = t
			break
		}
	}
	read := make([]Evidence, len(r.Steps))
	for t, s := range r.Steps {
		read[t] = s.Evidence
	}
	return labels.ExitOf(exit, read, r.Unread)
}

// Advantages fills in the advantages of rollouts over the same question and part:
// A_traj = r_traj - mean, without a division by the deviation; A_turn = r_update -
// mean over the rollouts that are alive at the step. A group of one has 0.
func Advantages(group []Rollout, scores []Scores) {
	var sum, n float64
	turns := map[Place]*mean{}
	for g := range group {
		if r := scores[g].Traj; r != nil {
			sum, n = sum+*r, n+1
		}
		for i, st := range group[g].Steps {
			if r := scores[g].Update[i]; r != nil {
				m := turns[st.Place]
				if m == nil {
					m = &mean{}
					turns[st.Place] = m
				}
				m.add(*r)
			}
		}
	}
	for g := range group {
		s := &scores[g]
		s.ATurn, s.Advantage = make([]*float64, len(group[g].Steps)), make([]*float64, len(group[g].Steps))
		if s.Traj != nil {
			s.ATraj = ref(*s.Traj - sum/n)
		}
		for i, st := range group[g].Steps {
			if s.Update[i] == nil {
				continue
			}
			s.ATurn[i] = ref(*s.Update[i] - turns[st.Place].value())
			if s.ATraj != nil {
				s.Advantage[i] = ref(Alpha**s.ATraj + (1-Alpha)**s.ATurn[i])
			}
		}
	}
}

type mean struct{ sum, n float64 }

func (m *mean) add(v float64)  { m.sum, m.n = m.sum+v, m.n+1 }
func (m *mean) value() float64 { return m.sum / m.n }
