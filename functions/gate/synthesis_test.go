package gate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/replay"
)

// upDay is when the sessions of these tests were.
var upDay = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

func upBodies() [][]byte {
	return [][]byte{
		functest.Decision("s1", upDay, "We decided that retries stop after exactly 5 attempts, because the upstream bans us for more."),
		functest.Decision("s2", upDay.AddDate(0, 0, 1), "Never deploy on Fridays, because nobody is there to roll back."),
		functest.Decision("s3", upDay.AddDate(0, 0, 2), "From now on the cache TTL is 10 minutes, because stale prices cost us an incident."),
	}
}

func upWorld(t *testing.T, o functest.Options, ids ...string) (*functest.World, string) {
	t.Helper()
	if o.Graph == nil {
		o.Graph, o.Lexical = indextest.NewGraph(), indextest.NewLexical()
	}
	w := functest.New(t, o)
	if len(ids) == 0 {
		ids = []string{"decisions", "rules"}
	}
	return w, w.AskUp("shop", true, ids...)
}

// upAll uploads the bodies and runs to the end.
func upAll(w *functest.World) {
	for i, b := range upBodies() {
		w.Learned(fmt.Sprintf("shop/%d.jsonl", i), b)
	}
}

func synthesis(t *testing.T, w *functest.World, stream string) (replay.Synthesized, []string) {
	t.Helper()
	s, ok, err := replay.Synthesis(t.Context(), w.Log, "shop", stream)
	if err != nil || !ok || s.Memory == nil {
		t.Fatalf("no synthesis: %v %v", ok, err)
	}
	return s, strings.Split(strings.TrimSpace(s.Memory.Text), "\n")
}

// TestSynthesis: the memories of the questions come together one level up; every
// sentence leads to the memory, the evidence and the bytes it came from.
func TestSynthesis(t *testing.T) {
	t.Parallel()
	w, up := upWorld(t, functest.Options{})
	upAll(w)
	s, lines := synthesis(t, w, up)
	if len(lines) != 3 || s.Run.Level != memory.L2 || s.Run.Cause.Kind != memory.CauseSynthesis || s.Run.Admit != 0 || !s.Run.ExitGate || s.Memory.Level != memory.L2 {
		t.Fatalf("%+v\n%s", s.Run, s.Memory.Text)
	}
	for _, want := range []string{"5 attempts", "Fridays", "10 minutes"} {
		if !strings.Contains(s.Memory.Text, want) {
			t.Errorf("%q is not in\n%s", want, s.Memory.Text)
		}
	}
	// Each run reads the whole; the last one is what counts.
	runs := map[memory.SHA]int{}
	for _, g := range functest.Of[*memory.Gate](w.Records("shop", up)) {
		runs[g.Run]++
	}
	if runs[s.Run.Run] != 2 || len(runs) < 2 {
		t.Errorf("steps by run: %v", runs)
	}
	var a query.Answer
	w.Get("/memory/query?query=deploy+on+Fridays&project=shop&level=L2", &a)
	if len(a.Results) != 1 || a.Results[0].SHA256 != s.Memory.Node || len(a.Results[0].Citations) == 0 {
		t.Fatalf("%+v", a)
	}
	for _, c := range a.Results[0].Citations {
		if c.Object == "" || c.Quote == "" {
			t.Errorf("%+v", c)
		}
	}
	// A line at a time down to the bytes: one memory each, and the one sentence.
	var whole query.Synthesis
	w.Get("/memory/synthesis?project=shop", &whole)
	if whole.Run != s.Run.Run || whole.SHA256 != s.Memory.Node || whole.Read != 2 || len(whole.Lines) != 3 || whole.Notice != "" {
		t.Fatalf("%+v", whole)
	}
	for _, l := range whole.Lines {
		if len(l.Memories) != 1 || len(l.Citations) != 1 || l.Citations[0].Quote != l.Text {
			t.Errorf("%+v", l)
		}
	}
	h := w.Hashes()
	if _, ok := h.Streams["shop/"+up]; !ok {
		t.Errorf("%v", h.Streams)
	}
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, w.Hashes()); diff != "" {
		t.Errorf("(-before +rebuilt):\n%s", diff)
	}
}

