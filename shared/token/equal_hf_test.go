//go:build hf && cgo

package token

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/vectors.jsonl")

func twins(t testing.TB) (rust, pure *Tokenizer) {
	t.Helper()
	rust, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	pure, err = Pure()
	if err != nil {
		t.Fatal(err)
	}
	return rust, pure
}

// same reports the first word that differs, not two lists of ids.
func same(t *testing.T, rust, pure *Tokenizer, name, text string) bool {
	t.Helper()
	want, got := rust.Encode(text), pure.Encode(text)
	if cmp.Equal(want, got) {
		if n := pure.Count(text); n != len(want) {
			t.Errorf("%s: Count = %d, Encode has %d", name, n, len(want))
		}
		return true
	}
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	t.Errorf("%s: id %d differs: want %v, got %v (%d and %d ids)", name, i,
		want[i:min(i+8, len(want))], got[i:min(i+8, len(got))], len(want), len(got))
	return false
}

// Every character, in places that show its class and its combining: alone,
// after and before a letter, before a line end, after a space, after an
// apostrophe, and between combining marks.
func TestEqualEveryCharacter(t *testing.T) {
	rust, pure := twins(t)
	const forms = "%[1]c|a%[1]cb|%[1]c\n| %[1]c1|'%[1]c '%[1]ce|!%[1]c%[1]c| %[1]c %[1]c|e%[1]c\u0301\u0323|e\u0301%[1]c\u0316|\u1100%[1]c\u11a8|%[1]c\u0338|.%[1]cX\r\n%[1]c\t"
	bad := 0
	for r := rune(1); r <= utf8.MaxRune && bad < 20; r++ {
		if r >= 0xD800 && r < 0xE000 {
			continue
		}
		if r >= 0x40000 && (r < 0xE0000 || r > 0xE0200) && r%61 != 0 {
			continue // unassigned and private planes: a sample
		}
		if !same(t, rust, pure, fmt.Sprintf("U+%04X", r), fmt.Sprintf(forms, r)) {
			bad++
		}
	}
}

// Random strings over the characters that the pattern and NFC care about.
func TestEqualRandom(t *testing.T) {
	rust, pure := twins(t)
	alphabet := []string{" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u0085", "'", "'s", "'LL", "'ſ", "a", "Z", "the ", "1", "23", "٣", "Ⅷ", ".", "...", "!?",
		"é", "e\u0301", "\u0323", "\u0301", "\u0308", "\u1dfa", "한", "\u1112\u1161\u11ab", "中", "日本語", "ß", "ﬁ", "Å", "\u212b", "\u0958", "👩‍👩‍👧‍👦", "🇩🇪", "\u200d", "\ufe0f", "\ufeff", "\u200b",
		"<|im_start|>", "<|im_end|", "</tool_call>", "<tool_call>", "<", "|>", "{", "}", "\\n", "_", "camelCase", "snake_case", "http://", "ſ", "İ", "\U0001E900", "\U00011938", "\U00011935\U00011930", "𝒳", "\u0f71\u0f72", "\u0f73"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 60000 {
		var b strings.Builder
		for range 1 + rnd.IntN(24) {
			b.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		if !same(t, rust, pure, fmt.Sprintf("random %d %q", i, b.String()), b.String()) {
			return
		}
	}
}

// Whole files: the module's own sources and, where it stands, the sample data.
func TestEqualFiles(t *testing.T) {
	rust, pure := twins(t)
	roots := []string{filepath.Join("..", "..")}
	shared := os.Getenv("MNEME_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(shared); err != nil {
		t.Logf("MNEME_SHARED: no sample data at %s; the module's own files alone are compared", shared)
	} else {
		roots = append(roots, shared)
	}
	files, bytes := 0, 0
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == ".git" {
				return filepath.SkipDir
			}
			if info, err := d.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > 4<<20 {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files, bytes = files+1, bytes+len(b)
			same(t, rust, pure, path, string(b))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files, %d bytes", files, bytes)
}

func TestEqualLong(t *testing.T) {
	rust, pure := twins(t)
	for name, text := range map[string]string{
		"one letter":      strings.Repeat("a", 300000),
		"one mark":        "e" + strings.Repeat("\u0301", 3000),
		"mixed marks":     strings.Repeat("a"+strings.Repeat("\u0301\u0323\u0345", 40), 30),
		"spaces":          strings.Repeat(" ", 100000) + "x",
		"line ends":       strings.Repeat("\r\n", 50000),
		"one ideograph":   strings.Repeat("中", 50000),
		"random letters":  randomLetters(200000),
		"less-than signs": strings.Repeat("<", 100000),
	} {
		same(t, rust, pure, name, text)
	}
}

func randomLetters(n int) string {
	rnd := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rnd.IntN(26))
	}
	return string(b)
}

// TestVectors writes what the Rust twin gives for the texts of
// testdata/texts.json; TestGoldenVectors holds the pure twin to it.
func TestVectors(t *testing.T) {
	rust, _ := twins(t)
	raw, err := os.ReadFile("testdata/texts.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(raw, &texts); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w := bufio.NewWriter(&out)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, text := range texts {
		ids := rust.Encode(text)
		if ids == nil {
			ids = []int{}
		}
		if err := e.Encode(map[string]any{"text": text, "ids": ids}); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	if *update {
		if err := os.WriteFile("testdata/vectors.jsonl", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("testdata/vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.String(), string(have)); diff != "" {
		t.Errorf("testdata/vectors.jsonl is stale, run with -update (-want +got):\n%s", diff)
	}
}

func BenchmarkRust(b *testing.B) {
	rust, _ := twins(b)
	text, err := os.ReadFile("token.go")
	if err != nil {
		b.Fatal(err)
	}
	s := string(text)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		rust.Count(s)
	}
}
