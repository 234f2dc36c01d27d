package extractpolicy_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Any bytes are read; what is kept is a verbatim part of one turn; the memory
// is made of whole statements inside its budget; and the same chunk admitted
// again, with the times it had, says nothing new (brief D8).
func FuzzDecide(f *testing.F) {
	f.Add("user: We decided that retries stop after exactly 5 attempts, because the upstream bans us.\nassistant: Understood, exactly 5 attempts from now on.")
	f.Add("user: The limit for the queue must be exactly 5 jobs at most.\nuser: From now on the limit for the queue must be exactly 7 jobs at most.")
	f.Add("note: # T\nThe service listens on port 8443.\n- Deploys happen on Fridays.\nThe service listens on port 8443.")
	f.Add("user: \xff\xfe must never be 5 `x` [deadbeef]\n- [x] always\nassistant: ok\u2060")
	f.Fuzz(func(t *testing.T, input string) {
		if len(input) > 1<<14 {
			return
		}
		if !strings.HasPrefix(input, "note: ") {
			input = "user: " + strings.TrimPrefix(input, "user: ")
		}
		cfg := config(t)
		cfg.BudgetTokens = 200
		s, recs := fold(gru.State{}, cfg, 1, epoch, "", input)
		c := chunkOf(0, epoch, input)
		for _, r := range recs {
			e, ok := r.(*memory.Evidence)
			if !ok {
				continue
			}
			if e.Text != c.Text[e.Span.ChunkStart:e.Span.ChunkEnd] || e.Text == "" {
				t.Errorf("evidence %q is not chunk text [%d,%d)", e.Text, e.Span.ChunkStart, e.Span.ChunkEnd)
			}
		}
		if n := cfg.Count(s.MemoryText); n > cfg.BudgetTokens || n != s.Tokens {
			t.Errorf("memory of %d tokens, recorded %d, budget %d", n, s.Tokens, cfg.BudgetTokens)
		}
		for _, k := range s.Kept {
			if k.In != strings.Contains(s.MemoryText, "- "+k.Text+" ["+k.Node.Short()+"]\n") {
				t.Errorf("%q: in the state's memory %v, and the text says otherwise:\n%s", k.Text, k.In, s.MemoryText)
			}
		}
		again, recs := fold(s, cfg, 2, epoch, "", input)
		if g := recs[1].(*memory.Gate); g.Update || again.MemoryText != s.MemoryText {
			t.Errorf("the same chunk again: update %v, %s\nbefore:\n%s\nafter:\n%s", g.Update, g.Reason, s.MemoryText, again.MemoryText)
		}
	})
}
