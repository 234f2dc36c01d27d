package transcript_test

import (
	"io"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// lawOfDocuments holds for whatever bytes: pieces are the object's, in order
// and valid UTF-8, and the same bytes give the same turns however they come.
func lawOfDocuments(t *testing.T, object, data string) {
	opt := transcript.Options{Object: object, NoteChars: 60, MaxLineBytes: 4 << 10}
	turns, r := read(t, data, opt)
	if r.Stats().Compression != "" {
		return
	}
	checkPieces(t, data, turns)
	for i, turn := range turns {
		if turn.Seq != i {
			t.Fatalf("turn %d has place %d", i, turn.Seq)
		}
		for _, s := range []string{turn.ID, turn.Session, turn.Cwd, turn.Text()} {
			if !utf8.ValidString(s) {
				t.Fatalf("turn %d: %q is not UTF-8", i, s)
			}
		}
		at := int64(0)
		for _, p := range turn.Pieces {
			if p.Start < at {
				t.Fatalf("turn %s: a piece at %d after one that ends at %d", turn.ID, p.Start, at)
			}
			at = p.End
		}
	}
	slow, err := transcript.Open(iotest.HalfReader(strings.NewReader(data)), opt)
	if err != nil {
		t.Fatal(err)
	}
	var again []memory.Turn
	for turn, err := range slow.Turns() {
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, turn)
	}
	if !reflect.DeepEqual(turns, again) {
		t.Fatalf("read again (-want +got):\n%s", cmp.Diff(turns, again))
	}
}

func fuzzDocuments(f *testing.F, object string, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
		f.Add("[" + strings.ReplaceAll(strings.TrimSpace(s), "\n", ",\n") + "]")
		f.Add(s[:len(s)*2/3])
	}
	f.Fuzz(func(t *testing.T, data string) { lawOfDocuments(t, object, data) })
}

func FuzzOpenAI(f *testing.F) { fuzzDocuments(f, "x.jsonl", openAI) }

func FuzzFlat(f *testing.F) {
	fuzzDocuments(f, "coder.jsonl", `{"role":"user","content":"a"}`+"\n"+`{"role":"reviewer","content":[{"type":"text","text":"b"}],"task":"t"}`+"\n")
}

func FuzzShareGPT(f *testing.F) {
	fuzzDocuments(f, "x.json", `{"id":1,"conversations":[{"from":"human","value":"a"},{"from":"function_call","value":"[{\"name\":\"f\",\"arguments\":{\"path\":\"a\\nb\"}}]"},{"from":"observation","value":"c"}]}`)
}

func FuzzTRL(f *testing.F) {
	fuzzDocuments(f, "x.jsonl", `{"prompt":"a","completion":"b","label":false}`+"\n"+`{"chosen":"\n\nHuman: a\n\nAssistant: b","rejected":[{"role":"user","content":"c"}]}`+"\n")
}

func FuzzOpenCode(f *testing.F) {
	fuzzDocuments(f, "x.json", `{"info":{"id":"s"},"messages":[{"info":{"id":"m","role":"assistant"},"parts":[{"type":"text","text":"a"},{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{"command":"ls"},"output":"o"}}]}]}`)
}

func FuzzCline(f *testing.F) {
	fuzzDocuments(f, "api_conversation_history.json", `{"role":"user","content":[{"type":"text","text":"<task>\na\n</task><environment_details>\n# Current Working Directory (/w) Files</environment_details> z"},{"type":"text","text":"[bash for 'x'] Result:"},{"type":"text","text":"<feedback>f</feedback>"}]}`+"\n"+`{"role":"assistant","content":"b"}`)
}

func FuzzChatGPT(f *testing.F) {
	fuzzDocuments(f, "x.json", `{"mapping":{"a":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["x",{"text":"y"}]}},"parent":"b"},"b":{"parent":"a"},"c":{"parent":null,"message":{"author":{"role":"tool","name":"browser"},"content":{"content_type":"tether_quote","text":"w"}}}},"current_node":"a","id":"x"}`)
}

func FuzzClaudeAI(f *testing.F) {
	fuzzDocuments(f, "x.json", `{"uuid":"u","chat_messages":[{"uuid":"m","sender":"human","text":"a","content":[]},{"sender":"assistant","content":[{"type":"tool_use","name":"f","input":{"query":"q"}}]}]}`)
}

