package gate_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/agree"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
)

// secondPicks is a configuration from which a request may pick any model.
var secondPicks = models.Config{
	Endpoints: []models.Endpoint{{Name: "local", URL: "http://127.0.0.1:9", Kind: models.Compatible, Auth: models.None}},
	Gate:      &models.Use{Endpoint: "local", Model: "small", Window: 60_000},
}

// shadowed is a world in which a perfect model decided over 8 facts and their like,
// and a second one that a request may pick.
func shadowed(t *testing.T, second *scripted) *functest.World {
	t.Helper()
	return shadowedIn(t, second, new(string))
}

// shadowedIn is shadowed whose second model is asked in that wording.
func shadowedIn(t *testing.T, second *scripted, wording *string) *functest.World {
	t.Helper()
	other, err := modelOf(second, nil)(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	w := modelWorld(t, functest.Options{
		Models: modelOf(moody("never", new(bool)), nil), Picks: secondPicks,
		Picked: func(_ context.Context, _ string, p *models.Pick) (*gate.Models, error) {
			m := *other
			m.Model.Name, m.Model.Prompt = p.Gate.Model, *wording
			return &m, nil
		},
	})
	w.Learned("shop/a.jsonl", functest.Brief("s1", modelDay, 8))
	w.Learned("shop/b.jsonl", functest.Session("s2", modelDay, functest.User("Let me look at the file first.")))
	return w
}

// TestShadow: another model's decisions about the same steps are labels; the memory
// and every hash stay as they are, and what was asked is not asked again.
func TestShadow(t *testing.T) {
	t.Parallel()
	// It sees a fact only where the memory holds none yet: the memory that it is
	// shown must be that of the step.
	second := &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		if strings.Contains(r.System, "<update>") {
			t.Error("the second model was asked to write")
		}
		f := fact.FindString(section.FindStringSubmatch(r.User)[1])
		return says(r, gru.Verdict{Update: f != "" && strings.Contains(r.User, "<memory>\nnone\n")}, gru.ShapeGate), nil
	}}
	w := shadowed(t, second)
	before := w.Hashes()
	stream := w.Streams("shop")[0]
	gates := functest.Of[*memory.Gate](w.Records("shop", stream))
	open := 0
	for _, g := range gates {
		if g.Update {
			open++
		}
	}
	if open < 3 {
		t.Fatalf("%d of %d steps are open", open, len(gates))
	}
	var steps []int
	got, err := w.Gate.Shadow(t.Context(), gate.ShadowRequest{Project: "shop", Model: "second"}, func(done, of int) { steps = append(steps, done, of) })
	if err != nil || len(got.Streams) != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	c := got.Streams[0]
	if want := (agree.Table{Both: 1, OnlyA: open - 1, Neither: len(gates) - open}); c.Table != want || c.Unread != 0 || c.Asked != len(gates) || len(c.Differ) != open-1 || c.Model != "small" {
		t.Errorf("%+v, want %+v of %d", c, want, len(gates))
	}
	if c.Then.PromptTokens != int64(second.prompt) || c.Then.CompletionTokens != int64(second.completion) || c.Then.USD <= 0 || c.Now.PromptTokens == 0 || c.Kappa == nil {
		t.Errorf("%+v; the server counts %d and %d", c, second.prompt, second.completion)
	}
	if n := len(steps); n < 2 || steps[n-2] != len(gates) || steps[n-1] != len(gates) {
		t.Errorf("progress %v", steps)
	}
	for _, d := range c.Differ {
		if !d.Now || d.Then || d.Reason == "" || !d.Chunk.Valid() {
			t.Errorf("%+v", d)
		}
	}
	if after := w.Hashes(); after.Log != before.Log || after.Index != before.Index {
		t.Errorf("the memory changed: %+v %+v", before, after)
	}
	n := 0
	for key, err := range w.Log.RecordKeys(t.Context(), "shop", eventlog.Labels) {
		if err != nil {
			t.Fatal(err)
		}
		recs, err := w.Log.Records(t.Context(), "shop", eventlog.Labels, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			l, ok, err := eventlog.AsLabel(r)
			if err != nil || !ok || l.Kind != memory.LabelModel || l.Model != "second" || l.PromptVersion == "" || l.PromptTokens == 0 || !l.FormatOK || l.Stream != stream || l.MemoryBeforeSHA != gates[l.T-1].MemoryBeforeSHA || l.Chunk != gates[l.T-1].Chunk {
				t.Errorf("%+v %v", l, err)
			}
			n++
		}
	}
	if n != len(gates) {
		t.Errorf("%d labels of %d steps", n, len(gates))
	}
	calls := len(second.asked)
	again, err := w.Gate.Shadow(t.Context(), gate.ShadowRequest{Project: "shop", Model: "second", Query: "limits"}, func(int, int) {})
	if err != nil || len(second.asked) != calls || again.Streams[0].Table != c.Table || again.Streams[0].Asked != 0 {
		t.Errorf("%d calls more: %+v %v", len(second.asked)-calls, again, err)
	}
	last, err := w.Gate.Shadow(t.Context(), gate.ShadowRequest{Project: "shop", Model: "second", Limit: 2}, func(int, int) {})
	if err != nil || last.Streams[0].Table.N() != 2 {
		t.Errorf("%+v %v", last, err)
	}
	if _, err := w.Gate.Shadow(t.Context(), gate.ShadowRequest{Project: "shop", Model: "third", BaseURL: "http://10.0.0.1"}, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("an endpoint that is not configured: %v", err)
	}
}

