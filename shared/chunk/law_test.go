package chunk_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/chunk"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/transcript"
)

var tenantKey = []byte("tenant key of the tests")

// quarter counts a token for every four bytes: enough to test borders.
func quarter(s string) int { return (len(s) + 3) / 4 }

func options() chunk.Options {
	return chunk.Options{Count: quarter, Redact: redact.New(tenantKey), TenantKey: tenantKey}
}

func chunks(tb testing.TB, opt chunk.Options, turns []memory.Turn) []memory.Chunk {
	tb.Helper()
	c := chunk.New(opt)
	var out []memory.Chunk
	for _, t := range turns {
		done, err := c.Add(t)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, done...)
	}
	done, err := c.Flush()
	if err != nil {
		tb.Fatal(err)
	}
	return append(out, done...)
}

func turns(tb testing.TB, data, object string) []memory.Turn {
	tb.Helper()
	r, err := transcript.Open(strings.NewReader(data), transcript.Options{Object: object})
	if err != nil {
		tb.Fatal(err)
	}
	var out []memory.Turn
	for t, err := range r.Turns() {
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, t)
	}
	return out
}

// decodeSpan is what a reader of the object does with a citation.
func decodeSpan(codec memory.Codec, b []byte) (string, error) {
	if codec == memory.CodecRaw {
		return string([]rune(string(b))), nil
	}
	var s string
	err := json.Unmarshal([]byte(`"`+string(b)+`"`), &s)
	return s, err
}

// checkLaw checks every line of every chunk against the object.
func checkLaw(tb testing.TB, data string, got []memory.Chunk) (lines, sealed, refused int) {
	tb.Helper()
	r := redact.New(tenantKey)
	for i := range got {
		c := &got[i]
		if c.I != i || c.SHA256 != memory.SumString(c.Text) || c.SizeBytes != len(c.Text) {
			tb.Fatalf("chunk %d: wrong place, hash or size", i)
		}
		at := 0
		for _, t := range c.Turns {
			if t.Start < at || t.End < t.Start || t.End > len(c.Text) {
				tb.Fatalf("chunk %d: turn %s at [%d,%d)", i, t.ID, t.Start, t.End)
			}
			at = t.End
			for from := t.Start; from < t.End; {
				to := t.End
				if k := strings.IndexByte(c.Text[from:t.End], '\n'); k >= 0 {
					to = from + k
				}
				if to > from {
					lines++
					s, err := c.SpanOf("o", "e", from, to)
					if err != nil {
						refused++
					} else if err := spanHolds(c, s, from, to, data, r); err != nil {
						tb.Fatalf("chunk %d turn %s: %v", i, t.ID, err)
					} else if s.Redacted {
						sealed++
					}
				}
				from = to + 1
			}
		}
	}
	return lines, sealed, refused
}

func spanHolds(c *memory.Chunk, s memory.Span, from, to int, data string, r *redact.Redactor) error {
	if s.Start < 0 || s.End > int64(len(data)) || s.Start > s.End {
		return fmt.Errorf("span [%d,%d) outside the object", s.Start, s.End)
	}
	raw := []byte(data[s.Start:s.End])
	text, err := decodeSpan(s.Codec, raw)
	if err != nil {
		return fmt.Errorf("span does not decode: %w: %q", err, raw)
	}
	quote := c.Text[s.ChunkStart:s.ChunkEnd]
	if s.ChunkStart > from || s.ChunkEnd < to {
		return fmt.Errorf("span [%d,%d) does not hold [%d,%d)", s.ChunkStart, s.ChunkEnd, from, to)
	}
	if got, _ := r.Redact(text); got != quote {
		return fmt.Errorf("redacted bytes %q, chunk has %q", got, quote)
	}
	switch {
	case s.Redacted && (s.SHA256 != "" || s.HMAC != memory.HMAC(tenantKey, raw)):
		return fmt.Errorf("wrong seal of %q", quote)
	case !s.Redacted && (s.HMAC != "" || s.SHA256 != memory.Sum(raw) || text != quote):
		return fmt.Errorf("wrong hash or text of %q", quote)
	}
	return nil
}

