package questions_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/questions"
)

const mappingFile = `mappings:
  - cwd: /home/ada/src/shop
    project: shop
  - cwd: /home/*/work/**/billing
    project: billing
  - {cwd: 'C:\src\till\', project: till}
  - cwd: /opt
    project: opt
`

func TestResolve(t *testing.T) {
	t.Parallel()
	p, err := questions.ParseProjects("projects.yaml", []byte(mappingFile))
	if err != nil {
		t.Fatal(err)
	}
	sha8 := func(s string) string { return memory.SumString(s).Short() }
	tests := []struct{ cwd, remote, want, how string }{
		{"/home/ada/src/shop", "", "shop", questions.HowMapping},
		{"/home/ada/src/shop/", "", "shop", questions.HowMapping},
		{"/home/ada/src/shop/cmd/x", "git@github.com:a/b.git", "shop", questions.HowMapping},
		{"/home/ada/src/shopping", "", "shopping-" + sha8("/home/ada/src/shopping"), questions.HowCWD},
		{"/home/bob/work/billing", "", "billing", questions.HowMapping},
		{"/home/bob/work/2024/q1/billing/api", "", "billing", questions.HowMapping},
		{"/home/bob/x/work/billing", "", "billing-" + sha8("/home/bob/x/work/billing"), questions.HowCWD},
		{`c:\src\till\ui`, "", "till", questions.HowMapping},
		{`D:\src\My Till`, "", "my-till-" + sha8(`D:\src\My Till`), questions.HowCWD},
		{"/w/app", "git@github.com:Acme/Shop.git", "acme.shop", questions.HowRemote},
		{"/w/app", "https://user:token@github.com/acme/shop", "acme.shop", questions.HowRemote},
		{"/w/app", "ssh://git@git.acme.dev:2222/acme/shop.git/", "acme.shop", questions.HowRemote},
		{"/w/app", "https://gitlab.com/group/sub/shop.git", "group.sub.shop", questions.HowRemote},
		{"/w/app", "https://git.acme.dev/~ada/shop", "ada.shop-" + sha8("~ada/shop"), questions.HowRemote},
		{"/w/app", "file:///srv/git/app.git", "app-" + sha8("/w/app"), questions.HowCWD},
		{"/w/app", "../other", "app-" + sha8("/w/app"), questions.HowCWD},
		{"/w/app", `C:\git\app`, "app-" + sha8("/w/app"), questions.HowCWD},
		{"/w/My App (new)", "", "my-app-new-" + sha8("/w/My App (new)"), questions.HowCWD},
		{"/w/.dotfiles", "", "dotfiles-" + sha8("/w/.dotfiles"), questions.HowCWD},
		{"/w/проект", "", "project-" + sha8("/w/проект"), questions.HowCWD},
		{"/", "", "project-" + sha8("/"), questions.HowCWD},
		{"/w/" + strings.Repeat("a", 80), "", strings.Repeat("a", 54) + "-" + sha8("/w/"+strings.Repeat("a", 80)), questions.HowCWD},
		{"/w/app/.claude/worktrees/fix-retries", "", "app-" + sha8("/w/app"), questions.HowCWD},
		{"/w/app/.claude/worktrees/fix-retries/cmd", "", "app-" + sha8("/w/app"), questions.HowCWD},
		{`D:\src\app\.claude\worktrees\x`, "", "app-" + sha8(`D:\src\app`), questions.HowCWD},
		{"/home/ada/src/shop/.claude/worktrees/x", "git@github.com:a/b.git", "shop", questions.HowMapping},
		{"/w/app/.claude/worktrees/", "", "worktrees-" + sha8("/w/app/.claude/worktrees"), questions.HowCWD},
		{"relative", "", "relative-" + sha8("relative"), questions.HowCWD},
		{"", "https://github.com/acme/shop", "acme.shop", questions.HowRemote},
		{" ", "", "", questions.HowNone},
	}
	for _, tc := range tests {
		project, how := p.Resolve(tc.cwd, tc.remote)
		if project != tc.want || how != tc.how {
			t.Errorf("Resolve(%q, %q) = %q, %q; want %q, %q", tc.cwd, tc.remote, project, how, tc.want, tc.how)
		}
	}
}

