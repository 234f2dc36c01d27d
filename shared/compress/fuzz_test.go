package compress_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/compress"
)

// FuzzCompress holds the laws over any bytes, under any name and question.
func FuzzCompress(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "in", "*"))
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), filepath.Base(name), "", true)
	}
	f.Add(strings.Repeat("\x1b[31m", 300), "a.log", "x", false)
	f.Add(strings.Repeat("[", 600)+strings.Repeat("]", 600), "", "", true)
	f.Add(strings.Repeat("a", 5000)+"\xd0", "", "", true)
	f.Add("\xff\xfe"+strings.Repeat("E\x00r\x00", 300), "a.log", "", true)
	f.Fuzz(func(t *testing.T, text, name, query string, original bool) {
		law(t, "fuzz", text, compress.Options{Path: name, Query: query, Original: original, Code: true})
	})
}

// FuzzAlign: what gets labels can be turned back, and the order of tools and
// memory changes nothing.
func FuzzAlign(f *testing.F) {
	f.Add("At 2026-08-28T09:15:00Z, run 4f1c2d3e-1111-4222-8333-944455556666 failed", "<t1> <t2> <u1> [ctx: t1=x]")
	f.Add("2026-01-01 10:00:00,123 +0100 <t1>", "x2026-01-01")
	f.Fuzz(func(t *testing.T, system, memory string) {
		p := compress.Prompt{System: system, Memory: []compress.Block{{1, "b", memory}, {1, "a", "a block"}}, Query: "what?"}
		a := compress.Align(p)
		var want strings.Builder
		for _, s := range []string{system, "a block", memory} {
			if s == "" {
				continue
			}
			want.WriteString(s)
			if !strings.HasSuffix(s, "\n") {
				want.WriteString("\n")
			}
		}
		if got := a.Restore(a.Prefix()); got != want.String() {
			t.Errorf("restored %q, want %q", got, want.String())
		}
		p.Memory[0], p.Memory[1] = p.Memory[1], p.Memory[0]
		if b := compress.Align(p); b.Text != a.Text {
			t.Error("the order in which memory came changes the prompt")
		}
	})
}