// TestShadowIsResumed: answers that came before a call failed are kept, and not paid
// for again.
func TestShadowIsResumed(t *testing.T) {
	t.Parallel()
	second := &scripted{}
	second.answer = func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
		if n == 3 {
			return llm.ChatReply{}, fault.New(fault.Unavailable, "the connection broke off")
		}
		return says(r, gru.Verdict{}, gru.ShapeGate), nil
	}
	w := shadowed(t, second)
	steps := len(functest.Of[*memory.Gate](w.Records("shop", w.Streams("shop")[0])))
	ask := gate.ShadowRequest{Project: "shop", Model: "second"}
	if _, err := w.Gate.Shadow(t.Context(), ask, func(int, int) {}); !errors.Is(err, fault.Unavailable.Sentinel()) {
		t.Fatalf("%v", err)
	}
	got, err := w.Gate.Shadow(t.Context(), ask, func(int, int) {})
	if err != nil || got.Streams[0].Table.N() != steps || len(second.asked) != steps+1 {
		t.Errorf("%d calls for %d steps: %+v %v", len(second.asked), steps, got, err)
	}
}

// TestShadowOfAnotherWording: answers to another wording are not this one's.
func TestShadowOfAnotherWording(t *testing.T) {
	t.Parallel()
	second := &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		return says(r, gru.Verdict{}, gru.ShapeGate), nil
	}}
	versions := gru.PromptVersions(false)
	wording := versions[0]
	w := shadowedIn(t, second, &wording)
	ask := gate.ShadowRequest{Project: "shop", Model: "second"}
	for _, step := range []struct {
		wording string
		asked   bool
	}{{versions[0], true}, {versions[0], false}, {versions[len(versions)-1], true}, {versions[0], false}} {
		wording = step.wording
		got, err := w.Gate.Shadow(t.Context(), ask, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		if c := got.Streams[0]; (c.Asked > 0) != step.asked || c.Table.N() == 0 {
			t.Errorf("%s: %d steps asked, want any: %v", step.wording, c.Asked, step.asked)
		}
	}
}

// TestShadowOfBadReplies: an answer that cannot be read counts for neither side, and
// a server that cuts prompts ends it with the cure.
func TestShadowOfBadReplies(t *testing.T) {
	t.Parallel()
	mute := &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		out := says(r, gru.Verdict{}, gru.ShapeGate)
		out.Content = "Well."
		return out, nil
	}}
	w := shadowed(t, mute)
	var problem struct{ Message string }
	w.Post("/memory/shadow", map[string]any{"project": "shop"}, http.StatusBadRequest, &problem)
	var got gate.Shadowed
	w.Post("/memory/shadow", gate.ShadowRequest{Project: "shop", Model: "second"}, http.StatusOK, &got)
	if c := got.Streams[0]; c.Table.N() != 0 || c.Unread == 0 || c.Kappa != nil || len(mute.asked) != 2*c.Unread {
		t.Errorf("%d calls: %+v", len(mute.asked), c)
	}
	cut := &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		out := says(r, gru.Verdict{Update: true}, gru.ShapeGate)
		out.PromptTokens /= 2
		return out, nil
	}}
	w = shadowed(t, cut)
	if _, err := w.Gate.Shadow(t.Context(), gate.ShadowRequest{Project: "shop", Model: "second"}, func(int, int) {}); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.HintOf(err), "num_ctx") {
		t.Errorf("%v", err)
	}
	for range w.Log.RecordKeys(t.Context(), "shop", eventlog.Labels) {
		t.Error("a label of a cut prompt")
	}
}