func TestLawOverSamples(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(root, "samples", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no sample transcripts: MNEME_SHARED names their parent folder, default ../shared")
	}
	lines, sealed, refused := 0, 0, 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		data := string(b)
		got := chunks(t, options(), turns(t, data, f))
		n, s, r := checkLaw(t, data, got)
		lines, sealed, refused = lines+n, sealed+s, refused+r
		again := chunks(t, options(), turns(t, data, "elsewhere/"+filepath.Base(f)))
		if d := cmp.Diff(got, again); d != "" {
			t.Errorf("%s: a second run differs:\n%s", f, d)
		}
		for _, c := range got {
			if c.Tokens > chunk.Tokens {
				t.Errorf("%s: chunk %d has %d tokens", f, c.I, c.Tokens)
			}
		}
	}
	// What is refused is the marks of cuts, in tool output.
	if lines < 5000 || refused*20 > lines {
		t.Errorf("%d lines, %d sealed, %d refused", lines, sealed, refused)
	}
	t.Logf("%d lines, %d sealed, %d refused", lines, sealed, refused)
}

// claude builds a transcript of user and tool texts.
func claude(tb testing.TB, texts ...string) string {
	tb.Helper()
	var out strings.Builder
	for i, s := range texts {
		b, err := json.Marshal(s)
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&out, `{"type":"user","uuid":"u%d","sessionId":"s","isSidechain":false,"timestamp":"2026-01-13T00:00:%02d.000Z","message":{"role":"user","content":%s}}`+"\n", i, i%60, b)
	}
	return out.String()
}

func FuzzLaw(f *testing.F) {
	f.Add("plain\nexport DB_PASSWORD=hunter2x\nlast", 20)
	f.Add("a\nkey-----BEGIN "+"PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n-----END "+"PRIVATE KEY----- b\nc", 5)
	f.Add(strings.Repeat("x ", 300)+"password=hunter2x "+strings.Repeat("é<&> ", 90), 30)
	f.Add("\u2028\x00\x7f\ufffd"+strings.Repeat("\n\n", 50)+"https://u:pw123456@h", 9)
	f.Fuzz(law)
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

// TestLawOverFragments builds texts of the things that go wrong together:
// secrets beside cuts, escapes, invalid bytes, key blocks without an end.
func TestLawOverFragments(t *testing.T) {
	t.Parallel()
	fragments := []string{
		"plain ", "\n", "\n\n", "export DB_PASSWORD=hunter2x", "password=hunter2x ", "https://u:pw123456@h", "é", "😀", "\x00", "\xff", "\u2028",
		"<&>", `\n`, `"`, "x", "# h\n", "---\n", "```\n", "| a |\n", strings.Repeat("x", 52),
		"-----BEGIN " + "PRIVATE KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n", "-----END " + "PRIVATE KEY-----",
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 400 {
		var sb strings.Builder
		for range 1 + rnd.IntN(60) {
			sb.WriteString(fragments[rnd.IntN(len(fragments))])
		}
		law(t, sb.String(), rnd.IntN(500))
	}
}

// law checks a text as a person's, as a tool's, which is cut at both ends, and
// as a note.
func law(t *testing.T, text string, tokens int) {
	opt := options()
	opt.Tokens, opt.ToolTokens = 20+abs(tokens)%500, 10+abs(tokens)%100
	data := claude(t, text, "second "+text)
	checkLaw(t, data, chunks(t, opt, turns(t, data, "x.jsonl")))
	ts := turns(t, data, "x.jsonl")
	for i := range ts {
		ts[i].Role, ts[i].Kind, ts[i].Trust = memory.RoleTool, memory.KindToolResult, memory.TrustTool
	}
	checkLaw(t, data, chunks(t, opt, ts))
	note := "# Title\n\n" + text
	checkLaw(t, note, chunks(t, opt, turns(t, note, "x.md")))
}
