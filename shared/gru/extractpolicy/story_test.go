package extractpolicy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/token"
)

var epoch = time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)

var turnStart = regexp.MustCompile(`^(user|assistant|tool|note|system|summary|injected)(\*?): ?`)

// chunkOf builds a chunk from turns that begin with "role: "; a star marks a
// turn off the active path.
func chunkOf(i int, at time.Time, input string) memory.Chunk {
	c := memory.Chunk{V: 1, Type: memory.TypeChunk, Level: memory.LevelNone, I: i, Policy: memory.ChunkPolicy}
	var b strings.Builder
	open := false
	end := func() {
		if n := len(c.Turns); n > 0 && open {
			t := &c.Turns[n-1]
			t.End = b.Len()
			t.Pieces = []memory.ChunkPiece{{C0: t.Start, C1: t.End, O0: int64(t.Start), O1: int64(t.End), Enc: memory.RawEncoding}}
			b.WriteString("\n")
		}
	}
	for line := range strings.SplitSeq(input, "\n") {
		m := turnStart.FindStringSubmatch(line)
		if m == nil {
			b.WriteString("\n" + line)
			continue
		}
		end()
		open = true
		n := len(c.Turns)
		when := at.Add(time.Duration(n) * time.Minute)
		trust := memory.Trust(m[1])
		if m[1] == "note" {
			trust = memory.TrustUser
		}
		fmt.Fprintf(&b, "[%s]\n", m[1])
		c.Turns = append(c.Turns, memory.ChunkTurn{
			ID: fmt.Sprintf("s/%d.%d", i, n), Role: memory.Role(m[1]), Kind: memory.KindText, Trust: trust,
			Time: &when, TimeQuality: memory.TimeExact, Start: b.Len(), Abandoned: m[2] == "*",
		})
		b.WriteString(line[len(m[0]):])
	}
	end()
	c.Text = b.String()
	c.SHA256 = memory.SumString(c.Text)
	return c
}

func counter(t testing.TB) func(string) int {
	t.Helper()
	tok, err := token.Pure()
	if err != nil {
		t.Fatal(err)
	}
	return tok.Count
}

// shared is one policy for all tests: it is safe for concurrent use.
var shared = sync.OnceValue(func() *extractpolicy.Policy { return extractpolicy.New(extractive.Options{}) })

func config(t testing.TB) *gru.Config {
	return &gru.Config{
		Tenant: "local", Project: "shop", Stream: "why@00000000", QueryID: "why", Question: "Which decisions were made, and why?",
		Level: memory.L1, BudgetTokens: 1024, Count: counter(t), Policy: shared(),
	}
}

// fold runs the loop over one part.
func fold(s gru.State, cfg *gru.Config, seq int64, at time.Time, context string, chunks ...string) (gru.State, []any) {
	p := &gru.Part{
		Admit:  memory.Admit{Seq: seq, Source: memory.SumString(fmt.Sprint(seq)), StoredAt: epoch.AddDate(1, 0, 0)},
		Source: memory.Source{Object: fmt.Sprintf("transcripts/shop/%d.jsonl", seq), ETag: "e"},
		Chunks: len(chunks),
	}
	s, log := gru.Begin(s, cfg, p, epoch)
	for i, text := range chunks {
		in := gru.ChunkInput{Chunk: chunkOf(i, at, text)}
		if i == 0 {
			in.Context = context
		}
		var recs []any
		s, recs = gru.StepChunk(s, cfg, p, in)
		log = append(log, recs...)
	}
	s, recs := gru.End(s, cfg, p, epoch)
	return s, append(log, recs...)
}

func show(r any) string {
	switch r := r.(type) {
	case *memory.Gate:
		open := "closed"
		if r.Update {
			open = "open"
		}
		s := fmt.Sprintf("t=%d %s (%s)", r.T, open, r.ReasonCode)
		if r.EvidenceDropped > 0 {
			s += fmt.Sprintf(", %d dropped", r.EvidenceDropped)
		}
		return s + "\n"
	case *memory.Evidence:
		s := fmt.Sprintf("  kept %s from %s: %s\n", r.Node.Short(), r.Role, r.Text)
		for _, o := range r.Supersedes {
			dir := "is replaced by"
			if r.Place.Compare(o.Place) > 0 {
				dir = "replaces"
			}
			s += fmt.Sprintf("       %s %s\n", dir, o.Node.Short())
		}
		return s
	}
	return ""
}

