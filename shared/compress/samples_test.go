package compress_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/redact"
)

// sample is a text with what is known of it.
type sample struct {
	name, text string
	kind       string
	mustKeep   []string
	maxRatio   *float64
}

func (s sample) options() compress.Options {
	return compress.Options{Path: s.name, Code: s.kind == "code"}
}

// samples reads the labelled inputs and logs beside the project, masked as what
// is stored is.
func samples(tb testing.TB) []sample {
	tb.Helper()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	list, err := readSamples(root)
	if err != nil {
		tb.Skipf("no sample inputs: MNEME_SHARED names the folder that holds optimizer and logs, default ../shared: %v", err)
	}
	return list
}

var readSamples = func() func(string) ([]sample, error) {
	var once sync.Once
	var list []sample
	var err error
	return func(root string) ([]sample, error) {
		once.Do(func() { list, err = loadSamples(root) })
		return list, err
	}
}()

func loadSamples(root string) ([]sample, error) {
	var out []sample
	red := redact.New([]byte("a key of the tests, long enough"))
	for _, f := range []string{"optimizer/inputs.json", "logs/manifest.json"} {
		b, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			return nil, err
		}
		var rows []struct {
			File, Kind string
			MustKeep   []string `json:"must_keep"`
			MaxRatio   *float64 `json:"max_out_ratio"`
			Root       string   `json:"root_text"`
		}
		if err := json.Unmarshal(b, &rows); err != nil {
			return nil, err
		}
		for _, r := range rows {
			text, err := os.ReadFile(filepath.Join(root, filepath.Dir(f), r.File))
			if err != nil {
				return nil, err
			}
			masked, _ := red.Redact(string(text))
			s := sample{name: r.File, text: masked, kind: r.Kind, maxRatio: r.MaxRatio}
			for _, m := range append(r.MustKeep, strings.TrimSpace(r.Root)) {
				if m != "" && strings.Contains(masked, m) {
					s.mustKeep = append(s.mustKeep, m)
				}
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// TestSamples holds what the labels say: what must stay stays, and no result is
// larger than its target.
func TestSamples(t *testing.T) {
	t.Parallel()
	var in, out int // of logs between 2 and 8 KB
	for _, s := range samples(t) {
		r := compress.Compress(s.text, s.options())
		for _, m := range s.mustKeep {
			if !strings.Contains(r.Text, m) {
				t.Errorf("%s: lost %q", s.name, m)
			}
		}
		if s.maxRatio != nil && float64(len(r.Text)) > *s.maxRatio*float64(len(s.text)) {
			t.Errorf("%s: %d of %d bytes, target %.2f", s.name, len(r.Text), len(s.text), *s.maxRatio)
		}
		if r.Kind == compress.Log && len(s.text) >= 2000 && len(s.text) <= 8<<10 {
			in, out = in+len(s.text), out+len(r.Text)
		}
		if r.Reason == compress.ReasonUnstable {
			t.Errorf("%s: no stable result", s.name)
		}
	}
	if out*2 > in {
		t.Errorf("logs of 2 to 8 KB: %d of %d bytes stay, over half", out, in)
	}
	t.Logf("logs of 2 to 8 KB: %d of %d bytes stay", out, in)
}

// TestSampleLaws holds what is true of every result (law).
func TestSampleLaws(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		law(t, s.name, s.text, s.options())
		o := s.options()
		o.Original = true
		law(t, s.name+" with its original", s.text, o)
		o.Path = ""
		law(t, s.name+" without its name", s.text, o)
		o = s.options()
		o.Evidence = compress.RootLine
		r := law(t, s.name+" with its root line", s.text, o)
		if lines := compress.RootLine(s.text); r.Kind == compress.Log && r.Changed && len(lines) == 1 {
			root := strings.Split(s.text, "\n")[lines[0]]
			if len(root) < 2000 && !strings.Contains(root, "\r") && !strings.Contains(r.Text, root) {
				t.Errorf("%s: the root line %q is lost", s.name, root)
			}
		}
		if s.maxRatio != nil && float64(len(r.Text)) > *s.maxRatio*float64(len(s.text)) {
			t.Errorf("%s with its root line: %d of %d bytes, target %.2f", s.name, len(r.Text), len(s.text), *s.maxRatio)
		}
	}
}
