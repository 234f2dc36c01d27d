package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

const (
	gmFolder = "/home/ana/src/shop"
	gmHeader = `{"sessionId":"g-1","projectHash":"%s","startTime":"2026-03-01T10:00:00.000Z","lastUpdated":"2026-03-01T10:00:00.000Z","kind":"main"}` + "\n"
)

func gm(id, typ, more string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-03-01T10:00:01.000Z","type":%q%s}`+"\n", id, typ, more)
}

const (
	gmCall = `,"toolCalls":[{"id":"c1","name":"run_shell_command","args":{"command":"go test"},"result":[{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"output":"ok"}}}],"status":"success","timestamp":"2026-03-01T10:00:05.000Z","resultDisplay":{"summary":"x"}}]`
	gmFail = `,"toolCalls":[{"id":"c2","name":"web_fetch","args":{"url":"https://x.example"},"result":[{"functionResponse":{"response":{"error":"not found"}}}],"status":"error"}]`
)

func TestGemini(t *testing.T) {
	t.Parallel()
	head := fmt.Sprintf(gmHeader, memory.SumString(gmFolder))
	for _, tt := range []struct {
		name, data string
		want       []string
		cwd        string
	}{
		{"rewritten with its calls", head + gm("a", "user", `,"content":[{"text":"fix it"}]`) + gm("b", "gemini", `,"content":"on it","thoughts":[{"subject":"s","description":"d"}]`) +
			`{"$set":{"lastUpdated":"2026-03-01T10:00:02.000Z"}}` + "\n" + gm("s", "user", `,"content":"and hurry"`) + gm("b", "gemini", `,"content":"on it"`+gmCall),
			[]string{"user text: fix it", "assistant text: on it", "assistant tool_call run_shell_command: go test", "tool tool_result run_shell_command: ok", "user text: and hurry"}, ""},
		{"failed call", head + gm("b", "gemini", `,"content":""`+gmFail), []string{"assistant tool_call web_fetch: https://x.example", "tool tool_result web_fetch error: not found"}, ""},
		{"call without an answer", head + gm("b", "gemini", `,"content":null,"toolCalls":[{"name":"read_file","args":{"absolute_path":"/a.go"},"status":"cancelled"},7]`), []string{"assistant tool_call read_file: /a.go"}, ""},
		{"result shown only", head + gm("b", "gemini", `,"toolCalls":[{"id":"x","name":"list_directory","args":{"dir_path":"."},"result":[],"status":"success","resultDisplay":"2 items"}]`),
			[]string{"assistant tool_call list_directory: .", "tool tool_result list_directory: 2 items"}, ""},
		{"rewound", head + gm("a", "user", `,"content":"one"`) + gm("b", "gemini", `,"content":"two"`) + gm("c", "user", `,"content":"three"`) + `{"$rewindTo":"b"}` + "\n" + gm("d", "gemini", `,"content":"four"`) + `{"$rewindTo":"zz"}` + "\n",
			[]string{"user text: one", "assistant text: two (abandoned)", "user text: three (abandoned)", "assistant text: four"}, ""},
		{"set of messages", head + gm("a", "user", `,"content":"one"`) + `{"$set":{"messages":[` + strings.TrimSpace(gm("a", "user", `,"content":"one"`)) + `,` + strings.TrimSpace(gm("b", "gemini", `,"content":"two"`)) + `]}}` + "\n",
			[]string{"user text: one", "assistant text: two"}, ""},
		{"session context", head + gm("a", "user", `,"content":[{"text":"<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - /elsewhere\n  - `+gmFolder+`\n</session_context>"}]`) + gm("b", "user", `,"content":"hello"`),
			[]string{"injected text: <session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - /elsewhere\n  - " + gmFolder + "\n</session_context>", "user text: hello"}, gmFolder},
		{"setup of old versions", head + gm("a", "user", `,"content":"This is the Gemini CLI. We are setting up the context for our chat.\nI'm currently working in the directory: `+gmFolder+`\nHere"`),
			[]string{"injected text: This is the Gemini CLI. We are setting up the context for our chat.\nI'm currently working in the directory: " + gmFolder + "\nHere"}, gmFolder},
		{"files of @path", head + gm("a", "user", `,"content":[{"text":"explain @a.go"},{"text":"\n--- Content from referenced files ---"},{"text":"\nContent from @a.go:\n"},{"text":"package a"},{"text":"\n--- End of content ---"},"thanks",{"inlineData":{"data":"x"}}]`),
			[]string{"injected text: \n--- Content from referenced files ---\n\nContent from @a.go:\n\npackage a\n\n--- End of content ---", "user text: explain @a.go\nthanks"}, ""},
		{"not evidence", head + gm("a", "info", `,"content":"update"`) + gm("b", "warning", `,"content":"w"`) + gm("c", "error", `,"content":"e"`) + gm("d", "future", `,"content":"f"`), nil, ""},
		{"without a header", gm("b", "gemini", `,"content":"hello"`), []string{"assistant text: hello"}, ""},
		{"on one line", `{"sessionId":"g-1","projectHash":"h","directories":["/a"],"messages":[` + strings.TrimSpace(gm("a", "user", `,"content":"one"`)) + `,` + strings.TrimSpace(gm("b", "gemini", `,"content":"two"`)) + `]}`,
			[]string{"user text: one", "assistant text: two"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turns := checkReading(t, tt.data, transcript.Options{Object: "session-1.jsonl"})
			if d := cmp.Diff(tt.want, outline(turns)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(turns) > 0 && turns[len(turns)-1].Cwd != tt.cwd {
				t.Errorf("cwd %q, want %q", turns[len(turns)-1].Cwd, tt.cwd)
			}
		})
	}
}

// gmDocument is a session in the form that was rewritten whole every turn.
func gmDocument(tb testing.TB, messages ...string) string {
	tb.Helper()
	one := fmt.Sprintf(`{"sessionId":"g-1","projectHash":"h","startTime":"2026-03-01T10:00:00.000Z","messages":[%s],"directories":["/a\\"]}`, strings.Join(messages, ","))
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(one), "", "  "); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestGeminiDocument(t *testing.T) {
	t.Parallel()
	user, answer := gm("a", "user", `,"content":"say {\"[\" twice"`), gm("b", "gemini", `,"content":"on it"`+gmCall)
	want := []string{`user text: say {"[" twice`, "assistant text: on it", "assistant tool_call run_shell_command: go test", "tool tool_result run_shell_command: ok"}
	data := gmDocument(t, user, gm("w", "warning", `,"content":"w"`), answer)
	long := gm("l", "gemini", `,"content":"`+strings.Repeat("long ", 2000)+`"`)
	damaged := strings.Replace(gmDocument(t, user, gm("x", "user", `,"content":"lost"`), answer), `"content": "lost"`, `"content": "lost`, 1)
	missing := strings.Replace(gmDocument(t, user, gm("x", "user", `,"content":"lost"`), answer), "\"content\": \"lost\"\n    },", `"content": "lost"`, 1)
	for _, tt := range []struct {
		name, data string
		want       []string
		counts     memory.Counts
	}{
		{"whole", data, want, memory.Counts{Records: 3}},
		{"crlf and bom", "\ufeff" + strings.ReplaceAll(data, "\n", "\r\n"), want, memory.Counts{Records: 3}},
		{"cut off", data[:strings.Index(data, `"id": "b"`)], want[:1], memory.Counts{Records: 2, Pending: 1}},
		{"damaged", damaged, want, memory.Counts{Records: 2, Bad: 1}},
		{"end of a record is missing", missing, want, memory.Counts{Records: 2, Bad: 1}},
		{"record over the cap", gmDocument(t, user, gm("l", "gemini", `,"thoughts":[7`+strings.Repeat(`,{"subject":"long"}`, 900)+`]`), answer), want, memory.Counts{Records: 2, Bad: 1}},
		{"line over the cap", gmDocument(t, user, long, answer), want, memory.Counts{Records: 2, Bad: 1, TooLong: 1}},
		{"no messages", gmDocument(t), nil, memory.Counts{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			opt := transcript.Options{Object: "session-1.json", MaxLineBytes: 8000}
			turns := checkReading(t, tt.data, opt)
			if d := cmp.Diff(tt.want, outline(turns)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			_, r := read(t, tt.data, opt)
			got := r.Stats().Counts
			got.Lines, got.Blank, got.Dropped, got.Unknown = 0, 0, nil, nil
			if d := cmp.Diff(tt.counts, got); d != "" {
				t.Errorf("counts (-want +got):\n%s", d)
			}
			if r.Stats().Session != "g-1" {
				t.Errorf("session %q", r.Stats().Session)
			}
		})
	}
}

// A grown session gives the turns of its snapshot, and more; both forms of a
// session give the same ids.
func TestGeminiGrown(t *testing.T) {
	t.Parallel()
	head := fmt.Sprintf(gmHeader, "h")
	user, bare, full := gm("a", "user", `,"content":"one"`), gm("b", "gemini", `,"content":"on it"`), gm("b", "gemini", `,"content":"on it"`+gmCall)
	ids := func(turns []memory.Turn) (out []string) {
		for _, turn := range turns {
			out = append(out, turn.ID)
		}
		return out
	}
	part := checkReading(t, head+user+bare, transcript.Options{})
	data := head + user + bare + full + gm("c", "user", `,"content":"two"`)
	all := checkReading(t, data, transcript.Options{})
	if d := cmp.Diff([]string{"g-1/a", "g-1/b", "g-1/b/c1", "g-1/b/c1#2", "g-1/c"}, ids(all)); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
	if d := cmp.Diff(ids(all)[:2], ids(part)); d != "" {
		t.Errorf("ids of the snapshot (-want +got):\n%s", d)
	}
	rest, _ := read(t, data, transcript.Options{From: int64(len(head + user + bare))})
	if d := cmp.Diff(all[1:], rest); d != "" {
		t.Errorf("resumed (-want +got):\n%s", d)
	}
	old := checkReading(t, gmDocument(t, user, full, gm("c", "user", `,"content":"two"`)), transcript.Options{})
	if d := cmp.Diff(ids(all), ids(old)); d != "" {
		t.Errorf("ids of the whole document (-want +got):\n%s", d)
	}
	if !all[3].Time.Equal(time.Date(2026, 3, 1, 10, 0, 5, 0, time.UTC)) {
		t.Errorf("time of the result: %v", all[3].Time)
	}
}

// A copy that comes after the window has moved on adds only what is new.
func TestGeminiLateCopy(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(fmt.Sprintf(gmHeader, "h") + gm("b", "gemini", `,"content":"on it"`))
	for i := range 4 {
		b.WriteString(gm(fmt.Sprint("m", i), "user", fmt.Sprintf(`,"content":%q`, strings.Repeat("word ", transcript.WindowBytes/10))))
	}
	b.WriteString(gm("b", "gemini", `,"content":"on it"`+gmCall))
	turns, _ := read(t, b.String(), transcript.Options{Object: "x.jsonl"})
	got := outline(turns)
	want := []string{"assistant text: on it", "assistant tool_call run_shell_command: go test", "tool tool_result run_shell_command: ok"}
	if len(got) != 7 || !cmp.Equal(append(got[:1:1], got[5:]...), want) {
		t.Errorf("%d turns, first %.40q, last %.80q", len(got), got[0], got[len(got)-2:])
	}
}

// A document of any size is read in bounded memory. The test measures the
// process's heap, so it runs alone.
func TestGeminiLarge(t *testing.T) {
	first := gmDocument(t, gm("a", "user", `,"content":"one"`))
	cut := strings.LastIndex(first, "\n  ],")
	one := gmDocument(t, gm("ID", "gemini", `,"content":"`+strings.Repeat("word ", 10000)+`"`))
	one = "," + one[strings.Index(one, "[\n")+1:strings.LastIndex(one, "\n  ],")]
	const n = 2000
	in, out := io.Pipe()
	go func() {
		_, err := io.WriteString(out, first[:cut])
		for i := 0; i < n && err == nil; i++ {
			_, err = io.WriteString(out, strings.Replace(one, `"ID"`, fmt.Sprintf(`"m%d"`, i), 1))
		}
		if err == nil {
			_, err = io.WriteString(out, first[cut:])
		}
		out.CloseWithError(err)
	}()
	r, err := transcript.Open(in, transcript.Options{Object: "x.json"})
	if err != nil {
		t.Fatal(err)
	}
	turns, most := 0, uint64(0)
	for _, err := range r.Turns() {
		if err != nil {
			t.Fatal(err)
		}
		if turns++; turns%200 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	if turns != n+1 || r.Stats().Records != n+1 || r.Stats().Bad != 0 {
		t.Errorf("%d turns, counts %+v", turns, r.Stats().Counts)
	}
	if most > 40<<20 {
		t.Errorf("%d MiB of heap for %d MiB", most>>20, r.Stats().SizeBytes>>20)
	}
}

func FuzzGemini(f *testing.F) {
	head := fmt.Sprintf(gmHeader, "h")
	f.Add(head + gm("a", "user", `,"content":["x",{"text":"<session_context>\n</session_context> y"}]`) + gm("b", "gemini", `,"content":"z"`) + gm("b", "gemini", `,"content":"z"`+gmCall))
	f.Add(head + gm("a", "user", `,"content":"x"`) + `{"$rewindTo":"a"}` + "\n" + gm("a", "gemini", gmFail) + `{"$set":{"messages":[{"id":"a","type":"user","content":"q"}]}}`)
	f.Add("{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"h\",\n  \"messages\": [\n    {\n      \"id\": \"1\",\n      \"type\": \"user\",\n      \"content\": \"x\\n\\ud83d\"\n    },\n    {\n      \"id\": \"2\n    {\n      \"id\": \"3\", \"type\": \"gemini\", \"content\": \"y\"\n    }\n  ]\n}\n")
	f.Add(`{"sessionId":"s","projectHash":"h","messages":[{"id":"1","type":"user","content":"a"},3,[],{"type":"gemini","content":{"text":"b"}}]}`)
	f.Fuzz(func(t *testing.T, data string) {
		checkReading(t, data, transcript.Options{Object: "session-1.json", MaxLineBytes: 4096})
	})
}