// TestSynthesisOfNothingNew: whoever asks, no step is made while the memories are those
// that were read.
func TestSynthesisOfNothingNew(t *testing.T) {
	t.Parallel()
	w, up := upWorld(t, functest.Options{})
	upAll(w)
	calls, segments := w.Gate.PolicyCalls(), len(w.Records("shop", up))
	w.Sweep()
	w.Run(event.New(event.SynthesisRequested, "test", event.Synthesis{Tenant: functest.Tenant, Project: "shop"}))
	w.Learned("shop/talk.jsonl", functest.Session("s9", upDay, functest.User("hello"), functest.Assistant("hello")))
	if n, err := w.Gate.Behind(t.Context()); n != 0 || err != nil {
		t.Errorf("behind %d %v", n, err)
	}
	// The talk was looked at by two questions, and by nothing above them.
	if n := w.Gate.PolicyCalls() - calls; n != 2 || len(w.Records("shop", up)) != segments {
		t.Errorf("%d calls; %d records, then %d", n, segments, len(w.Records("shop", up)))
	}
	next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
	next.Sweep()
	if n := next.Gate.PolicyCalls(); n != 0 {
		t.Errorf("a process that starts makes %d calls", n)
	}
}

// TestAmendedFact: what was amended below changes the sentences that rest on it, and no
// other one.
func TestAmendedFact(t *testing.T) {
	t.Parallel()
	w, up := upWorld(t, functest.Options{})
	upAll(w)
	_, before := synthesis(t, w, up)
	w.Learned("shop/amend.jsonl", functest.Decision("s4", upDay.AddDate(0, 0, 9), "From now on the cache TTL is 20 minutes instead of 10 minutes, because the price feed is slow."))
	_, after := synthesis(t, w, up)
	var gone, come []string
	for _, l := range before {
		if !slices.Contains(after, l) {
			gone = append(gone, l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			come = append(come, l)
		}
	}
	if len(gone) != 1 || len(come) != 1 || !strings.Contains(gone[0], "10 minutes, because stale") || !strings.Contains(come[0], "20 minutes") {
		t.Errorf("gone %q, come %q", gone, come)
	}
	w.Hashes()
}

// TestSynthesisAnyOrder: however events come, the same memories give the same
// synthesis, rows and hashes, whatever runs went before.
func TestSynthesisAnyOrder(t *testing.T) {
	t.Parallel()
	admit := func(w *functest.World) (out []ce.Event) {
		for i, b := range upBodies() {
			es, err := w.Learn.Handle(t.Context(), w.Put(fmt.Sprintf("shop/%d.jsonl", i), b))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, es...)
		}
		return out
	}
	calm, up := upWorld(t, functest.Options{})
	calm.Run(admit(calm)...)
	want := calm.Hashes()
	_, text := synthesis(t, calm, up)
	check := func(name string, w *functest.World) {
		t.Helper()
		if diff := cmp.Diff(want, w.Hashes()); diff != "" {
			t.Errorf("%s (-calm +other):\n%s", name, diff)
		}
		if _, got := synthesis(t, w, up); !slices.Equal(got, text) {
			t.Errorf("%s: %q, want %q", name, got, text)
		}
	}
	one, _ := upWorld(t, functest.Options{})
	upAll(one) // a run after each
	check("one by one", one)
	for seed := range uint64(6) {
		o := functest.Options{}
		if seed == 0 {
			o.Graph, o.Lexical = functest.New(t, functest.Options{}).Graph, functest.New(t, functest.Options{}).Lexical // the embedded ones
		}
		if seed == 1 {
			now := functest.Epoch
			o.Slice, o.Lease, o.Now = time.Second, time.Hour, func() time.Time { now = now.Add(400 * time.Millisecond); return now }
		}
		w, _ := upWorld(t, o)
		w.Shuffled(seed, 3, admit(w)...)
		check(fmt.Sprint("seed ", seed), w)
	}
	swept, _ := upWorld(t, functest.Options{})
	admit(swept)
	swept.Sweep()
	check("by sweeps alone", swept)
}

