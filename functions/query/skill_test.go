package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/skill"
)

var skillDay = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

const (
	retryFact  = "We decided that retries stop after exactly 5 attempts, because the upstream bans us for more."
	fridayFact = "From now on deploys never start on a Friday, because the on-call team is too small at weekends."
	ttlFact    = "From now on the cache TTL must be exactly 40 minutes, because the price feed is slow."
)

// skillWorld is a project that knows two facts.
func skillWorld(t *testing.T) *functest.World {
	t.Helper()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.Ask("shop", "decisions")
	w.Learned("shop/a.jsonl", functest.Session("s1", skillDay, functest.User(retryFact), functest.Assistant("Understood, noted."), functest.User(fridayFact), functest.Assistant("Noted.")))
	return w
}

func draftOf(t *testing.T, w *functest.World, args string) query.SkillDraft {
	t.Helper()
	var d query.SkillDraft
	w.Get("/memory/skills/_draft?from=shop/decisions"+args, &d)
	return d
}

func promote(w *functest.World, text string) (s query.Skill) {
	w.T.Helper()
	d, err := skill.Parse("SKILL.md", []byte(text))
	if err != nil {
		w.T.Fatal(err)
	}
	w.Post("/memory/skills", map[string]string{"action": "promote", "name": d.Name, "text": text, "by": "Ada"}, http.StatusOK, &s)
	return s
}

func withdraw(w *functest.World, name string) (s query.Skill) {
	w.T.Helper()
	w.Post("/memory/skills", map[string]string{"action": "withdraw", "name": name, "by": "Bob"}, http.StatusOK, &s)
	return s
}

func shown(w *functest.World, name string) (s query.Skill) {
	w.T.Helper()
	w.Get("/memory/skills/"+name, &s)
	return s
}

func TestSkillDraft(t *testing.T) {
	t.Parallel()
	w := skillWorld(t)
	d := draftOf(t, w, "")
	var m *memory.Memory
	for _, r := range functest.Of[*memory.Memory](w.Records("shop", memory.StreamName("decisions", functest.Wording("decisions")))) {
		m = r
	}
	if d.Name != "shop-decisions" || d.GeneratedFrom != m.Node || d.Level != memory.L1 || d.SHA256 != memory.SumString(d.Text) || len(d.Facts) != 2 || len(d.LeftOut) != 0 {
		t.Errorf("draft %+v", d)
	}
	for _, f := range []string{retryFact, fridayFact} {
		node := memory.NodeID(functest.Tenant, "shop", memory.L0, memory.StreamName("decisions", functest.Wording("decisions")), memory.SumString(f))
		if !strings.Contains(d.Text, "- "+f+" ["+node.Short()+"]\n") {
			t.Errorf("%q with its node does not stand in\n%s", f, d.Text)
		}
	}
	if again := draftOf(t, w, ""); again.Text != d.Text {
		t.Error("the same memory gives another draft")
	}
	if p := draftOf(t, w, "&portable=true&name=other"); p.Name != "other" || strings.Contains(p.Text, "\nwhen_to_use:") || !strings.Contains(p.Text, "\n  when_to_use:") {
		t.Errorf("portable: %s", p.Text)
	}
	// A draft is known to nobody.
	var list query.Skills
	for _, q := range []string{"", "?loadable=true", "?project=shop"} {
		if w.Get("/memory/skills"+q, &list); len(list.Skills) != 0 {
			t.Errorf("%s lists %+v", q, list)
		}
	}
	for path, want := range map[string]int{
		"/memory/skills/shop-decisions": 404, "/memory/skills/_drafts": 404, "/memory/skills/_draft": 400, "/memory/skills/_draft?from=shop/gone": 404,
		"/memory/skills/_draft?from=none/decisions": 404, "/memory/skills/_draft?from=shop": 404, "/memory/skills/_draft?from=shop/decisions&name=A": 400,
		"/memory/skills/_draft?from=shop/decisions&portable=perhaps": 400, "/memory/skills?loadable=perhaps": 400, "/memory/skills?project=none": 404,
	} {
		if rec := w.Call(http.MethodGet, path, nil); rec.Code != want || !strings.Contains(rec.Body.String(), `"hint"`) {
			t.Errorf("GET %s: %d, want %d: %s", path, rec.Code, want, rec.Body)
		}
	}
}