// Who sees the disk gives the root that all worktrees share.
func TestResolveIn(t *testing.T) {
	t.Parallel()
	p, err := questions.ParseProjects("projects.yaml", []byte(mappingFile+"  - {cwd: /trees/special, project: special}\n"))
	if err != nil {
		t.Fatal(err)
	}
	sha8 := func(s string) string { return memory.SumString(s).Short() }
	for _, tc := range []struct{ cwd, root, remote, want, how string }{
		{"/trees/x", "/home/ada/src/shop", "git@github.com:a/b.git", "shop", questions.HowMapping},
		{"/trees/special/cmd", "/home/ada/src/shop", "", "special", questions.HowMapping}, // the nearer folder's
		{"/trees/x", "/w/app", "git@github.com:Acme/Shop.git", "acme.shop", questions.HowRemote},
		{"/trees/x", "/w/app", "", "app-" + sha8("/w/app"), questions.HowCWD},
		{"/w/app/sub", "/w/app", "", "app-" + sha8("/w/app"), questions.HowCWD},
		{"/w/app", "", "", "app-" + sha8("/w/app"), questions.HowCWD},
	} {
		project, how := p.ResolveIn(tc.cwd, tc.root, tc.remote)
		if project != tc.want || how != tc.how {
			t.Errorf("ResolveIn(%q, %q, %q) = %q, %q; want %q, %q", tc.cwd, tc.root, tc.remote, project, how, tc.want, tc.how)
		}
	}
}

func TestResolveFirstMappingCounts(t *testing.T) {
	t.Parallel()
	p, err := questions.ParseProjects("p.yaml", []byte("mappings:\n  - {cwd: /a/b, project: inner}\n  - {cwd: /a, project: outer}\n  - {cwd: /, project: rest}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for cwd, want := range map[string]string{"/a/b/c": "inner", "/a/c": "outer", "/z": "rest"} {
		if got, _ := p.Resolve(cwd, ""); got != want {
			t.Errorf("Resolve(%q) = %q, want %q", cwd, got, want)
		}
	}
}

// Two folders of one name, or two repositories of one name, never share a
// memory.
func TestResolveKeepsProjectsApart(t *testing.T) {
	t.Parallel()
	var p questions.Projects
	pairs := []struct{ cwdA, remoteA, cwdB, remoteB string }{
		{"/a/app", "", "/b/app", ""},
		{"/a", "git@h.dev:ada/app", "/a", "git@h.dev:bob/app"},
		{"/a", "git@h.dev:a-b/c", "/a", "git@h.dev:a/b-c"},
		{"/a", "git@h.dev:x/a b", "/a", "git@h.dev:x/a-b"},
	}
	for _, pair := range pairs {
		a, _ := p.Resolve(pair.cwdA, pair.remoteA)
		b, _ := p.Resolve(pair.cwdB, pair.remoteB)
		if a == b {
			t.Errorf("%+v: both are %q", pair, a)
		}
	}
}

func TestParseProjectsRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"unknown field": {"mapping: []\n", `p.yaml:1: unknown field "mapping"`},
		"typo":          {"mappings:\n  - cwd: /a\n    projct: b\n", `p.yaml:3: unknown field "projct"`},
		"relative":      {"mappings:\n  - {cwd: src/a, project: b}\n", `p.yaml:2: cwd "src/a" is not an absolute path`},
		"home":          {"mappings:\n  - {cwd: ~/a, project: b}\n", `p.yaml:2: cwd "~/a" is not an absolute path`},
		"bad pattern":   {"mappings:\n  - {cwd: '/a/[b', project: b}\n", `p.yaml:2: cwd "/a/[b" is not a valid pattern`},
		"bad project":   {"mappings:\n  - {cwd: /a, project: B}\n", `p.yaml:2: project "B" is not a valid name`},
		"no project":    {"mappings:\n  - cwd: /a\n", "p.yaml:2: a mapping lacks one of its two fields"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := questions.ParseProjects("p.yaml", []byte(tc.in))
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("got %v, want invalid", err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("/home/ada/shop", "git@github.com:acme/shop.git", "/home/*/**/x")
	f.Add(`C:\x`, "https://u:p@h/a/b", "/**/a/**/a/**/b")
	f.Add("\xff/é", "a:b", "/")
	f.Fuzz(func(t *testing.T, cwd, remote, pattern string) {
		p := questions.Projects{Mappings: []questions.Mapping{{CWD: pattern, Project: "mapped"}}}
		name, how := p.Resolve(cwd, remote)
		if how == questions.HowNone {
			if name != "" {
				t.Fatalf("a name %q from nothing", name)
			}
			return
		}
		if !memory.ValidName(name) {
			t.Fatalf("Resolve(%q, %q) = %q, which is no valid name", cwd, remote, name)
		}
	})
}

func FuzzParseProjects(f *testing.F) {
	f.Add([]byte(mappingFile))
	f.Add([]byte("mappings:\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := questions.ParseProjects("p.yaml", data)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("kind %v of %v, want invalid", fault.KindOf(err), err)
			}
			return
		}
		for _, m := range p.Mappings {
			if !memory.ValidName(m.Project) {
				t.Fatalf("project %q", m.Project)
			}
		}
	})
}
