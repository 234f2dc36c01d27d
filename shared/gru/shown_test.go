package gru_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// recallChunk is a chunk of three messages, the second of which is put in.
func recallChunk(mark func(*memory.ChunkTurn)) memory.Chunk {
	c := chunkOf(0, epoch, "user: Backups happen on Monday.", "assistant: Recalled: the limit of queue-7 is 99.", "user: Ada owns billing.")
	mark(&c.Turns[1])
	return c
}

// TestShown: what Mneme or a harness put into a chat is not shown to a model, and
// what a model says of it was not read (DESIGN invariant 7).
func TestShown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mark func(*memory.ChunkTurn)
		want string // the section
	}{
		"recalled":  {func(t *memory.ChunkTurn) { t.Derived = true }, "[user]\nBackups happen on Monday.\n[user]\nAda owns billing."},
		"abandoned": {func(t *memory.ChunkTurn) { t.Abandoned = true }, "[user]\nBackups happen on Monday.\n[user]\nAda owns billing."},
		"injected":  {func(t *memory.ChunkTurn) { t.Trust = memory.TrustInjected }, "[user]\nBackups happen on Monday.\n[user]\nAda owns billing."},
		"system":    {func(t *memory.ChunkTurn) { t.Role = memory.RoleSystem }, "[user]\nBackups happen on Monday.\n[user]\nAda owns billing."},
		"said":      {func(*memory.ChunkTurn) {}, "[user]\nBackups happen on Monday.\n[assistant]\nRecalled: the limit of queue-7 is 99.\n[user]\nAda owns billing."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := gateModel(false, "")
			m.Rewrite, m.Checks = "", true
			cfg := &gru.Config{Stream: "s", Question: "q", Level: memory.L1, BudgetTokens: 1024, Count: words, Model: m}
			part, c := partOf(1, 1), recallChunk(tc.mark)
			s, _ := gru.Begin(gru.State{}, cfg, part, epoch)
			s, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: c}}})
			call := effects[0].(*gru.Call)
			if section := between(call.Prompt.User, "<section>\n", "\n</section>"); strings.TrimSpace(section) != tc.want {
				t.Errorf("section %q, want %q", section, tc.want)
			}
			if call.PromptTokens != words(call.Prompt.System)+words(call.Prompt.User) {
				t.Errorf("%d tokens", call.PromptTokens)
			}
			v := gru.Verdict{Update: true, Memory: "Ada owns billing. The limit of queue-7 is 99."}
			s, effects = gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: v.Render(gru.ShapeFull), FinishReason: "stop", PromptTokens: call.PromptTokens}}})
			g := effects[0].(*gru.Append).Records[0].(*memory.Gate)
			if g.Start != 0 || g.End != len(c.Text) || g.More {
				t.Errorf("the step looked at [%d,%d)", g.Start, g.End)
			}
			if said := name == "said"; strings.Contains(s.MemoryText, "99") != said || g.Ungrounded == 0 != said {
				t.Errorf("memory %q, %d ungrounded", s.MemoryText, g.Ungrounded)
			}
		})
	}
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// TestNothingShown: a piece of which nothing can be evidence is settled without a
// call, in its turn, ahead of it and where a judge is asked.
func TestNothingShown(t *testing.T) {
	t.Parallel()
	c := chunkOf(0, epoch, "assistant: Recalled: the limit is 99.", "user: A hook put this in.")
	c.Turns[0].Derived, c.Turns[1].Role = true, memory.RoleInjected
	m := gateModel(false, "")
	m.Parallel = 2
	cfg := &gru.Config{Stream: "s", Question: "q", Level: memory.L1, BudgetTokens: 1024, Count: words, Model: m}
	part := partOf(1, 1)
	s, _ := gru.Begin(gru.State{}, cfg, part, epoch)
	in := gru.ChunkInput{Chunk: c}
	if call := gru.Ahead(s, cfg, in); call != nil {
		t.Errorf("asked ahead: %s", call.Prompt.User)
	}
	next, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: in}})
	a, ok := effects[0].(*gru.Append)
	if !ok || len(a.Records) != 1 || next.Call != nil {
		t.Fatalf("%+v", effects[0])
	}
	if g := a.Records[0].(*memory.Gate); g.ReasonCode != "derived" || g.Update || !g.FormatOK || g.Pending || g.End != len(c.Text) || g.More {
		t.Errorf("%+v", g)
	}
	j := gru.Judge(cfg, part, gru.State{}, in, 0, len(c.Text))
	if j.Next != nil || j.Judgement().Evidence || j.Judgement().Code != "derived" {
		t.Errorf("%+v", j)
	}
}

// TestShownInPieces: what is left out takes no room in a window, and every piece that
// is asked about shows something; together they cover the chunk.
func TestShownInPieces(t *testing.T) {
	t.Parallel()
	long := func(w string) string { return strings.TrimSpace(strings.Repeat(w+" ", 300)) }
	c := chunkOf(0, epoch, "assistant: "+long("recalled"), "user: "+long("one"), "assistant: "+long("recalled"), "user: "+long("two"), "assistant: "+long("recalled"))
	for _, i := range []int{0, 2, 4} {
		c.Turns[i].Derived = true
	}
	m := gateModel(false, "")
	m.Rewrite, m.WindowTokens, m.ReplyTokens = "", 900, 100
	cfg := &gru.Config{Stream: "s", Question: "q", Level: memory.L1, BudgetTokens: 64, Count: words, Model: m}
	part := partOf(1, 1)
	s, _ := gru.Begin(gru.State{}, cfg, part, epoch)
	at, calls := 0, 0
	for !s.Done(part) {
		next, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: c}}})
		if call, ok := effects[0].(*gru.Call); ok {
			calls++
			section := between(call.Prompt.User, "<section>\n", "\n</section>")
			if strings.TrimSpace(section) == "" || strings.Contains(section, "recalled") || call.PromptTokens > 900-100 {
				t.Errorf("%d words: %q", call.PromptTokens, section)
			}
			if smaller, again, ok := gru.Shrink(next, cfg); ok {
				if c, ok := again[0].(*gru.Call); !ok || strings.Contains(c.Prompt.User, "recalled") || smaller.Call != c {
					t.Errorf("shrunk to %+v", again[0])
				}
			}
			next, effects = gru.Step(next, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: gru.Verdict{}.Render(gru.ShapeFull), FinishReason: "stop"}}})
		}
		g := effects[0].(*gru.Append).Records[0].(*memory.Gate)
		if g.Start != at || g.End <= at {
			t.Fatalf("piece [%d,%d) after %d", g.Start, g.End, at)
		}
		at, s = g.End, next
	}
	if at != len(c.Text) || calls < 2 {
		t.Errorf("%d calls up to %d of %d", calls, at, len(c.Text))
	}
}
