package questions_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/questions"
)

const shop = `# what the shop's people ask
project: shop
sources: [claude-code, pi]
queries:
  # asked by everyone
  - id: decisions
    question: What was decided, and why?
  - id: "7"
    question: |
      What is still open?
      One line each.
    exit_gate: true # stops early
synthesis:
  question: What must a newcomer know?
  exit_gate: true
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := questions.Parse("shop.yaml", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	want := questions.Set{
		Project: "shop",
		Sources: []string{"claude-code", "pi"},
		Queries: []questions.Query{
			{ID: "decisions", Question: "What was decided, and why?"},
			{ID: "7", Question: "What is still open?\nOne line each.", ExitGate: true},
		},
		Synthesis: &questions.Query{ID: "_synthesis", Question: "What must a newcomer know?", ExitGate: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const head = "project: shop\nqueries:\n  - id: a\n    question: A?\n"
	tests := map[string]struct{ in, want string }{
		"empty":                   {"", "q.yaml:1: the file is empty"},
		"comment only":            {"# nothing\n", "q.yaml:1: the file is empty"},
		"not yaml":                {"project: shop\nqueries: [\n", "q.yaml:3: not YAML at or below this line: did not find expected node content"},
		"tab":                     {"project: shop\n\tqueries: []\n", "q.yaml:2: not YAML at or below this line: found a tab character that violates indentation"},
		"a list":                  {"- a\n", "q.yaml:1: a question file must be a mapping of fields"},
		"no project":              {"queries: []\n", "q.yaml:1: the file names no project"},
		"null project":            {"project:\nqueries: []\n", "q.yaml:1: project must be text"},
		"bad project":             {"project: Shop\n", `q.yaml:1: project "Shop" is not a valid name`},
		"unknown field":           {"project: shop\nquestions: []\n", `q.yaml:2: unknown field "questions"`},
		"unknown query field":     {head + "    exitgate: true\n", `q.yaml:5: unknown field "exitgate"`},
		"unknown synthesis field": {head + "synthesis:\n  id: x\n  question: S?\n", `q.yaml:6: unknown field "id"`},
		"repeated field":          {"project: shop\nproject: shop\n", `q.yaml:2: field "project" stands twice, first at line 1`},
		"repeated id":             {head + "  - id: a\n    question: B?\n", `q.yaml:5: id "a" stands twice, first at line 3`},
		"reserved id":             {"project: shop\nqueries:\n  - {id: _synthesis, question: A}\n", `q.yaml:3: id "_synthesis" is not valid`},
		"ad-hoc id":               {"project: shop\nqueries:\n  - {id: adhoc-1, question: A}\n", `q.yaml:3: id "adhoc-1" is not valid`},
		"upper-case id":           {"project: shop\nqueries:\n  - {id: Why, question: A}\n", `q.yaml:3: id "Why" is not valid`},
		"no id":                   {"project: shop\nqueries:\n  - question: A?\n", "q.yaml:3: a query has no id"},
		"no question":             {"project: shop\nqueries:\n  - id: a\n", "q.yaml:3: a query has no question"},
		"blank question":          {"project: shop\nqueries:\n  - {id: a, question: '  '}\n", "q.yaml:3: question is empty"},
		"null question":           {"project: shop\nqueries:\n  - id: a\n    question:\n", "q.yaml:4: question must be text"},
		"long question":           {"project: shop\nqueries:\n  - id: a\n    question: " + strings.Repeat("é", 4097) + "\n", "q.yaml:4: the question has 8194 bytes, at most 8192 are allowed"},
		"control character":       {"project: shop\nqueries:\n  - id: a\n    question: \"a\\x01b\"\n", "q.yaml:4: the question holds the character U+0001, which no text needs"},
		"exit gate word":          {head + "    exit_gate: yes please\n", `q.yaml:5: exit_gate must be true or false, not "yes please"`},
		"query is text":           {"project: shop\nqueries: [why]\n", "q.yaml:2: a query must be a mapping of fields"},
		"queries is a mapping":    {"project: shop\nqueries: {a: b}\n", "q.yaml:2: queries must be a list"},
		"repeated source":         {"project: shop\nsources: [pi, pi]\n", `q.yaml:2: source "pi" stands twice`},
		"anchor":                  {"project: &p shop\nqueries: []\n", "q.yaml:1: anchors and aliases are not allowed"},
		"alias":                   {"project: shop\nqueries:\n  - &a {id: a, question: A}\n  - *a\n", "q.yaml:3: anchors and aliases are not allowed"},
		"broken block":            {"project: shop\nqueries:\n  - id: a\n   question: A?\n", "q.yaml:3: not YAML at or below this line: did not find expected '-' indicator"},
		"two documents":           {"project: shop\n---\nproject: till\n", "q.yaml:2: a second YAML document begins here"},
		"too many":                {"project: shop\nqueries: [" + strings.Repeat("x, ", 65) + "]\n", "q.yaml:2: queries has 65 entries, at most 64 are allowed"},
		"too big":                 {strings.Repeat("#", 256<<10+1), "q.yaml: the file has 262145 bytes, at most 262144 are allowed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := questions.Parse("q.yaml", []byte(tc.in))
			if err == nil {
				t.Fatal("accepted")
			}
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("kind %v, want invalid", fault.KindOf(err))
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnknownFieldSaysWhichAreKnown(t *testing.T) {
	t.Parallel()
	_, err := questions.Parse("q.yaml", []byte("projct: shop\n"))
	if got, want := fault.HintOf(err), "the fields of a question file are export, project, queries, sources, synthesis"; got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	a := questions.Query{ID: "open", Question: "What is open?"}
	b := questions.Query{ID: "open", Question: "What is still open?"}
	if a.Stream() == b.Stream() {
		t.Error("a new wording keeps the stream")
	}
	if got, want := a.Stream(), "open@"+string(memory.SumString("What is open?"))[:8]; got != want {
		t.Errorf("stream %q, want %q", got, want)
	}
}

func TestAddAndRemoveKeepOrderAndComments(t *testing.T) {
	t.Parallel()
	s, err := questions.Parse("shop.yaml", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shop, string(s.Marshal())); diff != "" {
		t.Errorf("an unchanged set is written differently:\n%s", diff)
	}
	added, err := s.Add(questions.Query{ID: "rules", Question: " Which rules: hold? \n"})
	if err != nil {
		t.Fatal(err)
	}
	reworded, err := added.Add(questions.Query{ID: "decisions", Question: "What was decided?"})
	if err != nil {
		t.Fatal(err)
	}
	got, ok := reworded.Remove("7")
	if !ok {
		t.Fatal("question 7 was not there")
	}
	want := `# what the shop's people ask
