package gate_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/emitted"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
)

var derivedDay = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

var derivedFacts = []string{
	"We decided that retries stop after exactly 5 attempts, because the upstream bans us for more.",
	"From now on deploys never start on a Friday, because the on-call team is too small at weekends.",
	"We decided to write the export as UTF-8 without a header, because the auditor reads nothing else.",
}

func derivedWorld(t *testing.T, p gru.Policy) *functest.World {
	t.Helper()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(), Policy: p})
	w.AskUp("shop", false, "decisions", "rules")
	var says []functest.Say
	for _, f := range derivedFacts {
		says = append(says, functest.User(f), functest.Assistant("Understood, noted."))
	}
	w.Learned("shop/a.jsonl", functest.Session("s1", derivedDay, says...))
	return w
}

func filtered(w *functest.World) (d gate.DerivedFilter) {
	w.T.Helper()
	w.Get("/memory/derived?project=shop", &d)
	return d
}

// What was given out gives no evidence when it comes back, and the check that says so
// is the same as what really happens: five rounds leave the log as it was.
func TestDerivedFilter(t *testing.T) {
	t.Parallel()
	w := derivedWorld(t, nil)
	var d query.SkillDraft
	w.Get("/memory/skills/_draft?from=shop/decisions", &d)
	w.Post("/memory/skills", map[string]string{"action": "promote", "name": d.Name, "text": d.Text, "by": "Ada"}, http.StatusOK, new(query.Skill))

	f := filtered(w)
	if len(f.Projects) != 1 || !f.OK {
		t.Fatalf("%+v", f)
	}
	r := f.Projects[0]
	a := r.Artifacts
	if r.Statements < 3 || r.Unknown != 0 || a[emitted.KindSkill] != 1 || a[emitted.KindMemory] == 0 || a[emitted.KindSynthesis] != 1 || a[emitted.KindDraft] != a[emitted.KindMemory]+1 || r.Streams != 2 {
		t.Errorf("looked at too little: %+v", r)
	}
	if want := 3*(a[emitted.KindMemory]+a[emitted.KindSynthesis]) + 4*(a[emitted.KindSkill]+a[emitted.KindDraft]+a[emitted.KindNote]); r.Fed != want {
		t.Errorf("fed back in %d forms, want %d", r.Fed, want)
	}
	if r.Derived == 0 || r.Evidence != 0 || len(r.Problems) != 0 {
		t.Errorf("%+v", r)
	}

	count := func() (n int) {
		for _, s := range w.Streams("shop") {
			n += len(functest.Of[*memory.Evidence](w.Records("shop", s)))
		}
		return n
	}
	before := count()
	var list struct{ Results []struct{ Text string } }
	for round := range 5 {
		at := derivedDay.AddDate(0, 0, round+1)
		w.Get("/memory/skills/_draft?from=shop", &d)
		w.Post("/memory/query", map[string]any{"query": "how many retry attempts are allowed, and why?", "project": "shop"}, http.StatusOK, &list)
		texts := []string{d.Text}
		for _, q := range []string{"decisions", "rules"} {
			for _, m := range functest.Of[*memory.Memory](w.Records("shop", memory.StreamName(q, functest.Wording(q)))) {
				texts = append(texts, m.Text)
			}
		}
		for _, m := range functest.Of[*memory.Memory](w.Records("shop", memory.StreamName(memory.SynthesisID, functest.SynthesisWording))) {
			texts = append(texts, m.Text)
		}
		for _, res := range list.Results {
			texts = append(texts, "- "+res.Text+" [1f0a77c2]")
		}
		for i, text := range texts {
			id := string(rune('a'+round)) + string(rune('a'+i))
			w.Learned("shop/back-"+id+".jsonl", functest.Session("back-"+id, at, functest.User("What do we know so far?"), functest.Assistant(text), functest.Assistant("This is what we know:\n\n"+text)))
			w.Learned("shop/back-"+id+".md", []byte(text))
		}
		w.Learned("shop/skill-"+string(rune('a'+round))+".jsonl", functest.Session("skill-"+string(rune('a'+round)), at, functest.User(d.Text), functest.Assistant("I see.")))
		if got := count(); got != before {
			t.Fatalf("round %d: %d statements, %d before", round, got, before)
		}
	}
	if f := filtered(w); !f.OK || f.Projects[0].Statements != r.Statements {
		t.Errorf("after five rounds: %+v", f)
	}
	if rec := w.Call(http.MethodGet, "/memory/derived?project=none", nil); rec.Code != http.StatusNotFound {
		t.Errorf("a project that is not: %d", rec.Code)
	}
}

