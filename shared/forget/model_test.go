package forget_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

var (
	decided = regexp.MustCompile(`(?:We decided|From now on|Always)[^.\n]*(?:\.example\.org[^.\n]*)?\.`)
	section = regexp.MustCompile(`(?s)<section>\n(.*)\n</section>`)
	before  = regexp.MustCompile(`(?s)<memory>\n(.*?)\n</memory>`)
)

// model keeps each decision as a line, and thinks aloud of what it read.
type model struct{ calls int }

func (m *model) Capabilities() llm.Capabilities { return llm.Capabilities{} }

func (m *model) Chat(_ context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	m.calls++
	text := section.FindStringSubmatch(r.User)[1]
	v := gru.Verdict{Think: "it says: " + strings.ReplaceAll(strings.TrimSpace(text), "\n", " ")}
	if found := decided.FindAllString(text, -1); len(found) > 0 {
		var lines []string
		if old := before.FindStringSubmatch(r.User); old != nil && strings.TrimSpace(old[1]) != "none" {
			lines = strings.Split(strings.TrimSpace(old[1]), "\n")
		}
		v.Update, v.Memory = true, strings.Join(append(lines, found...), "\n")
	}
	out := v.Render(gru.ShapeFull)
	return llm.ChatReply{Content: out, FinishReason: "stop", PromptTokens: functest.Coarse(r.System) + functest.Coarse(r.User), CompletionTokens: functest.Coarse(out), Raw: []byte(`{"content":` + "\"" + strings.ReplaceAll(strings.TrimSpace(text), "\n", `\n`) + "\"}")}, nil
}

// TestForgetOfModel: of what a model decided, its thoughts, replies and every memory from
// the first step that read the source go; the memory before stands again with what others
// said since, and no model is asked.
func TestForgetOfModel(t *testing.T) {
	t.Parallel()
	m := &model{}
	models := &gate.Models{
		Model: gru.Model{Policy: "model/full", Name: "small", WindowTokens: 60_000, ReplyTokens: 2048, TokenFactor: 1, Sampling: memory.Sampling{TopP: 1, Seed: 7}},
		Gate:  m, Cost: func(string, int, int) float64 { return 0 },
	}
	w := functest.New(t, functest.Options{
		Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(),
		Models: func(context.Context, string) (*gate.Models, error) { return models, nil },
	})
	w.Ask("shop", "decisions")
	for i, b := range bodies() {
		w.Learned("shop/"+string(rune('0'+i))+".jsonl", b)
	}
	w.Hashes()
	if m := present(t, w, "decisions"); !strings.Contains(m, "zorvath") || !strings.Contains(m, "sign the releases") || !strings.Contains(m, "pgx") {
		t.Fatalf("the memory before:\n%s", m)
	}
	if n := len(leaks(t, w)); n < 6 {
		t.Fatalf("%d places hold the words before: %v", n, leaks(t, w))
	}
	calls := m.calls
	r := forgotten(t, w, forget.Request{Target: memory.Target{Source: target}})
	if !r.OK || r.Removed.Replies == 0 || r.Removed.Memories < 2 || r.Removed.Gates == 0 {
		t.Errorf("%+v", r)
	}
	clean(t, w)
	w.Hashes()
	if m := present(t, w, "decisions"); !strings.Contains(m, "sign the releases") || !strings.Contains(m, "pgx") || strings.Contains(m, "20 minutes") {
		t.Errorf("the memory after:\n%s", m)
	}
	if m.calls != calls {
		t.Errorf("%d calls of the model", m.calls-calls)
	}
	w.Sweep()
	if m.calls != calls {
		t.Errorf("a sweep made %d calls", m.calls-calls)
	}
	w.Learned("shop/9.jsonl", functest.Decision("s9", day.AddDate(0, 0, 9), "We decided to deploy on Mondays, because the team is complete."))
	if m := present(t, w, "decisions"); !strings.Contains(m, "Mondays") || !strings.Contains(m, "pgx") {
		t.Errorf("the memory later:\n%s", m)
	}
	w.Hashes()
	clean(t, w)
}
