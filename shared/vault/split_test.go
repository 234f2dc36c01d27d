package vault_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	const end = "<!-- /mneme:derived -->\n"
	for _, tc := range []struct {
		name, file  string
		notes, body string
		found       bool
	}{
		{"whole", "a\n" + end + "\n## Notes\nmine\n", "mine\n", "a\n", true},
		{"empty", "a\n" + end + "\n## Notes\n", "", "a\n", true},
		{"without its last line end", "a\n" + end + "\n## Notes", "", "a\n", true},
		{"Windows line ends", "a\r\n<!-- /mneme:derived -->\r\n\r\n## Notes\r\nmine\r\n", "mine\r\n", "a\r\n", true},
		{"the heading taken out", "a\n" + end + "\nmine\n## Notes\nb\n", "\nmine\n## Notes\nb\n", "a\n", true},
		{"the marker taken out", "a\n\n## Notes\nmine\n## Notes\nb\n", "mine\n## Notes\nb\n", "a\n\n", true},
		{"both in the person's text", "a\n" + end + "\n## Notes\nx\n" + end + "## Notes\ny", "x\n" + end + "## Notes\ny", "a\n", true},
		{"front matter that is broken", "--- : [\n\n" + end + "\n## Notes\nmine", "mine", "--- : [\n\n", true},
		{"a heading like it", "a\n### Notes\n## Notes on it\nb", "", "a\n### Notes\n## Notes on it\nb", false},
		{"a marker in a sentence", "a " + end + "b", "", "a " + end + "b", false},
		{"nothing", "", "", "", false},
	} {
		p := vault.Split([]byte(tc.file))
		if string(p.Notes) != tc.notes || string(p.Body) != tc.body || p.Found != tc.found {
			t.Errorf("%s: notes %q, body %q, %t", tc.name, p.Notes, p.Body, p.Found)
		}
	}
}

// A file of headings is split in one pass.
func TestSplitLarge(t *testing.T) {
	t.Parallel()
	file := []byte(strings.Repeat("## Notes\n", 1<<20) + "<!-- /mneme:derived -->\nx")
	if p := vault.Split(file); string(p.Notes) != "x" {
		t.Errorf("%d bytes", len(p.Notes))
	}
}

// Laws: the parts are the file; a region that was rendered is read back byte for
// byte, whatever stands in it; line ends of Windows do not change what Mneme wrote.
func FuzzSplit(f *testing.F) {
	for _, s := range append([]string{"", "mine\n", "\r\n## Notes\n<!-- /mneme:derived -->\n", "---\na: b\n---\n", "x\xff\x00"}, hostile...) {
		f.Add([]byte(s))
	}
	f.Add([]byte(one(vault.Render(project()))))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := vault.Split(b)
		if got := append(append(bytes.Clone(p.Body), p.Open...), p.Notes...); !bytes.Equal(got, b) {
			t.Fatalf("the parts of %q are %q", b, got)
		}
		if !p.Found && len(p.Open)+len(p.Notes) > 0 {
			t.Fatal("parts of a region that there is not")
		}
		m := project()
		m.Notes = []vault.KeptNote{kept("decisions", m.Questions[0].Asked, string(b), 1)}
		v := vault.Render(m)
		got := page(t, v, "decisions.md")
		q := vault.Split([]byte(got))
		if string(q.Notes) != string(b) {
			t.Fatalf("wrote %q, read %q", b, q.Notes)
		}
		mark := vault.MarkOf([]byte(got))
		if !mark.Ours || mark.Notes != memory.Sum(b) || mark.SHA256 != memory.SumString(got) {
			t.Fatalf("%+v", mark)
		}
		windows := strings.ReplaceAll(string(q.Body), "\n", "\r\n") + string(q.Open) + string(q.Notes)
		if vault.MarkOf([]byte(windows)).Body != mark.Body {
			t.Fatal("line ends of Windows count as an edit")
		}
		if ps := vault.Check(v.Files); len(ps) > 0 {
			t.Fatal(ps)
		}
	})
}
