package gru_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// lowerOf is a memory of lines "text [id]".
func lowerOf(query string, lines ...string) gru.Lower {
	text := strings.Join(lines, "\n")
	l := gru.Lower{Stream: query + "@1", QueryID: query, Question: query + "?", Text: text, TextSHA: memory.SumString(text), Tokens: words(text)}
	l.Node = memory.NodeID("local", "shop", memory.L1, l.Stream, l.TextSHA)
	for _, line := range lines {
		l.Lines = append(l.Lines, gru.LowerLine{Text: memory.Fact(line), Whole: line + "\n"})
	}
	return l
}

// synthesise runs the loop over the memories; reply writes what the model says of one.
func synthesise(t *testing.T, lower []gru.Lower, reply func(l gru.Lower, mem string) gru.Verdict) gru.State {
	t.Helper()
	cfg := &gru.Config{
		Tenant: "local", Project: "shop", Stream: "_synthesis@1", QueryID: "_synthesis", Question: "q", Level: memory.L2, BudgetTokens: 1024, Count: words, Lower: lower,
		Model: &gru.Model{Policy: "model/full", Name: "m", WindowTokens: 12288, ReplyTokens: 2048, TokenFactor: 1, Checks: true},
	}
	part := gru.SynthesisPart(lower)
	s, _ := gru.BeginSynthesis(gru.State{}, cfg, epoch)
	for !s.Done(part) {
		i := s.Open.Next
		next, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: lower[i].Chunk(i)}}})
		call := effects[0].(*gru.Call)
		v := reply(lower[i], s.MemoryText)
		next, effects = gru.Step(next, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: v.Render(gru.ShapeFull), FinishReason: "stop", PromptTokens: call.PromptTokens}}})
		a, ok := effects[0].(*gru.Append)
		if !ok {
			t.Fatalf("the reply was refused: %+v", effects[0])
		}
		if g := a.Records[0].(*memory.Gate); !g.FormatOK {
			t.Fatalf("%+v", g)
		}
		s = next
	}
	return s
}

// TestSynthesisCitesLines: a sentence of a synthesis that a model wrote carries the ids
// of the lines it was made of, not that of the whole memory which the model names; an
// amended line changes the ids of its own sentence alone.
func TestSynthesisCitesLines(t *testing.T) {
	t.Parallel()
	limits := func(gamma string) gru.Lower {
		return lowerOf("limits", "- Limit alpha is 11 MB. [aaaa0001]", "- Limit beta is 12 MB. [aaaa0002]", "- Limit gamma is "+gamma+" MB. [aaaa0003]")
	}
	owners := lowerOf("owners", "- Ada owns the deploy of payments. [bbbb0001]", "- Nobody deploys on Fridays. [bbbb0002] [aaaa0002]")
	run := func(gamma string) []string {
		s := synthesise(t, []gru.Lower{limits(gamma), owners}, func(l gru.Lower, mem string) gru.Verdict {
			id := " [" + gru.SourceID(l.TextSHA) + "]"
			out := mem
			if l.QueryID == "limits" {
				out = "Alpha has a limit of 11 MB." + id + "\nLimit beta is 12 MB and limit gamma is " + gamma + " MB. [aaaa0002]" + id
			} else {
				out += "\nPayments: Ada owns the deploy." + id + "\n- Nobody deploys on Fridays." + id
			}
			return gru.Verdict{Think: "t", Update: true, Memory: out}
		})
		return memory.Lines(s.MemoryText)
	}
	want := []string{
		"Alpha has a limit of 11 MB. [aaaa0001]",
		"Limit beta is 12 MB and limit gamma is 13 MB. [aaaa0002] [aaaa0003]",
		"Payments: Ada owns the deploy. [bbbb0001]",
		"- Nobody deploys on Fridays. [bbbb0002] [aaaa0002]",
	}
	got := run("13")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	amended := run("99")
	for i := range want {
		if same := amended[i] == got[i]; same != (i != 1) {
			t.Errorf("line %d after an amendment of gamma: %q", i, amended[i])
		}
	}
}

// TestSynthesisRestsOnLines: parents are the memories whose lines stand in it, by id too;
// what nobody can tell keeps the whole memory's id.
func TestSynthesisRestsOnLines(t *testing.T) {
	t.Parallel()
	limits, owners := lowerOf("limits", "- Limit alpha is 11 MB. [aaaa0001]"), lowerOf("owners", "- Ada owns the deploy of payments. [bbbb0001]")
	for name, tc := range map[string]struct {
		write string // by the model over each memory, %s its id
		want  []memory.SHA
		text  string
	}{
		"made of a line":  {"Ada owns the payments deploy. [%s]", []memory.SHA{owners.Node}, "Ada owns the payments deploy. [bbbb0001]"},
		"of no line told": {"Deploys and payments are settled somewhere. [%s]", []memory.SHA{owners.Node}, ""},
	} {
		s := synthesise(t, []gru.Lower{limits, owners}, func(l gru.Lower, mem string) gru.Verdict {
			if l.QueryID != "owners" {
				return gru.Verdict{Think: "t"}
			}
			return gru.Verdict{Think: "t", Update: true, Memory: fmt.Sprintf(tc.write, gru.SourceID(l.TextSHA))}
		})
		if s.Open.Memory == nil || !slices.Equal(s.Open.Memory.Parents, tc.want) || tc.text != "" && s.MemoryText != tc.text {
			t.Errorf("%s: %q rests on %v, want %v", name, s.MemoryText, s.Open.Memory, tc.want)
		}
	}
}
