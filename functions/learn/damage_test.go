package learn_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/transcript"
)

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestUnreadable: an object of which nothing can be read is refused by name and
// listed among the dead letters, for who uploads by S3 has no other answer; it
// is not called empty.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	whole := gzipped(t, decision("s1"))
	tests := map[string]struct {
		body    []byte
		outcome string
		reason  string
	}{
		"png":                 {png, learn.OutcomeUnsupported, "in no format that is read"},
		"a stream cut short":  {whole[:12], learn.OutcomeRefused, "the gzip stream is damaged"},
		"only the magic":      {[]byte("\x1f\x8b\xff\xff"), learn.OutcomeRefused, "the gzip stream is damaged"},
		"one line over a cap": {gzipped(t, bytes.Repeat([]byte("a"), transcript.MaxLineBytes+1)), learn.OutcomeRefused, "no line of at most 64 MiB"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := functest.New(t, functest.Options{})
			e := w.Put("shop/a.jsonl", tc.body)
			for range 2 { // a second notice adds no second letter
				r := receive(t, w, e).Receipt
				if r.Outcome != tc.outcome || !strings.Contains(r.Reason, tc.reason) {
					t.Errorf("outcome %q, reason %q", r.Outcome, r.Reason)
				}
			}
			var got []string
			for d, err := range w.Log.DeadLetters(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, d.Key)
				if !strings.Contains(d.Error, tc.reason) || d.Hint == "" {
					t.Errorf("dead letter %+v", d)
				}
			}
			if d := cmp.Diff([]string{functest.Inbox + "/shop/a.jsonl"}, got); d != "" {
				t.Errorf("dead letters (-want +got):\n%s", d)
			}
		})
	}
}

// TestDamagedStreamKeepsWhatCameBefore: the receipt says that something is lost.
func TestDamagedStreamKeepsWhatCameBefore(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	whole := gzipped(t, decision("s1"))
	r := receive(t, w, w.Put("shop/a.jsonl.gz", whole[:len(whole)-8])).Receipt
	if r.Outcome != learn.OutcomeAdmitted || !strings.Contains(r.Reason, "the gzip stream is damaged") || !strings.Contains(r.Reason, "kept") {
		t.Errorf("outcome %q, reason %q", r.Outcome, r.Reason)
	}
}
