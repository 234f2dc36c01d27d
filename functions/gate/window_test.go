package gate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
	"github.com/mneme-ai/mneme/shared/memory"
)

// tight is a server that refuses prompts over some bytes as longer than the window,
// and else keeps what the sections say of limits.
func tight(t *testing.T, most int) (*llmtest.Server, llm.Chatter) {
	t.Helper()
	s := llmtest.New(t)
	s.Answer(func(c llmtest.Call) llmtest.Play {
		var b struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal(c.Body, &b); err != nil {
			t.Error(err)
		}
		user, size := b.Messages[len(b.Messages)-1].Content, 0
		for _, m := range b.Messages {
			size += len(m.Content)
		}
		if size > most {
			return llmtest.Status(http.StatusBadRequest, "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.")
		}
		f := strings.Join(fact.FindAllString(section.FindStringSubmatch(user)[1], -1), ", ")
		v := gru.Verdict{Think: "t"}
		if f != "" {
			v.Update, v.Memory = true, strings.TrimPrefix(strings.Split(strings.Split(user, "<memory>\n")[1], "\n</memory>")[0]+", "+f, "none, ")
		}
		return llmtest.Chat{Content: v.Render(gru.ShapeFull), Finish: "stop", Prompt: functest.Coarse(b.Messages[0].Content) + functest.Coarse(user), Completion: 9}.Play()
	})
	ep, err := endpoint.Open(endpoint.Config{URL: s.URL, Kind: endpoint.OpenAI, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	client, err := openaiapi.New(ep, openaiapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

// TestOverWindow: a section that the server takes for longer than its window is read
// in pieces, all of it, each on record.
func TestOverWindow(t *testing.T) {
	t.Parallel()
	s, client := tight(t, 2400)
	w := modelWorld(t, functest.Options{Models: modelOf(client, nil)})
	text := strings.Repeat("It goes on and on about what it sees. ", 40)
	w.Learned("shop/a.jsonl", functest.Session("s1", modelDay, functest.User("We decided to keep the limit of queue a at 5 messages. "+text), functest.User(text), functest.User("We decided to keep the limit of queue b at 7 messages.")))
	recs := w.Records("shop", w.Streams("shop")[0])
	gates := functest.Of[*memory.Gate](recs)
	if runs := functest.Of[*memory.Run](recs); len(runs) != 1 || len(gates) <= runs[0].Chunks {
		t.Fatalf("%d steps of %d chunks", len(gates), runs[0].Chunks)
	}
	at := 0
	for i, g := range gates {
		if g.Start != at && g.I == gates[max(i-1, 0)].I || !g.FormatOK {
			t.Errorf("step %d reads [%d,%d) of chunk %d after %d: %+v", g.T, g.Start, g.End, g.I, at, g)
		}
		if at = g.End; !g.More {
			at = 0
		}
	}
	if at != 0 {
		t.Error("the last piece is missing")
	}
	mems := functest.Of[*memory.Memory](recs)
	if last := mems[len(mems)-1].Text; !strings.Contains(last, "queue a at 5") || !strings.Contains(last, "queue b at 7") {
		t.Errorf("%q", last)
	}
	if r := s.Repeats(); len(r) != 0 {
		t.Errorf("asked twice: %v", r)
	}
	w.Hashes()
}

// TestWindowOfNothing: where even a small section is too long the run ends with the
// cure, and nothing is lost.
func TestWindowOfNothing(t *testing.T) {
	t.Parallel()
	s, client := tight(t, 100)
	w := modelWorld(t, functest.Options{Models: modelOf(client, nil)})
	es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Brief("s1", modelDay, 3)))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := w.Gate.Handle(t.Context(), es[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Gate.Handle(t.Context(), runs[0]); err == nil || !strings.Contains(err.Error(), "longer than the model's window") || len(s.Calls()) > 10 {
		t.Errorf("%d calls: %v", len(s.Calls()), err)
	}
	for _, g := range functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0])) {
		t.Errorf("a decision: %+v", g)
	}
}

// TestCutPauses: after a cut prompt the project waits and says why, instead of losing
// a step at each event; whoever asks again ends the wait.
func TestCutPauses(t *testing.T) {
	t.Parallel()
	halves := true
	m := moody("never", new(bool))
	good := m.answer
	m.answer = func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
		out, err := good(n, r)
		if halves {
			out.PromptTokens /= 2
		}
		return out, err
	}
	now := modelDay
	w := modelWorld(t, functest.Options{Models: modelOf(m, nil), Now: func() time.Time { return now }})
	es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Brief("s1", modelDay, 6)))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := w.Gate.Handle(t.Context(), es[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Gate.Handle(t.Context(), runs[0]); err == nil {
		t.Fatal("a cut prompt is no error")
	}
	p := w.Gate.Paused()
	if len(p) != 1 || !strings.Contains(p[0].Reason, "read less of a prompt") || !strings.Contains(p[0].Hint, "num_ctx") {
		t.Fatalf("%+v", p)
	}
	w.Run(runs...)
	w.Sweep()
	if len(m.asked) != 1 {
		t.Errorf("%d calls while it waits", len(m.asked))
	}
	halves = false
	var list gate.Regated
	w.Post("/memory/regate", map[string]any{"project": "shop"}, http.StatusAccepted, &list)
	w.Run(w.Published()...)
	gates := functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0]))
	if last := gates[len(gates)-1]; last.RegateOf != 1 || last.Pending || len(w.Gate.Paused()) != 0 {
		t.Errorf("%+v", last)
	}
	if n, err := w.Gate.Behind(t.Context()); n != 0 || err != nil {
		t.Errorf("%d behind, %v", n, err)
	}
	w.Hashes()
}
