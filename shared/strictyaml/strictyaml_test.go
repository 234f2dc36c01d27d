package strictyaml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// team is a file with a field of every kind.
type team struct {
	Name, Motto string
	Open        bool
	Members     []string
	Rooms       map[string]string
}

func parse(data string) (t team, err error) {
	f := strictyaml.File{Name: "team.yaml", Noun: "file", MaxBytes: 4096}
	root, err := f.Root([]byte(data))
	if err != nil {
		return t, err
	}
	err = f.Mapping(root, "a team", strictyaml.Fields{
		"name": func(n *strictyaml.Node) error {
			if t.Name, err = f.Text(n, "name"); err == nil && t.Name == "nobody" {
				return f.At(n, fault.At(fault.Internal, "elsewhere", "name somebody", "nobody is no team"))
			}
			return err
		},
		"motto": func(n *strictyaml.Node) (err error) { t.Motto, err = f.String(n, "motto"); return err },
		"open":  func(n *strictyaml.Node) (err error) { t.Open, err = f.Bool(n, "open"); return err },
		"members": func(n *strictyaml.Node) error {
			return f.Sequence(n, "members", 3, func(n *strictyaml.Node) error {
				v, err := f.Text(n, "a member")
				t.Members = append(t.Members, v)
				return err
			})
		},
		"rooms": func(n *strictyaml.Node) error {
			t.Rooms = map[string]string{}
			return f.Each(n, "rooms", "a mapping of rooms", func(k, v *strictyaml.Node) (err error) {
				t.Rooms[k.Value], err = f.Text(v, "room "+k.Value)
				return err
			})
		},
	})
	return t, err
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		want team
	}{
		"all":        {"# us\nname: ' core '\nmotto: ' less '\nopen: true\nmembers: [ada, 7, 2026-01-02]\nrooms: {A 1: x, ~: y}\n", team{"core", " less ", true, []string{"ada", "7", "2026-01-02"}, map[string]string{"A 1": "x", "~": "y"}}},
		"no list":    {"members:\nname: true\n", team{Name: "true"}},
		"empty list": {"members: []\n", team{}},
		"json":       {`{"name": "x", "members": ["a"]}`, team{Name: "x", Members: []string{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// bomb stands for 9^9 words in some 200 bytes.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 8), i)
	}
	return b.String()
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want, hint string }{
		"empty":           {"", "team.yaml:1: the file is empty", ""},
		"comments only":   {"# nothing\n", "team.yaml:1: the file is empty", ""},
		"no mapping":      {"- a\n", "team.yaml:1: a team must be a mapping of fields", ""},
		"unknown field":   {"name: a\nnmae: b\n", `team.yaml:2: unknown field "nmae"`, "the fields of a team are members, motto, name, open, rooms"},
		"repeated field":  {"name: a\nopen: true\nname: b\n", `team.yaml:3: field "name" stands twice, first at line 1`, "remove one of them"},
		"repeated room":   {"rooms:\n  a: x\n  a: y\n", `team.yaml:3: field "a" stands twice, first at line 2`, "remove one of them"},
		"list as name":    {"? [a]\n: b\n", "team.yaml:1: a field's name is one word", ""},
		"merge":           {"name: a\n<<: {open: true}\n", `team.yaml:2: unknown field "<<"`, "the fields of a team are members, motto, name, open, rooms"},
		"text is a list":  {"name: [a]\n", "team.yaml:1: name must be text", ""},
		"null text":       {"open: true\nname:\n", "team.yaml:2: name must be text", ""},
		"blank text":      {"name: '  '\n", "team.yaml:1: name is empty", ""},
		"bytes":           {"name: !!binary aGk=\n", "team.yaml:1: name must be text", ""},
		"own tag":         {"name: !mine a\n", "team.yaml:1: name must be text", ""},
		"number":          {"motto: 12\n", "team.yaml:1: motto must be text", "put it between quotes"},
		"empty string":    {"motto: ''\n", "team.yaml:1: motto is empty", ""},
		"no bool":         {"open: perhaps\n", `team.yaml:1: open must be true or false, not "perhaps"`, ""},
		"list is text":    {"members: ada\n", "team.yaml:1: members must be a list", ""},
		"long list":       {"members:\n  [a, b, c, d]\n", "team.yaml:2: members has 4 entries, at most 3 are allowed", ""},
		"entry":           {"members:\n  - a\n  - {b: c}\n", "team.yaml:3: a member must be text", ""},
		"rooms":           {"rooms: a\n", "team.yaml:1: rooms must be a mapping of rooms", ""},
		"anchor":          {"name: &a x\n", "team.yaml:1: anchors and aliases are not allowed", "write the value out"},
		"anchored null":   {"members: &a\n", "team.yaml:1: anchors and aliases are not allowed", "write the value out"},
		"anchored key":    {"&a name: x\n", "team.yaml:1: anchors and aliases are not allowed", "write the value out"},
		"alias":           {"members:\n  - &a x\n  - *a\n", "team.yaml:2: anchors and aliases are not allowed", "write the value out"},
		"alias of all":    {"name: x\nrooms: *a\n", "team.yaml:1: not YAML at or below this line: unknown anchor 'a' referenced", ""},
		"bomb":            {"rooms:\n  " + strings.ReplaceAll(bomb(), "\n", "\n  "), "team.yaml:2: anchors and aliases are not allowed", "write the value out"},
		"two documents":   {"name: a\n---\nname: b\n", "team.yaml:2: a second YAML document begins here", "keep one document a file"},
		"tab":             {"name: a\n\topen: true\n", "team.yaml:2: not YAML at or below this line: found a tab character that violates indentation", ""},
		"open list":       {"name: a\nmembers: [\n", "team.yaml:3: not YAML at or below this line: did not find expected node content", ""},
		"broken second":   {"name: a\n---\n[\n", "team.yaml:4: not YAML at or below this line: did not find expected node content", ""},
		"too large":       {strings.Repeat("#", 4097), "team.yaml: the file has 4097 bytes, at most 4096 are allowed", ""},
		"value's own say": {"\nname: nobody\n", "team.yaml:2: nobody is no team", "name somebody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tt.in)
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("%v is not invalid", err)
			}
			if d := cmp.Diff([2]string{tt.want, tt.hint}, [2]string{err.Error(), fault.HintOf(err)}); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	f := strictyaml.File{Name: "deep.yaml", Noun: "file", MaxBytes: 1 << 20}
	if _, err := f.Root([]byte(strings.Repeat("[", 1<<18))); !fault.Is(err, fault.Invalid) {
		t.Errorf("256 Ki open lists: %v", err)
	}
}

// Document tells a file that holds nothing from one that is broken.
func TestDocument(t *testing.T) {
	t.Parallel()
	f := strictyaml.File{Name: "f", Noun: "file", MaxBytes: 100}
	for _, in := range []string{"", "\n", "# x\n"} {
		if n, err := f.Document([]byte(in)); n != nil || err != nil {
			t.Errorf("%q: %v, %v", in, n, err)
		}
	}
	if n, err := f.Document([]byte("~\n")); err != nil || n.ShortTag() != "!!null" {
		t.Errorf("%v, %v", n, err)
	}
}

// An error that has no place of its own stays as it is.
func TestAt(t *testing.T) {
	t.Parallel()
	f := strictyaml.File{Name: "f", Noun: "file", MaxBytes: 100}
	plain := errors.New("x")
	if err := f.At(&strictyaml.Node{Line: 3}, plain); err != plain {
		t.Errorf("%v", err)
	}
	if err := f.At(&strictyaml.Node{Line: 3}, nil); err != nil {
		t.Errorf("%v", err)
	}
}

// Whatever stands in a file: it is read, or refused with its name.
func FuzzRead(f *testing.F) {
	f.Add("name: a\nmembers: [a]\nrooms: {b: c}\n")
	f.Add("name: &a x\nmotto: *a\n")
	f.Add(bomb())
	f.Fuzz(func(t *testing.T, data string) {
		got, err := parse(data)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "team.yaml:") {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		n := len(got.Name) + len(got.Motto) + len(strings.Join(got.Members, ""))
		for k, v := range got.Rooms {
			n += len(k) + len(v)
		}
		if n > 4*len(data) { // an escape such as "\L" is three bytes in UTF-8
			t.Fatalf("%d bytes from %d: something was expanded", n, len(data))
		}
	})
}

func ExampleFile() {
	f := strictyaml.File{Name: "team.yaml", Noun: "file", MaxBytes: 64 << 10}
	read := func(data string) {
		root, err := f.Root([]byte(data))
		if err == nil {
			err = f.Mapping(root, "a team", strictyaml.Fields{
				"name": func(n *strictyaml.Node) error {
					v, err := f.Text(n, "name")
					if err == nil {
						fmt.Println("the team", v)
					}
					return err
				},
			})
		}
		if err != nil {
			fmt.Printf("%v (%s)\n", err, fault.HintOf(err))
		}
	}
	read("name: core\n")
	read("# ours\nnmae: core\n")
	// Output:
	// the team core
	// team.yaml:2: unknown field "nmae" (the fields of a team are name)
}
