package token_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/token"
)

func pure(t testing.TB) *token.Tokenizer {
	t.Helper()
	tok, err := token.Pure()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestGoldenVectors(t *testing.T) {
	t.Parallel()
	tok := pure(t)
	f, err := os.Open("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		var v struct {
			Text string `json:"text"`
			IDs  []int  `json:"ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		got := append([]int{}, tok.Encode(v.Text)...)
		if diff := cmp.Diff(v.IDs, got); diff != "" {
			t.Errorf("Encode(%q) (-want +got):\n%s", v.Text, diff)
		}
		if got := tok.Count(v.Text); got != len(v.IDs) {
			t.Errorf("Count(%q) = %d, want %d", v.Text, got, len(v.IDs))
		}
		n++
	}
	if err := lines.Err(); err != nil || n < 80 {
		t.Fatalf("read %d vectors: %v", n, err)
	}
}

func TestInvalidUTF8CountsAsReplacement(t *testing.T) {
	t.Parallel()
	tok := pure(t)
	for _, c := range []struct{ text, as string }{
		{"a\xff\xfeb", "a\uFFFDb"},
		{"\xe4\xb8", "\uFFFD"},
		{"caf\xc3", "caf\uFFFD"},
	} {
		if diff := cmp.Diff(tok.Encode(c.as), tok.Encode(c.text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

// A budget holds by Count itself, for any text and any budget.
func FuzzLimit(f *testing.F) {
	for _, s := range []string{"", "Hello, world! It's a day.", "中文分词测试", "e\u0301\u0301\u0301", strings.Repeat("a", 300), "👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "a\xffb\xffc"} {
		f.Add(s, 3)
		f.Add(s, 1000)
	}
	f.Fuzz(func(t *testing.T, text string, max int) {
		if len(text) > 4096 || max > 4096 {
			return
		}
		tok := pure(t)
		n := tok.Limit(text, max)
		if n < 0 || n > len(text) {
			t.Fatalf("Limit(%q, %d) = %d", text, max, n)
		}
		if got := tok.Count(text[:n]); got > max && n > 0 {
			t.Errorf("Limit(%q, %d) = %d, which counts %d", text, max, n, got)
		}
		if n < len(text) && !utf8.RuneStart(text[n]) && utf8.ValidString(text) {
			t.Errorf("Limit(%q, %d) = %d, inside a character", text, max, n)
		}
		if tok.Count(text) <= max && n != len(text) && utf8.ValidString(text) && max > 0 {
			t.Errorf("Limit(%q, %d) = %d, but the whole fits", text, max, n)
		}
	})
}

// Encode and Count never panic, agree, and stay in the vocabulary; cutting at
// a line end followed by a letter never changes the sum.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "a'S b", "<|im_start|>x<tool_call", "e\u0301\u0323", "\r\n \t x", "\xff\xfe", "ſ's 'ſ", "12 ½ Ⅷ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		tok := pure(t)
		ids := tok.Encode(text)
		if n := tok.Count(text); n != len(ids) {
			t.Fatalf("Count = %d, Encode gives %d", n, len(ids))
		}
		for _, id := range ids {
			if id < 0 || id >= token.Vocabulary {
				t.Fatalf("id %d", id)
			}
		}
		if len(ids) > 3*len(text) { // the longest NFC form of a character is three times its size
			t.Fatalf("%d ids of %d bytes", len(ids), len(text))
		}
		const tail = "\nand"
		if got, want := tok.Count(strings.TrimSpace(text)+tail), tok.Count(strings.TrimSpace(text)+"\n")+tok.Count("and"); got != want {
			t.Errorf("Count of the whole = %d, of the lines %d", got, want)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	tok := pure(b)
	prose := strings.Repeat("We decided that the cache keeps entries for five minutes, because the upstream limits us to 100 requests a minute. "+
		"Never retry a POST; the migration must run before the deploy, and the old table stays until Friday.\n\n", 40)
	code, err := os.ReadFile("table.go")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, text string }{
		{"prose/8KB", prose},
		{"code/6KB", string(code)},
		{"one-letter/1MB", strings.Repeat("a", 1<<20)},
		{"chinese/6KB", strings.Repeat("我们决定缓存保留五分钟，因为上游限制请求。", 100)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = tok.Count(c.text)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
