package vault_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

var update = flag.Bool("update", false, "write the golden pages anew")

// one is all pages as one text.
func one(v *vault.Vault) string {
	var b strings.Builder
	for _, f := range v.Files {
		b.WriteString("==== " + f.Path + "\n" + string(f.Bytes) + "\n")
	}
	return b.String()
}

func page(t *testing.T, v *vault.Vault, path string) string {
	t.Helper()
	for _, f := range v.Files {
		if f.Path == path {
			return string(f.Bytes)
		}
	}
	t.Fatalf("no page %s", path)
	return ""
}

func TestRender(t *testing.T) {
	t.Parallel()
	for _, evidence := range []bool{false, true} {
		m := project()
		m.Evidence = evidence
		v := vault.Render(m)
		golden := filepath.Join("testdata", "pages.txt")
		if evidence {
			golden = filepath.Join("testdata", "evidence.txt")
		}
		got := one(v)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("evidence %t (-want +got):\n%s", evidence, diff)
		}
		for _, p := range vault.Check(v.Files) {
			t.Errorf("evidence %t: %s", evidence, p)
		}
		stats := vault.Stats{Statements: 8, Shown: 8, Superseded: 1, Unresolved: 1, Uncited: 1, Conflicts: 1, Orphans: 1, EmptyAdhoc: 1}
		if diff := cmp.Diff(stats, v.Stats); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	}
}

// Lines of memories lead to what they rest on: an id is that of a statement, of the
// chunk that a model read, or in a synthesis of a memory below. Only what a memory was
// made of counts, as it was when it was read.
func TestRenderSources(t *testing.T) {
	t.Parallel()
	a, b := said("decisions", "The artifact is 11 MB.", 0), said("decisions", "The artifact was 10 MB.", 1)
	rest := said("decisions", "The artifact has a name.", 0)
	other := said("rules", "The artifact is signed.", 0) // of the same chunk as a
	d, r := asked("decisions", "What was decided, and why?", 0, a), asked("rules", "Which rules hold?", 1, other)
	d.Statements = append(d.Statements, b, rest)
	was := vault.Memory{Node: memory.SumString("was"), TextSHA: memory.SumString("as it was"), Parents: []memory.SHA{b.Node}}
	var many []vault.Statement
	for i := range 9 {
		many = append(many, said("many", "Part "+string(rune('1'+i))+" of it.", 10+i))
	}
	big := asked("many", "Which parts are there?", 2, many...)
	line := func(m *vault.Model, path, text string) string {
		t.Helper()
		v := vault.Render(m)
		for _, p := range vault.Check(v.Files) {
			t.Error(p)
		}
		for l := range strings.Lines(page(t, v, path)) {
			if rest, ok := strings.CutPrefix(l, "- "+text); ok {
				return strings.TrimSpace(rest[:strings.LastIndexByte(rest, '^')])
			}
		}
		t.Fatalf("%s has no line %q", path, text)
		return ""
	}
	chunk := a.Spans[0].Span.Chunk
	to := func(s vault.Statement) string {
		return "[[decisions#^" + s.Node.Short() + "|decisions " + s.Node.Short() + "]]"
	}
	for _, tc := range []struct {
		name string
		id   memory.SHA
		read []memory.SHA
		want string
	}{
		{"a statement", a.Node, []memory.SHA{d.Memory.Node}, to(a)},
		{"a chunk, of which another question and another memory kept too", chunk, []memory.SHA{d.Memory.Node}, to(a)},
		{"a chunk that two memories were made of", chunk, []memory.SHA{d.Memory.Node, r.Memory.Node}, to(a) + " [[rules#^" + other.Node.Short() + "|rules " + other.Node.Short() + "]]"},
		{"a memory", d.Memory.TextSHA, []memory.SHA{d.Memory.Node}, "[[decisions]] " + to(a)},
		{"a memory that is another by now", was.TextSHA, []memory.SHA{was.Node}, "[[decisions]] " + to(b)},
		{"a memory of many statements", big.Memory.TextSHA, []memory.SHA{big.Memory.Node}, "[[many]]"},
		{"a memory that was not read", r.Memory.TextSHA, []memory.SHA{d.Memory.Node}, "(" + r.Memory.TextSHA.Short() + ") *(names no source)*"},
		{"a statement of a memory that was not read", other.Node, []memory.SHA{d.Memory.Node}, "(" + other.Node.Short() + ") *(names no source)*"},
	} {
		d := d
		d.Read = []vault.Memory{was}
		text := "It is 11 MB. [" + tc.id.Short() + "]\n"
		m := model(nil, d, r, big)
		m.Synthesis = &vault.Synthesis{Question: "What must one know?", Stream: "_synthesis@1a2b3c4d", Ran: true,
			Memory: vault.Memory{Node: memory.SumString("l2"), TextSHA: memory.SumString(text), Text: text, Parents: tc.read}}
		if got := line(m, "index.md", "It is 11 MB. "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		_, made, _ := strings.Cut(page(t, vault.Render(m), "index.md"), "made of the memories of:\n")
		if n := strings.Count(made, "\n- "); n != len(tc.read) {
			t.Errorf("%s: made of %d memories, not %d:\n%s", tc.name, n, len(tc.read), made)
		}
	}
	d.Memory.Text = "The artifact has 11 MB. [" + chunk.Short() + "]\n"
	if got, want := line(model(nil, d, r), "decisions.md", "The artifact has 11 MB. "), "[[#^p-"+a.Node.Short()+"|2026-03-01]]"; got != want {
		t.Errorf("a chunk in a model's memory: %s, want %s", got, want)
	}
}

// The order of a model's parts does not matter.
func TestRenderAnyOrder(t *testing.T) {
	t.Parallel()
	m := project()
	m.Evidence = true
	want := one(vault.Render(m))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		m := project()
		m.Evidence = true
		rng.Shuffle(len(m.Questions), func(i, j int) { m.Questions[i], m.Questions[j] = m.Questions[j], m.Questions[i] })
		rng.Shuffle(len(m.Notes), func(i, j int) { m.Notes[i], m.Notes[j] = m.Notes[j], m.Notes[i] })
		for i := range m.Questions {
			s := m.Questions[i].Statements
			rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		}
		if diff := cmp.Diff(want, one(vault.Render(m))); diff != "" {
			t.Fatalf("another order (-want +got):\n%s", diff)
		}
	}
}