func FuzzAider(f *testing.F) {
	fuzzDocuments(f, ".aider.chat.history.md", "# aider chat started at 2026-01-02 03:04:05\n\n#### a  \n####\n> b\n```\n> c\n\n> Tokens: 1 sent, 2\r\nd\xff\n")
}

func FuzzText(f *testing.F) { fuzzDocuments(f, "x.txt", "a b c.\n\nd\n\n"+strings.Repeat("word ", 40)) }

// endless gives head, then part n times, then tail.
func endless(head, part string, n int, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head), &repeated{part: part, n: n}, strings.NewReader(tail))
}

type repeated struct {
	part string
	at   int
	n    int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	k := copy(p, r.part[r.at:])
	if r.at += k; r.at == len(r.part) {
		r.at = 0
		r.n--
	}
	return k, nil
}

// A document of one line may be of any size, and no bomb costs memory or ends
// the reading: each meets a limit that a count names.
func TestDocumentBombs(t *testing.T) {
	const lineCap = 1 << 20
	conversation := `{"conversations":[{"from":"human","value":"` + strings.Repeat("words ", 160) + `"}]}`
	last := `{"conversations":[{"from":"human","value":"after"}]}`
	for _, tt := range []struct {
		name    string
		in      io.Reader
		turns   int
		tooLong int
		bad     int
		dropped string
		records int
	}{
		{"one line of 32 MB", endless("["+conversation, ","+conversation, 32<<10, "]"), 1, 0, 0, "repeated", 32<<10 + 1},
		{"a million empty records", endless("["+last, ",{}", 1_000_000, "]"), 1, 0, 0, "", 1_000_001},
		{"a record over the cap", endless("["+last+`,{"conversations":[{"from":"human","value":"`, strings.Repeat("x", 1<<10), 8<<10, `"}]},`+strings.ReplaceAll(last, "after", "later")+"]"), 2, 1, 0, "", 2},
		{"brackets without end", endless("["+last+",", strings.Repeat("[", 1<<10), 32<<10, ""), 1, 1, 0, "", 1},
		{"a string without end", endless("["+last+`,"`, strings.Repeat("x", 1<<10), 32<<10, ""), 1, 1, 0, "", 1},
		{"deep nesting", endless("["+last+`,{"conversations":`, "[", 20_000, strings.Repeat("]", 20_000)+"}]"), 1, 0, 1, "nested_too_deep", 1},
		{"deep objects", endless("["+last+",", `{"a":`, 20_000, "1"+strings.Repeat("}", 20_000)+"]"), 1, 0, 1, "nested_too_deep", 1},
		{"an object over many lines, over the cap", endless(last+"\n{\n", `"k": "`+strings.Repeat("x", 1<<10)+"\",\n", 8<<10, "\"z\":1}\n"+last[:len(last)-1]+`,"id":"b"}`+"\n"), 2, 1, 0, "", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := transcript.Open(tt.in, transcript.Options{Object: "x.json", MaxLineBytes: lineCap})
			if err != nil {
				t.Fatal(err)
			}
			if r.Format() != transcript.FormatShareGPT {
				t.Fatalf("format %s", r.Format())
			}
			turns := 0
			for _, err := range r.Turns() {
				if err != nil {
					t.Fatal(err)
				}
				turns++
			}
			s := r.Stats()
			if turns != tt.turns || s.TooLong != tt.tooLong || s.Bad != tt.bad || s.Records != tt.records || tt.dropped != "" && s.Dropped[tt.dropped] == 0 {
				t.Errorf("%d turns, %+v", turns, s.Counts)
			}
			var ms runtime.MemStats
			runtime.GC()
			if runtime.ReadMemStats(&ms); ms.HeapAlloc > 48<<20 {
				t.Errorf("live heap of %d MiB", ms.HeapAlloc>>20)
			}
		})
	}
}

