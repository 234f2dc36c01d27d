package transcript_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

const support = `name: support-desk
files: ["*.desk.json", "*.jsonl"]
match:
  - path: kind
    equals: [ticket, call]
  - path: log.entries
    is: array
conversation:
  id: ticket.no
  cwd: ticket.repo.dir
  branch: ticket.repo.branch
  remote: ticket.repo.origin
  time: opened
messages: log.entries
message:
  role: [by.kind, by]
  text: [body, "parts.*.text"]
  time: at
  id: no
  tool: tool.name
  call_id: tool.call
  error: tool.failed
calls:
  list: asks
  id: call
  name: what
  arguments: with
roles:
  customer: user
  robot: assistant
  machine: tool_result
  pad: skip
`

func schema(t *testing.T, text string) transcript.Schema {
	t.Helper()
	s, err := transcript.ParseSchema("desk.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A format that no code knows is read by its description.
func TestSchema(t *testing.T) {
	t.Parallel()
	data := `{"kind":"ticket","opened":"2026-01-02","ticket":{"no":"T-1","repo":{"dir":"/w/shop","branch":"main","origin":"git@example.org:shop.git"}},"log":{"entries":[
 {"no":1,"by":{"kind":"Customer"},"body":"it fails","at":1767323045},
 {"no":2,"by":"robot","parts":[{"text":"I"},{"text":"look"}],"asks":[{"call":"k","what":"bash","with":{"command":"go test"}}]},
 {"no":3,"by":"machine","tool":{"name":"bash","call":"k","failed":true},"body":"FAIL"},
 {"no":4,"by":"pad","body":"x"},
 {"no":5,"by":"nobody","body":"x"}
]}}
{"kind":"other","log":{"entries":[]}}
`
	turns, r := read(t, data, transcript.Options{Object: "a.desk.json", Schemas: []transcript.Schema{schema(t, support)}})
	checkPieces(t, data, turns)
	if r.Format() != "support-desk" {
		t.Fatalf("format %s", r.Format())
	}
	want := []string{"user text: it fails", "assistant text: I\nlook", "assistant tool_call bash: go test", "tool tool_result bash error: FAIL"}
	if d := cmp.Diff(want, brief(turns)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	first := turns[0]
	if first.Cwd != "/w/shop" || first.GitBranch != "main" || first.Remote != "git@example.org:shop.git" || first.TimeQuality != memory.TimeExact || turns[1].TimeQuality != memory.TimeHeader ||
		!strings.HasPrefix(first.ID, "T-1-") || !strings.HasSuffix(first.ID, "/1") || turns[0].Line != 2 || turns[1].Line != 3 {
		t.Errorf("%+v", first)
	}
	if s := r.Stats(); s.Unknown["role:nobody"] != 1 || s.Dropped["skip"] != 1 || s.Records != 2 {
		t.Errorf("%+v", s.Counts)
	}
	// Its file pattern does not fit: it is not this format.
	if _, r := read(t, data, transcript.Options{Object: "a.json", Schemas: []transcript.Schema{schema(t, support)}}); r.Format() != transcript.FormatUnknown {
		t.Errorf("format %s", r.Format())
	}
	// The user's word goes before what the package knows.
	own := schema(t, "name: mine\nmatch:\n  - path: role\nmessage: {role: role, text: content}\nroles: {user: assistant}\n")
	turns, _ = read(t, `{"role":"user","content":"x"}`+"\n", transcript.Options{Object: "a.jsonl", Schemas: []transcript.Schema{own}})
	if d := cmp.Diff([]string{"assistant text: x"}, brief(turns)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	// Several conversations in one record.
	many := schema(t, "name: many\nmatch:\n  - path: threads.0\n  - {path: threads, is: object}\nconversations: threads.list\nconversation: {id: id}\nmessages: m\nmessage: {role: r, text: t}\n")
	turns, _ = read(t, "{\n\"threads\":{\"0\":0,\"list\":[{\"id\":\"a\",\"m\":[{\"r\":\"user\",\"t\":\"one\"}]},{\"id\":\"b\",\"m\":[{\"r\":\"assistant\",\"t\":\"two\"}]}]}}", transcript.Options{Object: "a.json", Schemas: []transcript.Schema{many}})
	if d := cmp.Diff([]string{"user text: one", "assistant text: two"}, brief(turns)); d != "" || turns[0].Session == turns[1].Session {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestSchemaErrors(t *testing.T) {
	t.Parallel()
	const head = "name: x\nmatch:\n  - path: a\nmessage:\n  role: r\n  text: t\n"
	for name, tt := range map[string]struct{ data, where, says string }{
		"empty":          {"", "s.yaml:1", "empty"},
		"not yaml":       {"name: x\n  bad: [", "s.yaml:2", "not YAML"},
		"two documents":  {head + "---\nname: y\n", "s.yaml:7", "second YAML document"},
		"list":           {"- a\n", "s.yaml:1", "a mapping of fields"},
		"no name":        {"match:\n  - path: a\nmessage: {role: r, text: t}\n", "s.yaml:1", "names no format"},
		"bad name":       {"name: X Y\n", "s.yaml:1", "no name of a format"},
		"no match":       {"name: x\nmessage: {role: r, text: t}\n", "s.yaml:1", "nothing tells records"},
		"no text":        {"name: x\nmatch:\n  - path: a\nmessage: {role: r}\n", "s.yaml:1", "where role and text are"},
		"unknown field":  {head + "mesages: a\n", "s.yaml:7", `unknown field "mesages"`},
		"unknown inside": {head + "conversation:\n  cwd: a\n  dir: b\n", "s.yaml:9", `unknown field "dir"`},
		"twice":          {head + "name: z\n", "s.yaml:7", "stands twice, first at line 1"},
		"anchor":         {head + "files: &a [x]\n", "s.yaml:7", "anchors"},
		"unknown kind":   {"name: x\nmatch:\n  - path: a\n    is: list\n", "s.yaml:4", `unknown kind of value "list"`},
		"rule, no path":  {"name: x\nmatch:\n  - is: array\n", "s.yaml:3", "names no path"},
		"bad path":       {head + "messages: a..b\n", "s.yaml:7", "is no path"},
		"long path":      {head + "messages: " + strings.Repeat("a.", 16) + "a\n", "s.yaml:7", "is no path"},
		"unknown role":   {head + "roles:\n  a: user\n  b: boss\n", "s.yaml:9", `unknown role "boss"`},
		"role twice":     {head + "roles:\n  a: user\n  A: user\n", "s.yaml:9", "stands twice"},
		"calls, no list": {head + "calls:\n  id: a\n", "s.yaml:8", "names no list"},
		"bad pattern":    {head + "files: \"[\"\n", "s.yaml:7", "no file pattern"},
		"too large":      {strings.Repeat("#", 70000), "s.yaml", "at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := transcript.ParseSchema("s.yaml", []byte(tt.data))
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error %v", err)
			}
			if got := err.Error(); !strings.Contains(got, tt.where) || !strings.Contains(got, tt.says) {
				t.Errorf("error %q, want %q and %q", got, tt.where, tt.says)
			}
		})
	}
}

// The embedded schemas are valid, each under the name of its format.
func TestEmbeddedSchemas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("schemas/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d schemas: %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s, err := transcript.ParseEmbedded(f, b)
		if err != nil {
			t.Fatal(err)
		}
		if stem := strings.TrimSuffix(filepath.Base(f), ".yaml"); !strings.HasPrefix(stem, s.Name) {
			t.Errorf("%s describes %s", f, s.Name)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(support), `{"kind":"ticket","log":{"entries":[{"by":"robot","body":"x"}]}}`)
	f.Add([]byte("name: x\nmatch:\n  - path: \"*.a\"\nmessage: {role: r, text: \"t.*.*\"}\n"), `[{"a":1,"r":"user","t":[[ "x" ]]}]`)
	f.Fuzz(func(t *testing.T, yaml []byte, data string) {
		s, err := transcript.ParseSchema("s.yaml", yaml)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error %v", err)
			}
			return
		}
		turns, r := read(t, data, transcript.Options{Object: "a.desk.json", Schemas: []transcript.Schema{s}})
		if r.Stats().Compression == "" {
			checkPieces(t, data, turns)
		}
	})
}