// No text of a transcript, of a model or of a question becomes anything but text.
func TestRenderHostile(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		m := project()
		m.Evidence = true
		s := said("h", text, 8)
		old := said("h", text+" before", 7)
		q := asked("h", text, 9, s, replaced(old, s))
		q.Memory.Text += text + "\n"
		m.Questions = append(m.Questions, q)
		m.Synthesis.Question = text
		m.Synthesis.Memory.Text += text + " [" + s.Node.Short() + "]\n"
		v := vault.Render(m)
		for _, p := range vault.Check(v.Files) {
			t.Errorf("%q: %s", text, p)
		}
		for _, f := range v.Files {
			body := string(vault.Split(f.Bytes).Body)
			if strings.Count(body, "\n<!--") != 1 || strings.Contains(body, "\n## Notes\n") || strings.Contains(body, "\u202e") || strings.ContainsRune(body, 0) {
				t.Errorf("%q: %s:\n%s", text, f.Path, body)
			}
			if f.Note != "" && !strings.Contains(string(vault.Split(f.Bytes).Open), "\n## Notes\n") {
				t.Errorf("%q: %s has no Notes", text, f.Path)
			}
		}
	}
}

// Questions that people would not think of have pages with names that every disk
// takes.
func TestRenderNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Why was the limit raised again? ", 10)[:300]
	m := project()
	for i, id := range []string{"con", "com1.a", "Decisions", "index", "timeline", "trailing.", "a.b", strings.Repeat("x", 63)} {
		m.Questions = append(m.Questions, asked(id, long+id, 10+i, said(id, "It holds. "+id, 8)))
	}
	v := vault.Render(m)
	seen := map[string]string{}
	for _, f := range v.Files {
		low := strings.ToLower(f.Path)
		if seen[low] != "" {
			t.Errorf("%s and %s are one file where case does not count", seen[low], f.Path)
		}
		seen[low] = f.Path
		if name := filepath.Base(f.Path); len(name) > 120 || strings.HasPrefix(name, "con.") || strings.HasPrefix(name, "com1.") || strings.HasSuffix(strings.TrimSuffix(name, ".md"), ".") {
			t.Errorf("%q is no name for Windows", name)
		}
	}
	if v.Stats.NamesMet < 2 { // Decisions and decisions, index
		t.Errorf("%d names met", v.Stats.NamesMet)
	}
	for _, p := range vault.Check(v.Files) {
		t.Error(p)
	}
	if !strings.Contains(one(v), "# "+vault.Inline(long)) {
		t.Error("a question of 300 characters is not shown whole")
	}
}

