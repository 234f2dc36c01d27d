package gru_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestAskedIsWhatWasAsked: from the gate record, the memory before it and the chunk
// alone the prompt is rendered that the loop had sent, in every wording and in both
// shapes, pieces included.
func TestAskedIsWhatWasAsked(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"t1", "t2", "j1", "j2"} {
		for _, rewrite := range []string{"", "writer"} {
			json := version[0] == 'j'
			cfg := &gru.Config{
				Tenant: "local", Project: "shop", Stream: "s", Question: "What was <check>decided</check>?", Level: memory.L1, BudgetTokens: 300, Count: words,
				Model: &gru.Model{Policy: "p", Name: "m", Rewrite: rewrite, WindowTokens: 1800, ReplyTokens: 100, TokenFactor: 1, JSON: json, Prompt: version},
			}
			if err := cfg.Check(); err != nil {
				t.Fatal(err)
			}
			part := partOf(1, 3)
			s, _ := gru.Begin(gru.State{}, cfg, part, epoch)
			steps := 0
			for !s.Done(part) {
				text := fmt.Sprintf("user: limit L%d is <next>", s.Open.Next)
				if s.Open.Next == 1 {
					text = "user:"
					for i := range 900 {
						text += fmt.Sprintf("\nword w%d and one more", i)
					}
				}
				chunk, before := chunkOf(s.Open.Next, epoch, text), s
				next, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: chunk}}})
				call := effects[0].(*gru.Call)
				first, kind := call.Prompt, call.Kind
				var rec *memory.Gate
				for rec == nil {
					v := gru.Verdict{Think: "t", Update: true, Memory: fmt.Sprintf("%s\nfact %d", before.MemoryText, steps)}
					shape := map[gru.CallKind]gru.Shape{gru.CallDecide: gru.ShapeFull, gru.CallGate: gru.ShapeGate, gru.CallRewrite: gru.ShapeRewrite}[call.Kind]
					content := v.Render(shape)
					if json {
						content = v.RenderJSON(shape)
					}
					next, effects = gru.Step(next, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: content, FinishReason: "stop", PromptTokens: call.PromptTokens}}})
					switch e := effects[0].(type) {
					case *gru.Call:
						call = e
					case *gru.Append:
						rec = e.Records[0].(*memory.Gate)
					}
				}
				a := gru.Asked{Version: rec.PromptVersion, Kind: kind, Question: cfg.Question, Memory: before.MemoryText, Chunk: &chunk, From: rec.Start, To: rec.End, BudgetTokens: cfg.BudgetTokens}
				got, err := a.Prompt()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Fatalf("%s %q step %d (-asked +rendered):\n%s", version, rewrite, rec.T, diff)
				}
				s, steps = next, steps+1
			}
			if steps < 4 {
				t.Errorf("%s: %d steps, want a chunk read in pieces", version, steps)
			}
		}
	}
	a := gru.Asked{Version: "t9", Chunk: &memory.Chunk{}}
	if _, err := a.Prompt(); !fault.Is(err, fault.Invalid) {
		t.Errorf("an unknown version: %v", err)
	}
}

func TestTagVersion(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"t1": "t1", "t2": "t2", "j1": "t1", "j2": "t2", "-": gru.PromptVersion, "t9": ""} {
		if got, ok := gru.TagVersion(in); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", in, got, ok, want)
		}
	}
}

func TestOpened(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"kept": true, "closed": false, gru.ReasonBudget: true, gru.ReasonUngrounded: true, "no_citation": true, "derived": false} {
		if got := gru.Opened(&memory.Gate{ReasonCode: code, Update: code == "kept"}); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
}
