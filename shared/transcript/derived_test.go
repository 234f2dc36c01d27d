package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/transcript"
)

const skillText = "---\nname: shop-decisions\ndescription: 'Recalls what was decided.'\ngenerated_from: 9c41d0e51f0a77c29c41d0e51f0a77c29c41d0e51f0a77c29c41d0e51f0a77c2\n---\n\n" +
	"<!-- mneme:derived kind=skill -->\n# shop: decisions\n\n- Retries stop after 5 attempts. [1f0a77c2]\n\n## More\n\n- Deploys never start on a Friday. [9c41d0e5]\n<!-- /mneme:derived -->\n"

// turnsOf are the texts of a file's turns, those of Mneme's own with a star.
func turnsOf(t *testing.T, name, text string) (out []string) {
	t.Helper()
	turns, _ := read(t, text, transcript.Options{Object: name})
	for _, turn := range turns {
		s := ""
		if turn.Derived {
			s = "*"
		}
		for i, p := range turn.Pieces {
			if i > 0 {
				s += "|"
			}
			s += p.Text
			if got := text[p.Start:p.End]; strings.HasSuffix(name, ".md") && got != p.Text {
				t.Errorf("a piece is not its bytes: %q and %q", p.Text, got)
			}
		}
		out = append(out, s)
	}
	return out
}

// A document that Mneme wrote comes back as a file: nothing between its lines is
// evidence, what people write below the second one is.
func TestMarkedFile(t *testing.T) {
	t.Parallel()
	open, end := derived.Marker(derived.KindVault), derived.MarkerClose
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"a skill", skillText, []string{"*# shop: decisions\n\n- Retries stop after 5 attempts. [1f0a77c2]", "*## More\n\n- Deploys never start on a Friday. [9c41d0e5]"}},
		{"the front matter alone", "---\ngenerated_from: \"9c41d0e51f0a77c29c41d0e51f0a77c29c41d0e51f0a77c29c41d0e51f0a77c2\"\n---\n# A\n\nb\n", []string{"*# A\n\nb"}},
		{"of somebody else's generator", "---\ngenerated_from: openapi.yaml\n---\n# A\n\nb\n", []string{"# A\n\nb"}},
		{"a person's section below", "# Shop\n\n" + open + "\n\n- a\n\n" + end + "\n\n## Notes\n\nMine.\n", []string{"# Shop", "*- a", "## Notes\n\nMine."}},
		{"a person's section below, where the front matter says it too", "---\ngenerated_by: mneme\n---\n" + open + "\n- a\n" + end + "\n## Notes\n\nMine.\n", []string{"*- a", "## Notes\n\nMine."}},
		{"without its end", "Before.\n\n" + open + "\n# A\n\na\n\n## Notes\n\nb\n", []string{"Before.", "*# A\n\na", "*## Notes\n\nb"}},
		{"quoted", "> " + open + "\n> a\n> " + end + "\nb\n", []string{"*> a", "b"}},
		{"a line of it in a sentence", "Write " + open + " first.\n", []string{"Write " + open + " first."}},
		{"shown in a fence", "Like this:\n\n```\n" + open + "\n```\n\nAnd so on.\n", []string{"Like this:\n\n```\n" + open + "\n```\n\nAnd so on."}},
		{"Windows line ends", strings.ReplaceAll("# A\n"+open+"\nb\n"+end+"\nc\n", "\n", "\r\n"), []string{"# A", "*b", "c"}},
	} {
		if diff := cmp.Diff(tc.want, turnsOf(t, "shop/a.md", tc.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"a", "*b", "c"}, turnsOf(t, "shop/a.txt", "a\n"+open+"\nb\n"+end+"\nc\n")); diff != "" {
		t.Errorf("a plain text (-want +got):\n%s", diff)
	}
}

// It comes back in what people and assistants paste: it is cut out, its front matter
// with it, and what stands around it is read.
func TestMarkedMessage(t *testing.T) {
	t.Parallel()
	say := func(role, text string) string {
		b, err := json.Marshal(map[string]any{"role": role, "content": text})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	filled := strings.Replace(skillText, "## More", strings.Repeat("And so on. ", 10), 1)
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"alone", skillText, []string{"*" + skillText}},
		{"between words", "Here it is:\n\n" + skillText + "\nWhat of it?", []string{"Here it is:|What of it?"}},
		{"between rulers", "A\n\n---\n\nB\n---\n<!-- mneme:derived kind=skill -->\nx\n<!-- /mneme:derived -->\nC", []string{"A\n\n---\n\nB\n---|C"}},
		{"without its end", "<!-- mneme:derived kind=skill -->\nx", []string{"<!-- mneme:derived kind=skill -->\nx"}},
		{"filled anew", "It says: " + strings.Join(strings.Fields(filled), " ") + " Good.", []string{"It says:|Good."}},
		{"filled anew, without its front matter", "A --- b --- " + strings.Join(strings.Fields(filled[strings.Index(filled, "<!--"):]), " ") + " Good.", []string{"A --- b ---|Good."}},
		{"filled anew and quoted", "It says:\n> " + strings.Join(strings.Fields(filled), "\n> ") + "\nGood.", []string{"It says:\n>|Good."}},
		{"words about it", "Between `<!-- mneme:derived kind=skill -->` and `<!-- /mneme:derived -->` it stands.", []string{"Between `<!-- mneme:derived kind=skill -->` and `<!-- /mneme:derived -->` it stands."}},
	} {
		for _, role := range []string{"user", "assistant"} {
			got := turnsOf(t, "shop/a.jsonl", say(role, tc.text)+say("user", "Bye."))
			if diff := cmp.Diff(append(tc.want, "Bye."), got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tc.name, role, diff)
			}
		}
	}
}
