package gitlog

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// checkDiff holds a difference against its law: the hunks in order, applied to
// the old text, give the new one, and no hunk begins or ends with a line that
// both sides have.
func checkDiff(t *testing.T, before, after []byte) {
	t.Helper()
	a, b := lines(before), lines(after)
	var got [][]byte
	at := 0
	for _, h := range diff(a, b) {
		if h.a0 < at || h.a1 < h.a0 || h.b1 < h.b0 || h.a0 == h.a1 && h.b0 == h.b1 {
			t.Fatalf("hunk %+v after line %d", h, at)
		}
		if h.a0 < h.a1 && h.b0 < h.b1 && (bytes.Equal(a[h.a0], b[h.b0]) || bytes.Equal(a[h.a1-1], b[h.b1-1])) {
			t.Fatalf("hunk %+v has an equal line at its edge", h)
		}
		got = append(append(got, a[at:h.a0]...), b[h.b0:h.b1]...)
		at = h.a1
	}
	got = append(got, a[at:]...)
	if !slices.EqualFunc(got, b, bytes.Equal) {
		t.Fatalf("the difference of %q and %q gives %q", before, after, got)
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nc\nb\n"))
	f.Add([]byte(""), []byte("\n\n"))
	f.Add([]byte("{\nx\n}\n{\ny\n}\n"), []byte("{\ny\n}\n{\nx\n}"))
	f.Fuzz(func(t *testing.T, a, b []byte) { checkDiff(t, a, b) })
}

func TestDiff(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n, letters int) []byte {
		var out []byte
		for range r.IntN(n) {
			out = append(out, byte('a'+r.IntN(letters)), '\n')
		}
		return out
	}
	for range 20_000 {
		letters := 1 + r.IntN(26)
		checkDiff(t, text(30, letters), text(30, letters))
	}
}

// A text made to be hard takes no more than a few passes over it: a shortest
// difference of these would take 2^38 steps.
func TestDiffHard(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var a, b []byte
	for range 1 << 19 {
		a, b = append(a, byte('a'+r.IntN(2)), '\n'), append(b, byte('a'+r.IntN(2)), '\n')
	}
	start := time.Now()
	checkDiff(t, a, b)
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("takes %v", d)
	}
}
