package transcript_test

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// checkReading holds for whatever bytes: every piece is the object's bytes,
// texts are UTF-8, turns are numbered from 0, and to read twice is to read once.
func checkReading(tb testing.TB, data string, opt transcript.Options) []memory.Turn {
	tb.Helper()
	turns, r := read(tb, data, opt)
	if r.Stats().Compression == "" {
		checkPieces(tb, data, turns)
	}
	for i, turn := range turns {
		if turn.Seq != i {
			tb.Fatalf("turn %d has Seq %d", i, turn.Seq)
		}
		end := int64(0)
		for _, p := range turn.Pieces {
			if !utf8.ValidString(p.Text) {
				tb.Fatalf("turn %s: text %q is not UTF-8", turn.ID, p.Text)
			}
			if p.Start < end {
				tb.Fatalf("turn %s: a piece at %d follows one that ends at %d", turn.ID, p.Start, end)
			}
			end = p.End
		}
	}
	again, _ := read(tb, data, opt)
	if d := cmp.Diff(turns, again); d != "" {
		tb.Fatalf("read again (-want +got):\n%s", d)
	}
	return turns
}
