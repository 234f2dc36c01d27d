package gru_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

var epoch = time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)

// words stands in for the tokenizer: the stories count by hand.
func words(s string) int { return len(strings.Fields(s)) }

// chunkOf builds a chunk from lines of "role: text", each turn under a header
// line, a minute apart from at.
func chunkOf(i int, at time.Time, lines ...string) memory.Chunk {
	c := memory.Chunk{V: 1, Type: memory.TypeChunk, Level: memory.LevelNone, I: i, Policy: memory.ChunkPolicy}
	var b strings.Builder
	for n, l := range lines {
		role, text, _ := strings.Cut(l, ": ")
		fmt.Fprintf(&b, "[%s]\n", role)
		start := b.Len()
		b.WriteString(text)
		when := at.Add(time.Duration(n) * time.Minute)
		c.Turns = append(c.Turns, memory.ChunkTurn{
			ID: fmt.Sprintf("s/%d.%d", i, n), Role: memory.Role(role), Kind: memory.KindText, Trust: memory.Trust(role),
			Time: &when, TimeQuality: memory.TimeExact, Start: start, End: b.Len(),
			Pieces: []memory.ChunkPiece{{C0: start, C1: b.Len(), O0: int64(start), O1: int64(b.Len()), Enc: memory.RawEncoding}},
		})
		b.WriteString("\n")
	}
	c.Text = b.String()
	c.SHA256 = memory.SumString(c.Text)
	c.Tokens = words(c.Text)
	return c
}

func partOf(seq int64, chunks int) *gru.Part {
	src := memory.SumString(fmt.Sprintf("source %d", seq))
	return &gru.Part{
		Admit:  memory.Admit{Seq: seq, Source: src, StoredAt: epoch.Add(24 * time.Hour * time.Duration(seq+30))},
		Source: memory.Source{Object: fmt.Sprintf("transcripts/shop/%d.jsonl", seq), ETag: "e"},
		Chunks: chunks,
	}
}

// stage is one stream in a story.
type stage struct {
	cfg    *gru.Config
	part   *gru.Part
	chunks []memory.Chunk
	state  gru.State
	log    []any
	call   *gru.Call
}

func (s *stage) step(e gru.Event) string {
	var effects []gru.Effect
	s.state, effects = gru.Step(s.state, gru.Input{Config: s.cfg, Part: s.part, Event: e})
	s.call = nil
	var out strings.Builder
	for _, e := range effects {
		switch e := e.(type) {
		case *gru.Append:
			s.log = append(s.log, e.Records...)
			for _, r := range e.Records {
				out.WriteString(show(r) + "\n")
			}
		case *gru.Call:
			s.call = e
			fmt.Fprintf(&out, "call %s of %s: attempt %d, seed %d, %d words\n", e.Kind, e.Model, e.Attempt, e.Sampling.Seed, e.PromptTokens)
		}
	}
	if len(effects) == 0 {
		return "nothing\n"
	}
	return out.String()
}

func show(r any) string {
	switch r := r.(type) {
	case *memory.Run:
		return fmt.Sprintf("run of part %d: %s, budget %d", r.Admit, r.Policy, r.MemoryBudget)
	case *memory.Gate:
		s := fmt.Sprintf("gate t=%d chunk %d [%d,%d)", r.T, r.I, r.Start, r.End)
		for _, f := range []struct {
			on   bool
			name string
		}{{r.More, "more"}, {r.Update, "update"}, {r.Exit, "exit"}, {r.ExitActed, "acted"}, {!r.FormatOK, "unreadable"}, {r.Pending, "pending"}, {r.Neutralised, "neutralised"}, {r.TruncatedByServer, "truncated"}} {
			if f.on {
				s += " " + f.name
			}
		}
		return s + fmt.Sprintf(" | %s: %s", r.ReasonCode, r.Reason)
	case *memory.Evidence:
		return fmt.Sprintf("evidence %s %s [%d,%d) %q", r.Node.Short(), r.Role, r.Span.ChunkStart, r.Span.ChunkEnd, r.Text)
	case *memory.Memory:
		return fmt.Sprintf("memory %s of %d words from %d parents", r.Node.Short(), r.Tokens, len(r.Parents))
	case *memory.RunEnd:
		return fmt.Sprintf("run_end: %d seen, %d used, %d pending, exited %v", r.ChunksSeen, r.ChunksUsed, r.Pending, r.Exited)
	}
	return fmt.Sprintf("%T", r)
}

