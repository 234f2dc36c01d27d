package learn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// acme is a schema of a made-up format, acmeLog a session in it.
const acme = `name: acme-log
match:
  - path: ev
    equals: [say, ran]
conversation: {id: run, cwd: dir}
message:
  role: who
  text: body
  time: at
  id: n
  tool: tool
  call_id: call
  error: failed
roles: {operator: user, machine: assistant, shell: tool_result}
`

const acmeLog = `{"acme":2,"run":"r7","dir":"/home/ada/shop"}
{"ev":"say","run":"r7","dir":"/home/ada/shop","n":1,"who":"operator","at":"2026-02-01T10:00:00+01:00","body":"We decided to cap retries at 5 \"attempts\", because the upstream bans us after that."}
{"ev":"say","run":"r7","n":2,"who":"machine","at":1769936460,"body":"Understood, noted."}
{"ev":"ran","run":"r7","n":3,"who":"shell","at":"2026-02-01T09:02:00Z","tool":"bash","call":"c1","failed":true,"body":"exit 1: three tests fail"}
`

const schemaKey = "config/" + functest.Tenant + "/_schemas/acme-log.yaml"

func putSchema(t *testing.T, w *functest.World, key, yaml string) {
	t.Helper()
	if _, err := w.Bucket.Put(t.Context(), key, []byte(yaml)); err != nil {
		t.Fatal(err)
	}
}

func addSchema(w *functest.World, yaml string) (out learn.Schema) {
	w.T.Helper()
	w.Post("/memory/schemas", map[string]string{"file": "acme.yaml", "yaml": yaml}, http.StatusOK, &out)
	return out
}

func dead(t *testing.T, w *functest.World) (out []eventlog.Dead) {
	t.Helper()
	for d, err := range w.Log.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func pending(t *testing.T, w *functest.World) int {
	t.Helper()
	p, err := w.Learn.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(p)
}

// source is the one source record of project shop, with its chunks.
func source(t *testing.T, w *functest.World) (memory.Source, []memory.Chunk) {
	t.Helper()
	lines := w.Admits("shop")
	if len(lines) != 1 {
		t.Fatalf("%d admit lines, want 1", len(lines))
	}
	src, chunks, err := w.Log.Source(t.Context(), "shop", lines[0].Source)
	if err != nil {
		t.Fatal(err)
	}
	return src, chunks
}

// TestSchema: a transcript of an unknown format is refused, its schema is
// stored, and the sweep that this asks for admits it: with its speakers, times
// and spans, and citations that equal the object's bytes.
func TestSchema(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	e := w.Put("shop/run.jsonl", []byte(acmeLog))
	first := receive(t, w, e)
	if first.Receipt.Outcome != learn.OutcomeUnsupported || first.Receipt.Reason != "in no format that is read" || len(w.Admits("shop")) != 0 {
		t.Fatalf("before: %+v", first.Receipt)
	}
	if d := dead(t, w); len(d) != 1 || !strings.Contains(d[0].Hint, "mem schema add") {
		t.Errorf("dead letters %+v", d)
	}
	if again := receive(t, w, e); !again.Repeat || pending(t, w) != 0 {
		t.Errorf("nothing has changed: %+v, %d pending", again, pending(t, w))
	}

	got := addSchema(w, acme)
	if got.Name != "acme-log" || got.Stored != "new" || len(got.Version) != 8 || len(got.Rules) != 1 || got.Rules[0] != "ev is say or ran" {
		t.Errorf("added %+v", got)
	}
	if n := pending(t, w); n != 1 {
		t.Errorf("%d objects pending, want the refused one", n)
	}
	es := w.Published()
	if len(es) != 1 || es[0].Type() != string(event.SweepRequested) {
		t.Fatalf("announced %v", es)
	}
	w.Run(es...)

	src, chunks := source(t, w)
	if src.Format != "acme-log" || src.ReaderVersion != transcript.ReaderVersion+"+"+got.Version || src.Session == "" || len(src.Cwds) != 1 || src.Cwds[0] != "/home/ada/shop" {
		t.Errorf("source %+v", src)
	}
	type turn struct{ Role, Kind, Tool, Text, Time string }
	var turns []turn
	for _, c := range chunks {
		text, err := w.Log.Blob(t.Context(), "shop", c.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		for _, ct := range c.Turns {
			at := ""
			if ct.Time != nil {
				at = ct.Time.Format(time.RFC3339)
			}
			turns = append(turns, turn{string(ct.Role), string(ct.Kind), ct.Tool, string(text[ct.Start:ct.End]), at})
		}
	}
	want := []turn{
		{"user", "text", "", `We decided to cap retries at 5 "attempts", because the upstream bans us after that.`, "2026-02-01T09:00:00Z"},
		{"assistant", "text", "", "Understood, noted.", "2026-02-01T09:01:00Z"},
		{"tool", "tool_result", "bash", "exit 1: three tests fail", "2026-02-01T09:02:00Z"},
	}
	if d := cmp.Diff(want, turns); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}

	var answer struct {
		Results []struct {
			Text      string
			Citations []struct {
				Object     string
				Start, End int64
				Codec      string
				SHA256     memory.SHA
				Quote      string
			}
		}
	}
	w.Get("/memory/query?project=shop&level=L0&query=at+how+many+attempts+did+we+cap+retries+and+why", &answer)
	if len(answer.Results) == 0 || len(answer.Results[0].Citations) == 0 {
		t.Fatalf("no cited answer: %+v", answer)
	}
	for _, c := range answer.Results[0].Citations {
		raw := []byte(acmeLog)[c.Start:c.End]
		var quote string
		if err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, raw), &quote); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if c.Object != functest.Inbox+"/shop/run.jsonl" || c.Codec != "json-string" || memory.Sum(raw) != c.SHA256 || quote != c.Quote || !strings.Contains(quote, `5 "attempts"`) {
			t.Errorf("citation %+v of %s", c, raw)
		}
	}

	if n := pending(t, w); n != 0 {
		t.Errorf("%d pending after the sweep", n)
	}
	w.Stores.Calls()
	w.Sweep()
	for _, c := range w.Stores.Calls() {
		if c.Write() || strings.HasPrefix(c.Key, "ops/dead/") || strings.HasPrefix(c.Key, "receipts/") && c.Op == "get" {
			t.Errorf("an idle sweep asks for %s %s", c.Op, c.Key)
		}
	}
	if r := receive(t, w, e); !r.Repeat || r.Receipt.Outcome != learn.OutcomeAdmitted {
		t.Errorf("a repeat: %+v", r.Receipt)
	}
}