// TestSynthesisKilled ends the process at each store call of a synthesis that is made in
// slices; the next one goes on to the same.
func TestSynthesisKilled(t *testing.T) {
	t.Parallel()
	clock := func() func() time.Time {
		now := functest.Epoch
		return func() time.Time { now = now.Add(400 * time.Millisecond); return now }
	}
	ids := []string{"decisions", "rules", "causes", "commands"}
	calm, up := upWorld(t, functest.Options{}, ids...)
	upAll(calm)
	want := calm.Hashes()
	wanted := event.New(event.SynthesisRequested, "test", event.Synthesis{Tenant: functest.Tenant, Project: "shop"})
	split := false
	for _, effect := range []bool{false, true} {
		for n := 0; ; n += functest.Stride(37) {
			w, _ := upWorld(t, functest.Options{}, ids...)
			w.Ask("shop", ids...)
			upAll(w)
			w.AskUp("shop", true, ids...)
			dying := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical, Slice: time.Second, Now: clock()})
			reached := w.Stores.DieAt(n, effect, errKilled)
			for todo := []ce.Event{wanted}; len(todo) > 0; {
				out, err := dying.Gate.Handle(t.Context(), todo[0])
				if err != nil && !fault.Is(err, fault.Unavailable) {
					t.Errorf("call %d: %v is no reason to come again", n, err)
				}
				todo = todo[1:]
				for _, e := range out {
					if event.Handlers(event.Type(e.Type()))[0] == "gate" {
						todo = append(todo, e)
						split = split || e.Type() == string(event.RunContinued)
					}
				}
			}
			w.Stores.Fail(nil, nil)
			if !reached() {
				if n < 15 {
					t.Fatalf("a synthesis makes %d store calls only", n)
				}
				break
			}
			next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
			next.Sweep()
			if diff := cmp.Diff(want, next.Hashes()); diff != "" {
				t.Fatalf("killed at call %d, effect %v (-calm +killed):\n%s", n, effect, diff)
			}
			synthesis(t, next, up)
		}
	}
	if !split {
		t.Error("no run was made in slices")
	}
}

// TestSynthesisOfOtherQuestions: a question that goes takes its sentences with it, one
// that comes back brings them again, and without any nothing is left.
func TestSynthesisOfOtherQuestions(t *testing.T) {
	t.Parallel()
	w, up := upWorld(t, functest.Options{})
	w.Learned("shop/0.jsonl", upBodies()[0])
	first, _ := synthesis(t, w, up)
	changed := event.New(event.QuestionsChanged, "test", event.Project{Tenant: functest.Tenant, Project: "shop"})
	w.AskUp("shop", true, "rules")
	w.Run(changed)
	second, _ := synthesis(t, w, up)
	if second.Run.Chunks != 1 || first.Run.Chunks != 2 || slices.Equal(first.Memory.Parents, second.Memory.Parents) {
		t.Errorf("%+v, then %+v", first, second)
	}
	w.AskUp("shop", true, "decisions", "rules")
	w.Run(changed)
	third, _ := synthesis(t, w, up)
	if third.Memory.Node != first.Memory.Node || third.Run.Run == first.Run.Run {
		t.Errorf("%+v, want the memory of %+v by a run of its own", third, first)
	}
	w.Hashes()
	w.AskUp("shop", true)
	w.Run(changed)
	s, ok, err := replay.Synthesis(t.Context(), w.Log, "shop", up)
	if err != nil || !ok || s.Memory != nil || s.Run.Chunks != 0 {
		t.Errorf("%+v %v %v", s, ok, err)
	}
	w.Hashes()
	var a query.Answer
	w.Get("/memory/query?query=retries&project=shop&level=L2", &a)
	if len(a.Results) != 0 {
		t.Errorf("%+v", a.Results)
	}
}

// gathering is a model that puts the first line of each memory it reads into the one
// above, and has enough after `enough` of them.
func gathering(enough int) *scripted {
	return &scripted{answer: func(_ int, r llm.ChatRequest) (llm.ChatReply, error) {
		text := section.FindStringSubmatch(r.User)[1]
		if !strings.Contains(r.User, functest.SynthesisWording) {
			f := fact.FindString(text)
			return says(r, gru.Verdict{Think: "t", Update: f != "", Memory: f}, gru.ShapeFull), nil
		}
		_, mem, _ := strings.Cut(r.User, "<memory>\n")
		mem, _, _ = strings.Cut(mem, "\n</memory>")
		lines := []string{}
		if mem != "none" {
			lines = strings.Split(mem, "\n")
		}
		lines = append(lines, strings.Split(text, "\n")[0]+fmt.Sprintf(" (%d)", len(lines)+1))
		return says(r, gru.Verdict{Think: "t", Update: true, Memory: strings.Join(lines, "\n"), Exit: len(lines) >= enough}, gru.ShapeFull), nil
	}}
}

