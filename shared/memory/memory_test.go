package memory_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
)

func TestNames(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"shop": true, "a": true, "0": true, "a.b-c_d": true, strings.Repeat("a", 63): true,
		"": false, "Shop": false, "-a": false, ".a": false, "_auto": false, "a b": false, "a/b": false, "ü": false, strings.Repeat("a", 64): false,
	}
	for name, want := range tests {
		if got := memory.ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %t, want %t", name, got, want)
		}
	}
	if memory.ValidQuestionID("adhoc-12345678") || memory.ValidQuestionID("_synthesis") || !memory.ValidQuestionID("decisions") {
		t.Error("reserved question ids are taken or a plain one is refused")
	}
}

func TestIdentityHoldsNoPlaceAndNoTime(t *testing.T) {
	t.Parallel()
	text := memory.SumString("Node pools stay at 12 machines.")
	id := memory.NodeID("local", "shop", memory.L0, "rules@5e0c2f11", text)
	if !id.Valid() {
		t.Fatalf("NodeID = %q", id)
	}
	others := []memory.SHA{
		memory.NodeID("other", "shop", memory.L0, "rules@5e0c2f11", text),
		memory.NodeID("local", "shop2", memory.L0, "rules@5e0c2f11", text),
		memory.NodeID("local", "shop", memory.L1, "rules@5e0c2f11", text),
		memory.NodeID("local", "shop", memory.L0, "rules@00000000", text),
		memory.NodeID("local", "shop", memory.L0, "rules@5e0c2f11", memory.SumString("x")),
	}
	for i, o := range others {
		if o == id {
			t.Errorf("other %d has the same id", i)
		}
	}
	if got := memory.StreamName("rules", " What holds? \n"); got != memory.StreamName("rules", "What holds?") {
		t.Errorf("white space around a wording makes a new stream: %s", got)
	}
	if a, b := memory.AdhocStream("q", "1"), memory.AdhocStream("q", "2"); a == b {
		t.Error("two requests share an ad-hoc stream")
	}
}

// Newest is a total order (DESIGN section 3): (time, admit, i, start).
func TestPlaceOrder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ordered := []memory.Place{
		{Time: at, Admit: 1, I: 1, Start: 1}, {Time: at, Admit: 1, I: 1, Start: 2}, {Time: at, Admit: 1, I: 2, Start: 0},
		{Time: at, Admit: 2, I: 0, Start: 0}, {Time: at.Add(time.Second), Admit: 1},
	}
	for i, p := range ordered {
		for j, q := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := p.Compare(q); got != want {
				t.Errorf("place %d against %d: %d, want %d", i, j, got, want)
			}
		}
	}
}

