package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

// sharedDir is a folder of the data that lies beside the repository; the test is
// skipped where there is none.
func sharedDir(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs %s in the folder that MNEME_SHARED names, default ../shared: %v", name, err)
	}
	return dir
}

// tree reads every file below dir, by slash-separated path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pagesOf are the pages in a tree.
func pagesOf(files map[string]string) (out []vault.File) {
	for p, b := range files {
		if strings.HasSuffix(p, ".md") {
			out = append(out, vault.File{Path: p, Bytes: []byte(b)})
		}
	}
	return out
}

// The vault of real transcripts: the same bytes twice and after a rebuild, with the
// region that a person wrote; every link and block leads somewhere, and each citation
// names bytes of an upload that have its hash.
func TestVaultOfSamples(t *testing.T) {
	t.Parallel()
	samples := sharedDir(t, "samples")
	out := t.TempDir()
	s := start(t, t.TempDir())
	s.must("learn", "-p", "shop", "--wait", filepath.Join(samples, "claude-code"), filepath.Join(samples, "pi"))
	s.must("wait")
	sync := func(args ...string) {
		t.Helper()
		s.must(append([]string{"vault", "-p", "shop", "--out", out}, args...)...)
	}
	again := func() {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(out, "shop")); err != nil {
			t.Fatal(err)
		}
		sync()
	}
	sync()
	want := tree(t, out)
	if len(want) < 10 {
		t.Fatalf("%d files", len(want))
	}
	if !strings.Contains(want["shop/index.md"], "\n## Synthesis\n\n*") || !strings.Contains(want["shop/index.md"], "[[decisions#^") {
		t.Errorf("index.md shows no synthesis that cites:\n%s", want["shop/index.md"])
	}
	again()
	if diff := cmp.Diff(want, tree(t, out)); diff != "" {
		t.Errorf("written twice (-first +second):\n%s", diff)
	}
	s.must("rebuild", "--from-log")
	again()
	if diff := cmp.Diff(want, tree(t, out)); diff != "" {
		t.Errorf("after a rebuild (-first +second):\n%s", diff)
	}

	page := filepath.Join(out, "shop", "decisions.md")
	const mine = "My own words \u0645\u0631\u062d\u0628\u0627\r\n\n## Notes\n<!-- /mneme:derived -->\n\tno line end"
	f, err := os.OpenFile(page, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(mine)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	edited := tree(t, out)["shop/decisions.md"]
	s.must("rebuild")
	sync()
	again()
	s.must("rebuild")
	again()
	if diff := cmp.Diff(edited, tree(t, out)["shop/decisions.md"]); diff != "" {
		t.Errorf("the page that a person wrote on (-want +got):\n%s", diff)
	}

	sync("--emit-evidence-notes")
	files := pagesOf(tree(t, filepath.Join(out, "shop")))
	for _, p := range vault.Check(files) {
		t.Error(p)
	}
	cites := vault.Citations(files)
	if len(cites) < 100 || vault.Links(files) < 500 {
		t.Fatalf("%d citations, %d links", len(cites), vault.Links(files))
	}
	objects := map[string][]byte{}
	for _, c := range cites {
		b, ok := objects[c.Object]
		if !ok {
			b, err = os.ReadFile(filepath.Join(s.dir, "buckets", filepath.FromSlash(c.Object)))
			if err != nil {
				t.Fatal(err)
			}
			objects[c.Object] = b
		}
		if c.End > int64(len(b)) || c.SHA256 != "" && memory.Sum(b[c.Start:c.End]) != c.SHA256 {
			t.Errorf("%s: %s bytes %d to %d are not what the page says", c.Path, c.Object, c.Start, c.End)
		}
	}
	if h := s.verify(); !h.OK {
		t.Error(h.Problems)
	}
}

