package compress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/compress"
)

// blind is an input that was written before the compressor was asked: what must
// stay, and how large the result may be. The targets are those of logs by size,
// of JSON by its rows, of diffs by their context.
type blind struct {
	name, path, text string
	keep             []string
	ratio            float64 // 1: anything
	kind             compress.Kind
}

// listed are taken for a list or for settings without their name, and stay whole.
var listed = map[string]bool{"last: serverless": true, "last: cron mail": true}

// blinds are of the kinds whose names they begin with.
func blinds() []blind {
	return slices.Concat(blindJSON(), blindStreams(), blindBuilds(), blindTests(), blindServers(), blindDiffs(), blindCode(), blindProse(), blindTools(), blindShapes(), blindLast())
}

// TestBlind holds what must stay, the targets, and the laws.
func TestBlind(t *testing.T) {
	t.Parallel()
	lost, over := 0, 0
	for _, b := range blinds() {
		o := compress.Options{Path: b.path, Code: b.kind == compress.Code}
		for _, m := range b.keep {
			if !strings.Contains(b.text, m) {
				t.Errorf("%s: the input itself has no %q", b.name, m)
			}
		}
		for name, o := range map[string]compress.Options{"": o, " with its root line": withRoot(o), " without its name": {}} {
			if b.kind == compress.Code && o.Path == "" {
				continue
			}
			r := law(t, b.name+name, b.text, o)
			if r.Kind != b.kind && name == "" {
				t.Errorf("%s: taken for %s", b.name, r.Kind)
			}
			for _, m := range b.keep {
				if !strings.Contains(r.Text, m) {
					t.Errorf("%s%s: lost %q", b.name, name, m)
					lost++
				}
			}
			if got := float64(len(r.Text)) / float64(len(b.text)); got > b.ratio && !(listed[b.name] && name == " without its name") {
				t.Errorf("%s%s: %.2f of %d bytes, target %.2f (%s)", b.name, name, got, len(b.text), b.ratio, r.Reason)
				over++
			}
		}
	}
	t.Logf("%d inputs, three ways each: %d lost, %d over", len(blinds()), lost, over)
}

func withRoot(o compress.Options) compress.Options {
	o.Evidence = compress.RootLine
	return o
}

// times joins what f gives for 0..n-1.
func times(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

// rowsOf is a JSON array of what f gives.
func rowsOf(n int, f func(i int) string) string {
	return "[" + strings.TrimSuffix(times(n, func(i int) string { return f(i) + "," }), ",") + "]"
}

// at gives one text at place k, the other elsewhere.
func at(i, k int, here, else_ string) string {
	if i == k {
		return here
	}
	return else_
}

var sp = fmt.Sprintf

// clock is a time of day that goes on.
func clock(i int) string { return sp("%02d:%02d:%02d", 8+i/3600, i/60%60, i%60) }

var names = strings.Fields("alpha bravo carol delta echo fox golf hotel india juliet kilo lima mike nov oscar papa quebec romeo sierra tango")

func name(i int) string { return names[i*7%len(names)] }