func TestStories(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		s := &stage{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "loop":
				m := &gru.Model{Policy: "model/full", Name: "small", WindowTokens: 8192, ReplyTokens: 2048, TokenFactor: 1, Sampling: memory.Sampling{Temperature: 0.7, TopP: 0.95}}
				s.cfg = &gru.Config{Tenant: "local", Project: "shop", Stream: "why@00000000", QueryID: "why", Level: memory.L1, BudgetTokens: 1024, Count: words, Model: m, Question: "Which limits were set, and why?"}
				d.MaybeScanArgs(t, "budget", &s.cfg.BudgetTokens)
				d.MaybeScanArgs(t, "window", &m.WindowTokens)
				d.MaybeScanArgs(t, "reply", &m.ReplyTokens)
				d.MaybeScanArgs(t, "rewrite", &m.Rewrite)
				d.MaybeScanArgs(t, "question", &s.cfg.Question)
				s.cfg.ExitGate = d.HasArg("exit")
				if err := s.cfg.Check(); err != nil {
					return "refused: " + err.Error()
				}
				return "ok"
			case "part":
				var seq int64
				d.ScanArgs(t, "seq", &seq)
				s.chunks = nil
				for i, text := range strings.Split(d.Input, "\n---\n") {
					s.chunks = append(s.chunks, chunkOf(i, epoch.Add(time.Duration(seq)*24*time.Hour), strings.Split(text, "\n")...))
				}
				s.part = partOf(seq, len(s.chunks))
				return s.step(gru.BeginPart{At: epoch})
			case "read":
				return s.step(gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: s.chunks[s.state.Open.Next]}})
			case "reply":
				r := gru.Reply{Content: d.Input, FinishReason: "stop"}
				d.MaybeScanArgs(t, "finish", &r.FinishReason)
				if s.call != nil {
					r.PromptTokens = s.call.PromptTokens // a server that counts as we do
				}
				d.MaybeScanArgs(t, "prompt", &r.PromptTokens)
				d.MaybeScanArgs(t, "reasoning", &r.Reasoning)
				return s.step(gru.ModelReply{Reply: r})
			case "prompt":
				return "system:\n" + s.call.Prompt.System + "\nuser:\n" + s.call.Prompt.User
			case "memory":
				return s.state.MemoryText
			case "end":
				return s.step(gru.EndPart{At: epoch})
			case "fold":
				if diff := cmp.Diff(s.state, gru.Fold(slices.Values(s.log))); diff != "" {
					return "differs (-loop +fold):\n" + diff
				}
				return "the same state"
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// scripted is a policy whose answer is a function of the chunk's hash, so that
// every kind of decision comes up.
type scripted struct{}

func (scripted) Name() string          { return "scripted/1" }
func (scripted) PromptVersion() string { return "-" }
func (scripted) Decide(in gru.PolicyInput) gru.Decision {
	c := in.Chunk
	d := gru.Decision{FormatOK: true, ReasonCode: gru.ReasonClosed, Reason: "closed"}
	switch c.SHA256[0] {
	case '0', '1', '2', '3', '4', '5':
		return d
	}
	d.Update, d.ReasonCode, d.Reason = true, gru.ReasonKept, "kept"
	d.Exit = c.SHA256[1] < '4'
	for ti := range c.Turns {
		p := gru.Pick{Turn: ti, Start: c.Turns[ti].Start, End: c.Turns[ti].End, Score: float64(c.SHA256[2] % 5)}
		if n := len(in.State.Kept); n > 0 && c.SHA256[3] < '8' {
			k := in.State.Kept[int(c.SHA256[4])%n]
			p.Supersedes = []memory.Occurrence{{Node: k.Node, T: k.T, Place: k.Place}}
		}
		d.Picks = append(d.Picks, p)
		d.Candidate += c.Text[p.Start:p.End] + "\n"
	}
	for i := range in.State.Kept {
		if k := in.State.Kept[i]; k.In && !k.Superseded {
			d.Candidate += k.Text + "\n"
		}
	}
	return d
}

