package gru

import (
	"encoding/json"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// This file asks again what was not decided. A re-gated step is a new step of the
// same stream, over the same piece of the same chunk, that names the old one
// (regate_of); the memory it starts from is the present one. The run's cause is the
// list of steps; it has no part, so that no cursor moves.

// Regate tells which pending steps a run of a state would ask again: those up to
// step `upTo`, or that of the run that is open.
func (s *State) Regate(upTo int) []PendingStep {
	if s.Open != nil && s.Open.Regate {
		upTo = s.Open.T0
	}
	n := 0
	for n < len(s.Pending) && s.Pending[n].T <= upTo {
		n++
	}
	return s.Pending[:n]
}

// regating is the step that the open run asks again next; nil where it folds a part.
func (s *State) regating() *PendingStep {
	if s.Open == nil || !s.Open.Regate || len(s.Pending) == 0 || s.Pending[0].T > s.Open.T0 {
		return nil
	}
	return &s.Pending[0]
}

func (s *State) toRegate() int { return len(s.Regate(0)) }

// BeginRegate opens the run that asks the pending steps again, all that there are
// now. A run of that kind that is open already is returned as it is.
func BeginRegate(s State, cfg *Config, started time.Time) (State, []Record) {
	if s.Open != nil {
		return s, nil
	}
	steps, err := json.Marshal(s.Pending)
	if err != nil {
		panic("gru: pending steps: " + err.Error()) // numbers always encode
	}
	cause := memory.Cause{Kind: memory.CauseRegate, Ref: string(memory.Sum(steps))}
	run := newRun(s, cfg, cause, started)
	run.Chunks = len(s.Pending)
	return s.Apply(run), []Record{run}
}

// askAgain begins the step that stands for p.
func askAgain(s State, cfg *Config, part *Part, p PendingStep, in ChunkInput) (State, []Effect) {
	c := &in.Chunk
	call := &Call{Kind: CallDecide, Model: cfg.Model.Name, Attempt: 1, in: in, from: p.Start}
	if cfg.Model.Rewrite != "" {
		call.Kind = CallGate
	}
	// A window that is smaller now reads the piece in pieces.
	call.to = min(p.End, pieceEnd(c, lead(c, call.from), cfg.sectionRoom(s.Tokens), cfg.Count))
	return askOf(s, cfg, part, call)
}
