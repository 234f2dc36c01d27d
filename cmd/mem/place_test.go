package main_test

import (
	"os"
	"path/filepath"
	"testing"

	main "github.com/mneme-ai/mneme/cmd/mem"
	"github.com/mneme-ai/mneme/shared/questions"
)

// Folders as git lays them out: every worktree of a repository is one project,
// a submodule and a neighbour are others.
func TestProjectIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remote := "[core]\n\tbare = false\n[remote \"up\"]\n\turl = git@h.dev:other/fork.git\n[remote \"origin\"]\n\turl = https://user:token@h.dev/Acme/Shop.git\n"
	write("shop/.git/config", remote)
	write("shop/.git/worktrees/fix/commondir", "../..\n")
	write("shop/cmd/main.go", "")
	write("trees/fix/.git", "gitdir: "+filepath.Join(dir, "shop/.git/worktrees/fix")+"\n")
	write("trees/fix/cmd/main.go", "")
	write("shop/vendored/.git", "gitdir: ../.git/modules/vendored\n") // a submodule
	write("shop/.git/modules/vendored/config", "[remote \"origin\"]\n\turl = git@h.dev:lib/json.git\n")
	write("local/.git/config", "[core]\n")
	write("local/.git/worktrees/w/commondir", "../..\n")
	write("local/sub/x", "")
	write("local-w/.git", "gitdir: ../local/.git/worktrees/w\n")
	write("bare.git/config", remote)
	write("bare.git/worktrees/b/commondir", "../..\n")
	write("bare-b/.git", "gitdir: ../bare.git/worktrees/b\n")
	write("plain/x", "")
	write("broken/.git", "no such thing\n")

	at := func(path string) string { return filepath.Join(dir, path) }
	byPath := func(path string) string {
		name, _ := questions.Projects{}.Resolve(at(path), "")
		return name
	}
	mapped := questions.Projects{Mappings: []questions.Mapping{
		{CWD: at("trees/fix/cmd"), Project: "tools"}, {CWD: at("local"), Project: "mine"}, {CWD: at("plain"), Project: "plain"},
	}}
	for _, tc := range []struct {
		dir    string
		mapped questions.Projects
		want   string
	}{
		{"shop", questions.Projects{}, "acme.shop"},
		{"shop/cmd", questions.Projects{}, "acme.shop"},
		{"trees/fix", questions.Projects{}, "acme.shop"},
		{"trees/fix/cmd", questions.Projects{}, "acme.shop"},
		{"shop/vendored", questions.Projects{}, "lib.json"},
		{"bare-b", questions.Projects{}, "acme.shop"},
		{"local", questions.Projects{}, byPath("local")},
		{"local/sub", questions.Projects{}, byPath("local")},
		{"local-w", questions.Projects{}, byPath("local")},
		{"plain", questions.Projects{}, byPath("plain")},
		{"broken", questions.Projects{}, byPath("broken")},
		{"local/sub", mapped, "mine"},
		{"local-w", mapped, "mine"}, // by the root that it shares
		{"trees/fix/cmd", mapped, "tools"},
		{"trees/fix", mapped, "acme.shop"},
		{"plain", mapped, "plain"},
	} {
		if got := main.ProjectIn(tc.mapped, at(tc.dir)); got != tc.want {
			t.Errorf("%s with %d mappings: %q, want %q", tc.dir, len(tc.mapped.Mappings), got, tc.want)
		}
	}
}
