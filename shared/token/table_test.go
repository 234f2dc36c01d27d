package token

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Brief P4: a changed file stops the program.
func TestChangedTableIsRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"one bit": compiled[:500000] + string(compiled[500000]^1) + compiled[500001:],
		"cut off": compiled[:len(compiled)-6],
		"longer":  compiled + "\x00",
		"empty":   "",
	} {
		if _, err := openTable(data); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: openTable = %v, want Corrupt", name, err)
		}
	}
}

func randomWords() []string {
	rnd := rand.New(rand.NewPCG(7, 8))
	var words []string
	for i := range 3000 {
		var b strings.Builder
		for range 2 + rnd.IntN(60) {
			switch i % 4 {
			case 0:
				b.WriteByte(byte('a' + rnd.IntN(26)))
			case 1:
				b.WriteByte(byte('a' + rnd.IntN(2)))
			case 2:
				b.WriteByte(byte(rnd.IntN(256)))
			default:
				b.WriteString([]string{"the", "ing", "er", "un", "tion", "s"}[rnd.IntN(6)])
			}
		}
		words = append(words, b.String())
	}
	return words
}

// dumbMerge is byte-level BPE by its definition: while any neighbours merge,
// merge the leftmost of those of the lowest rank.
func dumbMerge(t *table, word string) []uint32 {
	var ids []uint32
	for i := range len(word) {
		ids = append(ids, byteID[word[i]])
	}
	for {
		best, at := noMerge, -1
		for i := 0; i+1 < len(ids); i++ {
			if m := t.merge(ids[i], ids[i+1]); m < best {
				best, at = m, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = append(append(append([]uint32{}, ids[:at]...), best), ids[at+2:]...)
	}
}

func TestFastMergesAgreeWithDumb(t *testing.T) {
	t.Parallel()
	tab, err := openTable(compiled)
	if err != nil {
		t.Fatal(err)
	}
	var s scratch
	for _, w := range randomWords() {
		want := dumbMerge(tab, w)
		for name, got := range map[string][]uint32{
			"scan":   append([]uint32{}, tab.mergeWord(&s, w)...),
			"heap":   append([]uint32{}, tab.mergeHeap(&s, w)...),
			"cached": append([]uint32{}, tab.ids(&s, w)...),
			"again":  append([]uint32{}, tab.ids(&s, w)...),
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s of %q (-want +got):\n%s", name, w, diff)
			}
		}
	}
}

// Where text holds no character later than Unicode 9.0 and no run of more than
// 30 marks, nfc is the library's NFC.
func TestNFCAgreesWithLibrary(t *testing.T) {
	t.Parallel()
	parts := []rune("aeoqAZ \u0301\u0323\u0308\u0316\u0338\u0345\u1112\u1161\u11ab\u1100한中\u212b\u2126é\u0958\u0f71\u0f72\u0f73\u0344ñ1")
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		r := make([]rune, 1+rnd.IntN(20))
		for i := range r {
			r[i] = parts[rnd.IntN(len(parts))]
		}
		s := string(r)
		if got, want := nfc(s), norm.NFC.String(s); got != want {
			t.Fatalf("nfc(%+q) = %+q, want %+q", s, got, want)
		}
		if got := nfc(nfc(s)); got != nfc(s) {
			t.Fatalf("nfc is not idempotent on %+q", s)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := openTable(compiled); err != nil {
			b.Fatal(err)
		}
	}
}
