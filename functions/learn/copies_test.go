package learn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// claudeLines is a session as Claude Code writes it: one block a line, several lines
// an API message, every record with a UUID of its own.
func claudeLines(r *rand.Rand, session string, n int) []string {
	out := make([]string, 0, n)
	message := ""
	for i := range n {
		kind, content := "user", any(fmt.Sprintf("Rule %d of %s: we always keep the limit of queue %d at five.", i, session, i))
		switch i % 4 {
		case 1, 2: // parts of one message
			kind = "assistant"
			content = []any{map[string]any{"type": "text", "text": fmt.Sprintf("Part %d of %s.", i, session)}}
			if i%4 == 1 {
				message = fmt.Sprintf("msg_%s_%d", session, i)
			}
		case 3:
			content = []any{map[string]any{"type": "tool_result", "tool_use_id": "t", "content": fmt.Sprintf("output %d of %s", i, session)}}
		}
		rec := map[string]any{
			"type": kind, "uuid": fmt.Sprintf("%08x-0000-4000-8000-%012x", r.Uint32(), r.Uint64()>>16), "sessionId": session,
			"timestamp": start.UTC().Format("2006-01-02T15:04:05.000Z"), "cwd": "/home/ada/shop",
			"message": map[string]any{"role": kind, "content": content},
		}
		if kind == "assistant" {
			rec["message"].(map[string]any)["id"] = message
		}
		b, err := json.Marshal(rec)
		if err != nil {
			panic(err) // strings and maps only
		}
		out = append(out, string(b)+"\n")
	}
	return out
}

// stored lists the turn ids that all admitted sources of a project name.
func stored(t *testing.T, w *functest.World, project string) []string {
	t.Helper()
	var ids []string
	for _, a := range w.Admits(project) {
		src, _, err := w.Log.Source(t.Context(), project, a.Source)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, src.TurnIDs...)
	}
	return ids
}

// A session that comes as snapshots, as slices, and as the history of sessions
// that resume it under other ids, in any order and through processes that start
// anew, stores each record once.
func TestOverlappingSnapshots(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 9))
			lines := claudeLines(r, "s1", 40)
			objects := [][]string{lines}
			for range 4 {
				objects = append(objects, lines[:1+r.IntN(len(lines))]) // snapshots
				from := r.IntN(len(lines) - 1)
				objects = append(objects, lines[from:from+1+r.IntN(len(lines)-from)]) // slices
			}
			distinct := len(lines)
			for k := range 2 { // resumed: the history carries the new session's id
				name := fmt.Sprintf("resumed-%d", k)
				own := claudeLines(r, name, 6)
				distinct += len(own)
				var history []string
				for _, l := range lines[:10+r.IntN(30)] {
					history = append(history, strings.Replace(l, `"sessionId":"s1"`, `"sessionId":"`+name+`"`, 1))
				}
				objects = append(objects, append(history, own...))
			}
			r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
			w := functest.New(t, functest.Options{Count: functest.Coarse})
			for i, o := range objects {
				if r.IntN(3) == 0 {
					w = functest.New(t, functest.Options{Count: functest.Coarse, From: w})
				}
				receive(t, w, w.Put(fmt.Sprintf("shop/%d.jsonl", i), []byte(strings.Join(o, ""))))
			}
			ids := stored(t, w, "shop")
			seen := map[string]bool{}
			for _, id := range ids {
				uuid := id[strings.LastIndexByte(id, '/')+1:]
				if seen[uuid] {
					t.Errorf("record %s is stored twice", uuid)
				}
				seen[uuid] = true
			}
			if len(ids) != distinct {
				t.Errorf("%d turns stored of %d distinct records", len(ids), distinct)
			}
		})
	}
}

