package gru_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/token"
)

// TestPromptsAreFrozen: a wording that changed is a new version, as old decisions
// were made under the old one.
func TestPromptsAreFrozen(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	files, err := filepath.Glob("prompts/*/*.txt")
	if err != nil || len(files) != 16 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimPrefix(f, "prompts/")] = fmt.Sprintf("%.8x", sha256.Sum256(b))
	}
	want := map[string]string{
		"j1/compress.txt": "f9c8e923cd0a4cee",
		"j1/decide.txt":   "8e538c31b9dec6fe",
		"j1/gate.txt":     "07059601abc583ec",
		"j1/rewrite.txt":  "54cb4f658163a290",
		"j2/compress.txt": "feaf2b2052b8d4ed",
		"j2/decide.txt":   "1c203d71431ead2b",
		"j2/gate.txt":     "07059601abc583ec",
		"j2/rewrite.txt":  "176fc080b0815d4c",
		"t1/compress.txt": "c555ca87bbd499ff",
		"t1/decide.txt":   "7ee6f0a191d49c15",
		"t1/gate.txt":     "77c3b63cad3441a1",
		"t1/rewrite.txt":  "21167cc846c37125",
		"t2/compress.txt": "fe88b9da3b6d77ab",
		"t2/decide.txt":   "2a0f2195160dafdb",
		"t2/gate.txt":     "77c3b63cad3441a1",
		"t2/rewrite.txt":  "cdf1d25f74d85451",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a wording changed: make it a new version\n%s", diff)
	}
}

// gateModel is a model of two, asked in a version of the wording.
func gateModel(json bool, version string) *gru.Model {
	return &gru.Model{Policy: "model/split", Name: "small", Rewrite: "large", WindowTokens: 12288, ReplyTokens: 2048, TokenFactor: 1, JSON: json, Prompt: version}
}

// firstCall is the call by which a step over a chunk begins.
func firstCall(tb testing.TB, cfg *gru.Config, s gru.State, part *gru.Part, c memory.Chunk) *gru.Call {
	tb.Helper()
	s, _ = gru.Begin(s, cfg, part, epoch)
	_, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: c}}})
	for _, e := range effects {
		if call, ok := e.(*gru.Call); ok {
			return call
		}
	}
	tb.Fatal("no call")
	return nil
}

// TestOldWordings: the versions that old decisions name are rendered as they were.
func TestOldWordings(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"t1": "6c58874516697bdd133008af37469ee0b6dab3a05cca9620dc35aaa3a6689f39", "j1": "3a03096e8498799973fe1e0e78bbb460c0ec109d29afc32749d71ea898039f65"} {
		cfg := &gru.Config{Stream: "s", Question: "q", BudgetTokens: 1024, Count: words, Model: gateModel(version == "j1", version)}
		call := firstCall(t, cfg, gru.State{}, partOf(1, 1), chunkOf(0, epoch, "user: hello"))
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(call.Prompt.System))); got != want {
			t.Errorf("%s: %s\n%s", version, got, call.Prompt.System)
		}
		if strings.Contains(call.Prompt.User, "source id") {
			t.Errorf("%s shows source ids: %s", version, call.Prompt.User)
		}
	}
}

// TestUnknownWording: a version of the other form, or none, is refused with the
// ones there are.
func TestUnknownWording(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"t9", "j2"} {
		cfg := &gru.Config{QueryID: "q", Question: "q", BudgetTokens: 1024, Count: words, Model: gateModel(false, version)}
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), version) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// shared is how many tokens two consecutive gate calls have in common from their
// start, how many instruction, question and memory have, and the whole prompt.
func shared(tb testing.TB, count func(string) int, json bool, memoryTokens int) (common, fixed, whole int) {
	tb.Helper()
	cfg := &gru.Config{Stream: "s", QueryID: "q", Question: "Which limits, timeouts and budgets did we decide on, and why?", BudgetTokens: 1024, Count: count, Model: gateModel(json, "")}
	s := gru.State{}
	for i := 0; s.Tokens < memoryTokens; i++ {
		s.MemoryText += fmt.Sprintf("Retries of service %d stop after %d attempts, since the upstream bans us. [%08x]\n", i, i%7+2, i*7919)
		s.Tokens = count(s.MemoryText)
	}
	text := strings.Repeat("We went through the module and its callers in turn, and noted what each of them expects. ", 260)
	part := partOf(1, 2)
	a := firstCall(tb, cfg, s, part, chunkOf(0, epoch, "user: "+text)).Prompt
	b := firstCall(tb, cfg, s, part, chunkOf(0, epoch, "assistant: Another one. "+text)).Prompt
	if a.System != b.System {
		tb.Fatal("the instructions differ")
	}
	n := 0
	for n < len(a.User) && n < len(b.User) && a.User[n] == b.User[n] {
		n++
	}
	end := strings.Index(a.User, "</memory>") + len("</memory>")
	return count(a.System) + count(a.User[:n]), count(a.System) + count(a.User[:end]), count(a.System) + count(a.User)
}

