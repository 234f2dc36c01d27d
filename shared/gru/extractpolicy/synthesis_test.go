package extractpolicy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// lowerOf is a memory of lines, the later the newer; a line's score stands before "|".
func lowerOf(id string, lines ...string) gru.Lower {
	var s gru.State
	for i, l := range lines {
		score := 0.0
		if n, rest, ok := strings.Cut(l, "|"); ok {
			fmt.Sscan(n, &score)
			l = rest
		}
		k := &gru.Kept{
			Node: memory.NodeID("local", "shop", memory.L0, id, memory.SumString(l)), Text: l, Score: score, In: true, Role: memory.RoleUser,
			Place: memory.Place{Time: epoch.Add(time.Duration(i) * time.Hour), Admit: int64(i + 1)},
		}
		s.Kept = append(s.Kept, k)
		s.MemoryText += extractpolicy.Line(l, k.Node)
	}
	s.MemorySHA = memory.SumString(s.MemoryText)
	s.MemoryNode = memory.NodeID("local", "shop", memory.L1, id, s.MemorySHA)
	l, ok := gru.LowerOf(id, id, "?", &s)
	if !ok {
		panic("no memory")
	}
	return l
}

func synthesize(t *testing.T, budget int, lower ...gru.Lower) (gru.State, []gru.Record) {
	t.Helper()
	cfg := config(t)
	cfg.Level, cfg.Policy, cfg.BudgetTokens, cfg.Lower = memory.L2, extractpolicy.Synthesis{}, budget, lower
	part := gru.SynthesisPart(lower)
	s, all := gru.BeginSynthesis(gru.State{}, cfg, epoch)
	for !s.Done(part) {
		next, recs := gru.StepChunk(s, cfg, part, gru.ChunkInput{Chunk: lower[s.Open.Next].Chunk(s.Open.Next)})
		s, all = next, append(all, recs...)
	}
	s, recs := gru.EndSynthesis(s, cfg, true, epoch)
	return s, append(all, recs...)
}

func bare(s gru.State) (out []string) {
	for l := range strings.Lines(s.MemoryText) {
		l, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(l), "- "), " [")
		out = append(out, l)
	}
	return out
}

func TestSynthesisPolicy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		budget int
		lower  []gru.Lower
		want   string
	}{
		"all that fits, in order, each line once": {
			1024,
			[]gru.Lower{lowerOf("a", "Retries stop after 5 attempts.", "Deploys wait for the migration."), lowerOf("b", "Deploys wait for the migration.", "Ada owns the pager.")},
			"Retries stop after 5 attempts.|Deploys wait for the migration.|Ada owns the pager.",
		},
		"the greatest score first where the share is full": {
			34,
			[]gru.Lower{lowerOf("a", "1|The oldest line with little weight.", "9|The line with the most weight.", "2|A line with some weight.")},
			"The line with the most weight.|A line with some weight.",
		},
		"a question that needs little leaves the rest": {
			100,
			[]gru.Lower{lowerOf("a", "Short."), lowerOf("b", "1|The first of many lines here.", "2|The second of many lines here.", "3|The third of many lines here.", "4|The fourth of many lines here.")},
			"Short.|The first of many lines here.|The second of many lines here.|The third of many lines here.|The fourth of many lines here.",
		},
		"of two questions that contradict each other the newer one stands": {
			1024,
			[]gru.Lower{
				lowerOf("a", "The cache TTL of the price service is 10 minutes."),
				lowerOf("b", "Ada owns the pager.", "The cache TTL of the price service is 20 minutes."),
			},
			"Ada owns the pager.|The cache TTL of the price service is 20 minutes.",
		},
	} {
		s, recs := synthesize(t, tc.budget, tc.lower...)
		if got := strings.Join(bare(s), "|"); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
		for _, r := range recs {
			if m, ok := r.(*memory.Memory); ok && len(m.Parents) == 0 {
				t.Errorf("%s: a memory of nothing: %+v", name, m)
			}
		}
	}
}

// TestSynthesisLaws: a memory of whole lines of its inputs, inside the budget, none
// twice, and each input that has a line there is a parent.
func TestSynthesisLaws(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 5))
	for range 200 {
		var lower []gru.Lower
		known := map[string][]string{}
		for i := range 1 + rnd.IntN(6) {
			var lines []string
			for range 1 + rnd.IntN(8) {
				l := fmt.Sprintf("%d|%s", rnd.IntN(5), talk(rnd))
				lines = append(lines, l)
			}
			l := lowerOf(fmt.Sprint("q", i), lines...)
			for _, line := range l.Lines {
				known[line.Text] = append(known[line.Text], string(l.Node))
			}
			lower = append(lower, l)
		}
		budget := 40 + rnd.IntN(400)
		s, recs := synthesize(t, budget, lower...)
		cfg := config(t)
		if n := cfg.Count(s.MemoryText); n > budget || n != s.Tokens {
			t.Errorf("%d tokens, recorded %d, budget %d", n, s.Tokens, budget)
		}
		seen := map[string]bool{}
		var last *memory.Memory
		for _, r := range recs {
			if m, ok := r.(*memory.Memory); ok {
				last = m
			}
		}
		for _, l := range bare(s) {
			if seen[l] || known[l] == nil {
				t.Errorf("%q: twice %v, known %v", l, seen[l], known[l])
			}
			seen[l] = true
			if last != nil && !strings.Contains(fmt.Sprint(last.Parents), known[l][0]) {
				t.Errorf("%q of %v: parents %v", l, known[l], last.Parents)
			}
		}
	}
}

func BenchmarkSynthesis(b *testing.B) {
	for _, n := range []int{9, 64} {
		b.Run(fmt.Sprintf("%d-questions", n), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 1))
			var lower []gru.Lower
			for i := range n {
				var lines []string
				for range 30 {
					lines = append(lines, talk(rnd))
				}
				lower = append(lower, lowerOf(fmt.Sprint("q", i), lines...))
			}
			t := &testing.T{}
			b.ReportAllocs()
			for b.Loop() {
				synthesize(t, 1024, lower...)
			}
		})
	}
}
