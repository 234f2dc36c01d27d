package gru_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

func TestApplyEdits(t *testing.T) {
	t.Parallel()
	const mem = "Retries stop after 3 attempts. [1a2b3c4d]\n\nAda owns the deploy. [5e6f7a8b]\n"
	for name, tc := range map[string]struct {
		mem   string
		edits []gru.Edit
		want  string
		bad   string
	}{
		"a first fact":           {"", []gru.Edit{{0, "The ban is 60 s."}}, "The ban is 60 s. [9c0d1e2f]", ""},
		"one more":               {mem, []gru.Edit{{0, "- The ban\n is 60 s. [deadbee5]"}}, "Retries stop after 3 attempts. [1a2b3c4d]\nAda owns the deploy. [5e6f7a8b]\nThe ban is 60 s. [9c0d1e2f]", ""},
		"replaced in its place":  {mem, []gru.Edit{{1, "Retries stop after 5 attempts."}}, "Retries stop after 5 attempts. [1a2b3c4d] [9c0d1e2f]\nAda owns the deploy. [5e6f7a8b]", ""},
		"taken back":             {mem, []gru.Edit{{2, " "}}, "Retries stop after 3 attempts. [1a2b3c4d]", ""},
		"nothing":                {mem, []gru.Edit{}, mem, ""},
		"the same words again":   {mem, []gru.Edit{{2, "Ada owns the deploy."}, {0, "Ada owns the deploy."}, {0, ""}}, mem, ""},
		"twice in one reply":     {"", []gru.Edit{{0, "A is 1."}, {0, "A is 1."}}, "A is 1. [9c0d1e2f]", ""},
		"the built-in's line":    {"- A is 1. [1a2b3c4d]\n", []gru.Edit{{1, "A is 2."}}, "- A is 2. [1a2b3c4d] [9c0d1e2f]", ""},
		"the newest ids are few": {"A. [00000001] [00000002] [00000003] [00000004]", []gru.Edit{{1, "B."}}, "B. [00000002] [00000003] [00000004] [9c0d1e2f]", ""},
		"a line too far":         {mem, []gru.Edit{{3, "x"}}, "", "2 lines"},
		"below the first":        {mem, []gru.Edit{{-1, "x"}}, "", "line -1"},
		"two of one line":        {mem, []gru.Edit{{1, "x"}, {1, "y"}}, "", "two edits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := gru.ApplyEdits(tc.mem, tc.edits, "9c0d1e2f")
			if tc.bad != "" {
				if !fault.Is(err, fault.Malformed) || !strings.Contains(err.Error(), tc.bad) {
					t.Fatalf("%v", err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestParseEdits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		json    bool
		content string
		want    gru.Verdict
		bad     string
	}{
		"tags":                {false, "Two.\n<add>The ban is 60 s.</add>\n<replace line=\"2\">Grace owns the deploy.</replace><replace line=\"1\"></replace>", gru.Verdict{Update: true, Edits: []gru.Edit{{0, "The ban is 60 s."}, {2, "Grace owns the deploy."}, {1, ""}}}, ""},
		"the whole memory":    {false, "<update>All of it.</update>", gru.Verdict{Update: true, Memory: "All of it."}, ""},
		"a masked tag":        {false, "<add>write <\u2060add> so</add>", gru.Verdict{Update: true, Edits: []gru.Edit{{0, "write <add> so"}}}, ""},
		"not closed":          {false, "<add>The ban is 60 s.", gru.Verdict{}, "not closed"},
		"closed by another":   {false, "<add>a</replace>", gru.Verdict{}, "not closed"},
		"one in another":      {false, "<add>a <add>b</add></add>", gru.Verdict{}, "not closed"},
		"closed twice":        {false, "<add>a</add></add>", gru.Verdict{}, "opened"},
		"line 0":              {false, `<replace line="0">a</replace>`, gru.Verdict{}, "line 0"},
		"prose":               {false, "Nothing changes.", gru.Verdict{}, "missing or empty"},
		"JSON":                {true, `{"edits":[{"line":0,"text":"The ban is 60 s."}]}`, gru.Verdict{Update: true, Edits: []gru.Edit{{0, "The ban is 60 s."}}}, ""},
		"JSON, nothing":       {true, `{"edits":[]}`, gru.Verdict{Update: true, Edits: []gru.Edit{}}, ""},
		"JSON, whole":         {true, `{"update":"All of it."}`, gru.Verdict{Update: true, Memory: "All of it."}, ""},
		"JSON, both":          {true, `{"edits":[],"update":"x"}`, gru.Verdict{}, "beside edits"},
		"JSON, a field more":  {true, `{"edits":[{"line":0,"text":"a","delete":true}]}`, gru.Verdict{}, "no JSON object"},
		"JSON, not a number":  {true, `{"edits":[{"line":"first","text":"a"}]}`, gru.Verdict{}, "no JSON object"},
		"JSON, half a number": {true, `{"edits":[{"line":1.5,"text":"a"}]}`, gru.Verdict{}, "no JSON object"},
		"JSON, too many":      {true, `{"edits":[` + strings.TrimSuffix(strings.Repeat(`{"line":0,"text":"a"},`, 129), ",") + `]}`, gru.Verdict{}, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parse := gru.ParseReply
			if tc.json {
				parse = gru.ParseJSON
			}
			got, err := parse(gru.ShapeEdit, tc.content, "", "stop")
			if tc.bad != "" {
				if !fault.Is(err, fault.Malformed) || !strings.Contains(err.Error(), tc.bad) {
					t.Fatalf("%+v %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	for _, e := range [][]gru.Edit{{{0, "a <check> b"}, {3, ""}}, {{12, "x"}}} {
		v := gru.Verdict{Update: true, Edits: e}
		a, err1 := gru.ParseReply(gru.ShapeEdit, v.Render(gru.ShapeEdit), "", "stop")
		b, err2 := gru.ParseJSON(gru.ShapeEdit, v.RenderJSON(gru.ShapeEdit), "", "stop")
		if err1 != nil || err2 != nil || !cmp.Equal(a, v) || !cmp.Equal(b, v) {
			t.Errorf("%+v %v %+v %v", a, err1, b, err2)
		}
	}
}

// run plays a stream: of each chunk the gate is open, and edits answers the rewrite
// call, whose prompt it is shown.
func run(t *testing.T, cfg *gru.Config, texts []string, edits func(i int, c *gru.Call) []gru.Edit) (gru.State, []any) {
	t.Helper()
	part := partOf(1, len(texts))
	s, recs := gru.Begin(gru.State{}, cfg, part, epoch)
	log := recs
	for i, text := range texts {
		s2, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: chunkOf(i, epoch, "user: "+text)}}})
		for range 4 {
			call, ok := effects[0].(*gru.Call)
			if !ok {
				break
			}
			v, shape := gru.Verdict{Think: "t", Update: true}, gru.ShapeGate
			if call.Kind == gru.CallRewrite {
				v.Edits, shape = edits(i, call), gru.ShapeEdit
			}
			s2, effects = gru.Step(s2, gru.Input{Config: cfg, Part: part, Event: gru.ModelReply{Reply: gru.Reply{Content: v.Render(shape), FinishReason: "stop", PromptTokens: call.PromptTokens}}})
		}
		log = append(log, effects[0].(*gru.Append).Records...)
		s = s2
	}
	return s, log
}

// TestEditsKeepTheirSources: a memory that is changed by edits says of each line
// which sections it came from, and its parents are those sections' evidence alone.
func TestEditsKeepTheirSources(t *testing.T) {
	t.Parallel()
	m := gateModel(false, "")
	m.Checks = true
	cfg := &gru.Config{Tenant: "local", Project: "shop", Stream: "s", Question: "q", Level: memory.L1, BudgetTokens: 1024, Count: words, Model: m}
	texts := []string{"Retries of the client stop after 3 attempts.", "Ada owns the deploy of billing.", "Retries of the client stop after 5 attempts from now on."}
	s, log := run(t, cfg, texts, func(i int, c *gru.Call) []gru.Edit {
		if i == 2 {
			if !strings.Contains(c.Prompt.User, "1. Retries of the client stop after 3 attempts. [") || !strings.Contains(c.Prompt.User, "\n2. Ada owns") {
				t.Errorf("the lines are not numbered:\n%s", c.Prompt.User)
			}
			return []gru.Edit{{1, "Retries of the client stop after 5 attempts."}}
		}
		return []gru.Edit{{0, texts[i]}}
	})
	id := func(i int) string { return gru.SourceID(chunkOf(i, epoch, "user: "+texts[i]).SHA256) }
	want := fmt.Sprintf("Retries of the client stop after 5 attempts. [%s] [%s]\nAda owns the deploy of billing. [%s]", id(0), id(2), id(1))
	if s.MemoryText != want {
		t.Errorf("memory %q, want %q", s.MemoryText, want)
	}
	var last *memory.Memory
	for _, r := range log {
		if m, ok := r.(*memory.Memory); ok {
			last = m
		}
	}
	if last == nil || len(last.Parents) != 3 {
		t.Errorf("%+v", last)
	}
}

// TestEditsAreChecked: an edit that takes out a fact of which the section does not
// speak is refused, as is one that says what was not read.
func TestEditsAreChecked(t *testing.T) {
	t.Parallel()
	m := gateModel(false, "")
	m.Checks = true
	cfg := &gru.Config{Tenant: "local", Project: "shop", Stream: "s", Question: "q", Level: memory.L1, BudgetTokens: 1024, Count: words, Model: m}
	texts := []string{"Retries of the client stop after 3 attempts.", "Ada owns the deploy of billing.", "Grace is on holiday."}
	attempts := 0
	s, log := run(t, cfg, texts, func(i int, c *gru.Call) []gru.Edit {
		switch i {
		case 1: // forgets, twice
			attempts++
			return []gru.Edit{{1, ""}, {0, texts[1]}}
		case 2: // invents
			return []gru.Edit{{0, "Grace is on holiday."}, {0, "The limit of queue-7 is 99."}}
		}
		return []gru.Edit{{0, texts[0]}}
	})
	gates := map[int]*memory.Gate{}
	for _, r := range log {
		if g, ok := r.(*memory.Gate); ok {
			gates[g.T] = g
		}
	}
	if g := gates[2]; attempts != 2 || g.ReasonCode != gru.ReasonForgets || !g.Pending || g.Update {
		t.Errorf("%d attempts: %+v", attempts, g)
	}
	if g := gates[3]; g.ReasonCode != gru.ReasonKept || g.Ungrounded != 1 {
		t.Errorf("%+v", g)
	}
	if !strings.Contains(s.MemoryText, texts[0]) || strings.Contains(s.MemoryText, "99") || !strings.Contains(s.MemoryText, texts[2]) {
		t.Errorf("memory %q", s.MemoryText)
	}
}

// TestInventionKeepsTheFact: a model that adds an invented number to an old fact,
// by an edit or in the whole memory, does not take the fact away.
func TestInventionKeepsTheFact(t *testing.T) {
	t.Parallel()
	m := gateModel(false, "")
	m.Checks = true
	cfg := &gru.Config{Tenant: "local", Project: "shop", Stream: "s", Question: "q", Level: memory.L1, BudgetTokens: 1024, Count: words, Model: m}
	texts := []string{"Retries stop after 3 attempts in Berlin.", "Backups happen on Monday."}
	s, log := run(t, cfg, texts, func(i int, _ *gru.Call) []gru.Edit {
		if i == 1 {
			return []gru.Edit{{1, "Retries stop after 3 attempts in Berlin, at most 7341 times."}, {0, texts[1]}}
		}
		return []gru.Edit{{0, texts[0]}}
	})
	id := func(i int) string { return gru.SourceID(chunkOf(i, epoch, "user: "+texts[i]).SHA256) }
	if want := fmt.Sprintf("%s [%s]\n%s [%s]", texts[0], id(0), texts[1], id(1)); s.MemoryText != want {
		t.Errorf("memory %q, want %q", s.MemoryText, want)
	}
	for _, r := range log {
		if g, ok := r.(*memory.Gate); ok && g.T == 2 && (g.Ungrounded != 1 || g.ReasonCode != gru.ReasonKept) {
			t.Errorf("%+v", g)
		}
	}
}
