package skill_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/skill"
)

func file(front, body string) string { return "---\n" + front + "\n---\n" + body }

func TestLint(t *testing.T) {
	t.Parallel()
	const good = "name: pdf-forms\ndescription: Fills PDF forms. Use when a PDF form is to be filled."
	for _, tc := range []struct {
		name, dir, text string
		want            []string // "line field: words of the message"; a warning begins with w
	}{
		{"right", "pdf-forms", file(good, "\nDo it.\n"), nil},
		{"right, with all that the specification names", "pdf-forms",
			file(good+"\nlicense: MIT\ncompatibility: Requires git\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: ada\n  version: 1.0", "Do it.\n"), nil},
		{"Windows line ends and a byte order mark", "pdf-forms", "\ufeff" + strings.ReplaceAll(file(good, "Do it.\n"), "\n", "\r\n"), nil},
		{"another folder", "pdf", file(good, "a"), []string{`2 name: the folder is "pdf"`}},
		{"no folder yet", "", file(good, "a"), nil},
		{"a long name", "", file("name: "+strings.Repeat("a", 65)+"\ndescription: x", "a"), []string{"2 name: 65 characters, at most 64"}},
		{"capitals", "", file("name: PDF\ndescription: x", "a"), []string{"2 name: \"PDF\" is not of small letters"}},
		{"two hyphens", "", file("name: a--b\ndescription: x", "a"), []string{"2 name: \"a--b\" is not"}},
		{"a hyphen first", "", file("name: -ab\ndescription: x", "a"), []string{"2 name: \"-ab\" is not"}},
		{"a hyphen last", "", file("name: ab-\ndescription: x", "a"), []string{"2 name: \"ab-\" is not"}},
		{"a reserved word", "", file("name: my-claude-skill\ndescription: x", "a"), []string{`2 name: holds the reserved word "claude"`}},
		{"another one", "", file("name: anthropic\ndescription: x", "a"), []string{`2 name: holds the reserved word "anthropic"`}},
		{"no name and no description", "", file("license: MIT", "a"), []string{"0 name: is missing", "0 description: is missing"}},
		{"a description of 1,024 characters", "", file("name: a\ndescription: "+strings.Repeat("ü", 1024), "a"), nil},
		{"a description of 1,025", "", file("name: a\ndescription: "+strings.Repeat("ü", 1025), "a"), []string{"3 description: 1025 characters, at most 1024"}},
		{"a tag in the description", "", file("name: a\ndescription: 'Reads <b>fast</b>.'", "a"), []string{"3 description: holds an XML tag"}},
		{"a comparison is no tag", "", file("name: a\ndescription: 'Counts until a < 5 and b > 7.'", "a"), nil},
		{"the first person", "", file("name: a\ndescription: I can fill forms.", "a"), []string{`3 description: speaks in the first or second person ("I")`}},
		{"the second person", "", file("name: a\ndescription: You can use this.", "a"), []string{`3 description: speaks in the first or second person ("You")`}},
		{"a word that begins so", "", file("name: a\ndescription: Iterates over youtube links.", "a"), nil},
		{"an unknown field", "", file(good+"\nauthor: ada", "a"), []string{"4 author: no loader knows this field"}},
		{"fields of one loader", "", file(good+"\nmodel: small\nwhen_to_use: Often.", "a"), []string{"w4 model: only Claude Code reads", "w5 when_to_use: is beyond"}},
		{"a long when_to_use", "", file(good+"\nwhen_to_use: "+strings.Repeat("a", 513), "a"), []string{"4 when_to_use: 513 characters, at most 512", "w4 when_to_use: is beyond"}},
		{"a long compatibility", "", file(good+"\ncompatibility: "+strings.Repeat("a", 501), "a"), []string{"4 compatibility: 501 characters, at most 500"}},
		{"no front matter", "", "# A\n", []string{"0 file: the skill has no front matter"}},
		{"no end of it", "", "---\nname: a\n", []string{"0 file: the skill has no front matter"}},
		{"nothing", "", "", []string{"0 file: the skill has no front matter"}},
		{"not YAML", "", file("name: 'a", "a"), []string{"0 file: not YAML"}},
		{"a list", "", file("- a", "a"), []string{"0 file: the front matter must be a mapping"}},
		{"an anchor", "", file("name: &a b\ndescription: x", "a"), []string{"0 file: anchors and aliases"}},
		{"a field twice", "", file("name: a\nname: b", "a"), []string{`0 file: field "name" stands twice`}},
		{"metadata that is no mapping", "", file(good+"\nmetadata: a", "a"), []string{"0 file: metadata must be a mapping"}},
		{"a source that is none", "", file(good+"\ngenerated_from: abc", "a"), []string{"0 file: generated_from is no sha256"}},
		{"not UTF-8", "", file(good, "\xff"), []string{"0 file: the skill is not UTF-8"}},
		{"too large", "", file(good, strings.Repeat("a", skill.MaxBytes)), []string{"0 file: the skill has 65"}},
		{"no body", "", file(good, "\n\n"), []string{"w5 body: is empty"}},
		{"499 lines", "", file(good, strings.Repeat("a\n", 499)), nil},
		{"500 lines", "", file(good, strings.Repeat("a\n", 500)), []string{"5 body: 500 lines, under 500"}},
		{"a command", "", file(good, "Now: !`date`\n"), []string{"w5 body: holds a command"}},
	} {
		var got []string
		fs := skill.Lint("a/SKILL.md", tc.dir, []byte(tc.text))
		for _, f := range fs {
			if f.File != "a/SKILL.md" || f.Cure == "" || !strings.Contains(f.String(), f.Cure) {
				t.Errorf("%s: %+v", tc.name, f)
			}
			s := ""
			if f.Warning {
				s = "w"
			}
			got = append(got, s+string(rune('0'+f.Line))+" "+f.Field+": "+f.Msg)
		}
		ok := len(got) == len(tc.want)
		for i := range got {
			ok = ok && strings.HasPrefix(got[i], tc.want[i]) || ok && strings.Contains(got[i], strings.TrimPrefix(tc.want[i], "0 file: "))
		}
		if !ok {
			t.Errorf("%s (-want +got):\n%s", tc.name, cmp.Diff(tc.want, got))
		}
		refused := false
		for _, w := range tc.want {
			refused = refused || !strings.HasPrefix(w, "w")
		}
		if err := skill.Err(fs); (err != nil) != refused || err != nil && (!fault.Is(err, fault.Invalid) || fault.HintOf(err) == "") {
			t.Errorf("%s: error %v", tc.name, err)
		}
	}
}