// naive keeps every fact of ours, whoever says it and however often.
type naive struct{}

func (naive) Name() string          { return "naive/1" }
func (naive) PromptVersion() string { return "-" }
func (naive) Decide(in gru.PolicyInput) gru.Decision {
	d := gru.Decision{FormatOK: true, ReasonCode: gru.ReasonClosed, Candidate: in.State.MemoryText}
	for _, k := range in.State.Kept {
		d.Parents = append(d.Parents, k.Node)
	}
	for ti, turn := range in.Chunk.Turns {
		for _, fact := range derivedFacts {
			at := strings.Index(in.Chunk.Text[turn.Start:turn.End], fact)
			if at < 0 || turn.Derived {
				continue
			}
			node := memory.NodeID(in.Config.Tenant, in.Config.Project, memory.L0, in.Config.Stream, memory.SumString(fact))
			d.Picks = append(d.Picks, gru.Pick{Turn: ti, Start: turn.Start + at, End: turn.Start + at + len(fact)})
			d.Candidate += extractpolicy.Line(fact, node)
			d.Parents = append(d.Parents, node)
			d.Update, d.ReasonCode = true, gru.ReasonKept
		}
	}
	return d
}

// A policy that takes what the memory gave out for evidence is found out: by what it
// would do, and by what it did.
func TestDerivedFilterFinds(t *testing.T) {
	t.Parallel()
	w := derivedWorld(t, naive{})
	f := filtered(w)
	r := f.Projects[0]
	if f.OK || r.Evidence == 0 || len(r.Problems) == 0 || !strings.Contains(r.Problems[0], "memory shop/decisions, come back as") {
		t.Fatalf("what it would do: %+v", r)
	}
	for _, p := range r.Problems {
		if strings.Contains(p, "skill") || strings.Contains(p, "draft") {
			t.Errorf("the marker alone tells whose words a skill is: %s", p)
		}
		if strings.Contains(p, "retries") || strings.Contains(p, "in the log") {
			t.Errorf("a problem holds text: %s", p)
		}
	}
	var text string
	for _, m := range functest.Of[*memory.Memory](w.Records("shop", memory.StreamName("decisions", functest.Wording("decisions")))) {
		text = m.Text
	}
	w.Learned("shop/b.jsonl", functest.Session("s2", derivedDay.AddDate(0, 0, 1), functest.User("What do we know?"), functest.Assistant(text)))
	found := 0
	for _, p := range filtered(w).Projects[0].Problems {
		if strings.Contains(p, "said by assistant, is nothing but what the memory gave out") {
			found++
		}
	}
	if found != 6 { // three facts, two questions
		t.Errorf("%d statements of the log are named, want 6: %q", found, filtered(w).Projects[0].Problems)
	}
}

var evidLine = regexp.MustCompile(`EVID [^\[\n]*`)

// copying is a model that opens the gate for every line with EVID and copies it into
// its memory, whoever says it.
func copying() *scripted {
	return &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		var v gru.Verdict
		for _, l := range evidLine.FindAllString(section.FindStringSubmatch(r.User)[1], -1) {
			v.Update = true
			v.Edits = append(v.Edits, gru.Edit{Text: "- " + strings.TrimSpace(l)})
		}
		if strings.Contains(r.System, "<check>") {
			return says(r, v, gru.ShapeGate), nil
		}
		return says(r, v, gru.ShapeEdit), nil
	}}
}

// recitals are the problems of the log that name a memory's own text, by either rule.
func recitals(r emitted.Report) (out []string) {
	for _, p := range r.Problems {
		if strings.Contains(p, "is nothing but lines of a memory that was stated before") || strings.Contains(p, "is nothing but what the memory gave out") {
			out = append(out, p)
		}
	}
	return out
}

