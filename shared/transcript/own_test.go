package transcript_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/transcript"
)

// A marked block of a document is seen whole, however long it is and whatever
// stands in it; a tag without its end is somebody's words.
func TestMarkedBlockOfDocument(t *testing.T) {
	t.Parallel()
	block := "<mneme-memory>\n1. Retries stop after 5 attempts.\n\n# Heading of a quote\n\n```\ncode\n\n" +
		strings.Repeat("2. Deploys wait for the migration. ", 20) + "\n\n3. The end.\n</mneme-memory>"
	tests := []struct {
		name, data string
		want       []string // what may be evidence
	}{
		{"between headings", "# A\n\nfirst\n\n" + block + "\n\nlast\n", []string{"# A\n\nfirst", "last"}},
		{"quoted", "# A\n\nfirst\n\n> " + strings.ReplaceAll(block, "\n", "\n> ") + "\n\nlast\n", []string{"# A\n\nfirst", ">", "last"}},
		{"on one line", "# A\n\n" + strings.Join(strings.Fields(block), " ") + "\n\nlast\n", []string{"# A", "last"}},
		{"alone", block, nil},
		{"without an end", "# A\n\n<mneme-memory> is the tag.\n\n" + strings.Repeat("Some words. ", 4) + "\n", []string{"# A\n\n<mneme-memory> is the tag.\n\n" + strings.TrimSpace(strings.Repeat("Some words. ", 4))}},
	}
	for _, tt := range tests {
		turns, _ := read(t, tt.data, transcript.Options{Object: "d/x.md", NoteChars: 100})
		checkPieces(t, tt.data, turns)
		var got []string
		for _, turn := range turns {
			if s := strings.TrimSpace(turn.Text()); !turn.Derived {
				got = append(got, s)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}
