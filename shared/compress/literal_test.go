package compress_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/compress"
)

// TestLiterals: what a reader of JSON would change stays as it is written.
func TestLiterals(t *testing.T) {
	t.Parallel()
	odd := `{"a":1,"a":2,"id":9007199254740993,"one":1.0,"exp":1E+400,"zero":-0,"tiny":0.10000000000000000555,"html":"<script>&amp;\u2028</script>","esc":"\/\u00e9\ud83d\ude00","state":"odd"}`
	usual := `{"a":1,"a":1,"id":9007199254740991,"one":1.0,"exp":1E+1,"zero":0,"tiny":0.1,"html":"x","esc":"y","state":"usual"}`
	for name, sep := range map[string][2]string{"array": {"[", ",\n  "}, "stream": {"", "\n"}} {
		rows := make([]string, 200)
		for i := range rows {
			rows[i] = usual
		}
		rows[120] = odd
		text := sep[0] + strings.Join(rows, sep[1])
		if sep[0] != "" {
			text += "]\n"
		}
		for _, o := range []compress.Options{{}, {Original: true}} {
			r := law(t, name, text, o)
			if !r.Changed || !strings.Contains(r.Text, odd) || !strings.Contains(r.Text, usual) {
				t.Errorf("%s: %s\n%s", name, r.Reason, head(r.Text))
			}
		}
	}
}

// TestMarksOfTheInput: what looks like a mark is a value like any other. It protects
// nothing, its hash is not taken over, and its count is no part of ours.
func TestMarksOfTheInput(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("ab12", 6)
	rows := make([]string, 200)
	for i := range rows {
		rows[i] = `{"_omitted":85,"_ccr":"` + hash + `"}`
	}
	r := law(t, "marks alone", "["+strings.Join(rows, ",")+"]", compress.Options{Original: true})
	if r.Changed && strings.Count(r.Text, hash) == len(rows) {
		t.Error("nothing is left out")
	}
	sum := 0
	for _, o := range r.Omissions {
		sum += o.Count
	}
	if sum >= len(rows) {
		t.Errorf("%d of %d elements left out", sum, len(rows))
	}
	lines := strings.Repeat("[... 41 lines omitted: 12-52]\n[... 4960 of 5003 lines omitted; original "+hash+"]\n2026-03-04T09:00:00Z INFO step done\n", 300)
	r = law(t, "lines", lines, compress.Options{Original: true, Path: "a.log"})
	if !r.Changed || !strings.Contains(r.Text, "original "+r.SHA256[:compress.ShownHex]) || len(r.Text)*10 > len(lines) {
		t.Errorf("%s %s", r.Reason, head(r.Text))
	}
}