// A model takes the memory's own text for evidence where nothing marks it. Nothing is
// said of what it would do; what it did is named, in every question.
func TestDerivedFilterOfModel(t *testing.T) {
	t.Parallel()
	m := copying()
	w := modelWorldOf(t, functest.Options{
		Models: modelOf(m, m),
		Plan:   func(string, *models.Pick) *gate.Plan { return &gate.Plan{Model: gru.Model{Name: "small"}} },
	})
	w.Ask("shop", "decisions", "rules")
	w.Learned("shop/a.md", []byte("# Facts\n\n- EVID we cap the queue at 500 items.\n- EVID the cache lives for 40 minutes.\n"))
	stream := memory.StreamName("decisions", functest.Wording("decisions"))
	text := func() string {
		all := functest.Of[*memory.Memory](w.Records("shop", stream))
		return all[len(all)-1].Text
	}
	given := text()
	if n := len(memory.Lines(given)); n != 2 {
		t.Fatalf("the memory has %d lines:\n%s", n, given)
	}
	asked := len(m.asked)
	r := filtered(w).Projects[0]
	if len(r.Problems) != 0 || r.Evidence != 0 || r.Streams != 0 || !slices.Equal(r.ByModel, []string{"decisions", "rules"}) || r.Unmarked == 0 || r.Unmarked >= r.Fed || len(m.asked) != asked {
		t.Fatalf("before anything came back: %+v", r)
	}
	steps := []struct {
		name string
		key  string
		body []byte
		want int // more problems, of both questions
	}{
		{"the same document again", "a2.md", []byte("# Facts again\n\n* EVID we cap the queue at 500 items.\n* EVID the cache lives for 40 minutes.\n"), 0},
		{"another person says a fact", "b.jsonl", functest.Session("s1", modelDay, functest.User("EVID we cap the queue at 500 items."), functest.Assistant("Noted.")), 0},
		{"a new fact", "c.jsonl", functest.Session("s2", modelDay, functest.User("EVID a deploy takes two people."), functest.Assistant("Noted.")), 0},
		{"the memory as a file", "back.md", []byte(given), 2},
		{"a line of it without its id", "line.md", []byte("EVID the cache lives for 40 minutes.\n"), 2},
		{"the memory with other signs, recited", "back.jsonl", functest.Session("s3", modelDay, functest.User("What do we know?"), functest.Assistant(strings.ReplaceAll(given, "EVID", "* EVID "))), 2},
		{"a person's paste", "paste.jsonl", functest.Session("s4", modelDay, functest.User(given+"\n"), functest.Assistant("I see.")), 2},
	}
	have := 0
	for _, st := range steps {
		before := map[memory.SHA]bool{}
		for _, e := range functest.Of[*memory.Evidence](w.Records("shop", stream)) {
			before[e.Node] = true
		}
		w.Learned("shop/"+st.key, st.body)
		all := functest.Of[*memory.Evidence](w.Records("shop", stream))
		f := filtered(w)
		got := recitals(f.Projects[0])
		if len(got)-have != st.want || f.OK != (len(got) == 0) || len(got) != len(f.Projects[0].Problems) {
			t.Fatalf("%s: %d problems more, want %d: %+v", st.name, len(got)-have, st.want, f)
		}
		have = len(got)
		if st.want > 0 {
			e := all[len(all)-1]
			for _, e2 := range all {
				if !before[e2.Node] && strings.Contains(e2.Text, "EVID") {
					e = e2
				}
			}
			if !slices.ContainsFunc(got, func(p string) bool {
				return strings.HasPrefix(p, fmt.Sprintf("shop/%s step %d: evidence %s, said by %s,", stream, e.T, e.Node.Short(), e.Role))
			}) {
				t.Errorf("%s: step %d, %s is not named: %q", st.name, e.T, e.Node.Short(), got)
			}
		}
	}
	for _, p := range recitals(filtered(w).Projects[0]) {
		if strings.Contains(p, "queue") {
			t.Errorf("a problem holds text: %s", p)
		}
	}
}

// After a scrub the log is looked at as far as it still says who said what.
func TestDerivedFilterAfterScrub(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.AskUp("shop", false, "decisions", "rules")
	w.Learned("shop/a.jsonl", functest.Session("s1", derivedDay, functest.User("We decided to sign the releases with the key ACME-77aa88bb99, because the old one leaked."), functest.Assistant("Understood, noted."), functest.User(derivedFacts[0]), functest.Assistant("Noted.")))
	w.Learned("shop/b.md", []byte("# Rules\n\nThe export of ACME-0c1d2e3f4a is written once a day. "+derivedFacts[1]+"\n"))
	before := filtered(w).Projects[0]
	if before.Statements == 0 || before.Unknown != 0 || len(before.Problems) != 0 {
		t.Fatalf("before: %+v", before)
	}
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte("patterns:\n  - name: acme\n    regexp: 'ACME-[0-9a-f]{10}'\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil {
		t.Fatal(err)
	}
	w.Run(w.Published()...)
	after := filtered(w).Projects[0]
	if after.Statements != before.Statements || after.Fed == 0 || after.Evidence != 0 || len(after.Problems) != 0 {
		t.Errorf("after: %+v", after)
	}
}