// TestSkillLife promotes, changes, outdates and withdraws a skill; the log alone says
// all of it.
func TestSkillLife(t *testing.T) {
	t.Parallel()
	w := skillWorld(t)
	d := draftOf(t, w, "")
	s := promote(w, d.Text)
	if s.State != "promoted" || !s.Loadable || s.SHA256 != d.SHA256 || s.GeneratedFrom != d.GeneratedFrom || s.Serving != d.GeneratedFrom || s.Drift != "" ||
		s.PromotedBy != "Ada" || s.At.IsZero() || s.Project != "shop" || s.From != "decisions" || s.Prev != "" || s.Unchanged {
		t.Fatalf("promoted: %+v", s)
	}
	first := s.Record
	if s = promote(w, d.Text); !s.Unchanged || s.Record != first {
		t.Errorf("promoted again: %+v", s)
	}
	// By a process that starts again over the same stores, without the disk of whoever promoted it.
	w = functest.New(t, functest.Options{From: w, Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	listed := func(args string) (list query.Skills) {
		w.Get("/memory/skills"+args, &list)
		return list
	}
	list := listed("?loadable=true")
	if len(list.Skills) != 1 || list.Skills[0].Name != "shop-decisions" || list.Skills[0].Text != "" || list.Skills[0].Description == "" {
		t.Errorf("list %+v", list)
	}
	if s = shown(w, "shop-decisions"); s.Text != d.Text || len(s.History) != 1 {
		t.Errorf("shown %+v", s)
	}
	get := func(accept, etag string) *httptest.ResponseRecorder {
		mux := http.NewServeMux()
		w.Query.Routes(mux)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/memory/skills/shop-decisions", nil)
		r.Header.Set("Accept", accept)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		rec := httptest.NewRecorder()
		serve.Conditional(mux).ServeHTTP(rec, r)
		return rec
	}
	etag := `"` + string(d.SHA256) + `"`
	for accept, want := range map[string]string{
		"text/markdown": d.Text, "text/plain;q=0.9, */*": d.Text, "application/json": "", "": "", "*/*": "", "application/json, text/markdown": "",
	} {
		rec := get(accept, "")
		if got := rec.Body.String(); rec.Code != 200 || want != "" && (got != want || rec.Header().Get("ETag") != etag) || want == "" && !strings.HasPrefix(got, "{") {
			t.Errorf("Accept %q: %d, ETag %s\n%s", accept, rec.Code, rec.Header().Get("ETag"), got)
		}
		if again := get(accept, rec.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("Accept %q, If-None-Match: %d", accept, again.Code)
		}
	}
	if rec := get("text/markdown", `"`+string(memory.SumString("x"))+`"`); rec.Code != 200 {
		t.Errorf("another ETag: %d", rec.Code)
	}
	// The memory goes on.
	w.Learned("shop/b.jsonl", functest.Session("s2", skillDay.AddDate(0, 0, 1), functest.User(ttlFact), functest.Assistant("Noted.")))
	list = listed("")
	if s := list.Skills[0]; s.Drift != "the memory has changed" || s.Serving == s.GeneratedFrom || !s.Loadable {
		t.Errorf("drift: %+v", s)
	}
	next := draftOf(t, w, "")
	if !strings.Contains(next.Text, ttlFact) || next.GeneratedFrom != list.Skills[0].Serving {
		t.Errorf("the next draft:\n%s", next.Text)
	}
	// A person's own line in it, promoted again.
	edited := strings.Replace(next.Text, "<!-- /mneme:derived -->", "<!-- /mneme:derived -->\n\nAsk Ada before you change any of it.", 1)
	if s = promote(w, edited); s.Prev != first || s.SHA256 != memory.SumString(edited) || s.Drift != "" {
		t.Errorf("promoted anew: %+v", s)
	}
	if s = withdraw(w, "shop-decisions"); s.State != "withdrawn" || s.Loadable || s.PromotedBy != "Bob" {
		t.Errorf("withdrawn: %+v", s)
	}
	if s = withdraw(w, "shop-decisions"); !s.Unchanged {
		t.Errorf("withdrawn twice: %+v", s)
	}
	if list = listed("?loadable=true"); len(list.Skills) != 0 {
		t.Errorf("loadable: %+v", list)
	}
	if list = listed(""); len(list.Skills) != 1 || list.Skills[0].State != "withdrawn" {
		t.Errorf("all: %+v", list)
	}
	if rec := get("text/markdown", ""); rec.Code != http.StatusNotFound {
		t.Errorf("a withdrawn skill is given out: %d", rec.Code)
	}
	if s = shown(w, "shop-decisions"); s.Text != "" || len(s.History) != 3 || s.History[1].SHA256 != memory.SumString(edited) || s.History[2].By != "Bob" {
		t.Errorf("history %+v", s)
	}
	if s = promote(w, edited); s.State != "promoted" || !s.Loadable || s.Unchanged {
		t.Errorf("promoted after all: %+v", s)
	}
	w.Ask("shop", "rules")
	if list = listed(""); list.Skills[0].Drift != "the question is asked no more" {
		t.Errorf("%+v", list.Skills[0])
	}
	if _, err := w.Bucket.Put(t.Context(), "config/local/shop/questions.yaml", []byte("nothing: here")); err != nil {
		t.Fatal(err)
	}
	if list = listed(""); list.Skills[0].Drift == "" || !list.Skills[0].Loadable {
		t.Errorf("a broken question file: %+v", list.Skills[0])
	}
	for _, p := range verified(t, w).Problems {
		t.Error("verify:", p)
	}
}

func TestSkillRefused(t *testing.T) {
	t.Parallel()
	w := skillWorld(t)
	w.Ask("bank", "decisions")
	w.Learned("bank/a.jsonl", functest.Session("s9", skillDay, functest.User(ttlFact), functest.Assistant("Noted.")))
	d := draftOf(t, w, "")
	own := "---\nname: mine\ndescription: Says how releases are made. Use before a release.\n---\n\nTag, then push.\n"
	with := func(kv ...string) map[string]string {
		m := map[string]string{"action": "promote", "name": "shop-decisions", "text": d.Text, "by": "Ada"}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	var s query.Skill
	w.Post("/memory/skills", with("name", "mine", "text", own, "project", "shop"), 200, &s)
	if s.GeneratedFrom != "" || s.Drift != "" || !s.Loadable {
		t.Errorf("a person's own: %+v", s)
	}
	for name, tc := range map[string]struct {
		body   any
		status int
		says   string
	}{
		"no action":                      {with("action", ""), 400, "neither"},
		"nobody":                         {with("by", ""), 400, "who does it"},
		"somebody on two lines":          {with("by", "a\nb"), 400, "who does it"},
		"a path":                         {with("name", "../x"), 400, "no name of a skill"},
		"another name":                   {with("name", "other"), 400, "the folder is"},
		"no text":                        {with("text", ""), 400, "no front matter"},
		"another project":                {with("project", "bank"), 400, "made of project shop"},
		"no project":                     {with("name", "mine", "text", own), 400, "nothing is known of project"},
		"a project that is not":          {with("name", "mine", "text", own, "project", "none"), 400, "nothing is known of project"},
		"of a memory that never was":     {with("text", strings.Replace(d.Text, string(d.GeneratedFrom), string(memory.SumString("x")), 1)), 400, "no memory of shop/decisions is"},
		"of a memory of another project": {with("text", strings.Replace(d.Text, "shop/decisions", "bank/decisions", 1)), 400, "no memory of bank/decisions is"},
		"a secret":                       {with("text", strings.Replace(d.Text, "## Said", "password = \"hunter2hunter2\"\n\n## Said", 1)), 400, "holds a secret"},
		"a name that another has":        {with("name", "mine", "text", own, "project", "bank"), 409, "project shop has a skill of this name"},
		"an unknown field":               {map[string]string{"act": "promote"}, 400, "unknown field"},
		"a body over the limit":          {map[string]string{"text": strings.Repeat("a", 200<<10)}, 400, "too large"},
		"to withdraw what is not there":  {with("action", "withdraw"), 404, "no skill of this name"},
		"not JSON":                       {"{", 400, "EOF"},
	} {
		rec := w.Call(http.MethodPost, "/memory/skills", tc.body)
		if rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.says) {
			t.Errorf("%s: %d, want %d and %q: %s", name, rec.Code, tc.status, tc.says, rec.Body)
		}
	}
	w.Stores.Calls()
	n := 0
	for key, err := range w.Log.RecordKeys(t.Context(), "shop", eventlog.Skills) {
		if err != nil || key == "" {
			t.Fatal(key, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d records after refusals", n)
	}
}

// Who promotes at once: both stand in the log, one order for all, and what follows
// chains to the last.
func TestSkillRace(t *testing.T) {
	t.Parallel()
	w := skillWorld(t)
	d := draftOf(t, w, "")
	at := skillDay
	put := func(text, by string, prev memory.SHA) memory.SHA {
		at = at.Add(time.Minute)
		r, err := eventlog.SkillRecord(&memory.Skill{Tenant: functest.Tenant, Project: "shop", Name: "shop-decisions", Action: memory.SkillPromoted, From: "decisions",
			GeneratedFrom: d.GeneratedFrom, SHA256: memory.SumString(text), Text: text, PromotedBy: by, At: at, Prev: prev})
		if err != nil {
			t.Fatal(err)
		}
		key, err := w.Log.PutRecords(t.Context(), "shop", eventlog.Skills, []eventlog.Record{r})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	texts := []string{d.Text}
	for i := range 4 {
		texts = append(texts, d.Text+fmt.Sprintf("\n%d\n", i))
	}
	a := put(texts[0], "a", "")
	b := put(texts[1], "b", a)
	put(texts[2], "c", a) // at the same time as b, a minute later by the clock
	put(texts[3], "d", b)
	at = skillDay.AddDate(0, 0, -1)
	put(texts[4], "e", "") // by a clock that is wrong
	s := shown(w, "shop-decisions")
	var by []string
	for _, e := range s.History {
		by = append(by, e.By)
	}
	if diff := cmp.Diff([]string{"e", "a", "b", "c", "d"}, by); diff != "" || s.Text != texts[3] {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func verified(t *testing.T, w *functest.World) (v struct {
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
}) {
	t.Helper()
	w.Get("/memory/verify", &v)
	return v
}

// readsTools keeps every line with one of our facts, whoever says it.
type readsTools struct{}

func (readsTools) Name() string          { return "reads-tools/1" }
func (readsTools) PromptVersion() string { return "-" }
func (readsTools) Decide(in gru.PolicyInput) gru.Decision {
	d := gru.Decision{FormatOK: true, ReasonCode: gru.ReasonClosed, Candidate: in.State.MemoryText}
	for _, k := range in.State.Kept {
		d.Parents = append(d.Parents, k.Node)
	}
	for ti, turn := range in.Chunk.Turns {
		for _, fact := range []string{retryFact, fridayFact} {
			at := strings.Index(in.Chunk.Text[turn.Start:turn.End], fact)
			if at < 0 {
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

// What a tool said comes into a memory by a policy that reads tools; a skill leaves it
// out unless it is asked for.
func TestSkillLeavesToolsOut(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(), Policy: readsTools{}})
	w.Ask("shop", "decisions")
	record := func(role, id string, content ...any) string {
		msg := map[string]any{"role": role, "content": content}
		if role == "assistant" {
			msg["id"], msg["type"], msg["model"] = "msg_"+id, "message", "m"
		}
		b, err := json.Marshal(map[string]any{
			"type": role, "uuid": id, "parentUuid": nil, "sessionId": "s1", "timestamp": skillDay.Format(time.RFC3339),
			"cwd": "/home/ada/shop", "version": "2.1.42", "isSidechain": false, "userType": "external", "message": msg,
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	w.Learned("shop/a.jsonl", []byte(
		record("user", "u1", map[string]any{"type": "text", "text": retryFact})+
			record("assistant", "a1", map[string]any{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": map[string]any{"command": "cat rules.txt"}})+
			record("user", "u2", map[string]any{"type": "tool_result", "tool_use_id": "toolu_1", "content": fridayFact})))
	d := draftOf(t, w, "")
	if d.LeftOut["tool"] != 1 || strings.Contains(d.Text, "Friday") || !strings.Contains(d.Text, "retries") {
		t.Errorf("left out %v:\n%s", d.LeftOut, d.Text)
	}
	d = draftOf(t, w, "&include_tool_output=true")
	front, _, _ := strings.Cut(d.Text, "<!-- mneme:derived")
	if len(d.LeftOut) != 0 || !strings.Contains(d.Text, "## Said by tools and pages, unverified\n\n- "+fridayFact) || strings.Contains(front, "Friday") {
		t.Errorf("left out %v:\n%s", d.LeftOut, d.Text)
	}
}

// notes is a model that adds the sentences with "limit" of what it reads to its memory,
// in words of its own.
type notes struct{}

var (
	noteSection = regexp.MustCompile(`(?s)<section>\n(.*)\n</section>`)
	noteLimit   = regexp.MustCompile(`limit (?:of )?\w+ (?:at|is) \d+ MB`)
)

func (notes) Capabilities() llm.Capabilities { return llm.Capabilities{} }

func (notes) Chat(_ context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	var v gru.Verdict
	for _, l := range noteLimit.FindAllString(noteSection.FindStringSubmatch(r.User)[1], -1) {
		v.Update = true
		v.Edits = append(v.Edits, gru.Edit{Text: strings.NewReplacer("limit of", "limit", " at ", " is ").Replace(l) + "."})
	}
	shape := gru.ShapeGate
	if !strings.Contains(r.System, "<check>") {
		shape = gru.ShapeEdit
	}
	text := v.Render(shape)
	return llm.ChatReply{Content: text, FinishReason: "stop", PromptTokens: functest.Coarse(r.System) + functest.Coarse(r.User), CompletionTokens: functest.Coarse(text)}, nil
}

// A line that a model wrote names the chunk that it read, and in a synthesis the memory:
// the skill names the evidence below.
func TestSkillOfModel(t *testing.T) {
	t.Parallel()
	m := &gate.Models{
		Model: gru.Model{Policy: "model/edit", Name: "small", Rewrite: "large", WindowTokens: 60_000, ReplyTokens: 2048, TokenFactor: 1, Sampling: memory.Sampling{TopP: 1, Seed: 7}},
		Gate:  notes{}, Rewrite: notes{}, Cost: func(string, int, int) float64 { return 0 },
	}
	w := functest.New(t, functest.Options{
		Count: functest.Coarse, Graph: indextest.NewGraph(), Lexical: indextest.NewLexical(),
		Models: func(context.Context, string) (*gate.Models, error) { return m, nil },
	})
	up := w.AskUp("shop", false, "limits", "sizes")
	said := map[string]string{}
	for i, name := range []string{"alpha", "beta"} {
		said[name] = fmt.Sprintf("We keep the limit of %s at %d MB.", name, 11+i)
		id := fmt.Sprintf("s%d", i)
		w.Learned("shop/"+id+".jsonl", functest.Session(id, skillDay.AddDate(0, 0, i), functest.User("Hello."), functest.User(said[name])))
	}
	node := func(question, name string) memory.SHA {
		return memory.NodeID(functest.Tenant, "shop", memory.L0, memory.StreamName(question, functest.Wording(question)), memory.SumString(said[name]))
	}
	for from, questions := range map[string][]string{"shop/limits": {"limits"}, "shop": {"limits", "sizes"}} {
		var d query.SkillDraft
		w.Get("/memory/skills/_draft?from="+from, &d)
		if len(d.Facts) != 2 {
			t.Fatalf("%s: %+v\n%v", from, d, functest.Of[*memory.Memory](w.Records("shop", up)))
		}
		for i, f := range d.Facts {
			name := []string{"alpha", "beta"}[i]
			if f.Text != fmt.Sprintf("limit %s is %d MB.", name, 11+i) || f.Trust != memory.TrustUser ||
				!slices.ContainsFunc(questions, func(q string) bool { return node(q, name) == f.Node }) ||
				!strings.Contains(d.Text, "- "+f.Text+" ["+f.Node.Short()+"] [") {
				t.Errorf("%s: %+v in\n%s", from, f, d.Text)
			}
			if i == 0 && from == "shop/limits" && (len(f.Nodes) != 2 || slices.Contains(f.Nodes, node("limits", "beta"))) {
				t.Errorf("%s: of its chunk are %v", from, f.Nodes)
			}
		}
	}
}

// A skill of the synthesis holds its lines under the questions whose memories say them,
// and drifts when the synthesis does.
func TestSkillOfSynthesis(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.AskUp("shop", false, "decisions", "caching")
	w.Learned("shop/a.jsonl", functest.Session("s1", skillDay, functest.User(retryFact), functest.Assistant("Understood, noted."), functest.User(fridayFact), functest.Assistant("Noted.")))
	var d query.SkillDraft
	w.Get("/memory/skills/_draft?from=shop", &d)
	if d.Name != "shop-synthesis" || d.Level != memory.L2 || d.Question != memory.SynthesisID || len(d.LeftOut) != 0 || len(d.Facts) != 2 {
		t.Fatalf("draft %+v", d)
	}
	for _, f := range d.Facts {
		if f.Group != "decisions" && f.Group != "caching" || !f.Node.Valid() || f.Trust != memory.TrustUser || !strings.Contains(d.Text, "- "+f.Text+" ["+f.Node.Short()+"]\n") {
			t.Errorf("%+v in\n%s", f, d.Text)
		}
	}
	if s := promote(w, d.Text); s.Drift != "" || s.From != memory.SynthesisID || s.Serving != d.GeneratedFrom {
		t.Errorf("promoted: %+v", s)
	}
	w.Learned("shop/b.jsonl", functest.Session("s2", skillDay.AddDate(0, 0, 1), functest.User(ttlFact), functest.Assistant("Noted.")))
	if s := shown(w, "shop-synthesis"); s.Drift != "the memory has changed" {
		t.Errorf("after a change: %+v", s)
	}
	w.Ask("shop", "decisions", "caching")
	if s := shown(w, "shop-synthesis"); s.Drift != "the question is asked no more" {
		t.Errorf("without a synthesis: %+v", s)
	}
}

// A record that is damaged is named, and hides no skill.
func TestSkillDamaged(t *testing.T) {
	t.Parallel()
	w := skillWorld(t)
	s := promote(w, draftOf(t, w, "").Text)
	bad := memory.SumString("bad")
	if _, err := w.Bucket.Put(t.Context(), "log/local/shop/skills/"+string(bad)+".jsonl", []byte("{\"v\":1}\n")); err != nil {
		t.Fatal(err)
	}
	var list query.Skills
	if w.Get("/memory/skills", &list); len(list.Skills) != 1 || !list.Skills[0].Loadable || len(list.Problems) != 1 || !strings.Contains(list.Problems[0], bad.Short()) {
		t.Errorf("%+v", list)
	}
	if got := shown(w, s.Name); got.Text == "" {
		t.Errorf("%+v", got)
	}
	if v := verified(t, w); v.OK || len(v.Problems) != 1 {
		t.Errorf("verify: %+v", v)
	}
}