// Parse of Render gives the same skill, whatever its texts are, as long as they are
// texts of one line.
func FuzzRoundTrip(f *testing.F) {
	f.Add("shop-decisions", "Recalls 'it': all #1", "when: so", "9c41d0e5", "MIT", "git", "Bash(git:*)", "a", "yes", "# A\n\nb", false)
	f.Add("1e5", "null", "~", "", "[a]", "{b}", "- c", "0x10", "*x", "---", true)
	f.Add("true", "% a", "@b", "", "`c", "!d", "&e", "2026-01-01", "|", "", true)
	f.Fuzz(func(t *testing.T, name, description, when, from, license, compat, toolName, key, value, body string, portable bool) {
		line := func(s string) string {
			if len(s) > 2000 {
				s = s[:2000]
			}
			return strings.TrimSpace(skill.Clean(strings.ToValidUTF8(s, "")))
		}
		d := skill.Doc{
			Name: line(name), Description: line(description), WhenToUse: line(when), License: line(license), Compatibility: line(compat),
			Body: strings.Trim(strings.NewReplacer("\r", "", "\ufeff", "").Replace(strings.ToValidUTF8(body, "")), "\n"),
		}
		if len(d.Body) > 2000 || strings.TrimSpace(d.Body) == "" {
			d.Body = ""
		}
		if from != "" {
			d.GeneratedFrom = node(from)
		}
		if s := line(toolName); s != "" {
			d.AllowedTools = []string{s, "Read"}
		}
		if k, v := line(key), line(value); k != "" && v != "" && k != "when_to_use" && k != "generated_from" {
			d.Metadata = map[string]string{k: v}
		}
		d.Portable = portable && (d.WhenToUse != "" || d.GeneratedFrom != "")
		text := skill.Render(d)
		got, err := skill.Parse("SKILL.md", []byte(text))
		if d.Name == "" && d.Description == "" && d.WhenToUse == "" && d.GeneratedFrom == "" && d.License == "" && d.Compatibility == "" && d.AllowedTools == nil && d.Metadata == nil {
			return // an empty front matter is refused
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Fatalf("(-rendered +parsed):\n%s\n%s", diff, text)
		}
		if again := skill.Render(got); again != text {
			t.Fatalf("rendered again:\n%s\nat first:\n%s", again, text)
		}
	})
}

// Any bytes are checked, and what passes can be read.
func FuzzLint(f *testing.F) {
	f.Add([]byte(file("name: a\ndescription: x", "b")))
	f.Add([]byte("---\n"))
	f.Add([]byte(file("metadata: {a: b}\nallowed-tools: [a, b]\nx: y", "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := skill.Lint("SKILL.md", "a", data)
		if d, err := skill.Parse("SKILL.md", data); skill.Err(fs) == nil && (err != nil || !skill.ValidName(d.Name)) {
			t.Fatalf("no finding, and %+v, %v", d, err)
		}
	})
}

// Facts of any bytes give a skill without a finding, or none.
func FuzzDraft(f *testing.F) {
	f.Add("shop", "decisions", "Why?", "a fact", "user")
	f.Add("a.b", "_synthesis", "<x>", "---\n```", "assistant")
	f.Fuzz(func(t *testing.T, project, question, wording, text, trust string) {
		src := source
		src.Wording, src.Facts = wording, append([]skill.Fact{fact("user", text), {Text: text, Trust: "user"}}, source.Facts...)
		src.Facts[0].Trust = src.Facts[1].Trust
		if skill.MadeName(project, question) == "" {
			t.Fatal("no name")
		}
		if d, _, err := skill.Draft(src, skill.Options{Name: skill.MadeName(project, question), IncludeToolOutput: true}); err != nil {
			t.Fatalf("%v\n%s", err, skill.Render(d))
		} else if got, err := skill.Parse("SKILL.md", []byte(skill.Render(d))); err != nil {
			t.Fatal(err)
		} else if diff := cmp.Diff(d, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
