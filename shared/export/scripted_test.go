package export_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// scripted answers by the number of the section's queue.
type scripted map[string]string

func (scripted) Capabilities() llm.Capabilities { return llm.Capabilities{} }

var queue = regexp.MustCompile(`limit of queue ([a-z]+-\d+) at`)

func (s scripted) Chat(_ context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	_, section, _ := strings.Cut(r.User, "<section>")
	name := "none"
	if m := queue.FindStringSubmatch(section); m != nil {
		name = m[1]
	}
	v := gru.Verdict{Think: "I looked for a limit in " + name}
	switch do := s[name]; do {
	case "?":
		return reply(r, "Well, this section is hard to judge."), nil
	default:
		v.Update, v.Exit = strings.Contains(do, "open"), strings.Contains(do, "end")
		if v.Update {
			v.Memory = "The limit of queue " + name + " was decided."
		}
	}
	return reply(r, v.Render(gru.ShapeFull)), nil
}

func reply(r llm.ChatRequest, text string) llm.ChatReply {
	raw, err := json.Marshal(map[string]any{"message": map[string]string{"role": "assistant", "content": text}})
	if err != nil {
		panic(err) // strings only
	}
	return llm.ChatReply{Content: text, FinishReason: "stop", PromptTokens: functest.Coarse(r.System) + functest.Coarse(r.User), CompletionTokens: functest.Coarse(text), Raw: raw}
}

// scriptedWorld is a run of a model whose replies are known, over two parts with a queue
// a chunk, and people's labels of the chunks.
func scriptedWorld(t testing.TB, script scripted, said map[string]bool) *functest.World {
	t.Helper()
	m := &gate.Models{
		Model: gru.Model{Policy: "model/full", Name: "small", WindowTokens: 60_000, ReplyTokens: 2048, TokenFactor: 1, Sampling: memory.Sampling{TopP: 1, Seed: 7}},
		Gate:  script, Cost: func(string, int, int) float64 { return 0 },
	}
	w := functest.New(t, functest.Options{
		Count: functest.Coarse, Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(),
		Models: func(context.Context, string) (*gate.Models, error) { return m, nil },
	})
	w.Ask("shop", "limits")
	for _, id := range []string{"a", "b"} {
		var says []functest.Say
		for i := range 5 { // a chunk each: twenty tokens a word make 4,700 of them
			says = append(says, functest.User(fmt.Sprintf("We decided to keep the limit of queue %s-%d at %d messages. ", id, i, 100+i)+strings.Repeat("It goes through the module and its callers. ", 28)))
		}
		w.Learned("shop/"+id+".jsonl", functest.Session(id, start, says...))
	}
	for _, a := range w.Admits("shop") {
		_, chunks, err := w.Log.Part(t.Context(), "shop", a.Source)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunks {
			name := queueOf(t, w, c.SHA256)
			if evidence, ok := said[name]; ok {
				label(t, w, "shop", memory.Label{Stream: memory.StreamName("limits", functest.Wording("limits")), QueryID: "limits", Chunk: c.SHA256, Evidence: evidence})
			}
		}
	}
	return w
}

// queueOf is the queue that a chunk talks of, "none" for none.
func queueOf(t testing.TB, w *functest.World, sha memory.SHA) string {
	t.Helper()
	b, err := w.Log.Blob(t.Context(), "shop", sha)
	if err != nil {
		t.Fatal(err)
	}
	if m := queue.FindStringSubmatch(string(b)); m != nil {
		return m[1]
	}
	return "none"
}