// Watch: what is written under Notes goes to the log, what is learned comes to the
// pages, a server that stops and starts again is waited for, Ctrl-C is a clean end.
func TestVaultWatch(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	s := start(t, dir)
	note := filepath.Join(t.TempDir(), "a.md")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(note, "# Limits\n\nWe decided to keep the limit of queue orders at 100 messages, because the consumer falls behind.\n")
	s.must("learn", "-p", "shop", "--wait", note)
	s.must("wait")

	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "--dir", dir, "vault", "watch", "-p", "shop", "--out", out, "--every", "100ms")
	cmd.Env = cleanEnv()
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(out, "shop", "decisions.md")
	until := func(what string, ok func(page string) bool) {
		t.Helper()
		for end := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			b, _ := os.ReadFile(page)
			if ok(string(b)) {
				return
			}
			if time.Now().After(end) {
				cancel()
				_ = cmd.Wait()
				t.Fatalf("%s: not within 40 s:\n%s\n%s", what, b, log.String())
			}
		}
	}
	has := func(text string) func(string) bool {
		return func(page string) bool { return strings.Contains(page, text) }
	}
	until("the first writing", has("at 100 messages"))

	// A person writes while new memory comes: both stand.
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	write(page, string(b)+"mine\n")
	write(note, "# Limits\n\nFrom now on the limit of queue orders is 250 messages instead of 100, because the consumer got faster.\n")
	s.must("learn", "-p", "shop", "--wait", note)
	until("new memory", has("is 250 messages"))
	until("the note stays", has("\n## Notes\nmine\n"))

	// A second folder writes on the same region: it comes here.
	second := t.TempDir()
	s.must("wait")
	until("the note is in the log", func(string) bool {
		s.must("vault", "-p", "shop", "--out", second)
		b, err := os.ReadFile(filepath.Join(second, "shop", "decisions.md"))
		return err == nil && strings.HasSuffix(string(b), "mine\n")
	})
	other := filepath.Join(second, "shop", "decisions.md")
	b, err = os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	write(other, string(b)+"from elsewhere\n")
	s.must("vault", "-p", "shop", "--out", second)
	until("a note from elsewhere", has("\n## Notes\nmine\nfrom elsewhere\n"))

	// The server goes and comes back; a page that was removed comes back too.
	s.stop()
	if err := os.Remove(page); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	until("a server that came back", has("from elsewhere"))
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("watch ended with %v:\n%s", err, log.String())
	}
	for p := range maps.Keys(tree(t, out)) {
		if strings.Contains(p, ".local-") || strings.HasSuffix(p, ".tmp") {
			t.Errorf("%s was left", p)
		}
	}
}

// A page that is saved again and again while new memory is written into it: no line
// that was saved is lost, and in the end folder and log say the same.
func TestVaultEditedMeanwhile(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	s := start(t, t.TempDir())
	note := filepath.Join(t.TempDir(), "a.md")
	learn := func(n int) {
		t.Helper()
		if err := os.WriteFile(note, fmt.Appendf(nil, "# Limits\n\nFrom now on the limit of queue orders is %d messages, because the consumer got faster.\n", n), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must("learn", "-p", "shop", "--wait", note)
	}
	learn(100)
	s.must("vault", "-p", "shop", "--out", out)
	page := filepath.Join(out, "shop", "decisions.md")
	stop := make(chan struct{})
	var saved []string
	var editor sync.WaitGroup
	editor.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			b, err := os.ReadFile(page)
			if err != nil || !bytes.Contains(b, []byte("\n## Notes\n")) {
				continue // it is being replaced
			}
			b = fmt.Appendf(b, "line %d\n", n)
			if n%2 == 0 {
				err = os.WriteFile(page+".swp", b, 0o600)
				if err == nil {
					err = os.Rename(page+".swp", page)
				}
			} else if f, e := os.OpenFile(page, os.O_APPEND|os.O_WRONLY, 0); e == nil {
				_, err = fmt.Fprintf(f, "line %d\n", n)
				err = errors.Join(err, f.Close())
			} else {
				continue
			}
			if err != nil {
				t.Error(err)
				return
			}
			saved = append(saved, fmt.Sprintf("line %d", n))
		}
	})
	for n := range 12 {
		learn(200 + n)
		if text, code := s.mem("vault", "-p", "shop", "--out", out); code > 1 {
			t.Errorf("exit %d: %s", code, text)
		}
	}
	close(stop)
	editor.Wait()
	s.must("vault", "-p", "shop", "--out", out)
	s.must("vault", "-p", "shop", "--out", out)
	all := ""
	for p, b := range tree(t, filepath.Join(out, "shop")) {
		if strings.HasPrefix(p, "decisions") {
			all += b
		}
		if strings.HasPrefix(filepath.Base(p), ".mneme-") && p != vault.FolderStateName {
			t.Errorf("%s was left", p)
		}
	}
	if !strings.Contains(all, "is 211 messages") || len(saved) < 20 {
		t.Errorf("the page is not the last one, or %d lines were saved:\n%s", len(saved), all)
	}
	have := map[string]bool{}
	for l := range strings.Lines(all) {
		have[strings.TrimSpace(l)] = true
	}
	for _, l := range saved {
		if !have[l] {
			t.Errorf("%q is lost of %d lines", l, len(saved))
		}
	}
}