// What broke other readers (formats.md section 8), for files that may be one
// document.
func TestDocumentDamage(t *testing.T) {
	t.Parallel()
	a, b := `{"messages":[{"role":"user","content":"one"}]}`, `{"messages":[{"role":"user","content":"two"}]}`
	for _, tt := range []struct {
		name, data string
		want       string
		counts     memory.Counts
	}{
		{"a line cut in a string", a + "\n" + a[:36] + "\n" + b + "\n", "one two", memory.Counts{Lines: 3, Records: 2, Bad: 1}},
		{"a line cut between values", a + "\n" + a[:13] + "\n" + b + "\n", "one two", memory.Counts{Lines: 3, Records: 2, Bad: 1}},
		{"cut first line", a[:13] + "\n" + b + "\n", "two", memory.Counts{Lines: 2, Records: 1, Bad: 1}},
		{"partial write, then the whole", a[:20] + "\n" + a + "\n", "one", memory.Counts{Lines: 2, Records: 1, Bad: 1}},
		{"raw newline in a string", a + "\n" + strings.Replace(b, "two", "t\nwo", 1) + "\n" + b + "\n", "one two", memory.Counts{Lines: 4, Records: 2, Bad: 2}},
		{"a record over several lines", a + "\n" + strings.Replace(b, "[", "[\n  ", 1) + "\n", "one two", memory.Counts{Lines: 3, Records: 2}},
		{"U+2028 and U+0085", strings.Replace(a, "one", "o\u2028n\u0085e", 1) + "\n", "o\u2028n\u0085e", memory.Counts{Lines: 1, Records: 1}},
		{"lone surrogate", strings.Replace(a, "one", `\ud83d`, 1) + "\n", "\ufffd", memory.Counts{Lines: 1, Records: 1}},
		{"joined", a + b + "\n", "one two", memory.Counts{Lines: 1, Records: 2, Joined: 1}},
		{"cut last line", a + "\n" + b[:30], "one", memory.Counts{Lines: 2, Records: 1, Pending: 1}},
		{"array cut off", "[" + a + ",\n" + b[:30], "one", memory.Counts{Lines: 2, Records: 1, Pending: 1}},
		{"a bad element", "[" + a + `,{"messages":tru},` + b + "]", "one two", memory.Counts{Lines: 1, Records: 2, Bad: 1}},
		{"odd elements", "[" + a + `,1,"x",null,[2],` + b + "]\n", "one two", memory.Counts{Lines: 1, Records: 2, Bad: 4, Dropped: map[string]int{"not_an_object": 4}}},
		{"odd messages", `{"messages":[1,null,"x",{"role":"user"},{"role":7,"content":"x"},{"role":"user","content":"one"}]}` + "\n", "one",
			memory.Counts{Lines: 1, Records: 1, Dropped: map[string]int{"not_an_object": 3, "no_content": 1}, Unknown: map[string]int{"role:7": 1}}},
		{"messages of another kind", a + "\n" + `{"messages":"none"}` + "\n", "one", memory.Counts{Lines: 2, Records: 2, Unknown: map[string]int{"?": 1}}},
		{"BOM, CRLF, NULs", "\ufeff" + a + "\r\n\r\n" + b + "\x00\x00\n", "one two", memory.Counts{Lines: 3, Records: 2, Blank: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turns, r := read(t, tt.data, transcript.Options{Object: "x.json"})
			checkPieces(t, tt.data, turns)
			var texts []string
			for _, turn := range turns {
				texts = append(texts, turn.Text())
			}
			if got := strings.Join(texts, " "); got != tt.want || r.Format() != transcript.FormatOpenAI {
				t.Errorf("format %s, texts %q, want %q", r.Format(), got, tt.want)
			}
			got := r.Stats().Counts
			if len(got.Dropped) == 0 {
				got.Dropped = nil
			}
			if len(got.Unknown) == 0 {
				got.Unknown = nil
			}
			if d := cmp.Diff(tt.counts, got); d != "" {
				t.Errorf("counts (-want +got):\n%s", d)
			}
		})
	}
}

