package transcript_test

import (
	"math/rand/v2"
	"strings"
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

// A note is cut into parts before secrets are looked for: a private key, and a
// long word such as a key in base64, stay in one part.
func TestNoteKeepsKeysWhole(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 33))
	letters := func(n int) string {
		const set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		b := make([]byte, n)
		for i := range b {
			b[i] = set[r.IntN(len(set))]
		}
		return string(b)
	}
	for _, head := range []string{"RSA PRIVATE KEY-----\n", "PGP PRIVATE KEY BLOCK-----\n\n", "RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0F\n\n"} {
		for _, before := range []int{0, 10, 60, 200} {
			pem := "-----BEGIN " + head
			for range 50 {
				pem += letters(64) + "\n"
			}
			pem += "-----END " + head[:strings.Index(head, "\n")]
			word := letters(4500)
			prose := strings.Repeat("We keep it so.\n", before)
			commented := "# " + strings.ReplaceAll(pem, "\n", "\n# ")
			n := 0
			for _, turn := range checkReading(t, "Intro.\n\n"+prose+"\n"+commented+"\n\n# Next\n\nAnd so on.\n", transcript.Options{Object: "a.md"}) {
				n += strings.Count(turn.Text(), "-----")
				if turn.Heading != "" && turn.Heading != "Next" && !strings.HasPrefix(turn.Heading, "-----BEGIN") || strings.Contains(turn.Text(), keyLine(pem)) && !strings.Contains(turn.Text(), commented) {
					t.Errorf("commented %.20q after %d lines: heading %q", head, before, turn.Heading)
				}
			}
			if n != 4 {
				t.Errorf("commented %.20q after %d lines: %d signs of a key, want 4", head, before, n)
			}
			for _, object := range []string{"a.md", "a.txt"} {
				data := "Intro.\n\n" + prose + pem + "\n" + prose + "\nkey: " + word + "\n" + prose
				wholeKey, wholeWord := false, false
				for _, turn := range checkReading(t, data, transcript.Options{Object: object}) {
					wholeKey = wholeKey || strings.Contains(turn.Text(), pem)
					wholeWord = wholeWord || strings.Contains(turn.Text(), word)
				}
				if !wholeKey || !wholeWord {
					t.Errorf("%s, %.20q after %d lines: key whole %t, word whole %t", object, head, before, wholeKey, wholeWord)
				}
			}
		}
	}
}

// keyLine is a line from the middle of a key.
func keyLine(pem string) string { return strings.Split(pem, "\n")[20] }