// The ids of records outlive the process in the folded state's cache: a start
// reads the sources after it only.
func TestCopiesAfterRestart(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	w := functest.New(t, functest.Options{Count: functest.Coarse})
	const objects = 70
	var all [][]string
	for i := range objects {
		all = append(all, claudeLines(r, fmt.Sprintf("s%d", i), 4))
		receive(t, w, w.Put(fmt.Sprintf("shop/%d.jsonl", i), []byte(strings.Join(all[i], ""))))
	}
	w = functest.New(t, functest.Options{Count: functest.Coarse, From: w})
	w.Stores.Calls()
	copied := strings.ReplaceAll(strings.Join(all[3], ""), `"sessionId":"s3"`, `"sessionId":"other"`)
	if res := receive(t, w, w.Put("shop/copy.jsonl", []byte(copied))); res.Receipt.Outcome != learn.OutcomeDuplicate {
		t.Errorf("a copy under another session id: %s", res.Receipt.Outcome)
	}
	sources := 0
	for _, c := range w.Stores.Calls() {
		if strings.Contains(c.Key, "/sources/") {
			sources++
		}
	}
	if sources > objects/2 {
		t.Errorf("a start reads %d sources of %d", sources, objects)
	}
}

// The samples hold two snapshots of one session.
func TestGrownSample(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(root, "samples", "claude-code", name))
		if err != nil {
			t.Skipf("no sample transcripts: MNEME_SHARED names their parent folder, default ../shared: %v", err)
		}
		return b
	}
	a, b := read("cc14a_snapshot_v2.1.33.jsonl"), read("cc14b_snapshot_grown_v2.1.33.jsonl")
	whole := functest.New(t, functest.Options{})
	receive(t, whole, whole.Put("shop/b.jsonl", b))
	want := stored(t, whole, "shop")

	w := functest.New(t, functest.Options{})
	receive(t, w, w.Put("shop/a.jsonl", a))
	first := stored(t, w, "shop")
	receive(t, w, w.Put("shop/b.jsonl", b))
	got := stored(t, w, "shop")
	if len(first) == 0 || len(got) <= len(first) {
		t.Fatalf("%d turns, then %d", len(first), len(got))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("a then b stores %d turns, b alone %d", len(got), len(want))
	}
	lines := w.Admits("shop")
	if len(lines) != 2 || lines[1].From < int64(len(bytes.TrimRight(a, "\n"))) {
		t.Errorf("the second line begins at %d, the first snapshot has %d bytes", lines[1].From, len(a))
	}
	// In the other order the older one adds nothing.
	if r := receive(t, whole, whole.Put("shop/a.jsonl", a)); r.Receipt.Outcome != learn.OutcomeDuplicate {
		t.Errorf("the older snapshot later: %s", r.Receipt.Outcome)
	}
}

// Of what Claude Code writes beside its transcripts those of the sub-agents
// are read, and the outputs of tools, each once; the rest holds nothing.
func TestSessionFolder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 9))
	w := functest.New(t, functest.Options{})
	agent := strings.ReplaceAll(strings.Join(claudeLines(r, "s1", 8), ""), `"sessionId"`, `"isSidechain":true,"agentId":"a1","sessionId"`)
	for key, tc := range map[string]struct {
		body, want string
	}{
		"shop/-w/s1.jsonl":                                  {strings.Join(claudeLines(r, "s1", 8), ""), learn.OutcomeAdmitted},
		"shop/-w/s1/subagents/agent-a1.jsonl":               {agent, learn.OutcomeAdmitted},
		"shop/-w/s1/subagents/agent-a1.meta.json":           {`{"agentType":"Explore","toolUseId":"t"}`, learn.OutcomeEmpty},
		"shop/-w/s1/subagents/workflows/wf_1/journal.jsonl": {`{"type":"started","key":"k","agentId":"a1"}`, learn.OutcomeEmpty},
		"shop/-w/s1/tool-results/toolu_1.txt":               {"We decided to cap retries at 5 attempts, because the upstream bans us.", learn.OutcomeAdmitted},
		"shop/tool-results/toolu_1.txt":                     {"We decided to cap retries at 6 attempts, because the upstream bans us.", learn.OutcomeEmpty},
		"shop/-w/sessions-index.json":                       {`{"version":1,"entries":[]}`, learn.OutcomeEmpty},
	} {
		if got := receive(t, w, w.Put(key, []byte(tc.body))).Receipt; got.Outcome != tc.want {
			t.Errorf("%s: %q (%s), want %q", key, got.Outcome, got.Reason, tc.want)
		}
	}
	if n := len(stored(t, w, "shop")); n != 17 {
		t.Errorf("%d turns stored, want 17", n)
	}
	for d, err := range w.Log.DeadLetters(t.Context()) {
		t.Errorf("a dead letter: %+v, %v", d, err)
	}
}

