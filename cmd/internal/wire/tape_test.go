package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm/llmtest/tapetest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/token"
)

// TestTape is a preflight and a run of the gate over what a real Ollama with a
// small model answered when it was recorded. The model is too small to judge
// anything: what is tested is that its server's words become records. A change of
// a prompt is one of the tape: `make tapes`.
func TestTape(t *testing.T) {
	t.Parallel()
	counter, err := token.Default()
	if err != nil {
		t.Fatal(err)
	}
	tp := tapetest.Open(t, "testdata/gate.tape")
	ms, err := wire.OpenModels(models.Config{
		Endpoints: []models.Endpoint{{Name: "local", URL: tp.URL, Kind: models.Ollama, Auth: models.None, InFlight: 1}},
		Gate:      &models.Use{Endpoint: "local", Model: "smollm2-135m", Window: 4096},
	}, counter.Count)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ms.Close(); err != nil {
			t.Error(err)
		}
	})
	w := functest.New(t, functest.Options{Models: ms.Models, Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(), Slice: time.Hour, Lease: 2 * time.Hour})
	w.Ask("shop", "limits")
	day := time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)
	w.Learned("shop/a.jsonl", functest.Session("s1", day, functest.User("We decided to keep the limit of queue a at 5 messages.")))
	w.Learned("shop/b.jsonl", functest.Session("s2", day.AddDate(0, 0, 1), functest.User("Thanks, that looks good to me.")))

	found, err := ms.Doctor(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v %v", found, err)
	}
	if r := found[0]; !r.OK || !r.Schema || !r.Logprobs || r.Window < 4096 || r.TokenFactor < 0.9 || r.TokenFactor > 1.3 || r.TemplateTokens == 0 || r.Ask < 4096 {
		t.Errorf("the preflight found %+v", r)
	}
	gates := gatesOf(w)
	if len(gates) != 2 {
		t.Fatalf("%d steps for two chunks", len(gates))
	}
	scored := 0
	for _, g := range gates {
		blob, err := w.Log.Blob(t.Context(), "shop", g.Reply)
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Message struct{ Content string }
			Reason  string `json:"done_reason"`
			Prompt  int    `json:"prompt_eval_count"`
			Eval    int    `json:"eval_count"`
		}
		if err := json.Unmarshal(blob, &said); err != nil || strings.Contains(string(blob), "logprob") {
			t.Errorf("the blob is %s: %v", blob, err)
		}
		if g.Model != "smollm2-135m" || g.PromptVersion != gru.PromptVersionJSON || g.FinishReason != said.Reason || g.PromptTokens < g.PromptTokensOwn || g.TruncatedByServer ||
			g.PromptTokens < said.Prompt || g.CompletionTokens < said.Eval || g.Attempt == 1 && (g.PromptTokens != said.Prompt || g.CompletionTokens != said.Eval) {
			t.Errorf("the server said %+v, and the record is %+v", said, g)
		}
		v, err := gru.ParseJSON(gru.ShapeFull, said.Message.Content, "", said.Reason)
		if err != nil {
			if g.FormatOK || !g.Pending || g.Update || g.Score != nil || g.Attempt != 2 {
				t.Errorf("of a reply that is unreadable, %v: %+v", err, g)
			}
			continue
		}
		if !g.Pending && (!g.FormatOK || g.Think != v.Think || g.Exit != v.Exit || g.Update && !v.Update) {
			t.Errorf("of %+v the record is %+v", v, g)
		}
		if g.Score != nil {
			if scored++; *g.Score < 0 || *g.Score > 1 {
				t.Errorf("check %v has the score %v", v.Update, *g.Score)
			}
		}
		if v.Update && !g.Update && g.CandidateSHA != memory.SumString(v.Memory) {
			t.Errorf("the candidate %q is not that of %+v", v.Memory, g)
		}
	}
	if scored == 0 { // a model may list the other word nowhere, but hardly in every reply
		t.Error("no step has a score")
	}
	w.Hashes()
}