// Stopping after any record and going on from the fold of what is in the log,
// or from its JSON form, gives the bytes of never having stopped.
func TestReplayIsByteEqual(t *testing.T) {
	t.Parallel()
	cfg := &gru.Config{Tenant: "local", Project: "shop", Stream: "q@00000000", QueryID: "q", Question: "?", Level: memory.L1, BudgetTokens: 120, Count: words, Policy: scripted{}}
	run := func(stop func(step int, s gru.State, log []any) gru.State) (gru.State, string, []any) {
		var s gru.State
		var log []any
		step := 0
		take := func(next gru.State, recs []gru.Record) {
			log = append(log, recs...)
			s = stop(step, next, log)
			step++
		}
		for seq := int64(1); seq <= 12; seq++ {
			p := partOf(seq, 4)
			take(gru.Begin(s, cfg, p, epoch))
			for i := range p.Chunks {
				at := epoch.Add(time.Duration((seq*7)%12) * time.Hour) // out of order in time
				take(gru.StepChunk(s, cfg, p, gru.ChunkInput{Chunk: chunkOf(i, at, fmt.Sprintf("user: fact %d of part %d", i%3, seq%5), fmt.Sprintf("assistant: reply %d", i*int(seq)))}))
			}
			take(gru.End(s, cfg, p, epoch))
		}
		b, err := json.Marshal(log)
		if err != nil {
			t.Fatal(err)
		}
		return s, string(b), log
	}
	want, wantLog, records := run(func(_ int, s gru.State, _ []any) gru.State { return s })
	updates := 0
	for _, r := range records {
		if g, ok := r.(*memory.Gate); ok && g.Update {
			updates++
		}
	}
	if updates < 5 || len(want.Kept) < 5 {
		t.Fatalf("the run proves nothing: %d updates, %d kept", updates, len(want.Kept))
	}
	ways := map[string]func(int, gru.State, []any) gru.State{
		"fold at every step": func(_ int, _ gru.State, log []any) gru.State { return gru.Fold(slices.Values(log)) },
		"json at every third": func(step int, s gru.State, _ []any) gru.State {
			if step%3 != 0 {
				return s
			}
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back gru.State
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			return back
		},
		"apply one by one": func(_ int, _ gru.State, log []any) gru.State {
			var s gru.State
			for _, r := range log {
				s = s.Apply(r)
			}
			return s
		},
	}
	for name, way := range ways {
		got, gotLog, _ := run(way)
		if gotLog != wantLog {
			t.Errorf("%s: the records differ", name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-never stopped +stopped):\n%s", name, diff)
		}
	}
}

// A step leaves the state it is given alone: a writer that lost its append
// starts again from it.
func TestStepDoesNotChangeItsState(t *testing.T) {
	t.Parallel()
	cfg := &gru.Config{Tenant: "local", Project: "shop", Stream: "q@00000000", QueryID: "q", Level: memory.L1, BudgetTokens: 500, Count: words, Policy: scripted{}}
	var s gru.State
	for seq := int64(1); seq <= 20; seq++ {
		p := partOf(seq, 1)
		before, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again := func() (gru.State, string) {
			n, a := gru.Begin(s, cfg, p, epoch)
			n, b := gru.StepChunk(n, cfg, p, gru.ChunkInput{Chunk: chunkOf(0, epoch, fmt.Sprintf("user: fact %d", seq%6), fmt.Sprintf("user: other %d", seq))})
			n, c := gru.End(n, cfg, p, epoch)
			out, err := json.Marshal([]any{a, b, c})
			if err != nil {
				t.Fatal(err)
			}
			return n, string(out)
		}
		_, first := again()
		next, second := again()
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("the second time differs (-first +second):\n%s", diff)
		}
		after, _ := json.Marshal(s)
		if string(before) != string(after) {
			t.Fatalf("the state was changed:\n%s\n%s", before, after)
		}
		s = next
	}
}

func BenchmarkStepChunk(b *testing.B) {
	for _, kept := range []int{0, 1000, 5000} {
		b.Run(fmt.Sprintf("%d-kept", kept), func(b *testing.B) {
			cfg := &gru.Config{Tenant: "local", Project: "shop", Stream: "q@00000000", QueryID: "q", Level: memory.L1, BudgetTokens: 1 << 30, Count: words, Policy: fixed{}}
			p := partOf(1, 1)
			s, _ := gru.Begin(gru.State{}, cfg, p, epoch)
			for i := range kept {
				s.Kept = append(s.Kept, &gru.Kept{Node: memory.SumString(fmt.Sprint(i)), Text: fmt.Sprintf("statement %d about the cache", i)})
			}
			c := chunkOf(0, epoch, "user: the cache keeps entries for five minutes", "assistant: noted, five minutes it is")
			b.ReportAllocs()
			for b.Loop() {
				gru.StepChunk(s, cfg, p, gru.ChunkInput{Chunk: c})
			}
		})
	}
}

// fixed keeps every turn and names the parents, as the built-in policy does.
type fixed struct{ scripted }

func (fixed) Decide(in gru.PolicyInput) gru.Decision {
	d := gru.Decision{FormatOK: true, Update: true, Candidate: "- a\n", Parents: []memory.SHA{}}
	for ti := range in.Chunk.Turns {
		d.Picks = append(d.Picks, gru.Pick{Turn: ti, Start: in.Chunk.Turns[ti].Start, End: in.Chunk.Turns[ti].End})
	}
	return d
}
