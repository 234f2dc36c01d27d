package dirstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// BenchmarkCreate is the commit of a log segment: create-only, on the disk.
func BenchmarkCreate(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			s := open(b, b.TempDir())
			text := strings.Repeat("x", size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := s.Put(b.Context(), fmt.Sprintf("log/local/p/admit/%020d.jsonl", i), strings.NewReader(text), int64(size), objstore.Condition{Create: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHead(b *testing.B) {
	s := open(b, b.TempDir())
	put(b, s, "log/local/p/admit/1.jsonl", "x")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Head(b.Context(), "log/local/p/admit/1.jsonl"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList lists one folder of 10,000 objects in pages of 1,000.
func BenchmarkList(b *testing.B) {
	const objects = 10_000
	root := b.TempDir()
	s := open(b, root)
	if err := os.Mkdir(filepath.Join(root, "log"), 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range objects {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("log/%020d.jsonl", i)), []byte(strings.Repeat("x", 400)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	list := func(b *testing.B, s *dirstore.Store) {
		n := 0
		for _, err := range objstore.NewBucket("b", s).List(b.Context(), "log/") {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != objects {
			b.Fatalf("listed %d", n)
		}
	}
	list(b, s) // describes the files, which lie here by hand
	b.Run("10k-first-in-process", func(b *testing.B) {
		for b.Loop() {
			list(b, open(b, root))
		}
	})
	b.Run("10k", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list(b, s)
		}
	})
}