project: shop
sources: [claude-code, pi]
queries:
  # asked by everyone
  - id: decisions
    question: What was decided?
  - id: rules
    question: 'Which rules: hold?'
synthesis:
  question: What must a newcomer know?
  exit_gate: true
`
	if diff := cmp.Diff(want, string(got.Marshal())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(shop, string(s.Marshal())); diff != "" {
		t.Errorf("Add or Remove changed its receiver:\n%s", diff)
	}
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	full := questions.Set{Project: "shop"}
	var err error
	for i := range questions.MaxQueries {
		if full, err = full.Add(questions.Query{ID: "q" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Question: "?"}); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		set questions.Set
		add questions.Query
	}{
		"no id":       {questions.Set{}, questions.Query{Question: "Why?"}},
		"reserved id": {questions.Set{}, questions.Query{ID: "_admit", Question: "Why?"}},
		"no words":    {questions.Set{}, questions.Query{ID: "why", Question: " \n"}},
		"bad UTF-8":   {questions.Set{}, questions.Query{ID: "why", Question: "a\xff"}},
		"too many":    {full, questions.Query{ID: "why", Question: "Why?"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := tc.set.Add(tc.add); !fault.Is(err, fault.Invalid) {
				t.Errorf("Add: %v, want invalid", err)
			}
		})
	}
	if _, ok := full.Remove("nobody"); ok {
		t.Error("Remove of an absent id says ok")
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	s := questions.Default("shop")
	if s.Project != "shop" || s.Synthesis == nil || !s.Synthesis.ExitGate {
		t.Errorf("project %q, synthesis %+v", s.Project, s.Synthesis)
	}
	if len(s.Queries) != 9 {
		t.Errorf("%d questions, want 9", len(s.Queries))
	}
	back, err := questions.Parse("back.yaml", s.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(string(s.Marshal()), "# The standing questions") {
		t.Error("the written default set lost the comment that explains it")
	}
	s.Queries[0].Question = "changed"
	s.Synthesis.Question = "changed"
	if d := questions.Default("shop"); d.Queries[0].Question == "changed" || d.Synthesis.Question == "changed" {
		t.Error("two default sets share memory")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(shop))
	f.Add(questions.Default("shop").Marshal())
	f.Add([]byte("project: a\nqueries:\n- {id: x, question: \"a\\tb: c # d\"}\n"))
	f.Add([]byte("project: 2020-01-01\nsources: [~x, 'y']\nsynthesis: {question: >-\n  folded\n  text}\n"))
	f.Add([]byte("# c\n\n# d\nproject: a # e\n# f\nqueries: # g\n  # h\n  - id: x # i\n    # j\n    question: q # k\n  # l\n# m\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := questions.Parse("f.yaml", data)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("kind %v of %v, want invalid", fault.KindOf(err), err)
			}
			return
		}
		if diff := cmp.Diff(string(data), string(s.Marshal())); diff != "" {
			t.Fatalf("an unchanged set is written differently:\n%s", diff)
		}
		// Law: what is written after a change reads back as the changed set.
		changed, err := s.Add(questions.Query{ID: "fuzz-law", Question: "Does: it # hold?\n- yes"})
		if err != nil {
			return // the file was full
		}
		out := changed.Marshal()
		back, err := questions.Parse("back.yaml", out)
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		if diff := cmp.Diff(changed, back); diff != "" {
			t.Fatalf("%s in\n%s", diff, out)
		}
		// The same from nothing but the values.
		bare := questions.Set{Project: s.Project, Sources: s.Sources, Queries: s.Queries, Synthesis: s.Synthesis}
		back, err = questions.Parse("bare.yaml", bare.Marshal())
		if err != nil {
			t.Fatalf("%v in\n%s", err, bare.Marshal())
		}
		if !bare.Equal(back) {
			t.Fatalf("not equal after a round trip:\n%s", bare.Marshal())
		}
	})
}
