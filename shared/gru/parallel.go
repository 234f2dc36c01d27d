package gru

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// This file asks the gates of several chunks side by side, for servers that batch.
// A part is cut into batches of Model.Parallel chunks by their place in it; the gates
// of a batch see the memory as it was before its first chunk, and the open chunks are
// merged in order, each into the memory as it then is. What is decided may differ from
// asking one after the other: a gate does not know what the batch has found already
// (PI-Mem, arXiv 2608.03048, reads so on purpose).
//
// Batches hang on the chunk's place alone and the frozen memory is folded from the
// log (OpenRun.Frozen), so that a run that was interrupted within a batch goes on to
// the same decisions.

// parallel reports whether the stream's gates are asked side by side. Where an open
// exit gate ends the part nothing is asked ahead: it might be asked for nothing.
func (cfg *Config) parallel() bool {
	return cfg.Model.Parallel > 1 && cfg.Model.Rewrite != "" && !cfg.ExitGate
}

// BatchEnd is the first chunk behind the batch in which the open run's next chunk
// stands; 0 where gates are asked one after the other.
func (cfg *Config) BatchEnd(s *State, chunks int) int {
	if cfg.Model == nil || !cfg.parallel() || s.Open == nil || s.Open.Regate {
		return 0
	}
	k := cfg.Model.Parallel
	return min(s.Open.Next/k*k+k, chunks)
}

// Ahead is the gate's call about a chunk of the batch that is at hand, with the memory
// before the batch; nil where it must wait for its turn: there is nothing to ask, or
// it is read in pieces, whose size hangs on the memory.
func Ahead(s State, cfg *Config, in ChunkInput) *Call {
	c := &in.Chunk
	if _, ok := settled(c); ok || c.I == s.Open.Next && s.Open.From > 0 {
		return nil
	}
	frozen := s.Open.Frozen
	if s.Open.Next%cfg.Model.Parallel == 0 {
		frozen = s.MemoryText // the batch begins here
	}
	call := &Call{Kind: CallGate, Model: cfg.Model.Name, Attempt: 1, in: in, to: len(c.Text), ahead: true}
	if frozen != "" {
		call.frozen = memory.SumString(frozen)
	}
	if strings.TrimSpace(call.section()) == "" || pieceEnd(c, lead(c, 0), cfg.sectionRoom(cfg.Count(frozen)), cfg.Count) < len(c.Text) {
		return nil
	}
	issue(State{}, cfg, call, frozen, "")
	return call
}