// Texts that would make a reader look at the whole again for each of their
// parts: 4 MB of them take far less than a second.
func TestTextBombs(t *testing.T) {
	t.Parallel()
	const n = 4 << 20
	many := func(s string) string { return strings.Repeat(s, n/len(s)) }
	say := func(s string) string { return `{"role":"user","content":"` + s + `"}` + "\n" }
	var tree strings.Builder
	tree.WriteString(`{"current_node":"n0","id":"x","mapping":{`)
	for i := range 20_000 {
		k := strconv.Itoa(i)
		tree.WriteString(`"n` + k + `":{"parent":"n` + strconv.Itoa((i+1)%20_000) + `","message":{"author":{"role":"user"},"content":{"parts":["` + k + "\"]}}},\n")
	}
	circle := tree.String() + `"z":{}}}`
	for name, tt := range map[string]struct {
		object, data string
		turns        int
	}{
		"open reminders":     {"x.jsonl", say(many("<system-reminder>")), 1},
		"reminders":          {"x.jsonl", say("hello" + many("<system-reminder>a</system-reminder>")), 1},
		"open memories":      {"x.jsonl", say(many("<mneme-memory>")), 1},
		"open details":       {"api_conversation_history.json", "[" + say(many("<environment_details>")) + "]", 1},
		"details":            {"api_conversation_history.json", "[" + say(many("a <environment_details>b</environment_details>")) + "]", 201},
		"one side of a talk": {"x.jsonl", `{"chosen":"\n\nHuman: a` + many(`\n\nAssistant: b`) + `","rejected":""}` + "\n", 201},
		"blank lines":        {"x.jsonl", `{"chosen":"\n\nHuman: a` + many(`\n\n`) + `","rejected":""}` + "\n", 1},
		"empty strings":      {"x.jsonl", `{"role":"user","content":["a"` + many(`,""`) + `]}` + "\n", 1},
		"empty blocks":       {"x.jsonl", `{"role":"user","content":["a"` + many(`,{}`) + `]}` + "\n", 1},
		"members":            {"x.jsonl", say("a") + `{"role":"user","content":"b"` + many(`,"a":1`) + "}\n", 1},
		"a circle":           {"x.json", circle, 0},
		"a long tree":        {"x.json", strings.Replace(circle, `"parent":"n0"`, `"parent":""`, 1), 20_000},
		"aider marks":        {"x.md", "# aider chat started at 2026-01-02 03:04:05\n" + many("####\n"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns, r := read(t, tt.data, transcript.Options{Object: tt.object})
			if len(turns) != tt.turns {
				t.Errorf("%d turns, want %d: %+v", len(turns), tt.turns, r.Stats().Counts)
			}
		})
	}
}

// A resumed reading gives the turns of the records that begin in the rest,
// with the ids that the whole gives them.
func TestDocumentResumed(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(openAI+strings.ReplaceAll(openAI, "How", "And how"), "\n")
	for _, data := range []string{strings.Join(lines, ""), "[\n" + strings.TrimSuffix(strings.ReplaceAll(strings.Join(lines, ""), "\n", ",\n"), ",\n") + "]\n"} {
		whole, _ := read(t, data, transcript.Options{Object: "x.json"})
		for from := range len(data) {
			if data[from] != '\n' {
				continue
			}
			rest, r := read(t, data, transcript.Options{Object: "x.json", From: int64(from) + 1})
			var want []memory.Turn
			for _, turn := range whole {
				if turn.From > int64(from) {
					want = append(want, turn)
				}
			}
			if d := cmp.Diff(want, rest); d != "" {
				t.Errorf("from %d (-want +got):\n%s", from+1, d)
			}
			if n := r.Stats().Records; n != strings.Count(data[from:], `"messages"`) {
				t.Errorf("from %d: %d records", from+1, n)
			}
		}
	}
}

// BenchmarkDocument reads one array on one line, pretty-printed by no one.
func BenchmarkDocument(b *testing.B) {
	message := `{"from":"human","value":"` + strings.Repeat("we retry twice because the bucket answers slowly ", 12) + `\n\"x\""}`
	var data strings.Builder
	data.WriteString("[")
	for i := 0; data.Len() < 8<<20; i++ {
		data.WriteString(`{"id":"row_` + strconv.Itoa(i) + `","conversations":[` + message + strings.Repeat(","+strings.Replace(message, "human", "gpt", 1), 5) + "]},")
	}
	data.WriteString("{}]")
	in := []byte(data.String())
	b.Run("8MB", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(in)))
		for b.Loop() {
			readAll(b, in)
		}
	})
}