// TestSynthesisByModel: the exit gate is acted on as the question file says; the same
// memories again cost no call; the ledger is the server's.
func TestSynthesisByModel(t *testing.T) {
	t.Parallel()
	for _, acts := range []bool{false, true} {
		m := gathering(2)
		w := modelWorldOf(t, functest.Options{Models: modelOf(m, nil)})
		up := w.AskUp("shop", acts, "limits", "queues", "sizes")
		w.Learned("shop/a.jsonl", functest.Brief("s1", modelDay, 3))
		s, lines := synthesis(t, w, up)
		want := map[bool]int{false: 3, true: 2}[acts]
		if len(lines) != want || s.End.Exited != acts || s.End.ChunksSeen != want || len(s.Memory.Parents) != want {
			t.Errorf("exit gate %v: %+v\n%s", acts, s.End, s.Memory.Text)
		}
		var prompt int
		for _, stream := range w.Streams("shop") {
			for _, g := range functest.Of[*memory.Gate](w.Records("shop", stream)) {
				prompt += g.PromptTokens
				if g.Level == memory.L2 && (g.Model != "small" || g.ExitActed != (acts && g.Exit)) {
					t.Errorf("%+v", g)
				}
			}
		}
		if prompt != m.prompt {
			t.Errorf("the log counts %d prompt tokens, the server %d", prompt, m.prompt)
		}
		asked := len(m.asked)
		w.Sweep()
		w.Run(event.New(event.SynthesisRequested, "test", event.Synthesis{Tenant: functest.Tenant, Project: "shop"}))
		if len(m.asked) != asked {
			t.Errorf("%d calls for nothing new", len(m.asked)-asked)
		}
		// Asked for anew, a run of its own asks again and comes to the same.
		if a, err := w.Gate.AskSynthesis(t.Context(), "shop", false); err != nil || a.Due || a.Behind || a.Run != s.Run.Run {
			t.Errorf("%+v %v", a, err)
		}
		if a, err := w.Gate.AskSynthesis(t.Context(), "shop", true); err != nil || !a.Due || a.Stream != up {
			t.Errorf("%+v %v", a, err)
		}
		sent := w.Published()
		w.Run(append(sent, sent...)...)
		again, _ := synthesis(t, w, up)
		if again.Run.Run == s.Run.Run || again.Memory.Node != s.Memory.Node || len(m.asked) != asked+want {
			t.Errorf("%+v after %+v, %d calls", again.Run, s.Run, len(m.asked)-asked)
		}
		w.Hashes()
	}
}

// TestSynthesisWaits: a model that fails leaves the synthesis due, the memories served,
// and nothing invented.
func TestSynthesisWaits(t *testing.T) {
	t.Parallel()
	m := gathering(9)
	good, down := m.answer, true
	m.answer = func(n int, r llm.ChatRequest) (llm.ChatReply, error) {
		if down && strings.Contains(r.User, functest.SynthesisWording) {
			return llm.ChatReply{}, fault.As(fault.Unavailable, errors.New("the server is down"))
		}
		return good(n, r)
	}
	w := modelWorldOf(t, functest.Options{Models: modelOf(m, nil)})
	up := w.AskUp("shop", false, "limits")
	es, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", functest.Brief("s1", modelDay, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for len(es) > 0 {
		out, err := w.Gate.Handle(t.Context(), es[0])
		if err != nil && !fault.Is(err, fault.Unavailable) {
			t.Error(err)
		}
		es = es[1:]
		for _, e := range out {
			if slices.Contains(event.Handlers(event.Type(e.Type())), "gate") {
				es = append(es, e)
			}
		}
	}
	if n, err := w.Gate.Behind(t.Context()); n != 1 || err != nil {
		t.Errorf("behind %d %v", n, err)
	}
	if _, ok, err := replay.Synthesis(t.Context(), w.Log, "shop", up); ok || err != nil {
		t.Errorf("a synthesis without an answer: %v", err)
	}
	down = false
	w.Sweep()
	if n, err := w.Gate.Behind(t.Context()); n != 0 || err != nil {
		t.Errorf("behind %d %v", n, err)
	}
	synthesis(t, w, up)
	w.Hashes()
}