func TestEncodingRebuildsSourceBytes(t *testing.T) {
	t.Parallel()
	text := "a \"quoted\" line\nnaïve 😀\t\x01 end"
	tests := []struct {
		name string
		enc  memory.Encoding
		want string
	}{
		{"raw", memory.RawEncoding, text},
		{"js", memory.Encoding{Codec: memory.CodecJSONString, Style: memory.StyleJS}, `a \"quoted\" line\nnaïve 😀\t\u0001 end`},
		{"ascii", memory.Encoding{Codec: memory.CodecJSONString, Style: memory.StyleASCII}, `a \"quoted\" line\nna\u00efve \ud83d\ude00\t\u0001 end`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.enc.Append(nil, text, 0, len(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if tt.enc.Codec != memory.CodecJSONString {
				return
			}
			var back string
			if err := json.Unmarshal([]byte(`"`+string(got)+`"`), &back); err != nil || back != text {
				t.Errorf("decodes to %q, %v", back, err)
			}
		})
	}
}

func TestEncodingExceptions(t *testing.T) {
	t.Parallel()
	// The writer escaped "/" and wrote é in upper-case hex.
	enc := memory.Encoding{Codec: memory.CodecJSONString, Style: memory.StyleJS, Exceptions: []memory.Exception{
		{At: 1, Len: 1, Raw: []byte(`\/`)}, {At: 3, Len: 2, Raw: []byte(`\u00E9`)},
	}}
	text := "a/bé!"
	for _, tt := range []struct {
		from, to int
		want     string
	}{{0, len(text), `a\/b\u00E9!`}, {0, 1, `a`}, {1, 2, `\/`}, {2, 3, `b`}, {3, 5, `\u00E9`}, {5, 6, `!`}, {2, 2, ``}} {
		got, err := enc.Append(nil, text, tt.from, tt.to)
		if err != nil || string(got) != tt.want {
			t.Errorf("[%d,%d) = %q, %v; want %q", tt.from, tt.to, got, err, tt.want)
		}
	}
	if _, err := enc.Append(nil, text, 4, 6); err == nil {
		t.Error("a cut inside an escape has no source bytes, yet none was refused")
	}
	for _, r := range [][2]int{{-1, 2}, {3, 2}, {0, 99}} {
		if _, err := enc.Append(nil, text, r[0], r[1]); err == nil {
			t.Errorf("range %v was not refused", r)
		}
	}
}

// chunkOf makes a chunk of one JSON-string turn with a sealed line.
func chunkOf(t *testing.T) (c memory.Chunk, object []byte) {
	t.Helper()
	secretLine := `token=abc\ttail`
	raw := []byte(`{"text":"first \"line\"\n` + secretLine + `\nlast line é"}`)
	start := int64(bytes.Index(raw, []byte("first")))
	end := int64(len(raw) - 2)
	sealed := "token=[REDACTED:env:0a1b2c]\ttail"
	body := "first \"line\"\n" + sealed + "\nlast line é"
	header := "[user]\n"
	c0 := len(header)
	o0 := int64(bytes.Index(raw, []byte("token=")))
	c = memory.Chunk{I: 0, Text: header + body + "\n", Turns: []memory.ChunkTurn{{
		ID: "s/1", Role: memory.RoleUser, Start: c0, End: c0 + len(body),
		Pieces: []memory.ChunkPiece{{
			C0: c0, C1: c0 + len(body), O0: start, O1: end,
			Enc: memory.Encoding{Codec: memory.CodecJSONString, Style: memory.StyleJS},
			Seals: []memory.Seal{{
				C0: c0 + 13, C1: c0 + 13 + len(sealed), O0: o0, O1: o0 + int64(len(secretLine)),
				HMAC: memory.HMAC([]byte("key"), []byte(secretLine)),
			}},
		}},
	}}}
	c.SHA256 = memory.SumString(c.Text)
	return c, raw
}

func TestSpanOf(t *testing.T) {
	t.Parallel()
	c, object := chunkOf(t)
	find := func(s string) (int, int) {
		i := strings.Index(c.Text, s)
		if i < 0 {
			t.Fatalf("%q is not in the chunk", s)
		}
		return i, i + len(s)
	}
	for _, quote := range []string{`first "line"`, "line", "last line é", "é"} {
		from, to := find(quote)
		s, err := c.SpanOf("b/k", "etag", from, to)
		if err != nil {
			t.Errorf("%q: %v", quote, err)
			continue
		}
		raw := object[s.Start:s.End]
		if s.SHA256 != memory.Sum(raw) || s.Redacted {
			t.Errorf("%q: hash is not that of bytes %q", quote, raw)
		}
		var back string
		if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &back); err != nil || back != quote {
			t.Errorf("%q: bytes %q decode to %q, %v", quote, raw, back, err)
		}
	}
	// A quote from a redacted line is widened to the line and sealed.
	from, to := find("tail")
	s, err := c.SpanOf("b/k", "etag", from, to)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Redacted || s.SHA256 != "" || s.HMAC != memory.HMAC([]byte("key"), object[s.Start:s.End]) {
		t.Errorf("a line with a secret carries %+v", s)
	}
	if got := c.Text[s.ChunkStart:s.ChunkEnd]; !strings.HasPrefix(got, "token=[REDACTED") || !strings.HasSuffix(got, "tail") {
		t.Errorf("widened to %q", got)
	}
	// Refused: headers, ranges that leave the piece or reach past a seal.
	bad := [][2]int{{0, 4}, {0, 12}, {len(c.Text) - 2, len(c.Text)}, {-1, 3}, {5, 5}, {3, 10_000}}
	f, _ := find("line\"")
	_, l := find("tail")
	bad = append(bad, [2]int{f, l})
	for _, r := range bad {
		if s, err := c.SpanOf("b/k", "etag", r[0], r[1]); err == nil {
			t.Errorf("[%d,%d) gave %+v", r[0], r[1], s)
		}
	}
}

func FuzzEncoding(f *testing.F) {
	f.Add("plain", 0, 3)
	f.Add("é\n\"\\😀\x00\x7f", 1, 5)
	f.Fuzz(func(t *testing.T, text string, from, to int) {
		for _, style := range []memory.Style{memory.StyleRaw, memory.StyleJS, memory.StyleASCII} {
			e := memory.Encoding{Style: style}
			whole, err := e.Append(nil, text, 0, len(text))
			if err != nil {
				t.Fatal(err)
			}
			part, err := e.Append(nil, text, from, to)
			if from < 0 || to < from || to > len(text) {
				if err == nil {
					t.Fatalf("range [%d,%d) of %d taken", from, to, len(text))
				}
				continue
			}
			// Law: the parts of a text encode to the parts of its encoding,
			// wherever a rune is not cut.
			if strings.ToValidUTF8(text, "") != text || strings.ToValidUTF8(text[from:to], "") != text[from:to] || strings.ToValidUTF8(text[:from], "") != text[:from] {
				continue
			}
			head, _ := e.Append(nil, text, 0, from)
			tail, _ := e.Append(nil, text, to, len(text))
			if got := string(head) + string(part) + string(tail); got != string(whole) {
				t.Fatalf("%s: %q, want %q", style, got, whole)
			}
		}
	})
}