// TestSchemaChanges: what is refused is read again for each change of the
// schemas, and once; what is admitted stays as it was read.
func TestSchemaChanges(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Ask("shop", "decisions")
	e := w.Put("shop/run.jsonl", []byte(acmeLog))
	w.Put("shop/a.png", png)
	w.Put("shop/b.jsonl", []byte(`{"messages":[{"author":"operator","body":"We never deploy on Fridays."}]}`+"\n"))
	w.Put("shop/good.jsonl", decision("s1"))
	w.Sweep()
	reads := func() (out []string) {
		w.Stores.Calls()
		w.Run(w.Published()...)
		for _, c := range w.Stores.Calls() {
			if c.Bucket == functest.Inbox && c.Op == "get" {
				out = append(out, c.Key)
			}
		}
		return out
	}
	refused := []string{"shop/run.jsonl", "shop/a.png", "shop/b.jsonl"}
	addSchema(w, "name: other\nmatch: [{path: zz}]\nmessage: {role: r, text: t}\n")
	if d := cmp.Diff(refused, reads()); d != "" || pending(t, w) != 0 {
		t.Errorf("another format's schema (-want +got):\n%s", d)
	}
	if got := addSchema(w, "name: other\nmatch: [{path: zz}]\nmessage: {role: r, text: t}\n"); got.Stored != "unchanged" || len(reads()) != 0 {
		t.Errorf("the same again: %+v", got)
	}
	addSchema(w, acme)
	if d := cmp.Diff(refused, reads()); d != "" || len(w.Admits("shop")) != 2 {
		t.Errorf("its own (-want +got):\n%s", d)
	}
	addSchema(w, "name: authors\nmatch: [{path: messages, is: array}]\nmessages: messages\nmessage: {role: author, text: body}\nroles: {operator: user}\n")
	if d := cmp.Diff(refused[1:], reads()); d != "" || len(w.Admits("shop")) != 3 {
		t.Errorf("of a shape (-want +got):\n%s", d)
	}
	if got := addSchema(w, strings.Replace(acme, "operator: user", "operator: assistant", 1)); got.Stored != "replaced" {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(refused[1:2], reads()); d != "" || len(w.Admits("shop")) != 3 {
		t.Errorf("changed (-want +got):\n%s", d)
	}
	if r := receive(t, w, e); !r.Repeat || len(w.Admits("shop")) != 3 {
		t.Errorf("what is admitted: %+v", r.Receipt)
	}
	if rec := w.Call(http.MethodDelete, "/memory/schemas/acme-log", nil); rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), "acme-log") {
		t.Errorf("rm: %d %s", rec.Code, rec.Body)
	}
	w.Run(w.Published()...)
	if len(w.Admits("shop")) != 3 || pending(t, w) != 0 {
		t.Error("a removed schema took something with it")
	}
	if rep, err := w.Log.Verify(t.Context(), nil); err != nil || !rep.OK {
		t.Errorf("verify: %v %v", rep.Problems, err)
	}
}