// TestScripted: the rewards of a run whose replies and labels are written here are those
// that were computed by hand, and every trainer's file holds what the table of
// docs/FORMATS.md says.
//
//	part a            a-0      a-1    a-2    a-3    a-4
//	the gate          closed   open   open   ?      closed, end
//	label             no       yes    no     -      yes
//	r_update          +1       +1     -1     null   -1
//	exit 5 = last evidence 5: r_exit 0; a reply that cannot be read: r_format 0; r_traj 0
//
//	part b            b-0      b-1         b-2    b-3     b-4
//	the gate          open     open, end   open   closed  closed
//	label             yes      -           yes    no      no
//	r_update          +1       null        +1     +1      +1
//	exit 2 before last evidence 3: r_exit -0.75; r_format 1; r_traj 0.25
//
// Each part is a group of one: all advantages are 0 where they are defined.
func TestScripted(t *testing.T) {
	t.Parallel()
	w := scriptedWorld(t, scripted{
		"a-1": "open", "a-2": "open", "a-3": "?", "a-4": "closed end",
		"b-0": "open", "b-1": "open end", "b-2": "open", "b-3": "closed", "b-4": "closed",
	}, map[string]bool{"a-0": false, "a-1": true, "a-2": false, "a-4": true, "b-0": true, "b-2": true, "b-3": false, "b-4": false})
	dir, r := write(t, w, export.Options{})

	type rewards struct {
		Queue                                    string
		Update, Exit, Format, Traj, Turn, All, T string
	}
	num := func(p *float64) string {
		if p == nil {
			return "null"
		}
		return strconv.FormatFloat(*p, 'g', -1, 64)
	}
	var got []rewards
	ids := map[string]string{} // row id to queue
	for _, g := range rows[export.GateRow](t, dir, export.Gates) {
		name := queueOf(t, w, memory.SHA(g.ChunkSHA))
		ids[g.ID] = name
		last := "null"
		if g.LastStep != nil {
			last = fmt.Sprint(*g.LastStep)
		}
		got = append(got, rewards{name, num(g.RUpdate), num(g.RExit), num(g.RFormat), num(g.RTraj), num(g.ATurn), num(g.Advantage), last})
	}
	want := []rewards{
		{"a-0", "1", "0", "0", "0", "0", "0", "5"},
		{"a-1", "1", "0", "0", "0", "0", "0", "5"},
		{"a-2", "-1", "0", "0", "0", "0", "0", "5"},
		{"a-3", "null", "0", "0", "0", "null", "null", "5"},
		{"a-4", "-1", "0", "0", "0", "0", "0", "5"},
		{"b-0", "1", "-0.75", "1", "0.25", "0", "0", "3"},
		{"b-1", "null", "-0.75", "1", "0.25", "null", "null", "3"},
		{"b-2", "1", "-0.75", "1", "0.25", "0", "0", "3"},
		{"b-3", "1", "-0.75", "1", "0.25", "0", "0", "3"},
		{"b-4", "1", "-0.75", "1", "0.25", "0", "0", "3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rewards (-want +got):\n%s", diff)
	}

	// SFT: what no label contradicts, unlabelled ones too; not the unreadable reply.
	var sft []string
	for _, row := range rows[export.SFTRow](t, dir, export.SFT) {
		sft = append(sft, ids[row.ID])
		if row.CompletionOf != "raw" || row.Call != "decide" || len(row.Messages) != 3 || row.Messages[2].Role != "assistant" || !strings.Contains(row.Messages[2].Content, "I looked for a limit") {
			t.Errorf("sft %s: the model's own words are not there: %+v", row.ID, row)
		}
		if !strings.Contains(row.Messages[1].Content, "limit of queue "+ids[row.ID]) {
			t.Errorf("sft %s: the prompt shows another section", row.ID)
		}
	}
	if diff := cmp.Diff([]string{"a-0", "a-1", "b-0", "b-1", "b-2", "b-3", "b-4"}, sft); diff != "" {
		t.Errorf("sft (-want +got):\n%s", diff)
	}
	// KTO: every labelled one, and the unreadable one as a bad one.
	kto := map[string]bool{}
	for _, row := range rows[export.KTORow](t, dir, export.KTO) {
		kto[ids[row.ID]] = row.Label
	}
	if diff := cmp.Diff(map[string]bool{"a-0": true, "a-1": true, "a-2": false, "a-3": false, "a-4": false, "b-0": true, "b-2": true, "b-3": true, "b-4": true}, kto); diff != "" {
		t.Errorf("kto (-want +got):\n%s", diff)
	}
	// DPO: where the label says otherwise than the gate. The unreadable one has no label.
	dpo := map[string][2]bool{}
	for _, row := range rows[export.DPORow](t, dir, export.DPO) {
		yes := func(m []export.Message) bool { return strings.Contains(m[0].Content, "<check>yes") }
		dpo[ids[row.ID]] = [2]bool{yes(row.Chosen), yes(row.Rejected)}
		if v, err := gru.ParseReply(gru.ShapeGate, row.Chosen[0].Content, "", "stop"); err != nil || v.Exit != (ids[row.ID] == "a-4") {
			t.Errorf("dpo %s: chosen %+v, %v", row.ID, v, err)
		}
	}
	if diff := cmp.Diff(map[string][2]bool{"a-2": {false, true}, "a-4": {true, false}}, dpo); diff != "" {
		t.Errorf("dpo (-want +got):\n%s", diff)
	}
	// verl: every labelled one with what the label says.
	verl := map[string]string{}
	for i, row := range rows[export.VerlRow](t, dir, export.VerlRL) {
		verl[ids[row.ExtraInfo.ID]] = row.RewardModel.GroundTruth[0]
		if row.ExtraInfo.Index != int64(i) || !strings.Contains(row.Context, ids[row.ExtraInfo.ID]) {
			t.Errorf("verl %d: %+v", i, row.ExtraInfo)
		}
	}
	if diff := cmp.Diff(map[string]string{"a-0": "no", "a-1": "yes", "a-2": "no", "a-4": "yes", "b-0": "yes", "b-2": "yes", "b-3": "no", "b-4": "no"}, verl); diff != "" {
		t.Errorf("verl (-want +got):\n%s", diff)
	}
	wantStats := export.RewardStats{Labelled: 8, Right: 6, ExitEarly: 1, ExitExact: 1, FormatBroken: 1}
	if diff := cmp.Diff(wantStats, r.Rewards); diff != "" || r.Excluded["format"] != 1 || r.Gates != 10 {
		t.Errorf("manifest: %d gates, excluded %v, rewards (-want +got):\n%s", r.Gates, r.Excluded, diff)
	}
}
