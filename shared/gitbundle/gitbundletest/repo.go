// Package gitbundletest makes real repositories and bundles by the git program,
// for the tests of those who read them. It is imported by _test.go files only.
package gitbundletest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repo is a repository in a temporary folder.
type Repo struct {
	Dir string
	t   testing.TB
	day int
}

// New makes an empty repository, or skips where git is not installed.
func New(t testing.TB) *Repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &Repo{Dir: t.TempDir(), t: t}
	r.Git("init", "-q")
	r.Git("symbolic-ref", "HEAD", "refs/heads/main") // init -b is younger than some gits
	return r
}

// Git runs git in the repository and gives what it prints. Each call is a day
// later than the one before.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.as("Ada", "ada@example.org", args...)
}

func (r *Repo) as(name, mail string, args ...string) string {
	r.t.Helper()
	r.day++
	when := fmt.Sprintf("%d +0130", 1_769_932_800+r.day*86_400)
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GIT_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+mail, "GIT_AUTHOR_DATE="+when,
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_COMMITTER_DATE="+when)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write puts a file into the work tree.
func (r *Repo) Write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits the work tree as it stands and gives the commit's name.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	return r.CommitAs("Ada", "ada@example.org", message)
}

// CommitAs is Commit by another author.
func (r *Repo) CommitAs(name, mail, message string) string {
	r.t.Helper()
	r.Git("add", "-A")
	r.as(name, mail, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message)
	return r.Git("rev-parse", "HEAD")
}

// Bundle makes a bundle of what rev-list arguments name and gives its bytes. A
// first argument of --version goes to git bundle.
func (r *Repo) Bundle(revs ...string) []byte {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "x.bundle")
	args := []string{"bundle", "create", "-q"}
	if len(revs) > 0 && strings.HasPrefix(revs[0], "--version") {
		args, revs = append(args, revs[0]), revs[1:]
	}
	r.Git(append(append(args, file), revs...)...)
	b, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// source is a file of Go with n functions, of which one is changed.
func source(n, changed int) string {
	var b strings.Builder
	b.WriteString("package shop\n")
	for i := range n {
		limit := 5
		if i == changed {
			limit = 3
		}
		fmt.Fprintf(&b, "\n// Retry%d tries again.\nfunc Retry%d(f func() error) error {\n\tfor range %d {\n\t\tif f() == nil {\n\t\t\treturn nil\n\t\t}\n\t}\n\treturn errTried\n}\n", i, i, limit)
	}
	return b.String()
}

