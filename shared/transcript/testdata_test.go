package transcript_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// The sample sessions of the repository hold one of each thing that a reader
// has to tell apart.
func TestSampleSessions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, format string
		want         map[string]int
		abandoned    int
	}{
		{"claude-code-shop-retries.jsonl", transcript.FormatClaude, map[string]int{
			"user/text": 6, "assistant/text": 10, "assistant/tool_call": 11, "tool/tool_result": 10,
			"user/feedback": 1, "user/steering": 1, "injected/text": 2,
		}, 0},
		{"pi-shop-money.jsonl", transcript.FormatPi, map[string]int{
			"user/text": 4, "assistant/text": 6, "assistant/tool_call": 3, "tool/tool_result": 4, "user/command": 1, "summary/text": 1,
		}, 2},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "transcripts", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			turns, r := read(t, string(b), transcript.Options{Object: tt.file})
			checkPieces(t, string(b), turns)
			got, abandoned := map[string]int{}, 0
			for _, turn := range turns {
				got[string(turn.Role)+"/"+string(turn.Kind)]++
				if turn.Abandoned {
					abandoned++
				}
				if turn.Cwd != "/home/ana/src/shop" || turn.TimeQuality != memory.TimeExact {
					t.Errorf("turn %s: cwd %q, time %s", turn.ID, turn.Cwd, turn.TimeQuality)
				}
			}
			if r.Format() != tt.format {
				t.Errorf("format %s, want %s", r.Format(), tt.format)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("turns (-want +got):\n%s", d)
			}
			if abandoned != tt.abandoned {
				t.Errorf("%d abandoned turns, want %d", abandoned, tt.abandoned)
			}
		})
	}
}
