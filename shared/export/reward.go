package export

// This file is GRU-Mem's rewards and advantages (arXiv 2602.10560, Eq. 8 to 13), as
// far as a log can tell them: there is no checked answer, so that r_outcome is not
// part of r_traj here. They are computed at each export and stored nowhere.

// Rewards and the weight of the trajectory's share, by the paper.
const (
	rewardRight = 1.0   // the update gate agrees with the evidence
	rewardWrong = -1.0  // it does not
	exitEarly   = -0.75 // the exit gate opened before the last evidence
	exitExact   = 0.0
	exitLate    = -0.5
	Alpha       = 0.9 // of A_traj; 1-Alpha of A_turn
)

// Evidence is what is known of a piece.
type Evidence int8

// What a label may say, and what no label says.
const (
	Unknown Evidence = iota
	Has
	HasNot
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
	s.Exit = exitReward(r)
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

// exitReward is Eq. 9. t_exit is the first step whose exit gate is open, or the last
// step; t_last is the last piece with evidence, read or not. nil where there is no
// evidence, and where nobody said whether a piece behind the last evidence holds some,
// as t_last is then not known.
func exitReward(r Rollout) *float64 {
	exit := len(r.Steps) - 1
	for t, s := range r.Steps {
		if s.Exit {
			exit = t
			break
		}
	}
	last := -1
	for t := len(r.Steps) + len(r.Unread) - 1; t >= 0 && last < 0; t-- {
		e := Unknown
		if t < len(r.Steps) {
			e = r.Steps[t].Evidence
		} else {
			e = r.Unread[t-len(r.Steps)]
		}
		switch e {
		case Unknown:
			return nil
		case Has:
			last = t
		}
	}
	switch {
	case last < 0:
		return nil
	case exit < last:
		return ref(exitEarly)
	case exit > last:
		return ref(exitLate)
	}
	return ref(exitExact)
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
