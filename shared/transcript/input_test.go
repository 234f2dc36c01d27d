package transcript_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

var good = userLine("u1", `"kept one"`) + "\n"

func TestBadInput(t *testing.T) {
	t.Parallel()
	second := userLine("u2", `"kept two"`)
	for _, tt := range []struct {
		name, data string
		object     string
		format     string
		turns      int
		want       memory.Counts
	}{
		{"joined", good + second + userLine("u3", `"three"`) + "\n", "x.jsonl", "claude-code", 3, memory.Counts{Lines: 2, Records: 3, Joined: 1}},
		{"cut off", good + second[:40], "x.jsonl", "claude-code", 1, memory.Counts{Lines: 2, Records: 1, Pending: 1}},
		{"no last newline", good + second, "x.jsonl", "claude-code", 2, memory.Counts{Lines: 2, Records: 2}},
		{"bad line between", good + "not json\n\n" + second + "\r\n", "x.jsonl", "claude-code", 2, memory.Counts{Lines: 4, Records: 2, Bad: 1, Blank: 1}},
		{"bom and nul", "\ufeff" + good + second + "\x00\x00\n", "x.jsonl", "claude-code", 2, memory.Counts{Lines: 2, Records: 2}},
		{"too long", good + strings.Repeat("x", 70000) + "\n" + second + "\n", "x.jsonl", "claude-code", 2, memory.Counts{Lines: 3, Records: 2, TooLong: 1}},
		{"too long first", strings.Repeat("x", 70000) + "\n" + good + second + "\n", "x.jsonl", "claude-code", 2, memory.Counts{Lines: 3, Records: 2, TooLong: 1}},
		{"too long last", good + second + "\n" + strings.Repeat("x", 700000), "x.jsonl", "claude-code", 2, memory.Counts{Lines: 3, Records: 2, TooLong: 1}},
		{"utf8", good + userLine("u2", "\"bad \xff\"") + "\n", "x.jsonl", "claude-code", 2, memory.Counts{Lines: 2, Records: 2, BadUTF8: 1}},
		{"unknown type", good + `{"type":"atis-2","sessionId":"s"}` + "\n", "x.jsonl", "claude-code", 1, memory.Counts{Lines: 2, Records: 2, Unknown: map[string]int{"atis-2": 1}}},
		{"scalar", good + "42\n[1]\n\"s\"\n", "x.jsonl", "claude-code", 1, memory.Counts{Lines: 4, Records: 1, Bad: 3, Dropped: map[string]int{"not_an_object": 3}}},
		{"empty", "", "x.jsonl", "empty", 0, memory.Counts{}},
		{"blank", "\n\n", "x.md", "empty", 0, memory.Counts{Lines: 2, Blank: 2}},
		{"png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "x.jsonl", "unknown", 0, memory.Counts{Lines: 3, Bad: 2, BadUTF8: 1, Pending: 1}},
		{"png named md", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "x.md", "unknown", 0, memory.Counts{Lines: 3, Bad: 2, BadUTF8: 1, Pending: 1}},
		{"words named jsonl", "hello\nworld\n", "x.jsonl", "unknown", 0, memory.Counts{Lines: 2, Bad: 2}},
		{"a tree without messages", `{"mapping":{},"current_node":"x"}` + "\n", "x.json", "chatgpt-export", 0, memory.Counts{Lines: 1, Records: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turns, r := read(t, tt.data, transcript.Options{Object: tt.object, MaxLineBytes: 60000})
			checkPieces(t, tt.data, turns)
			got := r.Stats().Counts
			if len(got.Dropped) == 0 {
				got.Dropped = nil
			}
			if len(got.Unknown) == 0 {
				got.Unknown = nil
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("counts (-want +got):\n%s", d)
			}
			if r.Format() != tt.format || len(turns) != tt.turns {
				t.Errorf("format %s with %d turns, want %s with %d", r.Format(), len(turns), tt.format, tt.turns)
			}
			if got := r.Stats().Unsupported; got != "" {
				t.Errorf("unsupported: %q", got)
			}
		})
	}
}

// A line past the cap costs no memory, however long it is.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader(good), io.LimitReader(zeros{}, 20<<20), strings.NewReader("\n"+userLine("u2", `"after"`)+"\n"))
	r, err := transcript.Open(endless, transcript.Options{Object: "x.jsonl", MaxLineBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range r.Turns() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 || r.Stats().TooLong != 1 || r.Stats().SizeBytes < 20<<20 {
		t.Errorf("%d turns, %d too long, %d bytes", n, r.Stats().TooLong, r.Stats().SizeBytes)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	data := good + userLine("u2", `"kept two"`) + "\n"
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zst := enc.EncodeAll([]byte(data), nil)
	plain, _ := read(t, data, transcript.Options{Object: "x.jsonl"})
	for name, b := range map[string][]byte{"gzip": gz.Bytes(), "zstd": zst} {
		turns, r := read(t, string(b), transcript.Options{Object: "x.jsonl.gz"})
		if d := cmp.Diff(plain, turns); d != "" {
			t.Errorf("%s: turns (-want +got):\n%s", name, d)
		}
		if s := r.Stats(); s.Compression != name || s.RawSHA256 != memory.SumString(data) || s.Damage != "" {
			t.Errorf("%s: compression %q, damage %q, hash %s", name, s.Compression, s.Damage, s.RawSHA256)
		}
		_, r = read(t, string(b[:len(b)-6]), transcript.Options{Object: "x.jsonl.gz"})
		if r.Stats().Damage == "" {
			t.Errorf("%s: damage not told", name)
		}
	}
	// A bomb ends where its expansion is absurd.
	bomb := enc.EncodeAll(make([]byte, 90<<20), nil)
	_, r := read(t, string(bomb), transcript.Options{Object: "x.jsonl.zst", MaxLineBytes: 1 << 20})
	if s := r.Stats(); s.Damage == "" || s.SizeBytes > 80<<20 {
		t.Errorf("bomb of %d bytes: read %d, damage %q", len(bomb), s.SizeBytes, s.Damage)
	}
}

type broken struct{ after io.Reader }

var errBroken = errors.New("connection reset")

func (b broken) Read(p []byte) (int, error) {
	n, err := b.after.Read(p)
	if err == io.EOF {
		err = errBroken
	}
	return n, err
}

func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	data := good + strings.Repeat(userLine("u", `"x"`)+"\n", 2000)
	r, err := transcript.Open(broken{strings.NewReader(data)}, transcript.Options{Object: "x.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var last error
	for _, err := range r.Turns() {
		if last = err; err == nil {
			n++
		}
	}
	if n < 2 || !errors.Is(last, errBroken) || !fault.Is(last, fault.Unavailable) {
		t.Errorf("%d turns, then %v", n, last)
	}
}

func TestStopEarly(t *testing.T) {
	t.Parallel()
	r, err := transcript.Open(strings.NewReader(good+userLine("u2", `"two"`)+"\n"), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range r.Turns() {
		break
	}
	if got := r.Stats().Turns; got != 1 {
		t.Errorf("%d turns counted", got)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	long := strings.TrimSuffix(strings.Repeat("A sentence of the long paragraph. ", 20), " ")
	fence := "```\n" + strings.Repeat("# not a heading\n\n", 20) + "```"
	table := "| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", 30)
	data := "\ufeff---\r\ntitle: x\r\nupdated: 2026-01-05\r\ndate: 2020-01-01\r\n---\r\nintro\r\n\r\n# A\r\n\r\ntext\r\n\r\n## B ##\r\nuser: not a role\r\n\r\nSet\r\n===\r\n\r\n" +
		fence + "\n\n" + table + "\n" + long + "\n\n### C\n"
	turns, _ := read(t, data, transcript.Options{Object: "d/x.md", NoteChars: 100, ModTime: time.Unix(0, 0)})
	checkPieces(t, data, turns)
	var got []string
	for _, turn := range turns {
		s := turn.Text()
		if len(s) > 24 {
			s = s[:24]
		}
		got = append(got, turn.Heading+": "+strings.ReplaceAll(s, "\r\n", "\n"))
		if turn.Role != memory.RoleNote || turn.Time.Format(time.DateOnly) != "2026-01-05" || turn.TimeQuality != memory.TimeFile {
			t.Errorf("%s: role %s, time %v %s", turn.ID, turn.Role, turn.Time, turn.TimeQuality)
		}
		if n := len(turn.Text()); n > 100 && strings.Count(turn.Text(), "```")%2 != 0 {
			t.Errorf("a fence is cut: %q", turn.Text())
		}
	}
	want := []string{
		": intro", "A: # A\n\ntext", "A > B: ## B ##\nuser: not a rol", "Set: Set\n===", "Set: ```\n# not a heading\n\n# n", "Set: | a | b |\n|---|---|\n| 1 ",
		"Set: A sentence of the long p", "Set: A sentence of the long p", "Set: A sentence of the long p", "Set: A sentence of the long p", "Set: A sentence of the long p",
		"Set: A sentence of the long p", "Set: A sentence of the long p", "Set: A sentence of the long p", "Set: A sentence of the long p", "Set: A sentence of the long p", "Set > C: ### C",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	// One new section: the others keep their ids.
	more, _ := read(t, data+"\nnew text\n\n# D\n\nnewer\n", transcript.Options{Object: "e/x.md", NoteChars: 100})
	for i := range turns[:len(turns)-1] {
		if turns[i].ID != more[i].ID {
			t.Errorf("turn %d changed its id", i)
		}
	}
	own, _ := read(t, "---\n"+transcript.DerivedFrontMatter+"\n---\n# V\n\nvault\n", transcript.Options{Object: "v.md"})
	if len(own) != 1 || !own[0].Derived {
		t.Errorf("a note that Mneme wrote is not derived: %v", brief(own))
	}
}

func TestFlat(t *testing.T) {
	t.Parallel()
	data := `{"role":"User","content":"one","ts":"2026-01-02T03:04:05+02:00"}
{"role":"assistant","content":[{"type":"text","text":"two"},"three"],"timestamp":1767323045000}
{"role":"system","content":"rules"}
{"role":"alien","content":"?"}
{"role":"tool","name":"sh","content":"out"}
`
	turns, r := read(t, data, transcript.Options{Object: "x.jsonl"})
	checkPieces(t, data, turns)
	if d := cmp.Diff([]string{"user text: one", "assistant text: two\nthree", "system text: rules", "tool tool_result sh: out"}, brief(turns)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if turns[0].Time.Format(time.RFC3339) != "2026-01-02T01:04:05Z" || turns[0].TimeRaw != "2026-01-02T03:04:05+02:00" {
		t.Errorf("time %v, raw %q", turns[0].Time, turns[0].TimeRaw)
	}
	if n := r.Stats().Unknown["role:alien"]; n != 1 {
		t.Errorf("unknown role counted %d times", n)
	}
}
