package gru_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// These tests hold the loop to rules of GRU-Mem (arXiv 2602.10560) and, where
// it inherits them, of MemAgent (arXiv 2507.02259). Each gives its rule.

// converse runs the chunks of one part, the replies in turn, and gives the
// state and the gate records.
func converse(t *testing.T, s gru.State, cfg *gru.Config, chunks []string, replies ...string) (gru.State, []*memory.Gate) {
	t.Helper()
	st := &stage{cfg: cfg, state: s, part: partOf(s.Admit+1, len(chunks))}
	st.step(gru.BeginPart{At: epoch})
	for !st.state.Done(st.part) {
		i := st.state.Open.Next
		st.step(gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: chunkOf(i, epoch, chunks[i])}})
		for st.call != nil {
			if len(replies) == 0 {
				t.Fatal("no reply left for a call")
			}
			r := replies[0]
			replies = replies[1:]
			st.step(gru.ModelReply{Reply: gru.Reply{Content: r, FinishReason: "stop"}})
		}
	}
	if len(replies) > 0 {
		t.Fatalf("%d replies were not asked for", len(replies))
	}
	st.step(gru.EndPart{At: epoch})
	var gates []*memory.Gate
	for _, r := range st.log {
		if g, ok := r.(*memory.Gate); ok {
			gates = append(gates, g)
		}
	}
	return st.state, gates
}

func modelConfig() *gru.Config {
	return &gru.Config{
		Tenant: "local", Project: "shop", Stream: "q@00000000", QueryID: "q", Question: "Which limits were set?", Level: memory.L1,
		BudgetTokens: 1024, Count: words, Model: &gru.Model{Policy: "model/full", Name: "m", WindowTokens: 12288, ReplyTokens: 2048},
	}
}

func reply(update bool, mem string, exit bool) string {
	return gru.Verdict{Update: update, Memory: mem, Exit: exit}.Render(gru.ShapeFull)
}

// "M_t = M̂_t if U_t = True, = M_{t-1} if U_t = False (candidate discarded,
// memory byte-identical)" — Eq. 7, Algorithm 1.
func TestPaperUpdateGate(t *testing.T) {
	t.Parallel()
	const kept = "  retries:\t5 \u00a0(final)  "
	s, gates := converse(t, gru.State{}, modelConfig(), []string{"user: a", "user: b", "user: c"},
		reply(true, kept, false),
		"<check>no</check><update>other words</update><next>continue</next>",
		reply(true, "retries: 7", false))
	if want := []bool{true, false, true}; !cmp.Equal(want, []bool{gates[0].Update, gates[1].Update, gates[2].Update}) {
		t.Fatalf("gates %v %v %v, want %v", gates[0].Update, gates[1].Update, gates[2].Update, want)
	}
	if gates[1].MemorySHA != gates[0].MemorySHA || gates[1].MemoryBeforeSHA != gates[0].MemorySHA {
		t.Error("a closed gate changed the memory")
	}
	if s.MemoryText != "retries: 7" {
		t.Errorf("an accepted update replaces the whole memory, got %q", s.MemoryText)
	}
}

// "An accepted update rewrites the whole memory (no append)" — and M_0 is
// empty: the first prompt says "none".
func TestPaperEmptyMemoryAtStart(t *testing.T) {
	t.Parallel()
	cfg := modelConfig()
	s, _ := gru.Step(gru.State{}, gru.Input{Config: cfg, Part: partOf(1, 1), Event: gru.BeginPart{At: epoch}})
	s, _ = gru.Step(s, gru.Input{Config: cfg, Part: partOf(1, 1), Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: chunkOf(0, epoch, "user: a")}}})
	if user := s.Call.Prompt.User; !strings.Contains(user, "<memory>\nnone\n</memory>") {
		t.Errorf("the first prompt holds another memory:\n%s", user)
	}
}

// "if E_t = True and mode == w EG: break — exit AFTER applying this step's
// update", and "the two gates are independent": an exit with a closed update
// gate copies the memory (workflow figure).
func TestPaperExitGate(t *testing.T) {
	t.Parallel()
	chunks := []string{"user: a", "user: b", "user: c"}
	for _, c := range []struct {
		name     string
		exitGate bool
		replies  []string
		steps    int
		memory   string
	}{
		{"w EG, update and exit", true, []string{reply(true, "m1", true)}, 1, "m1"},
		{"w EG, exit with the update gate closed", true, []string{reply(true, "m1", false), reply(false, "", true)}, 2, "m1"},
		{"w/o EG, the exit is ignored", false, []string{reply(true, "m1", true), reply(false, "", true), reply(true, "m3", true)}, 3, "m3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := modelConfig()
			cfg.ExitGate = c.exitGate
			s, gates := converse(t, gru.State{}, cfg, chunks, c.replies...)
			if len(gates) != c.steps || s.MemoryText != c.memory {
				t.Fatalf("%d steps, memory %q; want %d, %q", len(gates), s.MemoryText, c.steps, c.memory)
			}
			last := gates[len(gates)-1]
			if !last.Exit || last.ExitActed != c.exitGate {
				t.Errorf("exit %v, acted %v", last.Exit, last.ExitActed)
			}
		})
	}
}

// "Parser must accept missing/empty <update> iff check=no" and "values trimmed,
// case-folded; anything else → format_ok=false. Never guess from prose" —
// output contract. What a failure does to the loop: "U=false, E=continue,
// memory unchanged, gate event logged with reason".
func TestPaperFormatFailure(t *testing.T) {
	t.Parallel()
	cfg := modelConfig()
	cfg.ExitGate = true
	s, gates := converse(t, gru.State{}, cfg, []string{"user: a", "user: b"},
		reply(true, "m1", false),
		"<check>yes</check><update></update><next>end</next>", "I am done: <next>end</next>")
	g := gates[1]
	if g.FormatOK || !g.Pending || g.Update || g.Exit || g.Reason == "" || s.MemoryText != "m1" {
		t.Errorf("gate %+v, memory %q", g, s.MemoryText)
	}
}

// "question ≤ 1024, memory 1024, max prompt 8192, response 2048" — budgets of
// the paper and of MemAgent's released configuration. With them the loop fits
// into the window that Mneme asks of a server, and not into Ollama's default.
func TestPaperBudgets(t *testing.T) {
	t.Parallel()
	cfg := modelConfig()
	cfg.Question = strings.TrimSpace(strings.Repeat("why ", gru.MaxQuestionTokens))
	if err := cfg.Check(); err != nil {
		t.Errorf("the paper's budgets do not fit 12,288: %v", err)
	}
	cfg.Question += " now"
	if err := cfg.Check(); !fault.Is(err, fault.Invalid) {
		t.Errorf("a question of 1,025 tokens: %v", err)
	}
	cfg = modelConfig()
	cfg.Model.WindowTokens = 1024 + 2048
	if err := cfg.Check(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "= ") {
		t.Errorf("a window that is too small: %v, want the sum named", err)
	}
}
