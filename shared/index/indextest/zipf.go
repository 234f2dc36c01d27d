package indextest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Zipf gives texts of n words drawn by Zipf's law (exponent 1.07) from the 20,000 English
// words of the static table's vocabulary; the same seed gives the same. This is hard for the dense leg: without topics
// all texts are near each other. A test of a package below shared/index calls it.
func Zipf(t testing.TB, seed uint64) (text func(n int) string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "llm", "static", "vocab.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var vocab []string
	for w := range strings.FieldsSeq(string(raw)) {
		if len(w) > 1 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
			vocab = append(vocab, w)
		}
	}
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, seed)), 1.07, 2.7, uint64(len(vocab)-1))
	return func(n int) string {
		var sb strings.Builder
		for i := range n {
			if i > 0 {
				sb.WriteByte(' ')
			}
			sb.WriteString(vocab[zipf.Uint64()])
		}
		return sb.String()
	}
}