// Long lists are bounded, and say so; nothing that a page links to is left out.
func TestRenderLong(t *testing.T) {
	t.Parallel()
	m := &vault.Model{Project: "shop", Evidence: true}
	q := asked("decisions", "What was decided?", 0)
	for i := range 1500 {
		s := said("decisions", "Decision number "+memory.SumString(string(rune(i))).Short()+".", i)
		if i%3 == 0 {
			s = replaced(s, said("decisions", "gone", i+1))
		}
		q.Statements = append(q.Statements, s)
	}
	m.Questions = []vault.Question{q}
	v := vault.Render(m)
	for _, p := range vault.Check(v.Files) {
		t.Fatal(p)
	}
	got := page(t, v, "decisions.md")
	if n := strings.Count(got, "~~ (until "); n != 100 {
		t.Errorf("%d superseded statements are listed", n)
	}
	for _, want := range []string{"400 older ones are left out here", "900 older ones are left out here"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if v.Stats.Statements != 1500 || v.Stats.Shown != 200 {
		t.Errorf("%+v", v.Stats)
	}
}

// The checker finds each thing that is broken by hand.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		path, old, new string
		want           string
	}{
		{"index.md", "[[timeline]]", "[[timelime]]", "no page timelime"},
		{"index.md", "[[decisions#^", "[[decisions#^x", "no block decisions#^x"},
		{"index.md", "[[decisions]]", "![[decisions]]", "an embed"},
		{"index.md", "[[decisions]]", "[[decisions#Provenance]]", "a link to a heading"},
		{"decisions.md", "[[#^p-", "[[#^q-", "no block #^q-"},
		{"decisions.md", "^p-", "^x-", "no block"},
		{"decisions.md", " bytes 100 to ", " bytes 100 two ", "provenance without the bytes it means"},
		{"decisions.md", " bytes 100 to ", " bytes 100000 to ", "a citation of no bytes"},
		{"decisions.md", "sha256 `", "sha255 `", "a citation of no bytes, or without their hash"},
		{"decisions.md", "---\ntitle", "--\ntitle", "no front matter"},
		{"decisions.md", "project: shop", "project: [", "not YAML"},
		{"decisions.md", "level: L1\n", "", "front matter without level"},
		{"decisions.md", "level: L1\n", "level: L1\nfoo: 1\n", "foo"},
	} {
		v := vault.Render(project())
		i := slices.IndexFunc(v.Files, func(f vault.File) bool { return f.Path == tc.path })
		was := string(v.Files[i].Bytes)
		v.Files[i].Bytes = []byte(strings.Replace(was, tc.old, tc.new, 1))
		if string(v.Files[i].Bytes) == was {
			t.Errorf("%s holds no %q", tc.path, tc.old)
			continue
		}
		ps := vault.Check(v.Files)
		if !slices.ContainsFunc(ps, func(p vault.Problem) bool { return strings.Contains(p.String(), tc.want) }) {
			t.Errorf("%s, %q for %q: found %v, want %q", tc.path, tc.new, tc.old, ps, tc.want)
		}
	}
	v := vault.Render(project())
	v.Files = slices.DeleteFunc(v.Files, func(f vault.File) bool { return f.Path == "timeline.md" })
	if len(vault.Check(v.Files)) == 0 {
		t.Error("a page that is missing is not missed")
	}
}