// Story is a repository with what histories have: a root, changes, a rename, a
// deletion, a branch and its merge, a second root, a bot, names and messages
// that are not ASCII, another encoding, a link, a mode, a folder that becomes a
// file, a submodule, a commit of nothing, one of many files, binary and large
// files, tags.
func Story(t testing.TB) *Repo {
	t.Helper()
	r := New(t)
	r.Write("retry.go", source(20, -1))
	r.Write("README.md", "# Shop\nfunc NotCode()\n")
	r.Write("a/b/c/deep.py", "class Deep:\n    def reach(self):\n        return 1\n")
	r.Commit("Cap retries at 5\n\nThe upstream bans us after that.\n")
	r.Write("retry.go", source(20, 7))
	r.Commit("Cap the seventh at 3")
	r.Git("tag", "-a", "v1.0.0", "-m", "the first")
	r.Write("größe/naïve \"quoted\"\t.go", "package größe\n\ntype Maß struct{}\n")
	r.CommitAs("Zoë Müller", "zoe@example.org", "Maße in Millimetern\n\nZollmaße führten zu Fehlern. 日本語も.\n\nCo-authored-by: Bo <bo@example.org>")
	r.Git("mv", "retry.go", "again.go")
	r.Commit("Rename retry to again")
	r.Git("checkout", "-q", "-b", "side")
	r.Write("side.go", "package shop\n\nfunc Side() {}\n")
	r.Commit("Keep logs for 30 days\n\nAuditors ask for them.")
	r.Git("checkout", "-q", "main")
	r.CommitAs("dependabot[bot]", "49699333+dependabot[bot]@users.noreply.github.com", "Bump x from 1 to 2")
	r.Git("merge", "-q", "--no-ff", "side", "-m", "Merge branch 'side'")
	r.Git("rm", "-q", "README.md")
	r.Commit("The page is on the wiki now")
	if err := os.Symlink("again.go", filepath.Join(r.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	r.Write("type.go", "package shop\n\nfunc Typed() {}\n")
	r.Commit("A link and a type")
	if err := os.Remove(filepath.Join(r.Dir, "type.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("again.go", filepath.Join(r.Dir, "type.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(r.Dir, "again.go"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Commit("A mode, and a file that is a link now")
	if err := os.RemoveAll(filepath.Join(r.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	r.Write("a", "no folder any more\n")
	r.Write("a.go", "package shop\n\nvar A = 1\n")
	r.Commit("A folder becomes a file")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("12", 20)+",sub")
	r.as("Ada", "ada@example.org", "commit", "-q", "-m", "A submodule")
	r.Git("update-index", "--force-remove", "sub")
	r.Commit("Nothing of note, and the submodule is gone")
	r.Commit("Empty, but it says why\n\nBecause.")
	r.Write("bin.go", "package x\n\x00func Hidden() {}\n")
	r.Write("large.go", "package x\n\nfunc Large() {}\n//"+strings.Repeat("x", 3<<20)+"\n")
	r.Commit("Binary and large")
	for i := range 130 {
		r.Write(fmt.Sprintf("vendor/f%03d.go", i), fmt.Sprintf("package v\n\nfunc Vendored%d() {}\n", i))
	}
	r.Commit("Many files")
	r.Git("config", "i18n.commitEncoding", "ISO-8859-1")
	r.Write("latin.go", "package x\n\nfunc Latin() {}\n")
	r.CommitAs("Zo\xeb", "zoe@example.org", "Gr\xf6\xdfe in Metern")
	r.Git("config", "--unset", "i18n.commitEncoding")
	r.Commit("Bytes that are no text: \xff\xfe, in a message")
	r.Git("checkout", "-q", "--orphan", "other")
	r.Commit("A second root\n\nIts history was kept elsewhere.")
	r.Git("checkout", "-q", "main")
	r.Git("merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "Merge the other root", "other")
	for i := range 12 {
		r.Write("again.go", source(20, i))
		r.Commit(fmt.Sprintf("Try number %d at 3\n\nIt was the slowest.", i))
	}
	r.Git("branch", "-q", "left", "HEAD~4")
	return r
}

// Random makes a history out of a random source: a graph of n commits with
// several roots, merges of up to four, dates that repeat and run backwards, and
// changes anywhere in small trees of many kinds of entries.
func Random(t testing.TB, rnd *rand.Rand, n int) *Repo {
	t.Helper()
	r := New(t)
	var in strings.Builder
	data := func(s string) { fmt.Fprintf(&in, "data %d\n%s\n", len(s), s) }
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&in, "commit refs/heads/b%d\nmark :%d\n", i, i)
		fmt.Fprintf(&in, "author Ada <ada@example.org> %d %+05d\n", 1_769_932_800+rnd.IntN(5)*3600, rnd.IntN(5)*100-200)
		fmt.Fprintf(&in, "committer Ada <ada@example.org> %d +0000\n", 1_769_932_800+rnd.IntN(5)*3600)
		data(fmt.Sprintf("Step %d\n\nWhy.\n", i))
		if i > 1 && rnd.IntN(12) > 0 {
			fmt.Fprintf(&in, "from :%d\n", max(1, i-1-rnd.IntN(5)))
			for k := rnd.IntN(8); k > 5 && i > 8; k-- {
				fmt.Fprintf(&in, "merge :%d\n", i-6-k+5)
			}
		}
		for range rnd.IntN(5) {
			path := string(rune('a' + rnd.IntN(4)))
			for rnd.IntN(2) == 0 {
				path += string("/.-x"[rnd.IntN(4)]) + string(rune('a'+rnd.IntN(4)))
			}
			switch path += []string{"", ".go", ".md"}[rnd.IntN(3)]; rnd.IntN(8) {
			case 0, 1:
				fmt.Fprintf(&in, "D %s\n", path)
			case 2:
				fmt.Fprintf(&in, "M 160000 %040x %s\n", 1+rnd.IntN(3), path)
			default:
				fmt.Fprintf(&in, "M %s inline %s\n", []string{"100644", "100755", "120000"}[rnd.IntN(3)], path)
				var text strings.Builder
				for k := range rnd.IntN(30) {
					fmt.Fprintf(&text, "func F%d() {\n\t%d\n}\n", k, rnd.IntN(3))
				}
				data(strings.TrimSuffix(text.String(), []string{"", "\n"}[rnd.IntN(2)]))
			}
		}
		in.WriteByte('\n')
	}
	cmd := exec.Command("git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = r.Dir, strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	r.Git("symbolic-ref", "HEAD", fmt.Sprintf("refs/heads/b%d", n))
	r.Git("repack", "-q", "-a", "-d", "-f") // fast-import makes hardly any deltas
	return r
}
