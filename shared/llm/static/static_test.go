package static_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

func open(t testing.TB) *static.Embedder {
	t.Helper()
	e, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func embed(t testing.TB, e *static.Embedder, texts ...string) [][]float32 {
	t.Helper()
	v, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func dot(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

func TestVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Tolerance float64
		Cases     []struct {
			Text string
			IDs  []int
			Head []float64
			Norm float64
		}
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Cases) != 20 {
		t.Fatalf("%d cases, want 20", len(want.Cases))
	}
	e := open(t)
	for _, c := range want.Cases {
		if diff := cmp.Diff(c.IDs, e.Tokens(c.Text)); diff != "" {
			t.Errorf("Tokens(%q) (-want +got):\n%s", c.Text, diff)
		}
		v := embed(t, e, c.Text)[0]
		for i, h := range c.Head {
			if d := math.Abs(h - float64(v[i])); d > want.Tolerance {
				t.Errorf("%q: component %d is %v, want %v", c.Text, i, v[i], h)
			}
		}
		if n := math.Sqrt(dot(v, v)); math.Abs(n-c.Norm) > want.Tolerance {
			t.Errorf("%q: norm %v, want %v", c.Text, n, c.Norm)
		}
	}
}

func TestSpace(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("table.i8")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(memory.Sum(raw)[:12]); got != static.Revision {
		t.Errorf("Revision is %s, the table's sha256 begins %s", static.Revision, got)
	}
	s := open(t).Space()
	if want := memory.SpaceID(static.Model, static.Revision, 256, "none"); s.ID != want || s.Dims != 256 {
		t.Errorf("Space = %+v, want id %s and 256 dims", s, want)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	e := open(t)
	for _, c := range []struct{ name, text, same string }{
		{"case", "GetUserByID", "getuserbyid"},
		{"accents, composed and not", "Café e\u0301te\u0301", "cafe ete"},
		{"zero-width space joins", "data\u200bbase", "database"},
		{"no-break space splits", "data\u00a0base", "data base"},
		{"control characters vanish", "data\x00\x1bbase", "database"},
		{"invalid UTF-8 vanishes", "data\xff\xfebase", "database"},
		{"ideographs are words", "数据", "数 据"},
		{"a word past 100 code points is unknown", strings.Repeat("a", 101) + " x", "x"},
		{"an unknown part drops the word", "x☃y z", "z"},
		{"special names are plain words", "[SEP]", "[ sep ]"},
	} {
		if diff := cmp.Diff(e.Tokens(c.same), e.Tokens(c.text)); diff != "" {
			t.Errorf("%s: %q against %q (-want +got):\n%s", c.name, c.text, c.same, diff)
		}
	}
	if n := len(e.Tokens(strings.Repeat("a", 100))); n == 0 {
		t.Error("a word of 100 code points is known")
	}
}

// A batch is the same vectors as one text at a time, whatever stands beside.
func TestBatch(t *testing.T) {
	t.Parallel()
	e := open(t)
	texts := []string{"the cache keeps entries for five minutes", "", "☃☃", "rollback the migration", "the cache keeps entries for five minutes"}
	all := embed(t, e, texts...)
	for i, text := range texts {
		if diff := cmp.Diff(embed(t, e, text)[0], all[i]); diff != "" {
			t.Errorf("text %d (-alone +batch):\n%s", i, diff)
		}
	}
}

func FuzzEmbed(f *testing.F) {
	for _, s := range []string{"", "Hello, world!", "e\u0301\u0323", "数据\u200b", "\xff", "[SEP] ##ing", "İstanbul K", strings.Repeat("ab", 60)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := open(t)
		v := embed(t, e, text)[0]
		n := math.Sqrt(dot(v, v))
		if len(e.Tokens(text)) == 0 && n != 0 {
			t.Errorf("%q has no token and norm %v", text, n)
		}
		if n != 0 && math.Abs(n-1) > 1e-5 || math.IsNaN(n) {
			t.Errorf("%q: norm %v", text, n)
		}
		if diff := cmp.Diff(e.Tokens(text), e.Tokens(strings.ToUpper(strings.ToLower(text)))); diff != "" && isASCII(text) {
			t.Errorf("case changes the tokens of %q:\n%s", text, diff)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func BenchmarkEmbed(b *testing.B) {
	e := open(b)
	passage := strings.TrimSpace(strings.Repeat("we decided that the migration must run before the deploy because the old table stays until friday and ", 9))
	for _, c := range []struct{ name, text string }{
		{"8-words", "why does the deploy wait for the migration"},
		{"150-words", passage},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			texts := []string{c.text}
			for b.Loop() {
				if _, err := e.Embed(b.Context(), texts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