// TestBrokenSchema: while a schema can not be read, known formats go on; what it
// may describe is put off, by file and line, and neither misread nor lost.
func TestBrokenSchema(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Ask("shop", "decisions")
	putSchema(t, w, schemaKey, strings.Replace(acme, "roles:", "rolls:", 1))
	putSchema(t, w, "config/"+functest.Tenant+"/_schemas/fine.yaml", "name: fine\nmatch: [{path: fine}]\nmessage: {role: r, text: t}\n")
	outcomes := map[string]string{}
	for key, body := range map[string]string{
		"shop/claude.jsonl": string(decision("s1")),
		"shop/note.md":      "# Rule\n\nWe never deploy on Fridays.\n",
		"shop/fine.jsonl":   `{"fine":1,"r":"user","t":"Use pgx instead of lib/pq."}` + "\n",
		"shop/run.jsonl":    acmeLog,
		"shop/flat.jsonl":   `{"role":"user","content":"Set max_conns to 12 everywhere."}` + "\n",
		"shop/a.png":        string(png),
	} {
		r := receive(t, w, w.Put(key, []byte(body))).Receipt
		outcomes[key] = r.Outcome
		putOff := strings.Contains(r.Reason, schemaKey+`:14: unknown field "rolls"`)
		if want := key == "shop/run.jsonl" || key == "shop/flat.jsonl"; putOff != want {
			t.Errorf("%s: %s", key, r.Reason)
		}
	}
	want := map[string]string{
		"shop/claude.jsonl": learn.OutcomeAdmitted, "shop/note.md": learn.OutcomeAdmitted, "shop/fine.jsonl": learn.OutcomeAdmitted,
		"shop/run.jsonl": learn.OutcomeUnsupported, "shop/flat.jsonl": learn.OutcomeUnsupported, "shop/a.png": learn.OutcomeUnsupported,
	}
	if d := cmp.Diff(want, outcomes); d != "" {
		t.Errorf("outcomes (-want +got):\n%s", d)
	}
	if d := dead(t, w); len(d) != 3 {
		t.Errorf("%d dead letters, want 3", len(d))
	}
	var list learn.Schemas
	w.Get("/memory/schemas", &list)
	if len(list.Schemas) != 2 || !strings.Contains(list.Schemas[0].Error, schemaKey+":14") || !strings.Contains(list.Schemas[0].Hint, "roles") || list.Schemas[1].Error != "" || list.Version == "" {
		t.Errorf("%+v", list)
	}
	var one learn.Schema
	w.Get("/memory/schemas/acme-log", &one)
	if !strings.Contains(one.YAML, "rolls:") || one.Error == "" {
		t.Errorf("%+v", one)
	}
	putSchema(t, w, schemaKey, acme) // by hand: any later sweep finds it
	w.Sweep()
	formats := map[string]string{}
	for _, a := range w.Admits("shop") {
		src, _, err := w.Log.Source(t.Context(), "shop", a.Source)
		if err != nil {
			t.Fatal(err)
		}
		formats[src.Object] = src.Format
	}
	const in = functest.Inbox + "/shop/"
	if d := cmp.Diff(map[string]string{in + "claude.jsonl": "claude-code", in + "note.md": "markdown", in + "fine.jsonl": "fine", in + "run.jsonl": "acme-log", in + "flat.jsonl": "flat"}, formats); d != "" {
		t.Errorf("formats (-want +got):\n%s", d)
	}
}