// A tool's output is stored as the tool's word, whole at both ends, once
// whatever copy brings it; its project is that of the call.
func TestSpilledOutput(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	var out strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&out, "ok %d\n", i)
	}
	stub := func(cwd, id string) string {
		return `{"type":"user","uuid":"` + id + `","sessionId":"s1","cwd":"` + cwd + `","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id +
			`","content":"<persisted-output>\nOutput too large (29KB). Full output saved to: /x/s1/tool-results/` + id + `.txt\n\nPreview (first 2KB):\nok 0\n...\n</persisted-output>"}]}}` + "\n"
	}
	session := `{"type":"user","uuid":"u","sessionId":"s1","cwd":"/w/shop","message":{"role":"user","content":"Run the tests."}}` + "\n" +
		stub("/w/shop", "b1") + stub("/w/bank", "b2")
	project := func(key, body string) string {
		t.Helper()
		r := receive(t, w, w.Put(key, []byte(body))).Receipt
		if r.Outcome != learn.OutcomeAdmitted || len(r.Parts) != 1 {
			t.Fatalf("%s: %+v", key, r)
		}
		return r.Parts[0].Project
	}
	receive(t, w, w.Put("_auto/s1.jsonl", []byte(session)))
	for key, want := range map[string]string{"_auto/s1/tool-results/b1.txt": "shop-", "_auto/s1/tool-results/b2.txt": "bank-", "_auto/s1/tool-results/b3.txt": "shop-", "_auto/s2/tool-results/b1.txt": "unsorted"} {
		if got := project(key, out.String()+key); !strings.HasPrefix(got, want) {
			t.Errorf("%s goes to %s, want %s…", key, got, want)
		}
	}

	if got := project("shop/-w/s1/tool-results/b1.txt", out.String()); got != "shop" {
		t.Errorf("project %s", got)
	}
	if r := receive(t, w, w.Put("shop/copy/s1/tool-results/b1.txt", []byte(out.String()+"\n"))).Receipt; r.Outcome != learn.OutcomeDuplicate {
		t.Errorf("the same output from another copy: %+v", r)
	}
	src, cs, err := w.Log.Source(t.Context(), "shop", w.Admits("shop")[0].Source)
	if err != nil {
		t.Fatal(err)
	}
	if len(cs) != 1 || len(cs[0].Turns) != 1 || src.Session != "s1" || src.Format != transcript.FormatOutput {
		t.Fatalf("%d chunks, source %+v", len(cs), src)
	}
	text, err := w.Log.Blob(t.Context(), "shop", cs[0].SHA256)
	if err != nil {
		t.Fatal(err)
	}
	turn := cs[0].Turns[0]
	if turn.ID != "s1/tool-results/b1" || turn.Role != memory.RoleTool || turn.Kind != memory.KindToolResult || turn.Trust != memory.TrustTool || cs[0].Trust != memory.TrustTool {
		t.Errorf("%+v", turn)
	}
	for _, want := range []string{"[tool_result]\nok 0\n", "ok 19\n[... 2960 lines, ", "left out ...]\nok 2980\n", "\nok 2999"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the chunk lacks %q:\n%s", want, text)
		}
	}
	for _, p := range turn.Pieces {
		if got := out.String()[p.O0:p.O1]; got != string(text[p.C0:p.C1]) {
			t.Errorf("the span [%d,%d) holds %q, the chunk %q", p.O0, p.O1, got, text[p.C0:p.C1])
		}
	}
}