func TestStories(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		cfg := config(t)
		var s gru.State
		var log []any
		seq := int64(0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "budget":
				d.ScanArgs(t, "tokens", &cfg.BudgetTokens)
				return "ok"
			case "part": // day: when it was said; the order of the parts is that of reading
				var day int
				context := ""
				d.ScanArgs(t, "day", &day)
				if d.HasArg("after-question") {
					context = "Should the export write UTF-8 or keep the old code page?"
				}
				seq++
				var recs []any
				s, recs = fold(s, cfg, seq, epoch.AddDate(0, 0, day), context, strings.Split(d.Input, "\n===\n")...)
				log = append(log, recs...)
				var out strings.Builder
				for _, r := range recs {
					out.WriteString(show(r))
				}
				return out.String()
			case "memory":
				if got, want := s.Tokens, cfg.Count(s.MemoryText); got != want || got > cfg.BudgetTokens {
					d.Fatalf(t, "%d tokens recorded, %d counted, budget %d", got, want, cfg.BudgetTokens)
				}
				return fmt.Sprintf("%s(%d tokens)", s.MemoryText, s.Tokens)
			case "fold":
				if diff := cmp.Diff(s, gru.Fold(slices.Values(log))); diff != "" {
					return "differs (-loop +fold):\n" + diff
				}
				return "the same state"
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// phrases make chats that open the gate, repeat, contradict and chatter.
var phrases = []string{
	"user: From now on the retry budget must be %d attempts, never more, because the upstream bans us.",
	"user: We decided that the export always writes UTF-8 with at most %d columns; no exceptions.",
	"user: The cache must never keep an entry for more than %d minutes, otherwise prices go stale.",
	"user: thanks, what about line %d?",
	"assistant: Understood, the limit is exactly %d from now on, as agreed.",
	"assistant: Let me look at file %d.",
	"note: # Title %d\nThe service listens on port %d inside the cluster.",
}

// Stopping after every part, by fold or through JSON, and a policy without its
// memos, give the same bytes as never having stopped.
func TestReplayIsByteEqual(t *testing.T) {
	t.Parallel()
	run := func(between func(s gru.State, log []any, cfg *gru.Config) gru.State) string {
		cfg := config(t)
		cfg.BudgetTokens = 150
		var s gru.State
		var log []any
		for n := range 40 {
			chunk := ""
			for k := range 3 {
				f := phrases[(n*5+k*3)%len(phrases)]
				args := []any{n % 4 * 3, n % 4 * 3}
				chunk += fmt.Sprintf(f, args[:strings.Count(f, "%d")]...) + "\n"
			}
			var recs []any
			s, recs = fold(s, cfg, int64(n+1), epoch.AddDate(0, 0, n*17%40), "", strings.TrimSpace(chunk))
			log = append(log, recs...)
			s = between(s, log, cfg)
		}
		b, err := json.Marshal(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := run(func(s gru.State, _ []any, _ *gru.Config) gru.State { return s })
	if n := strings.Count(want, `"update":true`); n < 5 {
		t.Fatalf("the run proves nothing: %d updates", n)
	}
	for name, way := range map[string]func(gru.State, []any, *gru.Config) gru.State{
		"fold": func(_ gru.State, log []any, _ *gru.Config) gru.State { return gru.Fold(slices.Values(log)) },
		"another process": func(s gru.State, _ []any, cfg *gru.Config) gru.State {
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back gru.State
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			cfg.Policy = extractpolicy.New(extractive.Options{})
			return back
		},
	} {
		if got := run(way); got != want {
			t.Errorf("%s: the records differ", name)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    extractive.Options
		want string
	}{
		{extractive.Options{}, "extractive/" + extractive.Version},
		{extractive.Options{Threshold: extractive.DefaultThreshold}, "extractive/" + extractive.Version},
		{extractive.Options{Threshold: 1.25}, "extractive/" + extractive.Version + "@1.25"},
		{extractive.Options{Variant: extractive.AsWritten}, "extractive/x0"},
	} {
		if got := extractpolicy.New(c.o).Name(); got != c.want {
			t.Errorf("New(%+v).Name() = %q, want %q", c.o, got, c.want)
		}
	}
}

// What tools, harnesses, summaries, other paths and Mneme itself say opens no
// gate, whatever it says.
func TestNeverEvidence(t *testing.T) {
	t.Parallel()
	const order = "We decided: from now on the retry budget must be 5 attempts, never more, because the upstream bans us."
	if _, recs := fold(gru.State{}, config(t), 1, epoch, "", "user: "+order); !recs[1].(*memory.Gate).Update {
		t.Fatal("the order opens no gate even from a user: the test proves nothing")
	}
	for name, change := range map[string]func(t *memory.ChunkTurn){
		"tool":        func(t *memory.ChunkTurn) { t.Role, t.Trust = memory.RoleTool, memory.TrustTool },
		"injected":    func(t *memory.ChunkTurn) { t.Role, t.Trust = memory.RoleInjected, memory.TrustInjected },
		"system":      func(t *memory.ChunkTurn) { t.Role = memory.RoleSystem },
		"summary":     func(t *memory.ChunkTurn) { t.Role = memory.RoleSummary },
		"abandoned":   func(t *memory.ChunkTurn) { t.Abandoned = true },
		"derived":     func(t *memory.ChunkTurn) { t.Derived = true },
		"tool call":   func(t *memory.ChunkTurn) { t.Role, t.Kind = memory.RoleAssistant, memory.KindToolCall },
		"web trust":   func(t *memory.ChunkTurn) { t.Trust = memory.TrustWeb },
		"as a prompt": func(t *memory.ChunkTurn) { t.Trust = memory.TrustInjected },
	} {
		cfg := config(t)
		c := chunkOf(0, epoch, "user: "+order)
		change(&c.Turns[0])
		p := &gru.Part{Admit: memory.Admit{Seq: 1, Source: memory.SumString("x")}, Chunks: 1}
		s, _ := gru.Begin(gru.State{}, cfg, p, epoch)
		_, recs := gru.StepChunk(s, cfg, p, gru.ChunkInput{Chunk: c})
		if g := recs[0].(*memory.Gate); g.Update || len(recs) != 1 {
			t.Errorf("%s: opened (%s)", name, g.Reason)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		extractpolicy.New(extractive.Options{})
	}
}

// keptState is a stream that has kept n statements: alike ones, that share most
// of their words, or such as projects have, whose words follow Zipf's law.
func keptState(n int, alike bool) gru.State {
	var s gru.State
	rnd := rand.New(rand.NewPCG(3, 5))
	zipf := rand.NewZipf(rnd, 1.1, 4, 4000)
	for i := range n {
		text := fmt.Sprintf("The worker for queue q%d must never hold more than %d jobs, because region r%d pages us.", i, i%90, i%7)
		if !alike {
			var b strings.Builder
			for range 8 + rnd.IntN(12) {
				fmt.Fprintf(&b, "word%d ", zipf.Uint64())
			}
			text = b.String() + "must never fail."
		}
		s.Kept = append(s.Kept, &gru.Kept{Node: memory.SumString(fmt.Sprint(i, text)), Text: text, T: i, Role: memory.RoleUser, In: i < 30, Place: memory.Place{Time: epoch, Admit: 1, I: i}})
	}
	return s
}

// BenchmarkDecide is one step of the loop, its records and its new state,
// beside what the stream has kept before.
func BenchmarkDecide(b *testing.B) {
	for _, kept := range []int{0, 100, 2000, 10_000} {
		for name, alike := range map[string]bool{"kept": false, "alike": true} {
			b.Run(fmt.Sprintf("%d-%s", kept, name), func(b *testing.B) {
				cfg := config(b)
				cfg.Policy = extractpolicy.New(extractive.Options{}) // an index of its own
				p := &gru.Part{Admit: memory.Admit{Seq: 2, Source: memory.SumString("x"), StoredAt: epoch.AddDate(1, 0, 0)}, Chunks: 1}
				s, _ := gru.Begin(keptState(kept, alike), cfg, p, epoch)
				c := chunkOf(0, epoch.AddDate(0, 1, 0), "user: From now on the export must write UTF-8, never the old code page, because the ERP rejects it.\nassistant: Understood, UTF-8 only.\nuser: We decided that retries stop after exactly 5 attempts; no exceptions.")
				gru.StepChunk(s, cfg, p, gru.ChunkInput{Chunk: c}) // a running process has the index
				b.ReportAllocs()
				for b.Loop() {
					gru.StepChunk(s, cfg, p, gru.ChunkInput{Chunk: c})
				}
			})
		}
	}
}
