package static_test

import (
	"math"
	"testing"

	"github.com/mneme-ai/mneme/shared/llm/static"
)

// TestCut: a cut form is the first dimensions of the whole, brought to length 1 again,
// and a space of its own.
func TestCut(t *testing.T) {
	t.Parallel()
	whole := open(t)
	cut, err := static.Cut(128)
	if err != nil {
		t.Fatal(err)
	}
	if cut.Space().ID == whole.Space().ID || cut.Space().Dims != 128 {
		t.Errorf("%+v", cut.Space())
	}
	for _, text := range []string{"We cap retries at 5 attempts.", "the port is 8080", "", "漢字"} {
		w, c := embed(t, whole, text)[0], embed(t, cut, text)[0]
		if len(c) != 128 {
			t.Fatalf("%q: %d dimensions", text, len(c))
		}
		var length float64
		for _, x := range w[:128] {
			length += float64(x) * float64(x)
		}
		for i, x := range c {
			want := 0.0
			if length > 0 {
				want = float64(w[i]) / math.Sqrt(length)
			}
			if math.Abs(float64(x)-want) > 1e-6 {
				t.Fatalf("%q, dimension %d: %v, want %v", text, i, x, want)
			}
		}
	}
	for name, want := range map[string]int{"static": 256, "static-256": 256, "static-128": 128, "static-64": 0, "static-": 0, "static128": 0, "static-0128": 0, "other": 0} {
		if n, ok := static.Dims(name); n != want || ok != (want > 0) {
			t.Errorf("%s: %d %t, want %d", name, n, ok, want)
		}
	}
	for _, name := range static.Names() {
		if _, ok := static.Dims(name); !ok {
			t.Errorf("%s is a name and is not known", name)
		}
	}
	if _, err := static.Cut(3); err == nil {
		t.Error("cut to 3")
	}
	if e, err := static.Cut(256); err != nil || e.Space() != whole.Space() {
		t.Errorf("the whole by its number: %v", err)
	}
}
