package compress_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/compress"
)

// repo is a folder under git.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	r := repo{t, t.TempDir()}
	r.git("", "init", "-q")
	r.git("", "config", "core.autocrlf", "false")
	return r
}

func (r repo) git(in string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	cmd.Stdin = strings.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("git %v: %v\n%s\n%s", args, err, errs.String(), head(in))
	}
	return out.String()
}

func (r repo) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// tree is every file with its mode.
func (r repo) tree() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			if d != nil && d.IsDir() && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		if d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		info, _ := d.Info()
		out[strings.TrimPrefix(path, r.dir+"/")] = fmt.Sprint(info.Mode().Perm()&0o100 != 0) + "\n" + string(b)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func someFile(r *rand.Rand) []string {
	var lines []string
	for i := range 1 + r.IntN(150) {
		lines = append(lines, pick(r, "}", "", "\treturn x", "-- a line that looks like a header", "++ another", `\ no note`, fmt.Sprintf("func f%d(a, b int) int {", i), fmt.Sprintf("\tx := a*%d + b", i%7)))
	}
	return lines
}

func edited(r *rand.Rand, lines []string) []string {
	var out []string
	for _, l := range lines {
		switch r.IntN(22) {
		case 0:
		case 1:
			out = append(out, l+" // edited")
		case 2:
			out = append(out, l, "\t// inserted")
		default:
			out = append(out, l)
		}
	}
	return out
}

// TestDiffsStillApply makes changes at random and applies what is left of their
// diffs to the tree from before.
func TestDiffsStillApply(t *testing.T) {
	t.Parallel()
	shorter := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 9))
		g := newRepo(t)
		type file struct {
			lines []string
			eol   string
			end   string
		}
		files := map[string]*file{}
		put := func(name string, f *file) { g.write(name, strings.Join(f.lines, f.eol)+f.end) }
		for i := range 1 + r.IntN(6) {
			f := &file{someFile(r), pick(r, "\n", "\n", "\r\n"), pick(r, "", "\n")}
			name := pick(r, "a b", "f", "naïve", "go.sum.txt") + fmt.Sprint(i)
			files[name] = f
			put(name, f)
		}
		g.write("blob.bin", "\x00\x01")
		g.git("", "add", "-A")
		g.git("", "commit", "-qm", "before")
		n := 0
		for name, f := range files {
			n++
			f.lines = edited(r, f.lines)
			f.end = pick(r, f.end, f.end, "", "\n")
			put(name, f)
			if n == 1 {
				g.git("", "mv", name, name+" moved")
			}
			if n == 2 && os.Chmod(filepath.Join(g.dir, name), 0o755) != nil {
				t.Fatal("chmod")
			}
		}
		g.write("new.txt", "fresh\n")
		if err := os.Remove(filepath.Join(g.dir, "blob.bin")); err != nil {
			t.Fatal(err)
		}
		g.git("", "add", "-A")
		diff := g.git("", "diff", "--cached", "-M", "--binary", fmt.Sprintf("-U%d", pick(r, 0, 1, 3, 8, 25)))
		if seed%3 == 0 {
			g.git("", "commit", "-qm", "after")
			diff = g.git("", "show", "-M", "--binary", "-U6")
			g.git("", "reset", "-q", "--soft", "HEAD~1")
		}
		want := g.tree()
		res := law(t, fmt.Sprint("diff ", seed), diff, compress.Options{Original: seed%2 == 0})
		if res.Kind != compress.Diff && len(diff) >= 500 {
			t.Errorf("diff %d is taken for %v", seed, res.Kind)
		}
		if res.Changed {
			shorter++
		}
		if res.Reason == compress.ReasonDoubt {
			t.Errorf("diff %d of git is not understood", seed)
		}
		g.git("", "reset", "-q", "--hard")
		g.git("", "clean", "-qfd")
		g.git(res.Text, "apply", "--unidiff-zero", "--whitespace=nowarn", "-")
		if d := cmp.Diff(want, g.tree()); d != "" {
			t.Errorf("diff %d makes another tree:\n%s\n%s", seed, head(d), head(res.Text))
		}
	}
	if shorter < 4 {
		t.Errorf("%d of 12 diffs are shorter", shorter)
	}
}

// TestChangedLinesStay: of any diff that is understood, every line that changes
// something stays, but for lock files.
func TestChangedLinesStay(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		r := compress.Compress(s.text, compress.Options{})
		if r.Kind != compress.Diff || strings.Contains(s.text, "lock") {
			continue
		}
		count := func(text string) (n int) {
			for l := range strings.SplitSeq(text, "\n") {
				if strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") || strings.HasPrefix(l, "diff ") || strings.HasPrefix(l, "rename ") || strings.HasPrefix(l, "new mode ") {
					n++
				}
			}
			return n
		}
		if in, out := count(s.text), count(r.Text); in != out {
			t.Errorf("%s: %d lines of changes and headers, %d before", s.name, out, in)
		}
	}
}
