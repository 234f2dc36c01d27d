package transcript_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/transcript"
)

// JSON that a text shows is an example, whatever record it looks like.
func TestExamplesInProse(t *testing.T) {
	t.Parallel()
	const claude = `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"use tabs"}}`
	for _, tt := range []struct{ object, data, want string }{
		{"a.md", "# Format\n\n```json\n" + claude + "\n```\n", transcript.FormatMarkdown},
		{"a.md", "# Format\n\n" + `{"port": 80}` + "\n\nThat is all.\n", transcript.FormatMarkdown},
		{"a.md", "---\ndate: 2026-01-01\n---\n" + claude + "\n", transcript.FormatMarkdown},
		{"a.txt", "The answer was\n" + `{"port": 80}` + "\nand no more.\n", transcript.FormatText},
		{"a", "# Format\n\n" + `{"port": 80}` + "\n", transcript.FormatMarkdown},
		{"a.md", claude + "\n", transcript.FormatClaude},
		{"a.jsonl", "cut off\n" + claude + "\n", transcript.FormatClaude},
		{"a.jsonl", "cut off\n" + `{"port": 80}` + "\n", transcript.FormatUnknown},
		{"a.txt", `{"port": 80}` + "\n" + `{"port": 81}` + "\n", transcript.FormatUnknown},
	} {
		turns, r := read(t, tt.data, transcript.Options{Object: tt.object})
		if r.Format() != tt.want {
			t.Errorf("%s: %s, want %s, of\n%s", tt.object, r.Format(), tt.want, tt.data)
		}
		if len(turns) == 0 && tt.want != transcript.FormatUnknown {
			t.Errorf("%s: no turn of\n%s", tt.object, tt.data)
		}
	}
}