// TestSchemaRoutes says what the routes refuse, and that nothing is stored then.
func TestSchemaRoutes(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	for name, tt := range map[string]struct {
		body   any
		status int
		says   string
	}{
		"no JSON":       {"{", 400, "body"},
		"unknown":       {map[string]string{"yaml": acme, "project": "shop"}, 400, "project"},
		"empty":         {map[string]string{"file": "x.yaml"}, 400, "x.yaml:1"},
		"unknown field": {map[string]string{"file": "x.yaml", "yaml": acme + "mesages: a\n"}, 400, "x.yaml:15"},
		"no file name":  {map[string]string{"yaml": "name: a\n"}, 400, "schema.yaml:1"},
		"our own name":  {map[string]string{"file": "x.yaml", "yaml": strings.Replace(acme, "acme-log", "claude-code", 1)}, 400, "claude-code"},
		"too large":     {map[string]string{"file": "x.yaml", "yaml": acme + strings.Repeat("#", 64<<10)}, 400, "at most 65536"},
		"a huge body":   {map[string]string{"file": "x.yaml", "yaml": strings.Repeat("#", 1<<20)}, 400, "body"},
	} {
		if rec := w.Call(http.MethodPost, "/memory/schemas", tt.body); rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.says) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if rec := w.Call(method, "/memory/schemas/acme-log", nil); rec.Code != http.StatusNotFound || !strings.Contains(rec.Body.String(), "mem schema list") {
			t.Errorf("%s: %d %s", method, rec.Code, rec.Body)
		}
	}
	var list learn.Schemas
	w.Get("/memory/schemas", &list)
	if len(list.Schemas) != 0 || list.Version != "" || len(w.Published()) != 0 {
		t.Errorf("%+v", list)
	}
}

// TestSchemaSweepKilled: a process that ends at each store call of the sweep
// that a new schema asks for, or loses that call alone, leaves the object to the
// next sweep, which admits it once.
func TestSchemaSweepKilled(t *testing.T) {
	t.Parallel()
	base := functest.New(t, functest.Options{})
	opt := functest.Options{Count: functest.Coarse, Graph: base.Graph, Lexical: base.Lexical} // learn writes no index
	type disturb func(s *functest.Stores, n int) (reached func() bool)
	for name, fail := range map[string]disturb{
		"killed before": func(s *functest.Stores, n int) func() bool { return s.DieAt(n, false, errKilled) },
		"killed after":  func(s *functest.Stores, n int) func() bool { return s.DieAt(n, true, errKilled) },
		"lost before":   func(s *functest.Stores, n int) func() bool { return s.FailOnce(n, false, errKilled) },
		"lost after":    func(s *functest.Stores, n int) func() bool { return s.FailOnce(n, true, errKilled) },
	} {
		for n := 0; ; n++ {
			w := functest.New(t, opt)
			receive(t, w, w.Put("shop/run.jsonl", []byte(acmeLog)))
			putSchema(t, w, schemaKey, acme)
			sweep := event.New(event.SweepRequested, "test", event.Sweep{Tenant: functest.Tenant, At: "2026-03-01T12:00:00Z"})
			reached := fail(w.Stores, n)
			_, err := w.Learn.Handle(t.Context(), sweep)
			died := reached()
			w.Stores.Fail(nil, nil)
			if died && name == "killed before" && err == nil {
				t.Fatalf("%s call %d: the sweep says it is done", name, n)
			}
			after := opt
			after.From = w
			next := functest.New(t, after)
			if _, err := next.Learn.Handle(t.Context(), sweep); err != nil {
				t.Fatalf("%s call %d: %v", name, n, err)
			}
			if src, _ := source(t, next); src.Format != "acme-log" || pending(t, next) != 0 {
				t.Fatalf("%s call %d: %+v", name, n, src)
			}
			if !died {
				if n < 8 {
					t.Fatalf("%s: only %d calls", name, n)
				}
				break
			}
		}
	}
}

// TestSchemaTakesNoKnownFormat: the widest schema leaves a Claude Code session
// what it is.
func TestSchemaTakesNoKnownFormat(t *testing.T) {
	t.Parallel()
	with, without := functest.New(t, functest.Options{}), functest.New(t, functest.Options{})
	addSchema(with, "name: all\nmatch: [{path: [type, uuid, message, role]}]\nmessage: {role: type, text: message.content}\n")
	body := decision("s1")
	for _, w := range []*functest.World{with, without} {
		receive(t, w, w.Put("shop/a.jsonl", body))
	}
	a, _ := source(t, with)
	b, _ := source(t, without)
	if d := cmp.Diff(b, a); d != "" || a.Format != transcript.FormatClaude || !bytes.Contains(body, []byte(`"type"`)) {
		t.Errorf("-without +with:\n%s", d)
	}
}
