package gru_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestExitAtL2: over 400 chunks of which 17 hold evidence a perfect model opens the
// exit gate with the last of them. At L1 that is recorded and all is read; at L2,
// where the gate is acted on, the part ends there, after the step's own update
// (GRU-Mem, Algorithm 1: the exit comes after the update).
func TestExitAtL2(t *testing.T) {
	t.Parallel()
	const chunks, facts, last = 400, 17, 16*20 + 3
	for level, want := range map[memory.Level]int{memory.L1: chunks, memory.L2: last + 1} {
		cfg := &gru.Config{
			Tenant: "local", Project: "shop", Stream: "s", Question: "q", Level: level, BudgetTokens: 1024, ExitGate: level == memory.L2, Count: words,
			Model: &gru.Model{Policy: "model/full", Name: "perfect", WindowTokens: 12288, ReplyTokens: 2048, TokenFactor: 1, Checks: true},
		}
		part := partOf(1, chunks)
		s, _ := gru.Begin(gru.State{}, cfg, part, epoch)
		open, exits, acted, most, prompt := 0, 0, 0, 0, 0
		for !s.Done(part) {
			i := s.Open.Next
			text := "user: nothing of note is said here"
			if i%20 == 3 && i/20 < facts {
				text = fmt.Sprintf("user: we decided that limit L%d is %d", i, 1000+i)
			}
			next, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: chunkOf(i, epoch, text)}}})
			call := effects[0].(*gru.Call)
			v := gru.Verdict{Exit: i >= last}
			if strings.Contains(text, "decided") {
				v.Update, v.Memory = true, strings.TrimSpace(s.MemoryText+fmt.Sprintf("\nL%d is %d", i, 1000+i))
			}
			prompt += call.PromptTokens
			next, effects = gru.Step(next, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: v.Render(gru.ShapeFull), FinishReason: "stop", PromptTokens: call.PromptTokens}}})
			g := effects[0].(*gru.Append).Records[0].(*memory.Gate)
			open, exits, acted, most, prompt = open+b2i(g.Update), exits+b2i(g.Exit), acted+b2i(g.ExitActed), max(most, g.MemoryTokens), prompt-g.PromptTokens
			s = next
		}
		s, recs := gru.End(s, cfg, part, epoch)
		end := recs[0].(*memory.RunEnd)
		if end.ChunksSeen != want || open != facts || most > 100 || prompt != 0 || !strings.Contains(s.MemoryText, "L323 is 1323") {
			t.Errorf("%s: %d chunks seen, %d open, memory up to %d words, %d tokens off the ledger: %q", level, end.ChunksSeen, open, most, prompt, s.MemoryText)
		}
		if acts := level == memory.L2; end.Exited != acts || acted != b2i(acts) || exits != want-last {
			t.Errorf("%s: exit open %d times, acted on %d, exited %v", level, exits, acted, end.Exited)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