// TestPromptPrefix: between two closed gates a server's prefix cache holds at least
// nine tenths of instruction, question and memory.
func TestPromptPrefix(t *testing.T) {
	t.Parallel()
	tok, err := token.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, json := range []bool{false, true} {
		for _, mem := range []int{0, 100, 1024} {
			common, fixed, whole := shared(t, tok.Count, json, mem)
			if float64(common) < 0.9*float64(fixed) {
				t.Errorf("json=%v, memory of %d: %d of %d tokens in common, of %d in all", json, mem, common, fixed, whole)
			}
		}
	}
}

// BenchmarkPromptPrefix renders gate calls; prefix/fixed is the share of the tokens
// of instruction, question and memory that two consecutive ones have in common, and
// prefix/prompt that of all.
func BenchmarkPromptPrefix(b *testing.B) {
	tok, err := token.Default()
	if err != nil {
		b.Fatal(err)
	}
	for _, mem := range []int{0, 100, 1024} {
		b.Run(fmt.Sprintf("memory-%d-tokens", mem), func(b *testing.B) {
			common, fixed, whole := shared(b, tok.Count, true, mem)
			b.ReportAllocs()
			for b.Loop() {
				shared(b, words, true, mem)
			}
			b.ReportMetric(float64(common)/float64(fixed), "prefix/fixed")
			b.ReportMetric(float64(common)/float64(whole), "prefix/prompt")
		})
	}
}

// TestCutIsToldFromFigures: a server whose tokenizer takes figures three at a time has
// not cut a prompt full of them; one that read half has.
func TestCutIsToldFromFigures(t *testing.T) {
	t.Parallel()
	tok, err := token.Default()
	if err != nil {
		t.Fatal(err)
	}
	m := gateModel(false, "")
	m.DigitFactor = 0.4
	cfg := &gru.Config{Stream: "s", QueryID: "q", Question: "Which ports are open?", BudgetTokens: 1024, Count: tok.Count, Model: m}
	c := chunkOf(0, epoch, "user: "+strings.Repeat("port 40961 opened at 20260301114205 by 10.20.30.41\n", 100))
	part := partOf(1, 1)
	call := firstCall(t, cfg, gru.State{}, part, c)
	digits := 0
	for _, r := range call.Prompt.System + call.Prompt.User {
		if '0' <= r && r <= '9' {
			digits++
		}
	}
	if 2*digits < call.PromptTokens {
		t.Fatalf("%d figures of %d tokens", digits, call.PromptTokens)
	}
	for name, tc := range map[string]struct {
		read int
		cut  bool
	}{
		"figures by three": {call.PromptTokens - digits + digits*2/5, false},
		"half":             {(call.PromptTokens - digits + digits*2/5) / 2, true},
		"all":              {call.PromptTokens, false},
	} {
		s, _ := gru.Begin(gru.State{}, cfg, part, epoch)
		s, _ = gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: c}}})
		_, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: gru.Verdict{}.Render(gru.ShapeGate), FinishReason: "stop", PromptTokens: tc.read}}})
		g := effects[0].(*gru.Append).Records[0].(*memory.Gate)
		if g.TruncatedByServer != tc.cut {
			t.Errorf("%s, %d of %d tokens: %s", name, tc.read, call.PromptTokens, g.Reason)
		}
	}
}

// TestCutOfOtherScripts: a vocabulary made for English takes three tokens of one of
// ours for Korean; a server with it that read half of such a prompt counts more tokens
// than we do, and has cut it all the same. One that counts nothing says nothing.
func TestCutOfOtherScripts(t *testing.T) {
	t.Parallel()
	tok, err := token.Default()
	if err != nil {
		t.Fatal(err)
	}
	m := gateModel(false, "")
	m.TokenFactor, m.DigitFactor, m.ForeignFactor = 1.06, 1, 2.3 // SmolLM2's
	cfg := &gru.Config{Stream: "s", QueryID: "q", Question: "Which ports are open?", BudgetTokens: 1024, Count: tok.Count, Model: m}
	c := chunkOf(0, epoch, "user: "+strings.Repeat("업스트림이 차단하므로 재시도는 다섯 번으로 제한하기로 했다. ", 90))
	part := partOf(1, 1)
	call := firstCall(t, cfg, gru.State{}, part, c)
	for name, tc := range map[string]struct {
		factor float64 // its tokens for one of the section's
		read   float64 // share of the prompt
		cut    bool
	}{
		"all of it":       {3.3, 1, false},
		"all, by little":  {2.3, 1, false},
		"half":            {3.3, 0.5, true},
		"what we count":   {1, 1, true},
		"nothing is said": {0, 0, true},
	} {
		read := int(tc.read * (tc.factor*float64(tok.Count(c.Text)) + 1.06*float64(call.PromptTokens-tok.Count(c.Text))))
		s, _ := gru.Begin(gru.State{}, cfg, part, epoch)
		s, _ = gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: c}}})
		_, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: gru.Verdict{}.Render(gru.ShapeGate), FinishReason: "stop", PromptTokens: read}}})
		if g := effects[0].(*gru.Append).Records[0].(*memory.Gate); g.TruncatedByServer != tc.cut || g.Pending != tc.cut {
			t.Errorf("%s, %d of %d tokens: %s", name, read, call.PromptTokens, g.Reason)
		}
	}
}