// What differs from the page now is named: citations by line, all else by its first
// line; a page that only an editor touched is the same.
func TestDifferences(t *testing.T) {
	t.Parallel()
	v := vault.Render(project())
	now := v.Files[slices.IndexFunc(v.Files, func(f vault.File) bool { return f.Path == "decisions.md" })]
	is := string(now.Bytes)
	lineOf := func(text string) int { return strings.Count(is[:strings.Index(is, text)], "\n") + 1 }
	at := lineOf(" bytes 100 to ")
	for _, tc := range []struct {
		name, text string
		said       bool
		lines      []int
		want       string
	}{
		{name: "nothing", text: is},
		{name: "line ends, a byte order mark and Notes", text: "\ufeff" + strings.ReplaceAll(is, "\n", "\r\n") + "more"},
		{"an object", strings.Replace(is, "`transcripts/", "`transcripts/nosuch/", 1), false, []int{at}, "a citation that is another now: `transcripts/nosuch/"},
		{"bytes", strings.Replace(is, " bytes 100 to ", " bytes 1 to ", 1), true, []int{at}, "bytes 1 to "},
		{"a hash", strings.Replace(is, "sha256 `", "sha256 `00", 1), false, []int{at}, "a citation that is another now"},
		{"what is no hash", strings.Replace(is, "sha256 `", "sha256 `x", 1), false, []int{at}, "a citation that is another now"},
		{"a citation gone", strings.Replace(is, " bytes 100 to ", " bites 100 to ", 1), true, []int{at}, "a citation is missing"},
		{"a line of another block", strings.Replace(is, " ^p-", " ^p-x", 1), false, []int{at}, "a citation that stands on no such line now"},
		{"words", strings.Replace(is, "Releases are signed", "Releases are not signed", 1), false, []int{lineOf("Releases are signed")}, "it is not what Mneme writes now"},
		{"words, of a page of which something is said", strings.Replace(is, "Releases are signed", "Releases are not signed", 1), true, nil, ""},
		{"a line more", strings.Replace(is, "\n## Superseded", "\n- mine\n## Superseded", 1), false, []int{lineOf("## Superseded")}, "it is not what Mneme writes now"},
	} {
		ps := vault.Differences(vault.File{Path: now.Path, Bytes: []byte(tc.text)}, now, tc.said)
		var lines []int
		for _, p := range ps {
			lines = append(lines, p.Line)
			if p.Path != now.Path || !strings.Contains(p.Msg, tc.want) {
				t.Errorf("%s: %s, want %q", tc.name, p, tc.want)
			}
		}
		if !slices.Equal(lines, tc.lines) {
			t.Errorf("%s: lines %v, want %v", tc.name, lines, tc.lines)
		}
	}
}

// A citation is read back as it was written.
func TestCitations(t *testing.T) {
	t.Parallel()
	m := project()
	m.Questions[0].Statements[1].Spans[0].Span.Object = "transcripts/shop/odd `name` 100%.md"
	var objects []string
	secret := false
	for _, c := range vault.Citations(vault.Render(m).Files) {
		objects = append(objects, c.Object)
		if c.Path == "decisions.md" && c.Object == "transcripts/shop/3.jsonl" {
			secret = c.SHA256 == "" && c.Start == 100 && c.Codec == memory.CodecJSONString
		}
	}
	if !slices.Contains(objects, "transcripts/shop/odd `name` 100%.md") || !secret {
		t.Errorf("%t %q", secret, objects)
	}
}
