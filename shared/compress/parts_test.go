package compress_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mneme-ai/mneme/shared/compress"
)

// TestParts: together they are the text, each is whole lines where it can be, and a key
// is in one of them.
func TestParts(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", 20) + "-----END PRIVATE KEY-----\n"
	for name, text := range map[string]string{
		"empty": "", "a line": "x", "lines": strings.Repeat("a line of the log\n", 1000), "no line feed at the end": strings.Repeat("a line\n", 999) + "end",
		"one long line": strings.Repeat("é", 5000), "no UTF-8": strings.Repeat("\xff\x80", 4000), "runes of four bytes": strings.Repeat("😀", 3001), "a key": strings.Repeat("INFO step\n", 95) + key + strings.Repeat("INFO step\n", 500),
		"keys without an end": strings.Repeat("-----BEGIN \n", 500),
	} {
		for _, size := range []int{1000, 1001, 1003, 4096} {
			var got strings.Builder
			line := 0
			for p, err := range compress.Parts(iotest.OneByteReader(strings.NewReader(text)), size) {
				if err != nil || p.Text == "" || len(p.Text) > size || p.Byte != int64(got.Len()) || p.Line != line {
					t.Fatalf("%s/%d: part of %d bytes at %d, line %d: %v", name, size, len(p.Text), p.Byte, p.Line, err)
				}
				got.WriteString(p.Text)
				line += strings.Count(p.Text, "\n")
				if strings.Contains(text, "\n") && got.Len() < len(text) && !strings.HasSuffix(p.Text, "\n") {
					t.Errorf("%s/%d: a line is cut", name, size)
				}
				if name != "no UTF-8" && strings.ToValidUTF8(p.Text, "?") != p.Text {
					t.Errorf("%s/%d: a rune is cut", name, size)
				}
				if name == "a key" && strings.Contains(p.Text, "BEGIN") != strings.Contains(p.Text, "END") {
					t.Errorf("%s/%d: the key is cut", name, size)
				}
			}
			if got.String() != text {
				t.Errorf("%s/%d: the parts are not the text", name, size)
			}
		}
	}
	broken := errors.New("broken")
	for _, err := range compress.Parts(io.MultiReader(strings.NewReader(strings.Repeat("x\n", 100)), iotest.ErrReader(broken)), 50) {
		if err != nil && !errors.Is(err, broken) {
			t.Error(err)
		}
	}
}

// endless gives n bytes of a log whose one failure stands in the middle.
type endless struct {
	n, given int
	rest     string // of the line that is given
	failed   bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		if e.given >= e.n {
			return 0, io.EOF
		}
		e.rest = "2026-03-04T09:00:00Z INFO worker processed job 12345 queue=default result=ok\n"
		if !e.failed && e.given > e.n/2 {
			e.failed = true
			e.rest = "2026-03-04T09:00:00Z ERROR ledger: sum of February differs by 3 cents\n"
		}
		e.given += len(e.rest)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestLargeInput: 96 MB pass in the memory of one part, and their marks count the
// lines of the whole.
func TestLargeInput(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	const size = 8 << 20
	var most, before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	found, read, shown, last := 0, int64(0), 0, 0
	for p, err := range compress.Parts(&endless{n: 96 << 20}, size) {
		if err != nil {
			t.Fatal(err)
		}
		r := compress.Compress(p.Text, compress.Options{Path: "x.log", Line: p.Line})
		if !r.Changed && len(p.Text) > 1<<10 {
			t.Fatalf("at byte %d: %s", p.Byte, r.Reason)
		}
		for _, o := range r.Omissions {
			if o.From < p.Line || o.From <= last {
				t.Fatalf("part from line %d: omission %+v after %d", p.Line, o, last)
			}
			last = o.From
		}
		found += strings.Count(r.Text, "differs by 3 cents")
		shown += len(r.Text)
		read = p.Byte + int64(len(p.Text))
		var now runtime.MemStats
		if runtime.ReadMemStats(&now); now.HeapInuse > most.HeapInuse {
			most = now
		}
	}
	if read < 96<<20 || found != 1 || shown > 1<<20 {
		t.Errorf("%d bytes read, the failure %d times, %d bytes shown", read, found, shown)
	}
	if grown := int64(most.HeapInuse) - int64(before.HeapInuse); grown > 20*size {
		t.Errorf("%d MB in memory, parts of %d", grown>>20, size>>20)
	}
}
